"""host.cu's kernel in Triton."""

import triton
import triton.language as tl


@triton.jit
def axpy(out, x, y, a, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, a * tl.load(x + i, inside) + tl.load(y + i, inside), inside)
