"""The second convolution by itself: what its launches say is what its kernels have.

Its results are held by tests/course/extensions, whose operator it is.
"""

from course.kernels.mnist_cnn import conv2
from utils.tools.source import constants

FILES = "network.cuh", "conv1.cuh", "conv_forward.cuh", "conv_backward.cuh", "conv2.cu"


def test_launches_have_the_sizes_of_the_kernels():
    sizes = {"OUT": conv2.OUTPUTS}  # a block's, in bfloat16
    for name in FILES:
        sizes = constants(conv2.SOURCE.parent / name, **sizes)
    assert (sizes["W1"], sizes["C1"], sizes["C2"]) == (conv2.SIDE, conv2.INPUTS, conv2.OUTPUTS)
    assert conv2.INPUT_BYTES == 2 * sizes["POOLED_NUMBERS"]
    assert conv2.OUTPUT_BYTES == 2 * sizes["DY_NUMBERS"]
    assert conv2.WEIGHT_BYTES == 2 * sizes["TAPS"] * sizes["C2"] * sizes["PITCH1"]
    assert conv2.FORWARD_THREADS == sizes["FORWARD_THREADS"]
    assert conv2.THREADS == sizes["INPUT_THREADS"] == sizes["WEIGHT_THREADS"]
    assert conv2.THREADS == conv2.ADDED_BY_A_BLOCK * sizes["ADDERS"]
    assert conv2.WEIGHTS == sizes["WEIGHTS"]
