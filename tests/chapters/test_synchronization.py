"""Synchronization: no kernel passes without the barriers and atomics that its exercise needs; the
model of streams.
"""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import importlib.util
import re

import numpy as np
import pytest
from matplotlib.colors import to_hex
from numba import cuda

from course import exercises
from course.checking import apart, checker, report
from course.checking.checker import check_answer
from course.exercises.synchronization import EXERCISES, LAST_BLOCK, LAST_BLOCK_CU
from course.pictures import synchronization
from utils import cuda_c, has_gpu
from utils.plots import ALARM
from utils.tracer import trace

NUMBA = [e for e in EXERCISES if e.kind == "numba"]


def mutants():
    """Each Numba solution without one of its barriers, or with one plain addition for an atomic
    one.
    """
    for exercise in NUMBA:
        lines = exercises.solution_source(exercise).splitlines()
        for n, line in enumerate(lines):
            without = re.sub(r"cuda\.syncthreads\(\)", "pass", line)
            plain = re.sub(
                r"cuda\.atomic\.add\((\w+), ([^,]+(?:\[\w+\])?), (.+)\)", r"\1[\2] += \3", line
            )
            for changed in {without, plain} - {line}:
                yield pytest.param(
                    exercise,
                    "\n".join([*lines[:n], changed, *lines[n + 1 :]]),
                    id=f"{exercise.id}-{n}",
                )


def test_there_are_mutants_of_each_kind():
    texts = [m.values[1] for m in mutants()]
    assert sum("pass" in text for text in texts) == 3
    assert sum("+=" in text for text in texts) == 3


@pytest.mark.parametrize("exercise, source", list(mutants()))
def test_a_kernel_without_a_barrier_or_an_atomic_never_passes(
    exercise, source, tmp_path, monkeypatch
):
    monkeypatch.setattr(apart, "POSSIBLE", False)  # they do no harm, and the verdict alone counts
    monkeypatch.setattr(report, "page", lambda picture: picture.alt)
    monkeypatch.setattr(checker, "film_of", lambda *_: "")
    path = tmp_path / "mutant.py"
    path.write_text(f"import numpy as np\nfrom numba import cuda\n\n\n{source}\n")
    spec = importlib.util.spec_from_file_location("mutant", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = getattr(module, exercise.solution.py_func.__name__)
    for seed in range(4):
        outcome = check_answer(exercise, kernel, seed)
        assert outcome.reason in ("race", "uninitialized"), repr(outcome)


def test_a_report_of_a_race_names_both_lines_and_draws_it():
    outcome = exercises.check("synchronization.count", EXERCISES[1].wrong[0].answer)
    assert "counts[values[i]] += 1" in outcome.code
    assert "<svg" in outcome.picture and 'aria-label="Race on counts' in outcome.picture
    assert outcome.picture in outcome._repr_html_()


def test_a_race_in_cuda_c_names_the_line(tmp_path, request):
    path = tmp_path / "last_block.cu"
    path.write_text(LAST_BLOCK_CU.replace("        __threadfence();\n        if", "        if"))
    outcome = check_answer(LAST_BLOCK, path, 0)
    if outcome.reason == "not_checked":
        pytest.skip(outcome.lines[0])
    assert outcome.reason == "race"
    assert re.match(
        r"last_block\.cu:\d+: error: two threads use the same global memory", outcome.lines[0]
    )
    assert {check_answer(LAST_BLOCK, path, seed).reason for seed in range(1, 4)} == {"race"}


def test_a_read_out_of_bounds_in_cuda_c_is_rejected_although_every_value_is_right(tmp_path):
    path = tmp_path / "last_block.cu"
    reads_too_far = LAST_BLOCK_CU.replace("unsigned sum = 0;", "unsigned sum = a[n] == 1234567891;")
    path.write_text(reads_too_far)
    outcome = check_answer(LAST_BLOCK, path, 0)
    if outcome.reason == "not_checked":
        pytest.skip(outcome.lines[0])
    assert reads_too_far != LAST_BLOCK_CU
    assert outcome.reason == "out_of_bounds", repr(outcome)


def test_watched_launches_work_on_the_callers_own_arrays(tmp_path):
    source = tmp_path / "shift.cu"
    source.write_text(
        "__global__ void add(int *out, const int *a) { out[threadIdx.x] += a[threadIdx.x]; }"
    )
    if has_gpu():
        pytest.skip("on a GPU nothing is watched")
    module = cuda_c.load(source, check=True)
    memory = np.arange(20, dtype=np.int32)
    constant = np.full(10, 5, np.int32)
    constant.setflags(write=False)
    for _ in range(3):
        module.add[1, 10](memory[10:], constant)
    assert memory.tolist() == [*range(10), *range(25, 35)]
    module.add[1, 10](memory[5:15], memory[5:15])  # one array, twice
    assert memory.tolist() == [
        0,
        1,
        2,
        3,
        4,
        10,
        12,
        14,
        16,
        18,
        50,
        52,
        54,
        56,
        58,
        30,
        31,
        32,
        33,
        34,
    ]
    with pytest.raises(cuda_c.LaunchError, match="past the end of the 40 bytes of argument `out`"):
        module.add[1, 11](memory[10:], memory[:11])


@cuda.jit
def shift_blocks(a):
    i = cuda.grid(1)
    value = a[min(i + 1, a.size - 1)]
    cuda.syncthreads()
    if i < a.size:
        a[i] = value


def test_a_picture_of_a_race_between_blocks_marks_only_what_no_barrier_orders():
    axes = trace(shift_blocks, 2, 32, np.arange(64, dtype=np.float32)).draw_races().axes[0]
    marked = [patch for patch in axes.patches if to_hex(patch.get_edgecolor()) == ALARM.lower()]
    texts = {
        text.get_text()
        for text in axes.texts
        if any(
            patch.contains_point(axes.transData.transform(text.get_position())) for patch in marked
        )
    }
    assert len(marked) == 2
    assert texts == {"t0\nb1", "t31\nb0"}


# ---- the model of streams


def ends(**job):
    return max(piece[3] for piece in synchronization.schedule(**job))


def test_one_stream_or_one_chunk_overlaps_nothing():
    times = {"copy_in": 10, "compute": 8, "copy_out": 6}
    assert ends(chunks=1, streams=4, **times) == 24
    assert ends(chunks=12, streams=1, **times) == pytest.approx(24)


def test_many_chunks_in_many_streams_take_as_long_as_the_busiest_engine():
    assert ends(chunks=1000, streams=8, copy_in=10, compute=8, copy_out=6) == pytest.approx(
        10, rel=0.01
    )


def test_two_chunks_by_hand():
    # copy in 0-5, 5-10; compute 5-9, 10-14; copy out 9-12, 14-17
    assert ends(chunks=2, streams=2, copy_in=10, compute=8, copy_out=6) == 17


def test_no_engine_and_no_stream_does_two_things_at_once():
    pieces = synchronization.schedule(chunks=7, streams=3, copy_in=5, compute=9, copy_out=4)
    for key in (lambda piece: piece[0], lambda piece: piece[1] % 3):
        for group in {key(piece) for piece in pieces}:
            spans = sorted(piece[2:] for piece in pieces if key(piece) == group)
            assert all(one[1] <= two[0] + 1e-9 for one, two in zip(spans, spans[1:], strict=False))
