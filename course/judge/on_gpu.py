"""What the judge says on a GPU: its bank, and candidates that only a GPU shows for what they are.

    python -m course.judge.on_gpu --out FILE [--budget SECONDS] [--workers N]

First, alone on the GPU, what is timed: streams, caches, clocks, rivals, bare kernels, a task in
KernelBench's form, the twelve envelopes. Then, several at a time, the patterns, and right answers
of the course as far as the seconds reach. Each result is a line of JSON in FILE as soon as it is
known: what was expected, what was said, and the times.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from course.judge import Demands, Out, bank, judge, of_exercises, tasks, timed
from course.judge.bank.tasks import ORDER, SOFTMAX_ON_TORCH, TASKS
from utils import engine, has_gpu

BUDGET, WORKERS = 110, 6
CLOSING = 3  # seconds before the end in which nothing new is begun
LONG = 1 << 20


@dataclass(frozen=True)
class Case:
    """What is handed in for a task, and the words that must be said of it.

    expected: of the verdict, "right: yes" and its like, and keys of reasons.
    """

    name: str
    candidate: object
    task: object
    expected: tuple

    def result(self):
        """What was said, as JSON holds it."""
        begin = time.perf_counter()
        told = {"case": self.name, "expected": self.expected}
        try:
            task = self.task
            report = judge(self.candidate, task.reference, task.inputs, task.demands, seed=1)
            words = {report.verdict, *report.keys}
            words |= {f"{name}: {one.verdict}" for name, one in report.answers.items()}
            told["as_expected"] = words.issuperset(self.expected)
            told["said"] = sorted(words)
            told["reasons"] = [reason.says for reason in report.reasons]
            told["fast"] = report.fast.evidence
            told["tried"] = report.right.evidence
        except Exception:
            told["as_expected"] = False
            told["error"] = traceback.format_exc()
        return told | {"seconds": round(time.perf_counter() - begin, 2)}


# ---- what only a GPU shows

PLAIN = """
import torch

def candidate(x):
    powers = torch.exp(x - x.max(dim=1, keepdim=True).values)
    return powers / powers.sum(dim=1, keepdim=True)
"""
TWICE = (
    PLAIN
    + """
def once_more(x, computed=candidate):
    computed(x)
    return computed(x)

candidate = once_more
"""
)
OWN_CLOCK = "import timed\ntimed.Device.stop = lambda self: (0.001, 0.001)\n" + PLAIN

SCALE_CU = """
__global__ void scale(float *out, const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3 * x[i] + 1;
}
"""
SCALE_NUMBA = """
from numba import cuda

