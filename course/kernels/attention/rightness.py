"""Are the rungs right? Against float64, into results that were full of NaN, in odd lengths."""

import torch

from course.kernels.attention import hopper, reference
from course.kernels.attention.reference import Case
from course.kernels.attention.rungs import RUNGS, Rung

#: Half a step between neighbours at 1: the most by which one rounding changes a number
HALF_STEP = {torch.float32: 2**-24, torch.float16: 2**-11, torch.bfloat16: 2**-8}
#: What float32 adds: a score's error is a share of the score, a weight's error is a score's
IN_FLOAT32 = 2**-20

#: More queries than keys, so that some see none; fewer; groups of heads; one of each
CASES = (
    Case(2, 130, 70, heads=4, key_heads=2, dim=64, causal=True),
    Case(1, 37, 200, heads=2, key_heads=1, causal=True),
    Case(1, 257, 257, heads=1),
    Case(3, 1, 1, heads=2, dim=64),
)


def error_of(rung: Rung, case: Case, *, spread: float = 1.0, packed: bool = False) -> float:
    """The largest error of a rung, as a share of what roundings explain: at most 1 where right.

    spread: of q. packed: q, k and v are parts of one tensor, so that their rows lie apart.
    """
    q, k, v = reference.inputs(case, rung.dtype, spread=spread, seed=case.queries)
    if packed:
        q, k, v = together(q, k, v)
    out = torch.full(case.shape_of_queries, torch.nan, dtype=rung.dtype, device=q.device)
    lse = torch.full((case.batch, case.heads, case.queries), torch.nan, device=q.device)
    rung.run(q, k, v, case.causal, out=out, lse=lse)
    return error_in(out, lse, q, k, v, case.causal)


def error_in(out, lse, q, k, v, causal: bool) -> float:
    """The largest error of results, as a share of what roundings explain."""
    exact, exact_lse = reference.attention(q, k, v, causal)
    # |out| would be this if nothing cancelled: roundings of weights are shares of it
    without_signs, _ = reference.attention(q, k, v.abs(), causal)
    largest = 1 + reference.largest_score(q, k)
    share = 3 * HALF_STEP[out.dtype] + IN_FLOAT32 * largest
    bound = share * without_signs + 2**-30
    error = ((out.double() - exact).abs() / bound).max()
    sees = exact_lse > -torch.inf
    apart = torch.where(sees, lse - exact_lse, 0) / (IN_FLOAT32 * largest)
    where_none = torch.where(sees, 0, lse == -torch.inf)
    assert torch.all(sees | where_none.bool()), "a query that sees no key has the sum 0"
    return torch.maximum(error, apart.abs().max()).item()


def together(q, k, v) -> tuple:
    """The same numbers in one tensor [batch, length, all heads, dim], as many models have them."""
    if q.shape[1] != k.shape[1]:
        raise ValueError("queries and keys of one tensor have one length")
    return torch.cat([q, k, v], 2).split([x.shape[2] for x in (q, k, v)], 2)


def prove(name: str, rung, cases=CASES, error_of=error_of, **more) -> float:
    """The largest error over some cases; AssertionError where roundings do not explain it.

    error_of(rung, case, **more): a rung's error in a case, as a share of what roundings explain.
    """
    worst = 0.0
    for case in cases:
        error = error_of(rung, case, **more)
        assert error <= 1, f"{name} is wrong: {error:.3g} times what roundings explain, {case}"
        worst = max(worst, error)
    return worst


#: A length of which q, k and v lie in one tensor; scores of ±10,000
PACKED = (Case(2, 97, heads=4, key_heads=2, causal=True),)
LARGE = (Case(1, 150, 150, heads=1, dim=64), Case(1, 64, 90, heads=1, dim=64, causal=True))
SPREAD = 3000.0


def check(name: str, rungs=RUNGS, error_of=error_of) -> float:
    """The largest error of one of some rungs: odd lengths, one tensor, large scores."""
    rung = rungs[name]
    errors = [
        prove(name, rung, CASES, error_of),
        prove(name, rung, PACKED, error_of, packed=True),
        prove(name, rung, LARGE, error_of, spread=SPREAD),
    ]
    return max(errors)


#: Where packed sequences begin: some without queries, without keys, of one row, with more queries
QUERY_STARTS = (0, 70, 70, 200, 201, 260, 530)
KEY_STARTS = (0, 70, 90, 210, 215, 215, 300)


def check_packed(causal: bool = True) -> float:
    """The largest error of packed sequences of unlike lengths; AssertionError where it is wrong."""
    q, _, _ = reference.inputs(Case(1, QUERY_STARTS[-1], heads=4, dim=64))
    _, k, v = reference.inputs(Case(1, KEY_STARTS[-1], heads=2, dim=64), seed=1)
    starts = QUERY_STARTS, KEY_STARTS
    out, lse = hopper.Packed(q[0], k[0], v[0], *starts, causal).run()
    worst = 0.0
    spans = zip(*(hopper.spans(each) for each in starts), strict=True)
    for number, (mine, theirs) in enumerate(spans):
        rows = slice(*mine)
        keys = slice(*theirs)
        if theirs[0] == theirs[1]:
            assert not out[rows].any(), "a sequence without keys has the result zero"
        elif mine[0] < mine[1]:
            given = [q[:, rows], k[:, keys], v[:, keys]]
            error = error_in(out[None, rows], lse[None, :, rows], *given, causal)
            assert error <= 1, f"sequence {number}: {error:.3g} times what roundings explain"
            worst = max(worst, error)
    return worst
