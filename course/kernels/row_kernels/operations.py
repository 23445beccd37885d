"""What `bench` measures: each operation with its reference, its rivals and the bytes it moves."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from course.kernels.row_kernels import cross_entropy as ce
from course.kernels.row_kernels import norms
from course.kernels.row_kernels.shapes import Shape
from course.kernels.row_kernels.softmax import softmax

Tensors = dict[str, torch.Tensor]
aten = torch.ops.aten


@dataclass(frozen=True)
class Operation:
    """One operation on the rows of a matrix.

    name: as in the metrics. file: the fast kernel's.
    inputs: matrices that it reads. passes: matrices that it must read and write.
    registers: floats that a thread needs for each value it keeps.
    deals: its name in shapes.DEALS.
    row_outputs: how many of the outputs, the first ones, have a row for each row of x.
    ours(tensors, shape), reference(tensors in float64), eager(tensors), compiled(tensors): each
    returns the outputs, a tuple.
    """

    name: str
    file: str
    inputs: int
    passes: int
    registers: int
    row_outputs: int
    deals: str
    ours: Callable[[Tensors, Shape | None], tuple]
    reference: Callable[[Tensors], tuple]
    eager: Callable[[Tensors], tuple]
    compiled: Callable[[Tensors], tuple]  # the same for torch.compile; it may suit it better
    twice: bool = False  # whether there is a kernel that reads rows twice

    def source(self, shape: Shape) -> str:
        """The file of the kernel that takes this shape."""
        return self.file.replace("fast_", "two_reads_", 1) if shape.twice else self.file

    def bytes(self, x: torch.Tensor) -> int:
        """Bytes that must move: the matrices only; what is kept of a row is next to nothing."""
        return self.passes * x.numel() * x.element_size()


def tensors(
    rows: int,
    columns: int,
    dtype: torch.dtype,
    device: str,
    *,
    seed: int = 1,
    special: bool = False,
) -> Tensors:
    """Random inputs for all operations, and what the forward passes keep for the backward ones.

    special: rows with NaN and infinities among them, five at least.
    """
    generator = torch.Generator(device).manual_seed(seed)

    def normal(*sizes):
        return torch.randn(sizes, generator=generator, device=device, dtype=dtype)

    t = {"x": normal(rows, columns), "dy": normal(rows, columns)}
    if special:
        t["x"][1, -1] = float("nan")
        t["x"][2, columns // 2] = float("inf")
        t["x"][3, 0] = -float("inf")
        t["x"][4] = -float("inf")
    t["gamma"] = normal(columns)
    t["beta"] = normal(columns)
    t["targets"] = torch.randint(columns, (rows,), generator=generator, device=device)
    t["weights"] = torch.rand(rows, generator=generator, device=device)
    _, t["means"], t["inverses"] = norms.layer_norm(t["x"], t["gamma"], t["beta"])
    _, t["rms_inverses"] = norms.rms_norm(t["x"], t["gamma"])
    _, t["log_sums"] = ce.cross_entropy(t["x"], t["targets"])
    return t


def rows_of(t: Tensors, start: int, stop: int) -> Tensors:
    """The tensors of some of the rows; what belongs to columns stays whole."""
    rows = len(t["x"])
    by_columns = ("gamma", "beta")
    return {
        name: value if name in by_columns else value[start:stop]
        for name, value in t.items()
        if name in by_columns or len(value) == rows
    }


def in_float64(t: Tensors) -> Tensors:
    """The same in float64, but for the targets."""
    return {name: v if name == "targets" else v.double() for name, v in t.items()}


# ---- softmax -----------------------------------------------------------------------------------


def _softmax(t):
    return (torch.softmax(t["x"], -1),)


SOFTMAX = Operation(
    name="softmax",
    deals="softmax",
    file="fast_softmax.cu",
    inputs=1,
    passes=2,
    registers=1,
    row_outputs=1,
    ours=lambda t, shape: (softmax(t["x"], shape=shape),),
    reference=_softmax,
    eager=_softmax,
    compiled=_softmax,
)

# ---- layer norm --------------------------------------------------------------------------------


def _layer_norm(t):
    columns = t["x"].shape[1:]
    return (F.layer_norm(t["x"], columns, t["gamma"], t["beta"], norms.EPSILON),)


def _layer_norm_gradients(t):
    """The gradients of x, gamma and beta by autograd; the statistics are computed again."""
    x, gamma, beta = (t[name].detach().requires_grad_() for name in ("x", "gamma", "beta"))
    y = F.layer_norm(x, x.shape[1:], gamma, beta, norms.EPSILON)
    return torch.autograd.grad(y, (x, gamma, beta), t["dy"])


def _layer_norm_backward(t):
    """The backward pass alone, from the saved statistics, as autograd calls it."""
    x = t["x"]
    means, inverses = t["means"].view(-1, 1), t["inverses"].view(-1, 1)
    return aten.native_layer_norm_backward(
        t["dy"], x, x.shape[1:], means, inverses, t["gamma"], t["beta"], [True, True, True]
    )


LAYER_NORM = Operation(
    name="layernorm",
    deals="layer_norm",
    file="fast_layer_norm.cu",
    inputs=1,
    passes=2,
    registers=3,
    row_outputs=1,
    ours=lambda t, shape: norms.layer_norm(t["x"], t["gamma"], t["beta"], shape=shape),
    reference=_layer_norm,
    eager=_layer_norm,
    compiled=_layer_norm,
    twice=True,
)

LAYER_NORM_BACKWARD = Operation(
    name="layernorm_backward",
    deals="layer_norm_backward",
    file="fast_layer_norm_backward.cu",
    inputs=2,
    passes=3,
    registers=5,
    row_outputs=1,
    ours=lambda t, shape: norms.layer_norm_backward(
        t["dy"], t["x"], t["gamma"], t["means"], t["inverses"], shape=shape
    ),
    reference=_layer_norm_gradients,
    eager=_layer_norm_backward,
    compiled=_layer_norm_backward,
)

# ---- RMS norm ----------------------------------------------------------------------------------


def _rms_norm(t):
    return (F.rms_norm(t["x"], t["x"].shape[1:], t["gamma"], norms.EPSILON),)


def _rms_norm_formula(t):
    """The same written out: what it does with infinities does not depend on torch's kernel."""
    x = t["x"]
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + norms.EPSILON) * t["gamma"],)


