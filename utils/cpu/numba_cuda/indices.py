"""Indices that are not in range, in words; and which negative ones are meant."""

import ast
import functools
import linecache

from .errors import KernelIndexError


def outside(view, parts, axis, i):
    """The error of index `i` at `axis`, one of the `parts` of an index of `view`."""
    index = parts[0] if len(parts) == 1 else parts
    length = view.shape[axis]
    where = f" (axis {axis} has {length})" if view.ndim > 1 else ""
    text = f"index {show_index(index)} is outside {view.describe()} of shape {view.shape}{where}"
    if i < 0:
        hint = (
            "Negative: on a GPU this quietly takes an element from the end, or other memory. "
            "Check the arithmetic, or guard it with if."
        )
    else:
        hint = (
            "On a GPU this reads or overwrites other memory, and nothing is said. Guard it with if."
        )
    return KernelIndexError(text, hint)


def without_words(parts, axis, i):
    """What `resolve` raises for one who only notes it: a kernel may do it a hundred thousand times.

    The words would take longer than the kernel.
    """
    return KernelIndexError("")


def show_index(index):
    if isinstance(index, tuple):
        return "(" + ", ".join(show_index(part) for part in index) + ")"
    return str(int(index)) if hasattr(index, "__index__") else repr(index)


@functools.lru_cache(maxsize=1024)
def written_with_minus(code, lasti, axis):
    """Whether the index at this instruction is written with a minus at `axis`: a[-1], a[-k].

    numba-cuda counts a signed index below 0 from the end (`fix_integer_index` in its arrayobj.py).
    """
    line, last_line, column, last_column = list(code.co_positions())[lasti // 2]
    if column is None or line != last_line:
        return False
    source = linecache.getline(code.co_filename, line).encode()[column:last_column].decode()
    try:
        node = ast.parse(source.strip(), mode="eval").body
    except SyntaxError:
        return False
    if not isinstance(node, ast.Subscript):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    part = parts[axis] if axis < len(parts) else None
    return isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub)
