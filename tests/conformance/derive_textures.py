"""What the programs on textures, surfaces, libcu++ and CUB's neighbours must print, by the manuals.

Addresses and filters are those of the CUDA C++ Programming Guide, "Texture Fetching": an element's
middle lies at its number plus one half, and a filtered value is the mean of its neighbours, each
weighted by how near it is. A GPU's weights of 9 bits hold the coordinates chosen here exactly.
"""

import math
import struct
from fractions import Fraction
from itertools import product

OUTSIDE = -5


def line(values, form="{:g}"):
    return "".join(form.format(value) + " " for value in values) + "\n"


# ---- libcu++


def libcu_atomic():
    threads = range(256)
    bits = 0
    for i in threads:
        bits |= 1 << i % 20
    log = [1]
    for _ in range(7):
        log.append(2 * log[-1] + 1)
    first = f"{5 + 2 * 256} {bits} {min(100 - i for i in threads)} {256 // 2}\n"
    return first + line([8, *log]) + "0 40 40 4 4 cudaSuccess\n"


def libcu_barrier():
    moved = [3 * ((i + 1) % 64) + 1 for i in range(64)]
    moved = [moved[(i + 1) % 64] for i in range(64)]
    left = 64 + 1000 * (64 + 32 * 10)
    squares = [i * i for i in range(512)]
    back = [squares[i // 128 * 128 + 127 - i % 128] for i in range(512)]
    return (
        "{} {} {} {}\n".format(*(moved[i] for i in (0, 61, 62, 63)))
        + f"{left} {left}\n"
        + "{} {} {} {}\n".format(*(back[i] for i in (0, 127, 128, 511)))
        + "cudaSuccess\n"
    )


def libcu_pipeline():
    data = [7 * i for i in range(512)]

    def turned(i, size):
        return data[i // size * size + size - 1 - i % size]

    staged = " ".join(str(2 * turned(i, 64)) for i in (0, 64, 511))
    roles = " ".join(str(turned(i, 32)) for i in (0, 32, 511))
    alone = " ".join(str(data[i] + i // 64) for i in (0, 64, 127))
    return f"{staged}\n{roles}\n{alone}\ncudaSuccess\n"


def libcu_std():
    z = complex(1, 2) ** 2
    exponent = struct.unpack("I", struct.pack("f", 1.0))[0] >> 23
    values = [
        1 + 2 + 3 + 4,
        6 * 7,
        int(z.real) * 100 + int(z.imag),
        2**31 - 1,
        0xF0F0.bit_count() * 100 + 31,
        exponent,
        -1,
        math.ceil(10 / 3) * 10 + max(3, 8),
        21,
        5,
    ]
    return line(values, "{}") + "cudaSuccess\n"


# ---- textures


def address(i: int, n: int, mode: int) -> int | None:
    """The element that stands for number i of n; None: the border."""
    if mode == 0:
        return i % n
    if mode == 2:
        return min(i % (2 * n), 2 * n - 1 - i % (2 * n))
    if mode == 3:
        return i if 0 <= i < n else None
    return min(max(i, 0), n - 1)


def textures_addresses():
    row = [10, 20, 30, 40]
    text = ""
    for normalized, mode in product((False, True), range(4)):
        repeats = mode in (0, 2)
        used = 1 if repeats and not normalized else mode
        places = [address(i - 6, len(row), used) for i in range(16)]
        text += line([OUTSIDE if place is None else row[place] for place in places])
    return text + "cudaSuccess\n"


def filtered(values: list[int], size: tuple[int, ...], at: tuple[Fraction, ...]) -> float:
    """Values of an array of this size (x first), clamped at its edges."""
    total = Fraction(0)
    for corner in product((0, 1), repeat=len(size)):
        share = Fraction(1)
        index = 0
        step = 1
        for upper, n, x in zip(corner, size, at, strict=True):
            place = x - Fraction(1, 2)
            first = math.floor(place)
            weight = place - first
            share *= weight if upper else 1 - weight
            index += step * min(max(first + upper, 0), n - 1)
            step *= n
        total += share * values[index]
    return float(total)


def textures_filter():
    values = [i * i for i in range(16)]
    half = Fraction(1, 2)
    quarter = Fraction(1, 4)
    along = [filtered(values, (4,), (i * Fraction(1, 8),)) for i in range(36)]
    plane = [filtered(values, (4, 3), (half + i * quarter, 5 * quarter)) for i in range(16)]
    places = [(half + i * quarter, 3 * quarter, Fraction(1)) for i in range(8)]
    space = [filtered(values, (2, 2, 2), place) for place in places]
    return line(along) + line(plane) + line(space) + "cudaSuccess\n"


def textures_formats():
    tables = {
        255: [(0, 255), (1, 2), (128, 127), (51, 102), (255, 0), (3, 4)],
        127: [(0, 127), (-1, 2), (-128, 64), (51, -102), (-127, 0), (3, 4)],
        65535: [(0, 65535), (1, 2), (32768, 7), (13107, 1), (9, 0), (3, 4)],
    }
    text = ""
    for largest, pairs in tables.items():
        whole = [x * 1000 + y for x, y in pairs]
        parts = [max(x / largest, -1) + 10 * max(y / largest, -1) for x, y in pairs]
        text += line(whole, "{}").rstrip("\n") + line(parts, "{:.5f}")
    fetched = [0, *(i * i + 1 for i in range(8)), 0]
    return text + line(fetched, "{}").rstrip("\n") + "1\ncudaSuccess\n"


def surfaces():
    array = [[x + 10 * y for x in range(4)] for y in range(3)]
    x = [i - 2 for i in range(8)]
    zeros = [array[1][i] if 0 <= i < 4 else 0 for i in x]
    nearest = [array[2][min(max(i, 0), 3)] for i in x]
    for i in x:
        if 0 <= i - 4 < 4:
            array[0][i - 4] = -1
    return (
        line(zeros + nearest, "{}")
        + " ".join(map(str, [*array[0], array[2][3]]))
        + "\n"
        + " ".join(map(str, array[2]))
        + "\n0 2 1 1\ncudaSuccess\n"
    )


def kernel_strings():
    digits = "0123456789abcdef"
    return f"{digits[11]} {len(digits) + 1} r 0 grid\n"


def cub_neighbours():
    squares = [i * i for i in range(96)]
    left = [b - a for a, b in zip(squares, squares[1:], strict=False)]
    rows = [
        [0, *left],
        [0 + 7, *left],
        [*(-difference for difference in left), squares[-1]],
        [0, *left[:49], *squares[50:]],
    ]
    shown = (0, 1, 2, 3, 48, 49, 50, 94, 95)
    return "".join(line([row[i] for i in shown], "{}") for row in rows)


def graph_nodes():
    children = 3 * (10 + 2 * (1 + 1))
    memory = [children + 2 * (100 + i) for i in (0, 3)]
    looped = 0
    while looped < 20:
        looped += 3
    chosen = [looped + 100, looped + 1100, looped + 1100]
    lines = f"{children} 1\n{memory[0]} {memory[1]}\n{looped}\n"
    return lines + line(chosen, "{}") + "cudaSuccess\n"


ALL = [
    libcu_atomic,
    libcu_barrier,
    libcu_pipeline,
    libcu_std,
    textures_addresses,
    textures_filter,
    textures_formats,
    surfaces,
    kernel_strings,
    cub_neighbours,
    graph_nodes,
]
