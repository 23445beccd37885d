"""The tile kernels are right without a GPU, compile for GPUs that are not here, and are shown."""

import pytest
import torch

pytest.importorskip("triton")

from course.kernels.matmul.ladder import prove  # noqa: E402
from course.kernels.tiles import (  # noqa: E402
    ahead,
    compile_bench,
    fused,
    layer_norm,
    listing,
    matmul,
    matmul_bench,
    rows_bench,
    softmax,
)
from course.kernels.tiles.watch import watch  # noqa: E402
from utils import check, has_gpu  # noqa: E402

DEVICE = "cuda" if has_gpu() else "cpu"
SHAPES = ((40, 72, 24), (1, 8, 8), (33, 40, 104))


@pytest.mark.parametrize(
    "multiply",
    [
        matmul.with_pointers(32, 32, 32, warps=4),
        matmul.with_descriptors(32, 32, 32, warps=4),
        matmul.persistent(32, 32, 32, warps=4),
        matmul.persistent(32, 32, 32, warps=4, halves=False, flatten=False),
    ],
    ids=["pointers", "descriptors", "persistent", "persistent, whole tiles"],
)
def test_products_are_right(multiply):
    prove("tile", multiply, SHAPES, "bf16")


@pytest.mark.parametrize("options", [{}, {"PIECE": 32, "num_warps": 4}])
@pytest.mark.parametrize("columns", [1, 31, 100])
def test_softmax_and_layer_norm(columns, options):
    x = torch.randn(5, columns, device=DEVICE) * 3 + 50
    check.close(softmax.softmax(x, **options), x.double().softmax(1).float(), rtol=1e-5, atol=1e-6)
    gamma, beta = torch.randn(2, columns, device=DEVICE)
    y, _, _ = layer_norm.layer_norm(x, gamma, beta, **options)
    wanted = torch.nn.functional.layer_norm(x.double(), (columns,), gamma.double(), beta.double())
    torch.testing.assert_close(y.double(), wanted, rtol=1e-3, atol=1e-3)


def test_a_masked_row_of_softmax_is_what_torch_says():
    x = torch.randn(3, 40, device=DEVICE)
    x[1, :7] = -float("inf")
    for options in ({}, {"PIECE": 16, "num_warps": 4}):
        torch.testing.assert_close(softmax.softmax(x, **options), x.softmax(1))


def test_attention_in_one_pass():
    q, k, v = torch.randn(3, 2, 70, 16, device=DEVICE)
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(fused.run_attention(q, k, v, block=32), wanted, rtol=1e-2, atol=1e-2)


@pytest.mark.nightly("the chapter compiles it for all three, and shows each one's instruction")
def test_one_source_becomes_three_generations_of_tensor_cores():
    names = {80: "mma.sync", 90: "wgmma.mma_async", 100: "tcgen05.mma"}
    arguments = ahead.arguments_of_matmul(128, 128, 64)
    file = listing.FOLDER / "matmul.py"
    made = ahead.compile_for(file, "matmul_descriptors", arguments, cc=names, num_warps=4)
    for cc, name in names.items():
        counts = {other: made[cc].count(rf"\b{name}\b") for other, name in names.items()}
        assert [other for other, count in counts.items() if count] == [cc]
        assert "#loc" not in "".join(made[cc].lines("ttgir"))


@pytest.mark.nightly("compiled for a GPU that is not there, six seconds")
def test_gluon_compiles_with_its_roles_apart():
    arguments = ahead.arguments_of_gluon(128, 256, 64, 4)
    (made,) = ahead.compile_for(
        listing.FOLDER / "gluon_matmul.py", "matmul_gluon", arguments, num_warps=4
    ).values()
    assert made.count("setmaxnreg") and made.count("wgmma.mma_async")
    assert made.shared <= 227 * 1024


