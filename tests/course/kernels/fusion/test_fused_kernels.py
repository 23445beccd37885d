"""The fused kernels against float64, their random numbers against the published ones."""

import pytest
import torch

from course.kernels.fusion import adamw, block, in_chapter, linear_cross_entropy, rightness


@pytest.mark.parametrize("name", rightness.CHECKS)
def test_kernels_are_right(name):
    rightness.CHECKS[name]()


def test_a_wrong_result_is_noticed():
    exact = torch.ones(5, dtype=torch.float64)
    with pytest.raises(AssertionError, match="dx"):
        rightness._near("dx", exact.float() * 1.1, exact, 2**-6)
    with pytest.raises(AssertionError, match="dx"):
        rightness._near("dx", exact.float() * torch.nan, exact, 2**-6)


def test_all_results_are_named_if_one_is_wrong():
    one = torch.ones(3, dtype=torch.float64)
    assert rightness._all_near(("dx", one.float(), one, 1e-5)) == 0
    with pytest.raises(AssertionError, match="dx: ✓ right\ndbias: error 1, "):
        rightness._all_near(("dx", one.float(), one, 1e-5), ("dbias", 2 * one, one, 1e-5))


def starter(x, weights, right, chunk):
    return len(...)


def whole(x, weights, right, chunk):
    return linear_cross_entropy.plain(x, weights, right)


def all_chunks_kept(x, weights, right, chunk):
    kept = [x[start : start + chunk] @ weights.T for start in range(0, len(x), chunk)]
    results = linear_cross_entropy.loss_and_gradients(x, weights, right, chunk)
    kept.clear()  # until here they were in memory
    return results


def added_to_what_lay_there(x, weights, right, chunk):
    loss, dx, dweights = linear_cross_entropy.loss_and_gradients(x, weights, right, chunk)
    return loss, dx, torch.empty_like(dweights) + dweights


@pytest.mark.parametrize(
    "loop, said",
    [
        (linear_cross_entropy.loss_and_gradients, "dweights: ✓ right\nlargest array: 16 × 40, ✓"),
        (whole, "dweights: ✓ right\nlargest array: 69 × 40, larger than"),
        (all_chunks_kept, "a chunk's logits (16 × 40)\nbut the chunks' arrays stay in memory"),
        (added_to_what_lay_there, "dx: ✓ right\ndweights: wrong"),
        (starter, "the loop stops: "),
    ],
)
def test_a_loop_over_chunks_is_tried(loop, said, capsys):
    rightness.tried_loop(loop)
    printed = capsys.readouterr().out
    assert said in printed
    assert ("stay in memory" in printed) == (loop is all_chunks_kept)


def test_philox_gives_the_numbers_of_random123():
    # the first line for philox4x32 with 7 rounds in its file of known answers
    words = block.philox(torch.zeros(1, dtype=torch.int64), 0)[0].tolist()
    assert words == [0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48]


def test_dropout_drops_its_share():
    factors = block.kept(100, 800, seed=7, threshold=round(0.25 * block.SIXTEEN_BITS))
    assert (factors == 0).double().mean() == pytest.approx(0.25, abs=0.01)
    assert factors.mean() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("kilobytes, stages", [(64, 1), (99, 2), (227, 2)])
def test_the_backward_rings_rows_fit_a_blocks_shared_memory(kilobytes, stages):
    assert block.fitting(block.BACKWARD, 4096, kilobytes << 10).stages == stages


def test_chunks_cover_every_number_once():
    sizes = ((3, 7), (adamw.FASTEST.chunk,), (adamw.FASTEST.chunk + 1,), (1,))
    weights = [torch.zeros(size, device=rightness.DEVICE) for size in sizes]
    optimizer = adamw.AdamW(weights, [torch.zeros_like(w) for w in weights])
    chunks = [tuple(chunk) for chunk in optimizer._chunks.tolist()]
    assert chunks == [(0, 0), (1, 0), (2, 0), (2, 1), (3, 0)]


@pytest.mark.parametrize("view", [lambda x: x[1:], lambda x: x[::2]], ids=["moved", "gaps"])
def test_an_optimizer_refuses_what_wide_loads_cannot_read(view):
    weights = [view(torch.zeros(64, device=rightness.DEVICE))]
    gradients = [torch.zeros_like(weights[0])]
    with pytest.raises(ValueError, match="16 bytes"):
        adamw.AdamW(weights, gradients)


def test_a_gradient_below_the_limit_is_not_scaled():
    weights = [torch.zeros(9, device=rightness.DEVICE)]
    gradients = [torch.full((9,), 0.1, device=rightness.DEVICE)]
    optimizer = adamw.AdamW(weights, gradients, most=1.0)
    optimizer.step()
    norm, factor = optimizer.norm_and_factor.tolist()
    assert norm == pytest.approx(0.3, rel=1e-6)
    assert factor == 1


def test_the_chapter_shows_what_a_race_found_and_else_what_is_recorded(capsys, monkeypatch):
    monkeypatch.setattr(in_chapter, "able", lambda: True)
    monkeypatch.setattr(in_chapter, "run", lambda part, seconds: {"a/share_of_copy": (0.5, "1")})
    in_chapter.race("gemv", "a/share_of_copy", "b/never_recorded")
    assert capsys.readouterr().out.splitlines() == [
        "a/share_of_copy: 50.0%, measured now",
        "b/never_recorded: not recorded yet",
    ]


def test_a_race_that_fails_finds_nothing(monkeypatch):
    monkeypatch.setitem(in_chapter.PACKAGES, "gemv", "no_such_package")
    assert in_chapter.run("gemv", seconds=30) == {}
