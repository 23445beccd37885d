"""The language model's kernels as a learner left them: right or not, and what is said then."""

from pathlib import Path

import numpy as np
import torch

from course.kernels import trying
from course.kernels.language_model import (
    megakernel,
    network,
    plain,
    problem,
    reference,
    rightness,
    speak,
    train,
)
from course.kernels.language_model.network import KERNELS, Network
from course.kernels.language_model.problem import TOY, Config
from course.kernels.language_model.quantized import MATRICES
from utils import cuda_c, has_gpu
from utils.tools import yours
from utils.tools.diagnostics import LearnerError

ROWS, WIDTH = 5, 33  # of a kernel that is tried: no tile, no multiple
LISTENS = 256  # tokens of a text at most, on which a loss is measured


# ---- training's kernels


@yours.cache
def layers():
    """Training's kernels between the products."""
    return cuda_c.load(KERNELS / "train_layers.cu")


def tried(name: str) -> None:
    """Print whether a kernel of train_layers.cu is right as it stands: rms_norm, gate or loss."""
    rng = torch.Generator().manual_seed(1)
    x = torch.randn(ROWS, 2 * WIDTH, generator=rng).to(speak.DEVICE)
    compute, exact = CASES[name](x)
    trying.tried(compute, exact, layers)


def _launch(name: str, threads: int, *arguments) -> None:
    flat = (a.reshape(-1) if isinstance(a, torch.Tensor) else a for a in arguments)
    getattr(layers(), name)[-(-threads // 32), 32](*flat)


def _rms_norm(x):
    weight = x[0].clone()
    y, root = torch.full_like(x, torch.nan), torch.empty(len(x), device=x.device)

    def compute():
        _launch("rms_norm", len(x), y, root, x, weight, *x.shape, 1e-5)
        return y

    return compute, reference.norm(x.double(), weight.double(), 1e-5)


def _gate(x):
    y = torch.full((ROWS, WIDTH), torch.nan, device=x.device)

    def compute():
        _launch("gate", y.numel(), y, x, ROWS, WIDTH)
        return y

    gates, ups = x.double().chunk(2, -1)
    return compute, torch.nn.functional.silu(gates) * ups


def _loss(x):
    following = (torch.arange(ROWS) * 7 % x.shape[1]).int().to(x.device)
    both = torch.full((ROWS, x.shape[1] + 1), torch.nan, device=x.device)

    def compute():
        logits, losses = x.clone(), torch.empty(ROWS, device=x.device)
        _launch("loss", ROWS, losses, logits, following, *x.shape)
        both[:, 0], both[:, 1:] = losses, logits
        return both

    exact = x.double().requires_grad_()
    losses = torch.nn.functional.cross_entropy(exact, following.long(), reduction="none")
    (slope,) = torch.autograd.grad(losses.mean(), exact)
    return compute, torch.cat([losses.detach()[:, None], slope], 1)


CASES = {"rms_norm": _rms_norm, "gate": _gate, "loss": _loss}


def gradients() -> None:
    """Print how far the kernels' loss and gradients are from PyTorch's, which are in float64."""
    network.compiled.cache_clear()
    generator = torch.Generator().manual_seed(2)
    rows = torch.randint(TOY.vocabulary, (2, 41), generator=generator, dtype=torch.int32)
    rows = rows.to(speak.DEVICE)
    own = problem.weights(TOY, 2, device=speak.DEVICE)
    errors = train.gradient_errors(TOY, own, rows[:, :-1], rows[:, 1:])
    for name, error in errors.items():
        print(f"{name:10} {'✓' if error < train.MOST else '✗ wrong'}  off by {error:.0e}")


def pupil(numbers, config: Config, batch: int, length: int) -> tuple:
    """(a network with the kernels as they stand, the text as lessons for it)."""
    network.compiled.cache_clear()
    own = train.begun(config, speak.DEVICE)
    return Network(config, own, batch, length), train.Lessons(numbers, batch, length, speak.DEVICE)


# ---- what the model says


def logits_after(model, begins: str) -> torch.Tensor:
    """Of each token that may come next, on the CPU."""
    config, weights, known = model
    tokens = torch.tensor([known.encode(begins)], device=speak.DEVICE)
    return reference.forward(config, weights, tokens)[0, -1].cpu()


def loss_turned(model, words: str, file: str | Path) -> None:
    """Print the loss on a text where a learner's kernel turns queries and keys, and PyTorch's."""
    config = model[0]
    kernel = cuda_c.load(file).turn

    def turned(x, angle):
        batch, rows, heads, size = x.shape
        out = torch.full_like(x, torch.nan)
        position = torch.arange(rows, dtype=torch.int32, device=x.device).repeat(batch)
        arrays = map(network.flat, (out, x.contiguous(), position))
        kernel[(batch * rows, heads), 32](*arrays, size, config.theta)
        return out

    ours = reference.turned
    reference.turned = turned
    try:
        yours = loss_on(model, words)
    finally:
        reference.turned = ours
    print(f"loss with your turns: {yours:.3f}, with PyTorch's: {loss_on(model, words):.3f}")


def drawn(kernel, model, begins: str, p: float = 0.9, seed: int = 0) -> str:
    """What the model says where a learner's Numba kernel cuts the probabilities off."""
    known = model[2]
    row = known.encode(begins)
    step = speak.in_pytorch(model, len(row) + 30)
    chance = np.random.default_rng(seed)
    for position in range(len(row) + 29):
        logits = step(row[position], position)
        if position + 1 < len(row):
            continue
        chances, order = (logits / 0.6).softmax(-1).cpu().float().sort(descending=True)
        left = np.zeros((1, len(order)), np.float32)
        kernel[1, 32](left, chances.numpy()[None], p)
        if not abs(left.sum() - 1) < 1e-3:
            return f"what was kept sums to {left.sum():.3f}, and not to 1"
        place = np.searchsorted(left[0].cumsum(), chance.random() * left.sum(), "right")
        row.append(int(order[min(place, len(order) - 1)]))
    return known.decode(row)


def decoded(model, begins: str, count: int = 12) -> None:
    """Print what the kernels of plain.cu say greedily, and whether PyTorch says the same."""
    plain.module.cache_clear()
    greedy = speak.Sampling(temperature=0)
    try:
        ours = speak.speak(model, begins, count, greedy, stepper=speak.by_kernels)
    except LearnerError as mistake:
        print(trying.first_of(str(mistake)))
        return
    finally:
        plain.module.cache_clear()
    theirs = speak.speak(model, begins, count, greedy)
    print("kernels:", ours)
    print("✓ PyTorch says the same" if ours == theirs else f"PyTorch: {theirs}")


def drawn_first(kernel, rounds: int, seed: int = 0) -> None:
    """Print how often each token comes first if a draft guesses and this kernel decides.

    The draft's distribution and the model's are the same in all rounds, and far apart.
    """
    rng = np.random.default_rng(seed)
    p = np.array([0.4, 0.3, 0.2, 0.1])
    q = np.array([0.1, 0.3, 0.1, 0.5])
    guess = rng.choice(4, (rounds, 1), p=q).astype(np.int32)
    u = rng.random((rounds, 2)).astype(np.float32)
    out = np.zeros((rounds, 2), np.int32)
    whole = np.tile(p.astype(np.float32), (rounds, 2, 1))
    drafts = np.tile(q.astype(np.float32), (rounds, 1, 1))
    kernel[-(-rounds // 64), 64](out, whole, drafts, guess, u)
    first = np.where(out[:, 0] > 0, guess[:, 0], out[:, 1])
    for token, (wanted, drafted) in enumerate(zip(p, q, strict=True)):
        share = (first == token).mean()
        print(f"token {token}: the draft {drafted:.0%}, the model {wanted:.0%}, came {share:.1%}")


# ---- the megakernel


def mega(steps: int = 3) -> None:
    """Print whether the megakernel as it stands decodes a toy as float64 does."""
    if has_gpu() and not megakernel.NEEDS.met():
        print(
            f"the megakernel needs {megakernel.NEEDS.words}, or no GPU at all: then the CPU runs it"
        )
        return
    megakernel.module.cache_clear()
    try:
        error = rightness.error_of(megakernel.Megakernel, TOY, torch.bfloat16, batch=1, steps=steps)
    except LearnerError as mistake:
        print(trying.first_of(str(mistake)))
    except AssertionError as mistake:
        print(f"wrong: {mistake}")
    else:
        sign = "✓ right" if error <= 1 else "wrong"
        print(f"{sign}: {steps} tokens, logits off by {error:.2g} of what roundings explain")
    finally:
        megakernel.module.cache_clear()


# ---- fewer bits


def in_bits(weights: dict, bits: int, group: int) -> dict:
    """Matrices rounded to whole numbers of so many bits, with a scale for each `group` of a row."""
    return {
        name: _in_bits(weight, bits, group) if name in MATRICES else weight
        for name, weight in weights.items()
    }


def _in_bits(weight, bits: int, group: int):
    most = 2 ** (bits - 1) - 1
    parts = weight.split(group, -1)
    scales = [part.abs().amax(-1, keepdim=True).clamp(min=1e-12) / most for part in parts]
    pairs = zip(parts, scales, strict=True)
    return torch.cat([(part / scale).round() * scale for part, scale in pairs], -1)


def loss_on(model, words: str, weights: dict | None = None) -> float:
    """The mean loss on a text's first 256 tokens, in nats per token."""
    config, own, known = model
    row = torch.tensor([known.encode(words)[:LISTENS]], device=speak.DEVICE)
    logits = reference.forward(config, weights or own, row[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits[0], row[0, 1:])
    return loss.item()
