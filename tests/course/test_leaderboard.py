"""The learner's kernels: which are right, whose lines; and a board on which nothing is lost."""

import json

import pytest

from course import leaderboard
from course.exercises import beating_pytorch as exercises
from course.kernels.mnist_cnn.sockets import SOCKETS, SocketError
from tests.needs import cpp_compiler, without_gpu
from utils import engine

cpp_compiler()
LINE = {
    "name": "a",
    "kernels": "head",
    "asked_kb": 90.0,
    "date": "2026-01-31T12:00:00Z",
    "source": "0",
}
TIMED = {"yours_us": 50.0, "ours_us": 40.0, "gpu": "Some GPU"}


@pytest.fixture(autouse=True)
def board(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "board.jsonl"
    monkeypatch.setenv("CUDA_COURSE_LEADERBOARD", str(path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build").mkdir()
    return path


def hand_in(tmp_path, exercise, text):
    (tmp_path / exercise.path).write_text(text)


# ---- what is theirs


def test_a_starter_is_nobodys_and_a_solution_is_theirs(tmp_path, capsys):
    for exercise in exercises.EXERCISES:
        hand_in(tmp_path, exercise, exercise.starter.strip().partition("\n")[2])
    assert leaderboard.mine() == {}
    assert "None yet" in repr(leaderboard.Lines({}))
    hand_in(tmp_path, exercises.UPDATE, exercises.UPDATE.solution)
    hand_in(tmp_path, exercises.BN_RELU_POOL, exercises.BN_RELU_POOL.solution)
    assert list(leaderboard.mine()) == ["bn_relu_pool", "update"]
    assert list(leaderboard.mine(trainer=True)) == ["update"]
    lines = repr(leaderboard.Lines(leaderboard.mine()))
    assert "weights[i] -= rate * gradient;" in lines and "bn_relu_pool" not in lines
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    "old, new, says",
    [("s < splits", "s < 1", "values differ"), ("gradient = 0;", "gradient = 0", "line ")],
)
def test_what_is_not_right_is_said_and_left_out(tmp_path, capsys, old, new, says):
    hand_in(tmp_path, exercises.UPDATE, exercises.UPDATE.solution.replace(old, new))
    assert leaderboard.mine() == {}
    said = capsys.readouterr().out
    assert "update: yours is not right yet, so the course's stands in" in said and says in said


def test_with_all_exercises_solved_more_than_ten_lines_are_theirs(tmp_path):
    for exercise in exercises.EXERCISES:
        hand_in(tmp_path, exercise, exercise.solution)
    mine = leaderboard.mine()
    assert set(mine) == {*SOCKETS, "bn_relu_pool", "split_sums"}
    assert sum(map(len, leaderboard.Lines(mine).lines.values())) > 30


# ---- the board


def test_a_wrong_kernel_is_not_entered(tmp_path, board):
    wrong = exercises.UPDATE.solution.replace("s < splits", "s < 1")
    hand_in(tmp_path, exercises.UPDATE, wrong)
    with pytest.raises(SocketError, match="must be right first"):
        leaderboard.enter({"update": exercises.UPDATE.path})
    with pytest.raises(ValueError, match="no kernel of yours"):
        leaderboard.enter({})
    assert not board.exists()


@without_gpu("there it is timed, too")
def test_a_laptop_counts(board):
    slow, good = (
        {name: getattr(socket, which) for name, socket in SOCKETS.items()}
        for which in ("slow", "good")
    )
    leaderboard.enter(slow, "first try")
    shown = repr(leaderboard.enter(good, "second")).splitlines()
    assert shown[0].startswith("Right. With yours the four kernels ask for 138 kB per digit")
    assert "second" in shown[1] and "first try" in shown[2]  # the fewest bytes first
    assert "patch_moments, conv1_pool, head, update" in shown[1]
    assert len(board.read_text().splitlines()) == 2


def test_what_is_asked_says_whose_it_is():
    asked = leaderboard.Asked({"head": SOCKETS["head"].slow, "bn_relu_pool": "elsewhere"})
    assert asked.mine == ("head",)
    assert "yours (the course's: 25.7)" in repr(asked) and "31.5   the course's" in repr(asked)


def test_lines_are_added_and_never_lost(board):
    board.parent.mkdir()
    old = {"name": "old", "yours_us": 9.0, "ours_us": 9.0, "gpu": "G", "date": "", "source": ""}
    texts = [json.dumps(LINE), "not an entry", "[1]", json.dumps(old)]
    board.write_text("\n".join(texts) + "\n")
    before = board.read_text()
    leaderboard.record({**LINE, **TIMED, "name": "timed", "asked_kb": 200.0})
    leaderboard.record({**LINE, "name": "worse", "asked_kb": 100.0})
    assert board.read_text().startswith(before)
    assert [e["name"] for e in leaderboard.entries()] == ["timed", "a", "worse"]
    shown = repr(leaderboard.Board("Right.")).splitlines()
    assert shown[0] == "Right." and "50.0 µs per step, ours 40.0 µs (Some GPU, 20" in shown[1]


@pytest.mark.parametrize(
    "bad",
    [
        b'{"name": "torn", "asked',
        json.dumps({**LINE, "asked_kb": "few"}).encode(),
        json.dumps({**LINE, "asked_kb": 0}).encode(),
        json.dumps({**LINE, **TIMED, "yours_us": None}).encode(),
        json.dumps({**LINE, "gpu": "G"}).encode(),
        json.dumps({**LINE, "name": None}).encode(),
        '{"name": "Zoë"}'.encode("latin-1"),
        b"[" * 100_000,
    ],
)
def test_a_bad_last_line_hides_no_other(board, bad):
    """A crash while writing, an editor, another encoding: the next entry gets a line of its own."""
    board.parent.mkdir()
    board.write_bytes(json.dumps(LINE).encode() + b"\n" + bad)
    leaderboard.record({**LINE, "name": "next", "asked_kb": 50.0})
    assert [entry["name"] for entry in leaderboard.entries()] == ["next", "a"]
    assert bad in board.read_bytes()


def test_a_board_that_cannot_be_read_is_named(board):
    board.mkdir(parents=True)
    assert "cannot be read" in repr(leaderboard.Board("Right."))


@pytest.mark.skipif(not engine.has_gpu(), reason="times need a GPU")
def test_on_a_gpu_the_step_is_timed_beside_ours():
    leaderboard.enter({"head": SOCKETS["head"].good}, "the same")
    (entry,) = leaderboard.entries()
    assert 0.5 < entry["yours_us"] / entry["ours_us"] < 3
