"""Layer norm and RMS norm over the last axis, forward and backward: which kernel for which rows.

The forward passes return, besides y, what the backward passes need of each row: its mean and
1 / sqrt(variance + epsilon), two float32 numbers. xhat is computed from x again: it is cheaper to
compute than to store.

All take `shape`, how the fast kernel deals rows; it is chosen by their length unless given.
"""

import torch

from course.kernels.row_kernels import classic
from course.kernels.row_kernels.fast import Fast, SplitNorm, kernel_for
from course.kernels.row_kernels.shapes import Shape

EPSILON = 1e-5
COLUMNS_A_BLOCK = 32  # of kernel add_rows
SLICES = 64  # of the rows, for the classic kernels' partial sums


def layer_norm(
    x,
    gamma,
    beta,
    epsilon: float = EPSILON,
    *,
    statistics: bool = True,
    shape: Shape | None = None,
):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta over the last axis.

    x: float32, bfloat16 or float16 [..., columns]; gamma, beta: [columns], of x's type.
    Returns y like x, means and inverse standard deviations (float32, one a row); without
    `statistics`, for which nobody asks who needs no gradient, None for these.
    """
    rows = classic.matrix(x)
    y = classic.room(rows)
    count, columns = rows.shape
    kernel = kernel_for("layer_norm", shape, (rows,), (gamma, beta)) if rows.numel() else None
    means = inverses = None
    if statistics or not _may_forget(kernel):
        means = classic.row_numbers(rows)
        inverses = classic.row_numbers(rows)
    if rows.numel() == 0:
        return classic.like(y, x), means, inverses
    if kernel:
        kernel.launch(count, y, means, inverses, rows, gamma, beta, count, float(epsilon))
    else:
        rows = rows.contiguous()
        launch = classic.launcher("norms.cu", "layer_norm", rows)
        launch(y, means, inverses, rows, gamma, beta, columns, epsilon)
    if not statistics:
        return classic.like(y, x), None, None
    return classic.like(y, x), means, inverses


def rms_norm(
    x,
    gamma,
    epsilon: float = EPSILON,
    *,
    statistics: bool = True,
    shape: Shape | None = None,
):
    """x / sqrt(mean of x^2 + epsilon) * gamma over the last axis.

    x: float32, bfloat16 or float16 [..., columns]; gamma: [columns], of x's type.
    Returns y like x and 1 / sqrt(...) (float32, one a row), or None without `statistics`.
    """
    rows = classic.matrix(x)
    y = classic.room(rows)
    count, columns = rows.shape
    kernel = kernel_for("rms_norm", shape, (rows,), (gamma,)) if rows.numel() else None
    inverses = None
    if statistics or not _may_forget(kernel):
        inverses = classic.row_numbers(rows)
    if rows.numel() == 0:
        return classic.like(y, x), inverses
    if kernel:
        kernel.launch(count, y, inverses, rows, gamma, count, float(epsilon))
    else:
        rows = rows.contiguous()
        launch = classic.launcher("norms.cu", "rms_norm", rows)
        launch(y, inverses, rows, gamma, columns, epsilon)
    return classic.like(y, x), inverses if statistics else None


def layer_norm_backward(
    dy,
    x,
    gamma,
    means,
    inverses,
    *,
    shape: Shape | None = None,
):
    """The gradients of x, gamma and beta, from that of y and what `layer_norm` returned."""
    rows, dy_rows = _side_by_side(x, dy)
    dx = classic.room(rows)
    if rows.numel() == 0:
        return classic.like(dx, x), torch.zeros_like(gamma), torch.zeros_like(gamma)
    count, columns = rows.shape
    kernel = kernel_for("layer_norm_backward", shape, (rows, dy_rows), (gamma,))
    if isinstance(kernel, SplitNorm):
        partial, added = kernel.launch(dx, dy_rows, rows, gamma, means, inverses)
        return classic.like(dx, x), *(partial if added else add_rows(partial, gamma))
    if kernel:
        partial = _partial_sums(kernel, rows, gamma, 2)
        kernel.launch(count, dx, *partial, dy_rows, rows, gamma, means, inverses, count)
        if kernel.shape.gather > 1:
            return classic.like(dx, x), *partial
    else:
        rows, dy_rows = rows.contiguous(), dy_rows.contiguous()
        launch = classic.launcher("norms.cu", "layer_norm_backward", rows)
        launch(dx, dy_rows, rows, gamma, means, inverses, columns)
        partial = _classic_partial_sums(dy_rows, rows, means, inverses)
    return classic.like(dx, x), *add_rows(partial, gamma)


def rms_norm_backward(dy, x, gamma, inverses, *, shape: Shape | None = None):
    """The gradients of x and gamma, from that of y and what `rms_norm` returned."""
    rows, dy_rows = _side_by_side(x, dy)
    dx = classic.room(rows)
    if rows.numel() == 0:
        return classic.like(dx, x), torch.zeros_like(gamma)
    count, columns = rows.shape
    kernel = kernel_for("rms_norm_backward", shape, (rows, dy_rows), (gamma,))
    if isinstance(kernel, SplitNorm):
        partial, added = kernel.launch(dx, dy_rows, rows, gamma, None, inverses)
        return classic.like(dx, x), *(partial if added else add_rows(partial, gamma))
    if kernel:
        partial = _partial_sums(kernel, rows, gamma, 1)
        kernel.launch(count, dx, *partial, dy_rows, rows, gamma, inverses, count)
        if kernel.shape.gather > 1:
            return classic.like(dx, x), *partial
    else:
        rows, dy_rows = rows.contiguous(), dy_rows.contiguous()
        launch = classic.launcher("norms.cu", "rms_norm_backward", rows)
        launch(dx, dy_rows, rows, gamma, inverses, columns)
        partial = _classic_partial_sums(dy_rows, rows, None, inverses)
    return classic.like(dx, x), *add_rows(partial, gamma)


# ---- the fast kernels ----------------------------------------------------------------------------


def _side_by_side(x, dy) -> tuple[torch.Tensor, torch.Tensor]:
    """Both as matrices whose rows lie equally far apart."""
    rows = classic.matrix(x)
    dy_rows = classic.matrix(dy)
    if rows.stride(0) != dy_rows.stride(0):
        rows, dy_rows = rows.contiguous(), dy_rows.contiguous()
    return rows, dy_rows


def _may_forget(kernel: Fast | None) -> bool:
    """Whether a kernel takes no room for a row's statistics as leave not to write them."""
    return bool(kernel and kernel.shape.passes)


