"""The picture of Your GPU: which programs a driver runs."""

from collections.abc import Mapping

from utils.plots import ACCENT, INK, figure
from utils.setup.checks import fits
from utils.setup.survey import dotted

# What of a program runs: colour and words, from the oldest program to the newest
ZONES = {
    "everything": ("#CDE9D9", "runs"),
    "machine code": ("#FBE7B9", "machine code only"),
    "nothing": ("#F3D3CC", "does not start"),
}


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
    fig = figure(7.6, 1.25 + 0.36 * len(parts), alt=alt)
    axes = fig.add_subplot()
    _draw_zones(axes, driver, first, last)
    for row, version in enumerate(parts.values()):
        x = _x(version)
        axes.plot(x, row, "o", color=ACCENT, ms=9)
        _write(axes, x - 0.45, row, dotted(version))
    axes.axvline(_x(driver) + 0.5, color=INK, lw=1.5)
    _write(axes, _x(driver) + 0.3, -0.85, f"driver: CUDA {dotted(driver)}")
    axes.set_yticks(range(len(parts)), list(parts))
    axes.set(
        ylim=(len(parts) - 0.4, -1.3),
        xlabel="CUDA version that a program was built with",
    )
    axes.set(xlim=(_x((first, 0)) - 0.5, _x((last + 1, 0)) - 0.5))
    ticks = [(major, minor) for major in range(first, last + 1) for minor in (0, 5)]
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


def _write(axes, x, y, text):
    """A text that ends at x."""
    axes.text(
        x,
        y,
        text,
        ha="right",
        va="center",
        fontsize=9,
        color=INK,
    )


def _x(version):
    """Place of a version on the axis: ten minor versions to a major one."""
    return 10 * version[0] + version[1]
