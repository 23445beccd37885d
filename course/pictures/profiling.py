"""The pictures and tables of Profiling: what a profiler saw, repeated timings, the roofline."""

from collections.abc import Sequence

import numpy as np

from course.pictures.shapes import plain, word
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, INK, chart


def repeats(milliseconds: Sequence[float], title: str = ""):
    """Each repeat of a measurement as a dot, in order, with the median and the mean as lines."""
    times = np.asarray(milliseconds)
    median, mean = np.median(times), times.mean()
    alt = (
        f"{len(times)} repeats of one measurement: most lie near the median of {median:.3g} ms, "
        f"the first took {times[0]:.3g} ms, the slowest {times.max():.3g} ms"
    )
    fig, axes = chart(7.5, 2.8, alt=alt)
    axes.plot(times, ".", color=ACCENT, markersize=4)
    axes.plot(0, times[0], "o", color=ALARM, fillstyle="none", label="the first repeat")
    axes.axhline(median, color=INK, linewidth=1, label=f"median {median:.3g} ms")
    axes.axhline(
        mean,
        color=ALARM,
        linewidth=1,
        linestyle="--",
        label=f"mean {mean:.3g} ms",
    )
    axes.set(
        xlabel="repeat",
        ylabel="ms",
        yscale="log",
        title=title,
    )
    axes.legend(frameon=False, fontsize=9)
    plain(axes)
    return fig


def flame(events: Sequence[tuple[str, int, float, float]], *, title: str = ""):
    """A flame chart: what ran when, and who called whom.

    events: (name, depth, start, end) with times in microseconds; a bar stands under the one that
        called it.
    """
    begin, end = min(e[2] for e in events), max(e[3] for e in events)
    depth = max(e[1] for e in events) + 1
    fig, axes = chart(
        9.5,
        0.9 + 0.34 * depth,
        alt=f"Flame chart of {len(events)} operators over {(end - begin) / 1e3:.3g} ms, in "
        f"{depth} levels",
    )
    names = list(dict.fromkeys(e[0] for e in events))
    for name, level, start, stop in events:
        colour = BLOCK_COLOURS[names.index(name) % len(BLOCK_COLOURS)]
        axes.barh(
            level,
            stop - start,
            left=start - begin,
            height=0.9,
            color=colour,
            edgecolor="white",
            linewidth=0.5,
        )
        letters = int((stop - start) / (end - begin) * 125)  # as many as fit into the bar
        if letters >= 4:
            text = name if len(name) <= letters else name[: letters - 1] + "…"
            word(axes, (start + stop) / 2 - begin, level, text, fontsize=7.5, clip_on=True)
    axes.set(
        xlim=(0, end - begin),
        ylim=(depth - 0.4, -0.6),
        yticks=[],
        xlabel="µs",
        title=title,
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    return fig


def nested(events) -> list[tuple[str, int, float, float]]:
    """(name, depth, start, end) of torch.profiler's events on the thread with most of them, for
    `flame`.
    """
    rows = [
        (e.name, e.time_range.start, e.time_range.end, e.thread)
        for e in events
        if e.device_type.name == "CPU"
    ]
    threads = [row[3] for row in rows]
    busiest = max(set(threads), key=threads.count)
    nested_events, open_until = [], []
    for name, start, end, thread in sorted(rows, key=lambda row: (row[1], -row[2])):
        if thread == busiest:
            while open_until and open_until[-1] <= start:
                open_until.pop()
            nested_events.append((name, len(open_until), start, end))
            open_until.append(end)
    return nested_events


def print_parts(seen, names: Sequence[str]) -> None:
    """The median time of each range that a step is made of, and its share of their sum, on the
    host's clock. seen: a torch.profiler profile; names: of the ranges.
    """
    medians = {}
    for name in names:
        times = [e.cpu_time_total for e in seen.events() if e.name == name and e.cpu_time_total]
        medians[name] = np.median(times)
    whole = sum(medians.values())
    for name, microseconds in medians.items():
        print(f"{name:9} {microseconds / whole:6.1%}  {microseconds:7,.0f} µs")


def print_top(seen, device: str, rows: int = 8) -> None:
    """What took the longest by its own time, with its share and its number of calls: kernels where
    the device is "cuda", operators where it is "cpu".
    """
    on_gpu = device == "cuda"
    clock = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    events = [e for e in seen.key_averages() if _is_work(e, device)]
    whole = sum(getattr(e, clock) for e in events)
    print("kernels on the GPU" if on_gpu else "operators on the CPU", "by their own time:")
    for event in sorted(events, key=lambda e: -getattr(e, clock))[:rows]:
        share = getattr(event, clock) / whole
        print(f"{share:6.1%} {event.count:5} calls  {event.key[:60]}")


def _is_work(event, device: str) -> bool:
    """Whether it ran on the device and is neither a range of ours (in capitals) nor a label."""
    is_range = event.key.isupper() or "#" in event.key
    return event.device_type.name == device.upper() and not is_range


# ---- the roofline


def rate_of(timing) -> float | None:
    """FLOP per second of a Timing: measured, else recorded, else None."""
    if timing.samples:
        return timing.flops_per_second
    entry = (timing.recorded or {}).get("rate")
    return entry["value"] if entry else None
