"""numba.cuda.random: xoroshiro128+ generators, the same numbers as on a GPU.

The generator and its jump are by David Blackman and Sebastiano Vigna (https://prng.di.unimi.it),
with the parameters (55, 14, 36) of its first version, which Numba uses.
"""

import math

import numpy as np

from .arrays import View
from .device_arrays import DeviceNDArray
from .errors import KernelError
from .memory import device_array

xoroshiro128p_dtype = np.dtype([("s0", np.uint64), ("s1", np.uint64)], align=True)
_MASK = (1 << 64) - 1
_JUMP = (0xBEAC0467EBA5FACB, 0xD86B048B86AA9922)
TWO_PI = 2 * math.pi


def __getattr__(name):
    if name == "xoroshiro128p_type":
        from numba.np.numpy_support import from_dtype

        return from_dtype(xoroshiro128p_dtype)
    raise AttributeError(name)


# ---- seeding: whole arrays of states at once


def _step(s0, s1):
    """The next state; works on arrays of uint64."""
    s1 = s1 ^ s0
    u = np.uint64
    return (s0 << u(55) | s0 >> u(9)) ^ s1 ^ (s1 << u(14)), s1 << u(36) | s1 >> u(28)


def _jump(s0, s1):
    """The states 2**64 steps on."""
    to0 = np.zeros_like(s0)
    to1 = np.zeros_like(s1)
    for word in _JUMP:
        for bit in range(64):
            if word >> bit & 1:
                to0 = to0 ^ s0
                to1 = to1 ^ s1
            s0, s1 = _step(s0, s1)
    return to0, to1


def _apply(matrix, s0, s1):
    """Multiply states, vectors of 128 bits, with a matrix given by its columns (two 128 words)."""
    to0 = np.zeros_like(s0)
    to1 = np.zeros_like(s1)
    for bit in range(128):
        source = s0 if bit < 64 else s1
        chosen = np.uint64(0) - (source >> np.uint64(bit % 64) & np.uint64(1))  # all ones, or zero
        to0 ^= chosen & matrix[0][bit]
        to1 ^= chosen & matrix[1][bit]
    return to0, to1


def _states(n, seed, subsequence_start):
    """`n` states, each 2**64 steps after the one before.

    A jump is linear: m jumps are a matrix power.
    """
    states = np.zeros(n, xoroshiro128p_dtype)
    if n == 0:
        return states
    with np.errstate(over="ignore"):
        z = seed + 0x9E3779B97F4A7C15 & _MASK  # SplitMix64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
        z ^= z >> 31
        bits = [1 << bit for bit in range(64)]
        matrix = _jump(np.array(bits + [0] * 64, np.uint64), np.array([0] * 64 + bits, np.uint64))
        s0 = s1 = np.array([z], np.uint64)
        power = matrix
        while subsequence_start:
            if subsequence_start & 1:
                s0, s1 = _apply(power, s0, s1)
            power = _apply(power, *power)
            subsequence_start >>= 1
        while s0.size < n:
            more = _apply(matrix, s0, s1)  # matrix: s0.size jumps at once
            s0 = np.append(s0, more[0])
            s1 = np.append(s1, more[1])
            matrix = _apply(matrix, *matrix)
    states["s0"], states["s1"] = s0[:n], s1[:n]
    return states


def create_xoroshiro128p_states(n, seed, subsequence_start=0, stream=0):
    """A device array of `n` generator states, 2**64 numbers apart from each other."""
    states = device_array(int(n), xoroshiro128p_dtype)
    init_xoroshiro128p_states(states, seed, subsequence_start, stream)
    return states


def init_xoroshiro128p_states(states, seed, subsequence_start=0, stream=0):
    """Fill a device array with generator states."""
    data = states.data if isinstance(states, DeviceNDArray) else states
    data[...] = _states(
        data.shape[0],
        int(seed) & _MASK,
        int(subsequence_start),
    )


# ---- in kernels


def xoroshiro128p_next(states, index):
    """The next random uint64 of generator `index`."""
    if not isinstance(states, View):
        raise KernelError("random states must be the array that create_xoroshiro128p_states made")
    state = states[index]
    s0 = int(state["s0"])
    s1 = int(state["s1"])
    result = s0 + s1 & _MASK
    s1 ^= s0
    state["s0"] = ((s0 << 55 | s0 >> 9) ^ s1 ^ s1 << 14) & _MASK
    state["s1"] = (s1 << 36 | s1 >> 28) & _MASK
    return np.uint64(result)


def xoroshiro128p_uniform_float64(states, index):
    """A float64 in [0, 1)."""
    return np.float64((int(xoroshiro128p_next(states, index)) >> 11) * 2.0**-53)


def xoroshiro128p_uniform_float32(states, index):
    """A float32 in [0, 1) (or, rarely, 1 by rounding, as on a GPU)."""
    return np.float32(xoroshiro128p_uniform_float64(states, index))


def xoroshiro128p_normal_float32(states, index):
    """A float32 from the normal distribution (mean 0, deviation 1), by Box and Muller's method."""
    f = np.float32
    u1, u2 = (
        xoroshiro128p_uniform_float32(states, index),
        xoroshiro128p_uniform_float32(states, index),
    )
    return np.sqrt(f(-2) * np.log(u1)) * np.cos(f(TWO_PI) * u2)


def xoroshiro128p_normal_float64(states, index):
    """As xoroshiro128p_normal_float32, in float64 from float32 uniform numbers, as Numba does."""
    f = np.float64
    u1, u2 = (
        f(xoroshiro128p_uniform_float32(states, index)),
        f(xoroshiro128p_uniform_float32(states, index)),
    )
    return np.sqrt(f(-2) * np.log(u1)) * np.cos(f(TWO_PI) * u2)
