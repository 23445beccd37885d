"""The launcher: results by rank, exchange between ranks, errors with their rank."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from course.kernels.many_gpus import copies
from course.kernels.many_gpus.launch import RankError, launch
from tests.needs import without_gpu
from tests.processes import alive, wait_until
from utils.tools.process import python_environment


def exchange(group, factor):
    print("hello from", group.rank)
    first = group.all_gather(group.rank * factor)
    group.barrier()
    return sum(first), os.getpid()


def fails(group):
    if group.rank == 1:
        raise ValueError("my GPU is on fire")
    group.barrier()


def leaves(group):
    if group.rank == 0:
        group.barrier()


def dies(group):
    if group.rank == 1:
        os._exit(7)
    time.sleep(600)


def in_another_order(group):
    if group.rank == 0:
        group.all_gather(1)
    group.barrier()
    if group.rank == 1:
        group.all_gather(1)


def sleeps(group):
    if group.rank == 1:
        time.sleep(600)
    group.barrier()


def around(group):
    variables = os.environ.get("OF_THIS_TEST"), os.environ.get("OMP_NUM_THREADS")
    return np.random.rand(), variables, os.getcwd(), os.getppid(), "torch" in sys.modules


def quiet(_line):
    pass


#: A notebook whose ranks never end; it says their folder and their process ids
NOTEBOOK = """
import os
from course.kernels.many_gpus.launch import launch

def endless(group):
    pids = group.all_gather(os.getpid())
    if group.rank == 0:
        print(group.folder, *pids, flush=True)
    while True:
        pass

launch(endless, 2, echo=lambda line: print(line.partition("] ")[2], flush=True))
"""


def test_no_rank_outlives_the_notebook_and_no_folder():
    command = [sys.executable, "-c", NOTEBOOK]
    with subprocess.Popen(command, env=python_environment(), stdout=subprocess.PIPE) as notebook:
        folder, *pids = notebook.stdout.readline().decode().split()
        notebook.kill()  # Kernel > Restart
    assert len(pids) == 2
    wait_until(lambda: not any(alive(int(pid)) for pid in pids))
    assert not Path(folder).exists()


def test_ranks_exchange_objects_and_return_results():
    lines = []
    results = launch(exchange, 3, [10], echo=lines.append)
    assert [total for total, _ in results] == [30, 30, 30]
    assert len({pid for _, pid in results}) == 3
    assert sorted(lines) == [f"[rank {r}] hello from {r}" for r in range(3)]


def test_a_function_that_cannot_be_imported_travels_by_value():
    there = 5
    assert launch(lambda group: group.rank + there, 2, echo=quiet) == [5, 6]


@pytest.mark.nightly("by day ranks exchange what they have, and go where others have imported")
@pytest.mark.parametrize("number", ["1", "3"])
def test_ranks_are_in_this_folder_with_these_variables_and_draw_unlike_numbers(
    number, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OF_THIS_TEST", number)
    monkeypatch.setenv("OMP_NUM_THREADS", number)  # read when NumPy and PyTorch are imported
    draws, variables, folders, parents, _ = zip(*launch(around, 2, echo=quiet), strict=True)
    assert set(variables) == {(number, number)} and set(folders) == {str(tmp_path)}
    assert len(set(draws)) == 2
    assert copies.possible() != (os.getpid() in parents)


@pytest.mark.nightly("PyTorch is imported once more")
@without_gpu("elsewhere ranks are no copies")
def test_ranks_find_what_this_process_has_imported(monkeypatch):
    monkeypatch.setattr(copies, "_wanted", set())
    copies.forget()  # what it has imported for ranks before
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert [torch for *_, torch in launch(around, 2, echo=quiet)] == [False, False]
    copies.remember(["torch"])
    assert [torch for *_, torch in launch(around, 2, echo=quiet)] == [True, True]


def test_an_error_comes_with_its_rank():
    with pytest.raises(RankError, match="(?s)rank 1 of 2 failed.*my GPU is on fire"):
        launch(fails, 2, echo=quiet)


def test_a_rank_that_left_while_another_waits():
    with pytest.raises(
        RankError, match="rank 0 waits at .*test_launch.py, line .*rank 1 has ended"
    ):
        launch(leaves, 2, echo=quiet)


def test_a_rank_that_dies():
    with pytest.raises(RankError, match="rank 1 ended with exit status 7"):
        launch(dies, 2, echo=quiet)


def test_calls_in_another_order_are_told_with_their_lines():
    words = "(?s)rank 0 calls all_gather at .*, line .*; rank 1 calls barrier at .*, line"
    with pytest.raises(RankError, match=words):
        launch(in_another_order, 2, echo=quiet)


def test_a_rank_that_does_not_come_in_time_is_named():
    words = "rank 0 waits at .*, line .*; rank 1 did not come in 0.2 s"
    with pytest.raises(RankError, match=words):
        launch(sleeps, 2, echo=quiet, patience=0.2)
