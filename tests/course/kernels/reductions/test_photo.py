"""The photograph's packets are whole, mixed, and put in order by a kernel that splits."""

import numpy as np

from course.exercises.reductions import split
from course.kernels.reductions import photo

SIDE = 16


def test_what_arrives_is_what_was_sent_in_another_order():
    sent, received = photo.sent(SIDE), photo.received(SIDE)
    assert (np.diff(sent >> photo.BRIGHTNESS_BITS) > 0).all()
    np.testing.assert_array_equal(np.sort(received), sent)
    assert (received == sent).mean() < 0.1
    np.testing.assert_array_equal(photo.brightness(sent), photo.taken(SIDE))
    assert photo.checksum(SIDE) == photo.brightness(received).sum(dtype=np.int64)


def test_each_pass_puts_the_packets_in_order_by_one_more_bit_of_the_time():
    received = photo.received(SIDE)
    passes = photo.in_order(split, received)
    np.testing.assert_array_equal(passes[0], received)
    np.testing.assert_array_equal(passes[-1], photo.sent(SIDE))
    for bits, packets in enumerate(passes):
        known = packets >> photo.BRIGHTNESS_BITS & (1 << bits) - 1
        assert (np.diff(known) >= 0).all()
    assert len(passes) == 1 + int(photo.sent(SIDE)[-1] >> photo.BRIGHTNESS_BITS).bit_length()
