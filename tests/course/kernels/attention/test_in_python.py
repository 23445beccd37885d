"""Attention in Numba and in Triton: against float64, for short and odd lengths, rows that see no
key and large scores; what numba-cuda's and Triton's compilers make of them without a GPU.
"""

import numpy as np
import pytest
import torch

from course.checking import typing
from course.checking.answers import but
from course.kernels.attention import numba_flash, reference, rightness, triton_flash
from course.kernels.attention.reference import Case
from course.kernels.attention.rungs import ANY, Rung
from course.kernels.tiles import ahead

#: name -> (what runs it, the smallest heads that it takes)
KERNELS = {
    "numba": (Rung(numba_flash.attention, torch.float32, ANY), 4),
    "triton": (Rung(triton_flash.attention, torch.float32, ANY), 16),
    "triton_bf16": (Rung(triton_flash.attention, torch.bfloat16, ANY), 16),
}
EVERY = pytest.mark.nightly("by day some of the lengths")
by_name = pytest.mark.parametrize("name", KERNELS)


def cases(dim, lengths):
    """Squares of these lengths, causal and not, and as many keys more or fewer."""
    for length in lengths:
        yield Case(1, length, dim=dim)
        yield Case(1, length, dim=dim, causal=True)
        yield Case(1, length, 71 - length, dim=dim, causal=True)


@by_name
def test_it_is_right(name):
    rung, dim = KERNELS[name]
    assert 0 < rightness.prove(name, rung, cases(dim, (1, 17, 40, 70)))


@by_name
def test_heads_share_keys_in_groups(name):
    rung, dim = KERNELS[name]
    rightness.prove(name, rung, [Case(2, 9, 20, heads=4, key_heads=2, dim=2 * dim, causal=True)])


@EVERY
@by_name
def test_it_is_right_for_every_length(name):
    rung, dim = KERNELS[name]
    rightness.prove(name, rung, cases(dim, range(1, 71)))


@by_name
def test_queries_that_see_no_key_have_the_result_0(name):
    rung, dim = KERNELS[name]
    q, k, v = reference.inputs(Case(1, 30, 12, dim=dim, causal=True), rung.dtype)
    out, lse = rung.run(q, k, v, True)
    assert not out[:, :18].any()
    assert torch.all(lse[..., :18] == -torch.inf)
    assert torch.isfinite(lse[..., 18:]).all()


@by_name
def test_large_scores_are_no_nan(name):
    rung, dim = KERNELS[name]
    large = [Case(1, 40, dim=dim), Case(1, 33, 50, dim=dim, causal=True)]
    rightness.prove(name, rung, large, spread=rightness.SPREAD)


# ---- what is wrong is told

MISTAKES = {
    "mask": ("i + 1 + keys - queries", "i + 1"),
    "scale": ("scale * product", "product"),
    "old sum": ("total * factor + weight", "total + weight"),
    "group": ("head * k.shape[2] // q.shape[2]", "head % k.shape[2]"),
    "sign of lse": ("largest + math.log(total)", "largest - math.log(total)"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_changed_kernel_is_told(mistake):
    wrong = but(numba_flash.flash_batch, MISTAKES[mistake])

    def run(*given, **more):
        return numba_flash.attention(*given, kernel=wrong, **more)

    case = Case(1, 9, 20, heads=4, key_heads=2, dim=8, causal=True)
    with pytest.raises(AssertionError, match="numba is wrong"):
        rightness.prove("numba", Rung(run, torch.float32, ANY), [case])


def test_what_does_not_fit_is_refused():
    def some(*shape, dtype=torch.float32):
        return torch.zeros(shape, dtype=dtype, device=reference.DEVICE)

    fits = some(1, 8, 2, 16)
    for words, run, given in (
        ("must be float32", numba_flash.attention, [fits.bfloat16()] * 3),
        ("up to 128", numba_flash.attention, [some(1, 8, 2, 256)] * 3),
        ("do not fit", numba_flash.attention, [some(1, 8, 3, 16), fits, fits]),
        ("do not fit", triton_flash.attention, [fits, some(1, 8, 2, 32), fits]),
        ("not 24", triton_flash.attention, [some(1, 8, 2, 24)] * 3),
        ("contiguous", triton_flash.attention, [fits.mT.contiguous().mT, fits, fits]),
    ):
        with pytest.raises(ValueError, match=words):
            run(*given)


# ---- compiled


def test_numba_cuda_takes_the_kernel():
    rows = np.zeros((1, 4, 2, 8), np.float32)
    given = {"out": rows, "lse": np.zeros((1, 2, 4), np.float32), "q": rows, "k": rows, "v": rows}
    given |= {"scale": np.float32(1), "causal": True}
    assert typing.refused(numba_flash.flash_batch, given, True) is None
    unknown = but(numba_flash.flash_batch, ("LOWEST, float32(0)", "LOWEST, nowhere"))
    assert typing.refused(unknown, given, True)


@pytest.mark.nightly("by day the interpreter runs it")
def test_triton_compiles_the_kernel_for_tensor_cores_without_spills():
    rows = "*bf16"
    arguments = {"out": rows, "lse": "*fp32", "q": rows, "k": rows, "v": rows}
    arguments |= dict.fromkeys(("queries", "keys", "heads", "key_heads"), "i32")
    arguments |= {"scale": "fp32", "CAUSAL": True, "DIM": 128}
    tile = dict(triton_flash.TILE)
    options = {name: tile.pop(name) for name in ("num_warps", "num_stages")}
    names = {80: "mma.sync", 90: "wgmma.mma_async"}
    file = triton_flash.__file__
    made = ahead.compile_for(file, "flash", arguments | tile, cc=names, **options)
    for cc, name in names.items():
        assert made[cc].count(name)
        assert not made[cc].count(r"\.local\.")
