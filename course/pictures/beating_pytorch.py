"""The pictures and tables of *Beating PyTorch*: the map of its kernels, and from recorded results
the race, the waterfall, where the time goes.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from course.pictures.shapes import IDLE, box, numbered, plain, word
from course.pictures.tensor_cores import owners as owners
from utils import engine, results
from utils.hardware import is_here, roofs
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, INK, OTHERS, chart, figure
from utils.plots.svg import FAINT, ON_COLOUR, Drawing, strong


def recorded(prefix: str, level: str = "", gpu: str = "") -> dict[str, dict]:
    """Entries whose name begins with `prefix`, by the rest of their name.

    All are of one GPU: the named one, else this one, else the last recorded. level: those that were
    measured with this compute capability pretended, such as "7.5", and no others; few GPUs have
    any.
    """
    suffix = f"/level_{level}" if level else ""
    entries = []
    for entry in results.everything() if level or gpu else results.load():
        name, at_level, _ = entry["name"].partition("/level_")
        if name.startswith(prefix) and entry["name"] == name + suffix:
            entries.append({**entry, "name": name} if at_level else entry)
    if not entries:
        return {}
    name = gpu or _whose(entries)
    of_one = [entry for entry in entries if entry["gpu"] == name]
    return {entry["name"].removeprefix(prefix): entry for entry in of_one}


def _whose(entries: Sequence[dict]) -> str:
    """This machine's GPU, if entries are of it, else that of the last one."""
    here = engine.gpu()
    if here and any(entry["gpu"] == here.name for entry in entries):
        return here.name
    return max(entries, key=lambda entry: entry["date"])["gpu"]


def origin(entries: Mapping[str, dict]) -> str:
    """Whose these entries are: "NVIDIA H200, 2026-01-31, PyTorch 2.11.0"."""
    if not entries:
        return "nothing is recorded yet: `make race` on a machine with a GPU does it"
    last = max(entries.values(), key=lambda entry: entry["date"])
    return f"{last['gpu']}, {last['date'][:10]}, PyTorch {last['versions'].get('torch', '?')}"


def nothing(what: str):
    """In the place of a picture that nothing has been recorded for: it says so."""
    says = f"{what}: {origin({}).replace('`', '')}"
    fig = figure(0.3 + 0.078 * len(says), 0.4, alt=f"{what}: nothing recorded yet")
    fig.text(0.01, 0.5, says, fontsize=9.5, color=INK, va="center")
    return fig


