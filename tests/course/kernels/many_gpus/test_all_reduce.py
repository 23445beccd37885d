"""The all-reduce kernels, all ranks of them in one grid: on one GPU, or on the CPU runtime."""

import ctypes

import numpy as np
import pytest
import torch

from course.kernels.many_gpus import communicator as comm
from course.kernels.many_gpus.communicator import Choice
from tests.needs import without_gpu

KINDS = {"float32": (0, torch.float32), "bfloat16": (1, torch.bfloat16)}
HEAP = 1 << 18
OTHERS = pytest.mark.nightly("by day 3 and 8 ranks, and the chapter adds up the numbers of 2 and 4")
RANKS = [pytest.param(2, marks=OTHERS), 3, pytest.param(4, marks=OTHERS), 8]


@pytest.fixture(scope="module", params=RANKS)
def ranks(request):
    communicators = comm.together(request.param, heap=HEAP, patience=20)
    yield communicators
    for c in communicators:
        c.close()


def copy(to, source, bytes):
    library = comm.library()
    assert library.comm_copy(to, source, bytes, None), library.comm_error()


def run(communicators, count, kind, choice, rounds=1):
    """Sums of random numbers, in place and into poisoned memory, compared with float64."""
    number, dtype = KINDS[kind]
    mark = communicators[0].mark()
    bytes = count * dtype.itemsize
    places = [c.address(c.allocate(bytes)) for c in communicators]
    targets = [c.address(c.allocate(bytes)) for c in communicators]
    generator = torch.Generator().manual_seed(count)
    for turn in range(rounds):
        data = [torch.randn(count, generator=generator).to(dtype) for _ in communicators]
        poison = torch.full((count,), float("nan")).to(dtype)
        in_place = turn % 2 == 1
        outs = places if in_place else targets
        for place, target, x in zip(places, targets, data, strict=True):
            copy(place, x.data_ptr(), bytes)
            copy(target, poison.data_ptr(), bytes)
        comm.all_reduce_together(communicators, outs, places, count, number, choice)
        expected = torch.stack(data).double().sum(0)
        results = []
        for out in outs:
            result = torch.empty(count, dtype=dtype)
            copy(result.data_ptr(), out, bytes)
            results.append(result)
        for c in communicators:
            c.check()
        for result in results:
            assert torch.equal(result.view(torch.uint8), results[0].view(torch.uint8))
        rounding = 2**-8 if kind == "bfloat16" else 2**-22
        if choice.algorithm == "ring":
            rounding *= len(communicators) - 1  # what goes round is rounded at every stop
        tolerance = rounding * torch.stack(data).double().abs().sum(0) + 1e-30
        assert bool(((results[0].double() - expected).abs() <= tolerance).all())
    for c in communicators:
        c.release(mark)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 1001])
def test_one_shot(ranks, kind, count):
    run(ranks, count, kind, Choice("one_shot", blocks=2, threads=64), rounds=3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 5, 64, 1003, 4096])
def test_two_shot(ranks, kind, count):
    run(ranks, count, kind, Choice("two_shot", blocks=2, threads=64, unroll=2), rounds=3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", ["push", "ring"])
@pytest.mark.parametrize("count", [8, 1000, 4104])
def test_long_messages(ranks, kind, algorithm, count):
    choice = Choice(algorithm, blocks=2, threads=32, unroll=2)
    run(ranks, count, kind, choice, rounds=3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [8, 256, 1000])
def test_pull(ranks, kind, count):
    run(ranks, count, kind, Choice("pull", blocks=4, threads=64), rounds=3)


@without_gpu("shows the refusal's text only")
def test_refusals(ranks):
    with pytest.raises(comm.CommunicatorError, match="too long for one shot"):
        run(ranks, 8192, "float32", Choice("one_shot", blocks=1))
    with pytest.raises(comm.CommunicatorError, match="16 bytes"):
        run(ranks, 1001, "float32", Choice("ring", blocks=1))
    with pytest.raises(comm.CommunicatorError, match="too few threads"):
        run(ranks, 1024, "float32", Choice("pull", blocks=1, threads=64))


def together_at(communicators, offset, count, choice):
    """One all-reduce of float32 numbers that begin so many bytes behind an allocation."""
    mark = communicators[0].mark()
    places = [c.address(c.allocate(4 * count + 16)) + offset for c in communicators]
    try:
        comm.all_reduce_together(communicators, places, places, count, 0, choice)
    finally:
        for c in communicators:
            c.release(mark)


def test_what_begins_between_two_vectors_is_refused(ranks):
    """A slice such as x[1:]: on a GPU its load of 8 or 16 bytes would end the context."""
    short, long = Choice("one_shot", 1, 32), Choice("two_shot", 1, 32)
    for offset, choice in ((4, short), (8, long)):
        with pytest.raises(comm.CommunicatorError, match="multiple of 16 bytes"):
            together_at(ranks, offset, 4, choice)


def test_a_message_of_nothing_leaves_the_counters_alone():
    """Nobody waits in it, so it must not bring one rank a message further than another."""
    pair = comm.together(2, heap=HEAP, patience=5)
    choice = Choice("one_shot", blocks=1, threads=32)
    how = ctypes.byref(choice.how(0))
    for _ in range(3):  # only rank 0 calls
        place = pair[0].address(pair[0].mark())
        assert comm.library().comm_all_reduce(pair[0]._communicator, place, place, 0, how, None)
    run(pair, 16, "float32", choice, rounds=2)
    for c in pair:
        c.close()


def test_a_ring_of_one_is_refused():
    (alone,) = comm.together(1, heap=HEAP)
    with pytest.raises(comm.CommunicatorError, match="two ranks"):
        together_at([alone], 0, 4, Choice("ring", 1, 32))
    alone.close()


class Quiet:
    """A group whose ranks never run at the same time."""

    def all_gather(self, value):
        return [value]


def test_a_rank_that_does_not_call_is_named():
    """Two ranks, but only one calls: its kernel gives up and says for whom it waited."""
    pair = comm.together(2, heap=HEAP, patience=0.3)
    how = ctypes.byref(Choice("one_shot", blocks=1, threads=32).how(0))
    place = pair[0].address(pair[0].allocate(64))
    pair[1].allocate(64)  # as rank 0 did
    copy(place, np.zeros(16, np.float32).ctypes.data, 64)
    assert comm.library().comm_all_reduce(pair[0]._communicator, place, place, 16, how, None)
    with pytest.raises(
        comm.CommunicatorError, match="rank 0 waited in vain for data words of rank 1"
    ):
        pair[0].check()
    for c in pair:
        c.group = Quiet()
        c.reset()
    places = [c.address(c.allocate(64)) for c in pair]
    comm.all_reduce_together(pair, places, places, 16, 0, Choice("pull", 1, 32))
    for c in pair:
        c.check()
        c.close()
