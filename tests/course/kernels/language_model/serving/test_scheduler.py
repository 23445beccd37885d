"""The scheduler: nothing lost, nothing shared that is written, and everybody served alike."""

from collections import Counter

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from course.kernels.language_model import reference
from course.kernels.language_model.problem import TOY, weights
from course.kernels.language_model.serving.engine import Engine, Request
from course.kernels.language_model.serving.runner import PyTorchRunner
from course.kernels.language_model.serving.sampling import Sampling
from course.kernels.language_model.serving.scheduler import BLOCK, Pool, Scheduler, Sequence
from tests.course.kernels.language_model.serving.alone import (
    Guarded,
    alone,
    by_checksum,
    crowded,
    everything,
)
from utils.occupancy import ceil_div

COMMON = [17 * i % 256 for i in range(60)]  # prompts begin alike, as they do behind one product


def engine_of(blocks, budget=64, places=8, ahead=False) -> Engine:
    """An engine whose runner watches its blocks."""
    runner = Guarded(blocks)
    runner.scheduler = Scheduler(blocks, budget, places)
    return Engine(runner, runner.scheduler, ahead)


class Serving(RuleBasedStateMachine):
    """Requests that come and go in any order, in a cache that may be far too small for them."""

    @initialize(
        blocks=st.integers(4, 20),
        places=st.integers(1, 5),
        more=st.integers(0, 30),
        ahead=st.booleans(),
    )
    def begin(self, blocks, places, more, ahead):
        self.engine = engine_of(blocks, places + more, places, ahead)
        self.scheduler = self.engine.scheduler
        self.came, self.served, self.first_served = [], {}, []

    @rule(
        alike=st.integers(0, 50),
        own=st.lists(st.integers(0, 255), min_size=1, max_size=20),
        most=st.integers(1, 20),
        choices=st.sampled_from((1, 1, 3)),
    )
    def a_request_comes(self, alike, own, most, choices):
        request = Request(COMMON[:alike] + own, most, choices=choices)
        if ceil_div(len(request.prompt) + most, BLOCK) > len(self.scheduler.pool.users):
            with pytest.raises(ValueError, match="blocks; there are"):
                self.engine.add(request)
            return
        self.engine.add(request)
        self.came.append(request)

    @precondition(lambda self: self.came)
    @rule(data=st.data())
    def somebody_leaves(self, data):
        request = data.draw(st.sampled_from(self.came))
        self.came.remove(request)
        self.engine.cancel(request)

    @rule()
    def a_step(self):
        decoding = [s for s in self.scheduler.running if s.missing == 1]
        drawn = self.engine.step()
        self.keep(drawn)
        went_on = {chunk.sequence for chunk in self.engine.plan.chunks}
        for sequence in decoding:  # no prompt of somebody else's holds them up
            assert sequence in went_on or sequence in self.engine.plan.preempted
        assert sum(chunk.count for chunk in self.engine.plan.chunks) <= self.scheduler.budget

    def keep(self, drawn):
        for each in drawn:
            if each.request in self.came and each.request not in self.first_served:
                self.first_served.append(each.request)
            self.served.setdefault((each.request, each.choice), []).append(each.token)

    @invariant()
    def no_block_is_lost(self):
        pool = self.scheduler.pool
        tables = [block for s in self.scheduler.running for block in s.table]
        counts = Counter(tables)
        assert pool.users == [counts[block] for block in range(len(pool.users))]
        assert set(pool.free) == {block for block, users in enumerate(pool.users) if users == 0}
        assert not any(sequence.table for sequence in self.scheduler.waiting)
        assert {block: prefix for prefix, block in pool.holder.items()} == pool.held
        assert len(self.scheduler.running) <= self.scheduler.places

    def teardown(self):
        if not hasattr(self, "engine"):
            return
        self.keep(everything(self.engine))
        self.no_block_is_lost()
        assert len(self.scheduler.pool.free) == len(self.scheduler.pool.users)
        for request in self.came:
            expected = by_checksum(request.prompt, request.most)
            for choice in range(request.choices):
                assert self.served[request, choice] == expected


TestServing = Serving.TestCase
TestServing.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.nightly("by day fewer runs by the same rules")
class TestServingForLong(Serving.TestCase):
    settings = settings(TestServing.settings, max_examples=200)


def test_who_comes_first_begins_first():
    engine = engine_of(blocks=6, places=3)
    requests = [Request([number] * (1 + 13 * number % 60), 8) for number in range(20)]
    for request in requests:
        engine.add(request)
    begun = []
    while engine.busy:
        engine.step()
        begun += [chunk.sequence.tokens[0] for chunk in engine.plan.chunks]
    assert list(dict.fromkeys(begun)) == list(range(20))


def test_a_long_prompt_stops_nobody():
    """Each step is a token of everybody who decodes, and a piece of the prompt."""
    engine = engine_of(blocks=60, budget=16)
    short = Request([1, 2, 3], 40)
    engine.add(short)
    engine.step()
    engine.add(Request(list(range(200)), 5))
    for _ in range(13):
        assert [drawn.request for drawn in engine.step()] == [short]
        assert [chunk.count for chunk in engine.plan.chunks] == [1, 15]


def test_equal_beginnings_are_computed_once():
    engine = engine_of(blocks=40)
    engine.add(Request(COMMON[:50], 3))
    everything(engine)
    engine.add(Request([*COMMON[:50], 9, 9], 3))
    engine.step()
    (chunk,) = engine.plan.chunks
    assert (chunk.first, chunk.count) == (48, 4)


