"""Softmax over the last axis: which kernel for which rows."""

import torch

from course.kernels.row_kernels import classic
from course.kernels.row_kernels.fast import Fast, load, usable
from course.kernels.row_kernels.shapes import Shape, best_shape

KEPT = 32  # values of a row that a thread keeps, at most


def softmax(x: torch.Tensor, *, shape: Shape | None = None) -> torch.Tensor:
    """exp(x) / sum of exp(x) over the last axis; NaN and infinities as torch has them.

    x: float32 or bfloat16 [..., columns].
    shape: how the fast kernel deals rows; chosen by their length unless given.
    """
    rows = classic.matrix(x)
    out = torch.empty_like(rows)
    if out.numel() == 0:
        return out.view(x.shape)
    kernel = _fast(rows, shape)
    if kernel:
        kernel.launch(len(rows), out, rows, len(rows))
    else:
        _classic(out, rows)
    return out.view(x.shape)


def _fast(x: torch.Tensor, shape: Shape | None) -> Fast | None:
    """The fast kernel for a matrix, or None where it cannot be used."""
    if not usable(x):
        return None
    shape = shape or best_shape("softmax", x.shape[1], x.element_size())
    return load("fast_softmax.cu", "softmax_fast", shape, x.dtype) if shape else None


def _classic(out, x) -> None:
    """One read if a block's registers hold the row, else two."""
    count, columns = x.shape
    threads = classic.threads_for(columns)
    kind = classic.type_name(x)
    kept = 1 << max(0, (-(-columns // threads) - 1).bit_length())
    name = f"softmax_one_read<{kind}, {kept}>" if kept <= KEPT else f"softmax_online<{kind}>"
    classic.module("softmax.cu")[name][count, threads](out, x, columns)
