"""Pictures of the chapter PyTorch extensions: gradients in a graph, the dispatcher, streams."""

import torch

from utils.plots import BLOCK_COLOURS
from utils.plots.svg import FAINT, GREY, INK, ON_COLOUR, Drawing, strong

GREEN = "#CFE8CF"  # what was given, and who is ready
BLUE = strong("#0072B2")  # gradients
SMALL = 12  # pixels: letters within a box

# ---- a graph and its gradients

#: A box of the graph, and the way from one to the next, to the right and downwards
WIDE, HIGH = 128, 62
PITCH, ROW = 210, 96


def graph(order):
    """What the last of some values was made of: numbers go right, gradients come back left.

    order: micrograd's Values, sources first; `data` and `grad` of each are numbers, or tensors of
    one. A value that is used twice has two pairs of arrows: each use sends a gradient back.
    """
    places = _places(order)
    words = "; ".join(
        f"{node.name} = {_short(node.data)}, gradient {_short(node.grad)}" for node in order
    )
    right = max(x for x, _ in places.values()) + WIDE
    bottom = max(y for _, y in places.values()) + HIGH
    sheet = Drawing(right + 2, bottom + 40, alt=f"A graph: {words}.")
    for node in order:
        _node(sheet, node, *places[id(node)])
    for node in order:
        for use, source in enumerate(node.made_of):
            _arrows(sheet, places[id(source)], places[id(node)], use - len(node.made_of) / 2)
    return sheet


def _places(order):
    """The upper left corner of each value's box, by its id."""
    levels = _levels(order)
    tall = max(map(len, levels))
    places = {}
    for column, level in enumerate(levels):
        empty = tall - len(level)
        for row, node in enumerate(level):
            places[id(node)] = PITCH * column + 1, ROW * (row + empty / 2) + 36
    return places


def _levels(order):
    """Values by how many steps they are away from what was given."""
    depth = {}
    levels = []
    for node in order:
        steps = [depth[id(source)] + 1 for source in node.made_of]
        depth[id(node)] = level = max(steps, default=0)
        if level == len(levels):
            levels.append([])
        levels[level].append(node)
    return levels


def _node(sheet, node, x, y):
    """A value's box: what it is, and its gradient."""
    sheet.box(
        x,
        y,
        WIDE,
        HIGH,
        fill=FAINT if node.made_of else GREEN,
        line=GREY,
        rx=4,
    )
    ink = INK if node.made_of else ON_COLOUR
    middle = x + WIDE / 2
    value = f"{node.name} = {_short(node.data)}"
    sheet.text(
        middle,
        y + 20,
        value,
        size=14,
        colour=ink,
        font_weight="bold",
    )
    gradient = BLUE if node.made_of else "#00588a"
    sheet.text(
        middle,
        y + 43,
        f"gradient {_short(node.grad)}",
        size=SMALL,
        colour=gradient,
    )


def _arrows(sheet, source, node, use):
    """From a value to one that is made of it, and the gradient's way back. use: sets uses apart."""
    start_x, start_y = source[0] + WIDE, source[1] + HIGH / 2
    end_x, end_y = node[0], node[1] + HIGH / 2
    apart = 26 * use + 13
    if end_x - start_x > PITCH - WIDE:  # over the boxes in between
        _bow(sheet, source, node)
        return
    sheet.arrow(start_x, start_y + apart - 4, end_x, end_y + apart - 4)
    sheet.arrow(end_x, end_y + apart + 5, start_x, start_y + apart + 5, colour=BLUE)


def _bow(sheet, source, node):
    """A way past other boxes, above or below them, and the gradient's beside it."""
    corners = _under if source[1] > node[1] else _over
    _path(sheet, corners(source, node, 0), INK)
    _path(sheet, corners(source, node, 9)[::-1], BLUE)


def _over(source, node, aside):
    """Up, along above the boxes, and down again."""
    left, right = source[0] + WIDE - 30 + aside, node[0] + 30 - aside
    above = min(source[1], node[1]) - 26 + aside
    return [(left, source[1]), (left, above), (right, above), (right, node[1])]


