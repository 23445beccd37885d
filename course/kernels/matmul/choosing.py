"""Which form of Hopper's product a problem gets: the one that a model says is the fastest.

The model adds up what the busiest SM does: it starts, multiplies steps, ends tiles, and adds up
sums that others have left. What each of these takes was measured (`grid --tune`), for every form.
Where memory cannot bring the numbers so fast, memory decides.
"""

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course.kernels.matmul.forms import CPU_SMS, Choice, Float32, Form, Problem
from utils import machine
from utils.occupancy import ceil_div

MEASURED = Path(__file__).with_name("model.json")

#: Blocks that stay, for products of many tiles; then clusters that share a tile's k
FORMS = (
    Form(128, 256, 2, 4, 2),
    Form(128, 256, 2, 4, 1),
    Form(256, 128, 2, 4, 2),
    Form(256, 128, 2, 4, 1),
    Form(128, 192, 2, 5, 2),
    Form(128, 192, 2, 5, 1),
    Form(128, 128, 2, 6, 2),
    Form(128, 128, 2, 6, 1),
    Form(128, 128, 1, 3, 1, 2),
    Form(128, 128, 2, 6, 2, turns=True),
    Form(128, 128, 2, 6, 1, turns=True),
    Form(128, 192, 2, 5, 2, turns=True),
    Form(64, 256, 2, 4, 2, turns=True),
    Form(64, 256, 1, 5, 1),
    Form(64, 128, 1, 4, 1, 2),
    Form(128, 64, 1, 4, 1, 2),
    Form(64, 64, 1, 4, 1, 3),
    Form(64, 128, 1, 8, 2),
    Form(64, 64, 1, 10, 2),
    *(Form(64, 64, 1, 8, split=split) for split in (1, 2, 4, 8)),
    *(Form(64, 128, 1, 6, split=split) for split in (1, 2, 4, 8)),
    *(Form(128, 64, 1, 6, split=split) for split in (1, 2, 4)),
    *(Form(128, 128, 2, 4, split=split) for split in (1, 2, 4)),
)
#: Without tensor cores
FLOAT32 = (
    Float32(128, 256, 32, (64, 64), (8, 16), 3, 1),
    Float32(128, 128, 16, (64, 32), (8, 8), 4, 2),
    Float32(128, 64, 16, (64, 32), (8, 8), 4, 4),
    Float32(64, 64, 16, (32, 32), (8, 4), 4, 4),
    Float32(32, 32, 32, (32, 16), (4, 4), 3, 8),
)
OVERLAPPED = 0.3  # of the shorter of two times that pass together: what it costs all the same
MOST_WAVES = 3  # of blocks that do not stay
FEWEST = 2  # steps of a piece of a tile


@dataclass(frozen=True)
class Costs:
    """Microseconds of a form. start: a launch of a block that does nothing else.

    step: of a tile, with one block on an SM. together: the same for each of as many blocks as an SM
    has room for. tile: a tile's end. piece: sums that another block has left.
    """

    start: float
    step: float
    together: float
    tile: float
    piece: float


@dataclass(frozen=True)
class Work:
    """What the busiest SM does for a choice."""

    blocks: int  # at the same time
    steps: float  # of each
    tiles: float
    pieces: float


def sms() -> int:
    """SMs of this GPU; a few on the CPU runtime."""
    return machine().sms or CPU_SMS


def work_of(choice: Choice, problem: Problem) -> Work:
    """Count it."""
    form = choice.form
    tiles = form.tiles(problem)
    if form.split:
        waves = ceil_div(tiles * form.split, sms() * form.per_sm)
        blocks = min(form.per_sm, ceil_div(tiles * form.split, sms()))
        steps = ceil_div(form.steps(problem), form.split)
        return Work(blocks, waves * steps, waves, waves * (form.split - 1))
    clusters = choice.clusters
    blocks = min(form.per_sm, ceil_div(clusters * form.cluster, sms()))
    left = tiles - choice.whole
    ends = ceil_div(choice.whole, clusters)
    steps = ends * form.steps(problem)
    if not left:
        return Work(blocks, steps, ends, 0)
    if choice.cuts:
        steps += ceil_div(form.steps(problem), choice.cuts)
        return Work(blocks, steps, ends + 1, choice.cuts - 1)
    steps += ceil_div(left * form.steps(problem), clusters)
    return Work(blocks, steps, ends + 1, ceil_div(clusters, left))


