"""Matmul at any size: every form is right for ragged shapes, in every type and layout, whole and
streamed; a model chooses among all, and compilers find nothing to say.
"""

import dataclasses
import random

import pytest
import torch

from course.kernels.matmul import any_size, choosing, fitting, forms, grid_told, grid_tune
from course.kernels.matmul.forms import Choice, Form, Problem
from course.kernels.matmul.grid_race import Operands
from course.kernels.matmul.grid_shapes import TUNING, GridShape, drawn
from tests import recorded
from tests.compiling import needs_nvcc, sass, unspilled
from tests.needs import without_gpu
from utils import cuda_c

KINDS = tuple(forms.TYPES)
HOPPERS = without_gpu("the grid's bench checks them on the GPU")
H100_SMS = 132


@pytest.fixture
def h100(monkeypatch):
    """As many SMs as an H100 has, for what is only computed."""
    monkeypatch.setattr(forms, "CPU_SMS", H100_SMS)
    monkeypatch.setattr(choosing, "CPU_SMS", H100_SMS)


def by(form, kind: str, shape: GridShape, clusters=0, whole=0, cuts=0) -> None:
    """Prove a form with its blocks in this number."""
    given = Operands(kind, shape)
    given.ours(Choice(form, clusters, whole, cuts))
    given.prove()


# ---- the kernels

SHARED = Form(64, 64, 1, 2, split=2)
SMALL = Form(64, 64, 1, 2)


@HOPPERS
def test_blocks_that_share_k_are_right():
    """Ragged, a batch, and a block with fewer steps than the other."""
    with cuda_c.checked():
        by(SHARED, "bf16", GridShape(70, 72, 200, batch=2))


NIGHTLY = [
    ("bf16", Form(128, 256, 2, 4, 2), GridShape(300, 328, 520), (2, 4)),
    ("bf16", Form(128, 256, 2, 4, 2), GridShape(100, 250, 520), (2, 0, 2)),
    ("bf16", Form(256, 128, 2, 3, 2), GridShape(300, 136, 200, batch=2), (2, 4)),
    ("bf16", Form(128, 192, 2, 4), GridShape(130, 264, 330, linear=True), (4, 4)),
    ("bf16", Form(128, 192, 2, 4, 2), GridShape(130, 264, 330), (2, 2)),
    ("bf16", Form(128, 128, 2, 3, 2, turns=True), GridShape(300, 264, 330, batch=2), (2, 12)),
    ("bf16", Form(128, 192, 2, 3, 2, turns=True), GridShape(300, 264, 330), (2, 3, 2)),
    ("fp16", Form(128, 128, 1, 3, 1, 2), GridShape(130, 131, 520, batch=2), (8, 4, 2)),
    ("tf32", Form(128, 256, 2, 3, 2), GridShape(140, 260, 100), (2, 2)),
    ("fp8", Form(128, 128, 2, 3, turns=True), GridShape(130, 264, 400), (4, 4, 2)),
    ("fp32", choosing.FLOAT32[-1], GridShape(70, 37, 100, batch=2), (4, 3)),
    ("fp32", choosing.FLOAT32[-1], GridShape(70, 44, 100, batch=2), (4, 3)),
]


@pytest.mark.nightly("by day blocks that share k are checked")
@HOPPERS
@pytest.mark.parametrize("kind, form, shape, launch", NIGHTLY, ids=str)
def test_blocks_that_stay_are_right(kind, form, shape, launch):
    """launch: clusters, tiles that come whole, and parts of each other tile."""
    with cuda_c.checked():
        by(form, kind, shape, *launch)


@pytest.mark.nightly("by day one form of one type is checked")
@HOPPERS
@pytest.mark.parametrize("kind", KINDS)
def test_every_way_to_cut_is_right(kind):
    """All that may be launched of a small form, of which each cuts tiles in another way."""
    form = choosing.FLOAT32[-1] if kind == "fp32" else SMALL
    assert grid_tune.error_of(kind, form, GridShape(130, 72, 520)) < 0.1


