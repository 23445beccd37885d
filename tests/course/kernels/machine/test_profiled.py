"""Limits by Nsight Compute: how a verdict is read, how ncu is called, what is recorded."""

import json
import sys

import numpy as np
import pytest
from numba import cuda

from course.kernels.machine import profiled
from course.kernels.machine.cases import Case, Growing
from tests.needs import without_gpu
from utils.estimate import Blank, Launch
from utils.estimate.model import WORDS

#: What stands in for ncu: runs the program behind its options and says one row a launch
NCU = """#!{python}
import subprocess, sys
arguments = sys.argv[1:]
metrics = arguments[arguments.index("--metrics") + 1].split(",")
table = open(arguments[arguments.index("--log-file") + 1], "w")
if "unknown.metric" in metrics:
    print("==ERROR== Failed to find metric regex:^unknown.metric$", file=table)
    sys.exit(1)
program = arguments[arguments.index("--metrics") + 2:]
done = subprocess.run(program, capture_output=True, text=True)
print(done.stdout, done.stderr)
launched = [line for line in done.stdout.splitlines() if line.startswith("launched ")]
names = ["ID", "Kernel Name", *metrics]
print("==PROF== Connected", file=table)
print(",".join('"%s"' % name for name in names), file=table)
print(",".join(['""', '""'] + ['"%"'] * len(metrics)), file=table)
for number, _ in enumerate(launched):
    print(",".join('"%s"' % v for v in [number, "k", *["1,234.5"] * len(metrics)]), file=table)
"""


@cuda.jit
def double(out, a, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] * factor


def doubling(n):
    return Launch(double, -(-n // 32), 32, (Blank(n), Blank(n), np.float32(2)))


def shares(**more):
    return {"memory": 10.0, "l2": 10.0, "l1": 10.0, "sm": 10.0, **more}


@pytest.mark.parametrize(
    "limit, counted, verdict, agrees",
    [
        ("memory", shares(memory=80), "memory", True),
        ("memory", shares(memory=70, sm=78), "sm", True),  # balanced
        ("memory", shares(memory=60, sm=78), "sm", False),
        ("memory", shares(memory=50), "latency", False),
        ("latency", shares(memory=50), "latency", True),
        ("latency", shares(memory=61), "memory", False),
        ("blocks", shares(l1=59), "latency", True),
        ("fp64", shares(sm=90), "sm", True),
        ("l2", shares(l1=90), "l1", False),
    ],
)
def test_an_estimate_agrees_where_it_names_the_busiest_unit(limit, counted, verdict, agrees):
    assert profiled.verdict(counted) == verdict
    assert profiled.agrees(limit, counted) == agrees


def test_every_resource_of_the_model_keeps_a_unit_busy_or_idle():
    idle = {"barriers", "atomics", "blocks", "latency"}
    assert set(profiled.UNIT_OF) | idle == set(WORDS)


def test_kernels_of_all_kinds_come_first(monkeypatch):
    monkeypatch.setattr(profiled.cases_cuda_c, "cases", list)  # to ask would compile them all
    first = [case.family for case in profiled.every()[:20]]
    assert len(set(first)) > 6 and "walks" not in first


@without_gpu("on a GPU it is a real ncu")
def test_a_launch_has_its_arrays_and_is_told(monkeypatch, capsys):
    broken = Case("broken", "f", (Launch(double, 1, 32, (Blank(4),)),))
    cases = [Case("whole", "f", (doubling(64),)), broken]
    cases += [Case("grows", "f", (Growing(doubling, 96, (1, 2, 3)),))]
    monkeypatch.setattr(profiled, "every", lambda: cases)
    profiled.launch(["whole", "broken", "grows"])
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "launched whole" and said[2] == "launched grows"
    assert said[1].startswith("not launched: broken: ")


@without_gpu("on a GPU it is a real ncu")
def test_blanks_are_filled_with_numbers_counters_with_zeros(monkeypatch):
    monkeypatch.setattr(profiled, "PIECE", 100)
    values = profiled.on_device(Blank((7, 50))).copy_to_host()
    assert values.shape == (7, 50) and (values > 0).mean() > 0.9
    assert len(np.unique(profiled.on_device(Blank(990, np.uint8)).copy_to_host())) > 50
    assert not profiled.on_device(Blank(5, np.int32)).copy_to_host().any()


def stand_in(tmp_path, monkeypatch, program):
    """Have `profiled` call the stand-in for ncu, and that a program in place of the launches."""
    ncu = tmp_path / "ncu"
    ncu.write_text(NCU.replace("{python}", sys.executable))
    ncu.chmod(0o755)
    script = tmp_path / "python"
    script.write_text(f"#!{sys.executable}\n{program}\n")
    script.chmod(0o755)
    monkeypatch.setattr(profiled.profilers, "find", lambda tool: str(ncu))
    monkeypatch.setattr(profiled.sys, "executable", str(script))


def test_ncus_rows_belong_to_the_cases_that_were_launched(tmp_path, monkeypatch):
    stand_in(
        tmp_path, monkeypatch, "print('launched a'); print('not launched: b'); print('launched c')"
    )
    counters = {"memory": "dram", "odd": "unknown.metric"}
    found = profiled.profiled(["a", "b", "c"], counters)
    assert found == {"a": {"memory": 1234.5}, "c": {"memory": 1234.5}}
    assert counters == {"memory": "dram"}  # what ncu does not know is not asked for again


def test_a_row_too_few_is_no_result(tmp_path, monkeypatch):
    stand_in(tmp_path, monkeypatch, "print('nothing')")
    assert profiled.profiled(["a"], {"memory": "dram"}) == {}


def test_what_is_there_is_written_after_each_process(tmp_path, monkeypatch):
    class Card:
        name, driver = "NVIDIA H200", "1"

    def profile(names, counters):
        if "b" in names:
            raise RuntimeError("ncu saw 0 launches, not 1")
        return dict.fromkeys(names, shares())

    monkeypatch.setattr(profiled, "TOGETHER", 1)
    monkeypatch.setattr(profiled, "profiled", profile)
    monkeypatch.setattr(profiled, "every", lambda: [Case(name, "f") for name in "abc"])
    monkeypatch.setattr(profiled.engine, "gpu", Card)
    path = tmp_path / "limits.json"
    profiled.record(path, 60)
    content = json.loads(path.read_text())
    assert list(content["kernels"]) == ["a", "c"] and content["gpu"] == "NVIDIA H200"
    assert content["counters"] == profiled.COUNTERS


def test_limits_stand_beside_estimates_of_the_same_kernels():
    estimates = [{"name": "a", "limit": "memory"}, {"name": "b", "limit": "l2"}]
    (row,) = profiled.compared(estimates, {"a": shares(memory=90)})
    assert row == {"name": "a", "estimate": "memory", "ncu": "memory", "agrees": True}
