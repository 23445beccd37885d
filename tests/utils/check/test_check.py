"""The checks pass what is right, reject what is wrong, and say how it is wrong."""

import math
import sys

import numpy as np
import pytest

from tests.processes import completed
from utils import check
from utils.check import CheckError, close, comparison, diagnose, equal, poison
from utils.check.comparison import OK, UNWRITTEN, WRONG
from utils.check.error_map import BLANK

RANDOM = np.random.default_rng(7)
FLOATS = (np.float16, np.float32, np.float64, np.complex64, np.complex128)
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)


def random(*shape, dtype=np.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def keys(actual, expected, **options):
    return [reason.key for reason in diagnose(actual, expected, **options)]


def message(actual, expected, run=close, **options):
    with pytest.raises(CheckError) as error:
        run(actual, expected, **options)
    return str(error.value)


# ---- what passes


def test_one_line_on_success(capsys):
    a, b = random(2048), random(2048)
    close(a + b, (a + b).copy())
    assert capsys.readouterr().out == "✓ 2,048 values agree, largest error 0\n"
    close(a + b, a.astype(np.float64) + b, name="sum")
    assert capsys.readouterr().out.startswith("✓ sum: 2,048 values agree, largest error ")
    close(np.float32(1.5), 1.5)
    assert capsys.readouterr().out == "✓ 1 value agrees, largest error 0\n"
    close(np.empty((0, 3), np.float32), np.empty((0, 3), np.float32))
    assert capsys.readouterr().out == "✓ nothing to compare, both are empty\n"
    close(a, a.copy(), quiet=True)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "n, dtype",
    [(n, np.float32) for n in (1, 7, 100, 4096, 100_000)]
    + [(n, np.float16) for n in (1, 7, 100, 4096)],
)
def test_a_right_sum_of_n_products_passes_in_any_order(n, dtype):
    a, b = random(16, n, dtype=dtype), random(16, n, dtype=dtype)
    exact = (a.astype(np.float64) * b).sum(axis=1)
    one_by_one = np.add.accumulate(a * b, axis=1, dtype=dtype)[:, -1]
    pairwise = (a * b).sum(axis=1, dtype=dtype)
    for result in (one_by_one, pairwise):
        close(result, exact, ops=2 * n, quiet=True)


@pytest.mark.parametrize("n", [7, 100, 4096])
def test_a_sum_that_forgets_a_term_fails(n):
    a, b = random(16, n), random(16, n)
    exact = (a.astype(np.float64) * b).sum(axis=1)
    forgets = (a[:, :-1] * b[:, :-1]).sum(axis=1)
    assert np.count_nonzero(np.abs(forgets - exact) > 0) == 16
    assert diagnose(forgets, exact, ops=2 * n)


def test_the_bound_follows_from_the_operations():
    u = 2.0**-24
    assert check.rounding_bound(1, u) == pytest.approx(u)
    assert check.rounding_bound(10, u) == pytest.approx(10 * u)  # certain: gamma_n
    assert check.rounding_bound(10_000, u) == pytest.approx(
        800 * u, rel=1e-3
    )  # likely: 8 sqrt(n) u
    with pytest.raises(ValueError, match="at least 1"):
        check.rounding_bound(0, u)


def test_one_operation_allows_one_rounding():
    x = np.full(100, 1 / 3, np.float32)
    close(np.nextafter(x, np.float32(1)), x, ops=1, quiet=True)  # both sides may be rounded
    assert diagnose(np.nextafter(x, np.float32(1)), x.astype(np.float64), ops=1)
    assert diagnose(x + np.float32(2**-22), x, ops=1)


def test_given_tolerances_are_used():
    x = random(100).astype(np.float64)
    close(x * (1 + 1e-3), x, rtol=1.1e-3, quiet=True)
    assert diagnose(x * (1 + 1e-3), x, rtol=0.9e-3)
    close(x + 1e-3, x, atol=1.1e-3, quiet=True)
    assert diagnose(x + 1e-3, x, atol=0.9e-3)
    assert diagnose(x * (1 + 1e-15), x, rtol=0)
    image = np.arange(256, dtype=np.uint8)
    close(np.clip(image, 1, None), image, atol=1, quiet=True)
    for wrong in ({"rtol": -1}, {"atol": math.nan}, {"rtol": math.inf}):
        with pytest.raises(ValueError, match="finite and not negative"):
            close(x, x + 0, **wrong)


