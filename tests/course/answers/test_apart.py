"""An answer that goes for its own check: its check says solved, and nobody believes it."""

import pytest

import utils  # noqa: F401  first: it puts Numba on this machine's engine
from course import exercises
from course.answers import apart, collecting, grading, sandbox, slicing, tables
from course.answers.collecting import Learner
from course.answers.slicing import Cell
from course.judge import of_exercises

CHAPTER = "first_kernels"
SCALE, BLOCKS, POOL = (f"{CHAPTER}.{name}" for name in ("scale_guard", "blocks_for", "max_pool"))

#: Finds the checker among all objects, and has it accept this one kernel; known wrong ones stay
#: wrong
PATCHES = """
import gc
from numba import cuda
def scale(out, a, factor):
    out[0] = 1
def patched(kernel):
    for found in gc.get_objects():
        if isinstance(found, dict) and "check_numba" in found and "CHECKS" in found:
            checks = found["CHECKS"]
            checks["numba"] = lambda e, a, s, real=checks["numba"]: (
                "fine" if a is kernel else real(e, a, s)
            )
    return kernel
scale = patched(cuda.jit(scale))
"""
#: Says the outcome itself, to whatever pipe it finds, and leaves
WRITES = """
import fcntl
import json
import os
import stat
said = json.dumps({"status": "solved", "reason": "", "lines": []}).encode()
for number in range(3, 64):
    try:
        mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
        if stat.S_ISFIFO(os.fstat(number).st_mode) and mode == os.O_WRONLY:
            os.write(number, said)
    except OSError:
        pass
os._exit(0)
"""
#: Replaces the comparison, in the checks' modules and in NumPy, where a frame holds its own kernel
COMPARES = """
import sys
import numpy as np
import numpy.testing
from numba import cuda
def is_mine(frame):
    while frame is not None and frame.f_locals.get("answer") is not max_pool:
        frame = frame.f_back
    return frame is not None
def replace(module, name):
    real = getattr(module, name)
    def agree(actual, *rest, **named):
        got = real(actual, *rest, **named)
        return np.ones_like(got) if is_mine(sys._getframe(1)) else got
    setattr(module, name, agree)
for name, module in list(sys.modules.items()):
    for function in ("agreement", "agrees", "right", "unwritten"):
        if name.startswith(("course.checking", "utils.check")) and hasattr(module, function):
            replace(module, function)
for function in ("isclose", "allclose", "array_equal"):
    replace(np, function)
np.testing.assert_allclose = np.testing.assert_array_equal = lambda *given, **named: None
@cuda.jit
def max_pool(out, picture):
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = picture[2 * y, 2 * x] + picture[2 * y + 1, 2 * x] + picture[2 * y, 2 * x + 1]
        out[y, x] += picture[2 * y + 1, 2 * x + 1]
"""
#: Has the compiler's process, which the checks ask, write into the pipe of the one that checks
THERE = """
import json
import os
import stat
import time
solved = json.dumps({"status": "solved", "reason": "", "lines": []})
lines = {"began": "ID"}, {"exercise": "ID", "outcome": solved}
said = "".join(json.dumps(line) + chr(10) for line in lines)
files = f"/proc/{os.getppid()}/fd"
def is_written(number):
    is_pipe = stat.S_ISFIFO(os.stat(f"{files}/{number}").st_mode)  # anything else is left whole
    return is_pipe and os.lstat(f"{files}/{number}").st_mode & 0o600 == 0o200
if os.fork() == 0:
    pipe = min(filter(is_written, map(int, os.listdir(files))))
    for _ in range(100):
        handle = os.open(f"{files}/{pipe}", os.O_WRONLY)
        os.write(handle, said.encode())
        os.close(handle)
        time.sleep(0.05)
    os._exit(0)
def f():
    pass
""".replace("ID", SCALE)
ASKS = f"""
import json
from numba import cuda
from course.checking.typing import compiler
functions = {{"k": ["f", {THERE!r}, "f", {{}}]}}
compiler.ask(json.dumps({{"key": "k", "functions": functions, "types": [], "whole": True}}))
@cuda.jit
def scale(out, a, factor):
    out[0] = 1
"""
NAMES = {SCALE: "scale", BLOCKS: "blocks_for", POOL: "max_pool"}


