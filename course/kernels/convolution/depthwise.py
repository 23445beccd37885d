"""Launch the depthwise kernel: NHWC bfloat16, stride 1, "same"."""

from pathlib import Path

from utils import cuda_c
from utils.occupancy import ceil_div
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
THREADS = 128


@yours.cache
def module(side: int, wide: int, blocks: int = 1):
    flags = f"-DSIDE={side}", f"-DWIDE={wide}", f"-DBLOCKS={blocks}"
    return cuda_c.load(KERNELS / "depthwise.cu", flags=flags)


def depthwise(
    y,
    x,
    weights,
    *,
    wide: int = 4,
    height: int = 28,
    blocks: int = 1,
):
    """A function that computes y.

    x, y: (n, h, w, c), c even; weights: (side, side, c). wide: columns a thread; height: rows.
    """
    n, h, w, c = x.shape
    if c % 2:
        raise ValueError(f"{c} channels: this kernel takes two at a time")
    across = ceil_div(w, wide)
    down = ceil_div(h, height)
    count = c // 2 * across * down * n
    kernel = module(len(weights), wide, blocks).depthwise
    launch = kernel[ceil_div(count, THREADS), THREADS]
    return lambda: launch(y, x, weights, n, h, w, c, height)
