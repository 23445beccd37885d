"""One product for any size and type: c = a b, on Hopper.

    multiply(c, a, b)  # matrices, or batches of them

A model chooses how (`choosing`). Where rows do not begin at multiples of 16 bytes, as the copy
engine wants it, they are copied with zeros behind them first.
"""

from collections.abc import Callable

import torch

from course.kernels.matmul import choosing
from course.kernels.matmul.forms import RESULTS, TYPES, Choice, Problem, batched, launch

#: The smallest number of bytes from which on the copy engine finds rows
ALIGNED = 16
#: In which b lies along k, as wgmma takes it
ALONG_K = "tf32", "fp8"


def is_along_k(b: torch.Tensor) -> bool:
    """Whether a (.., k, n) tensor is a view of one that is stored as (.., n, k)."""
    return b.stride(-2) == 1 and b.stride(-1) != 1


def kind_of(dtype: torch.dtype) -> str | None:
    """Of numbers: float32 is multiplied as TF32 where torch would do so, too."""
    if dtype == torch.float32:
        return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "fp32"
    kinds = [kind for kind, known in TYPES.items() if known == dtype]
    return kinds[0] if kinds else None


def problem_of(c, a, b) -> Problem:
    """What is asked; raises ValueError where sizes or types do not fit."""
    kind = kind_of(a.dtype)
    if kind is None or b.dtype != a.dtype or c.dtype != RESULTS[kind]:
        raise ValueError(f"no product of {a.dtype} and {b.dtype} to {c.dtype}")
    a, b, c = batched(a), batched(b), batched(c)
    batch, m, k = a.shape
    n = b.shape[-1]
    if b.shape != (batch, k, n) or c.shape != (batch, m, n):
        raise ValueError(f"{tuple(a.shape)} times {tuple(b.shape)} to {tuple(c.shape)}")
    along_k = kind in ALONG_K or kind != "fp32" and is_along_k(b)
    return Problem(kind, m, n, k, batch, along_k)


def padded(matrices: torch.Tensor) -> torch.Tensor:
    """Contiguous, with rows that begin at multiples of 16 bytes: zeros are added to them."""
    over = -matrices.shape[-1] % (ALIGNED // matrices.element_size())
    if over:
        bits = matrices.view(torch.uint8) if matrices.element_size() == 1 else matrices
        return torch.nn.functional.pad(bits, (0, over)).view(matrices.dtype)
    matrices = matrices.contiguous()
    return matrices.clone() if matrices.data_ptr() % ALIGNED else matrices


def prepared(
    c, a, b, scales=(None, None), choice: Choice | None = None
) -> tuple[Choice, Callable[[], None]]:
    """(How, what starts it): copies and tensor maps are made here, once.

    choice: instead of the model's.
    """
    problem = problem_of(c, a, b)
    choice = choice or choosing.best(problem)
    if problem.along_k:
        b = b.transpose(-1, -2)
    if not c.is_contiguous():
        raise ValueError("c is not contiguous")
    ready = torch.Tensor.contiguous if problem.kind == "fp32" else padded
    return choice, launch(choice, problem, c, ready(a), ready(b), scales)


def multiply(c, a, b, scales=(None, None), choice: Choice | None = None) -> None:
    """c = a b: (.., m, k) times (.., k, n), of float32, bf16, fp16, or e4m3 to bf16.

    float32 is multiplied as TF32 where torch.backends.cuda.matmul.allow_tf32 says so. b may be a
    transposed view, as x.T; of TF32 and e4m3 it is copied to one where it is not, of float32 the
    other way round.
    scales: of e4m3, float32 factors for each row of a and each column of b. choice: instead of the
    model's.
    """
    _, start = prepared(c, a, b, scales, choice)
    start()
