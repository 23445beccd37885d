"""The GPU's queue: one at a time, in order, and nobody forges a place, removes another's, or holds
the others up.
"""

import fcntl
import os
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes import completed, wait_until
from utils import gpu_queue, timing
from utils.files import ROOT
from utils.gpu_queue import tickets, turns, words
from utils.gpu_queue.tickets import Place, Ticket, View
from utils.gpu_queue.turns import Turn

GPU = "GPU-1"
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can be several users")
ANN, BOB, EVE = 70_001, 70_002, 70_003  # user ids that need no account


@pytest.fixture
def queue():
    """A queue's folder, which other users can reach."""
    folder = tickets.make_folder(Path("/dev/shm" if os.path.isdir("/dev/shm") else "/tmp") / name())
    yield folder
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def name():
    return f"gpu-queue-test-{os.getpid()}-{time.monotonic_ns()}"


@contextmanager
def process(work, user=None):
    """A copy of this process that does something, as another user if one is given; its id."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            if user:
                os.setuid(user)
            work()
            status = 0
        finally:
            os._exit(status)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def ended(pid):
    """Wait for a copy to end by itself; whether its work raised nothing."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT).si_status == 0


def waiting(queue):
    """How many tickets are in the queue."""
    return len(list(queue.glob(f"*{tickets.TICKET}")))


def visit(queue, log, label, seconds=0.0, tickets_seen=0):
    """Have a turn, and write down when it began and ended: after so many came to the queue."""
    turn = Turn(queue, GPU)
    turn.start()
    note(log, f"{label} in")
    time.sleep(seconds)
    wait_until(lambda: waiting(queue) >= tickets_seen)
    note(log, f"{label} out")
    turn.end()


def note(log, text):
    with open(log, "a") as file:
        file.write(text + "\n")


def hold(queue):
    """Take the turn and never give it back."""
    Turn(queue, GPU).start()
    time.sleep(600)


def test_turns_come_in_the_order_of_arrival_and_one_at_a_time(queue, tmp_path):
    log = tmp_path / "log"
    first = Turn(queue, GPU)
    assert first.start()
    with process(lambda: visit(queue, log, "a", 0.05)) as a:
        wait_until(lambda: waiting(queue) == 2)
        with process(lambda: visit(queue, log, "b", 0.05)) as b:
            wait_until(lambda: waiting(queue) == 3)
            with process(lambda: visit(queue, log, "c")) as c:
                wait_until(lambda: waiting(queue) == 4)
                assert not log.exists()
                first.end()
                assert all(map(ended, (a, b, c)))
    assert log.read_text().split("\n")[:-1] == ["a in", "a out", "b in", "b out", "c in", "c out"]
    assert list(queue.iterdir()) == []


def test_who_is_killed_leaves_at_once_whether_at_work_or_waiting(queue):
    with process(lambda: hold(queue)) as holder, process(lambda: hold(queue)) as other:
        wait_until(lambda: waiting(queue) == 2)
        place = Place(queue, GPU)
        view = View(place, 60)
        assert len(view.look()) == 3
        os.kill(other, signal.SIGKILL)
        wait_until(lambda: len(view.look()) == 2)
        os.kill(holder, signal.SIGKILL)
        wait_until(lambda: len(view.look()) == 1)
        place.leave()
    assert waiting(queue) == 0  # what the dead left is removed by their owner's next request


def test_a_turn_has_an_end(queue, monkeypatch):
    monkeypatch.setattr(turns, "SECONDS", 0.2)
    monkeypatch.setattr(turns, "GRACE", 0.1)
    with process(lambda: hold(queue)):
        wait_until(lambda: list(queue.glob(f"*{tickets.TURN}")))
        late = Turn(queue, GPU)
        late.start()
        assert 0.1 < late.waited < 5
        late.end()
        later = Turn(queue, GPU)  # knows by the mark since when the turn lasts
        later.start()
        assert later.waited < 0.2
        later.end()


def test_what_is_longer_than_a_turn_lets_others_go_first(queue, tmp_path, monkeypatch):
    monkeypatch.setattr(turns, "SECONDS", 0.1)
    log = tmp_path / "log"
    long = Turn(queue, GPU)
    long.start()
    assert not long.renew()
    with process(lambda: visit(queue, log, "other")) as other:
        wait_until(lambda: waiting(queue) == 2 and time.monotonic() - long.began > 0.1)
        assert long.renew()
        note(log, "long again")
        assert ended(other)
    long.end()
    assert log.read_text().split("\n")[:-1] == ["other in", "other out", "long again"]


