"""Pictures of the chapter PyTorch extensions: gradients, what was learnt, dispatcher, streams."""

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


def graph(order, walked=None):
    """What the last of some values was made of: numbers go right, gradients come back left.

    order: micrograd's Values, sources first; `data` and `grad` of each are numbers, or tensors of
    one. A value that is used twice has two pairs of arrows: each use sends a gradient back.
    walked: so many values, from the last one back, have handed theirs on; None: all. The others'
    gradients are not known yet.
    """
    known = len(order) if walked is None else walked + 1
    waiting = {id(node) for node in order[: len(order) - known]}
    places = _places(order)
    words = "; ".join(
        f"{node.name} = {_short(node.data)}, gradient "
        f"{'?' if id(node) in waiting else _short(node.grad)}"
        for node in order
    )
    right = max(x for x, _ in places.values()) + WIDE
    bottom = max(y for _, y in places.values()) + HIGH
    sheet = Drawing(right + 2, bottom + 40, alt=f"A graph: {words}.")
    for node in order:
        _node(sheet, node, *places[id(node)], is_known=id(node) not in waiting)
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


def _node(sheet, node, x, y, is_known):
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
        f"gradient {_short(node.grad) if is_known else '?'}",
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


# ---- a torch.autograd.Function, there and back

BACK = 116  # pixels from the way there to the way back


def there_and_back(function, x, *numbers):
    """What a torch.autograd.Function did on its way there and back, and what it kept meanwhile.

    x: a tensor, handed over with the numbers; the loss is the sum of what comes out.
    """
    x = x.detach().requires_grad_()
    y = function.apply(x, *numbers)
    y.retain_grad()
    tensors = ["x" if tensor is x else "y" for tensor in y.grad_fn.saved_tensors]
    kept = ", ".join([*tensors, *vars(y.grad_fn)])
    y.sum().backward()
    there, back = [_listed("x", x), _listed("y", y)], [_listed("dx", x.grad), _listed("dy", y.grad)]
    alt = (
        f"There: {there[0]} goes into forward, {there[1]} comes out. ctx keeps {kept}. "
        f"Back: {back[1]} goes into backward, {back[0]} comes out."
    )
    sheet = Drawing(612, BACK + 50, alt=alt)
    for top, name, ends in ((2, "forward", there), (BACK, "backward", back)):
        sheet.box(231, top, 150, 46, fill=GREEN, line=GREY, rx=4)
        sheet.text(306, top + 23, name, size=16, colour=ON_COLOUR, font_weight="bold")
        for left, words in zip((1, 431), ends, strict=True):
            sheet.box(left, top, 180, 46, line=GREY, rx=4)
            sheet.text(left + 90, top + 23, words, size=16)
    for left in (182, 382):
        sheet.arrow(left, 25, left + 48, 25, thick=2)
        sheet.arrow(left + 48, BACK + 23, left, BACK + 23, colour=BLUE, thick=2)
    sheet.arrow(306, 50, 306, BACK - 2, thick=2)
    sheet.text_from(318, (50 + BACK) / 2, f"ctx: {kept}", size=16)
    return sheet


def _listed(name, tensor):
    """A tensor's name and its numbers."""
    return f"{name} = " + ", ".join(map(_short, tensor.flatten().tolist()))


# ---- what a network has learnt

REACH, FINE = 3.0, 40  # the picture goes from -REACH to REACH, in so many squares each way
SQUARE = 8  # pixels
YES, NO = "#0072B2", "#D55E00"  # dots of the two kinds


def learnt(points, inside, answer, radius=None):
    """Where a network says yes, and the points that it was trained on.

    points: [n, 2]. inside: [n, 1], 1 or 0. answer: the network, of places [m, 2] as `points` are to
    numbers [m, 1]; above one half is a yes. radius: of the circle, to draw it as well.
    """
    said_yes = answer(points) > 0.5
    right = int((said_yes == (inside > 0.5)).sum())
    size = SQUARE * FINE
    alt = f"The network is right about {right} of {len(points)} points."
    sheet = Drawing(size + 250, size, alt=alt)
    sheet.cells(_corners_of_yes(points, answer), SQUARE, fill=GREEN)
    sheet.box(0.5, 0.5, size - 1, size - 1, line=GREY)
    if radius is not None:
        ring = {"style": "fill:none", "stroke": INK, "stroke_dasharray": "5 4"}
        sheet.add("circle", cx=size / 2, cy=size / 2, r=radius * size / (2 * REACH), **ring)
    for row, (colour, what) in enumerate(((YES, "inside"), (NO, "outside"))):
        kind = inside[:, 0] > 0.5 if colour == YES else inside[:, 0] <= 0.5
        sheet.dots(_on_the_sheet(points[kind]), 9, colour=colour)
        sheet.dots([(size + 30, 24 + 28 * row)], 9, colour=colour)
        sheet.text_from(size + 46, 24 + 28 * row, f"a point {what} the circle")
    sheet.box(size + 24, 74, 12, 12, fill=GREEN)
    sheet.text_from(size + 46, 80, "the network says inside")
    sheet.text_from(size + 24, 118, f"right: {right} of {len(points)}", colour=BLUE)
    return sheet


