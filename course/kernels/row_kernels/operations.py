"""What `bench` measures: each operation with its reference, its rivals and the bytes it moves."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from course.kernels.row_kernels import cross_entropy as ce
from course.kernels.row_kernels import norms
from course.kernels.row_kernels.fast import way_of
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
    function: ours, of the tensors named in `arguments`, and of a shape.
    reference(tensors in float64), eager(tensors), compiled(tensors): each returns the outputs, a
    tuple.
    """

    name: str
    file: str
    passes: int
    registers: int
    deals: str
    function: Callable
    arguments: tuple[str, ...]
    reference: Callable[[Tensors], tuple]
    eager: Callable[[Tensors], tuple]
    compiled: Callable[[Tensors], tuple]  # the same for torch.compile; it may suit it better
    inputs: int = 1
    row_outputs: int = 1
    twice: bool = False  # whether there is a kernel that reads rows twice
    statistics: bool = False  # whether ours may keep some for a backward pass

    def ours(self, t: Tensors, shape: Shape | None, alone: bool = False) -> tuple:
        """The outputs of our kernel, dealt out as a shape says, or by the rows' length.

        alone: without what is for a backward pass, which the rivals do not give either.
        """
        options = {"statistics": False} if alone and self.statistics else {}
        outputs = self.function(*of(t, *self.arguments), shape=shape, **options)
        if not isinstance(outputs, tuple):
            return (outputs,)
        return tuple(out for out in outputs if out is not None)

    def source(self, shape: Shape) -> str:
        """The file of the kernel that takes this shape."""
        return self.file.replace("fast_", f"{way_of(shape)}_", 1)

    def bytes(self, x: torch.Tensor) -> int:
        """Bytes that must move: the matrices only; what is kept of a row is next to nothing."""
        return self.passes * x.numel() * x.element_size()


def torch_compiled(function):
    """torch.compile's best mode without CUDA graphs, for just these sizes."""
    torch._dynamo.reset()
    return torch.compile(
        lambda t: function(t),
        mode="max-autotune-no-cudagraphs",
        dynamic=False,
        fullgraph=True,
    )


def of(t: Tensors, *names: str) -> list[torch.Tensor]:
    """The tensors of these names."""
    return [t[name] for name in names]


def leaves(t: Tensors, *names: str) -> list[torch.Tensor]:
    """The same, as inputs whose gradients are asked for."""
    return [each.detach().requires_grad_() for each in of(t, *names)]


