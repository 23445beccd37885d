"""libdevice for the interpreter: NVIDIA's mathematical functions, by their symbols.

Triton's own tables (triton.language.extra.cuda.libdevice) say which symbol an argument's type asks
for, and refuse other types; the interpreter has nothing behind the symbols. Here they are computed
in float64 and rounded once, so last bits may differ from a GPU's. The functions' meaning: CUDA Math
API and the libdevice User's Guide.
"""

import functools
import inspect
import math
import re

import numpy as np

PREFIX = "__nv_"
#: How a symbol ends that rounds to the nearest; other directions are not modelled
NEAREST = "_rn"
NEEDS = "this kernel needs a GPU"


def _torch(name):
    """A function of torch.special, for a NumPy array."""

    def compute(x):
        import torch

        return getattr(torch.special, name)(torch.from_numpy(np.array(x))).numpy()

    return compute


def _bits(dtype):
    return lambda x: np.ascontiguousarray(x).view(dtype)


def _away_from_zero(x):
    """The nearest whole number, halves away from zero: C's round, not NumPy's."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _positive_part(x, y):
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.maximum(x - y, 0))


def _gamma(x):
    return np.vectorize(_gamma_of, otypes=[np.float64])(x)


def _gamma_of(x):
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf
    except ValueError:  # a pole, or minus infinity
        return math.copysign(math.inf, x) if x == 0 else math.nan


def _popc(x):
    return np.bitwise_count(x.view(f"u{x.itemsize}"))


def _clz(x):
    return 8 * x.itemsize - np.frexp(x.view(f"u{x.itemsize}").astype(np.float64))[1]


def _clz_exact(x):
    """Leading zeros. float64 may round a number up to the next power of two: so in halves."""
    if x.itemsize < 8:
        return _clz(x)
    high = (x.view(np.uint64) >> np.uint64(32)).astype(np.uint32)
    low = x.view(np.uint64).astype(np.uint32)
    return np.where(high != 0, _clz(high), 32 + _clz(low))


def _ffs(x):
    lowest = x & -x
    return np.where(x == 0, 0, 8 * x.itemsize - _clz_exact(lowest))


def _brev(x):
    width = 8 * x.itemsize
    each = [int(f"{value:0{width}b}"[::-1], 2) for value in x.view(f"u{x.itemsize}").ravel()]
    return np.array(each, f"u{x.itemsize}").reshape(x.shape).view(x.dtype)


def _high_half(x, y):
    product = x.astype(object) * y.astype(object)
    return (product >> 8 * x.itemsize).astype(x.dtype)


def _mul24(x, y):
    signed = x.dtype.kind == "i"
    parts = [value.astype(np.int64) & 0xFFFFFF for value in (x, y)]
    if signed:
        parts = [part - ((part >> 23) << 24) for part in parts]
    return (parts[0] * parts[1]).astype(x.dtype)


def _average(x, y, more=0):
    return ((x.astype(np.int64) + y.astype(np.int64) + more) >> 1).astype(x.dtype)


def _sad(x, y, z):
    return np.abs(x.astype(np.int64) - y.astype(np.int64)) + z


#: Of floating numbers, by their names in C without the last `f`; arguments are float64
FLOATING = {
    **{name: getattr(np, name) for name in "sin cos tan sinh cosh tanh exp exp2 expm1 log".split()},
    **{name: getattr(np, name) for name in "log2 log10 log1p sqrt cbrt floor ceil trunc".split()},
    **{name: getattr(np, name) for name in "rint fmod hypot copysign signbit".split()},
    **{f"a{name}": getattr(np, f"arc{name}") for name in "sin cos tan sinh cosh tanh".split()},
    "fabs": np.abs,
    "atan2": np.arctan2,
    "pow": np.power,
    "powi": np.power,
    "exp10": lambda x: np.power(10.0, x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rcp": lambda x: 1 / x,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "fdivide": np.divide,
    "fma": lambda x, y, z: x * y + z,
    "fdim": _positive_part,
    "remainder": lambda x, y: x - y * np.rint(x / y),
    "saturate": lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)),
    "round": _away_from_zero,
    "llround": _away_from_zero,
    "llrint": np.rint,
    "nearbyint": np.rint,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2)),
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2)),
    "ldexp": lambda x, n: np.ldexp(x, n.astype(np.int64)),
    "scalbn": lambda x, n: np.ldexp(x, n.astype(np.int64)),
    "logb": lambda x: np.frexp(x)[1] - 1.0,
    "ilogb": lambda x: np.frexp(x)[1] - 1,
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "norm3d": lambda *x: np.sqrt(sum(part * part for part in x)),
    "norm4d": lambda *x: np.sqrt(sum(part * part for part in x)),
    "rnorm3d": lambda *x: 1 / np.sqrt(sum(part * part for part in x)),
    "rnorm4d": lambda *x: 1 / np.sqrt(sum(part * part for part in x)),
    "erf": _torch("erf"),
    "erfc": _torch("erfc"),
    "erfinv": _torch("erfinv"),
    "erfcinv": lambda x: _torch("erfinv")(1 - x),
    "erfcx": _torch("erfcx"),
    "lgamma": _torch("gammaln"),
    "tgamma": _gamma,
    "normcdf": _torch("ndtr"),
    "normcdfinv": _torch("ndtri"),
    "j0": _torch("bessel_j0"),
    "j1": _torch("bessel_j1"),
    "y0": _torch("bessel_y0"),
    "y1": _torch("bessel_y1"),
    "cyl_bessel_i0": _torch("i0"),
    "cyl_bessel_i1": _torch("i1"),
}
#: Of whole numbers and bits, and tests of floating numbers: by the whole symbol, types as they come
EXACT = {
    "abs": np.abs,
    "llabs": np.abs,
    **dict.fromkeys(("popc", "popcll"), _popc),
    **dict.fromkeys(("clz", "clzll"), _clz_exact),
    **dict.fromkeys(("ffs", "ffsll"), _ffs),
    **dict.fromkeys(("brev", "brevll"), _brev),
    **dict.fromkeys(("mulhi", "umulhi", "mul64hi", "umul64hi"), _high_half),
    **dict.fromkeys(("mul24", "umul24"), _mul24),
    **dict.fromkeys(("hadd", "uhadd"), _average),
    **dict.fromkeys(("rhadd", "urhadd"), functools.partial(_average, more=1)),
    **dict.fromkeys(("sad", "usad"), _sad),
    **dict.fromkeys(("isnanf", "isnand"), np.isnan),
    **dict.fromkeys(("isinff", "isinfd"), np.isinf),
    **dict.fromkeys(("finitef", "isfinited"), np.isfinite),
    **dict.fromkeys(("signbitf", "signbitd"), np.signbit),
    **dict.fromkeys(("nextafter", "nextafterf"), np.nextafter),
    "float_as_int": _bits(np.int32),
    "float_as_uint": _bits(np.uint32),
    "int_as_float": _bits(np.float32),
    "uint_as_float": _bits(np.float32),
    "double_as_longlong": _bits(np.int64),
    "longlong_as_double": _bits(np.float64),
}
CONVERSION = re.compile(r"(?:float|double|u?int|u?ll)2(\w+)_(rn|rz|rd|ru)")
WHOLE = {
    "rn": np.rint,
    "rz": np.trunc,
    "rd": np.floor,
    "ru": np.ceil,
}
RANGES = {
    "int": np.int32,
    "uint": np.uint32,
    "ll": np.int64,
    "ull": np.uint64,
}


def function_of(symbol: str):
    """What computes a symbol of libdevice, such as "__nv_tanhf", from NumPy arrays.

    NotImplementedError where there is none.
    """
    name = symbol.removeprefix(PREFIX)
    if name in EXACT:
        return EXACT[name]
    conversion = CONVERSION.fullmatch(name)
    if conversion:
        return _conversion(*conversion.groups(), name)
    plain = name.removeprefix("fast_").removesuffix(NEAREST)
    if name.endswith(NEAREST):
        plain = re.sub(r"^[fd](?=add|sub|mul|div|rcp|sqrt|rsqrt)", "", plain)
    for stem in (plain, plain.removesuffix("f"), plain.removeprefix("f").removesuffix("f")):
        if stem in FLOATING:
            compute = FLOATING[stem]
            return lambda *x: compute(*(part.astype(np.float64) for part in x))
    raise NotImplementedError(f"the interpreter has no {name} of libdevice: {NEEDS}")


def _conversion(target: str, direction: str, name: str):
    """Between types, in a direction: to whole numbers they saturate, and NaN becomes 0."""
    if target in RANGES:
        limits = np.iinfo(RANGES[target])

        def to_whole(x):
            whole = WHOLE[direction](x.astype(np.float64))
            inside = np.clip(whole, float(limits.min), float(limits.max))
            converted = np.where(np.isnan(whole), 0, inside)
            too_large = converted >= float(limits.max)
            exact = np.where(too_large, 0, converted).astype(limits.dtype)
            return np.where(too_large, limits.dtype.type(limits.max), exact)

        return to_whole
    if direction == "rn":
        return lambda x: x
    raise NotImplementedError(f"the interpreter has no {name} of libdevice: {NEEDS}")


def correct_libdevice(interpreter) -> None:
    """Correct the interpreter's module: symbols of libdevice are computed."""
    Handle = interpreter.TensorHandle

    def create_libdevice(self, symbol, result, *arguments):
        with np.errstate(all="ignore"):
            data = function_of(symbol)(*(argument.data for argument in arguments))
        scalar = result.scalar
        return Handle(np.asarray(data).astype(interpreter._get_np_dtype(scalar)), scalar)

    def create_extern_elementwise(self, _library, _path, symbol, arguments, result, _pure):
        return self.create_libdevice(symbol, result, *arguments)

    interpreter.InterpreterBuilder.create_libdevice = create_libdevice
    interpreter.InterpreterBuilder.create_extern_elementwise = create_extern_elementwise


def bind_functions(module) -> None:
    """Correct triton.language.extra.libdevice, or the one of cuda: a kernel may call it as it is.

    The first holds empty functions, which Triton's compiler replaces by the second's.
    """
    from triton.language.extra.cuda import libdevice

    for name, function in vars(module).copy().items():
        real = getattr(libdevice, name, None)
        if inspect.isfunction(function) and inspect.isfunction(real):
            if "_semantic" in inspect.signature(real).parameters:
                setattr(module, name, _bound(real))


def _bound(function):
    @functools.wraps(function)
    def call(*arguments, **_):
        from triton.runtime.interpreter import interpreter_semantic

        return function(*arguments, _semantic=interpreter_semantic)

    return call
