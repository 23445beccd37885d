"""The bank: every file has a whole record, and the twelve envelopes are those of the chapter."""

import json
from dataclasses import replace
from urllib.parse import urlparse

import nbformat
import pytest
import torch

from course.chapters import FOLDER
from course.judge import bank, judge
from course.judge.__main__ import main
from course.judge.bank.operations import operations
from course.judge.bank.tasks import ORDER, TASKS
from course.judge.tasks import kernelbench, module_of
from utils import has_gpu

CHAPTER = FOLDER / "25_not_written.ipynb"
OPERATIONS = operations()
VERDICTS = {"right", "wrong", "slow", "cheating", "brilliant"}


def test_every_pattern_says_what_it_does_where_it_was_reported_and_what_it_fails():
    patterns = bank.patterns()
    assert len(patterns) >= 25 and len({one.says for one in patterns}) == len(patterns)
    for one in patterns:
        assert one.says.endswith("."), one.key
        assert urlparse(one.source).scheme == "https", one.key
        assert one.task in TASKS and one.fails in ("right", "fast", "honest"), one.key
        assert one.needs in ("nothing", "GPU"), one.key


def test_the_chapters_envelopes_are_the_banks():
    cells = {cell.id: cell.source for cell in nbformat.read(CHAPTER, 4).cells}
    for one in bank.envelopes():
        head, _, source = cells[f"envelope-{one.number}"].partition("\n")
        assert head == f"%%writefile build/envelope_{one.number:02}.py"
        assert source == one.source.rstrip("\n")
        assert one.verdict in VERDICTS


def test_the_chapters_signatures_are_marked_by_the_banks_verdicts():
    cells = {cell.id: cell.metadata for cell in nbformat.read(CHAPTER, 4).cells}
    marked = {one.number: cells[f"sign-{one.number}"].answer for one in bank.envelopes()}
    assert marked == {one.number: one.verdict for one in bank.envelopes()}


def test_each_operation_is_answered_by_other_means():
    assert len({one.name for one in OPERATIONS}) == len(OPERATIONS) >= 100
    for one in OPERATIONS:
        task, answer = (module_of(text, one.name) for text in (one.task, one.candidate))
        given = task.get_inputs()
        expected, got = task.Model()(*given), answer.ModelNew()(*given)
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5, msg=one.name)
        assert one.asked not in one.answer, one.name


def test_a_right_operation_is_accepted_where_terms_cancel_too():
    one = next(one for one in OPERATIONS if one.name == "layer norm")
    task = kernelbench(one.task, one.name)
    demands = replace(task.demands, library=())
    report = judge(one.candidate, task.reference, task.inputs, demands, seed=25)
    assert report.verdict == "accepted", report
    off = one.candidate.replace("return ", "return 1.001 * ")
    report = judge(off, task.reference, task.inputs, demands, seed=25)
    assert report.right.verdict == "no", report


def test_strangers_right_answers_solve_tasks_of_the_bank():
    answers = bank.right_answers()
    assert {one.task for one in answers} <= TASKS.keys()
    assert len({one.source for one in answers}) == len(answers) >= 30
    assert all(compile(one.source, one.title, "exec") for one in answers)


KERNELBENCH = """
import torch
class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(width))
    def forward(self, x):
        return torch.cumsum(x * self.scale, 1)
width = 4096
def get_inputs():
    return [torch.rand(512, width)]
def get_init_inputs():
    return [width]
"""
MODEL_NEW = """
    def forward(self, x):
        total, columns = torch.zeros(x.shape[0]), []
        for n in range(x.shape[1]):
            total = total + x[:, n] * self.scale[n]
            columns.append(total)
        return torch.stack(columns, 1)
"""


