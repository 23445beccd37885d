"""Natural mistakes in the exercises of the finale: the check says what each of them is."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import numpy as np
import pytest

from course.checking.answers import changed
from course.checking.checker import check_answer
from course.exercises import EXERCISES, beating_pytorch

pytestmark = pytest.mark.usefixtures("in_this_process", "pictures_undrawn")
GROWS = "best = fmaxf(best, scale[c] * v + shift[c])"
LARGEST = "largest = fmaxf(largest, scale[c] * sum + shift[c])"
FIRST = "(2 * row * width + 2 * x) * channels + c"  # of a window
PITCH = "((2 * row + k / 2) * width + 2 * x + k % 2) * channels + c"
LOSS = "        loss = (logf(sum) + largest - z[labels[n]]) / batch;\n"
FOUR_OF_A_LANE = (
    "            for (int j = lane; j < 128; j += 32)\n"
    "                z[k] += w[k * 128 + j] * h[j];\n"
)
X_LOOP = "int x = 0; x < 28; x += 2"  # over the windows of a line
FILLS = "            pixels[i / 30][i % 30] = pixel_at(&images[n * 784], i / 30 - 1, i % 30 - 1);\n"
PLAIN_BYTES = """
        for (int i = threadIdx.x; i < 30 * 30; i += blockDim.x) {
            int y = i / 30 - 1, x = i % 30 - 1;
            bool inside = y >= 0 && y < 28 && x >= 0 && x < 28;
            plain[i / 30][i % 30] = inside ? images[n * 784 + y * 28 + x] : 0.328125f;
        }
