"""The same for Triton."""

import json
import sys

import kernelcpu

kernelcpu.install()

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402


@triton.jit
def add(out, a, b, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(a + at, inside) + tl.load(b + at, inside), inside)


@triton.jit
def unguarded(out, a, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(a + at))


a, b = torch.randn(2, 100)
out = torch.empty_like(a)
add[(2,)](out, a, b, 100, BLOCK=64)
is_sum = torch.equal(out, a + b)
try:
    unguarded[(2,)](out, a, BLOCK=64)
    message = ""
except kernelcpu.KernelMistake as error:
    message = str(error)
found = {
    "sum": is_sum,
    "unguarded": message,
    "of the course": sorted({"utils", "course"} & set(sys.modules)),
}
print(json.dumps(found))
