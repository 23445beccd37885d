"""The steps of a film (film.py) in words: who does what, what it costs, and what goes wrong."""

import numpy as np

from .counts import WARP
from .film_order import BARRIERS, STUCK
from .record import ATOMIC, BEGUN, FLIGHTS, LINE, MEETING, NOT_TAKEN, READ, SYNCWARP, TAKEN, WRITE

VERBS = {READ: "read", WRITE: "write", ATOMIC: "change"}


def described(film, step, number):
    """A step, the number of which among all is given."""
    who = warp_name(film, step.warp)
    line = film.trace.source[film.row_of(step)][1]
    if step.kind == STUCK:
        return f"The barrier in line {line} never opens: {missing(film, step)}."
    lanes = lanes_of(film, step)
    if step.kind in BARRIERS:
        if step.opens:
            return f"{who}: {lanes} at the barrier in line {line}. All are here: it opens."
        return f"{who}: {lanes} wait{'s' * (len(step.events) == 1)} at the barrier in line {line}."
    if step.kind == LINE:
        runs = f"run{'s' * (len(step.events) == 1)}"
        return f"{who}: {lanes} {runs} line {line}{decision(film, step)}."
    if step.kind in FLIGHTS:
        return f"{who}, line {line}: {flight(film, step, lanes)}."
    if step.kind in (SYNCWARP, MEETING):
        return f"{who}: {lanes} meet in line {line}."
    return f"{who}, line {line}: {access(film, step, lanes)}{raced(film, number)}"


def flight(film, step, lanes):
    """What begins, or has arrived, without a thread that waits for it."""
    first, last = (film.events.element_of(i) for i in (step.events[0], step.events[-1]))
    what = first if first == last else f"{first} … {last}"
    size = int(film.events.size[list(step.events)].sum())
    many = len(step.events) > 1
    if not size:
        begun = f"{lanes} begin{'s' * (not many)} a wgmma that reads from {what} on"
        return begun if step.kind == BEGUN else f"the wgmma that reads from {what} on is done"
    if step.kind == BEGUN:
        return f"{lanes} begin{'s' * (not many)} a copy of {size:,} bytes to {what}"
    return f"the copy of {size:,} bytes to {what} has arrived"


def mistaken(film, event):
    """What is to be said of a wrong access."""
    events = film.events
    who = thread_name(film, int(events.thread[event]))
    if events.outside[event]:
        memory = events.memory_of(event)
        shape = ", ".join(map(str, memory.shape))
        return f" OUTSIDE: {who} leaves {memory.name}, which has the shape ({shape})."
    element = events.element_of(event)
    return f" UNWRITTEN: {who} reads {element}, which nothing has written yet."


def decision(film, step):
    """How the lanes of a statement divide at its branch; "" if they do not."""
    events = film.events
    after = np.minimum(np.array(step.events) + 1, len(events) - 1)
    own = after[events.thread[after] == events.thread[list(step.events)]]
    taken = int((events.kind[own] == TAKEN).sum())
    not_taken = int((events.kind[own] == NOT_TAKEN).sum())
    if not taken or not not_taken:
        return ""
    return f" and part: true for {taken}, false for {not_taken}"


def warp_name(film, warp):
    """A warp, and its block if the film shows several."""
    block, number = divmod(warp, film.events.warps_a_block)
    name = f"warp {number}"
    if len(film.blocks) > 1:
        name = f"{film.trace.unit} {film.trace.point(block, film.trace.grid)}, {name}"
    return name[0].upper() + name[1:]


def lanes_of(film, step):
    """Who takes part in a step."""
    lanes = film.events.lane[list(step.events)].tolist()
    if len(lanes) == 1:
        return f"lane {lanes[0]}"
    there = int(film.events.lanes_of(np.array([step.warp]))[0])
    return f"all {there} lanes" if len(lanes) == there == WARP else f"{len(lanes)} of {there} lanes"


def access(film, step, lanes):
    """What the lanes of a step do to memory, and what it costs."""
    events = film.events
    elements = list(dict.fromkeys(events.element_of(i) for i in step.events))
    verb = VERBS[step.kind] + "s" * (len(step.events) == 1)
    what = elements[0] if len(elements) == 1 else f"{elements[0]} … {elements[-1]}"
    cost = f"{step.sectors} sector{'s' * (step.sectors != 1)}"
    if step.passes:
        cost = f"{step.passes} pass{'es' * (step.passes != 1)}"
    if step.fewest < (step.sectors or step.passes):
        cost += f", {step.fewest} would do"
    if step.queue > 1:
        cost += f"; {step.queue} lanes queue for one element"
    return f"{lanes} {verb} {what}: {cost}."


def raced(film, number):
    """What is to be said of a race, or of a mistake, at this step."""
    if number != film.stop or not film.wrong:
        return ""
    events = film.events
    if film.race is None:
        return mistaken(film, film.wrong[0])
    first, second = film.race
    one, other = (thread_name(film, int(events.thread[i])) for i in film.race)
    element = events.element_of(first)
    early = film.is_too_early
    kinds = int(events.kind[first]), int(events.kind[second])
    if early:
        text = f"{one} reads {element}, which {other} has not written yet"
    elif kinds[1] == READ:
        text = f"{other} reads {element}, which {one} has changed already"
    elif kinds[0] == READ:
        text = f"{other} changes {element}, which {one} has just read"
    else:
        text = f"{one} and {other} both change {element}"
    got = shortened(float(events.value[first if early else second]))
    if got is not None and READ in (kinds[1], kinds[0] if early else None):
        text += f", and gets {got}"
    return f" RACE: {text}. Nothing says which of them comes first."


def thread_name(film, thread):
    """A thread, and its block if the film shows several."""
    block, rank = divmod(thread, film.trace.threads_a_block)
    name = f"thread {film.trace.point(rank, film.trace.block)}"
    if len(film.blocks) > 1:
        name += f" of {film.trace.unit} {film.trace.point(block, film.trace.grid)}"
    return name


def missing(film, step):
    """Who does not come to a barrier at which others wait."""
    events = film.events
    block = film.block_of(step.warp)
    epoch = events.epoch[step.events[0]]
    came = (events.block == block) & (events.epoch == epoch) & np.isin(events.kind, BARRIERS)
    came &= events.site == events.site[step.events[0]]
    waiting = len(np.unique(events.thread[came]))
    absent = film.trace.threads_a_block - waiting
    wait = f"{waiting} thread{' waits' if waiting == 1 else 's wait'} there"
    return f"{wait}, {absent} never come{'s' * (absent == 1)}"


def shortened(value):
    """A value as the player writes it: a number of a few digits, or text; None if unknown."""
    if np.isnan(value):
        return None
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e15:
        return int(value)
    return float(f"{value:.4g}")
