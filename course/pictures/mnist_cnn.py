"""Pictures of *A CNN by hand*."""

import base64
import io

import numpy as np
import torch
from PIL import Image
from torch.nn import functional

from course.kernels.mnist_cnn import SHAPES, layers, pytorch
from course.pictures.shapes import numbered, plain
from utils import data
from utils.plots import ACCENT, ALARM, BLOCK_COLOURS, INK, chart, figure
from utils.plots.svg import GREY, Drawing, strong

#: What flows from step to step of the network: the step that leads there, and what it leaves
STAGES = (
    ("", "the pixels", "28 × 28"),
    ("conv1, bn1, ReLU", "4 of 32 maps", "28 × 28 each"),
    ("max-pool", "4 of 32 maps", "14 × 14 each"),
    ("conv2, bn2, ReLU", "4 of 64 maps", "14 × 14 each"),
    ("max-pool", "4 of 64 maps", "7 × 7 each"),
    ("fc1, ReLU", "128 numbers", "as 16 × 8"),
    ("fc2", "10 logits", "0 to 9"),
)
SHOWN = 4  # maps of a stage
PIXEL, COLUMN = 2.4, 104  # on the sheet: a pixel's side, a stage's width


def network(weights: dict, digit: int = 0):
    """What a test digit becomes on its way through the network, at one scale: the brighter the
    larger.

    weights: by name, as `pytorch.initial_weights` gives them; digit: which of the first ones. A
    batch of 16 goes through, since batch norm asks all of them.
    """
    images, _ = data.mnist("test", subset=True)
    values = [stage[digit].numpy() for stage in stages(weights, images[:16])]
    logits = values[-1]
    said = ", ".join(f"{name}: {logit:.1f}" for name, logit in enumerate(logits))
    alt = f"A digit on its way: {'; '.join(' '.join(stage).strip() for stage in STAGES)}. {said}."
    middle, tall = 190, 4 * 28 * PIXEL + 30
    sheet = Drawing(COLUMN * len(STAGES) + 8, middle + tall / 2 + 40, alt=alt)
    for n, ((step, what, size), stage) in enumerate(zip(STAGES, values, strict=True)):
        x = COLUMN * n + COLUMN / 2
        sheet.text(x - COLUMN / 2, 14, step, size=11, colour=strong(ACCENT))
        if step:
            sheet.arrow(x - COLUMN / 2 - 14, 28, x - COLUMN / 2 + 14, 28)
        sheet.text(x, sheet.height - 28, what, size=12)
        sheet.text(x, sheet.height - 12, size, size=11, colour=GREY)
        if n == len(STAGES) - 1:
            _logits(sheet, x - 34, middle, stage)
        else:
            _maps(sheet, x, middle, stage)
    return sheet


def stages(weights: dict, images: np.ndarray) -> list[torch.Tensor]:
    """What flows from step to step, for images uint8 [B, 28, 28]: pixels to logits, as STAGES."""
    model = pytorch.model_from(weights)
    with torch.no_grad():
        x = pytorch.scaled(torch.from_numpy(images))[:, None]
        one = functional.relu(model.bn1(model.conv1(x)))
        small = functional.max_pool2d(one, 2)
        two = functional.relu(model.bn2(model.conv2(small)))
        smaller = functional.max_pool2d(two, 2)
        wide = functional.relu(model.fc1(smaller.flatten(1)))
        return [x, one, small, two, smaller, wide, model.fc2(wide)]


def _maps(sheet, x, middle, stage) -> None:
    """The first maps of a stage [maps, side, side] below one another, or its numbers as one."""
    maps = stage[:SHOWN] if stage.ndim == 3 else stage.reshape(1, 16, 8)
    largest = max(np.abs(maps).max(), 1e-9)
    _, high, wide = maps.shape
    step = high * PIXEL + 8
    top = middle - step * len(maps) / 2
    for n, each in enumerate(maps):
        grey = np.uint8(255 * np.clip(each / largest, 0, 1))
        box = {"width": wide * PIXEL, "height": high * PIXEL}
        place = {"x": x - box["width"] / 2, "y": top + n * step}
        sheet.add("image", href=_png(grey), image_rendering="pixelated", **place, **box)


