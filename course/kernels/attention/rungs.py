"""The rungs of the ladder, from three kernels to the fastest: what runs each, and what it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from course.kernels.attention import classic, hopper
from course.kernels.matmul.tensor import AMPERE, HOPPER, VOLTA, Needs
from utils import has_gpu

ANY = Needs("any GPU", (5, 0))


@dataclass(frozen=True)
class Rung:
    """run(q, k, v, causal, out=None, lse=None) -> (out, lse), with tensors of this type."""

    run: Callable
    dtype: torch.dtype
    needs: Needs

    def able(self) -> bool:
        """Whether this machine can run it; the CPU runtime can run all."""
        return self.needs.met() or not has_gpu()


def on_hopper(file: str) -> Rung:
    """A rung of hopper.py."""
    form = partial(hopper.form_for, file=file)

    def run(q, *others, **more):
        return hopper.attention(q, *others, form=form(q.shape[-1]), **more)

    return Rung(run, torch.bfloat16, HOPPER)


#: In the order of the ladder
RUNGS = {
    "naive": Rung(classic.naive, torch.float32, ANY),
    "online": Rung(classic.online, torch.float32, ANY),
    "mma_fp16": Rung(partial(classic.mma, tile=classic.SMALL), torch.float16, VOLTA),
    "mma": Rung(classic.mma, torch.bfloat16, AMPERE),
    "wgmma": on_hopper("wgmma"),
    "turns": on_hopper("turns"),
    "overlap": on_hopper("overlap"),
    "stay": on_hopper("stay"),
}
