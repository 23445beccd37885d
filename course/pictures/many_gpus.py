"""Pictures of the chapter on many GPUs: schedules as they run, the model's curves, and records."""

import re

import numpy as np

from course.kernels.many_gpus import model
from course.kernels.many_gpus import schedule as schedules
from course.kernels.many_gpus.choices import VECTOR, Choice
from course.kernels.many_gpus.recording import largest
from course.pictures.shapes import box, plain, word
from utils import results
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, INK, chart, figure, svg
from utils.plots.svg import Drawing

SMALL = 8  # size of letters
RECORDED = "many_gpus/all_reduce"
BEST_MODE = "graph_max_autotune_bf16_channels_last"  # of PyTorch
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


# ---- a round table

NUMBER_WIDE, NUMBER_HIGH = 46, 34  # pixels of a number on a slip
LEFT, RIGHT, TOP, BOTTOM = 110, 610, 74, 252  # pixels: where the middles of slips lie
SEATS = ((LEFT, TOP), (RIGHT, TOP), (RIGHT, BOTTOM), (LEFT, BOTTOM))
ASIDE = 9  # pixels between an arrow there and one back
FEW = 4  # arrows that have room for what they carry


def table(schedule, step: int, title: str = "all-reduce"):
    """Four ranks at a table with a slip of four numbers each, after a step of a schedule.

    Arrows are the messages of that step, with what they carry where these are few. Of a later step
    than the last, the last is shown.
    """
    step = min(step, len(schedule.steps))
    before, after = slips(schedule, step - 1), slips(schedule, step)
    sends = schedule.steps[step - 1] if step else ()
    arrived = {(send.target, place) for send in sends for place in _places(schedule, send.part)}
    handled = sum(schedules.bytes_of_busiest(schedule, 1)[:step])
    said = f"slips that the busiest rank has handled: {handled:g}"
    alt = (
        f"{title}, after step {step} of {len(schedule.steps)}: {len(sends)} messages; {said}; "
        f"slips: {'; '.join(' '.join(map(str, slip)) for slip in after)}."
    )
    sheet = Drawing(720, 350, alt=alt)
    sheet.text(360, 14, f"{title}: step {step} of {len(schedule.steps)}", font_weight="bold")
    sheet.text(360, 334, said)
    for send in sends:
        carried = before[send.source][_places(schedule, send.part)]
        words = " ".join(map(str, carried)) if len(sends) <= FEW else ""
        _hand_over(sheet, SEATS[send.source], SEATS[send.target], words)
    complete = contributions(schedule)[step] == schedule.ranks
    for rank, (x, y) in enumerate(SEATS):
        above = y == TOP
        sheet.text(x, y - 29 if above else y + 29, f"rank {rank}", size=14)
        for place, number in enumerate(after[rank]):
            part = place * schedule.parts // len(after[rank])
            colour = BLOCK_COLOURS[0] if complete[rank, part] else svg.PAPER
            left = x + NUMBER_WIDE * (place - 2)
            _number(sheet, left, y, number, colour, (rank, place) in arrived)
    return sheet


def slips(schedule, step: int) -> list[np.ndarray]:
    """The four numbers of each rank after so many steps: at first 0 to 3, 10 to 13, and so on."""
    numbers = [np.arange(4) + 10 * rank for rank in range(schedule.ranks)]
    steps = schedule.steps[: max(step, 0)]
    schedules.run(schedules.Schedule(schedule.ranks, schedule.parts, steps), numbers)
    return numbers


def _places(schedule, part: int) -> list[int]:
    """Which of a slip's four numbers are a part."""
    return list(np.array_split(np.arange(4), schedule.parts)[part])


def _number(sheet, left, y, number, colour, is_new):
    """A number on a slip: framed when it has just come."""
    edge = {"line": svg.strong(ALARM), "thick": 3} if is_new else {"line": svg.GREY}
    sheet.box(left, y - NUMBER_HIGH / 2, NUMBER_WIDE, NUMBER_HIGH, fill=colour, **edge)
    ink = svg.INK if colour == svg.PAPER else svg.ON_COLOUR
    sheet.text(left + NUMBER_WIDE / 2, y, number, size=15, colour=ink)


