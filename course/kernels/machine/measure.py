"""Measures what this GPU can do at most, resource by resource, for `utils.estimate`.

    python -m course.kernels.machine.measure --out FILE [--parts clock blocks] [--budget 120]
    python -m course.kernels.bench.report FILE.jsonl

Results are called machine/...: rates of the whole GPU (requests, passes, operations of a warp,
bytes, blocks per second), latencies in cycles, the clock in Hz, times of an empty launch. Nothing
of it comes from a kernel that an estimate is judged on. Without a GPU each kernel runs once, small,
and nothing is recorded.
"""

from functools import partial
from pathlib import Path

import numpy as np
from numba import cuda

from course.kernels.bench.command import command_line, run_parts
from course.kernels.bench.report import Report
from utils import cuda_c, engine, hardware, timing
from utils.timing import median_and_spread

SOURCE = Path(__file__).with_name("limits.cu")
WARP = 32
UNROLL, CHAINS = 16, 4  # as in limits.cu
BLOCK = 1024
BLOCKS_AN_SM = 2  # of 1024 threads: all that an SM holds on most GPUs
#: Operation of limits.cu -> (name of its class, instructions that one takes)
CLASSES = {
    "Fp32": ("fp32", 1),
    "Fp64": ("fp64", 1),
    "Multiply": ("multiply", 1),
    "Integer": ("integer", 2),
    "Special": ("special", 1),
    "Divide": ("divide", 1),
    "Convert": ("convert", 2),
    "Shuffle": ("shuffle", 1),
}
MIB = 1 << 20


def sms() -> int:
    """Multiprocessors of this GPU; 1 without one."""
    return hardware.machine().sms or 1


def size(gpu: int, cpu: int) -> int:
    """A number for the GPU, or a small one where the CPU stands in for it."""
    return gpu if engine.has_gpu() else cpu


class Bench:
    """The kernels, where their results go, and an array for what none of them ever writes."""

    def __init__(self, report: Report):
        self.report = report
        self.kernels = cuda_c.load(SOURCE)
        self.end = cuda.to_device(np.zeros(BLOCK, np.float32))
        self.full = (BLOCKS_AN_SM * sms(), BLOCK)

    def put(self, name, value, unit, spread=0.0):
        self.report.say(f"machine/{name:<36} {value:12.5g} ± {spread:.2g} {unit}")
        if engine.has_gpu():
            self.report.record(f"machine/{name}", value, unit, spread)

    def time(self, launch) -> tuple[float, float]:
        """(seconds, spread) of a launch; (1, 0) without a GPU, where it runs once."""
        timed = timing.benchmark(launch)
        if not timed.samples:
            return 1.0, 0.0
        return timed.median / 1e3, timed.spread / 1e3

    def rate(self, name, launch, amount, unit):
        """Record `amount` of a launch per second."""
        seconds, spread = self.time(launch)
        rate = amount / seconds
        self.put(name, rate, unit, rate * spread / seconds)

    def cycles(self, name, launch, count, blocks=1):
        """Record the cycles of one of `count`; launch(array) leaves those of all of them."""
        array = cuda.to_device(np.zeros(blocks, np.int64))
        samples = []
        for _ in range(size(9, 1)):
            launch(array)
            samples.append(float(np.median(array.copy_to_host())) / count)
        self.put(name, *two(samples))


def two(samples):
    """(median, unit, spread) of cycles."""
    middle, spread = median_and_spread(samples)
    return middle, "cycles", spread


# ---- the parts ----------------------------------------------------------------------------------


def clock(bench: Bench) -> None:
    """The clock under the load of a full GPU."""
    both = cuda.to_device(np.zeros(3, np.int64))
    rounds = size(1 << 20, 4)
    grid, block = bench.full
    samples = []
    for _ in range(size(5, 1)):
        bench.kernels.clocks[grid, block](both, np.int32(rounds))
        cycles, nanoseconds, _ = both.copy_to_host()
        samples.append(cycles / max(nanoseconds, 1) * 1e9)
    middle, spread = median_and_spread(samples)
    bench.put("clock", middle, "Hz", spread)