def _partial_sums(kernel: Fast, rows, gamma, count: int) -> torch.Tensor:
    """Room for the partial sums of `count` parameters' gradients: a row a cluster; or, where the
    kernel adds those up itself, for the gradients.
    """
    if kernel.shape.gather > 1:
        return torch.empty((count, rows.shape[1]), dtype=gamma.dtype, device=rows.device)
    shape = count, kernel.grid_clusters(len(rows)), rows.shape[1]
    return torch.empty(shape, dtype=torch.float32, device=rows.device)


# ---- the classic kernels -------------------------------------------------------------------------


def _classic_partial_sums(dy, x, means, inverses) -> torch.Tensor:
    """Partial sums of dgamma and, with means, of dbeta: [1 or 2, slices of the rows, columns]."""
    count, columns = x.shape
    slices = min(SLICES, count)
    sums = 1 if means is None else 2
    partial = torch.empty(
        (sums, slices, columns),
        dtype=torch.float32,
        device=x.device,
    )
    dbeta = None if means is None else partial[1]
    threads = min(classic.threads_for(columns), 256)
    kernel = classic.module("norms.cu")[f"parameter_gradients<{classic.type_name(x)}>"]
    grid = -(-columns // threads), slices
    kernel[grid, threads, 0, classic.stream(x)](
        partial[0], dbeta, dy, x, means, inverses, count, columns
    )
    return partial


def add_rows(partial: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Sums of the columns of float32 [n, rows, columns]: [n, columns] of `like`'s type."""
    matrices, count, columns = partial.shape
    out = torch.empty(
        (matrices, columns),
        dtype=like.dtype,
        device=like.device,
    )
    kernel = classic.module("norms.cu")[f"add_rows<{classic.type_name(like)}>"]
    blocks = -(-columns // COLUMNS_A_BLOCK)
    kernel[(blocks, matrices), (32, 32), 0, classic.stream(out)](out, partial, count, columns)
    return out