def _hand_over(sheet, source, target, words):
    """An arrow between two seats, beside the way back, from the edge of one slip to the other's."""
    (x1, y1), (x2, y2) = source, target
    long = np.hypot(x2 - x1, y2 - y1)
    along = (x2 - x1) / long, (y2 - y1) / long
    aside = -along[1] * ASIDE, along[0] * ASIDE
    reach = NUMBER_WIDE * 2 + 6, NUMBER_HIGH / 2 + 12  # of a slip, from its middle
    ways = [room / abs(part) for room, part in zip(reach, along, strict=True) if abs(part) > 1e-9]
    gap = min(ways)
    start = x1 + along[0] * gap + aside[0], y1 + along[1] * gap + aside[1]
    end = x2 - along[0] * gap + aside[0], y2 - along[1] * gap + aside[1]
    sheet.arrow(*start, *end, colour=svg.strong(ALARM), thick=2, head=11)
    if words:
        middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        wide = 10 * len(words) + 8
        sheet.box(middle[0] - wide / 2, middle[1] - 12, wide, 24, fill=svg.PAPER)
        sheet.text(*middle, words, size=15, colour=svg.strong(ALARM))


# ---- what copies learn when they do not talk


def learned(alone: list, together: list):
    """The weight of each of two GPUs over the steps: each by its own gradient, and by the mean."""
    ends = [
        " and ".join(f"{weight:.2f}" for weight in np.broadcast_to(history[-1], 2))
        for history in (alone, together)
    ]
    alt = (
        f"Two copies of a weight over {len(alone) - 1} steps. Each by its own gradient: they end "
        f"at {ends[0]}. Both by the mean of the two gradients: at {ends[1]}."
    )
    fig = figure(8, 2.7, alt=alt)
    axes = fig.subplots(1, 2, sharey=True)
    titles = "each by its own gradient", "both by the mean of the gradients"
    for axis, history, title in zip(axes, (alone, together), titles, strict=True):
        weights = np.array(history)
        axis.plot(weights[:, 0], "o-", color=ACCENT, label="GPU 0", markersize=9)
        axis.plot(weights[:, 1], "s--", color=ALARM, label="GPU 1", markersize=5)
        axis.set(title=title, xlabel="step")
        plain(axis)
    axes[0].set(ylabel="weight w")
    axes[0].legend(frameon=False)
    return fig


# ---- the model


def model_curves(ranks: int):
    """Seconds of every schedule over the message's bytes: launch + steps * trip + bytes / beta."""
    launch, trip, beta, whose = link()
    sizes = 2.0 ** np.arange(3, 31)
    alt = f"time of five all-reduces of {ranks} ranks over the bytes of the message, both in powers"
    fig, axes = chart(7, 3.4, alt=alt)
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
    fig, axes = chart(7, 3.4, alt=alt)
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
    plain(axes)
    return fig


# ---- records


def prefix(ranks: int) -> str:
    """What a recording's names begin with."""
    return "many_gpus" if ranks == 2 else f"many_gpus/{ranks}"


def recorded(what: str, ranks: int | None = None, before: str = "") -> dict[int, float]:
    """{bytes: value} of the results all_reduce/<bytes>/<what> of so many GPUs (default: most)."""
    before = before or prefix(ranks or largest())
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
    fig, axes = chart(7, 3.4, alt=alt)
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


#: Of these messages tables show what was predicted: bytes.
SHOWN = (8, 1 << 12, 1 << 16, 1 << 17, 1 << 18, 1 << 20, 1 << 24, 1 << 26, 1 << 30)


def predictions(ranks: int) -> str:
    """What the model said of so many GPUs before a run, beside what was measured there."""
    said = recorded("predicted", ranks)
    return _beside({bytes: said[bytes] for bytes in SHOWN if bytes in said}, "predicted", ranks)


