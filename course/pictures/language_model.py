"""Pictures of the chapter on language models: tokens, a row on its way, what may come, the bill."""

import re

import numpy as np
import torch

from course.kernels.language_model import reference
from course.kernels.language_model.problem import Config
from course.kernels.language_model.serving.sampling import Sampling, probabilities
from course.kernels.language_model.tokens import BYTES, Tokens
from course.pictures.attention import lighter
from course.pictures.shapes import plain
from utils import results
from utils.data_sheets import data_sheet
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, IDLE, chart, svg

BLUE, YELLOW, GREEN = BLOCK_COLOURS[:3]
WIDE = 660  # pixels of a sheet


# ---- tokens

LETTER, LINE = 9.2, 40  # pixels of a character, and from one line to the next


def cut(known: Tokens, text: str, merges: int | None = None):
    """A text in tokens, a box for each; merges: how many of those that were learned are used."""
    used = known if merges is None else Tokens(known.merges[:merges])
    pieces = [shown(used.pieces[token]) for token in used.encode(text)]
    words = f"{len(pieces)} tokens: {' | '.join(pieces)}"
    places = flowed(pieces)
    lines = 1 + max(line for _, line, _ in places)
    drawing = svg.Drawing(WIDE, 34 + LINE * lines, alt=words)
    of = len(used) - BYTES
    drawing.text_from(10, 14, f"{len(pieces)} tokens, with {of} merges", size=14)
    for number, (piece, (x, line, width)) in enumerate(zip(pieces, places, strict=True)):
        colour = (BLUE, YELLOW, GREEN)[number % 3]
        drawing.named(x, 30 + LINE * line, width, 30, piece, colour, size=15)
    return drawing


def shown(piece: bytes) -> str:
    """A token's bytes as a reader sees them: a space as ␣, half a character as its number."""
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return "".join(f"{byte:02x}" for byte in piece)
    return text.replace(" ", "␣").replace("\n", "¶")


def flowed(pieces: list[str]) -> list[tuple[float, int, float]]:
    """(x, line, width) of each box, from left to right, line by line."""
    places, x, line = [], 10.0, 0
    for piece in pieces:
        width = LETTER * len(piece) + 14
        if x + width > WIDE - 10 and x > 10:
            x, line = 10.0, line + 1
        places.append((x, line, width))
        x += width + 4
    return places


# ---- a row on its way through the layers


def on_the_way(model, text: str) -> list[tuple[str, np.ndarray, list[tuple[str, float]]]]:
    """Of the last token: (where, its row, the three likeliest next tokens) after each part.

    The likeliest are those that the head would name if the model ended there.
    """
    config, weights, known = model
    tokens = torch.tensor([known.encode(text)], device=weights["norm"].device)
    rows = []
    adds = reference.functional.linear

    def noted(x):
        rows.append(x[0, -1].detach())
        return x

    x = noted(weights["embedding"][tokens])
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    for layer in range(config.layers):
        own = {name: weights[name][layer] for name in reference.STACKED}
        y = reference.norm(x, own["norm_1"], config.eps)
        q, k, v = reference.queries_keys_values(config, y, own["qkv"], positions)
        x = noted(x + adds(reference.attend(q, k, v, positions).flatten(-2), own["out"]))
        y = reference.norm(x, own["norm_2"], config.eps)
        x = noted(x + reference.swiglu(y, own["gate_up"], own["down"]))
    names = ["embedding"]
    for layer in range(1, config.layers + 1):
        names += [f"layer {layer}, attention", f"layer {layer}, SwiGLU"]
    found = []
    for name, row in zip(names, rows, strict=True):
        logits = adds(reference.norm(row, weights["norm"], config.eps), weights["embedding"])
        chances, which = logits.softmax(-1).topk(3)
        pairs = zip(which.tolist(), chances.tolist(), strict=True)
        likely = [(shown(known.pieces[token]), chance) for token, chance in pairs]
        found.append((name, row.cpu().numpy(), likely))
    return found


