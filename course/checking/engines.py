"""Running an answer: Numba on watched arrays or between guard zones, CUDA C in a child process."""

import functools
import json
import mmap
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numba import cuda

from course.checking import cuda_c_child, loaded, model
from course.checking.model import InOut, Out
from course.checking.text import shown
from course.checking.watched import Watched
from utils import has_gpu
from utils.check.comparison import random_poison
from utils.cpu.numba_cuda import IN_STEP, cpu_jit, schedule
from utils.cpu.numba_cuda.arguments import argument, kind_of
from utils.cpu.numba_cuda.engine import Launch
from utils.engine import FORCE_CPU
from utils.files import scratch_folder
from utils.occupancy import rounded
from utils.tools import process

#: By name, in the kernel's order: arrays, numbers, one `Out` or `InOut`
Arguments = dict[str, Any]
#: (reason, message)
Failure = tuple[str, str]
CHILD_SECONDS = 600  # by the clock, on a busy computer: what is endless ends by its CPU time
LAUNCH_SECONDS = 4  # of CPU time, for one launch; whole ones, so it may be nearly one more
WAITING_SECONDS = 1  # the same where threads wait for others: most mistakes are waits without end
WAITING_BY_CLOCK = 4  # and by the clock: who waits leaves the processor to others
ORDER_SECONDS = 30  # for all launches of one order, which take a good computer two or three
GPU_ORDER_SECONDS = 60  # where to wait for a GPU, which others may use, takes CPU time, too
DEVICE_ALIGNMENT = 256  # bytes
MOST_ZONE = 1 << 16  # elements before and behind an array
LOST_TWICE = (
    "The process in which it ran was killed, and killed again at a second try. Does this computer "
    "have memory left? If it has, the answer itself ends processes."
)


@dataclass(eq=False)
class Run:
    """One launch and its evidence."""

    shape: tuple
    launch: model.Launch
    engine: str
    expected: np.ndarray
    actual: np.ndarray
    initial: np.ndarray
    arguments: dict
    # array -> indices out of bounds
    outside_writes: dict = field(default_factory=dict)
    outside_reads: dict = field(default_factory=dict)
    outside_by: set = field(default_factory=set)  # (x, y, z) in the grid of who did, where known
    modified: list = field(default_factory=list)  # names of inputs that were changed
    broken: list = field(default_factory=list)  # of the output: where `Exercise.always` was broken
    # of each element of the output, where known: how many threads wrote it; read before any did
    writers: np.ndarray | None = None
    updaters: np.ndarray | None = None  # how many did so by atomic operations
    # elements of the output that one thread wrote, where known
    most_of_one_thread: int | None = None
    early_reads: np.ndarray | None = None
    special: bool = False  # its inputs hold infinities and the like (see `specials`)
    scaled: bool = False  # one of its inputs holds very small or very large numbers
    in_step: bool = False  # Numba: all threads went from one access to the next together
    counts: dict | None = None  # of CUDA C that was watched: see `utils.cpu.cuda_c.library.Counts`


#: (run, arrays, flat ones between guard zones, size of a zone, place in the file) of a launch
Laid = tuple[Run, dict[str, Any], dict[str, np.ndarray], int, tuple]


class Stopped(Exception):
    """A launch raised `error`, in this thread of this block where that is known."""

    def __init__(
        self,
        error: BaseException,
        thread: tuple | None = None,
        block: tuple | None = None,
        launch: model.Launch | None = None,
    ) -> None:
        super().__init__(shown(error, str))
        self.error = error
        self.launch = launch
        self.thread = getattr(error, "thread", None) or thread
        self.block = getattr(error, "block", None) or block


