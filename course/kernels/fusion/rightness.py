"""Are the fused kernels right? Against float64, with outputs that were full of NaN, in odd sizes.

Each check returns its largest error and raises AssertionError where roundings do not explain it.
"""

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

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


def _all_near(*rows) -> float:
    """The largest error of several results, each as `_near` takes it. If one is wrong, the
    AssertionError has a line for each of them.
    """
    errors, lines = [], []
    for row in rows:
        try:
            errors.append(_near(*row))
            lines.append(f"{row[0]}: ✓ right")
        except AssertionError as mistake:
            lines.append(str(mistake))
    if len(errors) < len(lines):
        raise AssertionError("\n".join(lines))
    return max(errors)


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
    gradients = [
        (name, got[name], gradient, 4 * HALF_STEP)
        for name, gradient in zip(got, wanted, strict=True)
    ]
    return _all_near(
        ("y", y, exact[0], 4 * HALF_STEP), ("hidden", hidden, exact[1], HALF_STEP), *gradients
    )


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


TOKENS, WIDTH, WORDS, AT_A_TIME = 69, 8, 40, 16


class _NewArrays(TorchDispatchMode):
    """Which of the tensors made inside of it is the largest, and the most bytes that are there at
    one time; `torch.empty` is filled with NaN.

    given: tensors from outside, whose views are not new.
    """

    def __init__(self, *given: torch.Tensor) -> None:
        super().__init__()
        self.given = {each.untyped_storage().data_ptr() for each in given}
        self.largest, self.shape = 0, ()
        self.alive, self.most = {}, 0  # bytes of each storage, and the most of all together

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for made in tree_leaves(result):
            if not isinstance(made, torch.Tensor):
                continue
            if "empty" in str(function) and made.is_floating_point():
                made.fill_(torch.nan)
            storage = made.untyped_storage()
            if storage.data_ptr() in self.given:
                continue
            self.alive[StorageWeakRef(storage)] = storage.nbytes()
            if storage.nbytes() > self.largest:
                self.largest, self.shape = storage.nbytes(), tuple(made.shape)
        self.alive = {each: size for each, size in self.alive.items() if not each.expired()}
        self.most = max(self.most, sum(self.alive.values()))
        return result


def tried_loop(loss_and_gradients) -> None:
    """Say whether a loop over chunks gives the loss and both gradients, the largest array that it
    makes, and whether it keeps those of old chunks. Raises nothing.

    loss_and_gradients: of (x, weights, right, chunk), as `linear_cross_entropy` has it.
    """
    x = torch.randn(TOKENS, WIDTH, device=DEVICE)
    weights = torch.randn(WORDS, WIDTH, device=DEVICE)
    right = torch.randint(WORDS, (TOKENS,), device=DEVICE)
    exact = linear_cross_entropy.plain(x, weights, right)
    arrays = _NewArrays(x, weights, right)
    try:
        with arrays:
            got = loss_and_gradients(x, weights, right, AT_A_TIME)
    except (TypeError, ValueError, RuntimeError, LearnerError) as mistake:
        print(f"the loop stops: {mistake}")
        return
    for name, ours, theirs in zip(("loss", "dx", "dweights"), got, exact, strict=True):
        near = torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        print(f"{name}: {'✓ right' if near else 'wrong'}")
    chunk = AT_A_TIME * WORDS * x.element_size()
    results = x.nbytes + weights.nbytes
    allowed = max(chunk, x.nbytes, weights.nbytes)
    shape = " × ".join(map(str, arrays.shape))
    verdict = "✓ no larger than" if arrays.largest <= allowed else "larger than"
    print(f"largest array: {shape}, {verdict} a chunk's logits ({AT_A_TIME} × {WORDS})")
    if arrays.largest <= allowed and arrays.most > results + 4 * chunk:  # there are five chunks
        print("but the chunks' arrays stay in memory together: something keeps those of old chunks")


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