def _corners_of_yes(points, answer):
    """The upper left corners of all squares in whose middle the network says yes."""
    steps = (torch.arange(FINE, device=points.device) + 0.5) * (2 * REACH / FINE) - REACH
    places = torch.cartesian_prod(steps, steps).to(points.dtype)
    chosen = places[answer(places)[:, 0] > 0.5]
    return [(x - SQUARE / 2, y - SQUARE / 2) for x, y in _on_the_sheet(chosen)]


def _on_the_sheet(places):
    """Pixels of places [m, 2], y upwards; what lies beyond the edge is left out."""
    scale = SQUARE * FINE / (2 * REACH)
    shown = places[places.abs().amax(1) < REACH].tolist()
    return [((x + REACH) * scale, (REACH - y) * scale) for x, y in shown]


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


# ---- who takes an activation

DOOR, DOOR_HIGH = 130, 58  # pixels from one to the next, and of a box
#: What became of a try, as `course.extensions.doors` says it: colour, sign
OUTCOMES = {
    "right": (GREEN, "✓"),
    "an error": ("none", "✗"),
    "wrong, silently": ("#F4B183", "✗"),
}


def doors(tried):
    """Which doors are open to an activation. tried: door -> what became of it, one of OUTCOMES."""
    words = "; ".join(f"{name}: {became}" for name, became in tried.items())
    sheet = Drawing(DOOR * len(tried), DOOR_HIGH + 4, alt=f"{words}.")
    for place, (name, became) in enumerate(tried.items()):
        colour, sign = OUTCOMES[became]
        ink = INK if colour == "none" else ON_COLOUR
        x = DOOR * place + 1
        sheet.box(x, 2, DOOR - 10, DOOR_HIGH, fill=colour, line=GREY, rx=4)
        middle = x + DOOR / 2 - 5
        sheet.text(middle, 22, name, size=14, colour=ink, font_weight="bold")
        sheet.text(middle, 44, f"{sign} {became}", size=SMALL, colour=ink)
    return sheet


# ---- a view, and a kernel that reads memory as it lies

CELL, SHORT, LEVEL = 40, 26, 50  # pixels: a number's box, and from row to row


def as_it_lies(memory, view, copied=False):
    """What a view means, and what comes out of a kernel that copies numbers as they lie.

    memory: the tensor that the view was cut from, whose numbers all differ. The result lies as
    `torch.empty_like(view)` does. copied: the kernel is given `view.contiguous()` instead.
    """
    meant = view.flatten().tolist()
    came = _copied_in_a_row(view.contiguous() if copied else view, torch.empty_like(view))
    ends = "as it should" if came == meant else "which is not the same"
    alt = f"The view means {_list_of(meant)}; out come {_list_of(came)}, {ends}."
    long = max(memory.numel(), len(meant))
    sheet = Drawing(CELL * long + 90, 3 * LEVEL, alt=alt)
    in_memory = memory.flatten().tolist()
    wrong = OUTCOMES["wrong, silently"][0]
    rows = {
        "memory": [(number, GREEN if number in meant else "none") for number in in_memory],
        "the view": [(number, GREEN) for number in meant],
        "comes out": [
            (number, GREEN if number == right else wrong)
            for number, right in zip(came, meant, strict=True)
        ],
    }
    for row, (words, numbers) in enumerate(rows.items()):
        sheet.text_from(0, LEVEL * row + 4 + SHORT / 2, words, size=14)
        for place, (number, fill) in enumerate(numbers):
            _number(sheet, 90 + CELL * place, LEVEL * row + 4, number, fill)
    return sheet


def _copied_in_a_row(x, y):
    """What y holds after a kernel has copied the numbers of x to it as they lie in memory."""
    places = (y.numel(),), (1,)
    y.as_strided(*places).copy_(x.as_strided(*places))
    return y.flatten().tolist()


