"""Honest times of GPU work: CUDA events, warm-up, cold L2, median, spread, share of a roof.

The method is the usual one for GPU kernels (compare ``triton.testing.do_bench`` and nvbench): every
repeat first overwrites the L2 cache, which also keeps the GPU busy while Python prepares the
launch, so that the launch's own cost does not leak into the time; then one event before and one
after the work, on the stream that the work runs on. Where others use the same GPU, this waits for
its turn (`utils.gpu_queue`).

The overwriting leaves L2 full of lines that were written and are not yet in memory. Work that reads
much is charged for writing them back: `compare(..., clean=True)` ends the flush by reading.

Without a GPU nothing is timed: a simulator's time is not speed. The work is run once, so that the
cell is known to work, and the recorded result of a real GPU is shown instead, if there is one.
Beside it stands what the learner's own kernels would take on one by an estimate, which is marked as
such (`utils.estimate`). With a GPU an estimate stands beside the clock where a `Launch` is given.
"""

import functools
import html
import os
import random
import re
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from utils import gpu_queue, sizes
from utils.engine import has_gpu, the_gpu
from utils.quantities import format_ms

if TYPE_CHECKING:
    from numba.cuda.cudadrv.devicearray import DeviceNDArray
    from numba.cuda.cudadrv.driver import Stream

    from utils.estimate import Launch
    from utils.estimate.at_gpu_size import Said
    from utils.gpu_queue.entry import NoTurn
    from utils.gpu_queue.turns import Turn

#: What overwrites the L2 cache on a stream
Flush = Callable[["Stream"], object]
#: Stop adding repeats after this many seconds of GPU time.
BUDGET = 0.5
MIN_REPEATS, MAX_REPEATS = 10, 200
#: Seconds after which the rivals of a comparison are estimated no more
ESTIMATING = 15
#: A variable that, where it is set, leaves out all estimates beside a clock
NO_ESTIMATES = "CUDA_COURSE_NO_ESTIMATES"
#: The colour of an estimate
SAID = "#7b1fa2"
#: An idle GPU lowers its clocks; it is kept busy for this many seconds before its copy bandwidth is
#: measured.
WAKE = 0.3


def median_and_spread(samples: Sequence[float]) -> tuple[float, float]:
    """Median, and half the interquartile range: half of all samples lie within median ± spread."""
    if len(samples) < 2:
        return samples[0], 0.0
    low, middle, high = statistics.quantiles(samples, n=4)
    return middle, (high - low) / 2