def _under(source, node, aside):
    """To the right, and up to the box."""
    right, y = node[0] + 30 + aside, source[1] + HIGH / 2 - 8 + aside
    return [(source[0] + WIDE, y), (right, y), (right, node[1] + HIGH)]


def _path(sheet, corners, colour):
    """Lines from corner to corner, the last an arrow."""
    *lines, last = zip(corners, corners[1:], strict=False)
    for start, end in lines:
        sheet.line(*start, *end, colour=colour, thick=1.5)
    sheet.arrow(*last[0], *last[1], colour=colour)


def _short(number):
    """A number as a learner would write it."""
    return "?" if number is None else f"{float(number):.4g}"


# ---- who answers a call

#: What a call meets, in this order (c10/core/DispatchKey.h lists the keys, those that come first
#: last): PyTorch's dispatch keys, what they are called here, what for
KEYS = (
    (("FuncTorchBatched",), "vmap", "takes a batch apart"),
    (("AutocastCPU",), "autocast", "may change types"),
    (("Autograd",), "autograd", "notes the way back"),
    (("Meta",), "fake", "shapes only"),
    (("CPU", "CompositeExplicitAutograd"), "CPU", "computes"),
    (("CUDA", "CompositeExplicitAutograd"), "CUDA", "computes"),
)
LAYERS = 3  # of them are met one after the other; then one of the others answers
KEY = 122  # pixels from one to the next


def dispatcher(name: str):
    """Who stands ready for an operator, asked of PyTorch's own table. name: "space::operator"."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    ready = [any(has(name, key) for key in keys) for keys, _, _ in KEYS]
    pairs = zip(KEYS, ready, strict=True)
    words = ", ".join(f"{label} {'yes' if there else 'no'}" for (_, label, _), there in pairs)
    sheet = Drawing(KEY * len(KEYS), 90, alt=f"A call of {name} meets in turn: {words}.")
    for place, ((_, label, does), is_ready) in enumerate(zip(KEYS, ready, strict=True)):
        x = KEY * place
        _key(sheet, x, label, does, is_ready)
        if 0 < place <= LAYERS:
            sheet.arrow(x - 20, 32, x, 32)
    sheet.text(sheet.width / 2, 80, f"{name}: what the dispatcher knows", colour=BLUE)
    return sheet


def _key(sheet, x, label, does, is_ready):
    """A dispatch key's box: green if the operator has something for it."""
    ink = ON_COLOUR if is_ready else INK
    sheet.box(x + 1, 4, KEY - 24, 56, fill=GREEN if is_ready else "none", line=GREY, rx=4)
    middle = x + KEY / 2 - 11
    sheet.text(middle, 22, label, size=14, colour=ink, font_weight="bold")
    sheet.text(middle, 44, does if is_ready else "not there", size=9.5, colour=ink)


# ---- what streams did

STEP, LINE = 116, 40  # pixels


def streams(model):
    """In which order the work of a model's streams ran. model: a streams.Model, synchronized."""
    rows = 1 + max(stream for stream, _ in model.history)
    steps = ", ".join(f"stream {stream} {what}" for stream, what in model.history)
    width = 80 + STEP * len(model.history)
    sheet = Drawing(width, LINE * rows + 4, alt=f"In turn: {steps}.")
    for row in range(rows):
        sheet.text(0, LINE * (row + 0.5), f"stream {row}", anchor="start")
    for place, (stream, what) in enumerate(model.history):
        x, y = 80 + STEP * place, LINE * stream
        colour = BLOCK_COLOURS[stream % len(BLOCK_COLOURS)]
        sheet.box(
            x,
            y + 3,
            STEP - 6,
            LINE - 6,
            fill=colour,
            rx=4,
        )
        sheet.text(
            x + STEP / 2 - 3,
            y + LINE / 2,
            what,
            size=11,
            colour=ON_COLOUR,
        )
    return sheet
