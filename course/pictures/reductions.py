"""Pictures of the chapter Reductions and scans: look-back, and the ring of tiles."""

from course.pictures.shapes import arrow, box, sheet, word
from utils.plots import ACCENT, IDLE, chart

WAITING = "#ffffff"
KNOWN = "#cfe8cf"


def look_back(told, sums):
    """What the last tile sees: tiles that told their sum, up to the nearest that told its prefix.

    told: "SUM" or "PREFIX" for each tile before the last; sums: of these tiles.
    """
    nearest = max(t for t, what in enumerate(told) if what == "PREFIX")
    start = sum(sums)
    words = ", ".join(f"tile {t} {what.lower()}" for t, what in enumerate(told))
    fig, axes = chart(
        7.2, 2.2, alt=f"Look-back from tile {len(told)}: {words}; it begins at {start}."
    )
    sheet(axes, 2 * len(told) + 2, 3.4)
    for t, (what, own) in enumerate(zip(told, sums, strict=True)):
        prefix = sum(sums[: t + 1])
        used = t >= nearest
        box(axes, 2 * t, 0.5, 1.8, 1, KNOWN if what == "PREFIX" else IDLE)
        word(axes, 2 * t + 0.9, 0.2, f"tile {t}")
        number = prefix if what == "PREFIX" else own
        word(axes, 2 * t + 0.9, 1, f"{what.lower()} {number}", weight="bold" if used else "normal")
        if used:
            arrow(axes, 2 * len(told) + 0.9, 2.3, 2 * t + 0.9, 1.55)
    box(axes, 2 * len(told), 0.5, 1.8, 1, WAITING)
    word(axes, 2 * len(told) + 0.9, 0.2, f"tile {len(told)}", color=ACCENT)
    word(axes, 2 * len(told) + 0.9, 1, "waits")
    parts = [str(sum(sums[: nearest + 1])), *map(str, sums[nearest + 1 :])]
    word(axes, len(told) + 1, 2.8, f"it begins at {' + '.join(parts)} = {start}", color=ACCENT)
    return fig


#: A warp's job in the ring, and what it waits for.
JOBS = (
    ("mover", "loads a tile", "a free stage"),
    ("scanners", "add up their parts", "loaded"),
    ("publisher", "tells the tile's sum", "added"),
    ("gatherer", "adds the tiles before", "other blocks' sums"),
    ("scanners", "scan in place", "known"),
    ("mover", "stores the tile", "scanned"),
)


def ring():
    """The jobs of scan_ring.cu that a tile goes through, and what each of them waits for."""
    words = "; ".join(f"the {who} {what} (waits for: {wait})" for who, what, wait in JOBS)
    fig, axes = chart(7.4, 1.9, alt=f"A tile's way through the ring: {words}.")
    sheet(axes, 3.2 * len(JOBS), 3.4)
    for step, (who, what, wait) in enumerate(JOBS):
        x = 3.2 * step
        box(axes, x, 0.8, 2.8, 1.5, KNOWN if who == "scanners" else IDLE)
        word(axes, x + 1.4, 1.25, who, weight="bold", fontsize=7.5)
        word(axes, x + 1.4, 1.85, what, fontsize=6)
        word(axes, x + 1.4, 2.75, f"waits: {wait}", fontsize=6, color=ACCENT)
        if step:
            arrow(axes, x - 0.4, 1.55, x, 1.55)
    return fig


def beside(entry: dict | None) -> None:
    """Prints a recorded speed-up over CUB; nothing where none is recorded."""
    if entry is None:
        return
    what = entry["name"].removesuffix("/speedup_over_cub")
    when = entry["date"][:10]
    print(f"{what:16} {entry['value']:.2f} times CUB's speed ({entry['gpu']}, {when})")