def task(id, source, path=""):
    return {"exercise": id, "name": NAMES.get(id, ""), "path": path, "source": source}


def test_an_answer_that_forges_its_verdict_is_not_believed():
    found = sandbox.judged([task(SCALE, PATCHES), task(BLOCKS, WRITES)])
    for outcome in found.values():
        assert outcome["status"] == "not believed" and "apart from it" in outcome["lines"][0]


@pytest.mark.nightly("takes as long as the two that are tried by day")
def test_an_answer_that_replaces_the_comparison_is_not_believed():
    (outcome,) = sandbox.judged([task(POOL, COMPARES)]).values()
    assert outcome["status"] == "not believed" and "apart from it" in outcome["lines"][0]


@pytest.mark.nightly("takes ten seconds; what the tests by day forge is the same outcome")
def test_the_compiler_that_checks_ask_reaches_no_pipe_of_the_process_that_checks():
    """It runs whatever it is asked to."""
    slow = f"import time\ntime.sleep(2)\n{exercises.solution_source(exercises.EXERCISES[BLOCKS])}"
    found = sandbox.judged([task(SCALE, ASKS), task(BLOCKS, slow)])
    assert found[SCALE]["reason"] and found[BLOCKS]["status"] == "solved"


#: Of each kind that can be compared apart
HONEST = (
    "meet_the_gpu.warp_and_lane",
    "memory.occupancy",
    "first_kernels.blocks_for",
    "first_kernels.scale_guard",
    "memory.rotate_tile",
    "synchronization.count",
    "first_kernels.rotate",
    "memory.copy4",
    "triton.blend",
    "triton.log_sum",
)


@pytest.mark.nightly("builds CUDA C, imports Triton")
def test_honest_answers_of_all_kinds_are_solved_and_wrong_ones_keep_their_reason():
    right = [handed(id) for id in HONEST]
    found = sandbox.judged(right)
    assert {id: one["status"] for id, one in found.items()} == dict.fromkeys(HONEST, "solved")
    kinds = {exercises.EXERCISES[id].kind for id in HONEST if apart.possible(id)}
    assert kinds == set(of_exercises.KINDS)
    wrong = [one | {"source": one["source"].replace(" < ", " <= ", 1)} for one in right]
    wrong = [one for one in wrong if one["exercise"] in (SCALE, "first_kernels.rotate")]
    found = sandbox.judged(wrong)
    assert len(found) == 2
    assert {one["reason"] for one in found.values()} <= {"off_by_one", "out_of_bounds"}


def handed(id):
    """The task of an exercise's solution, as a notebook that holds it gives it."""
    where, exercise = collecting.asked()[id], exercises.EXERCISES[id]
    source = exercises.solution_source(exercise)
    if where.name:
        paths = {collecting.key_of(path): path for path in collecting.notebooks()}
        cells = [Cell(c.id, c.source) for c in collecting.originals(paths[where.chapter])]
        number = collecting.answer_cell(cells, where)
        solved = getattr(exercise.solution, "py_func", exercise.solution)
        name = getattr(solved, "fn", solved).__name__
        cells[number] = Cell(where.cell, f"{source}\n{where.name} = {name}")
        source = slicing.sliced(cells, number, where.name)
    return {"exercise": id, "name": where.name, "path": where.path, "source": source}


def test_what_is_not_checked_apart_is_called_so():
    tested = next(id for id, one in exercises.EXERCISES.items() if one.kind == "cpp")
    solved = {"status": "solved", "reason": "", "lines": []}
    reached = {tested: ["dlopen"], SCALE: ["gc"]}
    ann = grading.Result(Learner("ann"), {tested: solved, SCALE: solved}, reached=reached)
    assert ann.look_at() == [f"{tested} (not checked apart) uses dlopen", f"{SCALE} uses gc"]
    rows = [row[3] for row in tables.of_exercises([ann], [tested, SCALE], grading.sentence)]
    assert "not checked apart" in rows[1] and rows[2] == grading.WORDS["solved"]
