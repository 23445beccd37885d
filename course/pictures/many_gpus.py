"""Pictures of the chapter on many GPUs: schedules as they run, the model's curves, and records."""

import re

import numpy as np

from course.kernels.many_gpus import model
from course.kernels.many_gpus import schedule as schedules
from utils import results
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, figure

SMALL = 8  # size of letters
RECORDED = "many_gpus/all_reduce"
OF_SCHEDULES = ("naive", "tree", "ring", "two_shot", "one_shot")
WHAT_COLOURS = dict(
    zip(OF_SCHEDULES, ("#777777", "#D55E00", ACCENT, "#009E73", "#CC79A7"), strict=True)
)


# ---- schedules


def contributions(schedule) -> list[np.ndarray]:
    """Before the first step and after each one: whose numbers are in rank r's part p.

    Each entry is an array [ranks, parts] of numbers of ranks whose contributions the part holds.
    """
    n, parts = schedule.ranks, schedule.parts
    held = [[{rank} for _ in range(parts)] for rank in range(n)]
    states = [_counts(held)]
    for step in schedule.steps:
        sent = [(send, set(held[send.source][send.part])) for send in step]
        for send, content in sent:
            before = held[send.target][send.part]
            held[send.target][send.part] = before | content if send.adds else content
        states.append(_counts(held))
    return states


def _counts(held):
    return np.array([[len(part) for part in rank] for rank in held])


def steps(schedule, title: str):
    """How the sums grow: a square for each rank and part, with how many ranks' numbers it holds."""
    states = contributions(schedule)
    n, parts = schedule.ranks, schedule.parts
    whole = "blue: complete"
    alt = f"{title}: {len(states) - 1} steps of {n} ranks; each part with its number of summands"
    fig = figure(min(9.0, 1.4 * len(states)), 0.35 * n + 0.9, alt=alt)
    axes = fig.subplots(1, len(states), squeeze=False)[0]
    for number, (axis, state) in enumerate(zip(axes, states, strict=True)):
        for (rank, part), count in np.ndenumerate(state):
            colour = BLOCK_COLOURS[0] if count == n else IDLE
            axis.add_patch(_box(part, rank, colour))
            axis.text(
                part + 0.5,
                rank + 0.5,
                str(count),
                ha="center",
                va="center",
                size=SMALL,
            )
        axis.set(
            xlim=(0, parts),
            ylim=(n, 0),
            aspect="equal",
            xticks=[],
        )
        names = [f"rank {rank}" for rank in range(n)] if number == 0 else []
        axis.set_yticks(np.arange(len(names)) + 0.5, names, size=SMALL)
        axis.tick_params(length=0)
        axis.set_title("start" if number == 0 else f"step {number}", size=SMALL + 1)
        for side in axis.spines.values():
            side.set_visible(False)
    fig.suptitle(f"{title} ({whole})", size=10)
    return fig


def _box(x, y, colour):
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), 1, 1, facecolor=colour, edgecolor="white")


# ---- the model


def model_curves(ranks: int):
    """Seconds of every schedule over the message's bytes: launch + steps * trip + bytes / beta."""
    launch, trip, beta, whose = link()
    sizes = 2.0 ** np.arange(3, 31)
    alt = f"time of five all-reduces of {ranks} ranks over the bytes of the message, both in powers"
    fig = figure(7, 3.4, alt=alt)
    axes = fig.subplots()
    for name in OF_SCHEDULES:
        made = schedules.SCHEDULES[name](ranks)
        times = [schedules.seconds(made, bytes, trip, beta, launch) * 1e6 for bytes in sizes]
        axes.plot(
            sizes,
            times,
            label=name.replace("_", " "),
            color=WHAT_COLOURS[name],
        )
    axes.legend(frameon=False)
    return _over_bytes(fig, axes, f"{ranks} ranks, by the model ({whose})", "µs")


