"""cuRAND's generator Philox4x32-10 in NumPy, bit for bit.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011): no state that
is stepped on, but a counter that is encrypted. Four 32-bit numbers come of each count. cuRAND puts
the sequence's number into the counter's upper half and counts in the lower.
"""

import numpy as np

ROUNDS = 10
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85  # added to the two halves of the key after each round
MASK = 0xFFFFFFFF


def four(counter: tuple, key: tuple) -> tuple:
    """The four 32-bit numbers of a counter (four words) and a key (two words), all Python ints."""
    a, b, c, d = counter
    left, right = key
    for _ in range(ROUNDS):
        first = MULTIPLIERS[0] * a
        second = MULTIPLIERS[1] * c
        a = second >> 32 ^ b ^ left
        c = first >> 32 ^ d ^ right
        b = second & MASK
        d = first & MASK
        left = left + WEYL[0] & MASK
        right = right + WEYL[1] & MASK
    return a, b, c, d


class Philox:
    """What curand_init(seed, sequence, offset, &state) makes; a call gives what curand() gives."""

    def __init__(self, seed: int, sequence: int, offset: int):
        self._key = seed & MASK, seed >> 32 & MASK
        self._sequence, self._place = sequence, offset

    def __call__(self) -> int:
        """The next number of the sequence, from 0 to 2³² - 1."""
        count, which = divmod(self._place, 4)
        self._place += 1
        upper = self._sequence & MASK, self._sequence >> 32 & MASK
        return four((count & MASK, count >> 32 & MASK, *upper), self._key)[which]

    def uniform(self) -> np.float32:
        """The next number as curand_uniform() gives it: above 0, up to 1."""
        return np.float32(self() * 2.0**-32 + 2.0**-33)