def refitted(ranks: int | None = None) -> str:
    """The same with lines that are fitted to so many GPUs' own times (default: most)."""
    ranks = ranks or largest()
    fitted, said = lines(ranks), {}
    for bytes in SHOWN:
        able = [x for x in fitted.values() if bytes in recorded(f"best/{x.algorithm}", ranks)]
        if able:
            said[bytes] = min(line.seconds(bytes) for line in able)
    return _beside(said, "fitted", ranks)


def _beside(said: dict[int, float], title: str, ranks: int) -> str:
    """A table: what lines say of messages, what was measured, and how far off the worst is."""
    measured = recorded("ours/graph", ranks)
    rows = [f"{'bytes':>14} {title:>12} {'measured':>12}"]
    ratios = {}
    for bytes, seconds in said.items():
        there = "not yet"
        if bytes in measured:
            ratios[bytes] = ratio = measured[bytes] / seconds
            there = f"{measured[bytes] * 1e6:9.1f} µs  {ratio:5.2f}×"
        rows.append(f"{bytes:14,} {seconds * 1e6:9.1f} µs {there:>12}")
    if ratios:
        worst = max(ratios, key=lambda bytes: abs(ratios[bytes] - 1))
        rows.append(f"furthest off: {abs(ratios[worst] - 1):.0%}, at {worst:,} bytes")
    return "\n".join(rows)


def lines(ranks: int, before: str = "") -> dict[str, model.Line]:
    """The line that fits each algorithm's recorded times on so many GPUs.

    before: what the results' names begin with, if not as those of a machine with so many GPUs.
    """
    fitted = {}
    for name in model.TRIPS:
        times = recorded(f"best/{name}", ranks, before)
        if len(times) >= model.FEWEST:
            fitted[name] = model.fit(times, name, ranks)
    return fitted


def alphas(ranks: int | None = None) -> str:
    """What a message of nothing costs: on two GPUs, on fewer of more, on more; what a peer adds."""
    ranks = ranks or largest()
    some = {number: lines(number, f"many_gpus/{number}") for number in range(2, ranks)}
    fitted = {
        "2 GPUs": lines(2),
        **{f"{number} of {ranks}": found for number, found in some.items() if found},
        f"{ranks} GPUs": lines(ranks),
    }
    titles = " ".join(f"{title:>10}" for title in (*fitted, "a peer"))
    rows = [f"{'α of':>10} {titles}"]
    for name in fitted["2 GPUs"]:
        if all(name in found for found in fitted.values()) and some.get(2):
            peer = model.for_a_peer(some[2][name], lines(ranks)[name])
            seconds = [*(found[name].alpha for found in fitted.values()), peer]
            cells = " ".join(f"{each * 1e6:7.2f} µs" for each in seconds)
            rows.append(f"{name:>10} {cells}")
    return "\n".join(rows)


def least(ranks: int | None = None) -> str:
    """Of all comparisons with NCCL on so many GPUs (default: most) the least speed-up."""
    ranks = ranks or largest()
    pattern = re.compile(rf"{prefix(ranks)}/all_reduce/(.+)/speedup_over_nccl(?:/(\w+))?")
    found = []
    for entry in results.load():
        match = pattern.fullmatch(entry["name"])
        if match:
            found.append((entry["value"], match[1], match[2] or "call"))
    if not found:
        return "nothing is recorded yet"
    value, what, mode = min(found)
    *kind, bytes = what.split("/")
    kinds = {"window": ", NCCL's memory registered", "bf16": ", bf16"}
    words = f"{int(bytes):,} bytes, {mode}" + "".join(kinds[word] for word in kind)
    return f"{len(found)} comparisons on {ranks} GPUs, the least {value:.2f}× ({words})"


