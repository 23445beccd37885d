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

import torch

from course.kernels.row_kernels import fast, norms
from course.kernels.row_kernels.grid_shapes import GridShape
from course.kernels.row_kernels.operations import OPERATIONS, Operation
from course.kernels.row_kernels.rightness import DTYPES, verify
from course.kernels.row_kernels.shapes import Shape
from utils import compare, timing

#: Of a comparison: seconds of GPU time, by which repeats are counted, and the fewest repeats
SECONDS, REPEATS = 0.002, 12
ROWS_PROVED = 16
COLLECTED = 4  # races between two collections of garbage
LEFT_OVERS = 6 << 30  # bytes that a process may keep of the GPU's memory between races


@dataclass(frozen=True)
class Job:
    """An operation on a shape of a type. compiled: whether torch.compile takes part. others: of
    our shapes to time, too.
    """

    operation: str
    dtype: str
    shape: GridShape
    compiled: bool = True
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
        self.seconds = 0.0

    def take(self) -> None:
        if not self.mine:
            self.lock.acquire()
            self.mine = True
            self.since = time.monotonic()

    def give(self) -> None:
        if self.mine:
            self.seconds += time.monotonic() - self.since
            self.mine = False
            self.lock.release()


def prepared(job: Job, operation: Operation, t: dict) -> None:
    """Compile our kernels."""
    x = t["x"]
    matrices = (x, t["dy"]) if operation.inputs == 2 else (x,)
    parameters = [t[name] for name in ("gamma", "beta") if name in operation.arguments]
    out = torch.empty(16, dtype=x.dtype, device=x.device)
    for shape in (None, *job.others):
        fast.kernel_for(operation.deals, shape, matrices, (out,), tuple(parameters))


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


def replayed(run):
    """What replays a function's kernels as one CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        run()
        torch.cuda.synchronize()
        graph.capture_begin(capture_error_mode="thread_local")
        results = run()
        graph.capture_end()
    torch.cuda.synchronize()

    def replay():
        graph.replay()
        return results

    return replay


def raced(job: Job, turn: Turn) -> dict:
    """{rival: milliseconds, "wrong": {rival: why}, "seconds": ...}: right ones only are timed."""
    operation = OPERATIONS[job.operation]
    dtype = DTYPES[job.dtype]
    began = time.monotonic()
    turn.take()
    t = inputs_of(operation, job.shape, dtype, "cuda")
    torch.cuda.synchronize()
    turn.give()
    prepared(job, operation, t)
    compiling = time.monotonic()
    entry = {"wrong": {}}
    rivals = {"torch": lambda: operation.eager(t)}
    if job.compiled:
        try:
            rivals["compile"] = compiled(operation, t, turn)
        except Exception as error:
            entry["wrong"]["compile"] = f"{type(error).__name__}: {error}"[:300]
    compiling = time.monotonic() - compiling
    turn.take()
    runs = {}
    ours = {"ours": None} | {str(shape): shape for shape in job.others}
    for label, shape in ours.items():
        rivals[label] = lambda shape=shape: operation.ours(t, shape)
    for label, run in rivals.items():
        try:
            known = label in ("torch", "compile")
            verify(operation, t, run(), rows=ROWS_PROVED, sums=not known)
            runs[label] = replayed(run)
        except Exception as error:
            entry["wrong"][label] = f"{type(error).__name__}: {error}"[:300]
    if runs:
        for label, found in compare(runs).timings.items():
            entry[label] = found.median
    entry["seconds"] = [round(compiling, 2), round(time.monotonic() - began, 2)]
    return entry


def work(number: int, lock, jobs, results) -> None:
    """A process: takes jobs until there are none."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    torch.set_num_threads(1)
    timing.BUDGET, timing.MIN_REPEATS = SECONDS, REPEATS
    gc.disable()  # a collection would come while the GPU waits
    turn = Turn(lock)
    _warm_up()
    gc.freeze()
    done = itertools.count(1)
    while True:
        job = jobs.get()
        if job is None:
            return
        try:
            entry = raced(job, turn)
        except Exception as error:
            entry = {"wrong": {"all": f"{type(error).__name__}: {error}"[:600]}}
            if isinstance(error, (RuntimeError, torch.AcceleratorError)) and "CUDA" in str(error):
                results.put((number, job, entry))
                os._exit(4)  # nothing runs in this process any more
        finally:
            if torch.cuda.memory_reserved() > LEFT_OVERS:
                torch.cuda.empty_cache()
            turn.give()
        entry["busy"] = round(turn.seconds, 2)
        results.put((number, job, entry))
        torch._dynamo.reset()
        if next(done) % COLLECTED == 0:
            gc.collect()


def _warm_up() -> None:
    """What the first race would wait for: the clock's kernel, and sums of rows of each type."""
    timing._l2_flush()(timing._numba_stream(0))
    for dtype in DTYPES.values():
        partial = torch.zeros(1, 2, 8, device="cuda")
        norms.add_rows(partial, torch.zeros(8, dtype=dtype, device="cuda"))
    torch.cuda.synchronize()
