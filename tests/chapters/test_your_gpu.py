"""Your GPU's helpers: usual errors are told by their messages, the picture says what runs."""

import re

import pytest

from course.pictures import your_gpu
from utils.setup import errors as setup_errors
from utils.setup.checks import CHECKS
from utils.setup.errors import ERRORS, explain

# As people meet them, with what stands around
MESSAGES = {
    0: [
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
        "Make sure that the latest NVIDIA driver is installed and running.",
        "RuntimeError: Found no NVIDIA driver on your system. "
        "Please check that you have an NVIDIA GPU",
    ],
    1: [
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.144"
    ],
    2: [
        "CUDA error: CUDA driver version is insufficient for CUDA runtime version",
        "The NVIDIA driver on your system is too old (found version 12040).",
    ],
    3: [
        "CUDA error: the provided PTX was compiled with an unsupported toolchain.",
        "ptxas application ptx input, line 9; "
        "fatal   : Unsupported .version 8.7; current version is '8.4'",
    ],
    4: [
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "NVIDIA A100 with CUDA capability sm_80 is not compatible with "
        "the current PyTorch installation.",
    ],
    5: ["AssertionError: Torch not compiled with CUDA enabled"],
    6: ["bash: nvcc: command not found", "/bin/sh: 1: nvcc: not found"],
    7: [
        "host_config.h:132:2: error: #error -- unsupported GNU version! "
        "gcc versions later than 12 are not supported!",
        "nvcc fatal   : Failed to preprocess host compiler properties.",
    ],
    8: [
        "docker: Error response from daemon: "
        'could not select device driver "" with capabilities: [[gpu]].',
    ],
    9: [
        "error while loading shared libraries: libcuda.so.1: "
        "cannot open shared object file: No such file or directory",
    ],
    10: [
        "cudaErrorNoDevice: no CUDA-capable device is detected",
        "RuntimeError: No CUDA GPUs are available",
    ],
    11: ["nvcc fatal   : Unsupported gpu architecture 'sm_70'"],
    12: [
        "Error 804: forward compatibility was attempted on non supported HW (Triggered internally)"
    ],
    13: ["Failed to initialize NVML: Unknown Error"],
}


@pytest.mark.parametrize(
    "number, message", [(n, m) for n, messages in MESSAGES.items() for m in messages]
)
def test_a_message_leads_to_its_error_alone(number, message):
    assert explain(message).errors == (ERRORS[number],)


def test_each_knows_its_own_message():
    assert set(MESSAGES) == set(range(len(ERRORS)))
    for error in ERRORS:
        assert explain(error.message).errors == (error,)
        assert error.cause and error.cure and re.match(r"https://\S+$", error.source)
        assert set(error.checks) <= set(CHECKS) and error.checks


def test_an_unknown_message_is_not_explained():
    assert explain("Segmentation fault").errors == ()
    assert "None of the usual ones" in repr(explain("Segmentation fault"))


def test_the_tables_hold_the_usual_errors_and_no_markup_of_the_message():
    shown = setup_errors.table(1, 6).errors + setup_errors.table(7, 11).errors
    assert shown == ERRORS[:11]
    assert "device driver &quot;&quot;" in setup_errors.table(9, 9)._repr_html_()


def test_the_picture_says_what_a_driver_runs():
    figure = your_gpu.versions_chart((12, 4), {"a": (11, 8), "b": (12, 8), "c": (13, 0)})
    assert "a (11.8): runs; b (12.8): machine code only; c (13.0): does not start" in figure.alt
    axes = figure.axes[0]
    colour_at = {}
    for patch in axes.patches:
        left, right = patch.get_x(), patch.get_x() + patch.get_width()
        for name, line in zip("abc", axes.lines, strict=False):
            if left < line.get_xdata()[0] < right:
                colour_at[name] = patch.get_facecolor()
    assert len(set(colour_at.values())) == 3  # each dot on another zone
