"""Expected outputs of the conformance programs, worked out in Python without running any kernel.

Each function below is named after a program in cuda_c/ and returns the text that it must print,
from the program's own arithmetic, NumPy's rounding or the CUDA manuals' rules. It knows nothing of
the CPU engine.
`python -m tests.conformance.derive` writes the .out file of every program that has not been
recorded on a GPU (see record.py); recording shows where the GPU and these values differ, so that
each checks the other.
"""

import itertools
import json
import math
from pathlib import Path

import numpy as np

from . import derive_ptx, derive_textures

FOLDER = Path(__file__).with_name("cuda_c")
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def row(*values, end=" \n"):
    return " ".join(str(v) for v in values) + end


def g(x):
    """C's %g."""
    return f"{x:g}"


# ---- indices, language


@program
def index_1d():
    return row(*(300000 + 1000 * (i // 4) + i % 4 for i in range(10)))


@program
def index_2d():
    rows, cols, text = 5, 7, ""
    for r in range(rows):
        for c in range(cols):
            text += f"{10 * ((r // 2) * 3 + c // 3) + (r % 2) * 3 + c % 3:3d}"
        text += "\n"
    return text


@program
def index_3d():
    nx, ny = 4, 3
    weighted = [i % nx + 10 * (i // nx % ny) + 100 * (i // (nx * ny)) for i in (0, 3, 4, 12, 71)]
    return "dim3 2 3 2, unset 1 1 1\nvisited once: 72 of 72\n" + row(*weighted, end="\n")


@program
def grid_stride():
    total = sum(i * i for i in range(1000))
    return "".join(f"{grid} x {block}: {total}\n" for grid in (1, 3, 50) for block in (1, 96, 1024))


@program
def templates():
    first = "".join(f"{3 * (i + 1)} {0.5 * i * 5:.1f} {10 + i} {1.25 * 2:.2f}\n" for i in range(4))
    return first + f"{-(1 + 2 + 3 + 4)} {-6} {9} {20 + 3}\n"


@program
def overloads():
    return f"1 2 3 4\n{1 + 100}\n{2 + 200}\n{10 + 1}\n"


@program
def default_args():
    def line(value, step):
        return row(*(value + step * i + 2 * i + 100 * i for i in range(3)), end="\n")

    return line(7, 1) + line(50, 1) + line(50, 1000)


@program
def launch_forms():
    total = 6 * 1 + 2 * 10 + 8 * 100 + 4 * 1000 + 3 * 10000 + 100000 + 2 * 2**20 + 5 + 0
    return f"{total}\n"


@program
def constant_memory():
    def line(primes):
        return (
            "".join(f"{p * 10 + (0.75 if i % 2 else 0.5):.2f} " for i, p in enumerate(primes))
            + "\n"
        )

    return line([2, 3, 5, 7, 11]) + "3\n" + line([2, 3, 5, 13, 17])


@program
def managed_variable():
    return f"{5 + 1 + 4 * 2} 10 20 30\n"


@program
def device_symbols():
    return f"{100 + 1 + 10} 0 {111} {4 + 2}\n{7}, size {2 * 3 * 8}\n{40 + 2}\n"


@program
def shared_static():
    text = ""
    for b in range(3):
        text += row(*(100 * b + 15 - t for t in range(16)))
        text += row(*(100 * b + 10 * (t % 4) + t // 4 for t in range(16)))
    return text


@program
def shared_extern():
    n = 6
    out = []
    for t in range(n):
        u = n - 1 - t
        out.append(u + 0.5 + 10 * u + 100 * u + 1000 * (t % 2 + 1))
    typed = [2 * ((t + 1) % n) for t in range(n)]
    return "".join(f"{x:.1f} " for x in out) + "\n" + "".join(f"{x} {x}  " for x in typed) + "\n"


@program
def shared_large():
    return f"cudaErrorInvalidValue\ncudaSuccess\ncudaSuccess\n{15 * 1024 - 1}\n"


@program
def launch_bounds():
    return f"cudaSuccess\n{64 + 128 * 100}\nrefused\n{64 + 128 * 100}\n"


@program
def struct_by_value():
    return f"{1 + 2 + 3 + 100} {4 + 5 + 6 + 100}, host copy 1\n"


@program
def classes():
    c = (1 + 2 * 3, 2 + 2 * 4)
    areas = 2 * (3 * 3) + 2 * (3 * 2 * 2)
    exponent_of_one = 0x3F800000 >> 23
    return row(c[0], c[1], 1 * 3 + 2 * 4, areas, 7 + 10 * 12, exponent_of_one, 5 * 2 + 1)


@program
def reference_parameters():
    first, second, add = 1, 2, 10
    lines = ""
    for _ in range(2):
        first, second = second + add, first
        lines += row(first, second, end="\n")
    return lines + f"cudaSuccess {add + 2 * 32 * 3}\n"


@program
def template_values():
    less = more = 2 < 3
    return f"cudaSuccess 1 1 1 {8 + 4} {less + 10 * more}\n"


@program
def argument_destructors():
    threads, launches_by_value = 2 * 32, 1
    ended = launches_by_value + 1  # and the variable's own
    return (
        f"visits {threads}, ended {launches_by_value}\n"
        f"ended {ended}\n"
        "value 7, copies left 0\n"
        f"visits {7 + threads}, ended {ended + 1}\n"
        f"ended {ended + 1}\n"
    )


@program
def control_flow():
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    def collatz(n):
        return 0 if n == 1 else 1 + collatz(3 * n + 1 if n % 2 else n // 2)

    text = ""
    for t in range(8):
        kept = [x for x in ((5, 4, 3, 2, 1)[(i + t) % 5] for i in range(5)) if x != t]
        text += f"{''.join(map(str, kept))} {fibonacci(t + 5) * 1000 + collatz(t + 1)}\n"
    return text


@program
def function_pointers():
    lines = [
        [t * 10 if t % 2 else t + 10 for t in range(4)],
        [t * 7 for t in range(4)],
        [t + 5 for t in range(4)],
    ]
    return "".join(row(*line, end="\n") for line in lines)


@program
def host_device():
    return f"host 1 device 2 cube {2**3} {4**3}\n"


@program
def device_printf():
    # The manual: printf on the device returns the number of its arguments, not of characters.
    return (
        "before\nthread 1 of block 1\n"
        f"{42:5d}|{42:<5d}|{42:05d}|{255:x}|{255:X}|{8:o}|A|%\n"
        f"{3.14159:.3f} {12345.678:8.2e} {g(0.5)} string\n"
        f"-1234567890123 {2**64 - 1} 8\nno arguments\n0\nafter\n"
    )


@program
def device_assert():
    return (
        "cudaSuccess\n" + 3 * "cudaErrorAssert\n" + "cudaSuccess\n"
    )  # the last error is handed out once


# ---- arithmetic


@program
def math_float():
    exact = [
        1.5,
        0.25,
        3,
        1.5,
        -2,
        -1,
        2,
        3,
        -2,
        1.5,
        -0.5,
        10,
        1,
        -1,
        -3,
        1024,
        0.125,
        10,
        5,
        12,
        2.25,
        1,
        0,
        7,
        2,
        2.0**-23,
        0.75 + 4,
        0.25 + 30,
        1 + 2 + 4 + 8,
    ]
    near = [
        math.sin(0.5),
        math.cos(0.5),
        math.tan(0.5),
        math.asin(0.5),
        math.acos(0.5),
        math.atan(0.5),
        math.atan2(1, -2),
        math.sinh(0.5),
        math.cosh(0.5),
        math.tanh(0.5),
        math.exp(0.5),
        math.expm1(0.5),
        math.log(5),
        math.log1p(0.5),
        math.log10(5),
        math.erf(0.5),
        math.erfc(0.5),
        math.lgamma(4.5),
        math.gamma(4.5),
        math.sin(math.pi / 4),
        math.cos(math.pi / 4),
        10**0.5,
        math.sin(1),
        math.cos(1),
        (1 + math.erf(0.5 / math.sqrt(2))) / 2,
        0.4769362762044699,
        5 ** (-1 / 3),
        1 / math.sqrt(5),
    ]

    def lines(texts):
        return "".join(" ".join(texts[i : i + 10]) + "\n" for i in range(0, len(texts), 10))

    return lines([g(x) for x in exact]) + lines([f"{x:.4f}" for x in near])


@program
def math_double():
    values = [
        math.sqrt(2),
        math.e,
        math.log(10),
        math.sqrt(2),
        math.sin(1),
        math.cos(1),
        3 * math.pi / 4,
        2 ** (1 / 3),
        math.sqrt(2),
        -1.0,
        1 / math.sqrt(2),
        1,
        2,
        2,
        2.5,
        0.1 + 0.2,
        0.1 * 3,
        1 / 3,
        1 / 3,
        math.sqrt(3),
        7,
        -1,
        4,
        3,
        3,
        3.5,
    ]
    text = "".join(" ".join(f"{x:.12f}" for x in values[i : i + 5]) + "\n" for i in range(0, 25, 5))
    return text + f"{values[25]:.12f}\n{float(np.sqrt(np.float32(2))):.7f} {4 + 80 + 400 + 8000}\n"


@program
def integer_intrinsics():
    ones = 0xFFFFFFFF
    bytes_of = [0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77]
    permuted = sum(bytes_of[s] << (8 * i) for i, s in enumerate([0, 5, 2, 7]))
    both = (0x0F << 32) | 0x80000001
    values = [
        8,
        63,
        31,
        32,
        63,
        0,
        8,
        41,
        1 << 31,
        (1 << 62) >> 32,
        (2**30 * 8) >> 32,
        (ones * ones) >> 32,
        (2**62 * 12) >> 64,
        ((2**64 - 1) * 16) >> 64,
        -15,
        1000 * 1000,
        abs(3 - 10) + 100,
        abs(3 - 10) + 100,
        (5 + 8) // 2,
        (5 + 8 + 1) // 2,
        permuted,
        (both << 4 >> 32) & ones,
        (both >> 4) & ones,
        (1 + 2 + 3 + 4) * 2 + 5,
        0xFF * 2,
        0x02000304,
        0x04040001,
        0x02FF0401,
        0xFF00FF00,
        3 + 6,
    ]
    return "".join(row(*values[i : i + 5], end="\n") for i in range(0, 30, 5))


def float32_down(x):
    """The largest float32 that is not above x."""
    nearest = np.float32(x)
    return float(nearest if float(nearest) <= x else np.nextafter(nearest, np.float32(-np.inf)))


@program
def conversions():
    def clamp(x, low, high):
        return int(min(max(x, low), high))

    i32, u32, i64 = (-(2**31), 2**31 - 1), (0, 2**32 - 1), (-(2**63), 2**63 - 1)
    ints = []
    for x in (2.5, -2.5, 3.5, float(np.float32(1e20)), float(np.float32(-1e20))):
        ints += [clamp(f(x), *i32) for f in (round, math.trunc, math.ceil, math.floor)]
        ints += [clamp(round(x), *u32), clamp(math.trunc(x), *i64)]
    ints += [
        0,
        round(-7.5),
        -8,
        0,
    ]  # the manual: a NaN becomes 0, a value out of range the nearest in range
    ints += [
        int(np.float32(-1).view(np.int32)),
        int(np.float32(1.5).view(np.uint32)),
        int(np.float64(1).view(np.int64)),
    ]
    ints += [
        int((np.float64(-2).view(np.uint64) >> np.uint64(32)).astype(np.uint32).view(np.int32))
    ]
    ints += [
        int(
            (np.float64(0.1).view(np.uint64) & np.uint64(2**32 - 1))
            .astype(np.uint32)
            .view(np.int32)
        )
    ]
    ints += [0x3FF80000 << 32]
    one = np.float32(1)
    third = float(np.float32(1.1)) ** 2  # exact in float64: 24 + 24 bits
    above, below = np.nextafter(one, np.float32(2)), np.nextafter(one, np.float32(0))
    up = np.float32(np.nextafter(np.float32(float32_down(third)), np.float32(2)))
    # 1.1f * 1.1f - 1.21f in exact arithmetic, then rounded once
    fused = np.float32(third - float(np.float32(1.21)))
    floats = [
        np.int32(0x40490FDB).view(np.float32),
        1,
        3,
        16777216,
        16777218,
        float32_down(4294967295),
        float32_down(0.1),
        np.nextafter(np.float32(float32_down(0.1)), one),
        above,
        below,
        float32_down(third),
        up,
        one / np.float32(3),
        np.sqrt(np.float32(2)),
        one / np.float32(3),
        fused,
    ]
    text = "".join(row(*ints[i : i + 6], end="\n") for i in range(0, 40, 6))
    return text + "".join(
        " ".join(f"{float(x):.9g}" for x in floats[i : i + 4]) + "\n" for i in range(0, 16, 4)
    )


@program
def vector_types():
    text = "8 12 16 16 4\n8 4 16 16 4\n" + f"{32} 16 6 16 12\n"
    for i in range(4):
        x, y, z, w = (4 * i + k for k in range(4))
        text += f"{w + 3 + 1 + 1.5:.1f} {z:.1f} {y:.1f} {x:.1f}  {x} {i}\n"
    return text


def half(x):
    return np.float16(np.float64(x))


@program
def half_precision():
    a, b = half(1.5), half(2.25)
    out = [
        a + b,
        half(a * b) - b,
        half(1.5 * 2.25 + 2.25),
        a / b,
        np.sqrt(b),
        -a,
        1 + 0 + 4,
        2.25 + 8,
        2 + 10 * 2,
        half(2049),
        half(2048 - 0.5),
        1 + 2 * 1,
        half(half(a + b) * half(2)),
    ]
    inputs = [
        1,
        0.1,
        65504,
        65519,
        65520,
        6.1e-5,
        5.97e-8,
        2.9e-8,
        -0.0,
        1.00048828125,
        1.00146484375,
    ]
    with np.errstate(over="ignore"):
        bits = [int(np.float16(np.float32(x)).view(np.uint16)) for x in inputs]
    tenth = int(np.float16(np.float32(0.1)).view(np.uint16))
    down = tenth if float(np.float16(np.float32(0.1))) <= float(np.float32(0.1)) else tenth - 1
    bits += [down, down + 1, down, int(half(1 / 3).view(np.uint16))]
    text = (
        "".join(g(float(x)) + " " for x in out) + "\n" + "".join(f"{x:04x} " for x in bits) + "\n"
    )
    return text + f"2 {g(float(np.float16(np.float32(3.14159))))}\n"


PROGRAMS["half"] = PROGRAMS.pop("half_precision")  # `half` is the rounding function here


@program
def half2():
    line = "".join(f"{g(2 * i + 10)} {g(2 * (i + 0.5) + 10)} " for i in range(4))
    return line + "\n" + row(g(5.5), g(-1.75), g(6), g(-0.5), 4, g(0.25), -2, g(1.5), 1, 4)


def bfloat16_bits(x):
    """Round a float32 to nearest even at 16 bits."""
    bits = int(np.float32(x).view(np.uint32))
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def bfloat16(x):
    return float(np.uint32(bfloat16_bits(x) << 16).view(np.float32))


@program
def bfloat16_precision():
    out = [
        bfloat16(3.75),
        bfloat16(1.5 * 2.25),
        bfloat16(1.5 * 2.25 + 1.5),
        bfloat16(-0.75),
        bfloat16(257),
        bfloat16(259),
        1 + 0 + 4,
        1.5,
        1.0,
        1,
    ]
    bits = [bfloat16_bits(x) for x in (1, 0.1, -3.14159, 1.00390625, 1.01171875, 1e-40)]
    return "".join(g(x) + " " for x in out) + "\n" + "".join(f"{x:04x} " for x in bits) + "\n"


PROGRAMS["bfloat16"] = PROGRAMS.pop("bfloat16_precision")


# ---- warps and blocks


@program
def warp_shuffle():
    lanes = range(32)
    lines = [
        [50] * 32,
        [10 * (i - 3 if i >= 3 else i) for i in lanes],
        [10 * (i + 7 if i + 7 < 32 else i) for i in lanes],
        [10 * (i ^ 9) for i in lanes],
        [i * (i + 1) // 2 for i in lanes],
    ]
    text = "".join(row(*line, end="\n") for line in lines)
    return text + f"{31.25:.2f} {1.25:.2f} 7 0.5 15.5 {31 * 32 // 2}\n"


@program
def warp_shuffle_width():
    lanes = range(32)

    def segment(i, width):
        return i // width * width

    lines = [
        [segment(i, 8) + 2 for i in lanes],
        [segment(i, 8) + 13 % 8 for i in lanes],
        [i - 2 if i - 2 >= segment(i, 4) else i for i in lanes],
        [i + 3 if i + 3 < segment(i, 16) + 16 else i for i in lanes],
        [i ^ 1 for i in lanes],
        # xor of 5 leaves a segment of 4: earlier segments can be read, a later one gives the lane's
        # own value
        [i ^ 5 if (i ^ 5) < segment(i, 4) + 4 else i for i in lanes],
        [segment(i, 4) + (i + 1) % 4 for i in lanes],
    ]
    return "".join(row(*line, end="\n") for line in lines)


@program
def warp_vote():
    text = ""
    for warp in range(2):
        any_ = int(any(lane == 40 - warp * 20 for lane in range(32)))
        all_ = int(all(lane < 32 - warp for lane in range(32)))
        low = sum(1 << lane for lane in range(8) if lane % 3 == warp)
        text += f"aaaaaaaa {any_} {all_} {low:02x}\n"
    return text


@program
def warp_match():
    def same(key, lane):
        return sum(1 << other for other in range(32) if key(other) == key(lane))

    masks = [same(lambda i: i // 5, lane) for lane in (0, 4, 5, 24, 31)]
    masks += [same(lambda i: i % 2, lane) for lane in (0, 1)]
    masks += [0xFFFFFFFF, 0]
    return "".join(f"{m:08x} " for m in masks) + "\n1 0\n"


@program
def warp_reduce_sync():
    unsigned = [sum(range(32)), 3, 62, 64, 2**32 - 1, 2**31 - 1, 28 + 29 + 30 + 31]
    return row(*unsigned) + f"{-sum(range(32))} {5 - 31} {31 - 40}\n"


@program
def warp_masks():
    def value(t):
        lane = t % 32
        return (t - lane + 4) if lane % 2 == 0 else t ^ 2

    out = [value(t ^ 1) + 1000 * (16 if t < 32 else 8) for t in range(48)]
    return "".join(row(*out[i : i + 16], end="\n") for i in range(0, 48, 16))


@program
def barrier_counts():
    return "35 1 0 1 0 \n" + row(
        *((i + 25) % 70 for i in range(0, 70, 10)), (69 + 25) % 70, end="\n"
    )


@program
def fence_last_block():
    return f"{sum(i % 17 for i in range(10000))}\n" * 3


# ---- atomics


@program
def atomics_int():
    threads = range(256)
    values = [t * 7 % 11 - 5 for t in threads]
    xor = 0
    for t in threads:
        xor ^= 1 << (t % 20)
    total = sum(threads)
    ints = [total, -total, min(values), max(values), 1023 & ~31, 511, xor, 256, total, 1, 1, 1]
    high = 3000000000
    wrapped = 256 * 0x80000001 % 2**32
    xor_all = 1
    for t in threads:
        xor_all ^= t
    down = 0
    for _ in threads:
        down = 6 if down == 0 or down > 6 else down - 1
    unsigned = [
        256 % 10,
        down,
        high,
        high + 255,
        wrapped,
        (-256) % 2**32,
        0xFFFFFF00,
        255,
        xor_all,
        77,
        6,
    ]
    return row(*ints, 1, end="\n") + row(*unsigned)


@program
def atomics_64():
    n = 300
    xor = 0
    for t in range(n):
        xor ^= t << 40
    values = [
        sum(range(n)) << 30,
        1 << 60,
        (1 << 60) + n - 1,
        0,
        2**50 - 1,
        xor,
        123456789012345,
        1 << 63,
        (5 - n) % 2**64,
    ]
    return "".join(f"{v}\n" for v in values) + f"{-(n - 1)} {n - 1 - 1000}\n"


@program
def atomics_float():
    n = 500
    values = [1 + n * 0.25, 2 + n * 2, 8.5, -1 + n * 0.125, 50 * 1.5, 50, -100]
    return row(*(g(v) for v in values), end="\n")


@program
def atomics_cas():
    largest = max(i * 37 % 101 for i in range(256)) * 0.5
    return f"{g(largest)} {g(3 * 2.0**20)} {40 * 3}, list 64 {sum(range(64))}\n"


@program
def atomics_scope():
    return "100 200 -49 9 63  49 49 4 4  50\n"


@program
def histogram_shared():
    counts, state = [0] * 256, 1
    for _ in range(20000):
        state = (state * 1664525 + 1013904223) % 2**32
        counts[(state >> 24) & (state >> 16) & 255] += 1
    return f"0 wrong, bins 0, 1, 255: {counts[0]} {counts[1]} {counts[255]}\n"


# ---- cooperative groups, nested launches, clocks


@program
def cg_block():
    return f"{sum(range(1, 33))} {32 + 100 * 32 + 0} {7 + 100 * 3 + 10000 * 8 + 1000000 * 4}\n"


@program
def cg_tile_large():
    text = ""
    for size in (64, 256, 512):
        text += "no error\n"
        for first in range(0, 512, size):
            tile = range(first, first + size)
            text += row(
                sum(tile),
                max(t % 7 * 10 + t % 3 for t in tile),
                int(70 in tile),
                int(tile[-1] < 128),
                first + 3,
                tile[-1],
                512 // size,
                size // 16,
                end="\n",
            )
    return text


@program
def cde_copies():
    out = [3 * i + 1 for i in range(1024)]
    return f"no error\n{out[0]} {out[-1]} {sum((i + 1) * v for i, v in enumerate(out))}\n"


@program
def cg_tile():
    picked = range(0, 64, 7)
    lines = [[], [], [], []]
    for t in picked:
        eight = t // 8 * 8
        lines[0].append(32 + 100 * sum(range(eight, eight + 8)) + 1000000 * 4)
        lines[1].append(t // 32 + 10 * 2 + 100 * (t % 8) + 1000 * (t % 32 // 8))
        votes = sum(1 << i for i in range(8) if (eight + i) % 3 == 0)
        any_, all_ = int(eight <= 9 < eight + 8), int(t // 4 * 4 + 3 < 60)
        up = t - 1 if t % 4 else t
        lines[2].append(votes + 1000 * any_ + 2000 * all_ + 10000 * up + 1000000 * (t ^ 3))
        lines[3].append(sum(1 << i for i in range(8) if (eight + i) // 3 == t // 3))
    return "".join(row(*line, end="\n") for line in lines)


@program
def cg_coalesced():
    kept = [i for i in range(1000) if i % 3 == 0]
    # the coalesced threads are lanes 1, 5, ..., 29: rank 2 is lane 9; ranks 0, 1, 2 voted: 0b111
    return f"kept {len(kept)}, sum {sum(kept)}\n8 9 29 7\n"


@program
def cg_grid():
    n = 500
    a = [int(i == 0) for i in range(n)]
    for _ in range(6):
        a = [a[i - 1] + a[(i + 1) % n] for i in range(n)]
    return "cudaSuccess cudaSuccess\n" + row(*(a[i % n] for i in range(n - 7, n + 8)))


@program
def cg_reduce():
    tile = range(16, 32)
    thirds = [t for t in tile if t % 3 == 0]
    others = [t for t in tile if t % 3]
    assert 20 in others and 21 in thirds
    values = [
        sum(tile),
        min(100 - t for t in tile),
        max(t * 3 % 16 for t in tile),
        2**16 - 1,
        sum(range(16, 20)),
        5,
        len(thirds),
        thirds.index(21),
    ]
    return row(*values, g(2.0**5), end="\n")


@program
def dynamic_parallelism():
    return "cudaSuccess\n" + row(*(2 * (100 + i) for i in range(12)))


@program
def clocks():
    return "1 1 1\n"


# ---- the runtime


@program
def streams():
    return f"{(0 + 3) * 7 + 100} {1 + 10}\ncudaSuccess cudaSuccess\ncudaSuccess 1\n"


@program
def events():
    return "cudaErrorInvalidResourceHandle\ncudaSuccess 1\ncudaErrorInvalidResourceHandle\n"


@program
def memory_kinds():
    return "1099 2099 3099\ncudaSuccess\n0\n1 1 4 23\n0 0 22\n1010101 1010101 0\n"


@program
def copies():
    a = list(range(12))
    e = a[6:] + a[:6]
    text = row(*e)
    e[5:7], e[9:11] = a[6:8], a[10:12]
    text += row(*e)
    b = a[:4] + [-1] * 4 + [e[4]] + e[9:]
    return text + row(*b) + "cudaSuccess\ncudaSuccess\n"


@program
def device_properties():
    return (
        "1 0\n32 1024 1024 1024 64\n2147483647 65535 65535\n49152 65536 65536\n1 1 1 1\n32 1024 "
        "1\n1\n1 1\n"
        "cudaSuccess cudaErrorInvalidDevice\n"
    )


@program
def occupancy():
    return f"1 1\n1 0 1\n{8 * 1024 * 4} 1\n"


@program
def memory_functions():
    out = [100 * i for i in range(32)]
    return f"{out[0]} {out[31]} {sum(out)}\n"


@program
def errors():
    invalid = "1 cudaErrorInvalidValue"  # 9, cudaErrorInvalidConfiguration, before CUDA 13
    return f"""at the start: 0 cudaSuccess
peek: {invalid}
get: {invalid}
get again: 0 cudaSuccess
empty grid: {invalid}
empty block: {invalid}
too deep: {invalid}
too many blocks in y: {invalid}
too much shared memory: 1 cudaErrorInvalidValue
a launch that works: 0 cudaSuccess
a launch that works leaves an error before it: {invalid}
malloc: 2 cudaErrorMemoryAllocation
the last error too: 2 cudaErrorMemoryAllocation
free of what is no allocation: 1 cudaErrorInvalidValue
memcpy direction: 21 cudaErrorInvalidMemcpyDirection
set device: 101 cudaErrorInvalidDevice
synchronize after a refused launch: 0 cudaSuccess
which is still the last error: {invalid}
no error; invalid configuration argument
out of memory; unrecognized error code
"""


@program
def errors_sticky():
    calls = "synchronize: 1\nlast: 1 0\nmemset: 1\nmalloc: 1\nlaunch: 1\nsynchronize: 1\n"
    return "before: cudaSuccess\nafter: 1\n" + calls


@program
def graph_capture():
    x, seen = 0, []
    for _ in range(4):
        x = (x + 1) * 2 + 3
        seen.append(x)
    return "1\n-1\n4 nodes\ncudaSuccess\n" + row(*seen)


@program
def launch_api():
    def line(scale):
        return " ".join(str(int(scale * i)) for i in (0, 5, 9))

    return f"cudaSuccess\n{line(1.5)}\ncudaSuccess\n{line(3.0)} 2.5\n"


@program
def device_heap():
    return f"cudaSuccess\n0 {sum(range(6))} {sum(range(40))}\n"


@program
def pointer_attributes():
    return "device device managed host unregistered\n" + row(*(7 - i + 1000 * i for i in range(8)))


# ---- small real programs


@program
def tiled_matmul():
    m, n, k = 19, 13, 21
    a = np.array([i % 7 - 3 for i in range(m * k)]).reshape(m, k)
    b = np.array([i % 5 - 2 for i in range(k * n)]).reshape(k, n)
    c = a @ b
    picked = " ".join(g(c[r, j]) for r in (0, 9, 18) for j in (0, 6, 12))
    return f"{picked} {g(sum(int(v) * (i % 3 + 1) for i, v in enumerate(c.ravel())))}\n"


@program
def scan_block():
    sums = np.cumsum([i % 9 - 2 for i in range(1000)])
    return f"{sums[0]} {sums[31]} {sums[32]} {sums[999]}\n{sums.sum()}\n"


@program
def life():
    n = 10
    board = np.zeros((n, n), int)
    for r, c in ((0, 1), (1, 2), (2, 0), (2, 1), (2, 2)):
        board[(r + 11) % n, (c + 11) % n] = (
            1  # a glider moves one cell down and right in four steps: 11 in 44
        )
    return "".join("".join("#" if cell else "." for cell in line) + "\n" for line in board)


@program
def sums_everywhere():
    rows, cols, w, h = 37, 53, 45, 29
    y = [sum(((i * cols + j) % 13 - 6) * (j % 5 - 2) for j in range(cols)) for i in range(rows)]
    image = (np.arange(w * h) * 31 % 97).reshape(h, w)
    corner = np.pad(image, 2, mode="edge")[-5:, -5:].sum()
    scan = sum(i % 7 - 2 for i in range(1000))
    return (
        f"gemv 0 wrong, {g(y[36])}\nblur 0 wrong, {corner}\nsort 0 wrong\nscan 0 wrong, "
        f"{scan}\ncudaSuccess\n"
    )


@program
def cg_more():
    out = []
    for t in (0, 1, 2, 3, 32, 63):
        group = [u for u in range(t // 32 * 32, t // 32 * 32 + 32) if u % 3 == t % 3]
        out.append(sum(group) * 100 + len(group) * 10 + (group[0] == t))
    totals = [
        32 * (1 + 3 + 5),
        32 * (2 + 4),
    ]  # rows 0, 2, 4 of the first warp, 1 and 3 of the second
    return row(*out, end="\n") + row(1, *totals, 3 + 2 * 16 + 1000 * 16, end="\n")


@program
def graph_more():
    total = sum(range(1, 11))
    return f"cudaSuccess\n1 12 0\n{total} {99 * total} 3\n{total} {total} 4\n"


@program
def graph_parameters():
    threads = 2 * 32
    sums = [threads * by for by in (1, 11, 111, 112)]
    return "{}\n{}\n{}\ncudaSuccess {}\n".format(*sums)


# ---- libraries


@program
def curand_device():
    return "XORWOW: moments right, 1 1 1 1\nPhilox: moments right, 1 1 1 1\n"


class Xorwow:
    """cuRAND's XORWOW (Marsaglia's xorwow, seeded and split as in cuRAND's device header).

    The five xorshift words are one 160-bit number here; a step is linear in them over GF(2), so a
    skip of any length is a power of its matrix, held as the images of the 160 unit vectors.
    """

    WORD = 0xFFFFFFFF

    def __init__(self, seed, sequence, offset):
        low, high = (seed & self.WORD) ^ 0xAAD26B49, (seed >> 32) ^ 0xF7DCEFDD
        t0, t1 = 1099087573 * low & self.WORD, 2591861531 * high & self.WORD
        self.weyl = (6615241 + t1 + t0) & self.WORD
        words = [123456789 + t0, 362436069 ^ t0, 521288629 + t1, 88675123 ^ t1, 5783321 + t0]
        self.state = sum((w & self.WORD) << (32 * i) for i, w in enumerate(words))
        self.skip((sequence << 67) + offset)

    @classmethod
    def step(cls, state):
        first, last = state & cls.WORD, state >> 128
        t = first ^ (first >> 2)
        new = (last ^ (last << 4) ^ t ^ (t << 1)) & cls.WORD
        return (state >> 32) | (new << 128)

    @staticmethod
    def apply(matrix, vector):
        result = 0
        while vector:
            bit = vector & -vector
            result ^= matrix[bit.bit_length() - 1]
            vector ^= bit
        return result

    def skip(self, count):
        self.weyl = (self.weyl + 362437 * count) & self.WORD
        matrix = [self.step(1 << i) for i in range(160)]
        while count:
            if count & 1:
                self.state = self.apply(matrix, self.state)
            count >>= 1
            if count:
                matrix = [self.apply(matrix, column) for column in matrix]

    def next(self):
        self.state = self.step(self.state)
        self.weyl = (self.weyl + 362437) & self.WORD
        return ((self.state >> 128) + self.weyl) & self.WORD

    def uniform_double(self):
        z = self.next() ^ (self.next() << 21)
        return z * 2.0**-53 + 2.0**-54


class Philox:
    """cuRAND's Philox4x32-10: the key is the seed, the upper half of the counter the sequence."""

    def __init__(self, seed, sequence, offset):
        self.key = (seed & 0xFFFFFFFF, seed >> 32)
        self.sequence, self.position = sequence, offset

    def block(self, index):
        word = 0xFFFFFFFF
        counter = (self.sequence << 64) + index
        x, y, z, w = (counter >> shift & word for shift in (0, 32, 64, 96))
        k0, k1 = self.key
        for _ in range(10):
            p, q = 0xD2511F53 * x, 0xCD9E8D57 * z
            x, y, z, w = (q >> 32) ^ y ^ k0, q & word, (p >> 32) ^ w ^ k1, p & word
            k0, k1 = (k0 + 0x9E3779B9) & word, (k1 + 0xBB67AE85) & word
        return x, y, z, w

    def next(self):
        value = self.block(self.position // 4)[self.position % 4]
        self.position += 1
        return value

    def uniform_double(self):
        return self.next() * 2.0**-32 + 2.0**-32


@program
def curand_exact():
    text = ""
    for k, seed in enumerate((0, 1234, 0x123456789ABCDEF)):
        for generator in (Xorwow, Philox):
            state = generator(seed, 5 * k, 1001 * k)
            text += "".join(f"{state.next():08x} " for _ in range(6))
            uniform = np.float32(state.next()) * np.float32(2.0**-32) + np.float32(2.0**-33)
            text += f"{float(uniform):.9g} {state.uniform_double():.17g}\n"
    state = Philox(99, 2, 1)
    for _ in range(2):
        text += " ".join(f"{state.next():08x}" for _ in range(4)) + "\n"
    return text


@program
def curand_host():
    return "0\n0\n0\n0\n0\n1 1 1 1\n"


@program
def cublas_vectors():
    x = np.arange(1, 7)
    y = 10 + 2 * x
    text = "0\n" + row(*y, end=" ") + f"dot {x @ y} nrm2 5 asum {1 + 3 + 5} amax 1 amin 1\n"
    scaled = [2, 2, 6, 4, 10, 6]
    # after the swap x holds y and y holds scaled; y[4:6] goes to y[0:2]
    text += row(*scaled, end=" ") + f"{y[0]} {scaled[4]} {scaled[5]}\n"
    a = np.array([[1, 3, 5], [2, 4, 6]])
    gemv, transposed = 2 * (a @ [1, 2, 3]) + 100, a.T @ [1, 2]
    # y[3] is untouched by the second product
    text += row(*gemv, 100, end=" ") + row(*transposed, 100, end="\n")
    return text + f"{1 + 4 + 9}\n0 0\n"  # a negative size is an empty matrix for gemv


@program
def cublas_gemm():
    text = ""
    m, n, k, ldc = 2, 3, 4, 4
    a = np.array([i % 7 - 2 for i in range(64)])
    b = np.array([i % 5 - 1 for i in range(64)])
    for transpose_a in (False, True):
        for transpose_b in (False, True):
            lda, ldb = 5 if transpose_a else 3, 3 if transpose_b else 4
            c = np.arange(12.0)
            for i in range(m):
                for j in range(n):
                    total = sum(
                        a[p + i * lda if transpose_a else i + p * lda]
                        * b[j + p * ldb if transpose_b else p + j * ldb]
                        for p in range(k)
                    )
                    c[i + j * ldc] = 2 * total + 0.5 * c[i + j * ldc]
            text += row(*(g(v) for v in c))

    def column_major(values, rows):
        return np.array(values).reshape(-1, rows).T

    d = column_major([1, 2, 3, 4, 5, 6], 2) @ column_major([6, 5, 4, 3, 2, 1], 3)
    text += row(*(g(v) for v in d.T.ravel()), end="\n")
    ha, hb = [0.5 * i for i in range(8)], [8.0 - i for i in range(8)]
    h = column_major(ha, 2) @ column_major(hb, 4)
    text += row(*(g(v) for v in h.T.ravel()), end="  ")
    t = column_major(ha, 4).T @ column_major(hb, 4)
    text += row(*(g(v) for v in t.T.ravel()), end="\n")
    batched = []
    for start in (0, 4, 8):
        batched += list((column_major(range(start, start + 4), 2) @ np.ones((2, 2))).T.ravel())
    return text + row(*(g(v) for v in batched))


@program
def cufft_1d():
    text = "".join(f"{n}: 0 1 1\n" for n in (1, 2, 8, 12, 17, 60, 97, 256))
    text += "16 0 0 8 0 0 0 0 0  2.000 " + f"{math.cos(2 * math.pi * 3 * 8 / 16) + 1:.3f}\n"
    z = np.fft.fft([1, 2, 4])
    return text + f"{z[0].real:.6f} {z[1].real:.6f} {z[1].imag:.6f}\n"


@program
def cufft_2d():
    turns = [(1, 0), (0, -1), (-1, 0), (0, 1)]
    text = "0\n" + "".join(f"({re} {im}) " for re, im in turns) + "24.00 0.00\n"
    text += "16.000\n24.000 0.000\n"
    return text + "".join(f"{4 * i:.2f} 0.00  " for i in range(6)) + "\n"


@program
def thrust_basics():
    y = [10 + 2 * i for i in range(4)]
    text = "100 3 7 3 3 9 size 6\n" + f"{2 * 21} {2 * 6}\n"
    text += "".join(f"{g(-float(i))} {g(y[i])} " for i in range(4)) + "\n"
    text += f"{sum(i * i for i in range(1, 11))} {g(sum(-i * v for i, v in enumerate(y)))} 4 4 3\n"
    return text + f"5 6 8 5 {5 + 6 + 8 + 5}\n6\n"


@program
def thrust_sort_scan():
    values = [5, 3, 8, 1, 9, 2, 8, 3, 7, 3]
    ordered = sorted(values)
    order = sorted(range(10), key=lambda i: values[i])
    sums = list(np.cumsum(values))
    distinct = sorted(set(values))
    lines = [
        ordered,
        ordered[::-1],
        order,
        sums,
        [100 + int(s) - v for s, v in zip(sums, values, strict=True)],
        list(np.maximum.accumulate(values)),
        [v for v in values if v % 2],
        distinct,
        [v for v in distinct if v % 2 == 0],
        distinct,
        [values.count(v) for v in distinct],
    ]
    return "".join(row(*line) for line in lines)


@program
def cub_block():
    out, scanned = [], []
    for block in range(2):
        out += [
            sum(range(64)),
            max((64 * block + t) * 37 % 101 for t in range(64)),
            sum(range(32, 64)),
        ]
        before = 0
        total = sum(t % 3 for t in range(64))
        for t in range(64):
            scanned.append(before + 1000 * (t + 1) + 1000000 * total)
            before += t % 3
    return row(*out) + row(*(scanned[i] for i in (0, 1, 2, 3, 4, 33, 63, 64, 127)))


@program
def cub_device():
    values = [i * 7919 % 1009 - 500 for i in range(1000)]
    sums = list(np.cumsum(values))
    ordered = sorted(values)
    order = sorted(range(1000), key=lambda i: values[i])
    samples = [i % 40 * 0.25 for i in range(1000)]
    bins = [sum(1 for s in samples if b <= s < b + 1) for b in range(5)]
    return (
        f"{sum(values)} {max(values)} {min(values)}\n"
        f"0 {values[0]} {sums[998]} {values[0]} {sums[999]}\n"
        f"{ordered[0]} {ordered[1]} {ordered[500]} {ordered[999]}\n"
        f"{order[0]} {order[500]} {order[999]}\n{ordered[999]} {ordered[0]}\n" + row(*bins)
    )


@program
def thrust_universal():
    doubled = [2 * x for x in (6, 7, 9)]
    raised = [x + 100 for x in doubled] + [1]
    a, b = {1, 3, 5, 7, 9}, {1, 4, 5, 8}
    sets = {"union": a | b, "intersection": a & b, "difference": a - b, "in one only": a ^ b}
    lines = {"doubled": doubled, "raised": raised, "sums": 2 * [sum(raised)]}
    lines |= {name: sorted(numbers) for name, numbers in sets.items()}
    return "".join(f"{name}: {row(*numbers, end='')}\n" for name, numbers in lines.items())


@program
def thrust_more():
    a = [(i * 5 + 3) % 8 for i in range(8)]
    keys = list(range(7, -1, -1))
    lines = [
        [a[k] for k in keys],
        [a[7 - i] for i in range(8)],
        [sum(x * k for x, k in zip(a, keys, strict=True))],
    ]
    pairs = sorted(zip(a, keys, strict=True))
    a, keys = [p[0] for p in pairs], [p[1] for p in pairs]
    lines += [a, keys, [sum(a[k] for k in keys[:3]), a[keys[7]]]]
    lines.append([2 * x - k for x, k in pairs])
    merged = sorted(a + list(range(2, 10)))
    lines.append(merged)
    parted = sorted(merged, key=lambda x: x % 2)
    lines.append(["8:", *parted])
    lines.append([5, 0])
    runs, count = [], 0
    for i, x in enumerate(parted):
        count = count + 1 if i and x == parted[i - 1] else 1
        runs.append(count)
    lines.append(runs)
    a = [10 * i if 10 * i <= 50 else -1 for i in range(8)][::-1]
    lines += [a, [0] + [10] * 7, [-1, 50, a.index(20)], [1, 0, 1]]
    lines.append([1 - sum(a[:i]) for i in range(8)])
    lines += [[0 + 1 + 2, 3 + 4 + 5, 6 + 7], [3]]
    a = sorted(a, reverse=True)
    lines += [[50, -1], [a[0], 99, *a[1:], 5]]
    whole = {2, 5, 9, 13, 14, 16, 17, 18}  # lines printed by one printf, without a space at the end
    return "".join(row(*line, end="\n" if i in whole else " \n") for i, line in enumerate(lines))


@program
def thrust_arrays():
    a = [1, 4, 2, 8, 5, 7]
    keys, values = [11, 12, 21, 22, 23, 31], [1, 2, 3, 4, 5, 6]
    lines = [sorted(a), [3 * i for i in range(1, 7)]]
    runs = [[v for k, v in zip(keys, values, strict=True) if k // 10 == ten] for ten in (1, 2, 3)]
    lines.append([sum(run[: i + 1]) for run in runs for i in range(len(run))])
    lines.append([100 + sum(run[:i]) for run in runs for i in range(len(run))])
    lines.append([math.prod(values[: i + 1]) for i in range(6)])
    pairs = list(zip(keys, values, strict=True)) + list(zip((9, 12, 40), (7, 8, 9), strict=True))
    pairs.sort(key=lambda pair: pair[0])  # stable: of equal keys the first range's come first
    lines += [[k for k, _ in pairs], [v for _, v in pairs], [-1, 3, 2, -1]]
    text = [row(*line, end=" \n") for line in lines]
    text.insert(1, row(sum(a), sum(a) + 10, end="\n"))
    text.insert(3, row(2, 3, end="\n"))
    parted = sorted(zip(keys, values, strict=True), key=lambda pair: pair[0] % 2)
    text.append("".join(f"{v}," for _, v in parted) + "\n")
    last = [(3, 3, 6, 5), (0,), (10, 16), (parted[0][1], 1)]
    text += [row(*line, end="\n") for line in last]
    return "".join(text)


@program
def cub_more():
    values = [i * 7 % 23 // 2 for i in range(200)]
    out = [sum(range(t // 32 * 32, t + 1)) + 10000 * (t % 32) for t in range(64)]
    out = [v + (1000000 * sum(range(t, t + 8)) if t % 8 == 0 else 0) for t, v in enumerate(out)]
    small = [v for v in values if v < 5]
    flagged = [values[i] for i in range(0, 200, 50)]
    runs = 1 + sum(1 for i in range(1, 200) if values[i] != values[i - 1])
    low, high = min(values), max(values)
    floats = sorted((i * 37 % 200 - 100) * 0.5 for i in range(100))
    return (
        "1 128 1 72\n"
        + row(*(out[i] for i in (0, 1, 8, 31, 32, 40, 63)))
        + f"{len(small)}: {small[0]} {small[1]} {small[-1]}\n"
        + f"4: {row(*flagged, end='')}\n{runs}\n{low} {high}\n"
        + f"{len(set(values))}: {values.count(low)} x {low}, {values.count(high)} x {high}\n"
        + row(*(sum(range(50 * i, 50 * i + 50)) for i in range(4)), end=" ")
        + "199\n"
        + f"{g(floats[0])} {g(floats[50])} {g(floats[99])}\n"
    )


@program
def cub_by_key():
    keys, values = [1, 1, 2, 3, 3, 3], [5, 9, 9, 4, 7, 6]
    byte_sums = list(itertools.accumulate((200, 100, 250)))
    segments = [slice(0, 2), slice(2, 6)]
    runs = [[i for i in range(6) if keys[i] == key] for key in sorted(set(keys))]
    sums = [list(itertools.accumulate(values[i] for i in run)) for run in runs]
    best = values.index(max(values))
    even, odd = ([v for v in values if v % 2 == rest] for rest in (0, 1))
    sorted_keys, with_them = [], []
    for segment in segments:
        pairs = sorted(zip(values[segment], keys[segment], strict=True), key=lambda pair: pair[0])
        sorted_keys += [key for key, _ in pairs]
        with_them += [value for _, value in pairs]
    tens = sorted((31, 12, 50, 21), key=lambda x: x % 10)
    return "".join(
        [
            row(byte_sums[-1]),
            row(*byte_sums),
            row(2),  # four halves
            row(*(sum(values[segment]) for segment in segments)),
            f"{best} {values[best]}\n",
            row(*(total[-1] for total in sums)),
            row(*(x for total in sums for x in total)),
            row(*(x for total in sums for x in [0, *total[:-1]])),
            row(*even, *reversed(odd)),
            row(*(values[run[0]] for run in runs)),
            row(*(run[0] for run in runs if len(run) > 1)),
            row(*(x for segment in segments for x in sorted(values[segment], reverse=True))),
            row(*sorted_keys),
            row(*with_them),
            row(*tens),
            row(0, *itertools.accumulate(tens[:-1])),
            row(*sorted(values, reverse=True)),
            "0 0\n",
        ]
    )


@program
def cublas_more():
    a, b = np.arange(16), 16 - np.arange(16)
    ger = 3 * np.outer(a[:3], b[[0, 2]])
    geam = a[:6].reshape(2, 3) + 3 * b[:6].reshape(3, 2).T  # a's columns of 3 become rows of 3
    text = row(*ger.T.ravel()) + row(*geam.T.ravel())
    products = []
    for i in range(2):
        first, second = a[4 * i : 4 * i + 4].reshape(2, 2).T, b[8 * i : 8 * i + 4].reshape(2, 2).T
        products += list((first @ second.T).T.ravel())
    text += row(*products) + "1 0 2 0 3 0 4 0 \n"
    x = np.array([0.5, 1.5, 2.5, 3.5]).reshape(2, 2).T @ np.array([-3.0, -1, 1, 3]).reshape(2, 2).T
    return text + " ".join(g(v) for v in x.T.ravel()) + " success\n"


# ---- more of the language


@program
def declarations():
    x = [i * 2 * 3 + 1 for i in range(4)]
    x[0] += 9 + 2 + 4 + 2 + 2 * 3 + 3
    x = [-(v + 10 + 100 + 1000) for v in x]
    x = [int(v / 2) for v in x]  # C++ rounds towards zero
    x = [-((v + 10) * 2 * 3) + 2 for v in x]
    return row(*x, 55, 55, end="\n")


@program
def tokens():
    total = 5 + 2 * (7 << 4) + 4
    shifted = (3 << 4) + (100 >> 3) + (1 << 1)
    raw = 'kernel<<<grid, block>>>(x); __device__ " int'
    return (
        f'{total} {shifted} add<<<1, 1>>>(p, 5); // "__shared__" \\ {len(raw)} "< add<<<1, '
        "1>>>(p)\n3\n"
    )


@program
def device_lambdas():
    x = [3 * i + 100 for i in range(10)]
    return f"{x[0]} {x[5]} {x[9]}  {2 * 1 + 1} {2 * 9 + 1}\n{g(sum(0.5 + i for i in range(10)))}\n"


@program
def shared_kinds():
    best = max(range(32), key=lambda t: t * 13 % 32)
    cube = {(t // 16, t // 4 % 4, t % 4): t for t in range(32)}
    text = ""
    for t in (0, 7, 16, 31):
        after = (t + 1) % 32
        out = after + 100 * after**2 + 77 + cube[1, 2, 3] + 32
        out += cube[(t // 16) ^ 1, t // 4 % 4, t % 4] * 1000000
        turned = (t + 16) % 32
        text += f"{out} {g(turned * 0.5 + turned * 100 + best * 10000)}\n"
    return text


@program
def half_warps():
    total = sum(i % 4 for i in range(32))  # 48, exact in half precision
    out = [total + 1000 * (2 * t + 1) + 1e6 * 18 for t in (0, 3)]
    return f"{out[0]:.0f} {out[1]:.0f} 16 8\n"


@program
def math_fast():
    floats = [
        math.e,
        math.log(2),
        3,
        2,
        math.sin(1),
        math.cos(1),
        math.tan(1),
        8,
        0.25,
        100,
        0.5,
        12,
        2,
        math.pi,
        1,
        -8,
        1,
        0,
        3,
        1,
    ]
    doubles = [math.pi, 1024, 9, 2.5, -1, 1.5, 3, 1000, 5, 0]
    ints = [
        5,
        -3,
        5,
        -5,
        1 << 40,
        7,
        7,
        2**31 - 1,
        0,
        1,
        -2,
        3,
        -3,
        2,
        9,
        -3,
        -1,
        -4,
        300 - 256,
        2**32 - 1,
    ]
    text = "".join(" ".join(f"{v:.3f}" for v in floats[i : i + 10]) + "\n" for i in (0, 10))
    text += "".join(f"{v:.6f} " for v in doubles) + "\n"
    return text + row(*ints[:10], end="\n") + row(*ints[10:], end="\n")


@program
def large_grids():
    text = ""
    for x, y, z in ((100000, 1, 1), (1, 65535, 1), (1, 1, 65535), (30, 40, 50)):
        total = x * y * z
        text += f"{total} {total * (x - 1 + y - 1 + z - 1) // 2}\n"
    block = sum(range(1024))
    return text + f"{block} {block + 63}\n" * 4 + "2000 cudaSuccess\n"


@program
def dynamic_prints():
    return "".join(f"depth {depth}\n" for depth in range(4)) + "cudaSuccess\n"


@program
def dependent_launch():
    return f"cudaSuccess {2 * 1} {2 * 31}\n"


@program
def dynamic_streams():
    ten, hundred = 2 * sum(10 + t for t in range(4)), sum(100 + t for t in range(8))
    return f"cudaSuccess\n{ten + hundred} {ten} {hundred}\n"


@program
def spin_between_blocks():
    return row(*np.cumsum(range(8)))


@program
def producer_consumer():
    def consumer(thread):
        warp, lane = divmod(thread, 32)
        return sum(100 * r + (lane ^ warp) for r in range(5))

    return row(0, consumer(32), consumer(69), consumer(127), end="\n") + "64 0 64 64\n"


@program
def symbols_more():
    return f"3 {g(3 * (10 + 20 + 30) / 3)} 4 9\n1\n4\n"


@program
def wmma_types():
    text = ""
    for name, m, n, k, elements in (
        ("half", 16, 16, 16, "16 16 8"),
        ("half", 32, 8, 16, "16 16 8"),
        ("half", 8, 32, 16, "16 16 8"),
        ("bfloat16", 16, 16, 16, "8 8 8"),
        ("bfloat16", 32, 8, 16, "16 4 8"),
        ("tf32", 16, 16, 8, "4 4 8"),
        ("tf32", 16, 16, 8, "4 4 8"),
        ("signed char", 16, 16, 16, "8 8 8"),
        ("unsigned char", 8, 32, 16, "4 16 8"),
        ("double", 8, 8, 4, "1 1 2"),
    ):
        a = (7 * np.arange(m)[:, None] + 3 * np.arange(k)) % 5
        b = (2 * np.arange(k)[:, None] + 5 * np.arange(n)) % 7
        d = 2 * (a @ b) + 1
        for layout, stored in (("rows", d), ("columns", d.T)):
            weighted = int(stored.ravel() @ np.arange(1, m * n + 1))
            text += f"{name} {m}x{n}x{k} {layout}: {weighted}, elements {elements}\n"
    return text


@program
def wmma_matmul():
    m, n, k = 40, 24, 56
    a = (np.arange(m * k) % 9 - 4).reshape(m, k)
    b = (np.arange(k * n) % 11 - 5).reshape(k, n)
    c = (np.arange(m * n) % 100).reshape(m, n)
    c = a @ b - (0.5 * (a @ b) + 2.0 * c)
    return (
        "".join(row(*map(g, c[i])) for i in range(0, m, 13))
        + f"{c.ravel() @ (np.arange(m * n) % 31):.1f}\n"
    )


@program
def dot_products():
    def pieces(word, bits, signed):
        count = 32 // bits
        values = [word >> (bits * i) & ((1 << bits) - 1) for i in range(count)]
        wrap = 1 << bits
        return [v - wrap if signed and v >= wrap // 2 else v for v in values]

    def dot(a, b, c, size, upper, signed):  # b holds bytes, a as many numbers or half as many
        wide = pieces(a, size, signed)
        small = pieces(b, 8, signed)
        small = small[2:] if upper else small
        return (c + sum(x * y for x, y in zip(wide, small, strict=False))) % 2**32

    def word(values, bits):
        return sum((v % (1 << bits)) << (bits * i) for i, v in enumerate(values))

    a, b = word([-128, 127, -1, 5], 8), word([127, -128, 3, -7], 8)
    c, d = word([255, 254, 1, 0], 8), word([255, 2, 200, 9], 8)
    e, f = word([-32768, 32767], 16), word([65535, 3], 16)
    signed = [(a, b, 10, 8, 0), (0x80FF7F01, 0x7F02FE03, -5, 8, 0), (e, b, 1, 16, 0)]
    signed += [(e, b, 1, 16, 1), (0x7FFF8000, 0x05FA807F, 2, 16, 0)]
    signed += [(0x7FFF8000, 0x05FA807F, 2, 16, 1)]
    plain = [(c, d, 10, 8, 0), (0xFF01FE02, 0xFFFFFFFF, 2**32 - 1, 8, 0), (f, d, 1, 16, 0)]
    plain += [(f, d, 1, 16, 1), (0xFFFF0002, 0x090AC8FF, 7, 16, 0)]
    plain += [(0xFFFF0002, 0x090AC8FF, 7, 16, 1)]
    lines = []
    for s, u in zip(signed, plain, strict=True):
        with_sign = dot(*s, signed=True)
        with_sign -= 2**32 if with_sign >= 2**31 else 0
        lines.append(f"{with_sign} {dot(*u, signed=False)}\n")
    return "".join(lines)


@program
def wmma_rounding():
    def tf32(x):  # 11 significant bits, halves away from zero
        x = float(np.float32(x))
        quantum = 2.0 ** (math.frexp(x)[1] - 11)
        return math.copysign(math.floor(abs(x) / quantum + 0.5) * quantum, x)

    def hexadecimal(x):  # C's %a
        mantissa, exponent = float.hex(x).split("p")
        mantissa = mantissa.rstrip("0") if "." in mantissa else mantissa
        return f"{mantissa.removesuffix('.')}p{exponent}"

    text = row(
        *(
            hexadecimal(tf32(x))
            for x in (1, 0.1, -0.1, 1.00048828125, 1.0004, -1.00048828125, 3.14159265, 1e-20)
        )
    )
    text += row(*(g((tf32(1 + (i + 1) / 4096) - 1) * i * 1024) for i in range(16)))
    i = np.arange(256)
    product = (i % 3).reshape(16, 16) @ (i % 5).reshape(16, 16).T  # A is halved
    text += row(*map(g, np.diag(2 * product + 3.0 + 1.0)))
    sums = [16 * a * b for a in (127, -128) for b in (127, -1)]
    low, high = -(2**31), 2**31 - 1
    for start in (0, 0, high - 1000, low + 1000):
        text += row(*(min(max(start + s, low), high) for s in sums), end="\n")
    return text


@program
def cublas_lt():
    m, n, k = 4, 4, 8
    x = np.array([i % 7 - 3 for i in range(64)])
    y = np.array([i % 5 - 2 for i in range(64)])
    z = np.arange(64.0)
    bias = np.array([10 * i - 15 for i in range(m)])

    def columns(values, rows, cols):  # a column-major matrix
        return values[: rows * cols].reshape(cols, rows).T

    def shown(matrix, status=0):
        return f"{status}: " + row(*map(g, matrix.T.ravel()))

    # An epilogue without a bias, and a bias pointer that is set: the library says INVALID_VALUE,
    # and the output keeps its numbers.
    text = 2 * shown(columns(z, m, n), status=7)
    product = 2 * columns(x, m, k) @ columns(y, k, n) + columns(z, m, n)
    biased = product + bias[:, None]
    text += shown(biased) + shown(np.maximum(biased, 0))
    by_rows = x[: m * k].reshape(m, k) @ columns(y, k, n)
    text += shown(by_rows)
    batch = [columns(x[s:], m, 4) @ columns(y[s:], 4, n) for s in (0, 16)]
    text += shown(np.concatenate(batch, axis=1))
    text += "7\n0 1 0 0\n"
    plain = columns(x, m, k) @ columns(y, k, n)
    return text + shown(plain[:, :1]) + "7\n"


@program
def cudnn_convolution():
    x = np.array([i % 7 - 3.0 for i in range(80)]).reshape(2, 2, 5, 4)
    w = np.array([i % 5 - 2.0 for i in range(36)]).reshape(3, 2, 3, 2)
    bias = np.array([3 * i - 2 for i in range(3)])
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))

    def convolution(filters):  # rows are taken two by two
        y = np.zeros((2, 3, 3, 3))
        for p in range(3):
            for q in range(3):
                window = padded[:, :, 2 * p : 2 * p + 3, q : q + 2]
                y[:, :, p, q] = np.einsum("ncrs,kcrs->nk", window, filters)
        return y

    text = ""
    for filters in (w, w[:, :, ::-1, ::-1]):
        y = convolution(filters)
        text += "2 3 3 3\n0: " + row(*map(g, y.ravel()))
        text += row(*map(g, np.maximum(y + bias[None, :, None, None], 0).ravel()))
    return text + "0 1 0\nwrong shape: 1\nwrong channels: 1\n"


@program
def cusparse_spmv():
    a = np.array([[10, 0, 20, 0], [0, 0, 0, 0], [0, 30, 0, 40]])
    x = np.arange(1, 9)
    y = np.full(3, 100)
    text = ""
    for _format in ("csr", "coo"):
        y = 2 * a @ x[:4] + y
        text += "0: " + row(*y, end="\n") + row(*map(g, a.T @ y), end="\n")
    product = a @ x.reshape(2, 4).T
    return text + "0: " + row(*product.T.ravel(), end="\n") + "CUSPARSE_STATUS_INVALID_VALUE\n"


@program
def library_statuses():
    invalid, ok, not_a_plan, bad_size = 7, 0, 1, 8
    lda, ldb, ldc = 8, 10, 13  # their places among gemm's parameters, the handle not counted
    text = ""
    for place in (lda, ldb, ldc):
        text += f" ** On entry to SGEMM  parameter number {place} had an illegal value\n{invalid} "
    text += row(ok, ok, end="\n")
    c = np.arange(8).reshape(2, 4).T @ np.ones((2, 3))
    text += row(g(c[0, 0]), g(c[3, 0]), g(c[3, 2]), end="\n") + "CUBLAS_STATUS_INVALID_VALUE\n"
    p = 8 * np.arange(16).reshape(4, 4)
    q = -np.arange(16).reshape(4, 4).T
    r = (p @ q).T.ravel()
    text += "0: " + row(r[0], r[1], r[15], end="\n")
    text += f"{ok} {not_a_plan} {ok} {ok} 1 {ok}: 8 16\n"
    return text + f"{ok} {not_a_plan} {bad_size}\n{ok} {ok}\n"  # Philox takes 7 too


@program
def devices_peer():
    return "no such device: 1\nwrong: 0\n"


@program
def devices_ring():
    return "wrong: 0\n"


@program
def devices_flags():
    return "wrong: 0\n"


@program
def host_threads():
    hosts, n, times = 3, 64, 5000
    return f"{hosts * n * times}\n"


@program
def nccl_groups():
    names = ("all-reduce", "largest", "broadcast", "all-gather", "reduce-scatter", "ring")
    return "".join(f"{name}: right\n" for name in names)


@program
def nccl_threads():
    return "wrong: 0\n"


for derived in [*derive_ptx.ALL, *derive_textures.ALL]:
    program(derived)
PROVENANCE = FOLDER / "provenance.json"


def provenance():
    """What is known of where the expected outputs come from: {"note": ..., "recorded": {program:
    facts}}.
    """
    return json.loads(PROVENANCE.read_text())


def main():
    recorded = provenance()["recorded"]
    for name in sorted(p.stem for p in FOLDER.glob("*.cu")):
        if name in recorded:
            print(f"{name}: recorded on {recorded[name]['gpu']}, left as it is")
        else:
            (FOLDER / f"{name}.out").write_text(PROGRAMS[name]())
    facts = {
        "note": "Programs under `recorded` have their .out from a run on that GPU. All others "
        "have not "
        "been recorded on a GPU yet: derive.py worked out their .out from arithmetic and the "
        "manuals.",
        "recorded": recorded,
    }
    PROVENANCE.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
