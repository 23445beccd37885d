"""What the chapter's cells say of a learner's kernels, and what the model says through them."""

import pytest
import torch

from course.exercises import EXERCISES
from course.kernels.language_model import plain, speak, trying
from course.kernels.language_model.network import KERNELS
from utils.tools import yours


@pytest.fixture(scope="module")
def small():
    return speak.model()


@pytest.fixture
def changed(monkeypatch, tmp_path):
    """change(file, old, new): from now on the file is as a learner left it."""

    def change(file, old, new):
        text = (KERNELS / file).read_text()
        assert text.count(old) == 1
        theirs = tmp_path / file
        theirs.write_text(text.replace(old, new))
        for name in ("numbers.cuh",):
            (tmp_path / name).write_text((KERNELS / name).read_text())
        current = yours.current
        is_it = lambda path: theirs if path.name == file else current(path)  # noqa: E731
        monkeypatch.setattr(yours, "current", is_it)
        monkeypatch.setattr(yours, "note", lambda path: "yours")

    yield change
    for cached in (trying.layers, plain.module):
        cached.cache_clear()


@pytest.mark.parametrize("name", trying.CASES)
def test_kernels_as_they_are_are_right(name, capsys):
    trying.tried(name)
    assert capsys.readouterr().out.startswith("✓ right")


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("rms_norm", "squares / width + eps", "squares / rows + eps"),
        ("gate", "y[i] = g / (1 + expf(-g))", "y[i] = g / (1 + expf(g))"),
        ("loss", "- (i == next[row])", "- (i == row)"),
    ],
)
def test_a_changed_kernel_is_told(name, old, new, changed, capsys):
    changed("train_layers.cu", old, new)
    trying.tried(name)
    assert "wrong: " in capsys.readouterr().out


def test_gradients_are_told_one_by_one(capsys):
    trying.gradients()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9 and all("✓" in line for line in lines)


def test_the_kernels_say_what_pytorch_says(small, capsys):
    trying.decoded(small, "The threads of a", count=3)
    assert "✓ PyTorch says the same" in capsys.readouterr().out


def test_a_cache_that_is_off_by_one_is_heard(small, changed, capsys):
    changed("plain.cu", "layer_pages, at, kv_heads", "layer_pages, at + 1, kv_heads")
    trying.decoded(small, "The threads of a", count=3)
    assert "the same" not in capsys.readouterr().out


def test_the_right_turns_cost_nothing_and_the_starters_do(small, tmp_path, capsys):
    words = "The threads of a block share memory, and wait for each other at a barrier."
    exercise = EXERCISES["language_model.turn"]
    losses = []
    for text in (exercise.solution, exercise.starter.split("\n", 2)[2]):
        path = tmp_path / "turn.cu"
        path.write_text(text)
        trying.loss_turned(small, words, path)
        yours, theirs = (part.split(",")[0] for part in capsys.readouterr().out.split(": ")[1:])
        losses.append((float(yours), float(theirs)))
    assert losses[0][0] == losses[0][1]
    assert losses[1][0] > losses[1][1] + 0.1


def test_the_rule_keeps_the_models_distribution(capsys):
    trying.drawn_first(EXERCISES["language_model.accept"].solution, rounds=1000)
    for line in capsys.readouterr().out.splitlines():
        _, wanted, came = (float(word.strip("%, ")) for word in line.split() if "%" in word)
        assert abs(wanted - came) < 5


def test_more_bits_lose_less(small):
    words = "Each thread writes one number, waits at the barrier, and reads its neighbour's."
    losses = [trying.loss_on(small, words, trying.in_bits(small[1], b, 32)) for b in (8, 4, 2)]
    whole = trying.loss_on(small, words)
    assert abs(losses[0] - whole) < 0.05 < losses[2] - whole
    assert losses[2] > losses[1]


def test_a_row_is_rounded_by_its_own_scale():
    weight = torch.tensor([[1.0, -0.5, 0.26, 100.0]])
    rounded = trying.in_bits({"qkv": weight, "norm": weight}, 3, 2)
    assert rounded["norm"] is weight
    assert rounded["qkv"][0, :2].tolist() == pytest.approx([1.0, -2 / 3], abs=0.34)
    assert rounded["qkv"][0, 3] == 100


def test_top_p_of_a_learner_is_what_is_drawn_from(small):
    solution = EXERCISES["language_model.top_p"].solution
    assert trying.drawn(solution, small, "The", 1e-6).startswith("The")


def test_speech_goes_on_with_what_was_begun(small):
    said = speak.speak(small, "The threads of a", 5, speak.Sampling(temperature=0))
    assert said.startswith("The threads of a") and "\n" not in said
    again = speak.speak(small, "The threads of a", 5, seed=3)
    assert again == speak.speak(small, "The threads of a", 5, seed=3)
