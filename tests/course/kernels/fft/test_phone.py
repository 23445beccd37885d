"""A telephone's keys sound as two tones, by which each is known again."""

import numpy as np
import pytest

from course.kernels.fft import phone

ALL = "".join(phone.KEYS)


@pytest.mark.parametrize("key", ALL)
def test_a_key_is_known_by_its_two_loudest_tones(key):
    sound = phone.press(key, seconds=1)  # bin k is k Hz
    loud = abs(np.fft.rfft(sound))
    low, high = loud[:1000].argmax(), 1000 + loud[1000:].argmax()
    assert low in phone.LOW and high in phone.HIGH
    assert phone.nearest(low, high) == key
    assert abs(sound).max() <= 1


def test_a_call_is_its_keys_one_after_the_other():
    sounds = phone.call("0#5")
    assert sounds.shape == (3, round(phone.PRESSED * phone.RATE))
    np.testing.assert_array_equal(sounds[2], phone.somebody())


def test_tones_that_are_a_little_off_still_name_a_key():
    assert phone.nearest(760, 1340) == "5"
    assert phone.nearest(940, 1200) == "*"


@pytest.mark.parametrize("key", ["A", "", "12"])
def test_what_is_no_key_is_refused(key):
    with pytest.raises(ValueError, match="is no key"):
        phone.press(key)
