"""Are the backward rungs right? Against float64, into gradients that were full of NaN."""

from functools import partial

import torch

from course.kernels.attention import backward_hopper, reference, rightness
from course.kernels.attention.backward import Saved
from course.kernels.attention.backward_rungs import BACKWARD, Rung
from course.kernels.attention.hopper import spans
from course.kernels.attention.reference import Case
from course.kernels.attention.rightness import (
    HALF_STEP,
    IN_FLOAT32,
    KEY_STARTS,
    QUERY_STARTS,
    together,
)


def saved_of(case: Case, dtype: torch.dtype, *, spread: float = 1.0, packed: bool = False):
    """(what a forward pass of a case saves, the gradient of its result), of random inputs.

    spread: of q. packed: q, k and v are parts of one tensor.
    """
    q, k, v = reference.inputs(case, dtype, spread=spread, seed=case.queries)
    dout, _, _ = reference.inputs(case, dtype, seed=case.queries + 1)
    if packed:
        q, k, v = together(q, k, v)
    out, lse = reference.attention(q, k, v, case.causal)
    return Saved(q, k, v, out.to(dtype), lse.float(), case.causal), dout


def error_of(rung: Rung, case: Case, **more) -> float:
    """The largest error of a rung, as a share of what roundings explain: at most 1 where right."""
    saved, dout = saved_of(case, rung.dtype, **more)
    gradients = tuple(torch.full_like(tensor, torch.nan) for tensor in saved.given)
    rung.run(saved, dout, gradients=gradients)
    return error_in(gradients, saved, dout)


def error_in(gradients: tuple, saved: Saved, dout: torch.Tensor) -> float:
    """The largest error of gradients, as a share of what roundings explain."""
    exact = reference.gradients(*saved.given, dout, saved.causal)
    errors = []
    for mine, theirs, bound in zip(
        gradients, (exact.dq, exact.dk, exact.dv), bounds(exact, saved), strict=True
    ):
        assert not mine.isnan().any(), "a gradient was not written, or is not a number"
        errors.append(((mine.double() - theirs).abs() / bound).max().item())
    return max(errors)


def bounds(exact: reference.Gradients, saved: Saved) -> list[torch.Tensor]:
    """What roundings explain of each number of dq, dk and dv.

    A weight's error is a share of it: of its score in float32, of one rounding where it is a
    factor of 16 bits. A change's error: of its weight, of its own rounding, and of out's rounding,
    which delta sums up. Below the normal numbers steps no longer shrink. Errors add up as
    magnitudes do.
    """
    half = HALF_STEP[saved.q.dtype]
    numbers = torch.finfo(saved.q.dtype)
    least = numbers.smallest_normal * numbers.eps / 2
    in_weight = IN_FLOAT32 * (1 + reference.largest_score(saved.q, saved.k))
    dout, out = exact.dout.abs(), exact.out.abs()
    in_dp = IN_FLOAT32 * dout @ exact.v.abs().mT
    in_delta = (half + IN_FLOAT32) * (dout * out).sum(-1, keepdim=True)
    in_ds = (half + in_weight) * exact.ds.abs() + exact.weights * (in_dp + in_delta) + least
    in_factor = (half + in_weight) * exact.weights + least
    scale = saved.q.shape[-1] ** -0.5
    key_heads = saved.k.shape[2]
    of_dq = (scale * in_ds @ exact.k.abs()).transpose(1, 2)
    of_dk = reference.over_groups(scale * in_ds.mT @ exact.q.abs(), key_heads)
    of_dv = reference.over_groups(in_factor.mT @ dout, key_heads)
    both = zip((of_dq, of_dk, of_dv), (exact.dq, exact.dk, exact.dv), strict=True)
    return [1.5 * of_sum + half * value.abs() + 2**-30 for of_sum, value in both]


#: As those of `rightness`, of gradients
prove = partial(rightness.prove, error_of=error_of)
check = partial(rightness.check, rungs=BACKWARD, error_of=error_of)


def check_packed(causal: bool = True) -> float:
    """The largest error of packed sequences of unlike lengths; AssertionError where it is wrong."""
    q, _, _ = reference.inputs(Case(1, QUERY_STARTS[-1], heads=4, dim=64))
    _, k, v = reference.inputs(Case(1, KEY_STARTS[-1], heads=2, dim=64), seed=1)
    dout, _, _ = reference.inputs(Case(1, QUERY_STARTS[-1], heads=4, dim=64), seed=2)
    out = torch.zeros_like(q)
    lse = torch.full((1, q.shape[2], q.shape[1]), torch.nan, device=q.device)
    starts = zip(*(spans(each) for each in (QUERY_STARTS, KEY_STARTS)), strict=True)
    parts = [(slice(*mine), slice(*theirs)) for mine, theirs in starts]
    full = [(m, t) for m, t in parts if m.start < m.stop and t.start < t.stop]
    for mine, theirs in full:
        exact, exact_lse = reference.attention(q[:, mine], k[:, theirs], v[:, theirs], causal)
        out[:, mine] = exact.to(out.dtype)
        lse[:, :, mine] = exact_lse.float()
    saved = Saved(q[0], k[0], v[0], out[0], lse[0], causal)
    packed = backward_hopper.Packed(saved, dout[0], QUERY_STARTS, KEY_STARTS)
    dq, dk, dv = (x[None] for x in packed.run())
    worst = 0.0
    for mine, theirs in parts:
        if (mine, theirs) not in full:
            for gradient in (dq[:, mine], dk[:, theirs], dv[:, theirs]):
                assert not gradient.any(), "who meets nobody has no gradient"
            continue
        own = Saved(q[:, mine], k[:, theirs], v[:, theirs], out[:, mine], lse[:, :, mine], causal)
        error = error_in((dq[:, mine], dk[:, theirs], dv[:, theirs]), own, dout[:, mine])
        assert error <= 1, f"queries {mine}: {error:.3g} times what roundings explain"
        worst = max(worst, error)
    return worst
