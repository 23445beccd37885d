"""What a launch costs the processor: seconds of host time per call, of several ways to launch.

    python -m course.kernels.machine.host --out host.json --budget 60

A kernel with five arguments that does next to nothing, called many times without waiting, so that
the GPU is always done before the next call; and functions of the course beside PyTorch's. Beside
host.json lies host.jsonl, the entries for assets/results: launch/<way>/host_time.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from course.kernels.bench.command import command_line
from course.kernels.bench.report import Report
from course.kernels.row_kernels import norms
from course.kernels.row_kernels.softmax import softmax
from utils import cuda_c, has_gpu

FILE = Path(__file__).parent / "host.cu"
N = 256  # elements, one block
CALLS, ROUNDS = 500, 9
ROWS, COLUMNS = 64, 1024


def ways() -> dict[str, Callable[[], object]]:
    """The ways to launch, by the name that a result bears; those whose package is missing are not
    there.
    """
    x, y, out = (torch.ones(N, device="cuda") for _ in range(3))
    found = {
        "cuda_c": cuda_c_way(out, x, y),
        "cuda_c_numba_arrays": cuda_c_numba_way(),
        "numba_cuda": numba_way(),
        "torch_mul_out": lambda: torch.mul(x, y, out=out),
    }
    for name, way in {"cupy_raw_kernel": cupy_way, "triton": triton_way}.items():
        try:
            found[name] = way()
        except ImportError:
            continue
    return found


def cuda_c_way(out, x, y):
    kernel = cuda_c.load(FILE).axpy

    def launch():
        kernel[1, N](out, x, y, 2.0, N)

    return launch


def cuda_c_numba_way():
    from numba import cuda

    out, x, y = (cuda.to_device(np.ones(N, np.float32)) for _ in range(3))
    return cuda_c_way(out, x, y)


def numba_way():
    from numba import cuda

    @cuda.jit("void(float32[::1], float32[::1], float32[::1], float32, int32)")
    def axpy(out, x, y, a, n):
        i = cuda.grid(1)
        if i < n:
            out[i] = a * x[i] + y[i]

    out, x, y = (cuda.to_device(np.ones(N, np.float32)) for _ in range(3))
    a, n = np.float32(2), np.int32(N)
    return lambda: axpy[1, N](out, x, y, a, n)


def cupy_way():
    import cupy

    kernel = cupy.RawKernel(FILE.read_text(), "axpy")
    out, x, y = (cupy.ones(N, cupy.float32) for _ in range(3))
    a, n = np.float32(2), np.int32(N)
    return lambda: kernel((1,), (N,), (out, x, y, a, n))


def triton_way():
    from course.kernels.machine.host_triton import axpy

    out, x, y = (torch.ones(N, device="cuda") for _ in range(3))
    return lambda: axpy[(1,)](out, x, y, 2.0, N, N)


def functions() -> dict[str, dict[str, Callable[[], object]]]:
    """Functions of the course beside PyTorch's, on a matrix so small that only the call counts."""
    x = torch.rand(ROWS, COLUMNS, device="cuda")
    gamma, beta = torch.rand(2, COLUMNS, device="cuda")
    odd = torch.rand(ROWS, COLUMNS - 1, device="cuda")
    return {
        "softmax": {"ours": lambda: softmax(x), "torch": lambda: torch.softmax(x, -1)},
        "softmax_unaligned": {
            "ours": lambda: softmax(odd),
            "torch": lambda: torch.softmax(odd, -1),
        },
        "layer_norm": {
            "ours": lambda: norms.layer_norm(x, gamma, beta),
            "torch": lambda: F.layer_norm(x, (COLUMNS,), gamma, beta),
        },
        "rms_norm": {
            "ours": lambda: norms.rms_norm(x, gamma),
            "torch": lambda: F.rms_norm(x, (COLUMNS,), gamma),
        },
    }


def host_times(rivals: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Seconds per call of each, in turn, one a round. The GPU is idle before each."""
    times = {name: [] for name in rivals}
    for run in rivals.values():
        for _ in range(CALLS):  # compile, and reach the speed that lasts
            run()
    for _ in range(ROUNDS):
        for name, run in rivals.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                run()
            times[name].append((time.perf_counter() - start) / CALLS)
    torch.cuda.synchronize()
    return times


def keep(report: Report, name: str, seconds: list[float]) -> None:
    """Keep the median and record it; the spread is from the lower to the upper quartile."""
    low, middle, high = statistics.quantiles(seconds, n=4)
    report.record(f"launch/{name}/host_time", middle, "s", high - low)
    report.put("clock", name, {"host_us": 1e6 * middle})
    print(f"{name:24} {1e6 * middle:6.2f} µs", flush=True)


def session(report: Report) -> None:
    """All measurements, each kept as soon as it is there."""
    for name, seconds in host_times(ways()).items():
        keep(report, name, seconds)
    for function, rivals in functions().items():
        for who, seconds in host_times(rivals).items():
            keep(report, f"{function}_{who}", seconds)


def main() -> None:
    options = command_line(__doc__, 60).parse_args()
    if not has_gpu():
        raise SystemExit("the host time of a launch needs a GPU to launch on")
    report = Report(options.out, options.budget)
    report.watch()
    session(report)


if __name__ == "__main__":
    main()