@dataclass(frozen=True)
class Timing:
    """The times of one piece of GPU work.

    samples: milliseconds, one a repeat (empty without a GPU).
    bytes, flops: what the caller says the work moves and computes, for the rates.
    copy_bytes_per_second, matmul_flops_per_second: this GPU's roofs, measured in this process.
    recorded: the name's ending ("time", "rate" ...) -> recorded entry, without a GPU to time on.
    launches: of kernels that the work made without a GPU, or one `Launch` of utils.estimate.
    """

    name: str | None
    samples: tuple[float, ...]
    bytes: float | None = None
    flops: float | None = None
    copy_bytes_per_second: float | None = None
    matmul_flops_per_second: float | None = None
    recorded: dict | None = None
    launches: tuple = ()

    @property
    def median(self) -> float | None:
        """Median in milliseconds; None without a GPU."""
        return statistics.median(self.samples) if self.samples else None

    @property
    def spread(self) -> float | None:
        """Half the interquartile range in ms: half of all repeats lie within median ± spread."""
        return median_and_spread(self.samples)[1] if len(self.samples) > 1 else None

    @property
    def time(self) -> tuple[float, float] | None:
        """(median, spread) in ms, measured here or, without a GPU, as recorded; None if neither."""
        if self.samples:
            return statistics.median(self.samples), self.spread or 0
        if not self.recorded or "time" not in self.recorded:
            return None
        entry = self.recorded["time"]
        return entry["value"], entry["spread"]

    @property
    def where(self) -> str:
        """The GPU and the day of a recorded time; "" for one that was measured here."""
        if self.samples or not self.recorded or "time" not in self.recorded:
            return ""
        entry = self.recorded["time"]
        return f"{entry['gpu']}, {entry['date'][:10]}"

    @property
    def bytes_per_second(self) -> float | None:
        return self._per_second(self.bytes)

    @property
    def flops_per_second(self) -> float | None:
        return self._per_second(self.flops)

    def _per_second(self, amount: float | None) -> float | None:
        return amount / statistics.median(self.samples) * 1e3 if self.samples and amount else None

    @property
    def share_of_copy(self) -> float | None:
        """Bandwidth as a share of this GPU's copy bandwidth.

        Over 1 is possible for work that reads more than it writes.
        """
        rate = self.bytes_per_second
        roof = self.copy_bytes_per_second
        return rate / roof if rate and roof else None

    @property
    def copy_time(self) -> float | None:
        """Milliseconds in which this GPU copies as many bytes; None where that is not known."""
        if self.samples:
            share_now = self.share_of_copy
            return share_now and statistics.median(self.samples) * share_now
        share = (self.recorded or {}).get("share_of_copy")
        return self.time[0] * share["value"] if share and self.time else None

    @property
    def share_of_matmul(self) -> float | None:
        """FLOP rate as a share of the library's matrix product on this GPU."""
        rate = self.flops_per_second
        roof = self.matmul_flops_per_second
        return rate / roof if rate and roof else None

    @functools.cached_property
    def estimate(self) -> "Said | str | None":
        """What the work's kernels would take on a GPU (`at_gpu_size.Said`), a sentence why nobody
        knows, or None where it launched none, or none that compare with what was recorded.
        """
        if not self.launches or os.environ.get(NO_ESTIMATES):
            return None
        return _estimated(self.launches, self.time is not None)

    def __repr__(self) -> str:
        return "\n".join(str(part) for part in (self.clock(), self.estimate) if part)

    def _repr_html_(self) -> str | None:
        if self.estimate is None:
            return None
        return f"<pre>{html.escape(self.clock())}</pre>{_marked(str(self.estimate))}"

    def clock(self) -> str:
        """What was measured, or is recorded, in words."""
        if not self.samples:
            return _without_gpu(self.name, self.recorded)
        parts = [f"{format_ms(self.median)} ± {format_ms(self.spread)}"]
        if self.bytes_per_second:
            parts.append(f"{_gigabytes(self.bytes_per_second)} GB/s")
            parts.append(f"{self.share_of_copy:.0%} of this GPU's copy speed")
        if self.flops_per_second:
            parts.append(f"{self.flops_per_second / 1e12:,.2f} TFLOP/s")
            if self.share_of_matmul:
                parts.append(f"{self.share_of_matmul:.0%} of the library's matmul")
        return " · ".join(parts)


def benchmark(
    fn: Callable[[], object],
    *,
    name: str | None = None,
    bytes: float | None = None,
    flops: float | None = None,
    dtype: str | None = None,
    stream: object = 0,
    launch: "Launch | None" = None,
) -> Timing:
    """Time GPU work that ``fn()`` launches: a Numba, CUDA C, Triton or torch kernel, or several.

    name: a path such as ``vector_add/numba``, under which the result is recorded and, without a
        GPU, looked up.
    bytes: what the work must read and write, in bytes; adds GB/s and the share of this GPU's copy
        bandwidth.
    flops: its floating-point operations; adds TFLOP/s and, with `dtype` ("float32", "tf32",
        "bfloat16"), the share of the library's matrix product of that type.
    stream: the stream that the work runs on (a Numba or torch stream; the default stream unless
        given).
    launch: a `Launch` of utils.estimate: what it would take stands beside the clock. Without a GPU
        the launches of `fn` are estimated at a GPU's size (`utils.estimate.at_gpu_size`).

    Returns a Timing. Errors of the kernel, also those that only show when the GPU gets to it, are
    raised here.
    """
    given = (launch,) if launch else ()
    if not has_gpu():
        return _run_once(fn, name, bytes, flops, given)
    with gpu_queue.turn():
        samples = _measure({"": fn}, stream)[""]
        return _finish(name, samples, bytes, flops, dtype, given)


def _run_once(
    fn: Callable[[], object],
    name: str | None,
    bytes: float | None,
    flops: float | None,
    launches: tuple = (),
) -> Timing:
    """The Timing of work that runs without a GPU: recorded, and its launches to be estimated."""
    with sizes.noted() as noted:
        fn()
    if not launches and any(one is not sizes.COPY for one in noted):
        launches = tuple(noted)
    return Timing(name, (), bytes, flops, recorded=_recorded(name), launches=launches)


