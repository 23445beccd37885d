"""Kernels that work on the rows of a matrix: softmax, cross-entropy, layer norm and RMS norm.

    from course.row_kernels import softmax, layer_norm, rms_norm, cross_entropy

`kernels/softmax.cu`, `norms.cu` and `cross_entropy.cu` are short and run everywhere, without a GPU
too. `kernels/ring*.cu` read each row once whatever its length, on Hopper and later: the functions
here pick them where they can be used. `numba_softmax.py` has the first ones again in Numba.
"""

from course.row_kernels.cross_entropy import (
    cross_entropy,
    cross_entropy_backward,
    loss_and_gradient,
)
from course.row_kernels.norms import layer_norm, layer_norm_backward, rms_norm, rms_norm_backward
from course.row_kernels.softmax import softmax

__all__ = [
    "cross_entropy",
    "cross_entropy_backward",
    "layer_norm",
    "layer_norm_backward",
    "loss_and_gradient",
    "rms_norm",
    "rms_norm_backward",
    "softmax",
]