def fits():
    """The times of each algorithm on two GPUs, and the line alpha + sent / beta fitted to them."""
    names = [n for n in ("one_shot", "two_shot", "push") if recorded(f"best/{n}", 2)]
    if not names:
        return "nothing is recorded yet"
    whose = source_of(f"{RECORDED}/8/best/one_shot")
    alt = f"measured times of {', '.join(names)} over the bytes, and the fitted lines ({whose})"
    fig = figure(7, 3.4, alt=alt)
    axes = fig.subplots()
    for name, colour in zip(names, (WHAT_COLOURS["one_shot"], ACCENT, ALARM), strict=False):
        times = recorded(f"best/{name}", 2)
        axes.plot(list(times), [t * 1e6 for t in times.values()], "o", color=colour)
        sizes = np.geomspace(min(times), max(times), 60)
        alpha, beta = fitted(name)
        line = (alpha + model.sent(name, 1.0, 2) * sizes / beta) * 1e6
        text = f"{name.replace('_', ' ')}: α = {alpha * 1e6:.1f} µs, β = {beta / 1e9:.0f} GB/s"
        axes.plot(sizes, line, color=colour, label=text)
    axes.legend(frameon=False)
    return _over_bytes(fig, axes, f"points measured, lines fitted ({whose})", "µs")


def fitted(algorithm: str) -> tuple[float, float]:
    """alpha (seconds) and beta (bytes a second) of an algorithm on two GPUs."""
    alpha, beta = (results.find(f"many_gpus/model/{algorithm}/{c}") for c in ("alpha", "beta"))
    return alpha["value"], beta["value"]


def _over_bytes(fig, axes, title, label):
    axes.set(
        xscale="log",
        yscale="log",
        title=title,
        ylabel=label,
        xlabel="bytes of the message",
    )
    marks = {
        8: "8 B",
        1 << 10: "1 KB",
        1 << 20: "1 MB",
        1 << 30: "1 GB",
    }
    axes.set_xticks(list(marks), list(marks.values()))
    axes.minorticks_off()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return fig


# ---- records


def largest() -> int:
    """The most GPUs of which there is a recording; 2 where there is none."""
    pattern = re.compile(r"many_gpus/(\d+)/all_reduce/\d+/ours/call")
    numbers = [pattern.fullmatch(entry["name"]) for entry in results.load()]
    return max((int(match[1]) for match in numbers if match), default=2)


def prefix(ranks: int) -> str:
    """What a recording's names begin with."""
    return "many_gpus" if ranks == 2 else f"many_gpus/{ranks}"


def recorded(what: str, ranks: int | None = None) -> dict[int, float]:
    """{bytes: value} of the results all_reduce/<bytes>/<what> of so many GPUs (default: most)."""
    before = prefix(ranks or largest())
    pattern = re.compile(rf"{before}/all_reduce/(\d+)/{re.escape(what)}")
    found = {}
    for entry in results.load():
        match = pattern.fullmatch(entry["name"])
        if match:
            found[int(match[1])] = entry["value"]
    return dict(sorted(found.items()))


def source_of(name: str) -> str:
    """Which GPU a recorded result is of, and when it was measured."""
    entry = results.find(name)
    return f"{entry['gpu']}, {entry['date'][:10]}" if entry else "nothing is recorded yet"


def link() -> tuple[float, float, float, str]:
    """launch, trip (seconds), beta (bytes a second) of a recording of two GPUs, and whose they are.

    alpha of one shot is a launch and one trip; a trip is half of a word's way there and back.
    """
    names = "model/one_shot/alpha", "peer_copy/latency/0_1", "model/push/beta"
    alpha, trip, beta = (results.find(f"many_gpus/{name}") for name in names)
    if alpha and trip and beta:
        whose = f"fitted to two of {source_of('many_gpus/model/push/beta')}"
        return alpha["value"] - trip["value"], trip["value"], beta["value"], whose
    return 2e-6, 1e-6, 350e9, "assumed: nothing is recorded yet"


def race():
    """Ours and NCCL's all-reduce over the bytes: time of a call."""
    ours, nccl = recorded("ours/call"), recorded("nccl/call")
    if not ours or not nccl:
        return "nothing is recorded yet"
    gpus = largest()
    whose = f"{gpus} of {source_of(f'{prefix(gpus)}/all_reduce/{min(ours)}/ours/call')}"
    alt = f"time of an all-reduce of {gpus} GPUs over the bytes, ours and NCCL's ({whose})"
    fig = figure(7, 3.4, alt=alt)
    axes = fig.subplots()
    for name, times, colour in (("ours", ours, ACCENT), ("NCCL", nccl, ALARM)):
        values = [seconds * 1e6 for seconds in times.values()]
        axes.plot(
            list(times),
            values,
            "o-",
            label=name,
            color=colour,
        )
    axes.legend(frameon=False)
    return _over_bytes(fig, axes, f"a call from Python ({whose})", "µs")


