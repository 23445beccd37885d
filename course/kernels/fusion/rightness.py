"""Are the fused kernels right? Against float64, with outputs that were full of NaN, in odd sizes.

Each check returns its largest error and raises AssertionError where roundings do not explain it.
"""

import torch

from course.kernels.fusion import adamw, block, linear_cross_entropy
from utils import has_gpu
from utils.tools.diagnostics import LearnerError

DEVICE = "cuda" if has_gpu() else "cpu"
HALF_STEP = 2**-8  # of bfloat16, at 1
TENSORS = ((3, 7), (2048,), (5000,), (1,), (33, 65))


def _near(
    name: str,
    got: torch.Tensor,
    exact: torch.Tensor,
    most: float,
) -> float:
    """The largest error, as a share of the largest value."""
    largest = exact.abs().max().clamp(min=1e-30)
    error = (got.double() - exact).abs().max() / largest
    assert error <= most, f"{name}: error {error:.2g}, at most {most:.2g} is rounding"
    return error.item()


# ---- AdamW


def check_adamw(
    shape: adamw.Shape = adamw.FASTEST,
    kind=torch.float32,
    steps: int = 3,
) -> float:
    """Against PyTorch's optimizer in float64, clipped to a norm of 1, over odd tensors."""
    weights = [torch.randn(size, device=DEVICE) for size in TENSORS]
    gradients = [torch.randn_like(w).to(kind) for w in weights]
    copies = [torch.full_like(w, torch.nan, dtype=torch.bfloat16) for w in weights]
    exact = [w.double().requires_grad_() for w in weights]
    theirs = torch.optim.AdamW(exact, lr=1e-2, weight_decay=0.1)
    ours = adamw.AdamW(
        weights,
        gradients,
        copies,
        rate=1e-2,
        decay=0.1,
        most=1.0,
        shape=shape,
    )
    for _ in range(steps):
        for weight, gradient in zip(exact, gradients, strict=True):
            weight.grad = gradient.double()
        norm = torch.nn.utils.clip_grad_norm_(exact, 1.0)
        theirs.step()
        ours.step()
    _near("norm", ours.norm_and_factor[:1], norm.reshape(1), 1e-5)
    for weight, copy in zip(weights, copies, strict=True):
        assert torch.equal(copy, weight.bfloat16()), "the copy is not the rounded weights"
    # together: a single number may be close to 0, and then any rounding is a large share of it
    return _near("adamw", _in_a_row(weights), _in_a_row(exact), 1e-5)


def _in_a_row(tensors) -> torch.Tensor:
    return torch.cat([each.detach().flatten() for each in tensors])


# ---- the block


def check_block(forward: block.Shape | None = None, backward: block.Shape | None = None) -> float:
    """Both passes, against float64 and autograd, for rows that fill no block."""
    small = block.Shape(64, 1, 1)
    shapes = (forward or small, backward or small)
    sizes = [(5, 104), (3, 1024)]
    if has_gpu():
        sizes.append((2111, 4096))
    return max(_check_block(*size, *shapes) for size in sizes)


def _check_block(
    rows: int,
    columns: int,
    first: block.Shape,
    second: block.Shape,
) -> float:
    def normal(*size: int) -> torch.Tensor:
        return torch.randn(size, device=DEVICE, dtype=torch.bfloat16)

    x, residual, dy, dout = (normal(rows, columns) for _ in range(4))
    bias, gamma, beta = (normal(columns) for _ in range(3))
    given = (x, residual, bias, gamma, beta)
    seed = int(torch.randint(1 << 40, ()))
    y, hidden, saved = block.forward(*given, 0.25, seed, first)
    factors = block.kept(rows, columns, saved.seed, saved.threshold, DEVICE)
    leaves = [each.double().requires_grad_() for each in given]
    exact = block.reference(*leaves, factors)
    slopes = [dy.double(), dout.double()]
    wanted = torch.autograd.grad(exact, leaves, slopes)
    dx, dresidual, dgamma, dbeta, dbias = block.backward(dy, dout, saved, bias, gamma, second)
    got = {
        "dx": dx,
        "dresidual": dresidual,
        "dbias": dbias,
        "dgamma": dgamma,
        "dbeta": dbeta,
    }
    errors = [
        _near("y", y, exact[0], 4 * HALF_STEP),
        _near("hidden", hidden, exact[1], HALF_STEP),
    ]
    for name, gradient in zip(got, wanted, strict=True):
        errors.append(_near(name, got[name], gradient, 4 * HALF_STEP))
    return max(errors)


# ---- the loss


def check_linear_cross_entropy(chunk: int = 8) -> float:
    """Loss and gradients against float64, in chunks that do not divide the tokens."""
    x = torch.randn(21, 24, device=DEVICE)
    weights = torch.randn(40, 24, device=DEVICE)
    targets = torch.randint(40, (21,), device=DEVICE)
    targets[3] = linear_cross_entropy.IGNORED
    got = linear_cross_entropy.loss_and_gradients(x, weights, targets, chunk)
    leaves = [each.double().requires_grad_() for each in (x, weights)]
    logits = leaves[0] @ leaves[1].T
    loss = torch.nn.functional.cross_entropy(logits, targets)
    exact = (loss, *torch.autograd.grad(loss, leaves))
    names = ("loss", "dx", "dweights")
    return max(_near(*row, 1e-5) for row in zip(names, got, exact, strict=True))


CHECKS = {
    "linear_cross_entropy": check_linear_cross_entropy,
    "adamw": check_adamw,
    "adamw, bfloat16 gradients": lambda: check_adamw(kind=torch.bfloat16),
    "block": check_block,
}


def tried(check, **how) -> None:
    """Say whether a kernel is right as it stands now. check: one of this module. Raises nothing."""
    try:
        error = check(**how)
    except (AssertionError, LearnerError) as mistake:
        print(mistake)
    else:
        print(f"✓ right: the largest error is {error:.1e} of the largest value")
