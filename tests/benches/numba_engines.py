"""Numba's stock simulator and the course's CPU engine side by side: the same kernels, one after the
other.

    python -m tests.benches.numba_engines

Times are of this machine's CPU, in seconds for one launch (the best of three; the stock simulator
runs once where a launch takes over a second), results checked. They say nothing about any GPU.
"""

import json
import os
import subprocess
import sys
import time

import numpy as np

T = 16


def kernels():
    global cuda  # the stock simulator finds `cuda` among a kernel's globals only
    from numba import cuda, float32

    @cuda.jit
    def vector_add(out, a, b):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = a[i] + b[i]

    @cuda.jit
    def block_sum(x, out):
        part = cuda.shared.array(256, float32)
        i, t = cuda.grid(1), cuda.threadIdx.x
        part[t] = x[i] if i < x.size else 0.0
        cuda.syncthreads()
        step = 128
        while step > 0:
            if t < step:
                part[t] += part[t + step]
            cuda.syncthreads()
            step //= 2
        if t == 0:
            cuda.atomic.add(out, 0, part[0])

    @cuda.jit
    def tiled_matmul(a, b, c):
        tile_a = cuda.shared.array((T, T), float32)
        tile_b = cuda.shared.array((T, T), float32)
        x, y = cuda.grid(2)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        total = float32(0)
        for m in range(a.shape[1] // T):
            tile_a[ty, tx] = a[y, m * T + tx]
            tile_b[ty, tx] = b[m * T + ty, x]
            cuda.syncthreads()
            for k in range(T):
                total += tile_a[ty, k] * tile_b[k, tx]
            cuda.syncthreads()
        c[y, x] = total

    return vector_add, block_sum, tiled_matmul


def measure():
    """Seconds for one launch of each kernel, by name."""
    vector_add, block_sum, tiled_matmul = kernels()
    rng = np.random.default_rng(0)
    x, y = rng.random(4096, np.float32), rng.random(4096, np.float32)
    a, b = rng.random((64, 64), np.float32), rng.random((64, 64), np.float32)

    def add():
        out = np.zeros_like(x)
        vector_add[16, 256](out, x, y)
        assert np.array_equal(out, x + y)

    def total():
        out = np.zeros(1, np.float32)
        block_sum[16, 256](x, out)
        assert np.allclose(out, x.sum(), rtol=1e-5)

    def matmul():
        c = np.zeros_like(a)
        tiled_matmul[(4, 4), (T, T)](a, b, c)
        assert np.allclose(c, a @ b, rtol=1e-4)

    cases = {
        "vector add, 4,096 threads": add,
        "block reduction of 4,096, 256 threads": total,
        "16x16-tiled matmul, 64 x 64": matmul,
    }
    return {name: best_of_three(case) for name, case in cases.items()}


def best_of_three(case):
    seconds = []
    while len(seconds) < 3:
        start = time.perf_counter()
        case()
        seconds.append(time.perf_counter() - start)
        if seconds[0] > 1:
            break
    return min(seconds)


def run(engine):
    """measure() in a process of its own, on the stock simulator or on the course's engine."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1" if engine == "stock" else "0"}
    done = subprocess.run(
        [sys.executable, __file__, engine], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"the {engine} engine failed:\n{done.stderr}")
    return json.loads(done.stdout)


def main():
    if len(sys.argv) > 1:
        if sys.argv[1] == "ours":
            from utils.cpu import numba_cuda

            numba_cuda.install()
        print(json.dumps(measure()))
        return
    stock, ours = run("stock"), run("ours")
    print(f"{'seconds a launch':<40}{'stock':>10}{'ours':>10}{'ratio':>8}")
    for name in stock:
        print(f"{name:<40}{stock[name]:>10.4f}{ours[name]:>10.4f}{stock[name] / ours[name]:>8.0f}")


if __name__ == "__main__":
    main()
