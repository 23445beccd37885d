"""The pictures of The ecosystem: the stack of tools, what one expression hands to the GPU, what a
compiler wrote.

What is said of the tools comes from assets/data/ecosystem.json, where each entry names its sources.
"""

import json
import re
from html import escape

from course.pictures.shapes import box, plain, word
from utils.files import ASSETS
from utils.plots import ACCENT, BLOCK_COLOURS, IDLE, INK, chart

DATA = ASSETS / "data" / "ecosystem.json"
YOURS = ("compiler", "library", "kernel")  # the layers in which kernels are written
READ, WRITTEN = BLOCK_COLOURS[0], BLOCK_COLOURS[4]
WIDTH, GAP = 9.2, 0.06  # inches: of the still picture, between its layers
CHARACTERS = 92  # of names that fit on one line of the still picture
LETTERS = 9.5  # points
SILICON = "#555555"
FACTS = (
    ("By", "who"),
    ("Was", "was"),
    ("Note", "note"),
    ("For a kernel engineer", "kernel"),
)
# The map's boxes, as CSS that JupyterLab also keeps of a notebook that it does not trust: a layer,
# a tool, what opens below it
LAYER = "border-left:5px solid {edge};padding:2px 0 2px 10px;margin:5px 0"
TOOL = (
    "display:inline-block;vertical-align:top;margin:2px 8px 2px 0;"
    "border:1px solid #8886;border-radius:5px;padding:1px 7px"
)
ENTRY = "max-width:640px;padding:4px 0"


def ecosystem() -> dict:
    """The tools: {"layers": [...], "status": {...}, "tools": [...]}, as
    tests/assets/test_ecosystem.py describes them.
    """
    return json.loads(DATA.read_text(encoding="utf-8"))


def _lines(names):
    """Names joined with dots, broken into lines of at most CHARACTERS."""
    lines = [""]
    for name in names:
        joined = f"{lines[-1]} · {name}" if lines[-1] else name
        if len(joined) > CHARACTERS:
            lines.append(name)
        else:
            lines[-1] = joined
    return lines


def stack():
    """The still picture: the layers from framework to silicon, with the names of their tools."""
    data = ecosystem()
    rows = [
        (layer, _lines([tool["name"] for tool in data["tools"] if tool["layer"] == layer["id"]]))
        for layer in data["layers"]
    ]
    said = "; ".join(f"{layer['title']}: {', '.join(lines)}" for layer, lines in rows)
    height = sum(_height(lines) + GAP for _, lines in rows)
    alt = f"The stack from framework to silicon: {said}"
    fig, axes = chart(WIDTH, height + 0.6, alt=alt)
    top = 0.0
    for layer, lines in rows:
        _draw_layer(axes, top, layer, lines)
        top += _height(lines) + GAP
    silicon = "silicon: GPUs, TPUs, CPUs, NPUs"
    box(axes, 0, top, WIDTH, 0.34, SILICON, "white", 1)
    word(axes, WIDTH / 2, top + 0.17, silicon, fontsize=LETTERS, color="white")
    axes.set(
        xlim=(0, WIDTH),
        ylim=(top + 0.36, -0.04),
    )
    axes.set_axis_off()
    axes.set_title("Blue: where kernels are written", fontsize=LETTERS, color=ACCENT, loc="left")
    return fig


def _height(lines):
    """Inches that a layer takes with so many lines of names."""
    return 0.34 + 0.2 * (len(lines) - 1)


def _draw_layer(axes, top, layer, lines):
    """A layer: its title and its tools' names, a line each."""
    style = {"ha": "left", "fontsize": LETTERS}
    colour = BLOCK_COLOURS[0] if layer["id"] in YOURS else IDLE
    box(axes, 0, top, WIDTH, _height(lines), colour, "white", 1)
    word(axes, 0.1, top + 0.17, layer["title"], weight="bold", **style)
    first = top + _height(lines) / 2 - 0.1 * (len(lines) - 1)
    for number, line in enumerate(lines):
        word(axes, 3.0, first + 0.2 * number, line, **style)


