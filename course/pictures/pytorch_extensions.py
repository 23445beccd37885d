"""Pictures of the chapter PyTorch extensions: gradients in a graph, the dispatcher, streams."""

import torch

from utils.plots import ACCENT, IDLE, INK, figure

SMALL = 8.5  # points: letters within a picture
LEAF = "#cfe8cf"
#: From a box to the next one, to the right and downwards; how far an arrow past a box is bent
PITCH, ROW, BEND = 3.2, 1.8, 0.22
STREAM_COLOURS = ("#56B4E9", "#F0C36D", "#7FCBA4", "#E7A3C4")


def _canvas(fig, width, height):
    """Axes without ticks; y grows downwards."""
    axes = fig.add_subplot()
    axes.set(xlim=(-0.2, width + 0.2), ylim=(height, -0.2))
    axes.axis("off")
    return axes


def _box(axes, x, y, width, height, colour):
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, edgecolor=INK, linewidth=0.8))


def _word(axes, x, y, text, **more):
    axes.text(x, y, text, **{"ha": "center", "va": "center", "fontsize": SMALL, **more})


def _arrow(axes, start, end, colour, bend=0.0):
    how = {
        "arrowstyle": "->",
        "color": colour,
        "linewidth": 1.1,
        "connectionstyle": f"arc3,rad={bend}",
    }
    axes.annotate("", xy=end, xytext=start, arrowprops=how)


# ---- a graph and its gradients


def graph(order):
    """What the last of some values was made of: numbers go right, gradients come back left.

    order: micrograd's Values, sources first; `data` and `grad` of each are numbers, or tensors of
    one.
    """
    levels = _levels(order)
    tall = max(map(len, levels))
    places = {}
    for column, level in enumerate(levels):
        empty = tall - len(level)
        for row, node in enumerate(level):
            places[id(node)] = PITCH * column, ROW * (row + empty / 2)
    words = "; ".join(
        f"{node.name} = {_short(node.data)}, gradient {_short(node.grad)}" for node in order
    )
    fig = figure(min(8.0, 1.2 + 2.1 * len(levels)), 0.8 + 0.9 * tall, alt=f"A graph: {words}.")
    axes = _canvas(fig, PITCH * len(levels) - 1, ROW * tall - 0.3)
    for node in order:
        _node(axes, node, places)
    return fig


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


def _node(axes, node, places):
    x, y = places[id(node)]
    _box(axes, x, y, 2, 1.3, IDLE if node.made_of else LEAF)
    _word(axes, x + 1, y + 0.38, f"{node.name} = {_short(node.data)}", weight="bold")
    _word(axes, x + 1, y + 0.92, f"gradient {_short(node.grad)}", color=ACCENT)
    for source in node.made_of:
        from_x, from_y = places[id(source)]
        bend = BEND if x - from_x > PITCH else 0.0  # round the boxes in between
        above = bend if from_y > y else -bend
        below = -bend if from_y >= y else bend
        _arrow(axes, (from_x + 2, from_y + 0.4), (x, y + 0.4), INK, above)
        _arrow(axes, (x, y + 0.9), (from_x + 2, from_y + 0.9), ACCENT, below)


def _short(number):
    """A number as a learner would write it."""
    return "?" if number is None else f"{float(number):.4g}"


# ---- who answers a call


#: What a call meets, in this order: PyTorch's dispatch keys, what they are called here, what for
KEYS = (
    (("AutocastCPU",), "autocast", "may change types"),
    (("FuncTorchBatched",), "vmap", "takes a batch apart"),
    (("Autograd",), "autograd", "notes the way back"),
    (("Meta",), "fake", "shapes only"),
    (("CPU", "CompositeExplicitAutograd"), "CPU", "computes"),
    (("CUDA", "CompositeExplicitAutograd"), "CUDA", "computes"),
)


def dispatcher(name: str):
    """Who stands ready for an operator, asked of PyTorch's own table. name: "space::operator"."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    ready = [any(has(name, key) for key in keys) for keys, _, _ in KEYS]
    pairs = zip(KEYS, ready, strict=True)
    words = ", ".join(f"{label} {'yes' if there else 'no'}" for (_, label, _), there in pairs)
    fig = figure(7.6, 1.5, alt=f"A call of {name} meets in turn: {words}.")
    axes = _canvas(fig, 2.6 * len(KEYS), 2.4)
    for place, ((_, label, does), is_ready) in enumerate(zip(KEYS, ready, strict=True)):
        x = 2.6 * place
        _box(axes, x, 0.3, 2.2, 1.3, LEAF if is_ready else "white")
        _word(axes, x + 1.1, 0.75, label, weight="bold")
        _word(axes, x + 1.1, 1.2, does if is_ready else "not there", fontsize=6.5)
        if 0 < place < 4:
            _arrow(axes, (x - 0.4, 0.95), (x, 0.95), INK)
    _word(axes, 1.3 * len(KEYS), 2.05, f"{name}: what the dispatcher knows", color=ACCENT)
    return fig


# ---- what streams did


def streams(model):
    """In which order the work of a model's streams ran. model: a streams.Model, synchronized."""
    rows = 1 + max(stream for stream, _ in model.history)
    steps = ", ".join(f"stream {stream} {what}" for stream, what in model.history)
    fig = figure(
        min(8.0, 1.5 + 1.3 * len(model.history)), 0.5 + 0.5 * rows, alt=f"In turn: {steps}."
    )
    axes = _canvas(fig, 2 * len(model.history) + 1.5, rows + 0.2)
    for row in range(rows):
        _word(axes, 0.6, row + 0.5, f"stream {row}")
    for place, (stream, what) in enumerate(model.history):
        _box(axes, 2 * place + 1.5, stream + 0.1, 1.85, 0.8, STREAM_COLOURS[stream % 4])
        _word(axes, 2 * place + 2.42, stream + 0.5, what, fontsize=7)
    return fig
