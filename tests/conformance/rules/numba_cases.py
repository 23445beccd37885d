"""Numba's arithmetic as one program a pair of types: expressions of x and y, and of what they give
both the bits (stored as int64) and the value (stored as float64), so that the type shows, too.
"""

import json
import struct

from .typed import DOUBLE, INT64, NAMES, Number, converted, type_of

BIG = 3_000_000_000
PAIRS = {  # (type of x, type of y): values of x and y
    ("int32", "int32"): [(7, 3), (-7, 3), (2147483647, 2147483647), (-2147483648, -1), (5, -9)],
    ("uint32", "uint32"): [(7, 3), (3, 7), (4294967295, 4294967295), (BIG, 2), (1, 4000000000)],
    ("int64", "int64"): [(7, -3), (1 << 62, 5), (-(1 << 63), 7), ((1 << 63) - 1, 9), (-1, 1 << 40)],
    ("uint64", "uint64"): [(7, 9), ((1 << 64) - 1, 3), (1 << 63, 2), (5, (1 << 64) - 5), (1, 1)],
    ("int64", "uint64"): [(-1, 3), (7, 9), (-(1 << 62), 1 << 40), (1 << 62, 7), (-9, 2)],
    ("uint32", "int64"): [(7, -3), (BIG, 3), (4294967295, 1 << 62), (1, -1), (0, 5)],
    ("uint8", "int8"): [(7, -3), (255, 127), (0, -128), (1, 2), (200, -1)],
    ("uint8", "uint8"): [(7, 9), (255, 255), (0, 1), (1, 200), (200, 3)],
    ("int16", "int16"): [(7, -3), (32767, 32767), (-32768, -1), (-5, 2), (300, -300)],
    ("uint16", "int32"): [(7, -3), (65535, 2147483647), (0, -1), (5, 9), (40000, -40000)],
    ("uint64", "int32"): [(7, -3), ((1 << 64) - 1, 5), (1 << 63, -7), (3, 9), (1, 2147483647)],
    ("float32", "int32"): [(7.5, 3), (-7.5, 2), (0.1, 16777217), (3e10, -1), (1e-3, 7)],
    ("float32", "float32"): [(7.5, 3.1), (-7.5, 2.5), (0.1, 0.2), (3e10, 7.0), (16777216.0, 1.0)],
    ("float64", "int64"): [(7.5, 3), (-7.5, 2), (0.1, 16777217), (3e10, -1), (-1e20, 7)],
    ("float32", "float64"): [(7.5, 3.1), (-7.5, 2.5), (0.1, 0.2), (3e10, 7.0), (1e-3, 3.0)],
    ("float16", "int64"): [(7.5, 3), (1000.0, 1000), (0.1, -7), (65504.0, 2), (-3.0, 65537)],
    ("float16", "float16"): [(7.5, 3.1), (1000.0, 1000.0), (0.1, 0.2), (2048.0, 1.0), (-3.0, 2.0)],
    ("float16", "float32"): [(7.5, 3.1), (1000.0, 1000.0), (0.1, 0.2), (2048.0, 1.0), (-3.0, 2.0)],
}
OF_INTEGERS = """
    x + y; x - y; x * y; x // y; x % y; x / y; x & y; x ^ y; ~x; -x; abs(x); min(x, y); max(x, y)
    x < y; x == y; x << (y & 31); x >> (y & 63); cuda.popc(x); cuda.clz(x); x - y > 0; x - y < 0
    x - 1; x - 1 < 0; x + 1; x * 2; x // 10; x % 10; x >> 1; x / 2; x * 0.5; -x // 3; ~x > 0
    (x * 6364136223846793005 + 1442695040888963407) >> 33; (x * y * y) % 1000; x * x * x // 65536
    float(x - y); (x - y) / 2; (x << 40) >> 40; abs(x - y); min(x - y, 5); (x * y) * 0.5
    np.int32(x * y); np.uint8(x); np.uint32(x - y); np.int64(x) - y; np.float32(x) * 2
    np.uint32(x) - np.uint32(y); (x ^ y) * 31 % 7; x * y * y == 0; int(x) - int(y)
    np.float32(x) * np.float32(0.1) + 1
"""
OF_FLOATS = """
    x + y; x - y; x * y; x / y; x // y; x % y; -x; abs(x); min(x, y); max(x, y); x < y; x == y
    x + 1; x * 2; x / 3; x * 0.1; x + 0.1; x * y + 1; int(x); np.int32(x); np.uint8(x)
    float(x) / 3; np.float32(x) * y; np.float64(x) / 3; x * x * x; (x + y) / 2; np.float32(x) / 3
    np.float32(x * y); np.float64(y) * x; x - np.float32(0.1); int(x * 1000) % 7; int(x) / 7
"""
#: A float outside of a type of less than 32 bits: LLVM leaves open what it becomes
OPEN = {"r = np.uint8(x)"}
STATEMENTS = [  # each leaves its result in `r`
    "h = x\nfor i in range(20):\n    h = h * 31 + 7\nr = h % 1000003",
    "h = x\nfor i in range(12):\n    h = (h * 6364136223846793005 + 1) ^ 5\nr = h >> 11",
    "h = x + 5381\nfor i in range(30):\n    h += (h << 5) + 1\nr = h / 2",
    "s = 0\nfor i in range(3):\n    s += x\nr = s / 3",
    "s = 0\ns -= x\nr = s < 0",
    "h = x * x\nh *= h\nh *= h\nr = h // 7",
    "h = x\nh <<= 50\nr = h > 0",
]