def training(batch: int = 4096) -> str:
    """What is recorded of data-parallel training on the most GPUs, as lines of text."""
    gpus = largest()
    rows = {
        "scaling": f"{gpus} GPUs beside one, {batch:,} digits each",
        "strong_scaling": f"{gpus} GPUs beside one, {batch:,} digits in all",
    }
    lines = [f"{words}: {_times(gpus, batch, name)}" for name, words in rows.items()]
    lines += _beside_pytorch(gpus, batch)
    for who in ("pytorch", "shared_statistics", "own_statistics"):
        entry = results.find(f"many_gpus/accuracy/{who}")
        if entry:
            words = f"test accuracy, two GPUs, {who.replace('_', ' ')}"
            lines.append(f"{words}: {entry['value']:.2%}")
    return "\n".join(lines)


def _times(gpus, batch, name):
    entry = results.find(f"{prefix(gpus)}/ddp/{batch}/{name}")
    return f"{entry['value']:.2f}×" if entry else "nothing recorded yet"


def _beside_pytorch(gpus, batch):
    """Ours beside PyTorch's DistributedDataParallel, and whether its best mode was in the race."""
    raced = [n for n in range(2, gpus + 1) if results.find(f"{prefix(n)}/ddp/{batch}/race/ours")]
    lines = []
    for n in raced:
        best = results.find(f"{prefix(n)}/ddp/{batch}/race/pytorch/{BEST_MODE}")
        modes = "in its best mode" if best else "without its best mode, max-autotune"
        faster = _times(n, batch, "speedup_over_pytorch_ddp")
        lines.append(f"ours beside PyTorch's DistributedDataParallel, {n} GPUs, {modes}: {faster}")
    return lines or ["ours beside PyTorch's DistributedDataParallel: nothing recorded yet"]


def copies() -> str:
    """What is recorded of copies from GPU 0 to 1 of the most GPUs, as lines of text."""
    gpus = largest()
    before = f"{prefix(gpus)}/peer_copy"
    ways = {
        "push": "copy engine",
        "kernel_push": "kernel, stores",
        "kernel_pull": "kernel, loads",
    }
    lines = []
    for way, words in ways.items():
        entry = results.find(f"{before}/{way}/0_1")
        if entry:
            lines.append(f"{words:>15}: {entry['value'] / 1e9:4.0f} GB/s")
    trip = results.find(f"{before}/latency/0_1")
    if trip:
        lines.append(f"{'one word':>15}: {trip['value'] * 1e6:.2f} µs from GPU to GPU")
    return "\n".join([*lines, f"(recorded on {gpus} of {source_of(f'{before}/latency/0_1')})"])


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
    fig, axes = chart(1.6 + 0.5 * gpus, 1.1 + 0.4 * gpus, alt=f"{alt} ({whose})")
    for (a, b), speed in np.ndenumerate(speeds):
        colour = IDLE if np.isnan(speed) else BLOCK_COLOURS[0]
        box(axes, b, a, 1, 1, colour, "white", 1)
        text = "" if np.isnan(speed) else f"{speed:.0f}"
        word(axes, b + 0.5, a + 0.5, text, fontsize=SMALL)
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
    axes.spines[:].set_visible(False)
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
    found = f"measured {_said(measured)}; predicted {_said(predicted)}"
    alt = f"training on 1 to 8 GPUs, in times one: {found}"
    fig, axes = chart(5, 3, alt=alt)
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
    plain(axes)
    return fig


def _said(times: dict[int, float]) -> str:
    """Times one GPU, by the number of GPUs."""
    return ", ".join(f"{ratio:.2f} on {n}" for n, ratio in times.items()) or "nothing"


# ---- what ran beside what


def overlap(log: list[dict], backward: float):
    """Buckets of gradients as they travelled beside the backward pass (cuts.buckets)."""
    end = max([backward, *(entry["done"] for entry in log)]) * 1e3
    alt = f"{len(log)} buckets of gradients, each on its way as the backward pass goes on"
    fig, axes = chart(7, 0.35 * len(log) + 1.1, alt=alt)
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
    fig, axes = chart(8, 0.35 * stages + 0.9, alt=alt)
    colours = {
        "forward": BLOCK_COLOURS[0],
        "back": BLOCK_COLOURS[2],
    }
    for stage, what, batch, turn in log:
        box(axes, turn, stage, 1, 1, colours[what], "white", 1)
        word(axes, turn + 0.5, stage + 0.5, batch, fontsize=SMALL)
    axes.set(
        xlim=(0, length),
        ylim=(stages, 0),
        xticks=[],
    )
    axes.set_yticks(np.arange(stages) + 0.5, [f"rank {s}" for s in range(stages)], size=SMALL)
    return _bare(axes, f"{batches} micro-batches: {idle:.0%} of the turns are bubble", fig)


