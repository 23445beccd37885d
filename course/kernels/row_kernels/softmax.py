"""Softmax over the last axis: which kernel for which rows."""

import torch

from course.kernels.row_kernels import classic
from course.kernels.row_kernels.fast import kernel_for
from course.kernels.row_kernels.shapes import Shape

KEPT = 32  # values of a row that a thread keeps, at most


def softmax(x: torch.Tensor, *, shape: Shape | None = None) -> torch.Tensor:
    """exp(x) / sum of exp(x) over the last axis; NaN and infinities as torch has them.

    x: float32, bfloat16 or float16 [..., columns].
    shape: how the fast kernel deals rows; chosen by their length unless given.
    """
    rows = classic.matrix(x)
    out = classic.room(rows)
    if out.numel() == 0:
        return classic.like(out, x)
    kernel = kernel_for("softmax", shape, (rows,))
    if kernel:
        kernel.launch(len(rows), out, rows, len(rows))
    else:
        _classic(out, rows.contiguous())
    return classic.like(out, x)


def _classic(out, x) -> None:
    """One read if a block's registers hold the row, else two."""
    count, columns = x.shape
    threads = classic.threads_for(columns)
    kind = classic.type_name(x)
    kept = 1 << max(0, (-(-columns // threads) - 1).bit_length())
    name = f"softmax_one_read<{kind}, {kept}>" if kept <= KEPT else f"softmax_online<{kind}>"
    kernel = classic.module("softmax.cu")[name]
    kernel[count, threads, 0, classic.stream(x)](out, x, columns)
