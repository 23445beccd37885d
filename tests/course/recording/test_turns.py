"""Notebooks run several at a time, a cell that times something alone, and a budget is kept."""

import asyncio

import pytest

from course.recording import turns

TIMEOUT = 60  # seconds until a test that waits for ever fails


class Log:
    """Who is at work: what each saw beside itself."""

    def __init__(self):
        self.now, self.beside = set(), {}

    async def work(self, name, rounds=3):
        self.now.add(name)
        seen = self.beside.setdefault(name, set())
        for _ in range(rounds):
            await asyncio.sleep(0)
            seen |= self.now - {name}
        self.now.remove(name)


def run(jobs, at_once=4, left=lambda: 1):
    return asyncio.run(asyncio.wait_for(turns.run(jobs, at_once, left), TIMEOUT))


def notebook(log, gate, name, cells):
    """A job with cells: "-" runs together with others, "t" is timed."""

    async def work():
        for number, kind in enumerate(cells):
            async with gate.alone() if kind == "t" else gate.together():
                await log.work(f"{name}{number}{kind}")

    return turns.Job(name, work)


@pytest.mark.parametrize("cells", ["--t-", "t---", "---t", "tttt", "-t-t"])
def test_what_is_timed_has_no_company_and_what_is_not_has(cells):
    async def all_of_them():
        log, gate = Log(), turns.Turns()
        jobs = [notebook(log, gate, name, cells) for name in "abcd"]
        assert await turns.run(jobs, 4, lambda: 1) == {}
        return log.beside

    beside = asyncio.run(asyncio.wait_for(all_of_them(), TIMEOUT))
    assert len(beside) == 16  # all cells of all
    assert [name for name, seen in beside.items() if name.endswith("t") and seen] == []
    assert "-" not in cells or any(beside.values())


def test_who_waits_to_be_alone_comes_before_those_who_come_later():
    order = []

    async def one(turn, name):
        async with turn:
            order.append(name)
            await asyncio.sleep(0)

    async def all_of_them():
        gate = turns.Turns()
        works = [one(gate.together(), "a"), one(gate.alone(), "t"), one(gate.together(), "b")]
        await asyncio.gather(*works)

    asyncio.run(asyncio.wait_for(all_of_them(), TIMEOUT))
    assert order == ["a", "t", "b"]


def test_at_most_so_many_run_at_once():
    log, most = Log(), []

    async def work(name):
        await log.work(name)
        most.append(len(log.beside[name]) + 1)

    jobs = [turns.Job(name, lambda name=name: work(name)) for name in "abcdef"]
    assert run(jobs, at_once=2) == {}
    assert max(most) >= 2 and len(log.beside) == 6
    most.clear()
    log.beside.clear()
    run(jobs, at_once=1)
    assert most == [1] * 6


def test_two_that_write_the_same_file_never_meet():
    log = Log()
    needs = {"a": "xy", "b": "yz", "c": "zx", "d": "w"}
    jobs = [
        turns.Job(name, lambda name=name: log.work(name), frozenset(need))
        for name, need in needs.items()
    ]
    assert run(jobs) == {}
    assert all("d" in log.beside[name] or name in log.beside["d"] for name in "a")
    assert [log.beside[name] & set("abc") for name in "abc"] == [set()] * 3


def test_one_that_fails_stops_no_other_and_gives_its_turn_back():
    log, gate = Log(), turns.Turns()

    async def bad():
        async with gate.alone():
            raise ValueError("cell x: no such thing")

    jobs = [turns.Job("bad", bad), notebook(log, gate, "good", "t-")]
    assert run(jobs) == {"bad": "cell x: no such thing"}
    assert set(log.beside) == {"good0t", "good1-"}


def test_when_the_budget_is_used_up_nothing_more_begins():
    log, left = Log(), [1, 1, 0, 0]

    async def work(name):
        await log.work(name)

    jobs = [turns.Job(name, lambda name=name: work(name)) for name in "abcd"]
    failed = run(jobs, at_once=1, left=lambda: left.pop(0))
    assert set(log.beside) == {"a", "b"}
    assert failed == {name: "not run, the time was used up" for name in "cd"}
