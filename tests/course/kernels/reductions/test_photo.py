"""The photograph's packets are whole, mixed, and put in order by a kernel that splits."""

import numpy as np

from course.exercises.reductions import split
from course.kernels.reductions import photo, scan_uses

SIDE = 16


def test_what_arrives_is_what_was_sent_in_another_order():
    sent, received = photo.sent(SIDE), photo.received(SIDE)
    assert (np.diff(sent >> photo.BRIGHTNESS_BITS) > 0).all()
    np.testing.assert_array_equal(np.sort(received), sent)
    assert (received == sent).mean() < 0.1
    np.testing.assert_array_equal(photo.brightness(sent), photo.taken(SIDE))
    counts = photo.brightness(received) + np.int64(1)
    assert photo.checksum(SIDE) == counts.sum()


def test_each_pass_puts_the_packets_in_order_by_one_more_bit_of_the_time():
    received = photo.received(SIDE)
    passes = scan_uses.by_time(split, received)
    np.testing.assert_array_equal(passes[0], received)
    np.testing.assert_array_equal(passes[-1], photo.sent(SIDE))
    for bits, packets in enumerate(passes):
        known = packets >> photo.BRIGHTNESS_BITS & (1 << bits) - 1
        assert (np.diff(known) >= 0).all()
    assert len(passes) == 1 + int(photo.sent(SIDE)[-1] >> photo.BRIGHTNESS_BITS).bit_length()


def test_with_the_highest_bit_first_the_last_pass_is_by_the_lowest():
    received = photo.received(SIDE)
    passes = scan_uses.by_time(split, received, highest_first=True)
    times = [packets >> photo.BRIGHTNESS_BITS for packets in passes]
    highest = len(passes) - 2
    assert (np.diff(times[1] >> highest) >= 0).all()
    assert (np.diff(times[-1] & 1) >= 0).all()
    assert (np.diff(times[-1] >> highest) < 0).any()
