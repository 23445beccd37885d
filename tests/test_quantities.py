"""A number in prose is read as its reader takes it."""

import pytest

from tests.quantities import last_in


@pytest.mark.parametrize(
    "words, allowed, refused",
    [
        ("twice the time", (1.85, 2.15), (1.7, 2.3)),
        ("about twice as fast", (1.75, 2.25), (1.6, 2.4)),
        ("nearly twice as long", (1.75, 2.0), (1.6, 2.1)),
        ("more than twice as fast", (2.1, 3.9), (1.9, 5)),
        ("at most three times as fast", (1.6, 3), (1.4, 3.1)),
        ("at least one and a half times as fast", (1.5, 2.9), (1.4, 3.1)),
        ("36 times", (35.6, 36.4), (35.4, 36.6)),
        ("170 times", (165.5, 174.5), (164, 176)),
        ("some 170 times", (150, 190), (140, 200)),
        ("1,024 times", (1023.6, 1024.4), (1022, 1026)),
        ("five to six times as long", (5, 6), (4.9, 6.1)),
        ("a fifth to a sixth of the time", (0.17, 0.2), (0.15, 0.21)),
        ("halves the time", (0.46, 0.54), (0.44, 0.56)),
        ("doubles the time", (1.85, 2.15), (1.7, 2.3)),
        ("an eighth of it", (0.115, 0.135), (0.11, 0.14)),
        ("two thirds of the time", (0.62, 0.72), (0.5, 0.75)),
        ("a fifth more speed", (1.17, 1.23), (1.15, 1.25)),
        ("a third less", (0.62, 0.72), (0.55, 0.75)),
        ("3 % faster", (1.026, 1.034), (1.02, 1.04)),
        ("less than one percent more speed", (1.001, 1.009), (0.999, 1.011)),
        ("half as fast again", (1.46, 1.54), (1.44, 1.56)),
        ("half as fast again and more", (1.5, 1.9), (1.4, 2.1)),
        ("as fast as before", (0.98, 1.02), (0.96, 1.04)),
        ("about as fast as rung 3", (0.91, 1.09), (0.89, 1.11)),
        ("82 % of rung 16's speed", (0.816, 0.824), (0.81, 0.83)),
        ("0.97 of the dense product's speed", (0.966, 0.974), (0.964, 0.976)),
    ],
)
def test_a_ratio_allows_what_its_words_do(words, allowed, refused):
    said = last_in(words)
    assert said.unit == "1"
    assert [value for value in allowed if not said.allows(value)] == []
    assert [value for value in refused if said.allows(value)] == []


@pytest.mark.parametrize(
    "words, unit, value",
    [
        ("about 50 µs each", "s", 50e-6),
        ("a microsecond or so", "s", 1e-6),
        ("some 750 TFLOP/s", "FLOP/s", 750e12),
        ("4.1 TB/s", "B/s", 4.1e12),
    ],
)
def test_a_unit_is_read(words, unit, value):
    said = last_in(words)
    assert said.unit == unit and said.allows(value)
    assert not said.allows(2 * value) and not said.allows(value / 2)


@pytest.mark.parametrize(
    "words, of",
    [
        ("twice as fast", "speed"),
        ("a third more speed", "speed"),
        ("twice the time", "time"),
        ("4 % slower", "time"),
        ("36 times", None),
    ],
)
def test_words_say_whether_they_speak_of_a_time(words, of):
    assert last_in(words).of == of


def test_the_last_number_counts_and_markup_does_not():
    said = last_in("Half the *size* of [rung](3.html), **twice** the\ntime")
    assert said.words == "twice the time"


@pytest.mark.parametrize(
    "words",
    [
        "that costs nothing",
        "rung 9",
        "three ideas",
        "the third rung",
        "twice as fast as what stood in the course's first chapter, long ago",
    ],
)
def test_what_is_no_number_is_refused(words):
    with pytest.raises(ValueError):
        last_in(words)