def test_a_tolerance_that_accepts_anything_is_refused():
    with pytest.raises(ValueError, match="Accumulate in a wider type"):
        close(random(4, dtype=np.float16), random(4, dtype=np.float16), ops=1_000_000)


def test_cancelled_elements_are_judged_by_their_neighbours():
    a = random(1000)
    expected = a.astype(np.float64)
    expected[500] = 0.0  # the sum of large terms that cancel
    a[500] = 1e-7
    close(a, expected, quiet=True)
    a[500] = 1e-5
    assert keys(a, expected) == ["wrong-one"]


def test_one_huge_value_does_not_hide_wrong_small_ones():
    expected = random(1000).astype(np.float64)
    expected[0] = 1e30
    actual = expected.astype(np.float32)
    actual[5] += 1
    assert keys(actual, expected) == ["wrong-one"]


# ---- NaN and infinity


@pytest.mark.parametrize("run", [close, equal])
def test_nan_passes_only_where_the_reference_has_it(run):
    x = random(10)
    with_nan = x.copy()
    with_nan[3] = np.nan
    run(with_nan, with_nan.copy(), quiet=True)
    assert "only element [3] was NaN" in message(with_nan, x, run)
    assert "expected nan" in message(x, with_nan, run)
    for tolerance in ({"rtol": 1e9}, {"atol": 1e30}):
        assert keys(with_nan, x, **tolerance) == ["nan-one"]
        assert diagnose(x, with_nan, **tolerance)


@pytest.mark.parametrize("run", [close, equal])
def test_infinity_passes_only_where_the_reference_has_it(run):
    x = random(10)
    infinite = x.copy()
    infinite[3] = np.inf
    run(infinite, infinite.copy(), quiet=True)
    assert "got inf" in message(infinite, x, run)
    assert "expected inf" in message(x, infinite, run)
    negative = infinite.copy()
    negative[3] = -np.inf
    assert "got -inf, expected inf" in message(negative, infinite, run)


# ---- poison


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, bool])
def test_unwritten_elements_are_found(dtype):
    expected = (RANDOM.integers(0, 2, 1000)).astype(dtype)
    out = poison(1000, dtype)
    assert out.shape == (1000,) and out.dtype == dtype
    assert keys(out, expected) == ["unwritten-all"]
    out[:900] = expected[:900]
    assert keys(out, expected) == keys(out, expected, exact=True) == ["unwritten-tail"]
    text = message(out, expected)
    assert "100 of 1,000 values differ" in text and "first at [900]: got unwritten" in text
    assert "every element from index 900 on was never written" in text


def test_poison_has_any_shape():
    assert poison((2, 3, 4)).shape == (2, 3, 4) and poison((2, 3, 4)).dtype == np.float32
    assert np.isnan(poison(())) and poison(0).size == 0
    with pytest.raises(TypeError, match="no pattern for dtype"):
        poison(3, "U4")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_poison_does_not_pass_as_an_expected_nan(dtype):
    expected = np.full(4, np.nan, dtype)
    close(expected.copy(), expected, quiet=True)
    assert keys(poison(4, dtype), expected) == ["unwritten-all"]


def test_a_number_that_looks_like_poison_may_be_right():
    expected = np.arange(256).astype(np.uint8)
    assert poison((), np.uint8) in expected
    equal(expected.copy(), expected, quiet=True)


# ---- shape and dtype


def test_a_wrong_shape_is_named():
    assert (
        message(random(2, 3), random(3, 2))
        == "✗ result has shape (2, 3), expected (3, 2) (axes swapped)"
    )
    assert "as many elements, arranged differently" in message(random(6), random(3, 2))
    assert message(random(5), random(6), name="y") == "✗ y has shape (5,), expected (6,)"
    assert keys(random(1, 5), random(5)) == ["shape"]  # nothing is broadcast
    assert keys(np.float32(1), random(5)) == ["shape"]


def test_a_number_stands_for_every_element():
    close(np.full((3, 4), 2, np.float32), 2, quiet=True)
    assert keys(np.array([2, 2, 3, 2], np.float32), 2) == ["wrong-one"]


@pytest.mark.parametrize(
    "dtype, reference",
    [
        (np.float64, np.float32),
        (np.float32, np.float16),
        (np.float32, np.int64),
        (np.int32, np.float32),
        (np.int64, np.int32),
        (np.uint32, np.int32),
        (np.complex64, np.float64),
        (np.float32, np.complex64),
        (bool, np.uint8),
    ],
)
def test_a_wrong_dtype_is_named(dtype, reference):
    ones = np.ones(4)
    assert keys(ones.astype(dtype), ones.astype(reference)) == ["dtype"]
    text = message(ones.astype(dtype), ones.astype(reference), equal)
    assert f"is {np.dtype(dtype)}, the reference is {np.dtype(reference)}" in text