def _logits(sheet, x, middle, logits) -> None:
    """A bar for each digit, to the right for what is above 0; the largest in another colour."""
    longest = max(np.abs(logits).max(), 1e-9)
    for digit, logit in enumerate(logits):
        y = middle + 22 * (digit - 4.5)
        length = 26 * abs(logit) / longest
        left = x + 40 if logit > 0 else x + 40 - length
        colour = BLOCK_COLOURS[4] if logit == logits.max() else BLOCK_COLOURS[0]
        sheet.text(x, y, digit, size=12)
        sheet.box(left, y - 7, length, 14, fill=colour)


def _png(grey: np.ndarray) -> str:
    """An array of uint8 as an image in an address."""
    memory = io.BytesIO()
    Image.fromarray(grey).save(memory, "png")
    return "data:image/png;base64," + base64.b64encode(memory.getvalue()).decode()


def digits(
    images: np.ndarray,
    titles,
    *,
    alt: str,
    columns: int = 10,
):
    """Digits in rows, a short title above each."""
    rows = -(-len(images) // columns)
    fig = figure(0.86 * columns, 1.12 * rows, alt=alt)
    for index, (image, title) in enumerate(zip(images, titles, strict=True)):
        axes = fig.add_subplot(rows, columns, index + 1)
        axes.imshow(image, cmap="gray", vmin=0, vmax=255)
        axes.set_axis_off()
        axes.set_title(title, fontsize=9, color=INK)
    return fig


def losses(curves: dict[str, list[float]], *, title: str = ""):
    """Loss by step, one line a trainer; the second and later ones dashed, so that lines on each
    other are seen.
    """
    last = ", ".join(f"{name} {np.mean(values[-10:]):.3f}" for name, values in curves.items())
    fig, axes = chart(7.5, 3, alt=f"Loss by training step; mean of the last ten: {last}.")
    styles = (("-", ACCENT, 3.2, 0.45), ("--", ALARM, 1.3, 1), (":", INK, 1.3, 1))
    for (name, values), (line, colour, width, opacity) in zip(curves.items(), styles, strict=False):
        axes.plot(
            range(1, len(values) + 1),
            values,
            line,
            color=colour,
            linewidth=width,
            alpha=opacity,
            label=name,
        )
    axes.set(
        xlabel="step",
        ylabel="loss",
        ylim=(0, None),
        title=title,
    )
    axes.legend(frameon=False)
    plain(axes)
    return fig


def distances(curves: dict[str, np.ndarray]):
    """How far curves are from a reference, by step, on a logarithmic axis."""
    fig, axes = chart(
        7.5,
        3,
        alt="Distance from the float64 loss by step: "
        + ", ".join(
            f"{name} {values[0]:.1e} at first, at most {np.max(values):.1g}"
            for name, values in curves.items()
        ),
    )
    for (name, values), colour in zip(curves.items(), (ACCENT, ALARM), strict=False):
        axes.plot(
            range(1, len(values) + 1),
            np.maximum(values, 1e-9),
            color=colour,
            label=name,
        )
    axes.set(xlabel="step", ylabel="distance from float64", yscale="log")
    axes.legend(frameon=False)
    plain(axes)
    return fig


def weights_by_layer():
    """A bar for the number of weights in each layer."""
    layers = {}
    for name, shape in SHAPES.items():
        layer = name.split(".")[0]
        layers[layer] = layers.get(layer, 0) + int(np.prod(shape))
    fig, axes = chart(
        6.5,
        2,
        alt="Weights by layer: "
        + ", ".join(f"{layer} {count:,}" for layer, count in layers.items()),
    )
    bars = axes.barh(list(layers), list(layers.values()), color=ACCENT)
    axes.bar_label(
        bars,
        [f"{count:,}" for count in layers.values()],
        padding=3,
        fontsize=9,
    )
    axes.set(
        xlabel="weights",
        xlim=(0, 1.2 * max(layers.values())),
    )
    axes.invert_yaxis()
    plain(axes)
    return fig


# ---- who used a pixel

SQUARE = 36  # pixels of the picture


SIDE = 5  # of the small picture


def used_by(row: int = 2, column: int = 2):
    """The outputs of a 3 × 3 convolution that used one pixel of 5 × 5, and each one's tap."""
    taps = np.arange(1, 10).reshape(3, 3)
    pixel = np.zeros((1, 1, SIDE, SIDE))
    pixel[..., row, column] = 1
    took = layers.conv2d(pixel, taps[None, None].astype(float))[0, 0].astype(int)
    used = took[took > 0]
    order = " ".join(map(str, used))
    alt = (
        f"{used.size} outputs used the pixel in row {row}, column {column} of {SIDE} × {SIDE}; "
        f"line by line, they took it by taps {order}."
    )
    left, high = 3 * SQUARE + 70, SQUARE * SIDE
    sheet = Drawing(left + high + 280, high + 30, alt=alt)
    sheet.text(1.5 * SQUARE, 10, "w: taps 1 to 9", size=16)
    numbered(sheet, 0, 30 + (high - 3 * SQUARE) / 2, SQUARE, taps, 5)
    sheet.text(left + high / 2, 10, "y", size=16)
    numbered(sheet, left, 30, SQUARE, np.where(took > 0, took, -1), 5)
    words = (
        f"{used.size} outputs used x",
        f"in row {row}, column {column}: each",
        "by the tap written there.",
    )
    for line, text in enumerate(words):
        middle = 30 + high / 2 + 26 * (line - 1)
        sheet.text_from(left + high + 16, middle, text, size=16)
    return sheet


# ---- two slots for batches

UNIT_OF_TIME, LANE, NAMES = 21, 44, 96  # pixels of the picture; room for the lanes' names


def two_slots(steps: int, gather: int, copy: int, train: int):
    """When batches are gathered, copied and trained from, where there are two slots for them.

    gather, copy, train: how long each takes.
    """
    host = copies = trained = 0
    pieces, done = [], []  # (lane, step, from, to); when each step's training ends
    for step in range(steps):
        begins = max(host, done[step - 2] if step > 1 else 0)
        host = begins + gather
        pieces.append((0, step, begins, host))
        pieces.append((1, step, max(host, copies), max(host, copies) + copy))
        copies = pieces[-1][3]
        pieces.append((2, step, max(copies, trained), max(copies, trained) + train))
        trained = pieces[-1][3]
        done.append(trained)
    alt = "; ".join(
        f"step {step}'s batch is gathered once step {step - 2} is done" for step in range(2, steps)
    )
    sheet = Drawing(NAMES + UNIT_OF_TIME * trained, 3 * LANE + 34, alt=f"In time: {alt}.")
    for lane, name in enumerate(("gather", "copy", "train")):
        sheet.text_from(0, LANE * (lane + 0.5), name, size=16)
    for lane, step, begins, ends in pieces:
        left, right = (NAMES + UNIT_OF_TIME * time for time in (begins, ends))
        place = left, LANE * lane + 6, right - left - 2, LANE - 12
        sheet.named(*place, step, BLOCK_COLOURS[step % 2], size=16, rx=3)
        if lane == 2 and step + 2 < steps:
            sheet.arrow(right, LANE * 2 + 6, right, LANE - 6, colour=strong(ALARM), thick=2)
            sheet.text_from(right + 6, LANE * 1.5, "done", size=16)
    sheet.text_from(NAMES, 3 * LANE + 18, "number: step; colour: slot", size=16)
    return sheet


# ---- a linear layer's three products

UNIT, FLAT = 16, 0.55  # pixels for each doubling of a side; of a side downwards, less


def linear(batch: int, layer: str = "fc1"):
    """The three products of a linear layer, forward and backward, as matrices with their sides.

    Sides grow with the logarithm of their length.
    """
    outputs, inputs = SHAPES[f"{layer}.weight"]
    sides = {"B": batch, "K": inputs, "N": outputs}
    products = (
        ("y", "BN", "x", "BK", "wᵀ", "KN"),
        ("dx", "BK", "dy", "BN", "w", "NK"),
        ("dw", "NK", "dyᵀ", "NB", "x", "BK"),
    )
    said = "; ".join(
        f"{result} is {one} times {other}, a sum over {kind[1]}"
        for result, _, one, kind, other, _ in products
    )
    lengths = ", ".join(f"{name} = {length}" for name, length in sides.items())
    sheet = Drawing(760, 350, alt=f"Products of {layer}, {lengths}: {said}.")
    long = {name: UNIT * float(np.log2(length)) for name, length in sides.items()}
    top = 20
    for number, product in enumerate(products):
        high = max(long[product[place][0]] for place in (1, 3, 5)) * FLAT
        left = 0
        for place in (0, 2, 4):
            name, (down, across) = product[place], product[place + 1]
            colour = BLOCK_COLOURS[0 if place == 0 else 1]
            where = left, top + (high - FLAT * long[down]) / 2, long[across], FLAT * long[down]
            sheet.named(*where, f"{name}  {down} × {across}", colour, size=14, rx=3)
            left += long[across] + 22
            if place < 4:
                sheet.text(left - 11, top + high / 2, "=·"[place // 2], size=18)
        says = f"a sum over {product[3][1]} = {sides[product[3][1]]:,}"
        sheet.text_from(left - 8, top + high / 2, says, size=14)
        top += high + 14
        sheet.height = top + 4 if number == 2 else sheet.height
    return sheet


# ---- one digit's answer, and the blame for it

FACE, SLOT, TALL = 5, 46, 130  # pixels: a digit's pixel, a bar with its gap, a probability of 1


def verdict(image: np.ndarray, p: np.ndarray, right: int | None = None):
    """A digit, and a bar for each of the ten probabilities, the largest marked.

    image: uint8 [28, 28]; p: [10]. right: the right answer; with it an outline shows where each bar
    should end, and above stands by how much it is off: the gradient of that logit.
    """
    answer = int(p.argmax())
    said = ", ".join(f"{digit}: {share:.0%}" for digit, share in enumerate(p))
    alt = f"The network reads {answer}. {said}."
    off = p - (np.arange(10) == right)
    if right is not None:
        alt += f" Off by {', '.join(f'{each:+.2f}' for each in off)}."
    side = FACE * 28
    left, floor = side + 44, TALL + 46
    sheet = Drawing(left + 10 * SLOT, floor + 30, alt=alt)
    sheet.add("image", href=_png(image), x=0, y=floor - side, width=side, height=side)
    for digit, share in enumerate(p):
        x = left + SLOT * digit
        colour = BLOCK_COLOURS[4 if digit == answer else 0]
        top = floor - TALL * share
        sheet.box(x, top, SLOT - 12, TALL * share, fill=colour)
        sheet.text(x + SLOT / 2 - 6, floor + 16, digit, size=16)
        if right is None:
            sheet.text(x + SLOT / 2 - 6, top - 10, f"{share:.0%}", size=14)
            continue
        if digit == right:
            sheet.box(x, floor - TALL, SLOT - 12, TALL, line=strong(ALARM), thick=2)
        above = min(top, floor - TALL) if digit == right else top
        sheet.text(x + SLOT / 2 - 6, above - 10, f"{off[digit]:+.2f}", size=14)
    if right is not None:
        words = "outline: what it should have; numbers: what each has minus that"
        sheet.text_from(left, 14, words, size=13)
    return sheet


# ---- batch norm: four numbers, of which one moves

REACH = 40  # pixels for 1


def company(last: int = 3):
    """Four numbers, 1, 1, 3 and `last`, and what batch norm makes of them."""
    x = np.array([1, 1, 3, last])
    y = layers.batchnorm2d(x.reshape(4, 1, 1, 1).astype(float), np.ones(1), np.zeros(1))[0].ravel()
    before, after = ", ".join(map(str, x)), ", ".join(f"{each:.2f}" for each in y)
    sheet = Drawing(620, 200, alt=f"{before} become {after}.")
    zero = 150  # where 0 stands
    for height, name in ((50, "x"), (140, "y")):
        sheet.text_from(0, height, name, size=18)
        sheet.line(zero - 3 * REACH, height, zero + 10 * REACH, height, colour=GREY)
        for tick in range(-2, 10):
            sheet.text(zero + tick * REACH, height + (-34 if name == "x" else 36), tick, size=12)
    for number, (one, other) in enumerate(zip(x, y, strict=True)):
        colour = BLOCK_COLOURS[4 if number == 3 else 0]
        apart = 12 * (x[:number] == one).sum() - 6 * ((x == one).sum() - 1)  # equal: side by side
        ends = zero + one * REACH + apart, zero + other * REACH + apart
        sheet.line(ends[0], 50, ends[1], 140, colour=strong(colour), thick=1.5)
        sheet.dots([(ends[0], 50), (ends[1], 140)], 14, colour=colour)
    return sheet
