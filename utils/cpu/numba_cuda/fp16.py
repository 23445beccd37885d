"""cuda.fp16: arithmetic on half-precision numbers. Each operation rounds to float16 once."""

import numpy as np

_F16, _F32 = np.float16, np.float32


def _of(function):
    def call(*values):
        return _F16(function(*(_F32(_F16(value)) for value in values)))

    return call


def _test(function):
    def call(a, b):
        return bool(function(_F16(a), _F16(b)))

    return call


hadd = _of(lambda a, b: a + b)
hsub = _of(lambda a, b: a - b)
hmul = _of(lambda a, b: a * b)
hdiv = _of(lambda a, b: a / b)
hfma = _of(lambda a, b, c: np.float64(a) * b + c)
hneg = _of(lambda a: -a)
habs = _of(abs)
hsin, hcos, hlog, hlog2, hlog10 = _of(np.sin), _of(np.cos), _of(np.log), _of(np.log2), _of(np.log10)
hexp, hexp2, hsqrt, htanh = _of(np.exp), _of(np.exp2), _of(np.sqrt), _of(np.tanh)
hexp10 = _of(lambda a: np.power(_F32(10), a))
hrsqrt = _of(lambda a: _F32(1) / np.sqrt(a))
hrcp = _of(lambda a: _F32(1) / a)
hceil, hfloor, hrint, htrunc = _of(np.ceil), _of(np.floor), _of(np.rint), _of(np.trunc)
heq, hne = _test(lambda a, b: a == b), _test(lambda a, b: a != b)
hge, hgt = _test(lambda a, b: a >= b), _test(lambda a, b: a > b)
hle, hlt = _test(lambda a, b: a <= b), _test(lambda a, b: a < b)


def hmax(a, b):
    """The larger; a NaN gives way to the other."""
    return np.fmax(_F16(a), _F16(b))


def hmin(a, b):
    """The smaller; a NaN gives way to the other."""
    return np.fmin(_F16(a), _F16(b))
