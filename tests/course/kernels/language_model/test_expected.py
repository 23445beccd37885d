"""The model of a token's time: its limits, and what moves it."""

from dataclasses import replace

import pytest

from course.kernels.language_model import expected
from course.kernels.language_model.expected import Machine
from course.kernels.language_model.problem import ONE_BILLION

FREE = Machine(rate=4.4e12, barrier=0, trip=0, stage=0, attention=0)
USUAL = Machine(rate=4.4e12)


def test_without_waits_it_is_the_bytes():
    by_bytes = 2 * ONE_BILLION.parameters / FREE.rate
    assert expected.token(ONE_BILLION, FREE) == pytest.approx(by_bytes, rel=1e-3)


def test_without_bytes_it_is_the_waits():
    machine = replace(USUAL, rate=1e20, stage=0)
    of_a_layer = 5 * machine.barrier + 4 * machine.trip + machine.attention
    waits = ONE_BILLION.layers * of_a_layer + machine.trip
    assert expected.token(ONE_BILLION, machine) == pytest.approx(waits, rel=1e-3)


def test_a_deep_ring_hides_waits_and_a_shallow_one_does_not():
    times = [expected.token(ONE_BILLION, USUAL, depth=depth) for depth in (1, 2, 4, 8, 64)]
    assert times == sorted(times, reverse=True)
    assert times[0] > 1.15 * times[3]
    by_bytes = 2 * ONE_BILLION.parameters / USUAL.rate
    assert 0.99 * by_bytes < times[-1] < 1.05 * by_bytes


def test_fewer_bits_leave_the_waits():
    sixteen, four = (
        expected.token(ONE_BILLION, USUAL, stage_bytes=bits << 11, depth=96 // bits, bits=bits)
        for bits in (16, 4)
    )
    assert 1.5 < sixteen / four < 3.5
