"""What somebody writes who has kernelcpu and nothing of the course; prints its findings as JSON."""

import json
import sys

import kernelcpu
import numpy as np

kernelcpu.install()

from numba import cuda  # noqa: E402


@cuda.jit
def reverse(out, a):
    tile = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    tile[i] = a[i]
    out[i] = tile[63 - i]


@cuda.jit
def reverse_in_step(out, a):
    tile = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    tile[i] = a[i]
    cuda.syncthreads()
    out[i] = tile[63 - i]


@cuda.jit
def beyond(out, a):
    i = cuda.grid(1)
    out[i] = a[i + 1]


@cuda.jit
def every_second(out, a):
    i = cuda.grid(1)
    out[i] = a[2 * i]


a = np.arange(64, dtype=np.float32)
out = np.full_like(a, -1)
reverse_in_step[1, 64](out, a)
trace = kernelcpu.trace(every_second, 1, 64, np.zeros(64, np.float32), np.arange(128, dtype="f4"))
try:
    beyond[1, 64](out.copy(), a)
    message = ""
except kernelcpu.KernelIndexError as error:
    message = str(error)
found = {
    "reversed": bool((out == a[::-1]).all()),
    "race": kernelcpu.check(reverse, 1, 64, np.zeros_like(a), a),
    "no race": kernelcpu.check(reverse_in_step, 1, 64, np.zeros_like(a), a),
    "beyond": kernelcpu.check(beyond, 1, 64, np.zeros_like(a), a),
    "launched beyond": message,
    "sectors": [trace.sectors("a", "read"), trace.sectors("out", "write")],
    "efficiency": trace.efficiency("a", "read"),
    "film": len(trace.play(most=20)._repr_mimebundle_()["text/html"]) > 10_000,
    "of the course": sorted({"utils", "course"} & set(sys.modules)),
}
print(json.dumps(found))