def times_table() -> str:
    """Recorded times of a call, with the choice's share of NCCL's time, as lines of text."""
    ours, nccl = recorded("ours/call"), recorded("nccl/call")
    lines = [f"{'bytes':>14} {'ours':>10} {'NCCL':>10} {'NCCL / ours':>12}"]
    for bytes in ours:
        if bytes in nccl:
            pair = f"{ours[bytes] * 1e6:8.1f} µs {nccl[bytes] * 1e6:7.1f} µs"
            lines.append(f"{bytes:14,} {pair} {nccl[bytes] / ours[bytes]:11.2f}×")
    return "\n".join(lines) if len(lines) > 1 else "nothing is recorded yet"


def predictions(ranks: int) -> str:
    """What the model of two GPUs said of more of them, beside what was measured there."""
    said, measured = recorded("predicted", ranks), recorded("ours/graph", ranks)
    lines = [f"{'bytes':>14} {'predicted':>12} {'measured':>12}"]
    for bytes in (8, 1 << 16, 1 << 18, 1 << 20, 1 << 24, 1 << 26, 1 << 30):
        if bytes not in said:
            continue
        there = "not yet"
        if bytes in measured:
            ratio = measured[bytes] / said[bytes]
            there = f"{measured[bytes] * 1e6:9.1f} µs  {ratio:5.2f}×"
        lines.append(f"{bytes:14,} {said[bytes] * 1e6:9.1f} µs {there:>12}")
    return "\n".join(lines)


def matrix():
    """Bandwidth of a peer copy between each two GPUs, of the largest recording."""
    gpus = largest()
    way = "kernel_push" if results.find(f"{prefix(gpus)}/peer_copy/kernel_push/0_1") else "push"
    speeds = np.full((gpus, gpus), np.nan)
    for a, b in np.ndindex(gpus, gpus):
        entry = results.find(f"{prefix(gpus)}/peer_copy/{way}/{a}_{b}")
        if entry and a != b:
            speeds[a, b] = entry["value"] / 1e9
    if np.isnan(speeds).all():
        return "nothing is recorded yet"
    whose = source_of(f"{prefix(gpus)}/peer_copy/{way}/0_1")
    least, most = np.nanmin(speeds), np.nanmax(speeds)
    alt = f"GB/s of copies from each of {gpus} GPUs to each other: {least:.0f} to {most:.0f}"
    fig = figure(1.6 + 0.5 * gpus, 1.1 + 0.4 * gpus, alt=f"{alt} ({whose})")
    axes = fig.subplots()
    for (a, b), speed in np.ndenumerate(speeds):
        colour = IDLE if np.isnan(speed) else BLOCK_COLOURS[0]
        axes.add_patch(_box(b, a, colour))
        text = "" if np.isnan(speed) else f"{speed:.0f}"
        axes.text(
            b + 0.5,
            a + 0.5,
            text,
            ha="center",
            va="center",
            size=SMALL,
        )
    axes.set(
        xlim=(0, gpus),
        ylim=(gpus, 0),
        xlabel="to GPU",
        ylabel="from GPU",
    )
    axes.set_xticks(np.arange(gpus) + 0.5, range(gpus))
    axes.set_yticks(np.arange(gpus) + 0.5, range(gpus))
    return _bare(axes, "GB/s of a copy", fig)


def _bare(axes, title, fig):
    axes.tick_params(length=0)
    axes.set_title(title, size=SMALL + 1, color=INK)
    for side in axes.spines.values():
        side.set_visible(False)
    return fig