"""
ADDS = (
    "    atomicAdd(&moments[a * 16 + b], products);\n"
    "    if (a == 0)\n"
    "        atomicAdd(&moments[16 * 16 + b], singles);\n"
)
OWN_WEIGHTS = (
    "int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x"
)
FROM_THE_FIRST = "largest = z[0], sum = 0"
EVERY_DIGIT = "int n = 0; n < batch; ++n"
SHARE = "(inputs + splits - 1) / splits"
STRIDED = "int i = part; i < inputs; i += splits"
SLIPS = {
    "bn_relu_pool": [
        (
            [(PITCH, "(2 * row + k / 2) * width + 2 * x + k % 2 + c")],
            "not multiplied by `channels`",
        ),
        (
            [
                ("i % channels", "i / (rows / 2 * (width / 2))"),
                ("i / channels % (width / 2)", "i % (width / 2)"),
                ("i / channels / (width / 2)", "i / (width / 2) % (rows / 2)"),
            ],
            "in another order than `out` has",
        ),
        ([(GROWS, "best += fmaxf(0, scale[c] * v + shift[c]) / 4")], "the mean of a window"),
        ([(GROWS, "best = fmaxf(0, scale[c] * v + shift[c])")], "where it should only grow"),
        ([("scale[c] * v + shift[c]", "shift[c] * v + scale[c]")], "are exchanged"),
        ([(" + shift[c]", "")], "The shift is missing"),
        ([("k < 4", "k < 1")], "the first value of each window alone"),
        ([(PITCH, f"{FIRST} + k / 2 * width + k % 2")], "too near to one another"),
        ([(PITCH, f"{FIRST} + k * channels")], "four values of one line"),
        ([(PITCH, f"{FIRST} + k / 2 * width * channels + k % 2")], "next channel of the same"),
        ([(PITCH, f"{FIRST} + k / 2 * width + k % 2 * channels")], "not at `window[width]`"),
        ([(PITCH, f"{FIRST} + (k / 2 * (width / 2) + k % 2) * channels")], "not the half of them"),
    ],
    "patch_moments": [
        ([("    if (a == 0)\n", "")], "Row 16 is 16 times as large"),
        ([("n < batch; n += gridDim.x", "n < batch; n += batch")], "takes one digit and ends"),
        ([("int n = blockIdx.x; n < batch; n += gridDim.x", EVERY_DIGIT)], "adds up every digit"),
        (
            [("y = 0; y < 28; y += 2", "y = 0; y < 27; ++y"), (X_LOOP, "int x = 0; x < 27; ++x")],
            "and not at every pixel",
        ),
        (
            [
                ("[30][30]", "[31][31]"),
                ("i < 30 * 30", "i < 31 * 31"),
                ("pixels[i / 30][i % 30]", "pixels[i / 31][i % 31]"),
                ("i / 30 - 1, i % 30 - 1", "i / 31 - 1, i % 31 - 1"),
                ("y = 0; y < 28; y += 2", "y = 0; y < 28; ++y"),
                (X_LOOP, "int x = 0; x < 28; ++x"),
            ],
            "and not at every pixel",
        ),
        (
            [
                ("[30][30];", "[30][30], plain[30][30];"),
                (FILLS, f"{FILLS}{PLAIN_BYTES}"),
                ("products += pixels", "products += plain"),
            ],
            "One of the two pixels of a product is the plain byte",
        ),
        (
            [(f"    }}\n{ADDS}", f"{ADDS}    }}\n")],
            "added once more with its next digit",
        ),
    ],
    "conv1_pool": [
        ([("2 * x + k % 2", "x + k % 2")], "begin two pixels apart"),
        ([("2 * x + k % 2", "x + k % 2"), ("2 * y + k / 2", "y + k / 2")], "lines and two pixels"),
        ([("2 * x + k % 2", "2 * x"), ("2 * y + k / 2", "2 * y")], "are the first one here"),
        ([(LARGEST, "largest = fmaxf(0, scale[c] * sum + shift[c])")], "should only grow"),
        ([(LARGEST, "largest += fmaxf(0, scale[c] * sum + shift[c]) / 4")], "It takes the mean"),
        ([(": 0.328125f", ": 0")], "counts as 0.328125, not as 0"),
        ([(" - 33.0f", "")], "33 must be taken from each byte"),
        ([("scale[c] * sum + shift[c]", "sum + shift[c]")], "The scale is missing"),
        (
            [("scale[c] * sum + shift[c]", "scale[c] * (sum + shift[c])")],
            "The shift is scaled, too",
        ),
        ([("t < 9", "t < 8")], "The last tap is missing"),
        ([("* sum + shift", "* fmaxf(sum, 0) + shift")], "The ReLU stands before batch norm"),
        ([("t % 3 - 1", "t % 3")], "begin in the output's own column"),
        ([("t / 3 - 1", "t / 3")], "begin in the output's own line"),
        ([("weights[c * 9 + t]", "weights[t]")], "the weights of channel 0"),
    ],
    "head": [
        ([(" + bias[k]", "")], "The bias is missing"),
        ([("loss = (", "loss = -(")], "The loss has the wrong sign"),
        ([(LOSS, "")], "The loss is 0 in the lane that adds it up"),
        ([("        loss = (", "        if (lane == 0) loss = (")], "every lane needs it"),
        (
            [("(logf(sum) + largest - z[labels[n]])", "-logf(expf(z[labels[n]] - largest) / sum)")],
            "a softmax that was rounded to 0",
        ),
        ([("expf(z[k] - largest) / sum", "expf(z[k] - largest)")], "not divided by their sum"),
        ([(FOUR_OF_A_LANE, "            z[k] += w[k * 128 + lane] * h[lane];\n")], "one product"),
        (
            [("labels[n])) / batch", "labels[n]))"), ("[labels[n]]) / batch", "[labels[n]])")],
            "Neither the gradients nor the loss",
        ),
        ([(FROM_THE_FIRST, "largest = 0, sum = 0")], "it must not begin at 0"),
        (
            [
                ("sum += expf(z[k] - largest)", "sum += expf(z[k])"),
                ("(expf(z[k] - largest) /", "(expf(z[k]) /"),
                ("logf(sum) + largest -", "logf(sum) -"),
            ],
            "Nothing is subtracted before `expf`",
        ),
        (
            [("/ sum - (k == labels[n])) / batch", "/ sum / batch - (k == labels[n]))")],
            "subtracted after the division",
        ),
    ],
    "update": [
        ([("rate * gradient", "gradient")], "The rate is missing"),
        ([("gradient += parts", "gradient = parts")], "Only the last part is taken"),
        ([("weights[i] -= rate", "weights[i] = -rate")], "what is stored is the step alone"),
        ([("parts[s * count + i]", "parts[i]")], "The first part is taken `splits` times"),
        ([(OWN_WEIGHTS, "int i = 0; i < count; ++i")], "give each of them elements of its own"),
        (
            [("i += gridDim.x * blockDim.x", "i += count")],
            "elements never were, the first at index 256",
        ),
        (
            [
                ("        float gradient = 0;\n", ""),
                ("    for (int i", "    float gradient = 0;\n    for (int i"),
            ],
            "goes on from one weight of a thread to its next",
        ),
    ],
    "split_sums": [
        ([(STRIDED, "int i = 0; i < inputs; ++i")], "as many times as there are parts"),
        (
            [
                ("    float sum = 0;\n", "    float sum = 0;\n    int share = inputs / splits;\n"),
                (STRIDED, "int i = part * share; i < (part + 1) * share; ++i"),
            ],
            "inputs / splits rounds down",
        ),
        (
            [("    float sum = 0;\n", "    if (part > 0)\n        return;\n    float sum = 0;\n")],
            "Only the first part is in the sum",
        ),
        ([("w[i * 128 + o]", "w[o * inputs + i]")], "read as [128][inputs]"),
        ([(STRIDED, f"int i = part * ({SHARE}); i < inputs; ++i")], "goes on to the end"),
        ([(STRIDED, "int i = 0; i < inputs; i += splits")], "begins at product 0"),
        (
            [(STRIDED, f"int i = part * ({SHARE}); i < (part + 1) * ({SHARE}); ++i")],
            "Each part must stop at `inputs`, too",
        ),
        (
            [
                (
                    STRIDED,
                    f"int i = part * ({SHARE}); i < inputs && i <= (part + 1) * ({SHARE}); ++i",
                )
            ],
            "Two parts overlap by a product",
        ),
        (
            [(STRIDED, "int i = part * 64; i < inputs && i < part * 64 + 64; ++i")],
            "the rest belongs to no part",
        ),
    ],
}
ANOTHER = pytest.mark.nightly("by day one mistake of each exercise")


def cases():
    """pytest.param(exercise's name, changes, words) of each."""
    for name, slips in SLIPS.items():
        for number, (changes, words) in enumerate(slips):
            marks = [ANOTHER] if number else []
            yield pytest.param(name, changes, words, id=f"{name}-{words}", marks=marks)


@pytest.mark.parametrize("name, changes, words", list(cases()))
def test_a_natural_mistake_is_named(name, changes, words, tmp_path, small):
    exercise = small(EXERCISES[f"beating_pytorch.{name}"])
    answer = tmp_path / "answer.cu"
    answer.write_text(changed(exercise.solution, *changes))
    outcome = check_answer(exercise, answer, 1)
    assert not outcome.solved
    assert words in repr(outcome)


def test_all_weights_but_a_blocks_own_stand_still():
    """No gradient is so small that a weight which was never written passes for a written one."""
    rng = np.random.default_rng(0)
    for shape in ((704, 1), (704, 2), (704, 5)):
        given = EXERCISES["beating_pytorch.update"].inputs(rng, shape)
        assert (np.abs(given["parts"].sum(0)) > beating_pytorch.SEEN / 2).all()


@pytest.mark.parametrize(
    "condition",
    [
        f"i < (part + 1) * ({SHARE}) && i < inputs",
        f"i < min((part + 1) * ({SHARE}), inputs)",
        f"inputs > i && i < (part + 1) * ({SHARE})",
    ],
)
def test_parts_that_stop_at_the_end_are_taken_for_no_slip(condition):
    loop = f"int i = part * ({SHARE}); {condition}; ++i"
    answer = changed(beating_pytorch.SPLIT_SUMS_CU, (STRIDED, loop))
    assert beating_pytorch.unbounded(answer) is None
    assert beating_pytorch.unbounded(beating_pytorch.SPLIT_SUMS_CU) is None


def test_four_channels_in_one_load_are_right_too(tmp_path, small):
    answer = tmp_path / "answer.cu"
    answer.write_text(beating_pytorch.FOUR_AT_A_TIME)
    assert check_answer(small(EXERCISES["beating_pytorch.bn_relu_pool"]), answer, 1).solved


@pytest.mark.nightly("300 digits, every access watched, take ten seconds")
def test_sums_that_a_float_cannot_hold_are_not_taken_for_a_short_index(tmp_path):
    answer = tmp_path / "answer.cu"
    floats = ("double products", "float products"), ("double singles", "float singles")
    answer.write_text(changed(beating_pytorch.PATCH_MOMENTS_CU, *floats))
    outcome = check_answer(EXERCISES["beating_pytorch.patch_moments"], answer, 1)
    assert not outcome.solved
    assert "keep too few digits" in repr(outcome)
