"""Pictures and facts of the chapter Memory."""

from collections.abc import Mapping, Sequence

import numpy as np

from course.pictures.shapes import box, plain, titled
from utils import has_gpu, results
from utils.hardware import memories
from utils.occupancy import Occupancy, limits, occupancy
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, chart, figure
from utils.plots.svg import FAINT, ON_COLOUR, Drawing

WALKS = [1 << k for k in range(14, 29)]  # bytes of the tables that the pointer chase walks through


def size_text(size: float) -> str:
    """Bytes as a reader likes them: 228 KiB, 50 MiB, and 150 GB in powers of ten."""
    for unit, one in (("GB", 1e9), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= one:
            return f"{size / one:,.0f} {unit}"
    return f"{size:,.0f} bytes"


def memory_chart():
    """The sizes of `memories()` as bars, on a logarithmic scale."""
    whose, sizes = memories()
    words = "; ".join(f"{name} {size_text(size)}" for name, size in sizes.items())
    fig, axes = chart(7, 2.3, alt=f"{whose}: {words}")
    lengths = [float(size) for size in sizes.values()]  # in a web page int64 is not NumPy's own
    bars = axes.barh(list(sizes), lengths, color=BLOCK_COLOURS[: len(sizes)], height=0.65)
    axes.bar_label(
        bars,
        [size_text(size) for size in sizes.values()],
        padding=4,
        fontsize=9,
    )
    axes.set(
        xscale="log",
        xlim=(2**20, max(sizes.values()) * 12),
        xlabel="bytes on the whole chip (logarithmic)",
    )
    axes.invert_yaxis()
    plain(axes, whose)
    return fig


def latencies(waits: dict[int, list[float]], shared: list[float]):
    """What one load waits for, by the size of the table, as a chart; recorded on the way. Without
    a GPU: what a real one measured, which the title names.

    waits: bytes of the table -> cycles a load in each of several walks; shared: the same for a
    table in shared memory.
    """
    from numba import cuda

    if not has_gpu():
        return _recorded_latencies()
    medians = {size: _record(_latency_name(size), samples) for size, samples in waits.items()}
    l2_bytes = cuda.get_current_device().L2_CACHE_SIZE
    return latency_chart(medians, _record("latency/shared", shared), l2_bytes)


def _latency_name(size: int) -> str:
    return f"latency/{size >> 10}_kib"


def _record(name: str, samples: list[float]) -> float:
    """The median of the samples, in cycles, recorded with half the distance of the quartiles."""
    low, middle, high = np.percentile(samples, (25, 50, 75))
    spread = (high - low) / 2
    results.record(name, middle, "cycles", spread)
    return middle


def _recorded_latencies():
    """The chart of what a real GPU measured; None, and a word, where nothing is recorded."""
    *entries, shared = results.together(*map(_latency_name, WALKS), "latency/shared")
    cycles = {size: e["value"] for size, e in zip(WALKS, entries, strict=True) if e}
    if not cycles or not shared:
        print("no GPU, so no times; nothing is recorded yet. The walk ran, on a small table.")
        return None
    title = f"no GPU here; recorded on {shared['gpu']}, {shared['date'][:10]}"
    return latency_chart(cycles, shared["value"], title=title)


def latency_chart(
    cycles: dict[int, float],
    shared: float,
    l2_bytes: int | None = None,
    title: str = "",
):
    """Cycles a load waits for, against the bytes of what it walks through (the keys of cycles)."""
    said = ", ".join(f"{size_text(size)} {value:.0f}" for size, value in cycles.items())
    fig, axes = chart(7, 3, alt=f"Cycles a load takes against the size of the table: {said}")
    axes.plot(
        list(cycles),
        list(cycles.values()),
        "o-",
        color=ACCENT,
        label="global memory, through the caches",
    )
    axes.axhline(shared, color=INK, linestyle="--", label="shared memory")
    if l2_bytes:
        axes.axvline(l2_bytes, color=ALARM, linestyle=":", label="size of L2")
    axes.set(
        xscale="log",
        ylim=(0, None),
        ylabel="cycles a load",
    )
    axes.set_xlabel("bytes of the table that the loads walk through")
    ticks = list(cycles)[::2]
    axes.set_xticks(
        ticks,
        [size_text(size) for size in ticks],
        rotation=30,
        fontsize=8,
    )
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=9)
    plain(axes, title)
    return fig


def efficiency_chart(percent: dict[int, float]):
    """Share of the moved bytes that are used, against the stride. percent: stride -> percent."""
    fig, axes = chart(
        6.5,
        2.6,
        alt="Used share of the bytes moved, by stride: "
        + ", ".join(f"{stride}: {value:.3g} %" for stride, value in percent.items()),
    )
    bars = axes.bar(
        [str(stride) for stride in percent], list(percent.values()), color=ACCENT, width=0.65
    )
    axes.bar_label(
        bars,
        [f"{value:.3g} %" for value in percent.values()],
        fontsize=8,
        padding=2,
    )
    axes.set(
        ylim=(0, 115), xlabel="stride in elements of 4 bytes", ylabel="% of the moved bytes used"
    )
    plain(axes)
    return fig