def test_who_is_stopped_holds_nobody_up_and_goes_behind_them_afterwards(
    queue, tmp_path, monkeypatch
):
    """The limit of a turn is far: what passes over a stopped one is that it looks no more."""
    monkeypatch.setattr(tickets, "STOPPED", 0.6)
    monkeypatch.setattr(tickets, "LATE", 0.4)
    monkeypatch.setattr(turns, "SECONDS", 600)
    log = tmp_path / "log"
    first = Turn(queue, GPU)
    first.start()
    with process(lambda: visit(queue, log, "stopped")) as stopped:
        wait_until(lambda: waiting(queue) == 2 and list(queue.glob(f"*{tickets.SEEN}")))
        os.kill(stopped, signal.SIGSTOP)
        old = set(queue.glob(f"*-{stopped}-*{tickets.TICKET}"))
        first.end()
        late = Turn(queue, GPU)
        late.start()
        os.kill(stopped, signal.SIGCONT)
        wait_until(lambda: set(queue.glob(f"*-{stopped}-*{tickets.TICKET}")) - old)
        note(log, "late out")
        late.end()
        assert ended(stopped)
    assert log.read_text().split("\n")[:-1] == ["late out", "stopped in", "stopped out"]


@AS_ROOT
def test_who_renews_a_ticket_all_the_time_makes_nobody_measure_together(queue):
    """Newcomers once drew anew whenever another's time was near theirs, and gave up in the end."""
    log = queue / "log"
    log.touch()
    log.chmod(0o666)

    def renews():
        place = Place(queue, GPU)
        while True:
            os.fchmod(place.handle, 0o644)
            time.sleep(0.003)

    def measures(label):
        turn = Turn(queue, GPU)
        assert turn.start()
        note(log, f"{label} in")
        time.sleep(0.2)
        note(log, f"{label} out")
        turn.end()

    with process(renews, EVE):
        wait_until(lambda: waiting(queue) == 1)
        with process(lambda: measures("ann"), ANN) as ann:
            with process(lambda: measures("bob"), BOB) as bob:
                assert ended(ann) and ended(bob)
    lines = log.read_text().split("\n")[:-1]
    assert sorted(lines[:2]) in (["ann in", "ann out"], ["bob in", "bob out"])
    assert len(lines) == 4


def test_the_order_is_all_first_requests_then_the_second_ones():
    def ticket(owner, since, drawn):
        return Ticket(f"g.{since:020}-1-a.ticket", owner, drawn, 1)

    drawn = [ticket(1, 1, 10), ticket(1, 2, 11), ticket(2, 1, 30), ticket(3, 1, 20)]
    order = [(t.owner, t.drawn) for t in tickets.in_order(drawn)]
    assert order == [(1, 10), (3, 20), (2, 30), (1, 11)]


@AS_ROOT
def test_a_second_request_waits_for_others_first_one(queue, tmp_path):
    log = queue / "log"
    log.touch()
    log.chmod(0o666)
    with process(lambda: visit(queue, log, "ann", tickets_seen=3), ANN) as first:
        wait_until(lambda: list(queue.glob(f"*{tickets.TURN}")))
        with process(lambda: visit(queue, log, "ann again"), ANN) as second:
            wait_until(lambda: waiting(queue) == 2)
            with process(lambda: visit(queue, log, "bob"), BOB) as bob:
                assert all(map(ended, (first, second, bob)))
    assert log.read_text().split("\n")[:-1] == [
        "ann in",
        "ann out",
        "bob in",
        "bob out",
        "ann again in",
        "ann again out",
    ]


