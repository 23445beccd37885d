"""The CPU engine for Numba gives what a GPU gives, in any order of threads, and its diagnoses."""

import json
import os
import subprocess
import sys

import pytest

from tests.conformance.numba import derive
from tests.conformance.numba.run import WAYS
from utils.files import ROOT

PROGRAMS = sorted(path.stem for path in derive.FOLDER.glob("*.py"))
BROKEN = ROOT / "tests/conformance/numba/broken"
SEEDS = ["-", "1", "2", "3"]


def run_all(folder, seeds):
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.numba.run", str(folder), *seeds],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
        env={**os.environ, "CUDA_COURSE_CPU": "1", "CUDA_VISIBLE_DEVICES": ""},  # for torch
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def printed():
    return run_all(derive.FOLDER, SEEDS)


@pytest.fixture(scope="module")
def diagnoses():
    return run_all(BROKEN, ["-"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_prints_what_a_gpu_prints(printed, name):
    expected = (derive.FOLDER / f"{name}.out").read_text()
    assert len(printed[name]) == len(SEEDS) * len(WAYS)
    for schedule, result in printed[name].items():
        assert result["problem"] is None, (schedule, result["problem"])
        assert result["printed"] == expected, f"with schedule {schedule}"


def test_every_program_has_a_derivation_and_an_output():
    assert (
        set(PROGRAMS) == set(derive.PROGRAMS) == {path.stem for path in derive.FOLDER.glob("*.out")}
    )


def test_what_a_gpu_printed_is_what_was_derived():
    """Of each program, recorded or not: arithmetic and the manuals say what the GPU said."""
    expected = {name: (derive.FOLDER / f"{name}.out").read_text() for name in PROGRAMS}
    assert {name: derive.PROGRAMS[name]() for name in PROGRAMS} == expected


def test_what_is_recorded_says_where_and_when():
    recorded = json.loads(derive.PROVENANCE.read_text())["recorded"]
    facts = {"gpu", "driver", "numba-cuda", "date"}
    assert [name for name in recorded if not facts <= set(recorded[name])] == []


@pytest.mark.parametrize("name", sorted(path.stem for path in BROKEN.glob("*.py")))
def test_broken_kernels_get_their_diagnosis(diagnoses, name):
    lines = (BROKEN / f"{name}.py").read_text().splitlines()
    wanted = lines[0].removeprefix("# diagnosis: ")
    where = next(number for number, line in enumerate(lines, 1) if line.endswith("# here"))
    by_stacks, by_generators = (diagnoses[name][f"-{way}"]["problem"] for way in WAYS)
    assert by_stacks == by_generators
    problem = by_stacks
    assert problem is not None, "no mistake was found"
    assert wanted in problem["text"]
    assert problem["line"] == where
    assert f"{name}.py, line {where}" in problem["text"]