def column(t: Tensors, name: str) -> torch.Tensor:
    """What is kept of each row, beside the matrix."""
    return t[name].view(-1, 1)


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
    how = {"generator": generator, "device": device}

    def normal(*sizes):
        return torch.randn(sizes, dtype=dtype, **how)

    x = normal(rows, columns)
    t = {
        "x": x,
        "dy": normal(rows, columns),
    }
    if special:
        infinity = float("inf")
        x[1, -1] = float("nan")
        x[2, columns // 2] = infinity
        x[3, 0] = -infinity
        x[4] = -infinity
    t["gamma"] = normal(columns)
    t["beta"] = normal(columns)
    t["targets"] = torch.randint(columns, (rows,), **how)
    t["weights"] = torch.rand(rows, **how)
    t["means"], t["inverses"] = norms.layer_norm(x, t["gamma"], t["beta"])[1:]
    t["rms_inverses"] = norms.rms_norm(x, t["gamma"])[1]
    t["log_sums"] = ce.cross_entropy(x, t["targets"])[1]
    return t


def rows_of(t: Tensors, start: int, stop: int) -> Tensors:
    """The tensors of some of the rows; what belongs to columns stays whole."""
    rows = len(t["x"])
    part = {}
    for name, value in t.items():
        if name in ("gamma", "beta"):
            part[name] = value
        elif len(value) == rows:
            part[name] = value[start:stop]
    return part


def in_float64(t: Tensors) -> Tensors:
    """The same in float64, but for the targets."""
    return {name: value if name == "targets" else value.double() for name, value in t.items()}


# ---- softmax -----------------------------------------------------------------------------------


def _softmax(t):
    return (torch.softmax(t["x"], -1),)


SOFTMAX = Operation(
    name="softmax",
    deals="softmax",
    file="fast_softmax.cu",
    passes=2,
    registers=1,
    function=softmax,
    arguments=("x",),
    reference=_softmax,
    eager=_softmax,
    compiled=_softmax,
)

# ---- layer norm --------------------------------------------------------------------------------


def _layer_norm(t):
    x, gamma, beta = of(t, "x", "gamma", "beta")
    return (F.layer_norm(x, x.shape[1:], gamma, beta, norms.EPSILON),)


def _layer_norm_gradients(t):
    """The gradients of x, gamma and beta by autograd; the statistics are computed again."""
    x, gamma, beta = leaves(t, "x", "gamma", "beta")
    y = F.layer_norm(x, x.shape[1:], gamma, beta, norms.EPSILON)
    return torch.autograd.grad(y, (x, gamma, beta), t["dy"])


def _layer_norm_backward(t):
    """The backward pass alone, from the saved statistics, as autograd calls it."""
    dy, x, gamma, beta = of(t, "dy", "x", "gamma", "beta")
    return aten.native_layer_norm_backward(
        dy,
        x,
        x.shape[1:],
        column(t, "means"),
        column(t, "inverses"),
        gamma,
        beta,
        [True, True, True],
    )


LAYER_NORM = Operation(
    name="layernorm",
    deals="layer_norm",
    file="fast_layer_norm.cu",
    passes=2,
    registers=3,
    function=norms.layer_norm,
    arguments=("x", "gamma", "beta"),
    reference=_layer_norm,
    eager=_layer_norm,
    compiled=_layer_norm,
    twice=True,
    statistics=True,
)

LAYER_NORM_BACKWARD = Operation(
    name="layernorm_backward",
    deals="layer_norm_backward",
    file="fast_layer_norm_backward.cu",
    inputs=2,
    passes=3,
    registers=5,
    function=norms.layer_norm_backward,
    arguments=("dy", "x", "gamma", "means", "inverses"),
    reference=_layer_norm_gradients,
    eager=_layer_norm_backward,
    compiled=_layer_norm_backward,
)

# ---- RMS norm ----------------------------------------------------------------------------------


def _rms_norm(t):
    x, gamma = of(t, "x", "gamma")
    return (F.rms_norm(x, x.shape[1:], gamma, norms.EPSILON),)


def _rms_norm_formula(t):
    """The same written out: what it does with infinities does not depend on torch's kernel."""
    x, gamma = of(t, "x", "gamma")
    mean_square = x.square().mean(-1, keepdim=True)
    inverses = torch.rsqrt(mean_square + norms.EPSILON)
    return (x * inverses * gamma,)


def _rms_norm_gradients(t):
    """The gradients of x and gamma by autograd; the statistics are computed again."""
    x, gamma = leaves(t, "x", "gamma")
    y = F.rms_norm(x, x.shape[1:], gamma, norms.EPSILON)
    return torch.autograd.grad(y, (x, gamma), t["dy"])


def _rms_norm_backward_fused(t):
    """The backward pass alone, torch's own kernel, as autograd calls it."""
    dy, x, gamma = of(t, "dy", "x", "gamma")
    inverses = column(t, "rms_inverses")
    wanted = [True, True]
    return aten._fused_rms_norm_backward(dy, x, x.shape[1:], inverses, gamma, wanted)


def _rms_norm_backward_formula(t):
    """The same written out, for a compiler to fuse."""
    dtype = t["x"].dtype
    dy, x, gamma = (each.float() for each in of(t, "dy", "x", "gamma"))
    inverses = column(t, "rms_inverses")
    xhat = x * inverses
    g = dy * gamma
    along = (g * xhat).mean(-1, keepdim=True)
    dx = inverses * (g - xhat * along)
    dgamma = (dy * xhat).sum(0)
    return dx.to(dtype), dgamma.to(dtype)


RMS_NORM = Operation(
    name="rmsnorm",
    deals="rms_norm",
    file="fast_rms_norm.cu",
    passes=2,
    registers=2,
    function=norms.rms_norm,
    arguments=("x", "gamma"),
    reference=_rms_norm_formula,
    eager=_rms_norm,
    compiled=_rms_norm,
    twice=True,
    statistics=True,
)

RMS_NORM_BACKWARD = Operation(
    name="rmsnorm_backward",
    deals="rms_norm_backward",
    file="fast_rms_norm_backward.cu",
    inputs=2,
    passes=3,
    registers=4,
    function=norms.rms_norm_backward,
    arguments=("dy", "x", "gamma", "rms_inverses"),
    reference=_rms_norm_gradients,
    eager=_rms_norm_backward_fused,
    compiled=_rms_norm_backward_formula,
)

# ---- cross-entropy -----------------------------------------------------------------------------


def _losses(t):
    x, targets = of(t, "x", "targets")
    return (F.cross_entropy(x, targets, reduction="none"),)


def _gradient(t):
    """The gradient from the logits and the saved logarithms of the sums."""
    x = t["x"]
    p = torch.exp(x - column(t, "log_sums"))
    minus_one = p.new_full((len(p), 1), -1)
    p = p.scatter_add(1, column(t, "targets"), minus_one)
    gradient = p * column(t, "weights")
    return (gradient.to(x.dtype),)


def _gradient_formula(t):
    """The same in a form that compilers fuse: the target is compared with, not scattered to."""
    x = t["x"].float()
    columns = torch.arange(x.shape[1], device=x.device)
    one_hot = (columns == column(t, "targets")).float()
    p = torch.exp(x - column(t, "log_sums"))
    gradient = (p - one_hot) * column(t, "weights")
    return (gradient.to(t["x"].dtype),)


def _loss_and_gradient(t):
    """Forward and backward pass by autograd."""
    (x,) = leaves(t, "x")
    losses = F.cross_entropy(x, t["targets"], reduction="none")
    slopes = t["weights"].to(losses.dtype)
    (gradient,) = torch.autograd.grad(losses, x, slopes)
    return losses.detach(), gradient


def _loss_and_gradient_in_one_graph(t):
    """Both passes where torch.compile sees them together and can fuse them."""

    def losses(x):
        return F.cross_entropy(x, t["targets"], reduction="none")

    values, backward = torch.func.vjp(losses, t["x"])
    slopes = t["weights"].to(values.dtype)
    (gradient,) = backward(slopes)
    return values, gradient


CROSS_ENTROPY = Operation(
    name="cross_entropy",
    deals="cross_entropy_and_gradient",
    file="fast_cross_entropy.cu",
    passes=2,
    registers=1,
    row_outputs=2,
    function=ce.loss_and_gradient,
    arguments=("x", "targets", "weights"),
    reference=_loss_and_gradient,
    eager=_loss_and_gradient,
    compiled=_loss_and_gradient_in_one_graph,
)

CROSS_ENTROPY_FORWARD = Operation(
    name="cross_entropy_forward",
    deals="cross_entropy",
    file="fast_cross_entropy.cu",
    passes=1,
    registers=1,
    function=ce.cross_entropy,
    arguments=("x", "targets"),
    reference=_losses,
    eager=_losses,
    compiled=_losses,
    statistics=True,
)

CROSS_ENTROPY_BACKWARD = Operation(
    name="cross_entropy_backward",
    deals="cross_entropy_backward",
    file="fast_cross_entropy.cu",
    passes=2,
    registers=1,
    function=ce.cross_entropy_backward,
    arguments=("x", "targets", "log_sums", "weights"),
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