@pytest.mark.nightly("it runs 300 products")
@HOPPERS
def test_random_shapes_are_right():
    """The function itself, with what the model chooses; sides of all kinds, also of one."""
    draw = random.Random(0)
    for _ in range(300):
        sides = [draw.choice((draw.randint(1, 40), draw.randint(1, 200))) for _ in "mnk"]
        shape = GridShape(*sides, batch=draw.choice((1, 1, 3)), linear=draw.random() < 0.5)
        given = Operands(draw.choice(("bf16", "tf32", "fp8", "fp32")), shape)
        given.ours()
        given.prove()


@pytest.mark.nightly("by day nothing is built for it")
@HOPPERS
def test_sums_that_stay_where_they_were_are_found(tmp_path, monkeypatch):
    """A block that takes over nothing from the next leaves a wrong product, and is found."""
    for path in forms.KERNELS.glob("*.cuh"):
        (tmp_path / path.name).write_text(path.read_text())
    text = (forms.KERNELS / "any.cu").read_text()
    wrong = text.replace("d[i / SUMS][i % SUMS] += __ldcg(from + i * 128);", "(void)from;")
    assert wrong != text
    (tmp_path / "any.cu").write_text(wrong)
    monkeypatch.setattr(forms, "KERNELS", tmp_path)
    with pytest.raises(AssertionError, match="at most .* is rounding"):
        by(Form(64, 128, 1, 2), "bf16", GridShape(64, 128, 520), 2, 0, 2)


# ---- compilers

REGISTERS = [
    ("any.cu", Form(64, 64, 1, 4, 1, 3), "bf16"),
    ("any.cu", Form(128, 256, 2, 4, 2), "tf32"),
    ("any.cu", Form(128, 192, 2, 5, 2), "fp8"),
    ("any.cu", Form(128, 128, 1, 3, 1, 2), "fp16"),
    ("any_small.cu", Form(128, 128, 2, 4, split=4), "fp8"),
]
PRODUCTS = {
    "bf16": "HGMMA.64x64x16.F32.BF16",
    "tf32": "HGMMA.64x256x8.F32.TF32",
    "fp8": "QGMMA",
    "fp16": "HGMMA.64x128x16.F32",
}


@pytest.mark.nightly("by day the CPU runtime builds one")
@needs_nvcc
@pytest.mark.parametrize("file, form, kind", REGISTERS, ids=str)
def test_compiles_without_spills_to_the_promised_instructions(tmp_path, file, form, kind):
    flags = form.flags(kind, kind in any_size.ALONG_K)
    code = sass(unspilled(forms.KERNELS / file, tmp_path, "sm_90a", *flags))
    assert PRODUCTS[kind] in code and "UTMALDG.3D" in code


# ---- the model


@without_gpu("counts what an H100 would do")
@pytest.mark.parametrize("kind", KINDS)
def test_a_choice_fits_the_gpu_and_covers_the_product(h100, kind):
    """Blocks that wait for each other all have room at the same time; all tiles are somebody's."""
    for shape in (*TUNING, *drawn(0)):
        problem = shape.problem(kind)
        for choice in choosing.choices(problem):
            form = choice.form
            if form.split:
                assert form.split <= form.steps(problem)
                continue
            tiles = form.tiles(problem)
            assert 0 <= choice.whole <= tiles
            assert 1 <= choice.clusters <= form.clusters
            work = choosing.work_of(choice, problem)
            assert work.steps * choice.clusters >= tiles * form.steps(problem)
            assert form.shared * form.per_sm <= (228 - form.per_sm) << 10


@without_gpu("counts what an H100 would do")
def test_the_model_chooses_what_it_says_is_fastest(h100):
    for shape in TUNING:
        problem = shape.problem("bf16")
        known = [c for c in choosing.choices(problem) if choosing.is_measured(c.form, "bf16")]
        said = {each: choosing.predicted(each, problem) for each in known}
        assert said[choosing.best(problem)] == min(said.values())


