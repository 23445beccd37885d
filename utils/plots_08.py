"""The pictures of chapter 08: a timeline of what a profiler saw, repeated timings, the roofline."""

from collections.abc import Mapping, Sequence

import numpy as np

from utils import hardware, results
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, INK, figure

#: Roofs that are measured: a library's matrix product of each type.
MATMULS = ("float32", "tf32", "bfloat16")


def repeats(milliseconds: Sequence[float], title: str = ""):
    """Each repeat of a measurement as a dot, in order, with the median and the mean as lines."""
    times = np.asarray(milliseconds)
    median, mean = np.median(times), times.mean()
    fig = figure(7.5, 2.8, alt=f"{len(times)} repeats of one measurement: most lie near the median of {median:.3g} ms, the first "
                 f"took {times[0]:.3g} ms, the slowest {times.max():.3g} ms")
    axes = fig.add_subplot()
    axes.plot(times, ".", color=ACCENT, markersize=4)
    axes.plot(0, times[0], "o", color=ALARM, fillstyle="none", label="the first repeat")
    axes.axhline(median, color=INK, linewidth=1, label=f"median {median:.3g} ms")
    axes.axhline(mean, color=ALARM, linewidth=1, linestyle="--", label=f"mean {mean:.3g} ms")
    axes.set(xlabel="repeat", ylabel="ms", yscale="log", title=title)
    axes.legend(frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return fig


def flame(events: Sequence[tuple[str, int, float, float]], *, title: str = ""):
    """A flame chart: what ran when, and who called whom.

    events: (name, depth, start, end) with times in microseconds; a bar stands under the one that called it.
    """
    begin, end = min(e[2] for e in events), max(e[3] for e in events)
    depth = max(e[1] for e in events) + 1
    fig = figure(9.5, 0.9 + 0.34 * depth, alt=f"Flame chart of {len(events)} operators over {(end - begin) / 1e3:.3g} ms, in "
                 f"{depth} levels")
    axes = fig.add_subplot()
    names = list(dict.fromkeys(e[0] for e in events))
    for name, level, start, stop in events:
        colour = BLOCK_COLOURS[names.index(name) % len(BLOCK_COLOURS)]
        axes.barh(level, stop - start, left=start - begin, height=0.9, color=colour, edgecolor="white", linewidth=0.5)
        letters = int((stop - start) / (end - begin) * 125)  # as many as fit into the bar
        if letters >= 4:
            text = name if len(name) <= letters else name[:letters - 1] + "…"
            axes.text((start + stop) / 2 - begin, level, text, ha="center", va="center", fontsize=7.5, color=INK, clip_on=True)
    axes.set(xlim=(0, end - begin), ylim=(depth - 0.4, -0.6), yticks=[], xlabel="µs", title=title)
    axes.spines[["top", "right", "left"]].set_visible(False)
    return fig


def nested(events) -> list[tuple[str, int, float, float]]:
    """(name, depth, start, end) of torch.profiler's events on the thread with most of them, for `flame`."""
    rows = [(e.name, e.time_range.start, e.time_range.end, e.thread) for e in events if e.device_type.name == "CPU"]
    threads = [row[3] for row in rows]
    busiest = max(set(threads), key=threads.count)
    found, open_until = [], []
    for name, start, end, thread in sorted(rows, key=lambda row: (row[1], -row[2])):
        if thread == busiest:
            while open_until and open_until[-1] <= start:
                open_until.pop()
            found.append((name, len(open_until), start, end))
            open_until.append(end)
    return found


# ---- the roofline -------------------------------------------------------------------------------------------------


def roofs(datasheet: str = "H100 SXM") -> tuple[dict[str, float], dict[str, float], str]:
    """(bytes per second, FLOP per second, whose): measured on this GPU, else recorded on one, else from a GPU's datasheet.

    The two dicts name each roof; what is measured is a copy and the library's matrix products.
    """
    if hardware.has_gpu():
        from utils import timing

        flops = {f"matmul {dtype}": timing.matmul_rate(dtype) for dtype in MATMULS}
        return {"copy": timing.copy_bandwidth()}, flops, f"measured on this {hardware.gpu().name}"
    names = ("vector_add/bandwidth", "vector_add/share_of_copy", "matmul/rate", "matmul/share_of_matmul")
    found = [results.find(f"roofline/{name}") for name in names]
    if all(found):  # a rate divided by its share of the roof is the roof
        bandwidth, share_of_copy, rate, share_of_matmul = (entry["value"] for entry in found)
        return ({"copy": bandwidth / share_of_copy}, {"matmul float32": rate / share_of_matmul},
                f"recorded on {found[0]['gpu']}, {found[0]['date'][:10]}")
    from utils.plots_04 import generations

    gpu = next(g for g in generations()["gpus"] if g["gpu"] == datasheet)
    return ({"memory": gpu["bandwidth_gb_s"] * 1e9},
            {"fp32 units": gpu["fp32_tflops"] * 1e12, "tensor cores, 16 bit": gpu["tensor16_tflops"] * 1e12},
            f"datasheet of the {datasheet}, nothing measured")


def rate_of(timing) -> float | None:
    """FLOP per second of a Timing: measured, else recorded, else None."""
    if timing.samples:
        return timing.flops_per_second
    entry = (timing.recorded or {}).get("rate")
    return entry["value"] if entry else None


def roofline(roofs_of, kernels: Mapping[str, tuple[float, float | None]]):
    """FLOP/s against arithmetic intensity, with the roofs and a point for each kernel.

    roofs_of: what `roofs` returns. kernels: name -> (FLOP per byte, FLOP per second or None). A kernel without a rate
    stands as a hollow point on the roof: the most it could reach, which nobody measured.
    """
    bandwidths, peaks, what = roofs_of
    slope, top = max(bandwidths.values()), max(peaks.values())
    fig = figure(8.5, 4.2, alt=f"Roofline, {what}: a slope of {slope / 1e12:.3g} TB/s, flat roofs at "
                 + ", ".join(f"{p / 1e12:.3g}" for p in peaks.values()) + " TFLOP/s, and the kernels " + ", ".join(kernels))
    axes = fig.add_subplot()
    low = min([intensity for intensity, _ in kernels.values()] + [0.1]) / 2
    high = max([intensity for intensity, _ in kernels.values()] + [top / slope]) * 8  # room for the names of the roofs
    for (name, peak), style in zip(sorted(peaks.items(), key=lambda item: item[1]), ("-", "--", ":"), strict=False):
        ridge = peak / slope
        axes.plot([ridge, high], [peak / 1e12] * 2, style, color=INK, linewidth=1.5)
        axes.text(high, peak / 1e12 * 1.2, f"{name}, {peak / 1e12:,.0f} TFLOP/s", ha="right", fontsize=8.5, color=INK)
    axes.plot([low, top / slope], [low * slope / 1e12, top / 1e12], color=ACCENT, linewidth=1.5)
    name, middle = next(iter(bandwidths)), (low * min(peaks.values()) / slope) ** 0.5
    axes.text(middle / 1.25, middle * slope / 8e11, f"{name}, {slope / 1e12:.2f} TB/s", ha="right", fontsize=8.5, color=ACCENT)
    plain = min(peaks.values())
    for label, (intensity, rate) in kernels.items():
        y = (rate if rate else min(intensity * slope, plain)) / 1e12
        axes.plot(intensity, y, "o", color=ALARM, fillstyle="full" if rate else "none")
        far = intensity > low * (high / low) ** 0.65  # at the right: its name to the left of it, or it would leave the picture
        axes.annotate(label, (intensity, y), xytext=(-6 if far else 6, 7 if far else -10), textcoords="offset points",
                      ha="right" if far else "left", fontsize=8.5, color=ALARM)
    axes.set(xscale="log", yscale="log", xlim=(low, high), xlabel="arithmetic intensity, FLOP a byte", ylabel="TFLOP/s")
    axes.set_title(what + ("" if any(rate for _, rate in kernels.values()) else "; hollow: the most a kernel could reach"),
                   fontsize=9.5, loc="left", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
