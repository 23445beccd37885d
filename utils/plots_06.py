"""Pictures and facts of chapter 06, Memory."""

import json
from pathlib import Path

import numpy as np

from utils.hardware import has_gpu
from utils.occupancy import limits, occupancy
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, figure

DATA = Path(__file__).resolve().parent.parent / "assets" / "data" / "gpu_generations.json"


def memories() -> tuple[str, dict[str, int]]:
    """(whose, {name: bytes}): what this GPU has of each kind of memory, all SMs together, as its driver says.

    Without a GPU: those of an H100 SXM from its data sheet, which the first value says.
    """
    if has_gpu():
        from numba import cuda

        gpu = cuda.get_current_device()
        sms = gpu.MULTIPROCESSOR_COUNT
        sizes = {"registers": 4 * gpu.MAX_REGISTERS_PER_MULTIPROCESSOR * sms,
                 "shared memory": gpu.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR * sms,
                 "L2 cache": gpu.L2_CACHE_SIZE,
                 "global memory": cuda.current_context().get_memory_info().total}
        return f"{_text(gpu.name)}, {sms} SMs, as its driver says", sizes
    data = json.loads(DATA.read_text())
    chip = next(c for c in data["chips"] if c["chip"] == "NVIDIA H100 SXM")
    card = next(g for g in data["gpus"] if g["gpu"] == "H100 SXM")
    stores = {name: entry["value"] << 10 for name, entry in chip["storage_kb"].items()}
    sizes = {"registers": stores["registers"], "L1 / shared memory": stores["L1 / shared"], "L2 cache": stores["L2"],
             "global memory": card["memory_gb"]["value"] * 10**9}
    return f"H100 SXM, {chip['cores']['value']} SMs, data sheet:\n{data['sources']['hopper']['title']}", sizes


def _text(name):
    return name.decode() if isinstance(name, bytes) else name


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
    bars = axes.barh(list(sizes), list(sizes.values()), color=BLOCK_COLOURS[:len(sizes)], height=0.65)
    axes.bar_label(bars, [size_text(size) for size in sizes.values()], padding=4, fontsize=9)
    axes.set(xscale="log", xlim=(2**20, max(sizes.values()) * 12), xlabel="bytes on the whole chip (logarithmic)")
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(whose, fontsize=9, loc="left", color=INK)
    return fig


def latency_chart(cycles: dict[int, float], shared: float, l2_bytes: int):
    """Cycles a load waits for, against the size of what it walks through. cycles: bytes -> cycles."""
    fig = figure(7, 3, alt="Cycles a load takes against the size of the table: "
                 + ", ".join(f"{size_text(size)} {value:.0f}" for size, value in cycles.items()))
    axes = fig.add_subplot()
    axes.plot(list(cycles), list(cycles.values()), "o-", color=ACCENT, label="global memory, through the caches")
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
    fig = figure(6.5, 2.6, alt="Used share of the bytes moved, by stride: "
                 + ", ".join(f"{stride}: {value:.3g} %" for stride, value in percent.items()))
    axes = fig.add_subplot()
    bars = axes.bar([str(stride) for stride in percent], list(percent.values()), color=ACCENT, width=0.65)
    axes.bar_label(bars, [f"{value:.3g} %" for value in percent.values()], fontsize=8, padding=2)
    axes.set(ylim=(0, 115), xlabel="stride in elements of 4 bytes", ylabel="% of the moved bytes used")
    axes.spines[["top", "right"]].set_visible(False)
    return fig


def occupancy_chart(compute_capability, threads: int, registers: int, shared: int):
    """What fits on an SM: its places for warps, coloured by block, and how many blocks each resource would allow."""
    sm, found = limits(compute_capability), occupancy(compute_capability, threads, registers, shared)
    fig = figure(8, 2.7, alt=f"An SM of compute capability {compute_capability[0]}.{compute_capability[1]}, blocks of {threads} "
                 f"threads, {registers} registers a thread, {shared:,} bytes of shared memory: {found!r}")
    places, bars = fig.subplots(1, 2, width_ratios=(1.2, 1))
    a_block = -(-threads // 32)
    across = 16
    for place in range(sm.warps):
        taken = place < found.warps
        colour = BLOCK_COLOURS[place // a_block % len(BLOCK_COLOURS)] if taken else IDLE
        places.add_patch(_cell(place % across, place // across, colour))
    places.set(xlim=(0, across), ylim=(sm.warps / across, 0), aspect="equal", xticks=[], yticks=[])
    places.spines[:].set_visible(False)
    places.set_title(f"{found.warps} of {sm.warps} places for warps taken: {found.share:.0%}\n"
                     f"{found.blocks} block{'s' * (found.blocks != 1)}, each its colour", fontsize=9.5, loc="left")
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


def roofline(gflop_per_s: float, gb_per_s: float, kernels: dict[str, float], reached: dict[str, float], whose: str):
    """The two roofs of a GPU over arithmetic intensity. kernels: name -> FLOPs a byte; each is marked at the roof, and
    in `reached` with the GFLOP/s that it was measured at."""
    ridge = gflop_per_s / gb_per_s
    words = ", ".join(f"{name} at {x:.3g} FLOPs a byte" for name, x in kernels.items())
    fig = figure(7.5, 3.6, alt=f"Roofline of {whose}: {gb_per_s:,.0f} GB/s up to {ridge:.1f} FLOPs a byte, then "
                 f"{gflop_per_s:,.0f} GFLOP/s. {words}")
    axes = fig.add_subplot()
    low, high = min(0.03, *kernels.values()) / 1.5, max(300, *kernels.values()) * 2
    x = np.geomspace(low, high, 200)
    axes.plot(x, np.minimum(gflop_per_s, gb_per_s * x), color=INK, linewidth=1.8)
    axes.axvline(ridge, color=INK, linestyle=":", linewidth=0.9)
    axes.text(ridge * 1.1, gb_per_s * low * 1.3, f"ridge: {ridge:.1f} FLOPs a byte", fontsize=8.5, color=INK)
    for name, at in kernels.items():
        roof = min(gflop_per_s, gb_per_s * at)
        axes.plot(at, roof, "o", color=ACCENT, markerfacecolor="white", markersize=9)
        axes.annotate(name, (at, roof), xytext=(7, -11), textcoords="offset points", fontsize=8.5)
        if name in reached:
            axes.plot(at, reached[name], "o", color=ALARM, markersize=5)
    axes.set(xscale="log", yscale="log", xlabel="arithmetic intensity: FLOPs a byte", ylabel="GFLOP/s")
    axes.set_title(whose + (": hollow the roof, filled measured" if reached else ": the roof over each kernel"), fontsize=9.5,
                   loc="left", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