def turns(stages: int, micro_batches: int) -> list[tuple]:
    """The log of a pipeline whose stages each need one turn: all forward, then all back (GPipe)."""
    log = []
    first_back = stages - 1 + micro_batches
    for stage in range(stages):
        for batch in range(micro_batches):
            log.append((stage, "forward", batch, stage + batch))
            waits = stages - 1 - stage + micro_batches - 1 - batch
            log.append((stage, "back", batch, first_back + waits))
    return log


def bubble(log: list[tuple]) -> float:
    """The share of all stages' turns in which they did nothing."""
    stages = max(stage for stage, *_ in log) + 1
    length = max(turn for *_, turn in log) + 1
    return 1 - len(log) / (stages * length)


# ---- calls of ranks

CALL, APART = 150, 64  # pixels: from rank to rank, from call to call


def calls(made: dict[str, list[str]]):
    """What each rank calls, one call below the other: equal calls meet, others wait in vain.

    made: {rank: names of its calls}.
    """
    most = max(map(len, made.values()))
    rows = [
        [each[row] if row < len(each) else None for each in made.values()] for row in range(most)
    ]
    meets = [len(set(row)) == 1 for row in rows]
    met = meets.index(False) if False in meets else most
    alt = f"Calls of {len(made)} ranks: all {most} meet."
    if met < most:
        alt = (
            f"Calls of {len(made)} ranks: call {met + 1} differs: {', '.join(map(str, rows[met]))}."
        )
    sheet = Drawing(2 * CALL * len(made), 44 + APART * most, alt=alt)
    for column, name in enumerate(made):
        x = CALL * (2 * column + 1)
        sheet.text(x, 10, name, font_weight="bold", size=15)
        sheet.line(x, 24, x, sheet.height, colour=svg.GREY)
    for row, names in enumerate(rows):
        _draw_call(sheet, 40 + APART * row, names, meets[row], row > met)
    return sheet


def _draw_call(sheet, y, names, meets, is_after):
    """The ranks' calls number so and so: joined where they are the same."""
    first, last = CALL, CALL * (2 * len(names) - 1)
    colour = svg.strong(ACCENT if meets else ALARM)
    dashes = {} if meets else {"stroke_dasharray": "5 6"}
    sheet.line(first, y + 17, last, y + 17, colour=colour, thick=2, **dashes)
    if not meets and not is_after:
        sheet.box((first + last) / 2 - 70, y + 4, 140, 26, fill=svg.PAPER)
        sheet.text((first + last) / 2, y + 17, "waits for ever", colour=colour, size=14)
    for column, name in enumerate(names):
        x = CALL * (2 * column + 1)
        fill = BLOCK_COLOURS[2 if meets else 4]
        if name:
            sheet.named(x - 55, y, 110, 34, name, fill, size=14, rx=5)


# ---- how GPUs are joined, how a layer is cut

PANEL, GPU_WIDE = 240, 46  # pixels


def joined(gpus: int = 4):
    """Three ways in which GPUs of one machine reach each other."""
    alt = (
        f"{gpus} GPUs joined in three ways: over PCIe each message goes up to the host; over "
        "NVLink from one GPU to the next; an NVSwitch joins each with all others."
    )
    sheet = Drawing(3 * PANEL, 190, alt=alt)
    for panel, (name, middle, says) in enumerate(
        (
            ("PCIe", "host", "up to the host and down again"),
            ("NVLink", "", "straight to those it is wired to"),
            ("NVSwitch", "switch", "to all, each with its whole link"),
        )
    ):
        _panel(sheet, PANEL * panel, gpus, name, middle)
        sheet.text(PANEL * (panel + 0.5), 178, says, size=12, colour=svg.GREY)
    return sheet


