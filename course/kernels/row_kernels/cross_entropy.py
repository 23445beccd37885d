"""Cross-entropy from logits, and its gradient: which kernel for which rows.

Losses come one a row; a mean is `losses.sum() / rows that count`. The gradient is of a weighted sum
of the losses: weights of 1 / rows that count make it the mean's.
"""

import torch

from course.kernels.row_kernels import classic
from course.kernels.row_kernels.fast import kernel_for
from course.kernels.row_kernels.shapes import Shape

IGNORED = -100  # torch's ignore_index: a row with this target does not count


def cross_entropy(
    logits,
    targets,
    ignored: int = IGNORED,
    *,
    statistics: bool = True,
    shape: Shape | None = None,
):
    """The loss of each row, and the logarithm of its sum of exponentials for the gradient.

    logits: float32, bfloat16 or float16 [rows, columns], rows contiguous; targets: int64 [rows].
    Returns two float32 [rows]. A row whose target is `ignored` has loss 0; one whose target is no
    column has loss NaN. Without `statistics` None for the logarithms. Raises ValueError for other
    shapes.
    """
    count, columns = _check(logits, targets)
    losses = classic.row_numbers(logits)
    kernel = kernel_for("cross_entropy", shape, (logits,)) if logits.numel() else None
    log_sums = None
    if statistics or not (kernel and kernel.shape.passes):
        log_sums = classic.row_numbers(logits)
    if count == 0 or columns == 0:
        return losses.fill_(float("nan")), log_sums.fill_(float("-inf"))
    if kernel:
        kernel.launch(count, losses, log_sums, logits, targets, count, ignored)
    else:
        logits = logits.contiguous()
        launch = classic.launcher("cross_entropy.cu", "cross_entropy", logits)
        launch(losses, log_sums, logits, targets, columns, ignored)
    return losses, log_sums if statistics else None


def cross_entropy_backward(
    logits, targets, log_sums, weights, ignored: int = IGNORED, *, shape: Shape | None = None
):
    """The gradient of sum(weights * losses), like the logits. weights: float32 [rows]."""
    count, columns = _check(logits, targets)
    gradient = classic.room(logits)
    if gradient.numel() == 0:
        return gradient
    kernel = kernel_for("cross_entropy_backward", shape, (logits,))
    if kernel:
        kernel.launch(count, gradient, logits, log_sums, targets, weights, count, ignored)
    else:
        logits = logits.contiguous()
        launch = classic.launcher("cross_entropy.cu", "cross_entropy_backward", logits)
        launch(gradient, logits, log_sums, targets, weights, columns, ignored)
    return gradient


def loss_and_gradient(
    logits, targets, weights, ignored: int = IGNORED, *, out=None, shape: Shape | None = None
):
    """The loss of each row and the gradient of sum(weights * losses), the logits read once.

    out: receives the gradient, if given; it may be the logits themselves, if they are contiguous.
    """
    count, _ = _check(logits, targets)
    kernel = None
    if logits.numel() and (out is None or (out.is_contiguous() and out.dtype == logits.dtype)):
        kernel = kernel_for("cross_entropy_and_gradient", shape, (logits,), out=out)
    if not kernel:
        losses, log_sums = cross_entropy(logits, targets, ignored)
        gradient = cross_entropy_backward(logits, targets, log_sums, weights, ignored)
        return losses, gradient if out is None else out.copy_(gradient)
    gradient = classic.room(logits) if out is None else out
    losses = classic.row_numbers(logits)
    log_sums = None if kernel.shape.passes else classic.row_numbers(logits)
    kernel.launch(count, losses, log_sums, gradient, logits, targets, weights, count, ignored)
    return losses, gradient


def _check(logits, targets) -> tuple[int, int]:
    """Rows and columns. Raises ValueError unless logits are a matrix of contiguous rows and each
    row has a target.
    """
    if logits.ndim != 2 or (logits.stride(1) != 1 and logits.shape[1] > 1):
        raise ValueError(f"logits must be a matrix of contiguous rows, got {list(logits.shape)}")
    if targets.shape != logits.shape[:1] or targets.dtype != torch.int64:
        got = f"{list(targets.shape)} {targets.dtype}"
        raise ValueError(f"targets must be {len(logits)} int64 numbers, got {got}")
    return logits.shape