@dataclass(frozen=True)
class Comparison:
    """Timings of rivals from one run, taken in turn."""

    timings: dict[str, Timing]

    def __repr__(self) -> str:
        return "\n".join(filter(None, (self.clock(), self.estimates)))

    def clock(self) -> str:
        """What was measured, or is recorded, in words."""
        if not any(t.time for t in self.timings.values()):
            return "no GPU, so no times; each of these ran once: " + "; ".join(self.timings)
        return self.table()

    @functools.cached_property
    def estimates(self) -> str:
        """A line for each rival that launched kernels; "" where none did."""
        end = time.monotonic() + ESTIMATING
        told: dict[str, Said | str] = {}
        for label, timing in self.timings.items():
            late = timing.launches and time.monotonic() > end
            said = "not estimated: the others took too long" if late else timing.estimate
            if said is not None:
                told[label] = said
        known = [said for said in told.values() if not isinstance(said, str)]
        sentences = {said for said in told.values() if isinstance(said, str)}
        if not known and len(sentences) == 1:
            return sentences.pop()
        width = max(map(len, self.timings))
        rows = (said if isinstance(said, str) else said.row() for said in told.values())
        lines = [f"{label:<{width}}  {row}" for label, row in zip(told, rows, strict=True)]
        return "\n".join([*(f"{said.head()}:" for said in known[:1]), *lines])

    def table(self) -> str:
        """A row a rival: how it compares with the fastest, time, spread, rate.

        Without a GPU the times are recorded ones, and the first line says where.
        """
        best = min(t.time[0] for t in self.timings.values() if t.time)
        width = max(map(len, self.timings))
        lines = [f"no GPU here; recorded on {self.where}:"] if self.where else []
        for label, timing in self.timings.items():
            if not timing.time:
                lines.append(f"{label:<{width}}  not recorded")
                continue
            recorded = None if timing.samples else timing.recorded
            said = _recorded_parts(recorded) if recorded else repr(timing)
            lines.append(f"{label:<{width}}  {timing.time[0] / best:5.2f}×  {said}")
        return "\n".join(lines)

    @property
    def where(self) -> str:
        """The GPUs and days of recorded times; "" for those that were measured here."""
        places = dict.fromkeys(t.where for t in self.timings.values() if t.where)
        return "; ".join(places)

    def _ipython_display_(self) -> None:
        from IPython.display import display

        print(self.clock())
        if any(t.time for t in self.timings.values()):
            from utils import plots

            display(plots.timing_bars(self.timings, format_ms))
        if self.estimates:
            display({"text/plain": self.estimates, "text/html": _marked(self.estimates)}, raw=True)


def compare(
    rivals: Mapping[str, Callable[[], object]],
    *,
    name: str | None = None,
    bytes: float | None = None,
    flops: float | None = None,
    dtype: str | None = None,
    stream: object = 0,
    launches: Mapping[str, object] | None = None,
    clean: bool = False,
) -> Comparison:
    """Time several ways to do the same work in one run, in turn: same clocks, same heat.

    The order is drawn anew in each round: what one draws of the power is missing for the next.

    rivals: label -> function as for `benchmark`; recorded as ``name/label``. launches: label ->
        its `Launch`, where there is one. clean: L2 is full of what was read, not of what was
        written. The other arguments are benchmark's.
    """
    launches = launches or {}

    def given(label: str) -> tuple:
        return (launches[label],) if label in launches else ()

    def path(label: str) -> str | None:
        slug = re.sub(r"[^a-z0-9.]+", "_", label.lower()).strip("_")
        return f"{name}/{slug}" if name else None

    if not has_gpu():
        timings = {}
        for label, fn in rivals.items():
            timings[label] = _run_once(fn, path(label), bytes, flops, given(label))
        return Comparison(timings)
    timings = {}
    with gpu_queue.turn():
        for label, samples in _measure(dict(rivals), stream, clean).items():
            timings[label] = _finish(path(label), samples, bytes, flops, dtype, given(label))
    return Comparison(timings)


def _finish(
    name: str | None,
    samples: Sequence[float],
    bytes: float | None,
    flops: float | None,
    dtype: str | None,
    launches: tuple = (),
) -> Timing:
    timing = Timing(
        name,
        tuple(samples),
        bytes,
        flops,
        copy_bytes_per_second=copy_bandwidth() if bytes else None,
        matmul_flops_per_second=matmul_rate(dtype) if flops and dtype else None,
        launches=launches,
    )
    if name:
        _record(timing)
    return timing


# ---- the clock


def _measure(
    work: dict[str, Callable[[], object]],
    stream: object,
    clean: bool = False,
) -> dict[str, list[float]]:
    """Milliseconds of each piece of work, measured in turn."""
    from numba import cuda

    queue = _numba_stream(stream)
    flush = _clean_l2() if clean else _l2_flush()
    for fn in work.values():
        fn()  # compiles, loads modules, creates library handles
        cuda.synchronize()
    with gpu_queue.turn() as turn:
        turn.start()
        return _clocked(work, queue, flush, turn)