def _panel(sheet, left, gpus, name, middle):
    """GPUs in a row, and what joins them: a box above them, or wires between neighbours."""
    fast = name != "PCIe"
    colour, thick = (svg.strong(ACCENT), 5) if fast else (svg.GREY, 2)
    sheet.text(left + PANEL / 2, 10, name, size=15, font_weight="bold")
    step = (PANEL - 20) / gpus
    places = [left + 10 + step * (gpu + 0.5) for gpu in range(gpus)]
    for x, following in zip(places, [*places[1:], None], strict=True):
        if middle:
            sheet.line(x, 130, left + PANEL / 2, 60, colour=colour, thick=thick)
        elif following:
            sheet.line(x, 144, following, 144, colour=colour, thick=thick)
    if middle:
        sheet.named(left + PANEL / 2 - 50, 38, 100, 32, middle, BLOCK_COLOURS[2], size=14)
    for gpu, x in enumerate(places):
        box = x - GPU_WIDE / 2, 130, GPU_WIDE, 28
        sheet.named(*box, f"GPU {gpu}", BLOCK_COLOURS[0], size=12)


def tensor_cut(ranks: int):
    """Two layers cut over ranks, the first by columns, the second by rows: a colour a rank."""
    alt = (
        f"x times the first layer, cut by columns for {ranks} ranks, gives each rank its part of "
        "the hidden layer; times its rows of the second, a sum that is not whole. An all-reduce "
        "adds these up."
    )
    sheet = Drawing(720, 178, alt=alt)
    _whole(sheet, 0, "x")
    _columns(sheet, 86, 90, ranks, "first: columns")
    _columns(sheet, 248, 46, ranks, "hidden, after relu")
    _rows(sheet, 400, 112, ranks, "second: rows")
    _rows(sheet, 510, 96, ranks, "partial sums", gap=8)
    _whole(sheet, 660, "y")
    for x, sign in ((73, "·"), (223, "="), (380, "·"), (485, "=")):
        sheet.text(x, MIDDLE, sign, size=22)
    sheet.arrow(580, MIDDLE, 652, MIDDLE)
    sheet.text(612, MIDDLE - 16, "all-reduce", size=12, colour=svg.strong(ACCENT))
    return sheet


MIDDLE, UNDER = 80, 166  # pixels: the height at which matrices are centred, that of their names
WHOLE, CUT = 60, 112  # pixels: how wide matrices are


def _whole(sheet, x, name):
    """A matrix that every rank has."""
    sheet.box(x + 1, MIDDLE - 23, WHOLE - 2, 46, fill=svg.FAINT, line=svg.GREY)
    sheet.text(x + WHOLE / 2, MIDDLE, name, size=15)
    sheet.text(x + WHOLE / 2, UNDER, "all have it", size=12)


def _columns(sheet, x, high, ranks, name):
    """A matrix of which each rank has some columns."""
    step = CUT / ranks
    for rank in range(ranks):
        _part(sheet, rank, x + step * rank, MIDDLE - high / 2, step - 2, high)
    sheet.text(x + CUT / 2, UNDER, name, size=12)


def _rows(sheet, x, high, ranks, name, gap=2):
    """A matrix of which each rank has some rows; or, with a gap, one below the other."""
    step = (high + gap) / ranks
    for rank in range(ranks):
        _part(sheet, rank, x, MIDDLE - high / 2 + step * rank, WHOLE, step - gap)
    sheet.text(x + WHOLE / 2, UNDER, name, size=12)


def _part(sheet, rank, x, y, wide, high):
    """What a rank has of a matrix."""
    colour = BLOCK_COLOURS[rank % len(BLOCK_COLOURS)]
    sheet.named(x, y, wide, high, rank, colour, size=12, rx=None)


# ---- words that carry their flag

CELL = 26  # pixels: a byte
LONG = Choice("push", blocks=132, unroll=4)  # how the longest messages go
TILE = VECTOR * LONG.threads * LONG.unroll  # bytes


