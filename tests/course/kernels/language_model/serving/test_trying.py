"""What the chapter's cells try does what the chapter says of it."""

import requests

from course.kernels.language_model.serving import trying


def test_choices_are_their_own_and_not_without_copies(capsys):
    trying.choices("A warp is")
    assert [line[0] for line in capsys.readouterr().out.splitlines()] == list("✓✓✓")
    trying.choices("A warp is", must_copy=lambda users: False)
    marks = [line[0] for line in capsys.readouterr().out.splitlines()]
    assert marks.count("✗") == 2 and marks.count("✓") == 1


def test_a_server_takes_the_place_of_the_one_before():
    first = trying.server()
    second = trying.server()
    asked = {"prompt": "A warp is", "max_tokens": 3}
    assert requests.post(f"{second.url}/v1/completions", json=asked, timeout=60).status_code == 200
    assert second.blocks_taken == 0
    try:
        requests.get(f"{first.url}/health", timeout=5)
    except requests.ConnectionError:
        pass
    else:
        raise AssertionError("the first server still answers")
    second.stop()
    trying.RUNNING.clear()


def test_a_draft_helps():
    turns = trying.drafted("A kernel", ahead=2)
    assert len(turns) == 30
    assert all(1 <= len(turn) <= 3 for turn in turns)
    assert sum(map(len, turns)) > 33