def test_cute_compiles_without_a_gpu(tmp_path):
    """For Hopper: wgmma multiplies what the copy engine brings."""
    for package in ("nvidia_cutlass_dsl", "tvm_ffi"):
        pytest.importorskip(package, reason="CuTe DSL comes with the extra `tiles`")
    from course.kernels.tiles.cute.launching import compiled

    ptx = compiled("--keep-ptx", f"--dump-dir {tmp_path}").__ptx__
    for name in ("m64n256k16.f32.bf16.bf16", "complete_tx::bytes", "setmaxnreg", "stmatrix"):
        assert name in ptx


def test_cute_is_left_out_with_a_word_where_it_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(matmul_bench, "has_gpu", lambda: True)
    monkeypatch.setattr(matmul_bench, "find_spec", lambda name: None)
    assert matmul_bench.cute_variants() == {}
    assert "cuda-course[tiles]" in capsys.readouterr().out


def test_what_does_not_compile_says_so():
    with pytest.raises(ahead.NotCompiled, match="no_such_kernel"):
        ahead.compile_for(listing.FOLDER / "matmul.py", "no_such_kernel", {})


def test_every_language_can_be_shown_and_counted():
    counts = listing.lines_of_matmuls()
    assert counts["cuTile"] < counts["Gluon"] < counts["CuTe DSL"] < counts["CUDA C, Hopper"]
    assert "ct.mma" in listing.show("cutile/matmul.py", "matmul")
    with pytest.raises(LookupError):
        listing.text_of("matmul.py", "nothing")


def test_watch_says_what_is_wrong(capsys):
    x = torch.zeros(10, device=DEVICE)
    watch(softmax.softmax_rows, (2,), x, x, 2, 5, 1, 8)
    assert capsys.readouterr().out.startswith("✓")
    watch(softmax.softmax_rows, (3,), x, x, 3, 5, 1, 8)
    assert "outside the tensor" in capsys.readouterr().out


def test_a_transposed_matrix_is_refused_and_watch_says_it(capsys):
    x = torch.randn(8, 5, device=DEVICE).T
    gamma = torch.ones(8, device=DEVICE)
    b = torch.randn(5, 8, device=DEVICE)
    for call in (
        lambda: softmax.softmax(x),
        lambda: layer_norm.layer_norm(x, gamma, gamma),
        lambda: matmul.with_pointers(32, 32, 32)(torch.empty(5, 5, device=DEVICE), x, b.T),
        lambda: fused.run_linear_gelu(b, x.T.contiguous().T, gamma[:5]),
    ):
        with pytest.raises(ValueError, match="is a view with strides"):
            call()
    out = torch.empty(5, 8, device=DEVICE)
    watch(softmax.softmax_rows, (5,), out, x, 5, 8, 1, 8)
    assert capsys.readouterr().out.startswith("✗ view: x is a view with strides (1, 5)")


def test_a_laptop_is_told_what_was_checked(monkeypatch, capsys):
    monkeypatch.setattr(compile_bench, "has_gpu", lambda: False)
    monkeypatch.setattr(compile_bench, "pick", lambda gpu, cpu: cpu)
    monkeypatch.setattr(compile_bench, "DEVICE", "cpu")
    compile_bench.measure("large")
    text = capsys.readouterr().out
    assert "on 4 × 32 numbers, uncompiled; nothing is timed" in text
    assert "recorded: 8192 × 8192, NVIDIA H200" in text and "all right" not in text


def test_the_sweep_of_layer_norm_tries_each_way_once():
    """Whatever is the default: with and without the hint to the caches, nothing twice."""
    tried = [layer_norm.WHOLE | option for option in rows_bench._norm_options(1024)]
    assert {option["KEEP"] for option in tried} == {False, True}
    assert len({tuple(sorted(option.items())) for option in tried}) == len(tried)


@pytest.mark.parametrize("form, graphs", [("whole", 1), ("one_break", 2), ("three_breaks", 4)])
def test_forms_have_the_breaks_that_they_are_named_for(form, graphs):
    torch._dynamo.reset()
    function = getattr(compile_bench, form)
    x = torch.randn(8)
    assert torch._dynamo.explain(function)(x).graph_count == graphs
    assert torch.equal(function(x), compile_bench.whole(x))