@pytest.mark.parametrize(
    "dtype, reference",
    [
        (np.float32, np.float64),
        (np.float16, np.float32),
        (np.int32, np.int64),
        (np.uint8, np.int64),
    ],
)
def test_the_reference_may_be_more_precise(dtype, reference):
    close(np.ones(4, dtype), np.ones(4, reference), quiet=True)


def test_a_required_dtype_is_required():
    ones = np.ones(4)
    close(ones.astype(np.float32), ones, dtype=np.float32, quiet=True)
    assert message(ones, ones + 0, dtype=np.float32) == "✗ result is float64, must be float32"


def test_plain_python_numbers_have_no_dtype(capsys):
    close(np.array([1, 2, 3], np.float32), [1, 2, 3])
    close(float(np.float32(0.1)), np.float64(0.1))
    equal(np.int32(3), 3)
    assert capsys.readouterr().out.count("✓") == 3
    assert keys(2, 3) == ["wrong-all"]


def test_what_cannot_be_compared_is_named():
    with pytest.raises(
        TypeError, match=r"the result is None \(did a function forget its return\?\)"
    ):
        close(None, random(3))
    with pytest.raises(TypeError, match="the reference is ndarray of dtype <U1"):
        close(random(1), np.array(["a"]))


def test_a_result_is_not_compared_with_itself():
    x = random(10)
    assert keys(x, x) == keys(x, x[:]) == ["itself"]
    close(x[:5], np.concatenate([x[:5], x[:5]])[5:], quiet=True)


def test_large_integers_are_compared_exactly():
    big = np.array([2**53, 2**62 + 1], np.int64)
    close(big, big.copy(), quiet=True)
    assert keys(big + np.array([1, 0]), big) == ["wrong-one"]
    assert (
        keys(big + np.array([0, 1]), big)
        == keys(big + np.array([0, 1]), big, atol=0)
        == ["wrong-one"]
    )


def test_equal_allows_no_rounding():
    x = random(10)
    equal(x, x.copy(), quiet=True)
    y = x.copy()
    y[4] = np.nextafter(y[4], np.float32(9))
    close(y, x, quiet=True)
    text = message(y, x, equal)
    assert "only element [4] differs" in text and "tolerance: none" in text
    got, want = text.split("got ")[1].split(", error")[0].split(", expected ")
    assert got != want  # enough digits to see the difference


# ---- where


def test_the_first_and_the_worst_are_named():
    expected = np.arange(1000, dtype=np.float32)
    actual = expected.copy()
    actual[100] += 1
    actual[700] -= 50
    text = message(actual, expected)
    assert "✗ result: 2 of 1,000 values differ" in text
    assert "first at [100]: got 101, expected 100, error 1 (allowed" in text
    assert "worst at [700]: got 650, expected 700, error 50 (allowed" in text


def test_the_neighbourhood_of_a_vector():
    expected = np.arange(10, dtype=np.int32)
    actual = expected.copy()
    actual[4] = 77
    lines = [line.split() for line in message(actual, expected).split("\n")]
    assert ["index", "got", "expected"] in lines
    for i in (2, 3, 5, 6, 7, 8):
        assert [str(i), str(i), str(i)] in lines
    assert ["4", "77", "4", "←"] in lines
    assert ["1", "1", "1"] not in lines and ["9", "9", "9"] not in lines


def test_the_neighbourhood_of_a_matrix_and_of_a_stack():
    expected = np.arange(600, dtype=np.int32).reshape(6, 10, 10)
    actual = expected.copy()
    actual[2, 5, 6] = -1
    text = message(actual[2].copy(), expected[2])
    assert "first at [5, 6]" in text and "-1←" in text
    lines = [line.split() for line in text.split("\n")]
    assert "[4, :] 245 246 247 248".split() in lines and "[5, :] 255 256 257 258".split() in lines
    assert "[5, :] 255 -1← 257 258".split() in lines
    text = message(actual, expected)
    assert "first at [2, 5, 6]" in text and "[2, 5, :]" in text and "[2, :, 6]" in text