def occupancy_chart(compute_capability, threads: int, registers: int, shared: int):
    """What fits on an SM: its places for warps, coloured by block, and how many blocks each
    resource would allow.
    """
    major, minor = compute_capability
    sm = limits(compute_capability)
    filled = occupancy(compute_capability, threads, registers, shared)
    alt = (
        f"An SM of compute capability {major}.{minor}, blocks of {threads} threads, "
        f"{registers} registers a thread, {shared:,} bytes of shared memory: {filled!r}"
    )
    fig = figure(8, 2.7, alt=alt)
    places, bars = fig.subplots(1, 2, width_ratios=(1.2, 1))
    _draw_places(places, sm, filled, warps_a_block=-(-threads // 32))
    _draw_limits(bars, filled)
    return fig


def _draw_places(places, sm, filled: Occupancy, warps_a_block: int):
    """An SM's places for warps, the taken ones in the colour of their block."""
    across = 16
    for place in range(sm.warps):
        colour = IDLE
        if place < filled.warps:
            colour = BLOCK_COLOURS[place // warps_a_block % len(BLOCK_COLOURS)]
        x, y = place % across, place // across
        box(places, x + 0.05, y + 0.05, 0.9, 0.9, colour, "white", 1)
    places.set(
        xlim=(0, across),
        ylim=(sm.warps / across, 0),
        aspect="equal",
        xticks=[],
        yticks=[],
    )
    places.spines[:].set_visible(False)
    title = (
        f"{filled.warps} of {sm.warps} places for warps taken: {filled.share:.0%}\n"
        f"{filled.blocks} block{'s' * (filled.blocks != 1)}, each its colour"
    )
    titled(places, title)


def _draw_limits(bars, filled: Occupancy):
    """How many blocks each resource would allow, the scarcest in red."""
    names, values = list(filled.by), list(filled.by.values())
    colours = [ALARM if name in filled.limited_by else ACCENT for name in names]
    drawn = bars.barh(names, values, color=colours, height=0.6)
    bars.bar_label(drawn, fontsize=9, padding=3)
    bars.set(
        xlim=(0, 1.15 * max(max(values), 1)),
        xticks=[],
    )
    bars.invert_yaxis()
    bars.spines[["top", "right", "bottom"]].set_visible(False)
    titled(bars, "blocks that each would allow (red: the limit)")


def compiled_occupancy(kernel, threads: int) -> str:
    """The occupancy of a Numba kernel, for the types it was last called with, from what it was
    compiled to, and the driver's own answer. Needs a GPU.
    """
    from numba import cuda

    compiled = next(iter(kernel.overloads.values()))
    registers, shared = compiled.regs_per_thread, compiled.shared_mem_per_block
    capability = cuda.get_current_device().compute_capability
    ours = occupancy(capability, threads, registers, shared)
    function = compiled._codelibrary.get_cufunc()
    context = cuda.current_context()
    drivers = context.get_active_blocks_per_multiprocessor(function, threads, 0)
    used = f"{registers} registers, {shared} bytes shared"
    return f"{kernel.__name__}: {used}: {ours}; the driver says {drivers}"


# ---- constants, one address at a time

LANE, TURN = 24, 28  # pixels: a lane across, a turn down
NAMES = 84  # pixels for the names of turns


def turns(requests: Mapping[str, Sequence[int]]):
    """Which lanes of a warp the constant cache serves in which turn: one address each.

    requests: name -> the element that each lane asks for.
    """
    served = {name: list(dict.fromkeys(asked)) for name, asked in requests.items()}
    said = [f"{name} takes {_counted(len(turns), 'turn')}" for name, turns in served.items()]
    lanes = max(map(len, requests.values()))
    height = sum(TURN * len(turns) + 34 for turns in served.values())
    alt = f"{lanes} lanes ask for constants: {'; '.join(said)}."
    sheet = Drawing(NAMES + LANE * lanes, height, alt=alt)
    top = 0
    for (name, asked), words in zip(requests.items(), said, strict=True):
        sheet.text_from(0, top + 14, words, size=14)
        top += 26
        for turn, element in enumerate(served[name]):
            _draw_turn(sheet, top, turn, [each == element for each in asked], element)
            top += TURN
        top += 8
    return sheet


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _draw_turn(sheet, top, turn, is_served, element):
    """A row of lanes; those that get their constant have its number and colour."""
    sheet.text(NAMES - 8, top + TURN / 2, f"turn {turn + 1}", size=13, anchor="end")
    colour = BLOCK_COLOURS[element % len(BLOCK_COLOURS)]
    for lane, gets in enumerate(is_served):
        x = NAMES + LANE * lane
        sheet.box(x + 1, top + 2, LANE - 2, TURN - 4, fill=colour if gets else FAINT, rx=2)
        if gets:
            sheet.text(x + LANE / 2, top + TURN / 2, element, size=13, colour=ON_COLOUR)
