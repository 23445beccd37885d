"""The pictures of Meet the GPU show what was measured, counted or looked up."""

import re

import numpy as np
import pytest

from course.pictures import meet_the_gpu
from utils import hardware

from numba import cuda  # isort: skip


@cuda.jit
def branch(out, split):
    i = cuda.grid(1)
    if i < split:
        out[i] = 1
    else:
        out[i] = 2


@cuda.jit
def rounds(out):
    i = cuda.grid(1)
    for _ in range(i % 2 + 1):
        out[i] += 1


def test_lanes_are_counted_line_by_line():
    counts, rows = meet_the_gpu.lane_counts(branch, 40, np.zeros(40, np.int32), 10)
    assert len(rows) == 4  # i, if, then, else
    assert (counts[:2] == 1).all()
    assert counts[2].tolist() == [1] * 10 + [0] * 30
    assert counts[3].tolist() == [0] * 10 + [1] * 30


def test_a_line_in_a_loop_is_counted_as_often_as_it_runs():
    counts, _ = meet_the_gpu.lane_counts(rounds, 4, np.zeros(4, np.int32))
    assert counts[-1].tolist() == [1, 2, 1, 2]


def test_counting_leaves_the_arguments_alone():
    out = np.zeros(40, np.int32)
    meet_the_gpu.lane_counts(branch, 40, out, 10)
    assert not out.any()


@pytest.mark.parametrize(
    "threads, split, issued",
    [
        (64, 32, 6),  # both warps agree: three lines each
        (64, 16, 7),  # warp 0 issues both sides
        (40, 40, 6),  # the last warp has 8 threads, but is issued whole lines
    ],
)
def test_the_share_of_working_lanes(threads, split, issued):
    said = meet_the_gpu.lanes(branch, threads, np.zeros(threads, np.int32), split).alt
    assert f"{3 * threads / (issued * 32):.0%} of the lanes" in said


def test_the_share_of_busy_cycles_is_that_of_the_chart():
    states = np.full((2, 10), meet_the_gpu.WAITING)
    states[0, :3] = states[1, 2:6] = meet_the_gpu.ISSUING
    assert "60% of the cycles" in meet_the_gpu.issue_chart(states).alt


def test_numbers_come_from_the_table_and_sources_are_named():
    table = {g["gpu"]: g for g in hardware.generations()["gpus"]}
    assert table["Tesla C870"]["bandwidth_gb_s"] == 76.8
    assert table["Rubin"]["fp32_tflops"] is None
    said = hardware.sources_of("Tesla C870")
    assert "bandwidth_gb_s 76.8" in said and "https://" in said
    with pytest.raises(KeyError):
        hardware.sources_of("GeForce 256")


def test_the_history_says_what_it_shows():
    assert "76.8 (Tesla C870, 2007)" in meet_the_gpu.history({"bandwidth_gb_s": "GB/s"}).alt


def test_each_panel_of_the_history_says_what_it_shows():
    titles = {"transistors_billion": "transistors, 10⁹", "fp32_tflops": "TFLOP/s"}
    fig = meet_the_gpu.history(titles)
    assert [axes.get_title("left") for axes in fig.axes] == list(titles.values())


def test_an_instruction_of_tensor_cores_is_counted():
    alt = meet_the_gpu.one_instruction(m=16, n=8, k=4).alt
    assert "512 by tensor cores" in alt and "16 times as many" in alt


def test_every_cell_of_a_systolic_array_multiplies_each_pair_once():
    n = 3
    sheet = meet_the_gpu.systolic(n, steps=range(3 * n - 2))
    assert "1 at step 0, 3 at step 1, 6 at step 2, 7 at step 3" in sheet.alt
    numbers = re.findall(r">(\d)</text>", sheet.svg())
    assert sorted(numbers) == sorted(n * n * "012")
