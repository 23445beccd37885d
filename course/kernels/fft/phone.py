"""The sounds of a telephone's keys: two tones at once, one for the row and one for the column.

press(key), somebody()      the sound of one key: samples, from -1 to 1
call(number)                the sounds of several keys, one after the other
nearest(low, high)          which key two frequencies belong to

The frequencies are those of ITU-T Recommendation Q.23.
"""

import numpy as np

RATE = 8_000  # samples per second
LOW = (697, 770, 852, 941)  # hertz, of the rows
HIGH = (1209, 1336, 1477)  # hertz, of the columns
KEYS = ("123", "456", "789", "*0#")
SECRET = "5"
PRESSED = 0.25  # seconds


def press(key: str, seconds: float = PRESSED) -> np.ndarray:
    """The samples of a key's two tones. ValueError for what is no key."""
    row = next((row for row, keys in enumerate(KEYS) if key in keys), None)
    if row is None or len(key) != 1:
        raise ValueError(f"{key!r} is no key: a telephone has {' '.join(''.join(KEYS))}")
    column = KEYS[row].index(key)
    time = np.arange(round(seconds * RATE)) / RATE
    low = np.sin(2 * np.pi * LOW[row] * time)
    high = np.sin(2 * np.pi * HIGH[column] * time)
    return (low + high) / 2


def somebody() -> np.ndarray:
    """The samples of a key that somebody pressed: of which one, the reader finds out."""
    return press(SECRET)


def call(number: str) -> np.ndarray:
    """[keys, samples]: the sounds of all keys of a number."""
    return np.array([press(key) for key in number])


def nearest(low: float, high: float) -> str:
    """The key whose tones are nearest to two frequencies in hertz."""
    row = np.abs(np.array(LOW) - low).argmin()
    column = np.abs(np.array(HIGH) - high).argmin()
    return KEYS[row][column]
