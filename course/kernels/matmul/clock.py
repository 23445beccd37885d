"""How fast the SMs really run while a kernel does: their own cycle counters against the time."""

from collections.abc import Callable

import numpy as np
import torch

from course.kernels.matmul.tensor import KERNELS, shared_limit
from utils import cuda_c, has_gpu, machine, results

#: Elements of a matrix that is larger than any L2 cache; a place for each SM.
LARGE = 1 << 28
PLACES = 1024


def while_it_runs(launch: Callable[[], object], rounds: int = 50) -> np.ndarray:
    """(Cycles, nanoseconds) of the SMs from just before to just after a kernel, a row a round.

    The L2 cache is cold. `tick` runs before and after, a block an SM.
    """
    tick = cuda_c.load(KERNELS / "tick.cu").tick
    whole = shared_limit() - 1024  # bytes of shared memory: no SM has room for two such blocks
    flush = torch.empty(LARGE, device="cuda")
    rows = []
    for _ in range(rounds):
        notes = torch.zeros(2, 2, PLACES, dtype=torch.int64, device="cuda")
        before, after = notes
        flush.zero_()  # meanwhile Python queues the rest
        queue_tick = tick[machine().sms, 1, whole]
        queue_tick(*before)
        launch()
        queue_tick(*after)
        reached = (notes != 0).all(0).all(0)
        passed = (after - before)[:, reached]
        rows.append(passed.double().median(1).values.tolist())
    return np.array(rows)


def report(launches: dict[str, Callable[[], object] | None]) -> None:
    """Print and record the clock during each kernel.

    launches: what it is, such as "bf16, ours" -> the launch, or None where this machine cannot run
    it: then what is recorded is printed.
    """
    for name, launch in launches.items():
        if launch is None or not has_gpu():
            print(f"{name:17} {_recorded(name)}")
        else:
            _measure(name, launch)


def _measure(name: str, launch: Callable[[], object]) -> None:
    from numba import cuda

    highest = cuda.get_current_device().CLOCK_RATE * 1e3  # Hz
    cycles, ns = while_it_runs(launch).T
    clocks = cycles / ns * 1e9
    low, clock, high = np.percentile(clocks, (25, 50, 75))
    counted = f"{np.median(cycles):11,.0f} cycles in {np.median(ns) / 1e3:7,.1f} µs"
    print(f"{name:17} {counted}: {clock / 1e9:.2f} GHz of {highest / 1e9:.2f}")
    results.record(_path(name), clock, "Hz", spread=(high - low) / 2)


def _path(name: str) -> str:
    return f"matmul/clock/{name.replace(', ', '_').lower()}"


def _recorded(name: str) -> str:
    entry = results.find(_path(name))
    if not entry:
        return "not recorded yet"
    return f"{entry['value'] / 1e9:.2f} GHz on {entry['gpu']}, {entry['date'][:10]}"