@without_gpu("counts what an H100 would do")
def test_few_tiles_are_cut_and_many_are_not(h100):
    """The model, as it was measured: a long k is shared, and a large product fills the GPU."""
    long = choosing.best(Problem("bf16", 256, 256, 16_384))
    assert long.form.split > 1 or long.clusters > long.form.tiles(Problem("bf16", 256, 256, 16_384))
    large = Problem("bf16", 8192, 8192, 8192)
    form = choosing.best(large).form
    assert form.rows * form.columns >= 128 * 128


@without_gpu("counts what an H100 would do")
def test_the_fit_finds_the_costs_that_made_the_times(h100):
    made = choosing.Costs(start=4.0, step=0.3, together=0.5, tile=1.5, piece=2.0)
    form = Form(64, 128, 1, 4, 1, 2)
    fast = 1e12  # bytes a microsecond: memory takes no time
    points = []
    for shape in TUNING:
        problem = shape.problem("bf16")
        for choice in choosing.choices(problem, (form,)):
            costs = dataclasses.astuple(made)
            us = fitting.features(fitting.Point(choice, problem, 1.0, 1.0)) @ costs
            points.append(fitting.Point(choice, problem, us, us))
    found = fitting.fitted(points, fast)
    assert dataclasses.astuple(found) == pytest.approx(dataclasses.astuple(made), rel=0.05)


# ---- what is asked


def test_rows_are_copied_only_where_the_copy_engine_needs_it():
    whole = torch.randn(5, 8).bfloat16()
    assert any_size.padded(whole) is whole
    over = torch.randn(5, 9).bfloat16()
    copied = any_size.padded(over)
    assert copied.shape == (5, 16) and torch.equal(copied[:, :9], over)
    assert not copied[:, 9:].any()
    assert any_size.padded(over.to(torch.float8_e4m3fn)).dtype == torch.float8_e4m3fn
    inside = torch.randn(48).bfloat16()[1:41].view(5, 8)
    assert any_size.padded(inside).data_ptr() % 16 == 0


@pytest.mark.parametrize(
    "a, b, c, why",
    [
        ((2, 3), (4, 5), (2, 5), "times"),
        ((2, 3), (3, 5), (2, 4), "times"),
        ((2, 2, 3), (3, 5), (2, 2, 5), "times"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(a, b, c, why):
    given = [torch.zeros(sizes, dtype=torch.bfloat16) for sizes in (c, a, b)]
    with pytest.raises(ValueError, match=why):
        any_size.problem_of(*given)


def test_types_and_layouts_are_told_apart():
    a, b = torch.zeros(4, 8), torch.zeros(8, 6)
    c = torch.zeros(4, 6)
    assert any_size.problem_of(c, a, b).kind == "fp32"
    half = a.bfloat16(), b.T.contiguous().T.bfloat16()
    assert any_size.problem_of(c.bfloat16(), *half).along_k
    with pytest.raises(ValueError, match="no product of"):
        any_size.problem_of(c, *half)


def test_held_out_shapes_are_drawn_by_the_seed():
    assert drawn(7) == drawn(7) != drawn(8)
    assert not set(drawn(7)) & set(TUNING)


def test_the_grid_is_told_from_records(tmp_path):
    """The mean, and the worst with its sizes; what lacks a number is left out."""
    assert grid_told.told(tmp_path) == "nothing is recorded yet"
    numbers = {
        "geomean_over_best": 1.034,
        "worst_over_best": 0.91,
        "worst_over_best/m": 512,
        "worst_over_best/n": 256,
        "worst_over_best/k": 4096,
        "worst_over_best/batch": 2,
        "shapes": 16,
    }
    names = {f"matmul/grid/bf16/held_out/{name}": value for name, value in numbers.items()}
    names["matmul/grid/fp16/geomean_over_best"] = 1.0
    recorded.write(tmp_path, "NVIDIA H200", names)
    said = grid_told.told(tmp_path)
    assert "bf16  drawn     16   1.03   0.91  at 2 × 512 × 256 × 4096" in said
    assert "NVIDIA H200, " in said and "fp16" not in said
