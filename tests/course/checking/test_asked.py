"""A process that is asked: started when it is wanted, started again, honest when it cannot."""

import os
import signal

import pytest

from course.checking.asked import Asked, NoAnswer

DOUBLES = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request == "end":
        break
    print(json.dumps(request and 2 * request), flush=True)
"""


@pytest.fixture
def asked(tmp_path):
    """asked(source): a process that runs it; ended with the test."""
    made = []

    def make(source):
        file = tmp_path / "child.py"
        file.write_text(source)
        made.append(Asked(file))
        return made[-1]

    yield make
    for one in made:
        one.forget()


def test_it_answers_also_after_it_was_ended(asked):
    doubles = asked(DOUBLES)
    assert doubles.ask("21") == 42
    os.kill(doubles.process.pid, signal.SIGKILL)
    assert doubles.ask("4") == 8
    doubles.forget()
    assert doubles.ask("5") == 10


def test_a_request_that_ends_it_twice_has_no_answer(asked):
    doubles = asked(DOUBLES)
    with pytest.raises(NoAnswer):
        doubles.ask('"end"')
    assert doubles.ask("1") == 2


def test_what_does_not_start_answers_nothing(asked):
    nothing = asked("import nothing_of_this_name")
    assert nothing.ask("1") is None
    assert nothing.ask("1") is None and nothing.cannot_start


def test_a_copy_starts_what_somebody_has_ended(asked):
    doubles = asked(DOUBLES)
    assert doubles.ready()
    os.kill(doubles.process.pid, signal.SIGKILL)
    copy = os.fork()
    if copy == 0:
        os._exit(doubles.ask("3"))
    assert os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 6
    assert doubles.ask("4") == 8, "and so does this process"


def test_an_interrupted_copy_leaves_no_answer_behind(asked):
    """Else the next one to ask would read the answer to the request before its own."""
    slow = DOUBLES.replace("    print", "    import time; time.sleep(request == 9)\n    print")
    doubles = asked(slow)
    assert doubles.ready()
    copy = os.fork()
    if copy == 0:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            doubles.ask("9")
        except KeyboardInterrupt:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 0
    assert doubles.ask("5") == 10


def test_a_copy_of_this_process_asks_the_same_one(asked):
    """Neither of two copies waits for what the other has read."""
    doubles = asked(DOUBLES)
    assert doubles.ready()
    for number in (1, 2):
        copy = os.fork()
        if copy == 0:
            os._exit(doubles.ask(str(number)))
        assert os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 2 * number