def initial_output(
    argument: Out | InOut, expected: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """What an output holds before the launch: never the right answer, so gaps always show.

    Floats are NaN one time and finite another, so that a kernel which uses them is wrong at least
    once.
    """
    if isinstance(argument, InOut):
        return argument.array.copy()
    dtype: np.dtype = np.dtype(argument.dtype)
    if dtype.kind == "f" and rng.random() < 0.5:
        return random_poison(argument.shape, dtype, rng)
    if dtype.kind == "f":
        known = np.where(np.isfinite(expected), expected, 0)
        scale = np.max(np.abs(known), initial=1.0)
        beside: np.ndarray = known + scale * rng.uniform(1, 2, size=argument.shape)
        return beside.astype(dtype)
    if dtype.kind == "b":
        return ~expected.astype(bool)
    offset = rng.integers(1, min(np.iinfo(dtype).max, 1 << 30), size=argument.shape, endpoint=True)
    return (expected.astype(np.int64) + offset).astype(dtype)  # wraps around; the offset is never 0


def output_name(arguments: Arguments) -> str:
    """The name of the one argument that the kernel writes."""
    return next(name for name, value in arguments.items() if isinstance(value, Out | InOut))


def host_arrays(
    arguments: Arguments, expected: np.ndarray, rng: np.random.Generator
) -> dict[str, Any]:
    """Fresh NumPy arrays and scalars in the kernel's order, outputs poisoned."""
    arrays = {}
    for name, value in arguments.items():
        if isinstance(value, Out | InOut):
            arrays[name] = initial_output(value, expected, rng)
        else:
            arrays[name] = value.copy() if isinstance(value, np.ndarray) else value
    return arrays


@functools.lru_cache(maxsize=16)
def on_cpu_engine(kernel: Any) -> Any:
    """A kernel of the CPU engine, whose function is made once for all launches of a check."""
    return cpu_jit(kernel)


def launch_watched(kernel: Any, launch: model.Launch, arguments: Sequence) -> None:
    """Launch on the CPU engine with Watched arrays, which its conversion would not let through."""
    name = kernel.py_func.__name__
    arguments = [argument(one, name, []) for one in arguments]
    kinds = tuple(map(kind_of, arguments))  # numbers have the types here that they have elsewhere
    function = on_cpu_engine(kernel).function(kinds=kinds)
    run = Launch(function, arguments, launch.grid, launch.block, 0, name)
    try:
        run.run()
    except Exception as error:
        raise Stopped(error, run.failed_thread, run.failed, launch) from None


def run_watched(
    kernel: Any,
    shape: tuple,
    launch: model.Launch,
    arguments: Arguments,
    expected: np.ndarray,
    rng: np.random.Generator,
    order: int | str | None,
    always: model.Always | None = None,
) -> Run:
    """Launch on the CPU with arrays that note every access. always: of the exercise."""
    output = output_name(arguments)
    arrays = host_arrays(arguments, expected, rng)
    initial = arrays[output].copy()
    watched = {n: Watched(a, n) if isinstance(a, np.ndarray) else a for n, a in arrays.items()}
    if always:
        given = {n: v for n, v in arguments.items() if n != output}
        watched[output].log.holds = lambda value: always.holds(value, **given)
    with schedule(order):
        launch_watched(kernel, launch, list(watched.values()))
    run = Run(shape, launch, "CPU", expected, arrays[output], initial, arguments)
    run.in_step = order == IN_STEP
    for name, array in watched.items():
        if not isinstance(array, Watched):
            continue
        if array.log.outside_writes:
            run.outside_writes[name] = array.log.outside_writes
        if array.log.outside_reads:
            run.outside_reads[name] = array.log.outside_reads
        if name != output and np.any(array.log.writers):
            run.modified.append(name)
        run.outside_by |= {in_grid(block, rank, launch) for block, rank in array.log.outside_by}
    run.broken = watched[output].log.broken
    run.writers = np.reshape(watched[output].log.writers, initial.shape)
    run.updaters = np.reshape(watched[output].log.updaters, initial.shape)
    run.most_of_one_thread = watched[output].log.most_of_one_thread()
    run.early_reads = np.reshape(watched[output].log.early_reads, initial.shape)
    return run


def in_grid(block: Sequence[int], rank: int, launch: model.Launch) -> tuple[int, ...]:
    """(x, y, z) in the grid of the thread of this rank in this block (x, y, z)."""
    x, y, _ = launch.block
    thread = rank % x, rank // x % y, rank // (x * y)
    return tuple(b * n + t for b, n, t in zip(block, launch.block, thread, strict=True))


def between_guards(array: np.ndarray, zone: int, rng: np.random.Generator) -> np.ndarray:
    """A flat copy of array with a zone of poison before and after it."""
    flat = random_poison(array.size + 2 * zone, array.dtype, rng)
    flat[zone : zone + array.size] = array.ravel()
    return flat


def guarded(
    arrays: Mapping[str, Any], zone: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Each array's flat copy between guard zones; scalars are left out."""
    real = {n: a for n, a in arrays.items() if isinstance(a, np.ndarray)}
    return {name: between_guards(array, zone, rng) for name, array in real.items()}


def zone_for(launch: model.Launch, arrays: Mapping[str, Any]) -> int:
    """Wide enough for a kernel without a guard to land in it rather than beyond.

    So, too, for one that takes one side of a picture for the other. A multiple of 64 elements: the
    array behind it is aligned as cudaMalloc's are.
    """
    x, y, z = launch.threads
    real = [a for a in arrays.values() if isinstance(a, np.ndarray)]
    largest = max((a.size for a in real), default=1)
    side = max((max(a.shape) for a in real if a.ndim > 1), default=1)
    return rounded(2 * x * y * z + max(largest, min(side**2, MOST_ZONE)) + 256, 64)


def compare_guards(
    run: Run, name: str, before: np.ndarray, after: np.ndarray, shape: tuple[int, ...], zone: int
) -> None:
    """Note each element of the guard zones that was overwritten, by its flat index in the array."""
    size = int(np.prod(shape))
    changed = np.flatnonzero(before.view(np.uint8) != after.view(np.uint8)) // before.itemsize
    outside = np.unique(changed[(changed < zone) | (changed >= zone + size)]) - zone
    if outside.size:
        run.outside_writes[name] = [(int(i),) for i in outside]


def run_guarded(
    kernel: Any,
    shape: tuple,
    launch: model.Launch,
    arguments: Arguments,
    expected: np.ndarray,
    rng: np.random.Generator,
    order: int | str | None,
    watched: bool = True,
) -> Run:
    """Launch on this machine's engine (GPU or CPU) with real arrays between guard zones.

    watched: it has been launched so before with watched arrays. A GPU does not survive every
    mistake, so that other launches come to the CPU engine first.
    """
    output = output_name(arguments)
    arrays = host_arrays(arguments, expected, rng)
    initial = arrays[output].copy()
    zone = zone_for(launch, arrays)
    before = guarded(arrays, zone, rng)
    if has_gpu() and not watched:
        rehearsal = {n: flat.copy() for n, flat in before.items()}
        launch_between_zones(on_cpu_engine(kernel), launch, arrays, rehearsal, zone, order)
    device = {n: cuda.to_device(flat) for n, flat in before.items()}
    launch_between_zones(kernel, launch, arrays, device, zone, order)
    run = Run(shape, launch, "GPU" if has_gpu() else "CPU", expected, initial, initial, arguments)
    collect(run, arrays, before, {n: d.copy_to_host() for n, d in device.items()}, zone, output)
    return run


def launch_between_zones(
    kernel: Any,
    launch: model.Launch,
    arrays: Mapping[str, Any],
    flats: Mapping[str, Any],
    zone: int,
    order: int | str | None,
) -> None:
    """Launch with those arrays that have a flat one, guard zones and all, inside that."""
    views = []
    for name, value in arrays.items():
        if name in flats:
            value = flats[name][zone : zone + value.size].reshape(value.shape)
        views.append(value)
    with schedule(order), warnings.catch_warnings():
        # Numba's, about grids that are too small for a GPU: they are meant to be
        warnings.simplefilter("ignore")
        try:
            kernel[launch.grid, launch.block](*views)
            cuda.synchronize()
        except Exception as error:
            raise Stopped(error, launch=launch) from None


def context_is_gone() -> bool:
    """Whether a mistake, in an answer or in any cell, has made the GPU refuse all further work."""
    try:
        cuda.synchronize()
    except Exception:  # the driver's, of several kinds
        return True
    return False


def collect(
    run: Run,
    arrays: Mapping[str, Any],
    before: Mapping[str, np.ndarray],
    after: Mapping[str, np.ndarray],
    zone: int,
    output: str,
) -> None:
    """Fill a run's evidence from the flat buffers before and after a launch."""
    for name, flat in after.items():
        array = arrays[name]
        compare_guards(run, name, before[name], flat, array.shape, zone)
        inner = flat[zone : zone + array.size].reshape(array.shape)
        if name == output:
            run.actual = inner.copy()
        elif inner.tobytes() != array.tobytes():
            run.modified.append(name)


def orders_in_cuda_c(seed: int, orders: int) -> list[dict[str, str]]:
    """Environments for the child process: the CPU engine in order and shuffled, a GPU, if any."""
    shuffled = [{"CUDA_CPU_SEED": str(seed + n)} for n in range(orders)]
    if not has_gpu():
        return [{}, *shuffled]
    return [{FORCE_CPU: "1", **order} for order in ({}, *shuffled)] + [{}]


def run_cuda_c(
    path: str | Path,
    kernel_name: str,
    cases: Iterable[tuple],
    rng: np.random.Generator,
    environment: dict[str, str],
    check: bool = False,
    waits_for: Callable[..., str] | None = None,
    patience: float = 1,
) -> tuple[list[Run], Failure | None]:
    """Launch a kernel of a .cu file for each case, in a child process.

    A case is (shape, launch, arguments, expected).

    A kernel that crashes or hangs can then take neither the notebook nor its CUDA context with it.
    check: watch every access, on the CPU runtime, and fail at the first race.
    waits_for: of an exercise whose threads wait, `Exercise.awaited`.
    patience: how many times the usual seconds a launch may take.
    Returns (runs, failure); failure is None or (reason, message) of the first launch that did not
    return.
    """
    engine = "GPU" if has_gpu() and FORCE_CPU not in environment else "CPU"
    jobs, runs = [], []
    with scratch_folder() as folder:
        with (folder / cuda_c_child.ARRAYS).open("wb") as file:
            for shape, launch, arguments, expected in cases:
                arrays = host_arrays(arguments, expected, rng)
                zone = zone_for(launch, arrays)
                before = guarded(arrays, zone, rng)
                place = written(file, before)
                scalars = {n: None if n in before else a for n, a in arrays.items()}
                jobs.append(Job(launch.grid, launch.block, zone, place, scalars))
                initial = arrays[output_name(arguments)]
                run = Run(shape, launch, engine, expected, initial, initial, arguments)
                runs.append((run, arrays, before, zone, place))
        (folder / "jobs.pickle").write_bytes(pickle.dumps([tuple(job) for job in jobs]))
        order_seconds = GPU_ORDER_SECONDS if engine == "GPU" else ORDER_SECONDS
        each = patience * (min(WAITING_SECONDS, LAUNCH_SECONDS) if waits_for else LAUNCH_SECONDS)
        clock = patience * WAITING_BY_CLOCK if waits_for else 0
        command = [str(path), kernel_name, str(folder), str(each), str(patience * order_seconds)]
        command += ["check" if check else "", str(clock)]
        status, output = run_child(command, environment)
        done = collect_all(runs, folder)
        told = folder / "failure.json"
        if told.exists():
            reason, message = json.loads(told.read_text())
            return done, (reason, message)
        failure = failure_of(status, output, each, clock)
        is_waiting = failure and failure[0] == "timeout" and len(done) < len(runs)
        if waits_for and is_waiting and not check:
            _, arrays, _, zone, place = runs[len(done)]
            says = waits_for(**left_behind(folder, place, arrays, zone))
            failure = "timeout", f"One launch did not end, and was stopped. {says}"
    if failure is None and len(done) < len(jobs):
        why = f"It ended the program in launch {len(done) + 1} of {len(jobs)}. Is there an `exit`?"
        failure = "crashed", why
    return done, failure


def counts_of(run: Run) -> dict[str, int]:
    """What was counted in a launch of CUDA C that was watched. TypeError of another one."""
    if run.counts is None:
        raise TypeError("nothing is counted in a launch that is not watched")
    return run.counts


def most_of_one_thread(run: Run) -> int:
    """How many elements of the output one thread has stored to, of a run that was counted."""
    return counts_of(run)["most_stored"] // run.actual.itemsize


def collect_all(runs: Sequence[Laid], folder: Path) -> list[Run]:
    """The runs of which the child process has left a result, with their evidence."""
    done = []
    for number, (run, arrays, before, zone, place) in enumerate(runs):
        result = folder / f"{number}.json"
        if not result.exists():
            break
        run.counts = json.loads(result.read_text())
        after = cuda_c_child.mapped(folder, place)
        output = output_name(run.arguments)
        collect(run, arrays, before, after, zone, output)
        if run.counts:
            run.most_of_one_thread = most_of_one_thread(run)
            # one that holds in the end what it held before was changed all the same
            stored = stored_to(list(before), run.counts["stored"])
            run.modified += [n for n in stored if n != output and n not in run.modified]
        done.append(run)
    return done


def stored_to(names: Sequence[str], bits: int) -> list[str]:
    """Of the arrays of a watched launch, in the kernel's order, those with their bit set."""
    return [name for number, name in enumerate(names) if bits >> number & 1]


def left_behind(folder: Path, place: tuple, arrays: Mapping[str, Any], zone: int) -> dict[str, Any]:
    """The arguments of a launch that was stopped, its arrays as they lay then."""
    left = dict(arrays)
    for name, flat in cuda_c_child.mapped(folder, place).items():
        size, shape = arrays[name].size, arrays[name].shape
        left[name] = flat[zone : zone + size].reshape(shape).copy()
    return left


def stopped_after(seconds: float) -> str:
    """The sentence on a launch that was stopped after so many seconds of CPU time."""
    return f"One launch was stopped after {seconds} second{'s' * (seconds > 1)}."


def failure_of(
    status: int | None, output: str, each: float = LAUNCH_SECONDS, clock: float = WAITING_BY_CLOCK
) -> Failure | None:
    """(reason, message) for a child process that ended without a message of its own, or None.

    each, clock: the seconds after which a launch is stopped.
    """
    if status is None:
        return "not_checked", f"It was stopped after {CHILD_SECONDS} seconds, on a busy computer?"
    if status == loaded.GONE:
        return "not_checked", LOST_TWICE
    if status in (-signal.SIGXCPU, -signal.SIGALRM):
        seconds = clock if status == -signal.SIGALRM else each
        return "timeout", f"{stopped_after(seconds)} Does every loop end?"
    return ("crashed", died(status, output)) if status else None


class Job(NamedTuple):
    """One launch for the child process."""

    grid: tuple
    block: tuple
    zone: int
    place: tuple  # of a Place
    arguments: dict  # every argument in order; arrays, which lie in the file, as None


class Place(NamedTuple):
    """Where a job's flat arrays lie, each between its guard zones, in the file that holds all."""

    start: int  # of pages that are the job's own
    bytes: int
    flats: dict  # array -> (type, elements, bytes from start on)


def written(file: IO[bytes], flats: Mapping[str, np.ndarray]) -> tuple:
    """Write the flat arrays of a job behind those of the others: their Place.

    Each begins where an allocation of cudaMalloc could.
    """
    start = file.seek(rounded(file.tell(), mmap.ALLOCATIONGRANULARITY))
    places = {}
    for name, flat in flats.items():
        at = file.seek(rounded(file.tell(), DEVICE_ALIGNMENT)) - start
        places[name] = flat.dtype, flat.size, at
        file.write(flat.data)
    return tuple(Place(start, file.tell() - start, places))


def run_child(arguments: Sequence[str], environment: dict[str, str]) -> tuple[int | None, str]:
    """Run cuda_c_child.py: (exit status, or None when it was stopped; what it printed)."""
    # As a file and not as a module of this package, which would import Numba first.
    environment = process.python_environment(**environment)
    command = [sys.executable, "-P", str(loaded.CHILD), *arguments]
    start = loaded.start if loaded.possible(environment) else None
    try:
        done = process.run(command, timeout=CHILD_SECONDS, env=environment, start=start)
        if done.returncode == loaded.GONE:  # perhaps the system took its memory back
            start = functools.partial(loaded.start, once_more=True)
            done = process.run(command, timeout=CHILD_SECONDS, env=environment, start=start)
    except process.Timeout:
        return None, ""
    except loaded.Lost:
        return loaded.GONE, ""
    return done.returncode, done.output


def died(status: int, output: str) -> str:
    """A sentence about a child process that ended badly, and the end of what it printed."""
    output = output.strip()
    if status < 0:
        return f"The kernel's process {process.exit_reason(status)}. {output[-400:]}".strip()
    return output[-800:] or f"The kernel's process ended with exit status {status}."