def scaling(batch: int = 4096):
    """Recorded and predicted scaling of training over the number of GPUs."""
    measured = {1: 1.0}
    names = {n: f"{prefix(n)}/ddp/{batch}/scaling" for n in (2, 4, 8)}
    predicted = {}
    for n, name in names.items():
        entry, guess = results.find(name), results.find(f"{name}/predicted")
        if entry:
            measured[n] = entry["value"]
        if guess:
            predicted[n] = guess["value"]
    whose = source_of(names[2])
    alt = f"training on 1 to 8 GPUs beside one, measured {measured}, predicted {predicted}"
    fig = figure(5, 3, alt=alt)
    axes = fig.subplots()
    axes.plot(
        [1, 8],
        [1, 8],
        color=IDLE,
        zorder=0,
    )
    axes.plot(
        list(measured),
        list(measured.values()),
        "o-",
        color=ACCENT,
        label="measured",
    )
    strong = {n: results.find(f"{prefix(n)}/ddp/{batch}/strong_scaling") for n in names}
    strong = {
        1: 1.0,
        **{n: entry["value"] for n, entry in strong.items() if entry},
    }
    label = f"measured, {batch:,} digits in all"
    axes.plot(
        list(strong),
        list(strong.values()),
        "s:",
        color=ACCENT,
        label=label,
    )
    if predicted:
        axes.plot(
            list(predicted),
            list(predicted.values()),
            "D",
            color=ALARM,
            label="predicted",
        )
    axes.set(xlabel="GPUs", ylabel="times one GPU", title=f"{batch:,} digits a GPU ({whose})")
    axes.set_xticks([1, 2, 4, 8])
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return fig


# ---- what ran beside what


def overlap(log: list[dict], backward: float):
    """Buckets of gradients as they travelled beside the backward pass (cuts.buckets)."""
    end = max([backward, *(entry["done"] for entry in log)]) * 1e3
    alt = f"{len(log)} buckets of gradients, each on its way as the backward pass goes on"
    fig = figure(7, 0.35 * len(log) + 1.1, alt=alt)
    axes = fig.subplots()
    axes.barh(0, backward * 1e3, color=BLOCK_COLOURS[0], edgecolor="white")
    names = ["backward pass"]
    for number, entry in enumerate(log, start=1):
        start, done = entry["ready"] * 1e3, entry["done"] * 1e3
        axes.barh(
            number,
            done - start,
            left=start,
            color=BLOCK_COLOURS[1],
            edgecolor="white",
        )
        names.append(f"{entry['bytes'] / 1e3:,.0f} KB")
    axes.set_yticks(range(len(names)), names, size=SMALL)
    axes.set(
        xlim=(0, end),
        ylim=(len(names) - 0.5, -0.5),
        xlabel="ms",
    )
    return _bare(axes, "the buckets start as their gradients are complete", fig)


def pipeline(log: list[tuple]):
    """Who worked in which turn: [(stage, "forward" or "back", micro-batch, turn)] (cuts.Pipe)."""
    stages = max(stage for stage, *_ in log) + 1
    length = max(turn for *_, turn in log) + 1
    idle = bubble(log)
    batches = len({batch for _, _, batch, _ in log})
    alt = f"{stages} stages, {batches} micro-batches forward and back; {idle:.0%} of the turns idle"
    fig = figure(8, 0.35 * stages + 0.9, alt=alt)
    axes = fig.subplots()
    colours = {
        "forward": BLOCK_COLOURS[0],
        "back": BLOCK_COLOURS[2],
    }
    for stage, what, batch, turn in log:
        axes.add_patch(_box(turn, stage, colours[what]))
        axes.text(
            turn + 0.5,
            stage + 0.5,
            str(batch),
            ha="center",
            va="center",
            size=SMALL,
        )
    axes.set(
        xlim=(0, length),
        ylim=(stages, 0),
        xticks=[],
    )
    axes.set_yticks(np.arange(stages) + 0.5, [f"rank {s}" for s in range(stages)], size=SMALL)
    return _bare(axes, f"{batches} micro-batches: {idle:.0%} of the turns are bubble", fig)


def bubble(log: list[tuple]) -> float:
    """The share of all stages' turns in which they did nothing."""
    stages = max(stage for stage, *_ in log) + 1
    length = max(turn for *_, turn in log) + 1
    return 1 - len(log) / (stages * length)