def _number(sheet, x, y, number, fill):
    """A number in its box."""
    sheet.box(x, y, CELL - 6, SHORT, fill=fill, line=GREY, rx=3)
    ink = INK if fill == "none" else ON_COLOUR
    sheet.text(x + CELL / 2 - 3, y + SHORT / 2, f"{number:g}", colour=ink)


def _list_of(numbers):
    """Numbers with commas between them."""
    return ", ".join(f"{number:g}" for number in numbers)


# ---- what streams did

STEP, LINE = 116, 52  # pixels


def streams(model):
    """In which order the work of a model's streams ran, and on which memory.

    model: a streams.Model, synchronized.
    """
    rows = 1 + max(stream for stream, *_ in model.history)
    memory = [_memory(read, written) for _, _, read, written in model.history]
    told = zip(model.history, memory, strict=True)
    steps = ", ".join(f"stream {stream} {what} ({used})" for (stream, what, *_), used in told)
    width = 80 + STEP * len(model.history)
    sheet = Drawing(width, LINE * rows + 4, alt=f"In turn: {steps}.")
    for row in range(rows):
        sheet.text_from(0, LINE * (row + 0.5), f"stream {row}")
    for place, (stream, what, *_) in enumerate(model.history):
        x, y = 80 + STEP * place, LINE * stream
        colour = BLOCK_COLOURS[stream % len(BLOCK_COLOURS)]
        sheet.box(x, y + 3, STEP - 6, LINE - 6, fill=colour, rx=4)
        middle = x + (STEP - 6) / 2
        sheet.text(middle, y + 20, what, size=11, colour=ON_COLOUR)
        sheet.text(middle, y + 37, memory[place], size=10, colour=ON_COLOUR)
    return sheet


def _memory(read, written):
    """What a step does with memory, in words. read: addresses. written: an address."""
    reads = "".join(f"reads {address}, " for address in dict.fromkeys(read))
    return f"{reads}writes {written}"


# ---- who adds up which columns

ROW_HIGH, COLUMN_WIDE = 20, 13  # pixels


def columns(rows: int, threads: int, chunk: int, parts: int):
    """Which elements a thread has in a sum over rows, and where its part of the sum goes.

    threads: of a block, each with `chunk` columns next to each other. parts: blocks that share the
    rows out, each taking every so-manieth.
    """
    wide = COLUMN_WIDE * chunk * threads
    below = ROW_HIGH * rows + 44
    last = below + ROW_HIGH * parts + 44
    alt = (
        f"{rows} rows of {chunk * threads} columns, shared out among {parts} blocks. A thread adds "
        f"up {chunk} columns over its block's rows; a second kernel adds up the {parts} parts."
    )
    sheet = Drawing(wide + 310, last + ROW_HIGH + 4, alt=alt)
    for row in range(rows):
        _row_of_chunks(sheet, ROW_HIGH * row, threads, chunk, row % parts)
    for part in range(parts):
        _row_of_chunks(sheet, below + ROW_HIGH * part, threads, chunk, part)
    _row_of_chunks(sheet, last, threads, chunk, None)
    middle = COLUMN_WIDE * chunk / 2
    for start in (below - 44, last - 44):
        sheet.arrow(middle, start + 6, middle, start + 38)
    for y, words in (
        (ROW_HIGH / 2, f"x and dy: a box is {chunk} columns of a row"),
        (ROW_HIGH * 1.7, "one colour: one block's rows"),
        (ROW_HIGH * 2.9, "thick edges: one thread's boxes"),
        (below - 22, "each thread adds up, in registers"),
        (below + ROW_HIGH * parts / 2, "the sums of each block"),
        (last - 22, "the second kernel"),
        (last + ROW_HIGH / 2, "the bias's gradient"),
    ):
        sheet.text_from(wide + 16, y, words)
    return sheet


def _row_of_chunks(sheet, y, threads, chunk, block):
    """A row as its threads see it. Thick edges: the first thread of the first block."""
    fill = FAINT if block is None else BLOCK_COLOURS[block % len(BLOCK_COLOURS)]
    step = COLUMN_WIDE * chunk
    for thread in range(threads):
        marked = thread == 0 and block == 0
        sheet.box(
            step * thread + 2,
            y + 2,
            step - 4,
            ROW_HIGH - 4,
            fill=fill,
            line=INK if marked else GREY,
            thick=3 if marked else 1,
        )
