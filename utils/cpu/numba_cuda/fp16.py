"""cuda.fp16: arithmetic on half-precision numbers. Each operation rounds to float16 once."""

import numpy as np

_F16 = np.float16
_F32 = np.float32


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
hsin = _of(np.sin)
hcos = _of(np.cos)
hlog = _of(np.log)
hlog2 = _of(np.log2)
hlog10 = _of(np.log10)
hexp = _of(np.exp)
hexp2 = _of(np.exp2)
hsqrt = _of(np.sqrt)
htanh = _of(np.tanh)
hexp10 = _of(lambda a: np.power(_F32(10), a))
hrsqrt = _of(lambda a: _F32(1) / np.sqrt(a))
hrcp = _of(lambda a: _F32(1) / a)
hceil = _of(np.ceil)
hfloor = _of(np.floor)
hrint = _of(np.rint)
htrunc = _of(np.trunc)
heq = _test(lambda a, b: a == b)
hne = _test(lambda a, b: a != b)
hge = _test(lambda a, b: a >= b)
hgt = _test(lambda a, b: a > b)
hle = _test(lambda a, b: a <= b)
hlt = _test(lambda a, b: a < b)


def hmax(a, b):
    """The larger; a NaN gives way to the other."""
    return np.fmax(_F16(a), _F16(b))


def hmin(a, b):
    """The smaller; a NaN gives way to the other."""
    return np.fmin(_F16(a), _F16(b))