def operations(bench: Bench) -> None:
    """How long one of a warp takes, and how many all SMs do per second."""
    rounds = size(256, 1)
    for operation, (name, instructions) in CLASSES.items():
        chain = bench.kernels[f"chain<{operation}>"]
        bench.cycles(
            f"{name}/latency",
            lambda array, chain=chain: chain[1, WARP](
                array, bench.end, np.int32(rounds), 0.5, 0.25
            ),
            rounds * UNROLL * instructions,
        )
        full = bench.kernels[f"rate<{operation}>"]
        grid, block = bench.full
        bench.rate(
            f"{name}/rate",
            lambda full=full: full[bench.full](bench.end, np.int32(rounds), 0.5, 0.25),
            grid * block // WARP * rounds * UNROLL * CHAINS * instructions,
            "instruction/s",
        )


def shared(bench: Bench) -> None:
    """Requests to shared memory of 1 to 32 passes, and how long one takes."""
    grid, block = bench.full
    rounds = size(256, 1)
    requests = grid * block // WARP * rounds * UNROLL
    for ways in (1, 2, 4, 8, 32):
        kernel = bench.kernels[f"shared_reads<{ways}>"]
        bench.rate(
            f"shared/read_{ways}_ways",
            lambda kernel=kernel: kernel[bench.full](bench.end, np.int32(rounds)),
            requests * ways,
            "pass/s",
        )
    bench.rate(
        "shared/write",
        lambda: bench.kernels.shared_writes[bench.full](bench.end, np.int32(rounds)),
        requests,
        "pass/s",
    )
    bench.cycles(
        "shared/latency",
        lambda array: bench.kernels.shared_chain[1, WARP](array, bench.end, np.int32(rounds)),
        rounds * UNROLL,
    )


