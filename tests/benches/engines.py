"""The CPU engines' own times, in one command:  python -m tests.benches.engines

CUDA C: kernels of the course's kind with one core and with all, what compiling costs and what it
costs when nothing changed. Results are checked before anything is printed. Then Numba's stock
simulator beside ours (tests/benches/numba_engines.py). All times are of this computer's processor
and say nothing about a GPU.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.processes import completed
from utils.cpu.cuda_c.build import build_program, runtime_objects
from utils.files import ROOT

# Wanted: the figures of a prototype on one core, to be matched or beaten.
WANTED = {
    "vector_add_1M": 4.8,
    "matmul_512": 143,
    "tiled_matmul_512": 327,
    "block_reduction_1M": 102,
    "shuffle_reduction_1M": 86,
    "histogram_1M": 7.3,
    "transpose_1024": 14.7,
    "barrier_crossings_per_second": 190e6,
    "launch_us": 50,
}
UNITS = {"barrier_crossings_per_second": "", "launch_us": "us"}
SMALL = """
#include <cstdio>
#include <vector>
__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
int main() { std::vector<float> h(10); printf("%zu\\n", h.size()); }
"""


def figures(program: Path, **environment: str) -> dict[str, float]:
    """What the benchmark program prints, by name."""
    done = completed([program], env={**os.environ, **environment}, check=True)
    return {
        name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())
    }


def main() -> None:
    program = build_program(ROOT / "tests" / "utils" / "cpu" / "programs" / "bench.cu")
    one, all_cores = figures(program, CUDA_CPU_THREADS="1"), figures(program)
    print(f"{'CUDA C':30}{'wanted':>12}{'one core':>12}{f'{os.cpu_count()} cores':>12}")
    for name, wanted in WANTED.items():
        unit = UNITS.get(name, "ms")
        print(f"{name:30}{wanted:>12.4g}{one[name]:>12.4g}{all_cores[name]:>12.4g} {unit}")
    runtime_objects(program=True, check=False)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "small.cu"
        source.write_text(SMALL + f"// {time.time()}\n")
        times = []
        for _ in range(2):
            start = time.perf_counter()
            build_program(source)
            times.append(time.perf_counter() - start)
    print(f"{'compile a small program':30}{1.3:>12}{times[0]:>12.3f} s")
    print(f"{'again, nothing changed':30}{'':>12}{times[1]:>12.3f} s\n", flush=True)
    subprocess.run([sys.executable, Path(__file__).with_name("numba_engines.py")], check=True)


if __name__ == "__main__":
    main()