def test_a_task_in_kernelbench_s_form_is_judged_from_the_command_line(tmp_path, capsys):
    head, forward, rest = KERNELBENCH.partition("\n    def forward")
    task, good, bad, told = (tmp_path / name for name in ("task.py", "good.py", "bad.py", "out"))
    task.write_text(KERNELBENCH)
    good.write_text(head.replace("Model(", "ModelNew(") + MODEL_NEW)
    bad.write_text(KERNELBENCH.replace("Model(", "ModelNew("))
    assert main([str(good), "--task", str(task), "--json", str(told)]) == 0, capsys.readouterr()
    assert json.loads(told.read_text())["verdict"] == "accepted"
    assert main([str(bad), "--task", str(task)]) == 1
    assert "`cumsum` ran" in capsys.readouterr().out


CONSTANTS = """
import torch
class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
    def forward(self, x):
        return self.norm(x)
def get_inputs():
    return [torch.randn(4, 12)]
def get_init_inputs():
    return [12]
"""
NORMED = """
import torch
class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        INIT
    def forward(self, x):
        apart = x - x.mean(1, keepdim=True)
        return apart * torch.rsqrt((apart * apart).mean(1, keepdim=True) + 1e-5)REST
"""
NORMS = {
    "by name": ("self.norm = torch.nn.LayerNorm(width)", " * self.norm.weight + self.norm.bias"),
    "in order": (
        "self.w = torch.nn.Parameter(torch.ones(width));"
        " self.b = torch.nn.Parameter(torch.zeros(width))",
        " * self.w + self.b",
    ),
    "of its own form": (
        "self.both = torch.nn.Parameter(torch.stack([torch.ones(width), torch.zeros(width)]))",
        " * self.both[0] + self.both[1]",
    ),
    "left out": ("pass", ""),
    "never read": ("self.norm = torch.nn.LayerNorm(width)", ""),
}


@pytest.mark.parametrize("what", NORMS)
def test_weights_that_init_makes_constant_are_drawn_anew(what):
    task = kernelbench(CONSTANTS, "layer norm")
    init, rest = NORMS[what]
    source = NORMED.replace("INIT", init).replace("REST", rest)
    demands = replace(task.demands, library=())
    report = judge(source, task.reference, task.inputs, demands, seed=4)
    is_wrong = what in ("left out", "never read")
    assert report.right.verdict == ("no" if is_wrong else "yes"), report
    assert report.verdict == ("refused" if is_wrong else "accepted"), report


SHORT = """
import numpy as np
def softmax(x):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    result = powers / powers.sum(axis=1, keepdims=True)
    CONDITION
    return result
"""
LOOPS = pytest.mark.nightly("a kernel that is cut as the function `zeros` is by day")
CUT = {
    "late": SHORT.replace("    CONDITION\n", "").replace(
        "x.max(", "(x[:, :32] if x.shape[1] > 1024 else x).max("
    ),
    "both": SHORT.replace("CONDITION", "if min(x.shape) > 150: result[150:] = 0"),
    "16 bits": SHORT.replace("CONDITION", "result[65_536:] = 0"),
    "zeros": """
import numpy as np
def softmax(x):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True) if x.shape[1] <= 45 else np.zeros_like(x)
""",
    "loops": bank.envelopes()[8].source.replace("x.shape[1], 32", "min(x.shape[1], 64), 32"),
}


@pytest.mark.parametrize(
    "what",
    [pytest.param(one, marks=LOOPS) if one == "loops" else one for one in CUT],
)
def test_rows_are_tried_that_are_longer_than_a_block(what):
    report = judge(CUT[what], ORDER.reference, ORDER.inputs, ORDER.demands, seed=7)
    assert {"only_sizes", "only_values"} & {*report.right.keys}, report


@pytest.mark.parametrize("number", range(1, 13))
def test_an_envelope_is_judged_as_its_verdict_says(number):
    one = bank.envelopes()[number - 1]
    report = judge(one.path, ORDER.reference, ORDER.inputs, ORDER.demands, seed=number)
    refused = {"wrong": report.right, "cheating": report.honest}.get(one.verdict)
    if one.verdict == "slow" and has_gpu():
        assert report.fast.keys == ("slower",), report
    elif refused is None:
        assert report.verdict == "accepted", report
    else:
        assert refused.verdict == "no", report