def _clocked(
    work: dict[str, Callable[[], object]], queue: "Stream", flush: Flush, turn: "Turn | NoTurn"
) -> dict[str, list[float]]:
    """The same of work that has run once, while nobody else is timed."""
    from numba import cuda

    estimate = 0.0
    for fn in work.values():
        start = time.perf_counter()
        fn()
        # an asynchronous error of the kernel is raised here, before anything is timed
        cuda.synchronize()
        estimate += time.perf_counter() - start
    repeats = int(min(MAX_REPEATS, max(MIN_REPEATS, BUDGET / max(estimate, 1e-6))))
    rounds: Iterable[int] = range(repeats)
    if estimate * repeats > 2:
        from tqdm.auto import tqdm

        rounds = tqdm(rounds, desc="timing", leave=False)
    pairs: dict[str, list[tuple]] = {label: [] for label in work}
    draw = random.Random(0)
    for _ in rounds:
        if turn.renew():  # others ran meanwhile
            for fn in work.values():
                fn()
        for label in _drawn(draw, work):
            start = cuda.event(timing=True)
            end = cuda.event(timing=True)
            flush(queue)
            start.record(queue)
            work[label]()
            end.record(queue)
            pairs[label].append((start, end))
        # Without this the CPU would queue everything at once, and thousands of pending launches
        # stall the driver.
        end.synchronize()
    return {label: [cuda.event_elapsed_time(*pair) for pair in pairs[label]] for label in work}


def _drawn(draw: random.Random, labels: Collection[str]) -> list[str]:
    """Each label once, in an order of chance."""
    return draw.sample(list(labels), len(labels))


def _numba_stream(stream: Any) -> "Stream":
    from numba import cuda

    if not stream:
        return cuda.default_stream()
    handle = getattr(stream, "cuda_stream", None)  # a torch stream
    return cuda.external_stream(handle) if handle is not None else stream


@functools.cache
def _l2_flush() -> Flush:
    """A function that overwrites the L2 cache on a stream, long enough to hide a launch."""
    from numba import cuda

    buffer = _beyond_l2()

    # Once would do for the cache. But the GPU must still be busy when Python has prepared the
    # launch, which can take 0.2 ms where other programs use the CPU too, and would otherwise be
    # counted as the kernel's time.
    @cuda.jit  # type: ignore[untyped-decorator]  # Numba has no types
    def overwrite(out: "DeviceNDArray", rounds: int) -> None:
        for r in range(rounds):
            for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
                out[i] = r

    return lambda stream: overwrite[1024, 256, stream](buffer, 4)


@functools.cache
def _clean_l2() -> Flush:
    """The same, but then it reads something else: what lies in L2 need not be written back."""
    from numba import cuda

    overwrite = _l2_flush()
    source, target = _beyond_l2(), cuda.device_array(1, dtype="float32")
    source.copy_to_device(np.ones(source.size, dtype="float32"))

    @cuda.jit  # type: ignore[untyped-decorator]  # Numba has no types
    def read(out: "DeviceNDArray", values: "DeviceNDArray") -> None:
        total = 0.0
        for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
            total += values[i]
        if total == 1.5:  # hardly ever; else the compiler would leave out the loads
            out[0] = total

    def run(stream: "Stream") -> None:
        overwrite(stream)
        read[1024, 256, stream](target, source)

    return run


