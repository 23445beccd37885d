"""Pictures of Your GPU: which programs a driver runs, which code a GPU loads."""

from collections.abc import Mapping

from course.pictures.shapes import word
from utils.plots import ACCENT, BLOCK_COLOURS, INK, chart
from utils.plots.svg import FAINT, ON_COLOUR, Drawing
from utils.plots.svg import INK as LETTERS
from utils.setup.checks import fits, loads
from utils.setup.survey import dotted

# What of a program runs: colour and words, from the oldest program to the newest
ZONES = {
    "everything": ("#CDE9D9", "runs"),
    "machine code": ("#FBE7B9", "machine code only"),
    "nothing": ("#F3D3CC", "does not start"),
}
# How a GPU runs code that it loads (`setup_checks.loads`), and the colour of that
LOADED = {"as it is": BLOCK_COLOURS[2], "translated": BLOCK_COLOURS[1]}
NAMES, CELL, ROW = 130, 110, 34  # pixels: the names of codes, a GPU's column, a row


def versions_chart(driver: tuple[int, int], parts: Mapping[str, tuple[int, int]]):
    """For a driver whose newest CUDA version is `driver`: a dot for each part at the CUDA version
    that it was built with.

    The colour behind a dot says what of such a program runs (`setup_checks.fits`).
    """
    first = min(driver, *parts.values())[0]
    last = max(driver, *parts.values())[0]
    said = "; ".join(
        f"{name} ({dotted(version)}): {ZONES[fits(driver, version)][1]}"
        for name, version in parts.items()
    )
    alt = f"A driver for CUDA {dotted(driver)} and programs built with other versions. {said}"
    fig, axes = chart(7.6, 1.25 + 0.36 * len(parts), alt=alt)
    _draw_zones(axes, driver, first, last)
    ends_there = {"ha": "right", "fontsize": 9}
    for row, version in enumerate(parts.values()):
        axes.plot(_x(version), row, "o", color=ACCENT, ms=9)
    axes.axvline(_x(driver) + 0.5, color=INK, lw=1.5)
    word(axes, _x(driver) + 0.3, -0.85, f"driver: CUDA {dotted(driver)}", **ends_there)
    names = [f"{name}: {dotted(version)}" for name, version in parts.items()]
    axes.set_yticks(range(len(parts)), names)
    axes.set(
        ylim=(len(parts) - 0.4, -1.3),
        xlabel="CUDA version that a program was built with",
    )
    axes.set(xlim=(_x((first, 0)) - 0.5, _x((last + 1, 0)) - 0.5))
    # no 12.5: 12.10 would be behind 12.9, and an axis with halves looks like one of decimals
    ticks = [(major, minor) for major in range(first, last + 1) for minor in (0, 4, 8)]
    axes.set_xticks([_x(version) for version in ticks], [dotted(version) for version in ticks])
    legend = axes.get_legend_handles_labels()
    fig.legend(
        *legend,
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    return fig


def _draw_zones(axes, driver, first, last):
    """What runs, as colours from left to right: up to the driver's version, up to the next major
    version, and beyond.
    """
    newest = _x(driver) + 0.5
    next_major = _x((driver[0] + 1, 0)) - 0.5
    borders = (_x((first, 0)) - 0.5, newest, next_major, _x((last + 1, 0)) - 0.5)
    for (colour, label), left, right in zip(ZONES.values(), borders, borders[1:], strict=False):
        if right > left:
            axes.axvspan(
                left,
                right,
                color=colour,
                lw=0,
                label=label,
            )


def _x(version):
    """Place of a version on the axis: ten minor versions to a major one."""
    return 10 * version[0] + version[1]


def loads_map(codes, gpus: Mapping[str, tuple[int, int]]):
    """For each form of code a bar over the GPUs that load it, in the order of their capabilities.

    codes: such as sm_80 and compute_80. gpus: {name: compute capability}.
    """
    ordered = sorted(gpus, key=gpus.get)
    said = "; ".join(f"{code}: {_loaded_by(code, ordered, gpus)}" for code in codes)
    alt = f"Which GPUs load which code. {said}"
    sheet = Drawing(NAMES + CELL * len(ordered), 2 * ROW + ROW * len(codes), alt=alt)
    for column, name in enumerate(ordered):
        middle = NAMES + CELL * (column + 0.5)
        sheet.text(middle, 10, name, size=14, font_weight="bold")
        sheet.text(middle, 29, dotted(gpus[name]))
    for row, code in enumerate(codes):
        top = 1.4 * ROW + ROW * row
        sheet.text_from(0, top + ROW / 2, code, size=14)
        sheet.box(NAMES, top + 3, CELL * len(ordered), ROW - 6, fill=FAINT, rx=4)
        for column, name in enumerate(ordered):
            how = loads(code, gpus[name])
            if how in LOADED:
                left = NAMES + CELL * column
                sheet.named(left, top + 3, CELL, ROW - 6, how, LOADED[how], rx=None)
    return sheet


def _loaded_by(code, names, gpus):
    """The GPUs that load the code, in words."""
    return ", ".join(name for name in names if loads(code, gpus[name]) in LOADED) or "none"


# ---- who brings which part, in each place

#: Of each place: who brings driver, toolkit and packages; what you see to yourself has a mark
YOU = "you: "
BROUGHT_BY = {
    "your own Linux": ("you: system's packages", "you: make lab", "you: make lab"),
    "Windows, WSL2": ("you: in Windows", "you: make lab", "you: make lab"),
    "a container": ("the host", "you: make lab", "you: make lab"),
    "Colab": ("Google", "Google", "you: set-up cell"),
    "a rented GPU": ("the landlord", "you: make lab", "you: make lab"),
}
PARTS = ("driver", "toolkit", "Python packages")
PLACE, PART = 140, 186  # pixels: a place's name, a part


def who_brings_what():
    """For each place that a GPU may be in: who brings which part; what you bring is coloured."""
    said = [f"{place}: {', '.join(whose)}" for place, whose in BROUGHT_BY.items()]
    width = PLACE + PART * len(PARTS)
    words = f"Who brings {', '.join(PARTS)}. {'; '.join(said)}."
    sheet = Drawing(width, 30 + ROW * len(BROUGHT_BY), alt=words)
    for column, part in enumerate(PARTS):
        middle = PLACE + PART * (column + 0.5)
        sheet.text(middle, 10, part, size=14, font_weight="bold")
    for row, (place, whose) in enumerate(BROUGHT_BY.items()):
        top = 26 + ROW * row
        sheet.text_from(0, top + ROW / 2, place, size=14)
        for column, who in enumerate(whose):
            left = PLACE + PART * column
            is_yours = who.startswith(YOU)
            fill = BLOCK_COLOURS[2] if is_yours else FAINT
            colour = ON_COLOUR if is_yours else LETTERS
            sheet.box(left + 2, top + 2, PART - 4, ROW - 4, fill=fill, rx=4)
            sheet.text(left + PART / 2, top + ROW / 2, who, colour=colour)
    return sheet
