"""matplotlib's SVG in fewer characters, and the same picture.

Each shape that it writes carries all of its style. Neighbours that share some have that said once,
by a group around them; a side of a rectangle is one number, not two.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from xml.etree import ElementTree as ET

#: Neighbours, in order
Nodes = list[ET.Element]
SVG, LINKS = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
G = f"{{{SVG}}}g"
SHAPES = f"{{{SVG}}}path", f"{{{SVG}}}text"
HOLDERS = f"{{{SVG}}}svg", G, f"{{{SVG}}}defs", f"{{{SVG}}}clipPath"
ZEROS = re.compile(r"\.0+$|(\.\d*?)0+$")
#: Numbers after each letter of a path as matplotlib writes them, in absolute coordinates
NUMBERS_AFTER = {"M": 2, "L": 2, "Q": 4, "C": 6, "z": 0}
#: Characters that a group costs: below that nothing is won
GROUP_COST = len('<g style=""></g>')
#: A group's opacity would be of another picture
NEVER_SHARED = ("opacity",)


def compact(svg: str) -> str:
    """An <svg> element as matplotlib writes it, on one line, with less repeated."""
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", LINKS)
    root = ET.fromstring(svg)
    for node in list(root.iter()):
        _without_bare_groups(node)
    holders = [node for node in root.iter() if node.tag in HOLDERS]
    for node in root.iter():
        shorten(node)
    for node in holders:
        node.text = None  # spaces
        for child in node:
            child.tail = None
        node[:] = _in_groups(list(node))
    return ET.tostring(root, encoding="unicode")


def _without_bare_groups(node: ET.Element) -> None:
    """Put the content of groups that say nothing in their place, all the way down."""
    while any(child.tag == G and not child.attrib for child in node):
        children = []
        for child in node:
            is_bare = child.tag == G and not child.attrib
            children += list(child) if is_bare else [child]
        node[:] = children


def shorten(node: ET.Element) -> None:
    """A shape's path and style with no character to spare, in place."""
    if "d" in node.attrib:
        node.set("d", short_path(node.attrib["d"]))
    if "style" in node.attrib:
        node.set("style", _as_text(style_of(node)))


def style_of(node: ET.Element) -> dict[str, str]:
    """The parts of the node's `style`."""
    parts = [part.partition(":") for part in node.get("style", "").split(";") if part.strip()]
    return {name.strip(): value.strip() for name, _, value in parts}


def _as_text(style: dict[str, str]) -> str:
    return ";".join(f"{name}:{value}" for name, value in style.items())


def _in_groups(nodes: Nodes) -> Nodes:
    """The nodes, in order, with neighbours of one kind in groups that say what they share."""
    grouped = []
    for kind, alike in groupby(nodes, _kind):
        run = list(alike)
        grouped += run if kind is None else _shared_twice(run)
    return grouped


def _kind(node: ET.Element) -> tuple | None:
    """What neighbours must have in common to share a group; None for what is no shape."""
    if node.tag not in SHAPES:
        return None
    return node.tag, frozenset(style_of(node)), node.get("clip-path"), "transform" in node.attrib


def _shared_twice(run: Nodes) -> Nodes:
    """What all of a run share, said once; within it, what neighbours share beyond that."""
    outer = _hoist(run)
    inner = []
    for _, alike in groupby(run, lambda node: node.get("style")):
        same = list(alike)
        inner += _wrapped(_hoist(same), same)
    return _wrapped(outer, inner)


def _wrapped(shared: dict[str, str], nodes: Nodes) -> Nodes:
    if not shared:
        return nodes
    group = ET.Element(G, shared)
    group.extend(nodes)
    return [group]


def _hoist(run: Nodes) -> dict[str, str]:
    """Take from the shapes of a run, in place, what all say, if a group says it in less.

    Returns the attributes of that group. A clip lies in the coordinates of its shape: it stays with
    one that is moved.
    """
    styles = [style_of(node) for node in run]
    style = {
        name: value
        for name, value in styles[0].items()
        if name not in NEVER_SHARED and all(other.get(name) == value for other in styles)
    }
    shared = {"style": _as_text(style)} if style else {}
    if "clip-path" in run[0].attrib and "transform" not in run[0].attrib:
        shared["clip-path"] = run[0].attrib["clip-path"]
    said = sum(len(f' {name}="{value}"') for name, value in shared.items())
    if (len(run) - 1) * said <= GROUP_COST:
        return {}
    for node, own in zip(run, styles, strict=True):
        _set_style(node, {name: value for name, value in own.items() if name not in style})
        if "clip-path" in shared:
            del node.attrib["clip-path"]
    return shared


def _set_style(node: ET.Element, style: dict[str, str]) -> None:
    if style:
        node.set("style", _as_text(style))
    else:
        node.attrib.pop("style", None)


def short_path(path: str) -> str:
    """A path with `H` and `V` for lines along the axes, and no space or zero that it can spare."""
    words = [
        ZEROS.sub(lambda found: found[1] or "", word) if "." in word else word
        for word in path.split()
    ]
    here: Sequence[str | None] = (None, None)
    short, at = [], 0
    while at < len(words):
        letter = words[at]
        if letter not in NUMBERS_AFTER:
            return path
        numbers = words[at + 1 : at + 1 + NUMBERS_AFTER[letter]]
        at += 1 + len(numbers)
        if letter == "L" and numbers[1] == here[1]:
            short.append(f"H{numbers[0]}")
        elif letter == "L" and numbers[0] == here[0]:
            short.append(f"V{numbers[1]}")
        else:
            short.append(letter + " ".join(numbers))
        here = numbers[-2:] or here
    return "".join(short)