PLACES = {
    "tail": (np.s_[60:], (100,)),
    "head": (np.s_[:3], (100,)),
    "edge": (np.s_[:, 7:], (9, 10)),
    "slice": (np.s_[:, 4], (9, 10)),
    "every": (np.s_[5::8], (100,)),
    "one": (np.s_[3, 4, 5], (5, 6, 7)),
    "block": (np.s_[2, 1:5, 3:6], (5, 6, 7)),
    "all": (np.s_[:], (100,)),
    "some": ([2, 3, 50], (100,)),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["unwritten", "wrong", "nan"])
def test_places_are_recognised(place, kind):
    where, shape = PLACES[place]
    expected = random(*shape) + np.float32(100)
    actual = expected.copy()
    wrong = RANDOM.random(actual[where].shape)
    actual[where] = {"unwritten": poison(()), "wrong": wrong, "nan": np.nan}[kind]
    assert f"{kind}-{place}" in keys(actual, expected)


def test_the_words_for_places():
    expected = random(33, 47)
    out = poison(expected.shape)
    out[:32, :45] = expected[:32, :45]
    assert "the last row and the last 2 columns were never written" in message(out, expected)
    out = expected.copy()
    out[:, 4] = 0
    assert "column 4 differs" in message(out, expected)
    out = expected.copy()
    out[8:16, 16:32] = 0
    assert "the block of rows 8 to 15, columns 16 to 31 differs" in message(out, expected)
    out[10, 20] = expected[10, 20]
    assert "127 elements within rows 8 to 15, columns 16 to 31 differ" in message(out, expected)
    out = expected.copy()
    out[[0, -1]] = out[:, [0, -1]] = 9
    text = message(out, expected)
    assert "the first row, the first column, the last row and the last column differ" in text
    out = expected.reshape(-1).copy()
    out[5::32] = 9
    assert "only every 32nd element (32 i + 5) differs" in message(out, expected.reshape(-1))


# ---- how


def distortions():
    m, square, v, stack = random(9, 14), random(8, 8), random(100), random(4, 5, 6)
    half_written = poison((9, 14))
    half_written[:8] = 2 * m[:8]
    return {
        "transposed": (np.ascontiguousarray(m.T).reshape(9, 14), m),
        "transposed square": (square.T, square),
        "transposed stack": (np.ascontiguousarray(stack.swapaxes(1, 2)).reshape(4, 5, 6), stack),
        "shifted": (np.roll(v, 1), v),
        "shifted back": (np.roll(v, -1), v),
        "shifted columns": (np.roll(m, 1, axis=1), m),
        "reversed": (v[::-1], v),
        "reversed channels": (stack[..., ::-1], stack),
        "permuted": (RANDOM.permutation(v), v),
        "zeros": (np.where(np.arange(100) < 60, v, 0), v),
        "scaled": (v / 100, v),
        "scaled and half written": (half_written, m),
        "scaled integers": (np.arange(100, dtype=np.int32) * 3, np.arange(100, dtype=np.int32)),
        "negated": (-v, v),
        "offset": (v + np.float32(0.25), v),
        "imprecise": (v.astype(np.float16).astype(np.float32), v),
    }


@pytest.mark.parametrize("name", distortions())
def test_patterns_are_recognised(name):
    actual, expected = distortions()[name]
    found = [key for key in keys(actual, expected) if "-" not in key]
    assert found == [name.split()[0]]
    assert [key for key in keys(actual, expected, exact=True) if "-" not in key] == found


@pytest.mark.parametrize("shape", [(100,), (9, 14), (4, 5, 6)])
def test_no_pattern_is_seen_in_random_values(shape):
    assert keys(random(*shape), random(*shape)) == ["wrong-all"]


def test_the_words_for_patterns():
    v = random(100)
    assert "got 0.01 × expected" in message(v / 100, v)
    assert "each element holds the value of the element before it" in message(np.roll(v, 1), v)
    assert "each element holds the value of the element after it" in message(np.roll(v, -1), v)
    m = random(9, 14)
    assert "rows and columns are swapped" in message(np.ascontiguousarray(m.T).reshape(9, 14), m)


def test_zeros_are_not_every_wrong_element_beside_nan():
    v = random(100)
    zeros = np.where(np.arange(100) < 60, v, 0)
    assert "every wrong element is 0" in message(zeros, v)
    zeros[70:] = np.nan
    assert "every other wrong element is 0" in message(zeros, v)


def test_a_rare_wrong_value_among_many_unwritten_ones_is_not_called_zero():
    expected = random(100_000)
    out = poison(expected.shape)
    out[50_001] = expected[50_001] + 1
    assert "zeros" not in keys(out, expected)


