"""Pictures and facts of chapter 06, Memory."""

from utils.hardware import memories
from utils.occupancy import limits, occupancy
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, figure


def size_text(size: float) -> str:
    """Bytes as a reader likes them: 228 KiB, 50 MiB, 141 GB (memory chips count in powers of ten)."""
    for unit, one in (("GB", 1e9), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= one:
            return f"{size / one:,.0f} {unit}"
    return f"{size:,.0f} bytes"


def memory_chart():
    """The sizes of `memories()` as bars, on a logarithmic scale."""
    whose, sizes = memories()
    words = "; ".join(f"{name} {size_text(size)}" for name, size in sizes.items())
    fig = figure(7, 2.3, alt=f"{whose}: {words}")
    axes = fig.add_subplot()
    bars = axes.barh(
        list(sizes), list(sizes.values()), color=BLOCK_COLOURS[: len(sizes)], height=0.65
    )
    axes.bar_label(bars, [size_text(size) for size in sizes.values()], padding=4, fontsize=9)
    axes.set(
        xscale="log",
        xlim=(2**20, max(sizes.values()) * 12),
        xlabel="bytes on the whole chip (logarithmic)",
    )
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(whose, fontsize=9, loc="left", color=INK)
    return fig


def latency_chart(cycles: dict[int, float], shared: float, l2_bytes: int):
    """Cycles a load waits for, against the size of what it walks through. cycles: bytes -> cycles."""
    fig = figure(
        7,
        3,
        alt="Cycles a load takes against the size of the table: "
        + ", ".join(f"{size_text(size)} {value:.0f}" for size, value in cycles.items()),
    )
    axes = fig.add_subplot()
    axes.plot(
        list(cycles),
        list(cycles.values()),
        "o-",
        color=ACCENT,
        label="global memory, through the caches",
    )
    axes.axhline(shared, color=INK, linestyle="--", label="shared memory")
    axes.axvline(l2_bytes, color=ALARM, linestyle=":", label="size of L2")
    axes.set(xscale="log", ylim=(0, None), ylabel="cycles a load")
    ticks = list(cycles)[::2]
    axes.set_xticks(ticks, [size_text(size) for size in ticks], rotation=30, fontsize=8)
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return fig


def efficiency_chart(percent: dict[int, float]):
    """Share of the moved bytes that are used, against the stride. percent: stride -> percent."""
    fig = figure(
        6.5,
        2.6,
        alt="Used share of the bytes moved, by stride: "
        + ", ".join(f"{stride}: {value:.3g} %" for stride, value in percent.items()),
    )
    axes = fig.add_subplot()
    bars = axes.bar(
        [str(stride) for stride in percent], list(percent.values()), color=ACCENT, width=0.65
    )
    axes.bar_label(bars, [f"{value:.3g} %" for value in percent.values()], fontsize=8, padding=2)
    axes.set(
        ylim=(0, 115), xlabel="stride in elements of 4 bytes", ylabel="% of the moved bytes used"
    )
    axes.spines[["top", "right"]].set_visible(False)
    return fig


def occupancy_chart(compute_capability, threads: int, registers: int, shared: int):
    """What fits on an SM: its places for warps, coloured by block, and how many blocks each
    resource would allow.
    """
    sm, found = (
        limits(compute_capability),
        occupancy(compute_capability, threads, registers, shared),
    )
    fig = figure(
        8,
        2.7,
        alt=f"An SM of compute capability {compute_capability[0]}.{compute_capability[1]}, blocks of {threads} "
        f"threads, {registers} registers a thread, {shared:,} bytes of shared memory: {found!r}",
    )
    places, bars = fig.subplots(1, 2, width_ratios=(1.2, 1))
    a_block = -(-threads // 32)
    across = 16
    for place in range(sm.warps):
        taken = place < found.warps
        colour = BLOCK_COLOURS[place // a_block % len(BLOCK_COLOURS)] if taken else IDLE
        places.add_patch(_cell(place % across, place // across, colour))
    places.set(xlim=(0, across), ylim=(sm.warps / across, 0), aspect="equal", xticks=[], yticks=[])
    places.spines[:].set_visible(False)
    places.set_title(
        f"{found.warps} of {sm.warps} places for warps taken: {found.share:.0%}\n"
        f"{found.blocks} block{'s' * (found.blocks != 1)}, each its colour",
        fontsize=9.5,
        loc="left",
    )
    names, values = list(found.by), list(found.by.values())
    colours = [ALARM if name in found.limited_by else ACCENT for name in names]
    drawn = bars.barh(names, values, color=colours, height=0.6)
    bars.bar_label(drawn, fontsize=9, padding=3)
    bars.set(xlim=(0, 1.15 * max(max(values), 1)), xticks=[])
    bars.invert_yaxis()
    bars.spines[["top", "right", "bottom"]].set_visible(False)
    bars.set_title("blocks that each would allow (red: the limit)", fontsize=9.5, loc="left")
    return fig


def _cell(x, y, colour):
    from matplotlib.patches import Rectangle

    return Rectangle((x + 0.05, y + 0.05), 0.9, 0.9, facecolor=colour, edgecolor="white")
