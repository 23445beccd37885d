"""Pictures of the chapter on many GPUs: schedules as they run, the model's curves, and records."""

import re

import numpy as np

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
            axis.text(part + 0.5, rank + 0.5, str(count), ha="center", va="center", size=SMALL)
        axis.set(xlim=(0, parts), ylim=(n, 0), aspect="equal", xticks=[])
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


def model_curves(ranks: int, alpha: float, beta: float):
    """Seconds of every schedule over the message's bytes, by alpha + bytes / beta."""
    sizes = 2.0 ** np.arange(3, 31)
    alt = f"time of five all-reduces of {ranks} ranks over the bytes of the message, both in powers"
    fig = figure(7, 3.4, alt=alt)
    axes = fig.subplots()
    for name in OF_SCHEDULES:
        made = schedules.SCHEDULES[name](ranks)
        times = [schedules.seconds(made, bytes, alpha, beta) * 1e6 for bytes in sizes]
        axes.plot(sizes, times, label=name.replace("_", " "), color=WHAT_COLOURS[name])
    axes.legend(frameon=False)
    return _over_bytes(fig, axes, f"{ranks} ranks, by the model", "µs")


def _over_bytes(fig, axes, title, label):
    axes.set(xscale="log", yscale="log", title=title, ylabel=label, xlabel="bytes of the message")
    marks = {8: "8 B", 1 << 10: "1 KB", 1 << 20: "1 MB", 1 << 30: "1 GB"}
    axes.set_xticks(list(marks), list(marks.values()))
    axes.minorticks_off()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return fig


# ---- records


def recorded(what: str) -> dict[int, float]:
    """{bytes: value} of the recorded results many_gpus/all_reduce/<bytes>/<what>."""
    pattern = re.compile(rf"{RECORDED}/(\d+)/{re.escape(what)}")
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


def link() -> tuple[float, float, str]:
    """alpha (seconds) and beta (bytes a second) as fitted to a recording, and whose they are."""
    names = "many_gpus/model/one_shot/alpha", "many_gpus/model/push/beta"
    alpha, beta = map(results.find, names)
    if alpha and beta:
        return alpha["value"], beta["value"], f"fitted to two of {source_of(names[0])}"
    return 3e-6, 350e9, "assumed: nothing is recorded yet"


def race():
    """Ours and NCCL's all-reduce over the bytes: time of a call, and bandwidth of the long ones."""
    ours, nccl = recorded("ours/call"), recorded("nccl/call")
    if not ours or not nccl:
        return "nothing is recorded yet"
    whose = source_of(f"{RECORDED}/8/ours/call")
    alt = f"time of an all-reduce of two GPUs over the bytes, ours and NCCL's ({whose})"
    fig = figure(7, 3.4, alt=alt)
    axes = fig.subplots()
    for name, times, colour in (("ours", ours, ACCENT), ("NCCL", nccl, ALARM)):
        values = [seconds * 1e6 for seconds in times.values()]
        axes.plot(list(times), values, "o-", label=name, color=colour)
    axes.legend(frameon=False)
    return _over_bytes(fig, axes, f"a call from Python, two GPUs ({whose})", "µs")


def times_table() -> str:
    """Recorded times of a call, with the choice's share of NCCL's time, as lines of text."""
    ours, nccl = recorded("ours/call"), recorded("nccl/call")
    lines = [f"{'bytes':>14} {'ours':>10} {'NCCL':>10} {'NCCL / ours':>12}"]
    for bytes in ours:
        if bytes in nccl:
            pair = f"{ours[bytes] * 1e6:8.1f} µs {nccl[bytes] * 1e6:7.1f} µs"
            lines.append(f"{bytes:14,} {pair} {nccl[bytes] / ours[bytes]:11.2f}×")
    return "\n".join(lines) if len(lines) > 1 else "nothing is recorded yet"


def scaling(batch: int = 4096):
    """Recorded and predicted scaling of training over the number of GPUs."""
    measured = {1: 1.0}
    names = {2: f"many_gpus/ddp/{batch}/scaling"}
    names |= {n: f"many_gpus/{n}/ddp/{batch}/scaling" for n in (4, 8)}
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
    axes.plot([1, 8], [1, 8], color=IDLE, zorder=0)
    axes.plot(list(measured), list(measured.values()), "o-", color=ACCENT, label="measured")
    if predicted:
        axes.plot(list(predicted), list(predicted.values()), "D", color=ALARM, label="predicted")
    axes.set(xlabel="GPUs", ylabel="times one GPU", title=f"{batch:,} digits a GPU ({whose})")
    axes.set_xticks([1, 2, 4, 8])
    axes.legend(frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return fig


# ---- a pipeline


def pipeline(stages: int, batches: int):
    """Who works when: micro-batches go through the stages and back; what is empty is the bubble."""
    alt = f"{stages} GPUs, {batches} micro-batches forward and back; the rest of the time is idle"
    fig = figure(8, 0.35 * stages + 0.9, alt=alt)
    axes = fig.subplots()
    length = 2 * (batches + stages - 1)
    for stage in range(stages):
        for batch in range(batches):
            forward = stage + batch
            back = length - 1 - (stage + batch)
            for time, colour in ((forward, BLOCK_COLOURS[0]), (back, BLOCK_COLOURS[2])):
                axes.add_patch(_box(time, stage, colour))
                axes.text(time + 0.5, stage + 0.5, str(batch), ha="center", va="center", size=SMALL)
    idle = 1 - batches / (batches + stages - 1)
    axes.set(xlim=(0, length), ylim=(stages, 0), xticks=[])
    axes.set_yticks(np.arange(stages) + 0.5, [f"GPU {s}" for s in range(stages)], size=SMALL)
    axes.tick_params(length=0)
    axes.set_title(f"{batches} micro-batches: {idle:.0%} of the time is bubble", color=INK)
    for side in axes.spines.values():
        side.set_visible(False)
    return fig
