"""The picture of Your GPU: which programs a driver runs."""

from collections.abc import Mapping

from utils.plots import ACCENT, INK, figure
from utils.setup.checks import fits
from utils.setup.survey import dotted

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
    verdicts = {name: fits(driver, version) for name, version in parts.items()}
    said = "; ".join(
        f"{name} ({dotted(parts[name])}): {ZONES[what][1]}" for name, what in verdicts.items()
    )
    fig = figure(
        7.6,
        1.25 + 0.36 * len(parts),
        alt=f"A driver for CUDA {dotted(driver)} and programs built with other versions. {said}",
    )
    axes = fig.add_subplot()
    edges = [
        (_x((first, 0)) - 0.5, _x(driver) + 0.5, "everything"),
        (_x(driver) + 0.5, _x((driver[0] + 1, 0)) - 0.5, "machine code"),
        (_x((driver[0] + 1, 0)) - 0.5, _x((last + 1, 0)) - 0.5, "nothing"),
    ]
    for left, right, what in edges:
        if right > left:
            axes.axvspan(left, right, color=ZONES[what][0], lw=0, label=ZONES[what][1])
    for row, version in enumerate(parts.values()):
        axes.plot(_x(version), row, "o", color=ACCENT, ms=9)
        axes.text(
            _x(version) - 0.45, row, dotted(version), ha="right", va="center", fontsize=9, color=INK
        )
    axes.axvline(_x(driver) + 0.5, color=INK, lw=1.5)
    axes.set_yticks(range(len(parts)), list(parts))
    axes.set(
        xlim=(_x((first, 0)) - 0.5, _x((last + 1, 0)) - 0.5),
        ylim=(len(parts) - 0.4, -1.3),
        xlabel="CUDA version that a program was built with",
    )
    axes.set_xticks(
        [_x((major, minor)) for major in range(first, last + 1) for minor in (0, 5)],
        [f"{major}.{minor}" for major in range(first, last + 1) for minor in (0, 5)],
    )
    fig.legend(
        *axes.get_legend_handles_labels(),
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize=9,
    )
    axes.text(
        _x(driver) + 0.3,
        -0.85,
        f"driver: CUDA {dotted(driver)}",
        ha="right",
        va="center",
        fontsize=9,
        color=INK,
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    return fig


def _x(version):
    """Place of a version on the axis: ten minor versions to a major one."""
    return 10 * version[0] + version[1]
