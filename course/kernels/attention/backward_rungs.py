"""The rungs of the backward pass: what runs each, and what it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from course.kernels.attention import backward, backward_hopper
from course.kernels.attention.rungs import ANY
from course.kernels.matmul.tensor import AMPERE, HOPPER, VOLTA, Needs
from utils import has_gpu


@dataclass(frozen=True)
class Rung:
    """run(saved, dout, gradients=None) -> (dq, dk, dv), with tensors of this type."""

    run: Callable
    dtype: torch.dtype
    needs: Needs

    def able(self) -> bool:
        """Whether this machine can run it; the CPU runtime can run all."""
        return self.needs.met() or not has_gpu()


#: In the order of the ladder
BACKWARD = {
    "plain": Rung(backward.plain, torch.float32, ANY),
    "mma_fp16": Rung(partial(backward.mma, tile=backward.SMALL), torch.float16, VOLTA),
    "mma": Rung(backward.mma, torch.bfloat16, AMPERE),
    "wgmma": Rung(backward_hopper.gradients, torch.bfloat16, HOPPER),
}