def test_the_last_token_is_computed_even_if_all_blocks_are_known():
    engine = engine_of(blocks=40)
    for _ in range(2):
        engine.add(Request(COMMON[:32], 3))
        tokens = [drawn.token for drawn in everything(engine)]
    assert tokens == by_checksum(COMMON[:32], 3)
    assert engine.scheduler.pool.users == [0] * 40


def test_choices_share_their_prompt_until_they_write():
    engine = engine_of(blocks=40)
    engine.add(Request(COMMON[:20], 5, choices=3))
    engine.step()
    tables = [sequence.table for sequence in engine.scheduler.running]
    assert tables[0] == tables[1] == tables[2]
    engine.step()
    first, last = zip(*(sequence.table for sequence in engine.scheduler.running), strict=True)
    assert len(set(first)) == 1
    assert len(set(last)) == 3
    assert len(engine.plan.copies) == 2  # the third is alone with the block by then


def test_somebody_is_preempted_and_gets_the_same():
    engine = engine_of(blocks=5, places=2)
    prompts = [[1] * 30, [2] * 30]
    for prompt in prompts:
        engine.add(Request(prompt, 30))
    tokens, preempted = {1: [], 2: []}, []
    while engine.busy:
        for drawn in engine.step():
            tokens[drawn.request.prompt[0]].append(drawn.token)
        preempted += engine.plan.preempted
    assert {sequence.tokens[0] for sequence in preempted} == {2}
    assert list(tokens.values()) == [by_checksum(prompt, 30) for prompt in prompts]


def test_who_is_preempted_is_first_in_the_line():
    engine = engine_of(blocks=5, places=2)
    for number in (1, 2, 3):
        engine.add(Request([number] * 30, 30))
    while not engine.plan.preempted:
        engine.step()
    assert [sequence.tokens[0] for sequence in engine.scheduler.waiting] == [2, 3]


def test_what_could_never_run_is_refused():
    with pytest.raises(ValueError, match="65 tokens need 5 blocks; there are 4"):
        Scheduler(4).add(Sequence([1] * 60, most=5))
    with pytest.raises(ValueError, match="a step of 4 tokens has no room for 8 sequences"):
        Scheduler(4, budget=4, places=8)


def test_a_taken_block_is_no_longer_found():
    pool = Pool(1)
    block = pool.take()
    pool.hold(b"prefix", block)
    pool.give_back(block)
    assert pool.holder == {b"prefix": block}
    assert pool.take() == block
    assert pool.holder == {} == pool.held


def test_prefixes_differ_where_an_earlier_block_does():
    one = Sequence([0] * 32)
    other = Sequence([1] + [0] * 31)
    assert one.prefix(0) == Sequence([0] * 16).prefix(0)
    assert one.prefix(1) != other.prefix(1)


def test_the_model_writes_the_same_for_many_as_for_one():
    """In float64; among them prompts in pieces, equal beginnings, and one that is preempted."""
    own = weights(TOY, dtype=torch.float64)
    runner = PyTorchRunner(TOY, own, 8)
    runner.k.fill_(1e9)  # nobody may look where nothing was written
    runner.v.fill_(1e9)
    engine = Engine(runner, Scheduler(8, budget=10, places=4))
    requests = [Request(COMMON[:n], 20, choices=1 + n % 2) for n in (29, 30, 28, 3, 40, 20)]
    tokens = crowded(engine, requests)
    for request in requests:
        for choice in range(request.choices):  # each token is the likeliest after those before it
            own_tokens = tokens[request, choice]
            before = torch.tensor([[*request.prompt, *own_tokens[:-1]]])
            logits = reference.forward(TOY, own, before)[0, len(request.prompt) - 1 :]
            assert own_tokens == logits.argmax(-1).tolist()
        assert alone(PyTorchRunner(TOY, own, 8), request.prompt, 20) == tokens[request, 0]


def test_an_engine_that_goes_ahead_is_a_step_late():
    """The same tokens in as many steps, and one more for the last of them to come."""
    tokens, steps = [], []
    for ahead in (False, True):
        engine = engine_of(blocks=20, ahead=ahead)
        for number in range(3):
            engine.add(Request([number] * 9, 6 + number))
        drawn = []
        while engine.busy:
            drawn.append(sorted((d.request.prompt[0], d.token) for d in engine.step()))
        tokens.append([each for each in drawn if each])
        steps.append(len(drawn))
    assert tokens[0] == tokens[1]
    assert steps[1] == steps[0] + 1


def test_chance_is_a_requests_own():
    """Who else is there changes nothing of what is drawn."""
    way = Sampling(temperature=2.0)
    drawn = []
    for others in (0, 5):
        runner = PyTorchRunner(TOY, weights(TOY, dtype=torch.float64), 40)
        engine = Engine(runner, Scheduler(40))
        request = Request(COMMON[:9], 12, way, choices=2, seed=5)
        for number in range(others):
            engine.add(Request([number], 7, way, seed=number))
        engine.add(request)
        drawn.append([(d.choice, d.token) for d in everything(engine) if d.request is request])
    assert sorted(drawn[0]) == sorted(drawn[1])
    first, second = ([t for c, t in drawn[0] if c == choice] for choice in (0, 1))
    assert first != second