def through(model, text: str):
    """The last token's row as a strip after each part, and what the model would say there."""
    stops = on_the_way(model, text)
    said = "; ".join(
        f"{name}: {', '.join(f'{word} {chance:.0%}' for word, chance in likely)}"
        for name, _, likely in stops
    )
    drawing = svg.Drawing(WIDE + 40, 40 + 34 * len(stops), alt=f"after {text!r}. {said}")
    drawing.text_from(160, 14, "the row: blue below 0, yellow above", size=13)
    drawing.text_from(420, 14, "would go on with", size=13)
    for line, (name, row, likely) in enumerate(stops):
        y = 30 + 34 * line
        drawing.text(150, y + 14, name, size=13, anchor="end")
        few = row.reshape(-1, max(1, len(row) // 80)).mean(1)
        most = np.abs(few).max()
        for i, number in enumerate(few):
            colour = lighter(YELLOW if number > 0 else BLUE, min(1, abs(number) / most))
            drawing.box(160 + 3 * i, y, 3, 26, fill=colour)
        words = ", ".join(f"{word} {chance:.0%}" for word, chance in likely)
        drawing.text_from(420, y + 14, words, size=14)
    return drawing


# ---- positions as turns


def hands(theta: float, position: int, pairs: int = 8, head: int = 32):
    """A head's first pairs as hands, at a position: each turns more slowly than the one before."""
    turns = [position * theta ** (-2 * i / head) / (2 * np.pi) for i in range(pairs)]
    said = ", ".join(f"{turn:.2f}" for turn in turns)
    drawing = svg.Drawing(WIDE, 128, alt=f"position {position}: turns of pairs 0 to 7: {said}")
    for i, turn in enumerate(turns):
        x, y = 46 + 81 * i, 60
        drawing.add("circle", cx=x, cy=y, r=32, style=f"fill:none;stroke:{svg.GREY}")
        angle = 2 * np.pi * turn
        ends = x + 30 * float(np.cos(angle)), y - 30 * float(np.sin(angle))
        drawing.line(x, y, *ends, colour=svg.strong(ACCENT), thick=3)
        drawing.text(x, 110, f"pair {i}", size=13)
    drawing.text_from(10, 12, f"position {position}", size=14)
    return drawing


# ---- training


def learned(losses: dict[str, list[tuple[int, float]]], title: str, chance: float | None = None):
    """Losses over steps, a line for each name. chance: that of who knows nothing."""
    said = "; ".join(
        f"{name}: from {line[0][1]:.2f} to {line[-1][1]:.2f}" for name, line in losses.items()
    )
    fig, axes = chart(8, 2.8, alt=f"{title}. Nats per token, {said}")
    colours = (ACCENT, ALARM)
    for (name, line), colour in zip(losses.items(), colours, strict=False):
        axes.plot(*zip(*line, strict=True), color=colour, label=name)
    if chance:
        axes.axhline(chance, color=IDLE, linestyle=":", label="knows nothing")
    axes.set(xlabel="steps", ylabel="nats per token", ylim=(0, None))
    axes.legend(frameon=False)
    plain(axes, title)
    return fig


# ---- what comes next

SHOWN = 12  # tokens of which bars are drawn


def likely(known: Tokens, logits, temperature: float, p: float):
    """The likeliest next tokens at a temperature; grey is what top-p leaves out."""
    whole = probabilities(logits, Sampling(temperature))
    left = probabilities(logits, Sampling(temperature, top_p=p))
    order = whole.argsort(descending=True)[:SHOWN].tolist()
    count = int((left > 0).sum())
    words = ", ".join(f"{shown(known.pieces[i])} {whole[i]:.1%}" for i in order)
    what = "1 token may come" if count == 1 else f"{count} tokens may come"
    title = f"temperature {temperature:g}, top-p {p:g}: {what}"
    drawing = svg.Drawing(WIDE, 30 + 24 * SHOWN, alt=f"{title}. {words}")
    drawing.text_from(10, 12, title, size=15)
    for line, token in enumerate(order):
        y = 28 + 24 * line
        chance = float(whole[token])
        drawing.text(120, y + 10, shown(known.pieces[token]), size=14, anchor="end")
        colour = ACCENT if left[token] > 0 else IDLE
        drawing.box(130, y, max(1.0, 420 * chance), 20, fill=colour)
        drawing.text_from(138 + 420 * chance, y + 10, f"{chance:.1%}", size=13)
    return drawing


# ---- the bill of a token

CARD = "H200"


def sheet(name: str = CARD) -> tuple[float, float]:
    """(bytes per second of memory, bf16 operations per second), from the data sheet."""
    found = data_sheet(name)
    return 1e9 * found["bandwidth_gb_s"], 1e12 * found["tensor16_tflops"]


def bill(config: Config, position: int, bits: int, batch: int):
    """The bytes of a step as bars: weights once for all, each sequence's cache; and the time."""
    weights = config.parameters * bits / 8
    caches = batch * config.cache_bytes(position + 1)
    rate, _ = sheet()
    least = (weights + caches) / rate * 1e6
    words = f"weights {weights / 1e9:.2f} GB, caches {caches / 1e9:.2f} GB"
    title = f"{words}: {least:,.0f} µs at least, {batch / least * 1e6:,.0f} tokens per second"
    drawing = svg.Drawing(WIDE, 76, alt=f"{title} ({CARD}, data sheet)")
    drawing.text_from(10, 12, title, size=15)
    pixels = 620 / max(weights + caches, 2 * config.parameters * 2)
    drawing.box(10, 30, weights * pixels, 34, fill=BLUE)
    drawing.box(10 + weights * pixels, 30, caches * pixels, 34, fill=YELLOW)
    return drawing


def at_once(config: Config, tokens: int):
    """What a step of so many tokens of one prompt takes at least: by its bytes, by its products."""
    rate, operations = sheet()
    counts = np.unique(np.geomspace(1, 4096, 60).astype(int))
    by_bytes = np.full(len(counts), config.parameters * 2 / rate * 1e3)
    by_products = 2 * config.parameters * counts / operations * 1e3
    crossing = config.parameters * 2 / rate * operations / (2 * config.parameters)
    here = max(config.parameters * 2 / rate, 2 * config.parameters * tokens / operations) * 1e3
    title = f"{tokens:,} at once: {here:.2f} ms at least, {1e3 * here / tokens:,.1f} µs each"
    fig, axes = chart(8, 3, alt=f"{title}. Products take longer from {crossing:.0f} tokens on")
    axes.plot(counts, by_bytes, color=ACCENT, label="read all weights once")
    axes.plot(counts, by_products, color=ALARM, label="multiply")
    axes.plot([tokens], [here], "o", color=YELLOW, markersize=9)
    axes.set(xscale="log", yscale="log", xlabel="tokens at once", ylabel="ms at least")
    axes.legend(frameon=False)
    plain(axes, f"{title} ({CARD}, data sheet)")
    return fig


# ---- memory's rest, on a toy's clock

PARTS, PIECES = 6, 8  # parts of a token, and pieces of weights of each
MULTIPLY, BARRIER = 0.125, 1.5  # ticks: for a piece, and until all blocks have a part's row
Piece = tuple[float, float, float, float]  # copied from, to; multiplied from, to


def pieces_on_a_clock(copying: float, slots: int, ahead: bool) -> list[Piece]:
    """When each piece of a token's weights is copied, and when it is multiplied.

    copying: ticks for a piece. slots: pieces that have room at a time. ahead: whether the next
    part's pieces may be copied before its row is there, as one kernel does for the whole token.
    """
    done, row = [], 0.0  # row: from when on the part's row is there
    for number in range(PARTS * PIECES):
        if number and number % PIECES == 0:
            row = done[-1][3] + BARRIER
        begins = done[-1][1] if done else 0.0
        if number >= slots:
            begins = max(begins, done[number - slots][3])
        if not ahead:
            begins = max(begins, row)
        copied = begins + copying
        multiplies = max(copied, row, done[-1][3] if done else 0.0)
        done.append((begins, copied, multiplies, multiplies + MULTIPLY))
    return done


def ring(slots: int, bits: int):
    """A token on a toy's clock, kernel by kernel and in one kernel with a ring of so many slots."""
    copying = bits / 32
    ways = {
        "kernel by kernel": pieces_on_a_clock(copying, PIECES, ahead=False),
        "one kernel": pieces_on_a_clock(copying, slots, ahead=True),
    }
    took = {way: done[-1][3] for way, done in ways.items()}
    busy = PARTS * PIECES * copying
    told = [
        f"{way} {time:.1f} ticks, {busy / time:.0%} of them copying" for way, time in took.items()
    ]
    title = f"slots {slots}, {bits} bits: {'; '.join(told)}"
    drawing = svg.Drawing(WIDE + 60, 218, alt=title)
    pixels = 580 / max(pieces_on_a_clock(0.5, 1, ahead=True)[-1][3], *took.values())
    for line, done in enumerate(ways.values()):
        y = 14 + 102 * line
        drawing.text_from(10, y, told[line], size=14)
        for name, x_from, top in (("copy", 0, y + 16), ("multiply", 2, y + 46)):
            drawing.text(92, top + 12, name, size=13, anchor="end")
            for number, piece in enumerate(done):
                begins, ends = piece[x_from : x_from + 2]
                colour = (BLUE, YELLOW, GREEN)[number // PIECES % 3]
                width = max(1.0, pixels * (ends - begins) - 0.5)
                drawing.box(102 + pixels * begins, top, width, 24, fill=colour)
    return drawing


# ---- as recorded

DECODE = "llm/decode/1/"
#: Of what each way is called in the results, the words for those that are ours
OURS = {"ours": "ours: one kernel", "ours_plain": "ours: kernels in a graph"}


def decode_times():
    """A token's time by each way, as recorded, slowest first; None, and words, where none is."""
    named = re.compile(rf"{DECODE}(.+)/time")
    entries = [(named.fullmatch(entry["name"]), entry) for entry in results.load()]
    found = {match[1]: entry for match, entry in entries if match}
    if not found:
        print("not recorded yet")
        return None
    micro = {way_to_decode(name): in_micro(entry) for name, entry in found.items()}
    micro = dict(sorted(micro.items(), key=lambda pair: -pair[1]))
    whose = next(iter(found.values()))["gpu"]
    title = f"one token, 1.24 billion weights, {whose}"
    return _bars(micro, title, "µs", 0.35)


#: The ways to a token's price: what is said, the recorded time of a step, the people it serves
PRICES = (
    ("PyTorch, as it comes", f"{DECODE}eager/time", 1),
    ("PyTorch, compiled, in one graph", f"{DECODE}default_and_graph_cudnn/time", 1),
    ("one kernel", f"{DECODE}ours/time", 1),
    ("one kernel, 4 bits", "llm/decode_bits/1/4_bits/time", 1),
    ("one kernel, shared by 8 people", "llm/decode/8/ours/time", 8),
)


def price():
    """A token's recorded time by the ways of the chapter; None, and words, where none is."""
    entries = results.together(*(name for _, name, _ in PRICES))
    found = {
        words: (in_micro(entry) / people, entry["gpu"])
        for (words, _, people), entry in zip(PRICES, entries, strict=True)
        if entry
    }
    if not found:
        print("not recorded yet")
        return None
    micro = {words: time for words, (time, _) in found.items()}
    whose = next(iter(found.values()))[1]
    title = f"one token, 1.24 billion weights, {whose}"
    return _bars(micro, title, "µs for each token", 0.4)


def _bars(micro, title, unit, inches):
    """A bar for each of {what: microseconds}, so many inches high with its gap."""
    said = ", ".join(f"{what} {time:,.0f} µs" for what, time in micro.items())
    fig, axes = chart(8, 1 + inches * len(micro), alt=f"{title}: {said}")
    bars = axes.barh(list(micro), list(micro.values()), color=ACCENT, height=0.7)
    axes.bar_label(bars, [f"{time:,.0f}" for time in micro.values()], padding=3)
    axes.set(xlabel=unit, xlim=(0, 1.15 * max(micro.values())))
    axes.invert_yaxis()
    plain(axes, title)
    return fig


def way_to_decode(name: str) -> str:
    """In words, how a token was computed; name: of the recorded result."""
    if name in OURS:
        return OURS[name]
    mode, _, attention = name.rpartition("_")
    words = {"": name, "graph": "in one graph", "default_and_graph": "compiled, in one graph"}
    told = words.get(mode, mode.replace("_and_graph", ", in one graph").replace("_", " "))
    return f"PyTorch: {told}" + (f" ({attention})" if mode else "")


def in_micro(entry: dict) -> float:
    """A recorded time in µs."""
    return entry["value"] * {"ms": 1e3, "s": 1e6, "us": 1.0, "µs": 1.0}[entry["unit"]]


def rounded_losses(losses: dict[int, float], whole: float):
    """The loss by bits of a weight, beside that of the weights as they were trained."""
    said = ", ".join(f"{bits} bits {loss:.2f}" for bits, loss in losses.items())
    fig, axes = chart(8, 2.4, alt=f"nats per token: {said}; as trained {whole:.2f}")
    names = [f"{bits} bits" for bits in losses]
    bars = axes.bar(names, list(losses.values()), color=ACCENT, width=0.6)
    axes.bar_label(bars, [f"{loss:.2f}" for loss in losses.values()], padding=2)
    axes.axhline(whole, color=ALARM, linewidth=1.2)
    axes.set(ylabel="nats per token", ylim=(0, 1.2 * max(losses.values())))
    plain(axes, "loss by the bits of a weight (line: as trained)")
    return fig
