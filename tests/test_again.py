"""A second run has what did not pass, and no more."""

import sys

import nbformat
import pytest

from tests.processes import completed
from utils.files import ROOT

TESTS = """
from pathlib import Path


def test_passes():
    with Path("ran").open("a") as file:
        file.write("passes ")


def test_passes_the_second_time():
    second = Path("second").exists()
    Path("second").touch()
    assert second
"""


@pytest.fixture
def run(tmp_path):
    """run(*options) gives pytest's exit status and output for the tests in tmp_path."""

    def pytest_in(*options):
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.again",
            "--rootdir=.",
            *options,
            ".",
        ]
        environment = {
            "PYTHONPATH": str(ROOT),
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # to import them all takes the most of the time
        }
        done = completed(command, cwd=tmp_path, env=environment, check=False)
        return done.returncode, done.stdout + done.stderr

    return pytest_in


IN_WORKERS = "-p", "xdist.plugin", "--max-worker-restart=0", "-n"


@pytest.mark.parametrize("workers", [[], [*IN_WORKERS, "2"]])
def test_what_passed_is_not_run_again(tmp_path, run, workers):
    (tmp_path / "test_it.py").write_text(TESTS)
    assert run(*workers)[0] == pytest.ExitCode.TESTS_FAILED
    status, output = run(*workers, "--again")
    assert status == pytest.ExitCode.OK
    assert "again: test_it.py::test_passes_the_second_time" in output
    assert (tmp_path / "ran").read_text() == "passes "


def test_a_fault_fails_again(tmp_path, run):
    (tmp_path / "test_it.py").write_text("def test_fault():\n    assert 1 + 1 == 3\n")
    run()
    assert run("--again")[0] == pytest.ExitCode.TESTS_FAILED


def test_a_notebook_is_run_whole(tmp_path, run):
    first = nbformat.v4.new_code_cell("from pathlib import Path\nfile = Path('second')")
    second = nbformat.v4.new_code_cell("was = file.exists()\nfile.touch()\nassert was")
    notebook = nbformat.v4.new_notebook(cells=[first, second])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "", "language": "python"}
    nbformat.write(notebook, tmp_path / "it.ipynb")
    nbval = "-p", "nbval.plugin", "--nbval-lax"
    assert run(*nbval)[0] == pytest.ExitCode.TESTS_FAILED
    status, output = run(*nbval, "--again")
    assert status == pytest.ExitCode.OK and "2 passed" in output


def test_what_a_dead_worker_left_is_run(tmp_path, run):
    tests = "import os\n\n\ndef test_dies():\n    os._exit(9)\n\n\ndef test_after():\n    pass\n"
    (tmp_path / "test_it.py").write_text(tests)
    assert run(*IN_WORKERS, "1")[0] != pytest.ExitCode.OK
    (tmp_path / "test_it.py").write_text(tests.replace("os._exit(9)", "pass"))
    status, output = run("--again")
    assert status == pytest.ExitCode.OK and "2 passed" in output


def test_a_run_that_was_killed_leaves_no_older_record(tmp_path, run):
    (tmp_path / "test_it.py").write_text(TESTS)
    run()
    dies = "import os\n\n\ndef test_passes():\n    os.kill(os.getpid(), 9)\n"
    (tmp_path / "test_it.py").write_text(dies)
    run()
    status, output = run("--again")
    assert status == pytest.ExitCode.USAGE_ERROR and "there was none" in output


def test_without_a_run_before_it_says_so(tmp_path, run):
    (tmp_path / "test_it.py").write_text(TESTS)
    status, output = run("--again")
    assert status == pytest.ExitCode.USAGE_ERROR and "there was none" in output


def test_a_broken_course_is_not_run_again(tmp_path, run):
    tests = "".join(f"def test_{n}():\n    assert False\n" for n in range(21))
    (tmp_path / "test_it.py").write_text(tests)
    run()
    status, output = run("--again")
    assert status == pytest.ExitCode.USAGE_ERROR and "there were 21" in output


def test_the_record_of_an_older_run_goes_before_anything_can_fail():
    command = ["make", "--no-print-directory", "-n", "test", "AGAIN="]  # make runs this, too
    lines = completed(command, cwd=ROOT).stdout
    assert lines.startswith("rm -rf .pytest_cache/v/course\n")