class StackMap:
    """The stack to click through: HTML without scripts, which also works where nothing runs. Plain
    text elsewhere.
    """

    def __init__(self, data=None):
        self.data = data or ecosystem()

    def of(self, layer):
        """The tools of a layer."""
        return [tool for tool in self.data["tools"] if tool["layer"] == layer["id"]]

    def __repr__(self):
        return "\n".join(
            f"{layer['title']}: " + ", ".join(tool["name"] for tool in self.of(layer))
            for layer in self.data["layers"]
        )

    def _repr_html_(self):
        rows = "".join(self._row(layer) for layer in self.data["layers"])
        return f"<div style='max-width:77em;font-size:13px;line-height:1.4'>{rows}</div>"

    def _row(self, layer):
        edge = ACCENT if layer["id"] in YOURS else "#8888"
        tools = "".join(self._tool(tool) for tool in self.of(layer))
        title, does, you = (escape(layer[key]) for key in ("title", "does", "you"))
        name = f"<b>{title}</b> <small>· {does} · <i>You: {you}.</i></small>"
        return f"<div style='{LAYER.format(edge=edge)}'>{name}<br>{tools}</div>"

    def _tool(self, tool):
        changed = tool["status"] != "active"
        mark = f" <small style='opacity:.75'>· {tool['status']}</small>" if changed else ""
        return (
            f"<details name='stack' style='{TOOL}'>"
            f"<summary style='cursor:pointer'>{escape(tool['name'])}{mark}</summary>"
            f"<div style='{ENTRY}'>{'<br>'.join(self._facts(tool))}</div></details>"
        )

    def _facts(self, tool):
        """What the opened entry says, a line each: what it is, facts, status, sources."""
        yield escape(tool["what"])
        for label, key in FACTS:
            if key in tool:
                yield f"<b>{label}:</b> {escape(tool[key])}"
        if tool["status"] != "active":
            meaning = escape(self.data["status"][tool["status"]])
            yield f"<b>Status:</b> {tool['status']} ({meaning})"
        sources = "; ".join(map(_source, tool["sources"]))
        yield f"<small>Sources, looked up on {tool['as_of']}: {sources}</small>"


def _source(source):
    """A link to where something is known from, and what is said there."""
    address = escape(source["url"], quote=True)
    return f"<a href='{address}'>{escape(source['title'])}</a> ({escape(source['says'])})"


def stack_map():
    """The interactive map of the stack; click a name to read its entry."""
    return StackMap()


def written_kernel(sources) -> tuple[list[str], list[str]]:
    """(the lines of the first kernel that compute, all launches) of the code that TorchInductor
    wrote.

    sources: the texts that torch._inductor.utils.run_and_get_code returns; C++ for a CPU, Triton
        for a GPU.
    """
    lines = [line.strip() for source in sources for line in source.splitlines()]
    first = next(number for number, line in enumerate(lines) if "tmp0 =" in line)
    last = next(number for number, line in enumerate(lines) if number > first and "store" in line)
    launches = [line for line in lines if re.match(r"cpp_fused\w*\(|triton_\w+\.run\(", line)]
    return [line for line in lines[first : last + 1] if "tmp" in line], launches


def _handed(kernels, bytes_an_element):
    """A version's kernels in words."""
    if not kernels:
        return "nothing: it runs on the CPU"
    plural = "s" * (len(kernels) != 1)
    return f"{len(kernels)} kernel{plural}, {bytes_an_element:g} bytes an element"


def handed_over(versions: dict, elements: int):
    """What each version of an expression hands to the GPU.

    versions: label -> list of kernels, each (name, bytes read, bytes written); an empty list is
        drawn as nothing.
    elements: how many elements the result has; bytes are shown for each of them.
    """
    totals = {
        label: sum(read + written for _, read, written in kernels) / elements
        for label, kernels in versions.items()
    }
    said = {label: _handed(kernels, totals[label]) for label, kernels in versions.items()}
    alt = "; ".join(f"{label}: {text}" for label, text in said.items())
    height = 0.9 + 0.42 * len(versions)
    fig, axes = chart(8.2, height, alt=f"What each version hands to the GPU: {alt}")
    for row, (label, kernels) in enumerate(versions.items()):
        left = 0.0
        for name, read, written in kernels:
            axes.barh(
                row,
                read / elements,
                left=left,
                height=0.62,
                color=READ,
            )
            axes.barh(
                row, written / elements, left=left + read / elements, height=0.62, color=WRITTEN
            )
            width = (read + written) / elements
            axes.barh(
                row,
                width,
                left=left,
                height=0.62,
                fill=False,
                edgecolor=INK,
                linewidth=1.4,
            )
            word(axes, left + width / 2, row, name)
            left += width
        word(axes, left + 0.4, row, said[label], ha="left", fontsize=9)
    axes.set_yticks(range(len(versions)), versions)
    most = max(totals.values())
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= most])
    axes.set(
        xlim=(0, most * 1.55 + 1),
        ylim=(len(versions) - 0.45, -0.6),
    )
    axes.set_xlabel("bytes an element: blue read, orange written; a frame is a kernel")
    plain(axes)
    return fig
