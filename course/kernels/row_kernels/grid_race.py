"""One shape of the grid: our kernel proved and timed, in turn with torch's and torch.compile's.

Many processes do this at once, because torch.compile takes seconds for each shape; a lock keeps the
GPU to one of them. Compilers need no GPU, so they work while others time. What is timed is a CUDA
graph's replay: no rival pays for its launches from Python.
"""

import gc
import itertools
import os
import time
from dataclasses import dataclass
from functools import partial

import torch

from course.kernels.bench.grids import replayed
from course.kernels.row_kernels import fast, norms
from course.kernels.row_kernels.grid_shapes import GridShape
from course.kernels.row_kernels.operations import OPERATIONS, Operation
from course.kernels.row_kernels.rightness import DEVICE, DTYPES, verify
from course.kernels.row_kernels.shapes import Shape
from utils import compare, has_gpu, timing

#: Of a comparison: seconds of GPU time, by which repeats are counted, and the fewest repeats
SECONDS, REPEATS = 0.002, 12
ROWS_PROVED = 16
RIVALS = ("torch", "compile")
COLLECTED = 4  # races between two collections of garbage
LEFT_OVERS = 6 << 30  # bytes that a process may keep of the GPU's memory between races


@dataclass(frozen=True)
class Job:
    """An operation on a shape of a type. others: of our ways to deal it, to be timed, too."""

    operation: str
    dtype: str
    shape: GridShape
    others: tuple[Shape, ...] = ()

    def __str__(self):
        return f"{self.operation}/{self.dtype}/{self.shape}"


def inputs_of(operation: Operation, shape: GridShape, dtype: torch.dtype, device: str) -> dict:
    """Random inputs, and what a forward pass keeps for the backward one."""
    generator = torch.Generator(device).manual_seed(shape.columns)
    how = {"generator": generator, "device": device}
    rows, columns = shape.rows, shape.columns
    t = {"x": laid(shape, dtype, generator)}
    if operation.inputs == 2:
        t["dy"] = laid(shape, dtype, generator)
    if "norm" in operation.name:
        wide = t["x"].float()
        t["gamma"] = torch.randn(columns, dtype=dtype, **how)
        t["beta"] = torch.randn(columns, dtype=dtype, **how)
        t["means"] = wide.mean(1)
        t["inverses"] = (wide.var(1, correction=0) + norms.EPSILON).rsqrt()
        t["rms_inverses"] = (wide.square().mean(1) + norms.EPSILON).rsqrt()
    if "entropy" in operation.name:
        t["targets"] = torch.randint(columns, (rows,), **how)
        t["weights"] = torch.rand(rows, **how)
    return t


def laid(shape: GridShape, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Random numbers, laid out as the shape says."""
    stride = shape.columns + shape.gap
    room = torch.randn(
        shape.before + shape.rows * stride,
        dtype=dtype,
        device=generator.device,
        generator=generator,
    )
    return room.as_strided((shape.rows, shape.columns), (stride, 1), shape.before)


class Turn:
    """The GPU, which one process has at a time."""

    def __init__(self, lock):
        self.lock = lock
        self.mine = False

    def take(self) -> None:
        """Wait for the GPU, unless this process has it."""
        if not self.mine:
            self.lock.acquire()
            self.mine = True

    def give(self) -> None:
        """Let another process have it."""
        if self.mine:
            self.mine = False
            self.lock.release()


def prepared(job: Job, operation: Operation, t: dict) -> None:
    """Compile our kernels."""
    x = t["x"]
    matrices = (x, t["dy"]) if operation.inputs == 2 else (x,)
    parameters = [t[name] for name in ("gamma", "beta") if name in operation.arguments]
    for shape in (None, *job.others):
        fast.kernel_for(operation.deals, shape, matrices, tuple(parameters))


def compiled(operation: Operation, t: dict, turn: Turn):
    """torch.compile's function for these very tensors; its kernels wait for the GPU."""
    from torch._inductor.compile_fx import compile_fx

    def backend(graph, examples):
        run = compile_fx(graph, examples)

        def when_free(*arguments):
            turn.take()
            return run(*arguments)

        return when_free

    torch._dynamo.reset()
    function = operation.compiled
    made = torch.compile(lambda t: function(t), backend=backend, dynamic=False, fullgraph=True)
    made(t)
    return lambda: made(t)


def raced(job: Job, turn: Turn) -> dict:
    """{rival: milliseconds, "wrong": {rival: why}, "seconds": ...}: right ones only are timed.

    Without a GPU ours is proved and nothing is timed.
    """
    operation = OPERATIONS[job.operation]
    began = time.monotonic()
    turn.take()
    t = inputs_of(operation, job.shape, DTYPES[job.dtype], DEVICE)
    _synchronize()
    turn.give()
    prepared(job, operation, t)
    entry = {"wrong": {}}
    runs = rivals_of(operation, t, turn, entry["wrong"]) if has_gpu() else {}
    ready = time.monotonic()
    turn.take()
    runs |= {"ours": partial(operation.ours, t, None, True)}
    runs |= {str(shape): partial(operation.ours, t, shape, True) for shape in job.others}
    able = {}
    for label, run in runs.items():
        try:
            verify(operation, t, run(), rows=ROWS_PROVED, sums=label not in RIVALS)
            able[label] = replayed(run)
        except Exception as error:
            entry["wrong"][label] = said(error)
    if has_gpu() and able:
        entry |= {label: found.median for label, found in compare(able).timings.items()}
    entry["seconds"] = [round(ready - began, 2), round(time.monotonic() - ready, 2)]
    return entry


def rivals_of(operation: Operation, t: dict, turn: Turn, wrong: dict) -> dict:
    """torch's own way, and what torch.compile makes of the operation."""
    rivals = {"torch": partial(operation.eager, t)}
    try:
        rivals["compile"] = compiled(operation, t, turn)
    except Exception as error:
        wrong["compile"] = said(error)
    return rivals


def said(error: Exception) -> str:
    """What an error says, shortened."""
    return f"{type(error).__name__}: {error}"[:300]


def work(lock, jobs, results) -> None:
    """A process: takes jobs until there are none, or until a kernel has broken its context."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    torch.set_num_threads(1)
    timing.BUDGET, timing.MIN_REPEATS = SECONDS, REPEATS
    turn = Turn(lock)
    _warm_up()
    gc.disable()  # a collection would come while the GPU waits
    gc.freeze()
    for done in itertools.count(1):
        job = jobs.get()
        if job is None:
            return
        try:
            entry = raced(job, turn)
            broken = any("CUDA error" in why for why in entry["wrong"].values())
            if has_gpu() and not broken and torch.cuda.memory_reserved() > LEFT_OVERS:
                torch.cuda.empty_cache()
        except Exception as error:
            entry = {"wrong": {"all": said(error)}}
            broken = "CUDA" in said(error)
        finally:
            turn.give()  # the others wait for it
        results.put((job, entry))
        if broken:  # nothing would run in this process any more
            return
        torch._dynamo.reset()
        if done % COLLECTED == 0:
            gc.collect()


def _synchronize() -> None:
    if has_gpu():
        torch.cuda.synchronize()


def _warm_up() -> None:
    """What the first race would wait for: the clock's kernel, and sums of rows of each type."""
    if has_gpu():
        timing._l2_flush()(timing._numba_stream(0))
    for dtype in DTYPES.values():
        partial_sums = torch.zeros(1, 2, 8, device=DEVICE)
        norms.add_rows(partial_sums, torch.zeros(8, dtype=dtype, device=DEVICE))
    _synchronize()