def test_reasons_stand_in_the_error():
    with pytest.raises(CheckError) as error:
        close(poison(4), np.ones(4, np.float32))
    (reason,) = error.value.reasons
    assert reason == "every element was never written" and reason.key == "unwritten-all"
    assert diagnose(np.ones(4, np.float32), 1.0) == []


def test_arrays_of_several_chunks(monkeypatch):
    monkeypatch.setattr(comparison, "CHUNK", 1000)
    expected = random(10_500)
    actual = expected.copy()
    close(actual, expected, quiet=True)
    close(actual.reshape(105, 100), expected.reshape(100, 105).reshape(105, 100).copy(), quiet=True)
    actual[9_999:] = 0
    text = message(actual, expected)
    assert "501 of 10,500 values differ" in text and "first at [9999]" in text
    assert keys(actual, expected) == ["zeros", "wrong-tail"]
    close(actual[::3], actual.copy()[::3], quiet=True)  # strided


# ---- other arrays


def test_torch_tensors():
    import torch

    x = torch.linspace(0, 1, 64, requires_grad=True)
    close(x, np.linspace(0, 1, 64), quiet=True)
    close(x.detach().numpy().copy(), x, quiet=True)
    assert keys(x.double(), x) == ["dtype"]
    assert keys(x.detach(), x.detach()) == ["itself"]
    low = x.bfloat16()
    close(low, x, ops=1, quiet=True)
    assert diagnose(low.float(), x, ops=1)  # float32 must be better than that
    assert "is bfloat16, must be float32" in message(low, x, dtype=np.float32)
    assert keys(x, low) == ["dtype"]
    assert "transposed" in keys(x.reshape(8, 8).T, x.reshape(8, 8))


def test_device_arrays():
    from numba import cuda

    x = random(6, 7)
    close(cuda.to_device(x), x, quiet=True)
    close(x, cuda.to_device(x), quiet=True)
    assert keys(cuda.to_device(poison((6, 7))), x) == ["unwritten-all"]


# ---- how it is shown


def failure(actual, expected):
    with pytest.raises(CheckError) as error:
        close(actual, expected)
    return error.value


@pytest.mark.parametrize("shape", [(1000,), (33, 47), (3, 10, 12), (2, 3, 4, 5), (300, 500)])
def test_the_map_shows_where_it_is_wrong(shape):
    expected = random(*shape)
    actual = expected.copy()
    actual[-1:] = poison(expected[-1:].shape)
    actual.reshape(-1)[0] = 9
    error = failure(actual, expected)
    figure = error.figure()
    cells = np.asarray(figure.axes[0].collections[0].get_array()).ravel()
    cells = cells[cells < BLANK]
    assert cells[0] == WRONG and cells[-1] == UNWRITTEN and (cells == OK).any()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "right",
        "wrong",
        "never written",
    ]
    page = error._repr_html_()
    assert page.startswith("<pre>✗ result") and "<svg" in page and len(page) < 300_000


def test_no_map_where_there_is_nothing_to_see():
    assert failure(np.float32(1), 2).figure() is None
    assert failure(random(3), random(4)).figure() is None
    assert "<img" not in failure(np.float32(1), 2)._repr_html_()


def test_show_prints_in_a_terminal(capsys):
    error = failure(random(10), random(10))
    error.show()
    assert capsys.readouterr().out == f"{error}\n"


def test_ipython_shows_the_line_and_the_message_only():
    program = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell(colors="nocolor")
shell.run_cell("import numpy as np\\nfrom utils import check")
shell.run_cell("out = np.zeros(8)\\ncheck.close(out, np.ones(8))  # my line")
"""
    done = completed([sys.executable, "-c", program])
    assert "line 2: check.close(out, np.ones(8))  # my line" in done.stdout, done.stderr
    assert "8 of 8 values differ" in done.stdout
    assert "Traceback" not in done.stdout and "check.py" not in done.stdout


def test_importing_the_checks_is_cheap():
    program = (
        "import sys; import utils.check; print([m for m in ('torch', 'matplotlib', "
        "'IPython', 'numba') "
    )
    program += "if m in sys.modules])"
    done = completed([sys.executable, "-c", program])
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_agreement_forgives_what_is_left_of_terms_that_cancel():
    expected, got = np.float32([1e-8]), np.float32([1.2e-7])
    assert not comparison.agreement(got, expected, rtol=1e-5).all()
    assert comparison.agreement(got, expected, rtol=1e-5, atol=4 * 2.0**-23).all()
    assert not comparison.agreement(
        np.float32([1e-5]), expected, rtol=1e-5, atol=4 * 2.0**-23
    ).any()
