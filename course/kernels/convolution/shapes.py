"""What a convolution's sizes are, and what they cost."""

import ctypes
from dataclasses import dataclass

INTS = "images height width channels outputs rows columns stride dilation top left".split()


class Problem(ctypes.Structure):
    """The struct of this name in kernels/implicit_gemm.cuh."""

    _fields_ = [(name, ctypes.c_int) for name in INTS]


@dataclass(frozen=True)
class Convolution:
    """Sizes of a convolution: NHWC pictures, K filters of side × side pixels, square steps."""

    n: int
    c: int
    h: int
    w: int
    k: int
    side: int = 3
    stride: int = 1
    padding: int = 1
    dilation: int = 1

    @property
    def reach(self) -> int:
        """Pixels from a filter's first tap to its last."""
        return (self.side - 1) * self.dilation

    @property
    def p(self) -> int:
        """Rows of the result."""
        return (self.h + 2 * self.padding - self.reach - 1) // self.stride + 1

    @property
    def q(self) -> int:
        """Columns of the result."""
        return (self.w + 2 * self.padding - self.reach - 1) // self.stride + 1

    @property
    def taps(self) -> int:
        return self.side**2

    @property
    def flops(self) -> int:
        """Of the result, and of each gradient: a product and a sum for each tap and channel."""
        return 2 * self.n * self.p * self.q * self.k * self.taps * self.c

    @property
    def intensity(self) -> float:
        """Operations for each byte that must be read or written, in numbers of 2 bytes."""
        reads = self.n * self.h * self.w * self.c + self.k * self.taps * self.c
        return self.flops / (2 * (reads + self.n * self.p * self.q * self.k))

    @property
    def options(self) -> dict:
        """The steps as PyTorch's functions take them."""
        return {
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
        }

    def forward_problem(self) -> Problem:
        """The result from the pictures, and, with the same numbers, the weights' gradient."""
        return Problem(
            images=self.n,
            height=self.p,
            width=self.q,
            channels=self.c,
            outputs=self.k,
            rows=self.side,
            columns=self.side,
            stride=self.stride,
            dilation=self.dilation,
            top=-self.padding,
            left=-self.padding,
        )

    def backward_problem(self) -> Problem:
        """The pictures' gradient: a convolution of dy with the filter turned. Stride 1 only."""
        return Problem(
            images=self.n,
            height=self.h,
            width=self.w,
            channels=self.k,
            outputs=self.c,
            rows=self.side,
            columns=self.side,
            stride=1,
            dilation=self.dilation,
            top=self.padding - self.reach,
            left=self.padding - self.reach,
        )


#: The shapes that are raced: of ResNet's middle, 64 pictures.
RACED = {
    "256x28": Convolution(64, 256, 28, 28, 256),
    "512x14": Convolution(64, 512, 14, 14, 512),
    "64x56": Convolution(64, 64, 56, 56, 64),
    "256x56_1x1": Convolution(64, 256, 56, 56, 64, side=1, padding=0),
}
