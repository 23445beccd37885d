"""The table of choices: written from sweeps by rule, and never a variant that cannot be run."""

import pytest

from course.kernels.many_gpus import choices, rivals
from course.kernels.many_gpus.choices import Choice


def sweep(ranks, bytes, choice, seconds):
    of = "" if ranks == 2 else f"{ranks}/"
    name = f"many_gpus/{of}all_reduce/{bytes}/sweep/{choices.label(choice)}"
    return {"name": name, "value": seconds}


SLOW, FAST, WIDE = Choice("one_shot", 1, 128), Choice("two_shot", 8), Choice("push", 132, 512, 4)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table of its own for a test; returns a function that writes entries into it."""
    monkeypatch.setattr(choices, "TABLE", tmp_path / "choices.json")
    choices.table.cache_clear()
    yield lambda entries: choices.write(entries, {"gpu": "a GPU"})
    choices.table.cache_clear()


def test_without_a_table_the_rule_chooses(table):
    assert choices.choose(8, 8).algorithm == "one_shot"
    assert choices.choose(1 << 30, 8).algorithm == "push"


def test_the_fastest_of_a_size_is_taken_and_also_for_shorter_ones(table):
    table(
        [
            sweep(8, 64, SLOW, 3e-6),
            sweep(8, 64, FAST, 2e-6),
            sweep(8, 4096, WIDE, 1e-6),
            sweep(4, 64, SLOW, 1e-6),
        ]
    )
    assert choices.choose(64, 8) == choices.choose(16, 8) == FAST
    assert choices.choose(1024, 8) == choices.choose(1 << 20, 8) == WIDE
    assert choices.choose(64, 4) == SLOW
    assert choices.choose(64, 2) == choices.by_rule(64, 2)


def test_a_tie_goes_to_the_size_before_and_a_new_table_keeps_other_ranks(table):
    table([sweep(8, 64, FAST, 2e-6), sweep(8, 128, SLOW, 2e-6), sweep(8, 128, FAST, 2.01e-6)])
    table([sweep(4, 64, SLOW, 1e-6)])
    assert choices.choose(128, 8) == FAST
    assert choices.choose(64, 4) == SLOW


def test_a_message_that_the_variant_cannot_take_falls_back(table):
    table([sweep(8, 4096, WIDE, 1e-6)])
    assert choices.choose(4096, 8) == WIDE
    assert choices.choose(4090, 8) == choices.by_rule(4090, 8)  # push moves whole 16 bytes
    assert choices.choose(4096, 8, anywhere=True).algorithm == "one_shot"


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_what_is_tried_and_chosen_fits(ranks):
    for bytes in rivals.SIZES:
        tried = rivals.variants(bytes, ranks)
        assert tried and all(choice.fits(bytes) for choice in tried)
        assert choices.choose(bytes, ranks).fits(bytes)
        assert all(1 <= choice.blocks <= choices.CHANNELS for choice in tried)