def barrier(bench: Bench) -> None:
    """Cycles from one barrier to the next: one block on an SM, and as many as fit."""
    rounds = size(64, 1)
    for threads in (32, 64, 128, 256, 512, 1024):
        for alone in (True, False):
            blocks = sms() * (1 if alone else min(2048 // threads, 32))
            bench.cycles(
                f"barrier/{threads}/{'alone' if alone else 'full'}",
                lambda array, blocks=blocks, threads=threads: bench.kernels.barriers[
                    blocks, threads
                ](array, np.int32(rounds)),
                rounds * UNROLL,
                blocks,
            )


def caches(bench: Bench) -> None:
    """L1: requests of 1 to 32 lines. L2: bytes read, bytes written."""
    grid, block = bench.full
    words = cuda.to_device(np.zeros(4096 + 1024, np.float32))
    rounds = size(256, 1)
    requests = grid * block // WARP * rounds * UNROLL
    for stride in (1, 2, 4, 8, 32):
        bench.rate(
            f"l1/lines_{stride}",
            lambda stride=stride: bench.kernels.l1_reads[bench.full](
                bench.end, words, np.int32(rounds), np.int32(stride)
            ),
            requests,
            "request/s",
        )
    passes = size(20, 1)
    for mib in (8, 16):
        count = size(mib * MIB // 16, 64)
        vectors = cuda.device_array(4 * count, np.float32)
        bench.rate(
            f"l2/read_{mib}_mib",
            lambda vectors=vectors, count=count: bench.kernels.l2_reads[bench.full](
                bench.end, vectors, np.int32(count), np.int32(passes)
            ),
            16 * count * passes,
            "B/s",
        )
        bench.rate(
            f"l2/write_{mib}_mib",
            lambda vectors=vectors, count=count: bench.kernels.l2_writes[bench.full](
                vectors, np.int32(count), np.int32(passes)
            ),
            16 * count * passes,
            "B/s",
        )


def memory(bench: Bench) -> None:
    """Bytes of large arrays, one float of each so many, and what few requests at a time get."""
    for mib in (32, 128, 1024):
        count = size(mib * MIB // 16, 64)
        vectors = cuda.device_array(4 * count, np.float32)
        for what, launch in {
            "read": lambda v=vectors, n=count: bench.kernels.l2_reads[bench.full](
                bench.end, v, np.int32(n), np.int32(1)
            ),
            "write": lambda v=vectors, n=count: bench.kernels.l2_writes[bench.full](
                v, np.int32(n), np.int32(1)
            ),
        }.items():
            seconds, spread = bench.time(launch)
            bench.put(f"memory/{what}_{mib}_mib/time", seconds * 1e3, "ms", spread * 1e3)
    count = size(1 << 24, 64)
    words = cuda.to_device(np.zeros(size(1 << 30, 4096), np.int32))
    floats = words.view(np.float32)
    for stride in (8, 16, 32, 64):
        bench.rate(
            f"memory/sparse_read_{4 * stride}",
            lambda stride=stride: bench.kernels.sparse_reads[bench.full](
                bench.end, floats, np.int32(count), np.int32(stride)
            ),
            count,
            "sector/s",
        )
    for warps in (1, 2, 4, 8, 16, 32, 64):
        launch = (sms() * max(1, warps // 32), min(warps, 32) * WARP)
        rounds = size(512, 2)
        bench.rate(
            f"memory/in_flight_{warps}",
            lambda launch=launch, rounds=rounds: bench.kernels.one_in_flight[launch](
                bench.end, words, np.int64(words.size), np.int32(rounds)
            ),
            sms() * warps * rounds * 128,
            "B/s",
        )
    for stride in (8, 16, 32):
        bench.rate(
            f"memory/sparse_write_{4 * stride}",
            lambda stride=stride: bench.kernels.sparse_writes[bench.full](
                floats, np.int32(count), np.int32(stride)
            ),
            count,
            "sector/s",
        )


def atomics(bench: Bench) -> None:
    """Additions of lanes per second: all to one address, to 32, to one each; the same on an SM."""
    grid, block = bench.full
    rounds = size(16, 1)
    adds = grid * block * rounds
    for dtype, name in ((np.int32, "int"), (np.float32, "float")):
        counters = cuda.to_device(np.zeros(size(1 << 22, BLOCK), dtype))
        kernel = bench.kernels[f"atomics<{name}>"]
        for what, mask, apart in (
            ("one", 0, 0),
            ("32", 31, 0),
            ("1024", 1023, 32),
            ("each", counters.size - 1, 32),
        ):
            bench.rate(
                f"atomics/{name}/{what}",
                lambda kernel=kernel, counters=counters, mask=mask, apart=apart: kernel[bench.full](
                    counters, np.int32(rounds), np.int32(mask), np.int32(apart)
                ),
                adds,
                "lane/s",
            )
        kernel = bench.kernels[f"shared_atomics<{name}>"]
        for what, mask in (("one", 0), ("32", 31)):
            bench.rate(
                f"shared_atomics/{name}/{what}",
                lambda kernel=kernel, mask=mask: kernel[bench.full](
                    bench.end, np.int32(rounds), np.int32(mask)
                ),
                adds,
                "lane/s",
            )


def blocks(bench: Bench) -> None:
    """An empty launch; empty blocks per second; one block after the other on each SM."""
    none = bench.kernels.nothing
    seconds, spread = bench.time(lambda: none[1, WARP]())
    bench.put("launch/time", seconds * 1e3, "ms", spread * 1e3)
    for threads in (32, 64, 128, 256, 512, 1024):
        count = size(1 << 21, 2)
        bench.rate(
            f"blocks/{threads}",
            lambda threads=threads, count=count: none[count, threads](),
            count,
            "block/s",
        )
    if not engine.has_gpu():
        return
    alone = hardware.shared_limit() // 2 + 1024
    word = cuda.to_device(np.zeros(1, np.int32))
    for threads in (32, 256, 1024):
        rounds = 200
        launch = (sms() * rounds, threads, alone)
        seconds, spread = bench.time(
            lambda launch=launch: bench.kernels.one_word[launch](word, np.int32(0))
        )
        bench.put(f"turn/{threads}/time", seconds / rounds * 1e3, "ms", spread / rounds * 1e3)


PARTS = {
    part.__name__: part
    for part in (
        clock,
        operations,
        shared,
        barrier,
        caches,
        memory,
        atomics,
        blocks,
    )
}


def main() -> None:
    options = command_line(__doc__, 120, PARTS).parse_args()
    report = Report(options.out, options.budget)
    bench = Bench(report)
    run_parts(report, {name: partial(run, bench, name) for name in options.parts})


def run(bench: Bench, name: str, _) -> None:
    """A part of this bench."""
    PARTS[name](bench)


if __name__ == "__main__":
    main()