def cases(pair: tuple[str, str]) -> list[str]:
    """Statements of a pair of types that leave a result in `r`."""
    whole = all("int" in name for name in pair)
    text = OF_INTEGERS if whole else OF_FLOATS
    expressions = [e.strip() for line in text.splitlines() for e in line.split(";") if e.strip()]
    signed = pair[0].startswith("int")
    statements = STATEMENTS if signed else []
    return [f"r = {e}" for e in expressions] + (statements if whole else STATEMENTS[3:4])


def by_rule(pair: tuple[str, str]) -> list[list[tuple[int, float]]]:
    """What each case gives for each pair of values: (as int64, as float64)."""
    kinds = [type_of(name) for name in pair]
    rows = []
    for code in cases(pair):
        row = []
        for values in PAIRS[pair]:
            x, y = map(Number, values, kinds)
            names = {**NAMES, "x": x, "y": y}
            exec(code, names)
            result = names["r"]
            row.append((converted(result, INT64).value, converted(result, DOUBLE).value))
        rows.append(row)
    return rows


#: How a kernel comes to x and y, by what they are
WAYS = {
    "elements": ["x = a[t]", "y = b[t]"],
    "numbers": ["x = a", "y = b"],
    "tuples": ["x, y = a"],
    "fields": ["x = a[t].x", "y = a[t]['y']"],
    "slices": ["x = a[t:][0]", "y = b[t:][0]"],
    "arguments": ["x = a[t]", "y = b[t]"],  # of a device function
}
LAUNCHES = {
    "fields": """
both = np.empty(count, [("x", a.dtype), ("y", b.dtype)])
both["x"], both["y"] = a, b
kernel[1, count](both, 0, 0, ints, floats)
""".strip(),
    "numbers": "for t in range(count):\n    kernel[1, 1](a[t], b[t], t, ints, floats)",
    "tuples": "for t in range(count):\n    kernel[1, 1]((a[t], b[t]), 0, t, ints, floats)",
}


def program(pair: tuple[str, str], way: str = "elements") -> str:
    """A Numba program that prints the same as JSON, floats by their bits."""
    codes = cases(pair)
    functions = []
    body = []
    for k, code in enumerate(codes):
        if way == "arguments":
            functions += ["@cuda.jit(device=True)", f"def case{k}(x, y):"]
            functions += [f"    {line}" for line in [*code.split("\n"), "return r"]]
            code = f"r = case{k}(x, y)"
        renamed = code.replace("r = ", f"r{k} = ").replace("h", f"h{k}") if "\n" in code else code
        body += renamed.replace("r = ", f"r{k} = ").split("\n")
        body += [f"ints[{k}, t] = r{k}", f"floats[{k}, t] = r{k}"]
    values = PAIRS[pair]
    columns = [json.dumps(column) for column in zip(*values, strict=True)]
    lines = [
        "import json",
        "import numpy as np",
        "from numba import cuda",
        "",
        *functions,
        "@cuda.jit",
        "def kernel(a, b, first, ints, floats):",
        "    t = first + cuda.threadIdx.x",
        *(f"    {line}" for line in WAYS[way] + body),
        "",
        f"a = np.array({columns[0]}, np.{pair[0]})",
        f"b = np.array({columns[1]}, np.{pair[1]})",
        f"count = {len(values)}",
        f"ints = np.zeros(({len(codes)}, count), np.int64)",
        f"floats = np.zeros(({len(codes)}, count))",
        LAUNCHES.get(way, "kernel[1, count](a, b, 0, ints, floats)"),
        "print(json.dumps([ints.tolist(), floats.view(np.int64).tolist()]))",
    ]
    return "\n".join(lines) + "\n"


def differences(pair: tuple[str, str], answer: list) -> list[str]:
    """Where what a program printed differs from the rules: one line a case that is not open."""
    ints, floats = answer
    lines = []
    for code, row, whole, real in zip(cases(pair), by_rule(pair), ints, floats, strict=True):
        if code in OPEN and pair[0].startswith("float"):
            continue
        for values, (n, x), i, bits in zip(PAIRS[pair], row, whole, real, strict=True):
            value = struct.unpack("<d", struct.pack("<q", bits))[0]
            if (n, repr(x)) != (i, repr(value)):
                lines.append(f"{code!r} of {values}: rule {n} {x!r}, got {i} {value!r}")
    return lines