def _rms_norm_gradients(t):
    """The gradients of x and gamma by autograd; the statistics are computed again."""
    x, gamma = (t[name].detach().requires_grad_() for name in ("x", "gamma"))
    y = F.rms_norm(x, x.shape[1:], gamma, norms.EPSILON)
    return torch.autograd.grad(y, (x, gamma), t["dy"])


def _rms_norm_backward_fused(t):
    """The backward pass alone, torch's own kernel, as autograd calls it."""
    x = t["x"]
    inverses = t["rms_inverses"].view(-1, 1)
    return aten._fused_rms_norm_backward(
        t["dy"], x, x.shape[1:], inverses, t["gamma"], [True, True]
    )


def _rms_norm_backward_formula(t):
    """The same written out, for a compiler to fuse."""
    x, dy = t["x"].float(), t["dy"].float()
    inverses = t["rms_inverses"].view(-1, 1)
    xhat = x * inverses
    g = dy * t["gamma"].float()
    dx = inverses * (g - xhat * (g * xhat).mean(-1, keepdim=True))
    return dx.to(t["x"].dtype), (dy * xhat).sum(0).to(t["x"].dtype)


RMS_NORM = Operation(
    name="rmsnorm",
    deals="rms_norm",
    file="fast_rms_norm.cu",
    inputs=1,
    passes=2,
    registers=2,
    row_outputs=1,
    ours=lambda t, shape: norms.rms_norm(t["x"], t["gamma"], shape=shape),
    reference=_rms_norm_formula,
    eager=_rms_norm,
    compiled=_rms_norm,
    twice=True,
)