class Table:
    """Rows that a notebook shows as a table, and a terminal as columns."""

    def __init__(
        self,
        head: Sequence[str],
        rows: Sequence[Sequence[str]],
        note: str = "",
    ):
        self.head, self.rows, self.note = list(head), [list(row) for row in rows], note

    def __repr__(self):
        lines = [self.head, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.head))]
        text = [
            "  ".join(
                cell.rjust(w) if column else cell.ljust(w)
                for column, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        return "\n".join([*text, *([self.note] if self.note else [])])

    def _repr_markdown_(self):
        rows = [self.head, [":--", *["--:"] * (len(self.head) - 1)], *self.rows]
        table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
        return table + (f"\n\n{self.note}" if self.note else "")


def limits() -> tuple[float, float, str]:
    """(bytes per second, FLOP per second, whose): copy speed, and the fastest matrix product.

    They are those of the GPU whose race is shown: measured, if it is this one, else recorded, where
    the product in 16 bits stands for itself. NaN where nothing is known of that GPU.
    """
    times = recorded("mnist/")
    gpu = next(iter(times.values()))["gpu"] if times else None
    try:
        bandwidths, peaks, whose = roofs("H200", gpu)
    except LookupError:
        return math.nan, math.nan, f"no limits are known of {gpu}"
    rates = list(peaks.values())
    product = results.find("matmul/cublas/4096/bf16/rate", gpu)
    if product and not is_here(gpu):
        rates.append(product["value"])
    return max(bandwidths.values()), max(rates), whose


def modes_table(modes: Mapping) -> Table:
    """PyTorch's modes: course.kernels.mnist_cnn.pytorch_modes.MODES."""
    head = ["mode", "precision", "memory format", "torch.compile", "whole step as a graph"]
    rows = []
    for mode in modes.values():
        last = "channels last" if mode.channels_last else "channels first"
        graph = "yes" if mode.graph else "–"
        name = mode.name.replace("_", " ")
        rows.append([name, mode.precision, last, mode.compile or "–", graph])
    return Table(head, rows)


def kernel_times(mode: str):
    """Bars of the kernels' times in a step of PyTorch at batch 64, by what they do."""
    parts = recorded(f"mnist/profile/64/{mode}/")
    times = {}
    for name, entry in parts.items():
        if entry["unit"] == "µs":
            times[name.replace("_", " ")] = entry["value"]
    title = f"{mode.replace('_', ' ')}, {origin(parts)}"
    return bars(times, title=title, what=f"kernel times of PyTorch's step, {mode}")


# ---- the map: layers and kernels

#: The layers in their order, and the numbers that each hands to the next, an image.
LAYERS = (
    ("conv1", 32 * 28 * 28),
    ("norm", 32 * 28 * 28),
    ("ReLU", 32 * 28 * 28),
    ("pool", 32 * 14 * 14),
    ("conv2", 64 * 14 * 14),
    ("norm", 64 * 14 * 14),
    ("ReLU", 64 * 14 * 14),
    ("pool", 64 * 7 * 7),
    ("fc1", 128),
    ("ReLU", 128),
    ("fc2", 10),
    ("loss", 10),
)
MAP_LETTERS = 10  # points
IMAGE, Y2, POOLED, HIDDEN = 28 * 28, 64 * 14 * 14 * 2, 64 * 7 * 7 * 2, 128 * 2  # bytes, in bf16

#: Our kernels: name, first and last layer, row, bytes an image that it reads and writes.
KERNELS = (
    ("patch_moments", 0, 1, 2, IMAGE, 0),
    ("conv_forward", 0, 7, 3, IMAGE, Y2 + POOLED),
    ("fc1_forward", 5, 8, 4, POOLED, 2 * HIDDEN),
    ("head", 9, 11, 5, 2 * HIDDEN, HIDDEN),
    ("fc1_backward", 6, 8, 6, HIDDEN + POOLED, POOLED),
    ("conv_backward_input", 0, 7, 7, IMAGE + Y2 + POOLED, 0),
    ("conv_backward_weights", 0, 7, 8, IMAGE + Y2 + POOLED, 0),
    ("update", 0, 10, 9, 0, 0),
)


def size(count: float) -> str:
    """Bytes for readers: "784 B", "25 kB"."""
    if count < 1000:
        return f"{count:.0f} B"
    return f"{count / 1000:.0f} kB"


def moved(read: int, written: int) -> str:
    """What a kernel reads and writes for a digit; what it adds up over the batch has no size."""
    if not read:
        return "weights and gradients only"
    return f"in {size(read)}, out {size(written) if written else 'sums alone'}"


def kernel_map(kernels: int = len(KERNELS)):
    """Which layers each of our eight kernels does, and the bytes at each border, an image.

    Above: the layers, one kernel each, every array in float32. Below: ours, in bfloat16, as many as
    have run; the last of them stands out. "In" and "out" are what a kernel reads and writes for an
    image; sums over the batch and weights apart.
    """
    plain = ", ".join(f"{name} {size(4 * count)}" for name, count in LAYERS)
    ran = KERNELS[:kernels]
    ours = ", ".join(f"{name} {moved(read, written)}" for name, _, _, _, read, written in ran)
    fig, axes = chart(
        9.6,
        4.2,
        alt="Layers of the network with the bytes per image that each hands on in float32: "
        f"{plain}. Below, our kernels that have run, under the layers that they do: {ours}.",
    )
    now = ran[-1]
    for column, (name, count) in enumerate(LAYERS):
        _box(axes, column, column, 0, name, BLOCK_COLOURS[0])
        axes.text(column + 1, 1.2, size(4 * count), ha="center", fontsize=MAP_LETTERS, color=ALARM)
    axes.text(0, 1.2, size(IMAGE), ha="center", fontsize=MAP_LETTERS, color=ALARM)
    left, width = now[1] + 0.05, now[2] - now[1] + 0.9
    box(axes, left, 0.08, width, now[3] - 0.08, ACCENT, edge="none", alpha=0.1, zorder=0)
    for each in KERNELS:
        name, first, last, row, read, written = each
        colour = BLOCK_COLOURS[2 if row > 5 else 1] if each in ran else IDLE
        _box(axes, first, last, row, name, colour, line=1.8 if each is now else 0.6)
        if each in ran:
            words = moved(read, written)
            bold = "bold" if each is now else "normal"
            word(axes, last + 1.1, row + 0.42, words, ha="left", fontsize=MAP_LETTERS, weight=bold)
    axes.text(
        -0.1,
        -0.35,
        "one kernel per layer: bytes at each border",
        fontsize=MAP_LETTERS,
        color=ALARM,
    )
    so_far = sum(read + written for *_, read, written in ran)
    axes.text(
        -0.1,
        1.85,
        f"ours, forward, then backward: after {_kernels(kernels)} {size(so_far)} have moved",
        fontsize=MAP_LETTERS,
        color=INK,
    )
    axes.set(
        xlim=(-0.4, len(LAYERS) + 2.7),
        ylim=(10.0, -0.8),
    )
    axes.set_axis_off()
    return fig


def _kernels(count: int) -> str:
    """ "1 kernel", "8 kernels"."""
    return f"{count} kernel" + ("" if count == 1 else "s")


def _box(axes, first, last, row, name, colour, line=0.6):
    left, width = first + 0.05, last - first + 0.9
    box(axes, left, row + 0.08, width, 0.68, colour, line=line)
    word(axes, left + width / 2, row + 0.44, name, va="baseline", fontsize=MAP_LETTERS)


# ---- the race


def race(level: str = "", gpu: str = "") -> dict[str, dict]:
    """The race's entries as "64/ours/bf16" and so on. level, gpu: as `recorded` has them."""
    return recorded("mnist/step/", level, gpu)


def times(entries: Mapping[str, dict]) -> dict[str, dict[int, dict]]:
    """{rival: {batch: entry}} from the entries of `race`, the slowest rival first."""
    by_rival = {}
    for name, entry in entries.items():
        batch, _, rival = name.partition("/")
        if entry["unit"] == "µs":
            by_rival.setdefault(rival, {})[int(batch)] = entry

    def quickness(rival):
        return -np.mean([np.log(entry["value"]) for entry in by_rival[rival].values()])

    return {rival: by_rival[rival] for rival in sorted(by_rival, key=quickness)}


def best_of_pytorch(rivals: Mapping[str, dict]) -> dict[int, str]:
    """{batch: PyTorch's fastest mode there}."""
    batches = sorted({batch for entries in rivals.values() for batch in entries})
    pytorch = [rival for rival in rivals if rival.startswith("pytorch/")]
    best = {}
    for batch in batches:
        timed = {r: rivals[r][batch]["value"] for r in pytorch if batch in rivals[r]}
        best[batch] = min(timed, key=timed.get, default="")
    return best


def fastest_of_ours(rivals) -> str:
    """Of these names ours in sixteen bits: bf16, or on compute capability 7.5 fp16."""
    return "ours/bf16" if "ours/bf16" in rivals else "ours/fp16"


def label_of(rival: str) -> str:
    """A rival's name for readers."""
    return rival.replace("ours/", "ours, ").removeprefix("pytorch/").replace("_", " ")


def race_table(level: str = "") -> Table:
    """Every rival's time for a step at every batch size, and how much faster ours is.

    PyTorch's best is in bold. level: the race with this compute capability pretended.
    """
    entries = race(level)
    rivals = times(entries)
    best = best_of_pytorch(rivals)
    rows = []
    for rival, by_batch in rivals.items():
        whose = "" if rival.startswith("ours/") else "PyTorch "
        row = [whose + label_of(rival)]
        for batch, fastest in best.items():
            text = _time_with_spread(by_batch.get(batch))
            row.append(f"**{text}**" if fastest == rival else text)
        rows.append(row)
    speedups = _speedups(entries, best)
    if speedups:
        factors = [f"**{speedups[batch]:.2f}×**" if batch in speedups else "–" for batch in best]
        rows.append(["PyTorch's best ÷ ours", *factors])
    note = origin(entries)
    if level and rows:
        note += f", our kernels compiled for compute capability {level}"
    if rows:
        note += ". Median ± half the interquartile range."
    head = ["µs per step", *(f"batch {batch:,}" for batch in best)]
    return Table(head, rows, note)


def _time_with_spread(entry: dict | None) -> str:
    if not entry:
        return "–"
    digits = 1 if entry["spread"] < 10 else 0
    return f"{entry['value']:,.{digits}f} ± {entry['spread']:.{digits}f}"


def _speedups(entries: Mapping[str, dict], batches) -> dict[int, float]:
    """{batch: PyTorch's best over ours}, where it is recorded."""
    speedups = {}
    for batch in batches:
        entry = entries.get(f"{batch}/speedup_over_pytorch_best")
        if entry:
            speedups[batch] = entry["value"]
    return speedups


#: Lines of the race's chart that are told apart: rival -> (label, look). The others are grey.
TOLD = {
    "pytorch/eager_fp32": ("PyTorch, eager, fp32", {"color": "#E69F00"}),
    "pytorch/graph_fp32": ("PyTorch, one graph, fp32", {"color": ACCENT}),
    "pytorch/graph_max_autotune_bf16_channels_last": (
        "PyTorch's best: autotuned, graph, bf16",
        {"color": "#009E73"},
    ),
    "ours/tf32": ("ours, tf32", {"color": ALARM, "linestyle": "--"}),
    "ours/bf16": ("ours, bf16", {"color": ALARM}),
    "ours/fp16": ("ours, fp16", {"color": ALARM}),
}


def _line_of(rival: str) -> dict:
    """How a rival is drawn, and what the legend says."""
    if rival not in TOLD:
        return {"color": OTHERS, "linewidth": 1.0, "marker": "o", "markersize": 2.5, "zorder": 1}
    label, look = TOLD[rival]
    width = 2.6 if rival.startswith("ours/") else 2.0
    shape = {"linewidth": width, "marker": "o", "markersize": 4.5, "zorder": 3}
    return {"label": label, **shape, **look}


def race_chart():
    """Time of a step against the batch size: every mode of PyTorch, and ours."""
    entries = race()
    rivals = times(entries)
    best = best_of_pytorch(rivals)
    speedups = _speedups(entries, best)
    if not rivals:
        return nothing("Microseconds per step against the batch size")
    factors = ", ".join(f"{factor:.1f} at batch {batch}" for batch, factor in speedups.items())
    alt = (
        "Microseconds per step against the batch size, both on logarithmic scales: "
        f"{len(rivals)} rivals"
    )
    if speedups:
        alt += f"; ours is faster than PyTorch's best mode by {factors}"
    fig, axes = chart(8.5, 3.8, alt=alt)
    for rival, by_batch in rivals.items():
        xs = sorted(by_batch)
        ys = [by_batch[x]["value"] for x in xs]
        axes.plot(xs, ys, **_line_of(rival))
    axes.plot([], [], color=OTHERS, linewidth=1.0, label="PyTorch's other modes")
    ours = rivals.get(fastest_of_ours(rivals), {})
    for batch, factor in speedups.items():
        axes.annotate(
            f"{factor:.1f}×",
            (batch, ours[batch]["value"]),
            xytext=(0, -15),
            textcoords="offset points",
            ha="center",
            fontsize=9.5,
            color=ALARM,
        )
    axes.set(xlabel="batch size", ylabel="µs per step")
    axes.margins(y=0.12)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(list(best), [f"{b:,}" for b in best])
    axes.minorticks_off()
    axes.legend(
        frameon=False,
        fontsize=9.5,
        loc="center left",
        bbox_to_anchor=(1, 0.5),
    )
    plain(axes, origin(entries))
    return fig


# ---- where the time goes


#: PyTorch's modes that are told apart before the race: one change from each to the next, or two.
FEW_MODES = (
    "eager_fp32",
    "eager_bf16",
    "compile_tf32",
    "graph_fp32",
    "graph_compile_bf16_channels_last",
    "graph_max_autotune_bf16_channels_last",
)


def modes_at(entries: Mapping[str, dict], batch: int, few: bool = False) -> dict[str, float]:
    """{PyTorch's mode: microseconds a step} at a batch size, from the entries of `race`.

    few: of FEW_MODES alone, without their memory format.
    """
    prefix = f"{batch}/pytorch/"
    times = {
        name.removeprefix(prefix): entry["value"]
        for name, entry in entries.items()
        if name.startswith(prefix)
    }
    if few:
        times = {
            name.removesuffix("_channels_last"): time
            for name, time in times.items()
            if name in FEW_MODES
        }
    return {name.replace("_", " "): time for name, time in times.items()}


def best_times(entries: Mapping[str, dict]) -> dict[int, float]:
    """{batch: microseconds of PyTorch's fastest mode there}."""
    rivals = times(entries)
    return {
        batch: rivals[best][batch]["value"]
        for batch, best in best_of_pytorch(rivals).items()
        if best
    }


def touches(launches: Sequence, names) -> Table:
    """Which launches of a step are handed arrays of these names, how often, and kB for a digit.

    launches: of course.kernels.mnist_cnn.steps.Step.
    """
    rows, all_times, all_bytes = [], 0, 0.0
    for launch in launches:
        sizes = [size for name, size in launch.arrays if name in names]
        if sizes:
            rows.append([launch.name, str(len(sizes)), f"{sum(sizes) / 1e3:,.0f}"])
            all_times, all_bytes = all_times + len(sizes), all_bytes + sum(sizes)
    rows.append(["together", str(all_times), f"{all_bytes / 1e3:,.0f}"])
    return Table(["launch", "times", "kB per digit"], rows)


GAP = 0.012  # of the longest bar: between a bar and its words


def bars(
    parts: Mapping[str, float],
    *,
    title: str,
    what: str,
    unit: str = "µs",
    share: bool = True,
    axis: str = "",
    digits: int = 1,
):
    """A bar for each part, the longest first, with its `share` of all.

    what: for those who cannot see it. axis: what the axis says, if not "µs per step". digits:
    behind the point.
    """
    if not parts:
        return nothing(what)
    parts = dict(sorted(parts.items(), key=lambda item: -item[1]))
    total = sum(parts.values())
    fig, axes = chart(
        8,
        0.9 + 0.32 * len(parts),
        alt=f"{what}: "
        + ", ".join(f"{name} {value:,.{digits - 1}f} {unit}" for name, value in parts.items()),
    )
    axes.barh(
        list(parts),
        list(parts.values()),
        color=_highlighted(parts),
        height=0.65,
    )
    for row, value in enumerate(parts.values()):
        text = f" {value:,.{digits}f} {unit}" + (f" · {value / total:.0%}" if share else "")
        word(axes, value + GAP * max(parts.values()), row, text, ha="left")
    axes.set_xlim(0, 1.27 * max(parts.values()))
    axes.invert_yaxis()
    axes.set_xlabel(axis or f"{unit} per step", fontsize=9)
    plain(axes, title)
    return fig


def _highlighted(names) -> list[str]:
    """Ours in a strong colour and all others pale; all strong where nothing is named ours."""
    ours = [name.startswith("ours") for name in names]
    if not any(ours):
        return [ACCENT for _ in names]
    return [ACCENT if is_ours else OTHERS for is_ours in ours]


def waterfall(
    steps: Mapping[str, float],
    *,
    title: str,
    predicted: Mapping[str, float] = MappingProxyType({}),
    unit: str = "µs",
):
    """What each change took off, from the first version to the last; a change that cost time is
    drawn in red.

    predicted: what some of the versions were expected to take, drawn as a line across the bar.
    """
    if not steps:
        return nothing("Waterfall of optimizations")
    names, values = list(steps), list(steps.values())
    fig, axes = chart(
        8.8,
        0.8 + 0.165 * len(names),
        alt="Waterfall of optimizations: "
        + ", then ".join(f"{name} {value:,.0f} {unit}" for name, value in steps.items()),
    )
    for row, (name, value) in enumerate(steps.items()):
        axes.barh(row, value, color=BLOCK_COLOURS[0], height=0.6)
        text = f" {value:,.0f} {unit}"
        end = value
        if row:
            before = values[row - 1]
            change = "#DDDDDD" if before >= value else ALARM
            axes.barh(
                row,
                before - value,
                left=value,
                height=0.6,
                color=change,
            )
            text += f" · {before / value:.2f}×"
            end = max(value, before)
        if name in predicted:
            line = predicted[name]
            axes.plot(
                [line, line],
                [row - 0.42, row + 0.42],
                color=INK,
                linewidth=2,
            )
            text += f" · predicted {line:,.0f}"
            end = max(end, line)
        word(axes, end + GAP * max(values), row, text, ha="left", fontsize=9.5)
    axes.set_yticks(range(len(names)), names, fontsize=9.5)
    axes.set_xlim(0, 1.37 * max(values))
    axes.invert_yaxis()
    axes.set_xlabel(f"{unit} per step", fontsize=9.5)
    plain(axes, title)
    return fig


def your_waterfall(rows: Sequence):
    """Launches, and kB for a digit, of each version of the learner's step.

    Times are left out: those of steps that Python launches are the host's. rows: of
    course.kernels.mnist_cnn.ledger. Those with kernels of the learner's are strong.
    """
    if not rows:
        return nothing("Your waterfall")
    said = "; ".join(
        f"{row.label}: {row.launches} launches, {row.kilobytes:,.0f} kB"
        + (f", {_kernels(len(row.mine))} of yours" if row.mine else "")
        for row in rows
    )
    values = {
        "launches": [row.launches for row in rows],
        "kB per digit": [row.kilobytes for row in rows],
    }
    fig, all_axes = _side_by_side(len(values), 1.0 + 0.34 * len(rows), f"Your waterfall. {said}.")
    colours = [ACCENT if row.mine else OTHERS for row in rows]
    for axes, (name, lengths) in zip(all_axes, values.items(), strict=True):
        axes.barh(range(len(rows)), lengths, color=colours, height=0.62)
        for number, value in enumerate(lengths):
            place = value + 0.02 * max(lengths)
            word(axes, place, number, f"{value:,.0f}", ha="left", fontsize=10)
        axes.set(xlim=(0, 1.28 * max(lengths)), xticks=[])
        axes.invert_yaxis()
        plain(axes, name)
        axes.spines["bottom"].set_visible(False)
        axes.set_yticks([])
    labels = [row.label + (f" · {len(row.mine)} yours" if row.mine else "") for row in rows]
    all_axes[0].set_yticks(range(len(rows)), labels, fontsize=10)
    return fig


def _side_by_side(count, height, alt):
    """A figure with so many charts beside one another, and these."""
    fig = figure(8.8, height, alt=alt)
    all_axes = fig.subplots(1, count)
    return fig, all_axes


#: The short race's rivals, as its picture calls them; %s is our precision.
SHORT = {
    "pytorch/eager_fp32": "PyTorch, eager, fp32",
    "pytorch/graph_fp32": "PyTorch, one graph, fp32",
    "pytorch/graph_compile_%s_channels_last": "PyTorch, compiled, graph, %s",
    "pytorch/graph_max_autotune_%s_channels_last": "PyTorch's best: autotuned, graph, %s",
    "ours/%s": "the course's kernels, %s",
    "yours": "with your kernels",
    "solutions": "with the exercises' sample solutions, recorded",
}
STRIP, BESIDE = 48, 640  # pixels: from bar to bar, width of the picture


def short_race(times: Mapping[str, tuple], mine: Sequence[str] = (), gpu: str = "", row=None):
    """The README's picture of a race on this GPU: {rival: (µs, spread)}, the learner's among them.

    Without times those that were recorded, marked as recorded; the learner's bar is then missing.
    With the sample solutions, where these were recorded on the same GPU. row: of their ledger,
    whose counts stand below.
    """
    where, whose = gpu, gpu
    if not times:
        entries = recorded("mnist/step/64/")
        times = {name: (entry["value"], entry["spread"]) for name, entry in entries.items()}
        where = f"recorded on {origin(entries)}"
        whose = next((entry["gpu"] for entry in entries.values()), "")
    solved = recorded("mnist/yours/64/", gpu=whose).get("time") if whose else None
    if solved:
        times = {**times, "solutions": (solved["value"], solved["spread"])}
    kind = "bf16" if "ours/bf16" in times else "fp16"
    names = {name.replace("%s", kind): says.replace("%s", kind) for name, says in SHORT.items()}
    steps = {name: times[name][0] for name in names if name in times}
    if not steps:
        return nothing("The race")
    said = "; ".join(f"{names[name]} {time:,.0f} µs" for name, time in steps.items())
    counts = f"{row.launches} launches, {row.kilobytes:,.0f} kB per digit" if row else ""
    alt = f"A training step, batch 64, {where}: {said}"
    if row:
        alt += f". Your trainer: {counts}, counted here"
    sheet = Drawing(BESIDE, STRIP * (len(steps) + 1) + 10, alt=alt)
    longest = max(steps.values())
    for place, (name, time) in enumerate(steps.items()):
        own = name == "yours"
        says = names[name] + (f" ({', '.join(mine)})" if own and mine else "")
        fill = _fill_of(name)
        weight = {"font_weight": "bold"} if own else {}
        sheet.text_from(0, STRIP * place + 12, says, size=15, **weight)
        long = max(2, time / longest * (BESIDE - 120))
        sheet.box(0, STRIP * place + 22, long, 18, fill=fill, rx=3)
        sheet.text_from(long + 10, STRIP * place + 31, f"{time:,.0f} µs", size=15, **weight)
    below = STRIP * len(steps) + 14
    sheet.text_from(0, below, f"a training step of the CNN, batch 64 · {where}", size=13)
    if row:
        sheet.text_from(0, below + 22, f"your trainer, counted here: {counts}", size=13)
    return sheet


def _fill_of(rival):
    """The colour of a rival's bar: the learner's stands out, and what it could be is like it."""
    if rival.startswith("pytorch/"):
        return OTHERS
    return {"yours": ALARM, "solutions": BLOCK_COLOURS[4]}.get(rival, ACCENT)


def solved_table() -> Table:
    """The trainer with the four exercises' solutions, beside PyTorch's best mode and ours.

    Ours was measured in turn with it (course.solved_trainer), PyTorch's best in the race; all are
    of one GPU, which need not be the one of the other tables.
    """
    solved = recorded("mnist/yours/")
    if not solved:
        elsewhere = [e for e in results.everything() if e["name"].startswith("mnist/yours/")]
        solved = recorded("mnist/yours/", gpu=_whose(elsewhere)) if elsewhere else {}
    entries = race(gpu=_whose(list(solved.values()))) if solved else {}
    best = best_times(entries)
    batches = [batch for batch in best if f"{batch}/time" in solved]
    if not batches:
        how = "nothing is recorded yet: `python -m course.solved_trainer` on a GPU does it"
        return Table(["the trainer with the exercises solved", "µs per step"], [], how)
    theirs = [best[batch] for batch in batches]
    ours = [solved[f"{batch}/ours"] for batch in batches]
    with_solutions = [solved[f"{batch}/time"] for batch in batches]
    factors = [them / it["value"] for them, it in zip(theirs, with_solutions, strict=True)]
    rows = [
        ["PyTorch's best", *(f"{value:,.1f}" for value in theirs)],
        ["the course's kernels", *(f"{entry['value']:,.1f}" for entry in ours)],
        ["with all four solutions", *(f"{entry['value']:,.1f}" for entry in with_solutions)],
        *_alone(solved, batches),
        ["PyTorch's best ÷ with all four", *(f"**{factor:.2f}×**" for factor in factors)],
    ]
    head = ["µs per step", *(f"batch {batch:,}" for batch in batches)]
    note = f"{origin(solved)}; PyTorch's best on it: {origin(entries)}."
    if "accuracy" in solved:
        note += f" Test accuracy with the solutions: {solved['accuracy']['value']:.2%}."
    return Table(head, rows, note)


def _alone(solved, batches):
    """Rows of the trainers in which one kernel alone is a solution."""
    first = f"{batches[0]}/only_"
    names = [name.removeprefix(first) for name in solved if name.startswith(first)]
    for name in names:
        found = [solved.get(f"{batch}/only_{name}") for batch in batches]
        yield [f"with {name} alone", *(f"{one['value']:,.1f}" if one else "–" for one in found)]


#: The waterfall's rows of PyTorch, and the race's names for them.
PYTORCH_ROWS = {
    "PyTorch, eager, fp32": "pytorch/eager_fp32",
    "… as one graph": "pytorch/graph_fp32",
    "… in TF32": "pytorch/graph_tf32",
    "… compiled": "pytorch/graph_compile_tf32",
    "… in bf16, channels last": "pytorch/graph_compile_bf16_channels_last",
    "… autotuned": "pytorch/graph_max_autotune_bf16_channels_last",
}
COPIED_BESIDE = "ours: batch copied beside"
PLAIN_ROW, FUSED_ROW = "ours: naive, a kernel per layer", "ours: ordinary units fp32"


def waterfall_rows() -> dict[str, float]:
    """{what changed: microseconds a step at batch 64}, from PyTorch's slowest to our last."""
    entries, ladder = race(), recorded("mnist/waterfall/")
    wanted = dict(PYTORCH_ROWS)
    if not ladder:
        names = (name.removeprefix("64/") for name in entries)
        wanted["ours"] = fastest_of_ours(set(names))
    rows = {}
    for row, rival in wanted.items():
        if f"64/{rival}" in entries:
            rows[row] = entries[f"64/{rival}"]["value"]
    naive = recorded("mnist/naive/").get("step_64")
    if naive and ladder:
        rows[PLAIN_ROW] = naive["value"]
    for name in sorted(ladder, key=lambda name: int(name.split("_")[0])):
        idea = name.split("_", 1)[1].replace("_", " ")
        rows[f"ours: {idea}"] = ladder[name]["value"]
    return rows


def last_rows(rows: Mapping[str, float]) -> dict[str, float]:
    """PyTorch's best, and behind it our rows that take less than twice as long. rows: of
    `waterfall_rows`.
    """
    ours = {row: time_us for row, time_us in rows.items() if row.startswith("ours")}
    theirs = [time_us for row, time_us in rows.items() if row not in ours]
    if not theirs:
        return ours
    best = min(theirs)
    near = {row: time_us for row, time_us in ours.items() if time_us < 2 * best}
    return {"PyTorch's best": best, **near}


#: An ablation's bar that is this many times the next one would leave no room for the others.
CUT = 3
A_PERCENT = 0.01  # a smaller spread is not written behind its bar


def ablation():
    """How much longer the finished step takes with one idea less, at each batch size.

    What is missed most at the smallest batch stands first. A bar that is more than CUT times as
    long as all others is cut at the edge.
    """
    entries = recorded("mnist/ablation/")
    if not entries:
        return nothing("The finished step with one idea less")
    longer = _longer_without(entries)
    batches = sorted(longer)
    ideas = sorted(longer[batches[0]], key=lambda idea: -longer[batches[0]][idea][0])
    said = "; ".join(
        f"batch {batch:,}: " + ", ".join(f"{idea} {longer[batch][idea][0]:+,.0%}" for idea in ideas)
        for batch in batches
    )
    alt = f"How much longer the finished step takes without one of its ideas. {said}."
    fig, all_axes = _side_by_side(len(batches), 1.0 + 0.27 * len(ideas), alt)
    for axes, batch in zip(all_axes, batches, strict=True):
        _missed(axes, [longer[batch][idea] for idea in ideas])
        plain(axes, f"batch {batch:,}")
        axes.spines["bottom"].set_visible(False)
    labels = [f"without {idea}" for idea in ideas]
    all_axes[0].set_yticks(range(len(ideas)), labels, fontsize=9.5)
    fig.supxlabel(f"how much longer a step takes · {origin(entries)}", fontsize=9.5, color=INK)
    return fig


def saved() -> Table:
    """Microseconds that each idea saves at batch 64: when it was added, and now.

    The first is a step of the waterfall, the second what the finished step takes longer without it.
    """
    ladder, without = recorded("mnist/waterfall/"), recorded("mnist/ablation/64/")
    names = sorted(ladder, key=lambda name: int(name.split("_")[0]))
    rows = []
    for before, name in pairwise(names):
        idea = name.split("_", 1)[1]
        key = idea.removesuffix("_tf32")
        if key in without:
            added = ladder[before]["value"] - ladder[name]["value"]
            now = without[key]["value"] - without["nothing"]["value"]
            rows.append([key.replace("_", " "), f"{added:.1f}", f"{now:.1f}"])
    head = ["µs saved at batch 64", "when it was added", "in the finished step"]
    return Table(head, rows, f"added: {origin(ladder)}; in the finished step: {origin(without)}")


def _longer_without(entries):
    """{batch: {idea: (how much longer the step takes without it, spread)}}, as shares."""
    longer = {}
    for name, entry in entries.items():
        batch, _, idea = name.partition("/")
        whole = entries[f"{batch}/nothing"]["value"]
        if idea != "nothing":
            share = entry["value"] / whole - 1, entry["spread"] / whole
            longer.setdefault(int(batch), {})[idea.replace("_", " ")] = share
    return longer


def _missed(axes, shares):
    """A bar for each (share, spread), with its spread; one of them may end at the edge."""
    *_, second, first = sorted(share for share, _ in shares)
    edge = first if first < CUT * second else 1.4 * second
    for row, (share, spread) in enumerate(shares):
        text = f"{share:+,.0%}"
        if share > edge:
            axes.barh(row, edge, color=ACCENT, height=0.62)
            word(axes, 0.93 * edge, row, "//", fontsize=16, color="white", weight="bold")
            end = edge
        else:
            axes.barh(row, share, xerr=spread, color=ACCENT, height=0.62, ecolor=INK)
            text += f" ± {spread:.0%}" if spread >= A_PERCENT else ""
            end = share + spread
        word(axes, end + 0.03 * edge, row, text, ha="left", fontsize=9.5)
    axes.set(xlim=(0, 1.35 * edge), xticks=[], yticks=[])
    axes.invert_yaxis()


def fused_alone():
    """Bars at batch 64: PyTorch's best mode, our plain step, and ours when it is fused only.

    The fused one is the finished trainer without its tensor cores, whose instruction it imitates.
    """
    rows = waterfall_rows()
    theirs = [time_us for row, time_us in rows.items() if not row.startswith("ours")]
    named = {"ours, plain": PLAIN_ROW, "ours, fused, tensor cores imitated": FUSED_ROW}
    steps = {name: rows[row] for name, row in named.items() if row in rows}
    if theirs and steps:
        steps["PyTorch's best"] = min(theirs)
    what = "one step at batch 64"
    return bars(steps, title=f"{what} · {waterfall_origin()}", what=what, share=False)


def waterfall_origin() -> str:
    """Whose the waterfall's times are."""
    return origin(recorded("mnist/waterfall/") or race())


def kernels_total(prefix: str, leave_out: Sequence[str] = ()) -> float:
    """Sum of recorded kernel times, in µs."""
    total = 0.0
    for name, entry in recorded(prefix).items():
        if entry["unit"] == "µs" and name not in leave_out:
            total += entry["value"]
    return total


def eager_kernels() -> tuple[int, float]:
    """How many kernels an eager step of PyTorch in fp32 has at batch 64, and their µs together."""
    profile = "mnist/profile/64/eager_fp32/"
    launches = recorded(profile).get("launches", {"value": 0})
    return int(launches["value"]), kernels_total(profile)


def predictions(rows: Mapping[str, float]) -> dict[str, float]:
    """What three rows of the waterfall should take, by the times of single kernels.

    A graph leaves the kernels and nothing between them; a batch that is copied beside takes no time
    of its own.
    """
    beside = ("copy_of_the_batch", "patch_moments")
    ours = kernels_total("mnist/kernel/64/")
    without_copy = kernels_total("mnist/kernel/64/", beside)
    predicted = {
        "… as one graph": kernels_total("mnist/profile/64/eager_fp32/"),
        "ours: one graph": without_copy,
    }
    names = list(rows)
    if COPIED_BESIDE in names:
        before = names[names.index(COPIED_BESIDE) - 1]
        predicted[COPIED_BESIDE] = rows[before] - ours + without_copy
    return {row: value for row, value in predicted.items() if value > 0}


#: Who is in the gate's table.
GATE = {
    "pytorch": "PyTorch, fp32",
    "pytorch_bf16": "PyTorch, bf16",
    "ours": "ours, bf16",
    "solved": "ours, bf16, with the exercises' solutions",
    "ours_tf32": "ours, TF32",
    "pytorch_fp16": "PyTorch, fp16",
    "ours_fp16": "ours, fp16",
}


def gate_table(level: str = "") -> Table:
    """Test accuracy after ten epochs, mean over five seeds. level: as `recorded` has it."""
    gate = recorded("mnist/accuracy/", level)
    if gate and not level:
        solved = recorded("mnist/yours/", gpu=next(iter(gate.values()))["gpu"])
        gate |= {"solved": solved["accuracy"]} if "accuracy" in solved else {}
    rows = []
    for name, label in GATE.items():
        if name in gate:
            entry = gate[name]
            rows.append([label, f"{entry['value']:.2%}", f"{entry['spread']:.2%}"])
    head = ["after 10 epochs at batch 256", "accuracy", "deviation between seeds"]
    return Table(head, rows, origin(gate))


def program_bars():
    """Seconds of whole programs, from the command to the prompt."""
    programs = recorded("mnist/time_to_98.5/")
    seconds = {}
    for name, entry in programs.items():
        label = name.replace("pytorch/", "PyTorch ").replace("_", " ")
        seconds[label] = entry["value"]
    return bars(
        seconds,
        title=origin(programs),
        what="seconds to 98.5 %",
        unit="s",
        share=False,
        axis="seconds, from the command to the prompt",
        digits=2,
    )


PARAMETERS = 421_738  # the network's weights
#: Bytes of an update, for any batch: weight and gradient are read, the weight and its copy written
UPDATED = PARAMETERS * (4 + 4 + 4 + 2)


#: How often each of our kernels does a layer's forward arithmetic, or as much: a gradient of the
#: weights or of the inputs, and where conv1 is computed again, that too.
LAYERS_OF = {
    "patch_moments": {},
    "conv_forward": {"conv1": 1, "conv2": 1},
    "fc1_forward": {"fc1": 1},
    "head": {"fc2": 3},
    "fc1_backward": {"fc1": 2},
    "conv_backward_input": {"conv1": 2, "conv2": 1},
    "conv_backward_weights": {"conv1": 1, "conv2": 1},
    "update": {},
}
MOMENTS = 14 * 14 * 16 * 17 * 2  # FLOP for a digit: products and sums of a window's pixels


def limits_of(forward: Mapping[str, float], batch: int) -> dict[str, tuple[float, float]]:
    """{kernel: (µs of its arithmetic alone, of its bytes alone)}.

    forward: FLOP of each layer's forward pass, for a digit. Bytes are those that the map shows;
    weights and sums over the batch count in the update.
    """
    bandwidth, rate, _ = limits()
    moved = {name: batch * (read + written) for name, *_, read, written in KERNELS}
    moved["update"] = UPDATED
    both = {}
    for name, layers in LAYERS_OF.items():
        flops = sum(forward[layer] * times for layer, times in layers.items())
        if name == "patch_moments":
            flops = MOMENTS
        both[name] = batch * flops / rate * 1e6, moved[name] / bandwidth * 1e6
    return both


def limits_table(forward: Mapping[str, float], batch: int = 4096) -> Table:
    """Our kernels' recorded times beside their two limits. forward: as `limits_of` takes it."""
    measured = recorded(f"mnist/kernel/{batch}/")
    rows = []
    for name, (arithmetic, memory) in limits_of(forward, batch).items():
        row = [name, f"{arithmetic:.1f}", f"{memory:.1f}"]
        if name in measured:
            time = measured[name]["value"]
            row += [f"{time:.1f}", f"{max(arithmetic, memory) / time:.0%}"]
        else:
            row += ["–", "–"]
        rows.append(row)
    head = [f"µs at batch {batch:,}", "arithmetic alone", "bytes alone", "measured"]
    note = f"limits: {limits()[2]}; times: {origin(measured)}"
    return Table([*head, "share of its limit"], rows, note)


def beside_limits(forward: Mapping[str, float], batch: int = 64):
    """A bar for each of our kernels, and in it the larger of its two limits.

    forward: as `limits_of` takes it. Where no limits are known, the bars alone.
    """
    measured = recorded(f"mnist/kernel/{batch}/")
    bounds = {name: max(both) for name, both in limits_of(forward, batch).items()}
    times = {name: measured[name]["value"] for name in bounds if name in measured}
    if not times:
        return nothing("Our kernels beside their limits")
    times = dict(sorted(times.items(), key=lambda item: -item[1]))
    known = not math.isnan(sum(bounds.values()))
    words = [
        f"{time:.1f} µs" + (f", limit {bounds[name]:.1f}" if known else "")
        for name, time in times.items()
    ]
    together = f"together {sum(times.values()):.0f} µs"
    if known:
        together += f", their limits {sum(bounds[name] for name in times):.0f} µs"
    said = "; ".join(f"{name} {word}" for name, word in zip(times, words, strict=True))
    alt = f"The eight kernels at batch {batch:,}: {said}. {together.capitalize()}."
    fig, axes = chart(8, 1.0 + 0.3 * len(times), alt=alt)
    longest = max(times.values())
    for row, (name, time) in enumerate(times.items()):
        axes.barh(row, time, color=BLOCK_COLOURS[0], height=0.65)
        if known:
            axes.barh(row, bounds[name], color=ALARM, height=0.65)
        word(axes, time + GAP * longest, row, f" {words[row]}", ha="left")
    axes.set_yticks(range(len(times)), [name.replace("_", " ") for name in times])
    axes.set_xlim(0, 1.3 * longest)
    axes.invert_yaxis()
    axes.set_xlabel(f"µs at batch {batch:,} · {together}", fontsize=9)
    plain(axes, origin({name: measured[name] for name in times}))
    return fig


# ---- launched one by one, and as a graph

ROW, SCALE_WIDTH = 34, 620  # pixels: a row of the queue, the time axis


def queues(kernels: int, kernel_us: float, launch_us: float):
    """Host and GPU in time: each kernel launched by itself, and all of them as one graph.

    A kernel starts when it has been launched and the one before it is done. The graph's one launch
    is drawn as long as a kernel's.
    """
    plans = {
        "launched one by one": _starts(kernels, kernel_us, launch_us),
        "one graph": [launch_us + kernel_us * kernel for kernel in range(kernels)],
    }
    ends = {name: starts[-1] + kernel_us for name, starts in plans.items()}
    said = "; ".join(f"{name}: done after {end:g} µs" for name, end in ends.items())
    alt = f"{kernels} kernels of {kernel_us:g} µs, {launch_us:g} µs to launch one. {said}."
    sheet = Drawing(700, 4 * ROW + 70, alt=alt)
    scale = SCALE_WIDTH / max(ends.values())
    for number, (name, starts) in enumerate(plans.items()):
        top = number * (2 * ROW + 40)
        words = f"{name}: done after {ends[name]:g} µs"
        sheet.heading(0, top + 10, words, size=14)
        for row, who in enumerate(("host", "GPU")):
            y = top + 26 + ROW * row
            sheet.text_from(0, y + 13, who)
            sheet.box(50, y, SCALE_WIDTH, 26, fill=FAINT)
        for kernel, start in enumerate(starts):
            fill = BLOCK_COLOURS[kernel % len(BLOCK_COLOURS)]
            if number == 0 or kernel == 0:  # a graph is launched once
                left = 50 + scale * launch_us * kernel
                sheet.box(left, top + 26, scale * launch_us - 2, 26, fill=fill, rx=2)
            left = 50 + scale * start
            sheet.box(left, top + 26 + ROW, scale * kernel_us - 2, 26, fill=fill, rx=2)
    return sheet


def _starts(kernels, kernel_us, launch_us):
    """When each kernel of a queue starts, in microseconds."""
    starts, done = [], 0.0
    for kernel in range(1, kernels + 1):
        starts.append(max(kernel * launch_us, done))
        done = starts[-1] + kernel_us
    return starts


# ---- a pooling window, there and back

WINDOW = np.array([1, 4, -2, 3])  # four outputs of a convolution, in one channel
SHIFT, ARRIVES = -1, 10  # batch norm's shift; the gradient of what pooling keeps
SIDE, STAGE = 48, 172  # pixels of the picture: a square, and from one array to the next
ROW_OF_ARRAYS = 2 * SIDE + 62


def there_and_back(scale: int):
    """A window through batch norm, ReLU and pooling, and below it the gradient that comes back.

    The number that pooling takes stands out, unless ReLU made 0 of it.
    """
    normed = scale * WINDOW + SHIFT
    positive = np.maximum(normed, 0)
    taken = (np.arange(4) == np.argmax(normed)) & (normed > 0)
    gets = f"the {WINDOW[taken][0]}" if taken.any() else "none of them"
    alt = (
        f"With a scale of {scale} the four outputs {', '.join(map(str, WINDOW))} become"
        f" {', '.join(map(str, normed))}. The gradient {ARRIVES} comes back to {gets}."
    )
    sheet = Drawing(3 * STAGE + 2 * SIDE + 70, 2 * ROW_OF_ARRAYS, alt=alt)
    pooled = ARRIVES * (np.arange(4) == np.argmax(normed))
    there = {"y": WINDOW, f"{scale} · y - {-SHIFT}": normed, "ReLU": positive}
    back = {"dz": ARRIVES * taken, "through pooling": pooled}
    rows = (there | {"the largest": [positive.max()]}, back | {"dp": [ARRIVES]})
    for row, arrays in enumerate(rows):
        top = row * ROW_OF_ARRAYS + 30
        for stage, (name, numbers) in enumerate(arrays.items(), start=row):
            sheet.heading(stage * STAGE, top - 18, name, size=15)
            _window(sheet, stage * STAGE, top, numbers, taken)
            if stage > row:
                ends = stage * STAGE - STAGE + 2 * SIDE + 10, stage * STAGE - 10
                start, end = ends[::-1] if row else ends
                sheet.arrow(start, top + SIDE, end, top + SIDE, colour=strong(ACCENT), thick=2)
    return sheet


def _window(sheet, left, top, numbers, taken):
    """Two by two numbers, or a single one in their middle."""
    places = [(left + SIDE * (k % 2), top + SIDE * (k // 2)) for k in range(4)]
    if len(numbers) == 1:
        places = [(left + SIDE / 2, top + SIDE / 2)]
        taken = [taken.any()]
    for (x, y), number, stands_out in zip(places, numbers, taken, strict=True):
        sheet.cells([(x, y)], SIDE - 2, fill=BLOCK_COLOURS[4 if stands_out else 0])
        sheet.text(x + SIDE / 2 - 1, y + SIDE / 2 - 1, number, size=18, colour=ON_COLOUR)


# ---- four outputs of one window

SQUARE, BETWEEN = 36, 26  # pixels of the picture: a square, and between two outputs


def window_taps():
    """The 3 × 3 taps of a pooling window's four outputs, on the 4 × 4 pixels that they share."""
    places = list(np.ndindex(2, 2))
    said = ", ".join(f"{down} down and {right} to the right" for down, right in places)
    apart = 4 * SQUARE + BETWEEN
    alt = (
        "The four outputs of a pooling window on the same 4 × 4 pixels: each has nine taps, moved"
        f" {said}; where it has none, its weight is 0."
    )
    sheet = Drawing(4 * apart - BETWEEN, 4 * SQUARE + 26, alt=alt)
    for number, (down, right) in enumerate(places):
        pixels = np.full((4, 4), -1)
        pixels[down : down + TAPS, right : right + TAPS] = np.arange(1, 10).reshape(TAPS, TAPS)
        sheet.text(number * apart + 2 * SQUARE, 9, f"output {number}", size=16)
        numbered(sheet, number * apart, 26, SQUARE, pixels, 5)
    return sheet


# ---- a convolution as a matrix product

PIXEL, TAP = 26, 18  # pixels of the picture: one of the image, one of the matrix
TAPS = 3  # a side of the window


def im2col(side: int, pixel: int):
    """A small image and the matrix of its 3 × 3 windows: a row for each output pixel.

    pixel: the number of the image's pixel whose copies are marked.
    """
    numbers = np.pad(np.arange(side * side).reshape(side, side), 1, constant_values=-1)
    windows = np.lib.stride_tricks.sliding_window_view(numbers, (TAPS, TAPS))
    matrix = windows.reshape(side * side, TAPS * TAPS)
    copies = int((matrix == pixel).sum())
    alt = (
        f"An image of {side} × {side} pixels; its matrix has {len(matrix)} rows of {TAPS * TAPS} "
        f"taps. Pixel {pixel} stands in it {copies} times, the border as zeros."
    )
    left = PIXEL * (side + 2) + 150
    width = left + TAP * TAPS * TAPS + 190
    sheet = Drawing(width, TAP * len(matrix) + 40, alt=alt)
    sheet.heading(0, 10, "image and border")
    numbered(sheet, 0, 30, PIXEL, numbers, pixel)
    sheet.heading(left, 10, "matrix")
    numbered(sheet, left, 26, TAP, matrix, pixel)
    middle = 30 + PIXEL * (side + 2) / 2
    sheet.arrow(PIXEL * (side + 2) + 12, middle, left - 12, middle, colour=strong(ACCENT), thick=2)
    right = left + TAP * TAPS * TAPS + 12
    for line, words in enumerate(("a row: a window", f"pixel {pixel}: {copies} copies")):
        sheet.text_from(right, middle - 12 + 24 * line, words)
    return sheet
