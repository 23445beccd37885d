"""libdevice under Triton's interpreter: each function beside an independent one."""

import math
import struct

import numpy as np
import pytest
import torch

import utils  # noqa: F401  first: it puts Triton on this machine's engine
from tests.needs import without_gpu

triton = pytest.importorskip("triton")
import triton.language as tl  # noqa: E402
from triton.language.extra import libdevice  # noqa: E402

from utils.cpu.triton.libdevice import function_of  # noqa: E402

pytestmark = without_gpu("Triton's interpreter")


@triton.jit
def unary(out, x, n: tl.constexpr, function: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(out + i, function(tl.load(x + i)))


@triton.jit
def binary(out, x, y, n: tl.constexpr, function: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(out + i, function(tl.load(x + i), tl.load(y + i)))


#: Python's own functions of one number, for numbers that they all take
UNARY = {
    "tanh": math.tanh,
    "sin": math.sin,
    "exp10": lambda x: 10**x,
    "expm1": math.expm1,
    "rsqrt": lambda x: x**-0.5,
    "rcbrt": lambda x: x ** (-1 / 3),
    "erf": math.erf,
    "erfc": math.erfc,
    "lgamma": math.lgamma,
    "tgamma": math.gamma,
    "log1p": math.log1p,
    "normcdf": lambda x: 0.5 * math.erfc(-x / 2**0.5),
    "sinpi": lambda x: math.sin(math.pi * x),
    "saturatef": lambda x: min(max(x, 0), 1),
    "fast_expf": math.exp,
    "fast_logf": math.log,
    "rcp_rn": lambda x: 1 / x,
    "sqrt_rn": math.sqrt,
    "round": lambda x: math.floor(x + 0.5),
    "trunc": math.trunc,
}


OF_FLOAT32 = {"saturatef", "fast_expf", "fast_logf"}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, torch.float32) for name in UNARY),
        *((name, torch.float64) for name in UNARY if name not in OF_FLOAT32),
    ],
)
def test_functions_of_one_number(name, dtype):
    function = getattr(libdevice, name)
    x = torch.rand(16, dtype=dtype) * 2 + 0.1
    out = torch.full_like(x, math.nan)
    unary[(1,)](out, x, 16, function)
    expected = torch.tensor([UNARY[name](float(value)) for value in x], dtype=torch.float64)
    precision = 1e-6 if dtype == torch.float32 else 1e-13
    torch.testing.assert_close(out.double(), expected, rtol=precision, atol=precision)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("pow", math.pow),
        ("atan2", math.atan2),
        ("fmod", math.fmod),
        ("remainder", math.remainder),
        ("hypot", math.hypot),
        ("copysign", math.copysign),
        ("div_rn", lambda x, y: x / y),
        ("fdim", lambda x, y: max(x - y, 0)),
    ],
)
def test_functions_of_two_numbers(name, function):
    x, y = torch.rand(16) * 8 + 0.1, torch.rand(16) * 2 + 0.1
    out = torch.full_like(x, math.nan)
    binary[(1,)](out, x, y, 16, getattr(libdevice, name))
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    expected = torch.tensor([function(*pair) for pair in pairs])
    torch.testing.assert_close(out, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("bits", "dtype"), [(32, torch.int32), (64, torch.int64)])
def test_functions_of_bits(bits, dtype):
    numbers = [0, 1, -1, 2, 3, -(1 << bits - 1), (1 << bits - 1) - 1, 1 << 20, -12345, 0x7FFF, 6]
    numbers += [(1 << 31) - 1] * 5
    x = torch.tensor(numbers, dtype=dtype)
    texts = [f"{value % (1 << bits):0{bits}b}" for value in numbers]
    expected = {
        "popc": [text.count("1") for text in texts],
        "clz": [len(text) - len(text.lstrip("0")) for text in texts],
        "ffs": [len(text) - text.rfind("1") if "1" in text else 0 for text in texts],
    }
    for name, values in expected.items():
        out = torch.full((16,), -7, dtype=torch.int32)
        unary[(1,)](out, x, 16, getattr(libdevice, name))
        assert out.tolist() == values, name
    out = torch.zeros_like(x)
    unary[(1,)](out, x, 16, libdevice.brev)
    assert [f"{value % (1 << bits):0{bits}b}"[::-1] for value in out.tolist()] == texts


def test_conversions_saturate_and_bits_stay():
    x = torch.tensor([1.5, -1.5, 2.5, math.nan, 1e20, -1e20, 0.4, -0.6] * 2)
    wanted = {
        "float2int_rn": [2, -2, 2, 0, 2**31 - 1, -(2**31), 0, -1],
        "float2int_rz": [1, -1, 2, 0, 2**31 - 1, -(2**31), 0, 0],
        "float2int_rd": [1, -2, 2, 0, 2**31 - 1, -(2**31), 0, -1],
        "float2int_ru": [2, -1, 3, 0, 2**31 - 1, -(2**31), 1, 0],
        "float_as_int": [
            struct.unpack("i", struct.pack("f", value))[0] for value in x.tolist()[:8]
        ],
    }
    for name, values in wanted.items():
        out = torch.full((16,), -7, dtype=torch.int32)
        unary[(1,)](out, x, 16, getattr(libdevice, name))
        assert out.tolist()[:8] == values, name


def test_what_is_not_there_is_named():
    with pytest.raises(NotImplementedError, match="no fadd_ru of libdevice.*needs a GPU"):
        function_of("__nv_fadd_ru")


def test_every_symbol_is_computed_or_named():
    """None is taken for another: what is computed was looked up by its whole name or its stem."""
    import re

    from triton.language.extra.cuda import libdevice as tables

    with open(tables.__file__, encoding="utf-8") as file:
        symbols = set(re.findall(r'"(__nv_\w+)"', file.read()))
    missing = set()
    for symbol in symbols:
        try:
            function_of(symbol)
        except NotImplementedError:
            missing.add(symbol.removeprefix("__nv_"))
    directed = {name for name in missing if name[-3:] in ("_rd", "_ru", "_rz")}
    assert missing - directed <= {
        "jn", "jnf", "yn", "ynf", "byte_perm", "double2hiint", "double2loint", "hiloint2double",
        "rcp64h",
    }  # fmt: skip
    assert np.isclose(function_of("__nv_fabsf")(np.float32([-2.0])), 2)
