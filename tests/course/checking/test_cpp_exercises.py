"""Exercises in C++: what can go wrong with a learner's file, besides being wrong, is named too."""

import stat

import pytest

from course import exercises
from course.checking import cpp
from course.exercises import c_for_cuda, mnist_cnn
from tests.needs import cpp_compiler
from utils.cpu.cuda_c import build

MEAN_MAX = c_for_cuda.MEAN_MAX_EXERCISE


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Check a text as the answer to c_for_cuda.mean_max."""
    monkeypatch.setenv("CUDA_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    cpp_compiler()

    def check(text):
        path = tmp_path / "mean_max.h"
        path.write_text(text)
        return exercises.check("c_for_cuda.mean_max", path)

    return check


def with_body(body):
    return MEAN_MAX.solution.replace("long long sum = 0;", f"{body} long long sum = 0;")


ENDS = [
    ("exit(0);", "crashed", "Is there an `exit` in your code?"),
    ("exit(3);", "crashed", "exit status 3"),
    ("*(volatile int *)nullptr = 1;", "null_pointer", "null pointer"),
    ("int *p = new int; delete p; delete p;", "double_free", "attempting double-free"),
    ("free((char *)malloc(4) + 1);", "dangling", "attempting free on address which was not malloc"),
    ("int *p = new int(3); delete p; n = *p;", "use_after_free", "heap-use-after-free"),
    ("int big = 2147483647; big += n;", "overflow", "signed integer overflow"),
    ("*(int *)a = 12345;", "modifies_input", "is now 12345"),
    ("undeclared();", "does_not_compile", "mean_max.h"),
]
HANDED_IN = pytest.mark.nightly("by day a wrong answer in C++ is rejected for the same reason")


def ends():
    """pytest.param(body, reason, says) of each of ENDS."""
    known = {w.reason for e in exercises.EXERCISES.values() if e.kind == "cpp" for w in e.wrong}
    for body, reason, says in ENDS:
        yield pytest.param(body, reason, says, marks=[HANDED_IN] if reason in known else [])


@pytest.mark.parametrize("body, reason, says", list(ends()))
def test_a_bad_end_is_named(check, body, reason, says):
    outcome = check(with_body(body))
    assert (outcome.reason, outcome.solved) == (reason, False)
    assert says in repr(outcome)


def test_the_line_at_fault_is_shown(check):
    outcome = check(with_body("\n    int four[4]; four[n + 3] = 0;\n"))
    assert outcome.reason == "out_of_bounds"
    assert ">    5 |     int four[4]; four[n + 3] = 0;" in outcome.code


def test_a_launch_runs_on_the_host_and_its_line_is_told(tmp_path, monkeypatch):
    """mnist_cnn.backward launches kernels: what one reads beyond an array is named with the line
    that launched it.
    """
    monkeypatch.setenv("CUDA_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    cpp_compiler()
    path = tmp_path / "backward.cuh"
    text = mnist_cnn.BACKWARD_SOLUTION
    path.write_text(text.replace("dlogits, B, CLASSES);\n    linear", "h, B + 1, 10);\n    linear"))
    outcome = exercises.check("mnist_cnn.backward", path)
    assert outcome.reason == "out_of_bounds"
    assert "sum_over_batch<<<LAUNCH(CLASSES)>>>(dw[BIAS2]" in outcome.code
    assert cpp.LAUNCH.sub(r"launched({\2}, \1)", "f<<<g(1), 2>>>(a)") == "launched({g(1), 2}, f)(a)"


def test_an_endless_loop_is_stopped(check, monkeypatch):
    monkeypatch.setattr(cpp, "RUN_SECONDS", 1)
    assert check(with_body("for (volatile int i = 0;; i = 1 - i) { }")).reason == "timeout"


def test_printing_without_end_is_said(check, monkeypatch):
    monkeypatch.setattr(cpp, "RUN_SECONDS", 1)
    outcome = check(with_body('for (int i = 0;; ++i) __builtin_printf("%d\\n", i);'))
    assert outcome.reason == "flood" and len(repr(outcome)) < 1000


def test_only_the_first_compiler_error_is_shown(check):
    outcome = check(with_body("one(); two(); three();"))
    assert "one" in outcome.code and "three" not in outcome.code.split("^")[0].split("one()")[0]
    assert outcome.code.count("line ") == 1


def test_what_is_not_a_path_is_refused(check):
    assert exercises.check("c_for_cuda.mean_max", None).reason == "not_a_kernel"
    assert exercises.check("c_for_cuda.mean_max", print).reason == "not_a_kernel"
    outcome = exercises.check("c_for_cuda.mean_max", "build/never_written.h")
    assert outcome.reason == "missing_file" and "%%writefile build/never_written.h" in repr(outcome)


def test_without_a_compiler_it_says_how_to_get_one(check, monkeypatch):
    def none():
        raise build.BuildError(build.NO_COMPILER)

    monkeypatch.setattr(build, "compiler", none)
    outcome = check(MEAN_MAX.solution)
    assert outcome.reason == "not_checked" and "sudo apt install g++" in repr(outcome)


def test_without_sanitizers_it_says_how_to_get_them(check, monkeypatch, tmp_path):
    real = build.compiler()
    fake = tmp_path / "c++"
    fake.write_text(
        '#!/bin/sh\ncase "$*" in *-fsanitize*) echo "ld: cannot find -lasan"; exit 1;; '
        f'esac\nexec {real[0]} "$@"\n'
    )
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(build, "compiler", lambda: [str(fake), *real[1:]])
    outcome = check(MEAN_MAX.solution)
    assert outcome.reason == "not_checked" and "libasan" in repr(outcome)


def test_a_solution_is_shown_and_recorded_as_solved(check, tmp_path):
    assert check(MEAN_MAX.solution).solved
    assert "c_for_cuda.mean_max" in (tmp_path / "progress.json").read_text()
    assert "void mean_max(" in repr(exercises.solution("c_for_cuda.mean_max"))