def forms_of(kind: str) -> tuple[Form | Float32, ...]:
    """That multiply numbers of a kind."""
    return FLOAT32 if kind == "fp32" else FORMS


def choices(problem: Problem, forms=()) -> Iterator[Choice]:
    """What may be launched. forms: all of the kind, unless given."""
    for form in forms or forms_of(problem.kind):
        if form.split:
            waves = form.tiles(problem) * form.split / (sms() * form.per_sm)
            if form.steps(problem) >= form.split and waves < MOST_WAVES:
                yield Choice(form)
        elif problem.kind == "fp32":
            yield from _streams(form, form.tiles(problem), form.steps(problem))
        else:
            yield from _cuts(form, form.tiles(problem), form.steps(problem))


def _cuts(form: Form, tiles: int, steps: int) -> Iterator[Choice]:
    """All tiles whole, or the last ones cut into equal parts."""
    places = form.clusters
    yield Choice(form, min(tiles, places), tiles)
    left = tiles % places
    most = min(places // left, steps // FEWEST) if left else 0
    for cuts in sorted({2, 3, 4, 6, 8, most}):
        if 1 < cuts <= most:
            clusters = places if tiles > left else left * cuts
            yield Choice(form, clusters, tiles - left, cuts)


def _streams(form: Float32, tiles: int, steps: int) -> Iterator[Choice]:
    """All tiles whole, or the last ones as one stream."""
    places = form.clusters
    yield Choice(form, min(tiles, places), tiles)
    left = tiles % places
    if tiles > places and left:
        yield Choice(form, places, tiles - left)
        yield Choice(form, places, tiles - left - places)
    if tiles < places:
        most = min(places, tiles * steps // FEWEST)
        for parts in {2, 3, 4, most // tiles}:
            if 1 < parts <= most // tiles:
                yield Choice(form, tiles * parts, 0)
        if tiles < most and most % tiles:
            yield Choice(form, most, 0)


@functools.cache
def measured() -> dict:
    """What `grid --tune` has found: the costs of forms, and the speed of memory."""
    return json.loads(MEASURED.read_text(encoding="utf-8"))


def key(form: Form | Float32, kind: str) -> str:
    """Under which its costs are kept: two kinds of 16-bit numbers have the same."""
    return f"{'bf16' if kind == 'fp16' else kind}/{form}"


def is_measured(form: Form | Float32, kind: str) -> bool:
    """Whether its costs are known."""
    return key(form, kind) in measured()["forms"]


@functools.cache
def costs(form: Form | Float32, kind: str) -> Costs:
    """Of a form, as measured."""
    return Costs(**measured()["forms"][key(form, kind)])


def shared_share(work: Work, form: Form | Float32) -> float:
    """How near an SM is to having as many blocks as it has room for: 0 for one, 1 for all."""
    return (work.blocks - 1) / (form.per_sm - 1) if form.per_sm > 1 else 0.0


def predicted(choice: Choice, problem: Problem) -> float:
    """Microseconds, by the model."""
    work = work_of(choice, problem)
    cost = costs(choice.form, problem.kind)
    step = cost.step + shared_share(work, choice.form) * (cost.together - cost.step)
    busy = work.steps * step + work.tiles * cost.tile + work.pieces * cost.piece
    memory = moved(problem) / measured()["bytes_per_us"]
    return cost.start + max(busy, memory) + OVERLAPPED * min(busy, memory)


def moved(problem: Problem) -> int:
    """Bytes that memory moves: what is read, and what has to leave the L2 cache for all that comes.

    Somebody else's results fill the cache, as the clock leaves it; ours stay there at the end.
    """
    leaving = min(problem.reads, measured()["cached"]) + problem.writes
    return problem.reads + leaving


@functools.lru_cache(maxsize=4096)
def best(problem: Problem) -> Choice:
    """The choice that the model says is the fastest, among forms that were measured."""
    known = [each for each in choices(problem) if is_measured(each.form, problem.kind)]
    return min(known, key=lambda choice: predicted(choice, problem))
