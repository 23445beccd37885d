"""Philox in NumPy: the published vectors, and the numbers that cuRAND's program draws."""

import pytest

from course.libraries import programs
from course.libraries.philox import Philox, four

ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    "counter, key, numbers",
    [  # https://github.com/DEShawResearch/random123, tests/kat_vectors
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ONES,) * 4, (ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ],
)
def test_it_gives_the_published_numbers(counter, key, numbers):
    assert four(counter, key) == numbers


def test_an_offset_goes_on_where_the_sequence_was():
    whole = Philox(5, 7, 0)
    numbers = [whole() for _ in range(11)]
    later = Philox(5, 7, 6)
    assert [later() for _ in range(5)] == numbers[6:]


def test_a_uniform_number_is_above_0_and_up_to_1():
    generator = Philox(1, 0, 0)
    numbers = [generator.uniform() for _ in range(1000)]
    assert 0 < min(numbers) < 0.01 and 0.99 < max(numbers) <= 1


def test_it_gives_the_numbers_of_the_program():
    text = programs.output_of("pi", 64)
    generator = Philox(2026, 1, 0)
    assert f"sequence: {generator()} {generator()} {generator()}\n" in text