def _beyond_l2() -> "DeviceNDArray":
    """An array on the GPU that is far larger than its L2."""
    from numba import cuda

    size = max(256 << 20, 2 * cuda.get_current_device().L2_CACHE_SIZE)
    return cuda.device_array(size // 4, dtype="float32")


# ---- the roofs


@functools.cache
def copy_bandwidth() -> float:
    """Bytes per second, read plus written, of a large copy in this GPU's memory; measured once."""
    from numba import cuda

    free = cuda.current_context().get_memory_info().free
    count = min(4 << 30, free // 8) // 4  # the larger, the less the copy's beginning and end count
    source = cuda.device_array(count, "float32")
    target = cuda.device_array(count, "float32")
    with gpu_queue.turn() as turn:
        turn.start()
        start = time.perf_counter()
        while time.perf_counter() - start < WAKE:
            target.copy_to_device(source)
            cuda.synchronize()
        samples = _measure({"copy": lambda: target.copy_to_device(source)}, 0)["copy"]
    moved: int = 2 * source.nbytes
    return moved / statistics.median(samples) * 1e3


@functools.cache
def matmul_rate(dtype: str) -> float:
    """FLOP per second of cuBLAS's (through torch) 8192³ product of random data, measured once.

    dtype: ``float32`` (without TF32), ``tf32``, ``float16``, ``bfloat16`` or ``float64``.
    """
    import torch

    n = 8192 if the_gpu().memory_bytes > 4 << 30 else 4096
    if dtype == "float64":
        n //= 4  # most gaming cards do 1/64 of their float32 rate here
    kind = torch.float32 if dtype == "tf32" else getattr(torch, dtype)
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    try:
        a, b = (torch.randn(n, n, device="cuda", dtype=kind) for _ in "ab")
        out = torch.empty_like(a)
        samples = _measure({"matmul": lambda: torch.matmul(a, b, out=out)}, 0)["matmul"]
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    return 2 * n**3 / statistics.median(samples) * 1e3


def speedup(ours: Timing, theirs: Timing) -> tuple[float, float]:
    """How many times as fast as theirs ours is, and the spread of that."""
    our_median, our_spread = median_and_spread(ours.samples)
    their_median, their_spread = median_and_spread(theirs.samples)
    ratio = their_median / our_median
    relative = our_spread / our_median + their_spread / their_median
    return ratio, ratio * relative


# ---- estimates


def _estimated(launches: tuple, beside_a_time: bool) -> "Said | str | None":
    """What kernels would take on a GPU, or a sentence why there is no estimate.

    beside_a_time: then None where it cannot be compared with that time, or the cell does not tell.
    """
    from utils.estimate import Launch, Unknown, at_gpu_size

    try:
        if isinstance(launches[0], Launch):
            return at_gpu_size.of_launch(launches[0])
        said = at_gpu_size.said(launches)
        return None if beside_a_time and not said.scaled else said
    except Unknown as reason:
        unclear = isinstance(reason, at_gpu_size.Unclear)
        return None if beside_a_time and unclear else f"no estimate: {reason}"


def _marked(text: str) -> str:
    """An estimate on a page: in its own colour."""
    style = f"border-left:3px dashed {SAID};padding-left:8px;color:{SAID};white-space:pre-wrap"
    return f'<pre style="{style}">{html.escape(text)}</pre>'


# ---- recorded results


def _record(timing: Timing) -> None:
    """Hand the result to the recording command, if that is what runs this notebook."""
    from utils import results

    if not os.environ.get(results.RECORD):
        return
    median, spread = median_and_spread(timing.samples)
    rows = {"time": (median, "ms", spread)}
    relative = spread / median
    for ending, value, unit in (
        ("bandwidth", timing.bytes_per_second, "B/s"),
        ("rate", timing.flops_per_second, "FLOP/s"),
        ("share_of_copy", timing.share_of_copy, "1"),
        ("share_of_matmul", timing.share_of_matmul, "1"),
    ):
        if value:
            rows[ending] = (value, unit, value * relative)
    for ending, (value, unit, spread) in rows.items():
        results.record(f"{timing.name}/{ending}", value, unit, spread)


def _recorded(name: str | None) -> dict | None:
    from utils import results

    if not name:
        return None
    entries = {
        ending: results.find(f"{name}/{ending}")
        for ending in ("time", "bandwidth", "rate", "share_of_copy")
    }
    return {ending: entry for ending, entry in entries.items() if entry} or None


def _without_gpu(name: str | None, recorded: dict | None) -> str:
    if not recorded or "time" not in recorded:
        return "no GPU, so no time" + (f" (nothing is recorded yet for {name})" if name else "")
    entry = recorded["time"]
    said = _recorded_parts(recorded)
    return f"no GPU here; recorded on {entry['gpu']}, {entry['date'][:10]}: {said}"


def _recorded_parts(recorded: dict) -> str:
    """A recorded time with its rates, as a measured one reads."""
    entry = recorded["time"]
    parts = [f"{format_ms(entry['value'])} ± {format_ms(entry['spread'])}"]
    if "bandwidth" in recorded:
        parts.append(f"{_gigabytes(recorded['bandwidth']['value'])} GB/s")
    if "share_of_copy" in recorded:
        parts.append(f"{recorded['share_of_copy']['value']:.0%} of its copy speed")
    if "rate" in recorded:
        parts.append(f"{recorded['rate']['value'] / 1e12:,.2f} TFLOP/s")
    return " · ".join(parts)


def _gigabytes(bytes_per_second: float) -> str:
    """GB/s as a whole number; two digits of a small one, which would read as 0."""
    rate = bytes_per_second / 1e9
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
