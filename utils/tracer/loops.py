"""Which iterations of its loops each event is in: lanes are compared iteration by iteration."""

import ast
import functools
import inspect
import linecache
import textwrap
from dataclasses import dataclass

import numpy as np

from .grouping import group, rank_among
from .record import LINE, NOT_TAKEN, TAKEN


@dataclass(frozen=True)
class Loop:
    """A for or while: its line, its body's first and last line, what tells of a new iteration.

    marked_by_branch: the body begins with an if on one line, so that its decision marks an
        iteration; else its first statement does.
    """

    filename: str
    line: int
    first: int
    last: int
    marked_by_branch: bool


def loops_in(tree, filename, shift=0):
    """All loops of a syntax tree, outer ones first."""
    loops = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.While)):
            start = node.body[0]
            nested = getattr(node.body[0], "body", None)
            one_line = bool(nested) and nested[0].lineno == start.lineno
            if start.lineno == node.lineno or one_line and not isinstance(start, ast.If):
                # several statements report the same line: its iterations cannot be told apart
                continue
            loops.append(
                Loop(
                    filename,
                    node.lineno + shift,
                    start.lineno + shift,
                    node.body[-1].end_lineno + shift,
                    one_line,
                )
            )
    return sorted(loops, key=lambda loop: (loop.line, -loop.last))


@functools.lru_cache(maxsize=64)
def loops_of_source(filename, source):
    try:
        return loops_in(ast.parse(source), filename)
    except SyntaxError:
        return None


def loops_of(filename, function):
    """The loops in a file; if it does not parse (a cell with magics), those of `function`."""
    loops = loops_of_source(filename, "".join(linecache.getlines(filename)))
    if loops is None and function and function.__code__.co_filename == filename:
        lines, first = inspect.getsourcelines(function)
        return loops_in(
            ast.parse(textwrap.dedent("".join(lines))),
            filename,
            max(first, 1) - 1,
        )
    return loops or []


def iterations(events, function):
    """A number for each event: equal numbers are in the same iterations of the same loops."""
    label = np.zeros(len(events), np.int64)
    count = 1
    line = lines_of(events)
    for filename in {site.filename for site in events.sites}:
        in_file = are_in(events, filename)
        for loop in loops_of(filename, function):
            inside = in_file & (loop.first <= line) & (line <= loop.last)
            if not inside.any():
                continue
            entries, marks = marks_of(events, loop, in_file, line)
            entry, iteration = positions(events, entries, marks, label)
            numbers, first = group(label[inside], entry[inside], iteration[inside])
            label[inside] = numbers + count
            count += len(first)
    return label


def lines_of(events):
    """The line of each event."""
    return np.array([site.line for site in events.sites] or [0])[events.site]


def are_in(events, filename):
    """Which events are in a file."""
    return np.array([site.filename == filename for site in events.sites])[events.site]


def marks_of(events, loop, in_file, line):
    """Which events tell that a thread has come to a loop, and which that a round of it begins."""
    kinds = (TAKEN, NOT_TAKEN) if loop.marked_by_branch else (LINE,)
    marks = in_file & (line == loop.first) & np.isin(events.kind, kinds)
    entries = in_file & (line == loop.line) & (events.kind == LINE)
    return entries, marks


def in_different_rounds(events, function, one, other):
    """Whether two events are in one loop, but not in the same round of it."""
    line = lines_of(events)
    filename = events.site_of(one).filename
    if events.site_of(other).filename != filename:
        return False
    in_file = are_in(events, filename)
    for loop in loops_of(filename, function):
        if not all(loop.first <= line[event] <= loop.last for event in (one, other)):
            continue
        entries, marks = marks_of(events, loop, in_file, line)
        entry, turn = positions(events, entries, marks, np.zeros(len(events), np.int64))
        if (entry[one], turn[one]) != (entry[other], turn[other]):
            return True
    return False


def positions(events, entries, marks, label):
    """(how often the thread entered the loop in this iteration of outer ones; which iteration)."""
    order = events.by_thread
    marked = np.cumsum(marks[order])
    last = np.maximum.accumulate(
        np.where(
            entries[order],
            np.arange(len(order)),
            0,
        )
    )
    ranks = np.zeros(len(order), np.int64)
    ranks[entries] = rank_among(events.thread[entries], label[entries])
    entry = np.empty_like(label)
    iteration = np.empty_like(label)
    entry[order] = ranks[order][last]
    iteration[order] = marked - marked[last]
    return entry, iteration
