"""The leaderboard: right kernels only, a GPU's times only, and nothing on it is ever lost."""

import json

import pytest

from course import exercises, leaderboard
from course.exercises.beating_pytorch import BN_RELU_POOL_CU, POOLED_FIRST
from tests.needs import without_gpu
from utils import engine

LINE = {
    "name": "a",
    "yours_us": 90.0,
    "ours_us": 100.0,
    "gpu": "G",
    "date": "2026-01-31T12:00:00Z",
    "source": "0",
}


@pytest.fixture(autouse=True)
def board(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "board.jsonl"
    monkeypatch.setenv("CUDA_COURSE_LEADERBOARD", str(path))
    monkeypatch.setenv("CUDA_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    return path


def kernel(tmp_path, source):
    path = tmp_path / "k.cu"
    path.write_text(source)
    return path


def test_a_wrong_kernel_is_not_timed(tmp_path, board):
    with pytest.raises(exercises.NotSolved, match="pools first"):
        leaderboard.enter(kernel(tmp_path, POOLED_FIRST))
    assert not board.exists()


@without_gpu("there is a GPU")
def test_without_a_gpu_nothing_is_entered(tmp_path, board):
    shown = repr(leaderboard.enter(kernel(tmp_path, BN_RELU_POOL_CU)))
    assert "no GPU" in shown and "Nobody is on the board yet" in shown
    assert not board.exists()


def test_lines_are_added_and_never_lost(board, monkeypatch):
    class Gpu:
        name = "Some GPU"

    monkeypatch.setattr(engine, "gpu", lambda: Gpu)
    board.parent.mkdir()
    board.write_text(json.dumps(LINE) + "\nnot an entry\n[1]\n")
    before = board.read_text()
    leaderboard.record("second", 50.0, 100.0, "source")
    leaderboard.record("third", 200.0, 100.0, "source")
    assert board.read_text().startswith(before)
    assert [e["name"] for e in leaderboard.entries()] == [
        "second",
        "a",
        "third",
    ]  # the fastest beside ours first
    shown = repr(leaderboard.Board("Right."))
    assert (
        shown.splitlines()[0] == "Right."
        and "2.00×" in shown.splitlines()[1]
        and "Some GPU" in shown
    )


@pytest.mark.parametrize(
    "bad",
    [
        b'{"name": "torn", "yours',
        json.dumps({**LINE, "yours_us": "fast"}).encode(),
        json.dumps({**LINE, "ours_us": 0}).encode(),
        json.dumps({**LINE, "yours_us": None}).encode(),
        json.dumps({**LINE, "name": None}).encode(),
        '{"name": "Zoë"}'.encode("latin-1"),
        b"[" * 100_000,
    ],
)
def test_a_bad_last_line_hides_no_other(board, monkeypatch, bad):
    """A crash while writing, an editor, another encoding: the next entry gets a line of its own."""
    monkeypatch.setattr(engine, "gpu", lambda: engine.GPU("G", (9, 0), 1, "1", (13, 0), "x"))
    board.parent.mkdir()
    board.write_bytes(json.dumps(LINE).encode() + b"\n" + bad)
    leaderboard.record("next", 50.0, 100.0, "source")
    assert [entry["name"] for entry in leaderboard.entries()] == ["next", "a"]
    assert bad in board.read_bytes()


def test_a_board_that_cannot_be_read_is_named(board):
    board.mkdir(parents=True)
    assert "cannot be read" in repr(leaderboard.Board("Right."))


@pytest.mark.skipif(not engine.has_gpu(), reason="times need a GPU")
def test_a_right_kernel_is_timed_beside_ours(tmp_path, board):
    leaderboard.enter(kernel(tmp_path, BN_RELU_POOL_CU), "the same")
    (entry,) = leaderboard.entries()
    assert 0.5 < entry["yours_us"] / entry["ours_us"] < 2