@cuda.jit
def scale(out, x, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = 3 * x[i] + 1
"""
SCALE_TRITON = """
import triton
import triton.language as tl

@triton.jit
def scale(out, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 3 * tl.load(x + i, mask=i < n) + 1, mask=i < n)
"""
ONE_THREAD = SCALE_CU.replace("    if (i < n)", "    if (i == 0) for (; i < n; i++)")
BLOCK = 256

MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(512, 1024)]

def get_init_inputs():
    return [1024, 768]
"""
MODEL_NEW = MODEL.replace("class Model(", "class ModelNew(").partition("def get_inputs")[0]
ANOTHER_STREAM = MODEL_NEW.replace(
    "        return", "        with torch.cuda.stream(torch.cuda.Stream()):\n            return"
)


def numbers(rng, n, tensors=False):
    """An output, an array of n numbers, and n."""
    n = max(1, n)
    x = rng.normal(size=n).astype(np.float32)
    if tensors:
        import torch

        x = torch.from_numpy(x).to("cuda" if has_gpu() else "cpu")
    return Out((n,), np.float32, tensors), x, n


def scaled(x, n):
    """What is ordered of the bare kernels."""
    return 3 * np.asarray(x.cpu() if hasattr(x, "cpu") else x) + 1


def bare(triton=False):
    """The task of a bare kernel: 3 x + 1."""

    def launch(out, x, n):
        grid = -(-n // BLOCK)
        return ((grid,), {"BLOCK": BLOCK}) if triton else (grid, BLOCK)

    def inputs(rng, n):
        return numbers(rng, n, tensors=triton)

    demands = Demands(
        launch=launch,
        entry="scale",
        library=(),
        timed_size=LONG,
        sizes=(1, 33, 300),
        bytes=lambda out, x, n: 8 * n,
    )
    return tasks.Task("scale", scaled, inputs, demands)


def raced(task, rival):
    """A task with a rival."""
    return replace(task, demands=replace(task.demands, rival=rival))


def timed_ones():
    """Cases whose time matters: each has the GPU alone."""
    patterns = {one.key: one for one in bank.patterns()}
    on_torch = replace(SOFTMAX_ON_TORCH, demands=replace(SOFTMAX_ON_TORCH.demands, library=()))
    for key, reason in (("other_stream", "does_not_wait"), ("persisting_cache", "holds_cache")):
        yield Case(key, patterns[key].path, SOFTMAX_ON_TORCH, ("refused", reason))
    yield Case("honest", PLAIN, on_torch, ("accepted", "no_rival"))
    yield Case("as fast as its rival", PLAIN, raced(on_torch, PLAIN), ("accepted", "fast: yes"))
    yield Case("half as fast", TWICE, raced(on_torch, PLAIN), ("right: yes", "slower"))
    yield Case("twice as fast", PLAIN, raced(on_torch, TWICE), ("accepted", "fast: yes"))
    yield Case("a clock of its own", OWN_CLOCK, on_torch, ("patched", "looks_around"))
    yield Case("bare CUDA C", SCALE_CU, bare(), ("accepted",))
    yield Case("bare Numba", SCALE_NUMBA, bare(), ("accepted",))
    yield Case("bare Triton", SCALE_TRITON, bare(triton=True), ("accepted",))
    slow = raced(bare(), SCALE_CU)
    yield Case("one thread", ONE_THREAD, slow, ("right: yes", "slower"))
    task = tasks.kernelbench(MODEL, "linear")
    library = tasks.without_library(task)
    yield Case("KernelBench's form", MODEL_NEW, library, ("right: yes", "honest: yes"))
    yield Case("KernelBench's form, a stream", ANOTHER_STREAM, library, ("refused",))
    says = {"wrong": ("right: no",), "cheating": ("honest: no",), "slow": ("slower",)}
    for one in bank.envelopes():
        expected = says.get(one.verdict, ("accepted",))
        yield Case(f"envelope {one.number}", one.path, ORDER, expected)


def others():
    """Cases that may share the GPU."""
    for one in bank.patterns():
        if one.needs == "nothing":
            expected = ("refused", f"{one.fails}: no")
            yield Case(one.key, one.path, TASKS[one.task], expected)
    from course import exercises

    known = [one for one in exercises.EXERCISES.values() if of_exercises.can_be_judged(one)]
    for exercise in sorted(known, key=lambda one: one.kind != "triton"):
        if exercise.kind != "function":
            task = of_exercises.Task(exercise)
            demands = replace(task.demands, entry=exercise.kernel_name or None)
            whole = tasks.Task(exercise.id, task.reference, task.inputs, demands)
            yield Case(exercise.id, exercise.solution, whole, ("right: yes", "honest: yes"))


# ---- the run


def keep(path, told):
    """Write a result, and print it in a line."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(told) + "\n")
    mark = {True: "as expected", False: "NOT as expected"}.get(told.get("as_expected"), "")
    print(told["case"], mark, told.get("said", told.get("error", "")), flush=True)


def clock_facts():
    """What the judge's clock says of nothing, and of a softmax of a large matrix."""
    import torch  # whose events are the clock

    clock = timed.clock()
    told = {"case": "the clock", "kind": type(clock).__name__}
    calls = {"nothing": (lambda: None, [tuple])}
    if has_gpu():
        x = torch.randn(4096, 4096, device="cuda")
        calls["softmax"] = (torch.softmax, [lambda: (x, 1)])
        told["GPU"] = engine.gpu().name
    for name, (work, sets) in calls.items():
        own, whole = timed.samples(work, clock, sets, 50)
        told[name] = {"own": statistics.median(own), "whole": statistics.median(whole)}
    return told


def run(results, path, end):
    """Keep one result after the other until the time is over. What fails ends these alone."""
    try:
        for result in results:
            keep(path, result() if callable(result) else result.result())
            if time.monotonic() > end - CLOSING:
                return
    except Exception:
        keep(path, {"case": "the script", "as_expected": False, "error": traceback.format_exc()})


def main():
    """Run as a program: see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--budget", type=float, default=BUDGET, metavar="SECONDS")
    parser.add_argument("--workers", type=int, default=WORKERS, metavar="N")
    parser.add_argument("--part", type=int, metavar="K", help="every N-th of the second half")
    given = parser.parse_args()
    end = time.monotonic() + given.budget
    if given.part is not None:
        run(list(others())[given.part :: given.workers], given.out, end)
        return
    run([clock_facts], given.out, end)
    run(timed_ones(), given.out, end)
    left = end - time.monotonic()
    command = [sys.executable, "-m", "course.judge.on_gpu", "--out", str(given.out)]
    command += ["--budget", f"{left:.0f}", "--workers", str(given.workers), "--part"]
    running = [subprocess.Popen([*command, str(part)]) for part in range(given.workers)]
    for one in running:
        try:
            one.wait(max(0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            one.kill()
    known = [json.loads(line) for line in given.out.read_text(encoding="utf-8").splitlines()]
    other = [one["case"] for one in known if one.get("as_expected") is False]
    print(f"{len(known)} results, {len(other)} not as expected: {', '.join(other)}")


if __name__ == "__main__":
    main()