def words(numbers: int = 4, flag: int = 4, tile: int = TILE):
    """A word of 8 bytes, half numbers and half flag, beside a tile with one flag behind it.

    numbers, flag: bytes of a word's two halves. tile: bytes that go before one flag.
    """
    word = numbers + flag
    shares = numbers / word, tile / (tile + flag)
    alt = (
        f"A word: {numbers} bytes of numbers, {flag} of flag, {shares[0]:.0%} of it numbers. "
        f"A tile: {tile:,} bytes, then {flag} of flag, {shares[1]:.2%} of it numbers."
    )
    sheet = Drawing(720, 170, alt=alt)
    sheet.heading(0, 10, "short messages: a flag in each word")
    for each in range(3):
        left = (CELL * word + 14) * each
        middle = left + CELL * numbers
        sheet.named(left, 24, CELL * numbers, 34, "numbers", BLOCK_COLOURS[0], rx=3)
        sheet.named(middle, 24, CELL * flag, 34, "flag", BLOCK_COLOURS[4], rx=3)
    said = f"{shares[0]:.0%} is numbers · whoever sees the flag has them"
    sheet.text_from(0, 72, said, size=12, colour=svg.GREY)
    sheet.heading(0, 104, "long messages: a flag behind a tile")
    sheet.named(0, 118, 560, 34, f"{tile:,} bytes of numbers", BLOCK_COLOURS[0], rx=3)
    sheet.named(564, 118, CELL * flag - 2, 34, "flag", BLOCK_COLOURS[4], rx=3)
    said = f"{shares[1]:.2%} is numbers · in this order only with release and acquire"
    sheet.text_from(0, 163, said, size=12, colour=svg.GREY)
    return sheet


# ---- multicast: the switch stores and adds

NODE = 84  # pixels: from one GPU to the next


def multicast(values):
    """What an NVSwitch does for all GPUs: passes one store on to each, and adds what one loads.

    values: what each GPU has at the address that is loaded.
    """
    gpus, total = len(values), sum(values)
    alt = (
        f"{gpus} GPUs at a switch. One store by GPU 0 reaches all of them. One load by GPU 0 "
        f"returns {' + '.join(map(str, values))} = {total}, formed in the switch."
    )
    wide = NODE * gpus + 60
    sheet = Drawing(2 * wide, 236, alt=alt)
    stores = [values[0]] * gpus
    _through_switch(sheet, 0, "one store reaches all", f"{values[0]}", stores, True)
    _through_switch(sheet, wide, "one load returns the sum", f"sum: {total}", values, False)
    return sheet


def _through_switch(sheet, left, title, result, values, is_store):
    """GPU 0 above, the switch, and what all GPUs have below; arrows follow the data."""
    middle = left + NODE * len(values) / 2
    colour = svg.strong(ACCENT)
    sheet.text(middle, 10, title, size=15, font_weight="bold")
    sheet.named(middle - 70, 28, 140, 34, f"GPU 0: {result}", BLOCK_COLOURS[1], size=14)
    words = "switch" if is_store else "switch: adds"
    sheet.named(middle - 70, 102, 140, 34, words, BLOCK_COLOURS[2], size=14)
    up_and_down = (64, 100) if is_store else (100, 64)
    sheet.arrow(middle, up_and_down[0], middle, up_and_down[1], colour=colour, thick=2)
    for gpu, value in enumerate(values):
        x = left + NODE * (gpu + 0.5)
        ends = (middle, 138, x, 182) if is_store else (x, 182, middle, 138)
        sheet.arrow(*ends, colour=colour, thick=2)
        sheet.box(x - NODE / 2 + 4, 184, NODE - 8, 44, fill=BLOCK_COLOURS[0], rx=4)
        sheet.text(x, 197, f"GPU {gpu}", size=13, colour=svg.ON_COLOUR)
        sheet.text(x, 216, value, size=15, colour=svg.ON_COLOUR, font_weight="bold")