RMS_NORM_BACKWARD = Operation(
    name="rmsnorm_backward",
    deals="rms_norm_backward",
    file="fast_rms_norm_backward.cu",
    inputs=2,
    passes=3,
    registers=4,
    row_outputs=1,
    ours=lambda t, shape: norms.rms_norm_backward(
        t["dy"], t["x"], t["gamma"], t["rms_inverses"], shape=shape
    ),
    reference=_rms_norm_gradients,
    eager=_rms_norm_backward_fused,
    compiled=_rms_norm_backward_formula,
)

# ---- cross-entropy -----------------------------------------------------------------------------


def _losses(t):
    return (F.cross_entropy(t["x"], t["targets"], reduction="none"),)


def _gradient(t):
    """The gradient from the logits and the saved logarithms of the sums."""
    p = torch.exp(t["x"] - t["log_sums"].view(-1, 1))
    p = p.scatter_add(1, t["targets"].view(-1, 1), p.new_full((len(p), 1), -1))
    return ((p * t["weights"].view(-1, 1)).to(t["x"].dtype),)


def _gradient_formula(t):
    """The same in a form that compilers fuse: the target is compared with, not scattered to."""
    x = t["x"].float()
    columns = torch.arange(x.shape[1], device=x.device)
    one_hot = (columns == t["targets"].view(-1, 1)).float()
    p = torch.exp(x - t["log_sums"].view(-1, 1))
    return (((p - one_hot) * t["weights"].view(-1, 1)).to(t["x"].dtype),)


def _loss_and_gradient(t):
    """Forward and backward pass by autograd."""
    x = t["x"].detach().requires_grad_()
    losses = F.cross_entropy(x, t["targets"], reduction="none")
    (gradient,) = torch.autograd.grad(losses, x, t["weights"].to(losses.dtype))
    return losses.detach(), gradient


def _loss_and_gradient_in_one_graph(t):
    """Both passes where torch.compile sees them together and can fuse them."""

    def losses(x):
        return F.cross_entropy(x, t["targets"], reduction="none")

    values, backward = torch.func.vjp(losses, t["x"])
    (gradient,) = backward(t["weights"].to(values.dtype))
    return values, gradient


CROSS_ENTROPY = Operation(
    name="cross_entropy",
    deals="cross_entropy_and_gradient",
    file="fast_cross_entropy.cu",
    inputs=1,
    passes=2,
    registers=1,
    row_outputs=2,
    ours=lambda t, shape: ce.loss_and_gradient(t["x"], t["targets"], t["weights"], shape=shape),
    reference=_loss_and_gradient,
    eager=_loss_and_gradient,
    compiled=_loss_and_gradient_in_one_graph,
)

CROSS_ENTROPY_FORWARD = Operation(
    name="cross_entropy_forward",
    deals="cross_entropy",
    file="fast_cross_entropy.cu",
    inputs=1,
    passes=1,
    registers=1,
    row_outputs=1,
    ours=lambda t, shape: ce.cross_entropy(t["x"], t["targets"], shape=shape),
    reference=_losses,
    eager=_losses,
    compiled=_losses,
)

CROSS_ENTROPY_BACKWARD = Operation(
    name="cross_entropy_backward",
    deals="cross_entropy_backward",
    file="fast_cross_entropy.cu",
    inputs=1,
    passes=2,
    registers=1,
    row_outputs=1,
    ours=lambda t, shape: (
        ce.cross_entropy_backward(t["x"], t["targets"], t["log_sums"], t["weights"], shape=shape),
    ),
    reference=_gradient,
    eager=_gradient_formula,
    compiled=_gradient_formula,
)

OPERATIONS = {
    operation.name: operation
    for operation in (
        SOFTMAX,
        LAYER_NORM,
        CROSS_ENTROPY,
        LAYER_NORM_BACKWARD,
        RMS_NORM,
        RMS_NORM_BACKWARD,
        CROSS_ENTROPY_FORWARD,
        CROSS_ENTROPY_BACKWARD,
    )
}
