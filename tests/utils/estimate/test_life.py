"""The chain of waits of one thread: what overlaps is waited for once."""

from collections import Counter

from utils.estimate.life import UNROLL, Access, life, life_of_accesses
from utils.estimate.operations import Statement
from utils.tracer.record import BARRIER, LINE, READ, WRITE


def statement(line, uses=(), sets=(), **more):
    return Statement(("k", line), Counter(fp32=1), 4.0, frozenset(uses), frozenset(sets), **more)


def line(number):
    return Access(LINE, ("k", number))


def read(number, array="a", **more):
    return Access(READ, ("k", number), "global", array=array, **more)


def write(number):
    return Access(WRITE, ("k", number), "global", array="out")


def waits(statements, *events):
    return life(events, {one.place: one for one in statements})


def test_loads_that_need_nothing_of_one_another_are_waited_for_once():
    first, second = statement(1, sets="x"), statement(2, sets="y")
    last = statement(3, uses="xy")
    found = waits([first, second, last], line(1), read(1), line(2), read(2), line(3), write(3))
    assert found["memory a"] == 1


def test_a_load_whose_index_was_loaded_is_waited_for_after_it():
    first = statement(1, sets="i")
    second = statement(2, uses="i", sets="x", indices=frozenset("i"))
    last = statement(3, uses="x")
    found = waits([first, second, last], line(1), read(1), line(2), read(2), line(3), write(3))
    assert found["memory a"] == 2


def test_loops_that_add_up_have_as_many_loads_under_way_as_are_unrolled():
    adds = statement(1, uses=("total",), sets=("total",), adds_up=True)
    last = statement(2, uses=("total",))
    turns = 4 * UNROLL
    events = [event for _ in range(turns) for event in (line(1), read(1))]
    assert waits([adds, last], *events, line(2), write(2))["memory a"] == turns // UNROLL


def test_a_store_in_the_loop_has_each_load_waited_for():
    moves = statement(1, uses="i")
    events = [event for _ in range(6) for event in (line(1), read(1), write(1))]
    assert waits([moves], *events)["memory a"] == 6


def test_barriers_and_bank_conflicts_are_in_the_chain():
    shares = statement(1, sets="x")
    shared = Access(READ, ("k", 1), "shared", ways=8)
    uses = statement(2, uses="x")
    end = Access(BARRIER, ("k", 2))
    found = waits([shares, uses], line(1), shared, line(2), write(2), end)
    calm = Access(READ, ("k", 1), "shared", ways=1)
    less = waits([shares, uses], line(1), calm, line(2), write(2), end)
    assert found["barriers"] == less["barriers"] == 1
    assert found["steps"] - less["steps"] == 7


def test_what_l1_has_is_no_wait_for_memory():
    loads = statement(1, sets="x")
    uses = statement(2, uses="x")
    found = waits([loads, uses], line(1), read(1, in_l1=True), line(2), write(2))
    assert found["l1"] == 1 and found["memory a"] == 0


def test_of_accesses_alone_a_write_waits_for_what_was_read_before_it():
    both = life_of_accesses([read(1), read(2, "b"), write(3)])
    assert both["memory a"] + both["memory b"] == 1  # under way together
    turns = 2 * UNROLL
    many = life_of_accesses([event for _ in range(turns) for event in (read(1), write(2))])
    assert many["memory a"] == turns