@AS_ROOT
def test_nobody_touches_anothers_place(queue):
    def try_all():
        mine = next(queue.glob(f"*{tickets.TICKET}"))
        tries = (
            mine.unlink,
            lambda: mine.rename(queue / "other"),
            lambda: os.utime(mine),
            lambda: os.link(mine, queue / "link"),
            lambda: mine.open("a"),
            lambda: fcntl.lockf(os.open(mine, os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB),
            lambda: mine.with_suffix(tickets.TURN).unlink(),
        )
        for number, attempt in enumerate(tries):
            try:
                attempt()
            except (PermissionError, BlockingIOError):
                continue
            os.write(2, f"allowed: {number}\n".encode())
            os._exit(7)

    turn = Turn(queue, GPU)
    turn.start()
    with process(try_all, EVE) as eve:
        assert ended(eve)
    turn.end()


@AS_ROOT
def test_marks_of_others_old_files_and_links_give_no_place(queue):
    def forge():
        old = queue / f"{GPU}.{1:020}-1-eve{tickets.TICKET}"  # made before all others, not locked
        old.touch()
        old.chmod(0o644)
        (queue / f"{GPU}.{2:020}-1-eve{tickets.TICKET}").symlink_to(old)
        wait_until(lambda: waiting(queue) == 3)
        held = os.open(old, os.O_RDWR)
        fcntl.lockf(held, fcntl.LOCK_EX)  # as if she had waited all the time
        mine = next(p for p in queue.glob(f"*{tickets.TICKET}") if "eve" not in p.name)
        mine.with_suffix(tickets.TURN).touch()  # as if another's turn had begun long ago
        time.sleep(600)

    with process(forge, EVE):
        wait_until(lambda: waiting(queue) == 2)
        made = next(p.lstat().st_ctime_ns for p in queue.iterdir() if not p.is_symlink())
        wait_until(lambda: time.time_ns() - made > 3 * tickets.TICK)  # it is an old file
        place = Place(queue, GPU)
        view = View(place, 60)
        assert len(view.look()) == 1
        wait_until(lambda: place.path.with_suffix(tickets.TURN).exists())
        assert len(view.look()) == 1  # what was not there at our arrival is behind us
        seen = tickets.present(queue, GPU)
        assert len(seen) == 2 and all(ticket.started is None for ticket in seen.values())
        place.leave()


def test_a_clock_waits_for_its_turn(queue, monkeypatch):
    monkeypatch.setenv(gpu_queue.FOLDER, str(queue))
    monkeypatch.setattr(turns, "device", lambda: GPU)
    monkeypatch.setattr(timing, "_l2_flush", lambda: lambda stream: None)
    counts, ahead, look = [], [], turns.View.look

    def noted(view):
        order = look(view)
        ahead.append(len(order) - 1)
        view.limit = 0.0  # seen once, whoever is in front has had its time
        return order

    monkeypatch.setattr(turns.View, "look", noted)

    def measured():
        with gpu_queue.turn() as outer:  # as benchmark does: the roofs belong to the same turn
            timing._measure({"": lambda: counts.append(waiting(queue))}, 0)
            drawn = outer.place.name
            timing._measure({"": lambda: None}, 0)
            assert outer.place.name == drawn

    with process(lambda: hold(queue)):
        wait_until(lambda: list(queue.glob(f"*{tickets.TURN}")))
        measured()
    assert ahead[0] == 1 and ahead[-1] == 0
    assert counts[:2] == [1, 2]  # it is compiled outside of the queue, and timed inside
    assert waiting(queue) == 1  # the killed one's


def test_without_a_queue_nothing_happens_and_nothing_is_loaded():
    code = (
        "import sys; from utils import gpu_queue\n"
        "with gpu_queue.turn() as turn: print(turn.start(), turn.renew())\n"
        "print([m for m in sys.modules if m.startswith('utils.gpu_queue.')])"
    )
    done = completed(
        [sys.executable, "-c", code],
        env={**os.environ, gpu_queue.FOLDER: ""},
        cwd=ROOT,
    )
    assert done.stdout == "False False\n['utils.gpu_queue.entry']\n", done.stderr


def test_a_folder_that_is_no_queue_is_named_once_and_the_time_is_taken(tmp_path, capsys):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    for place in (folder, folder, tmp_path / "missing"):
        turn = Turn(place, GPU)
        assert turn.start() is False
        turn.end()
    notes = capsys.readouterr().err.splitlines()
    assert len(notes) == 2
    assert "sticky bit" in notes[0] and "without a turn" in notes[0]
    assert "missing" in notes[1]


def test_what_one_who_waits_reads(monkeypatch, capsys):
    waiting = Ticket("a", 1, 1, 1)
    at_work = Ticket("a", 1, 1, 1, started=99.0)
    assert words.place([at_work, *[waiting] * 9], now=100.0) == "11th; about 19 s"
    assert words.place([waiting] * 2, now=100.0) == "third; about 4 s"
    assert words.place([at_work], now=500.0) == "second; a moment"
    assert words.ordinal(21) == "21st" and words.ordinal(112) == "112th"

    notice = words.Notice()
    notice.update([waiting])
    assert capsys.readouterr().out == ""  # a wait that nobody notices
    notice.since -= words.LONG + 1
    notice.update([waiting])
    notice.close()
    out = capsys.readouterr().out
    assert "Your place: second; about 2 s" in out and "CUDA_COURSE_CPU=1" in out
    assert out.rpartition("\r")[2] == ""  # the line is gone
