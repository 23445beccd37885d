"""The usual set-up errors, each with message, cause and cure; `explain` finds yours."""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass

GUIDE = "https://docs.nvidia.com/"


@dataclass(frozen=True)
class SetupError:
    """One error.

    patterns: what its messages have in common. checks: the doctor's checks that look for its cause.
    """

    message: str
    cause: str
    cure: str
    source: str
    checks: tuple[str, ...]
    patterns: tuple[str, ...]


ERRORS = (
    SetupError(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver",
        "The kernel module is not loaded: the Linux kernel was updated and the module not built "
        "for it, Secure Boot refused it, or nouveau sits in its place.",
        "Reinstall the driver's dkms package with the headers of this kernel, enrol its key, "
        "restart.",
        GUIDE + "datacenter/tesla/driver-installation-guide/",
        ("driver",),
        (
            r"couldn't communicate with the NVIDIA driver",
            r"Found no NVIDIA driver",
            r"Driver Not Loaded",
        ),
    ),
    SetupError(
        "Failed to initialize NVML: Driver/library version mismatch",
        "The driver was updated while the old kernel module kept running.",
        "Restart the computer (in a container: stop it and start it again).",
        "https://stackoverflow.com/questions/43022843/nvidia-nvml-driver-library-version-mismatch",
        ("driver restart",),
        (
            r"Driver/library version mismatch",
            r"NVML/RM version mismatch",
            r"unsupported display driver / cuda driver combination",
        ),
    ),
    SetupError(
        "CUDA driver version is insufficient for CUDA runtime version",
        "The program was built with a newer major version of CUDA than the driver runs. Or there "
        "is no driver: a program without one says the same.",
        "Update the driver, or build with an older toolkit (PyTorch: install the build for your "
        "driver).",
        GUIDE + "deploy/cuda-compatibility/minor-version-compatibility.html",
        ("nvcc and driver", "PyTorch and driver", "Numba's compiler", "driver"),
        (
            r"driver version is insufficient",
            r"NVIDIA driver on your system is too old",
            r"cudaErrorInsufficientDriver",
        ),
    ),
    SetupError(
        "the provided PTX was compiled with an unsupported toolchain",
        "PTX from a toolkit that is newer than the driver, which must translate it.",
        "Compile to machine code for this GPU (nvcc -arch=sm_XY), update the driver, or use an "
        "older toolkit.",
        "https://github.com/NVIDIA/numba-cuda/issues/163",
        ("PTX and driver", "Numba's compiler"),
        (
            r"compiled with an unsupported toolchain",
            r"UNSUPPORTED_PTX_VERSION",
            r"Unsupported \.version \d",
        ),
    ),
    SetupError(
        "no kernel image is available for execution on the device",
        "The program holds no machine code for this GPU, and no PTX that it could be made from.",
        "Build for this GPU's compute capability; for PyTorch take a build whose list of "
        "architectures has it.",
        "https://github.com/pytorch/pytorch/issues/31285",
        ("nvcc and GPU", "PyTorch and GPU"),
        (
            r"no kernel image is available",
            r"is not compatible with the current PyTorch installation",
        ),
    ),
    SetupError(
        "Torch not compiled with CUDA enabled",
        "This PyTorch is a build for the CPU.",
        "Install the CUDA build into this very environment: rm -rf .venv && make install, or the "
        "line from pytorch.org.",
        "https://pytorch.org/get-started/locally/",
        ("PyTorch",),
        (r"not compiled with CUDA enabled",),
    ),
    SetupError(
        "nvcc: command not found",
        "No toolkit is installed, or its bin folder is not on the PATH. The driver alone brings "
        "no compiler.",
        'make install; or export PATH="/usr/local/cuda/bin:$PATH" in ~/.bashrc.',
        GUIDE + "cuda/cuda-installation-guide-linux/#post-installation-actions",
        ("nvcc",),
        (r"nvcc: (command )?not found", r"nvcc was not found"),
    ),
    SetupError(
        "unsupported GNU version! gcc versions later than 13 are not supported!",
        "The system's g++ is newer than this nvcc was tested with.",
        "Install the g++ that the message names and export NVCC_CCBIN=g++-13; or use a newer "
        "toolkit.",
        GUIDE + "cuda/cuda-installation-guide-linux/#host-compiler-support-policy",
        ("C++ compiler",),
        (
            r"unsupported GNU version",
            r"unsupported clang version",
            r"Failed to preprocess host compiler properties",
        ),
    ),
    SetupError(
        'could not select device driver "" with capabilities: [[gpu]]',
        "Docker does not know how to give a container a GPU.",
        "Install the NVIDIA Container Toolkit on the host, restart Docker, and start with --gpus "
        "all.",
        GUIDE + "datacenter/cloud-native/container-toolkit/latest/install-guide.html",
        ("driver",),
        (r"could not select device driver",),
    ),
    SetupError(
        "libcuda.so.1: cannot open shared object file",
        "The driver's library is not here: no driver is installed, or this is a container that "
        "was started without a GPU.",
        "In a container: start it again, with --gpus all. Elsewhere: install the driver (for WSL2 "
        "in Windows).",
        GUIDE + "datacenter/cloud-native/container-toolkit/latest/docker-specialized.html",
        ("driver",),
        (
            r"libcuda\.so\.1: cannot open",
            r"CUDA driver library cannot be found",
            r"CUDA_ERROR_STUB_LIBRARY",
        ),
    ),
    SetupError(
        "no CUDA-capable device is detected",
        "The driver runs, but this process may see no GPU: CUDA_VISIBLE_DEVICES is empty or names "
        "none that exists.",
        "unset CUDA_VISIBLE_DEVICES, and start the process (the notebook's kernel) again.",
        GUIDE + "cuda/cuda-programming-guide/05-appendices/environment-variables.html",
        ("visible GPUs", "CUDA starts"),
        (r"no CUDA-capable device", r"No CUDA GPUs are available", r"CUDA_ERROR_NO_DEVICE"),
    ),
    # Rarer: `explain` knows these, and the chapter's tables leave them out
    SetupError(
        "nvcc fatal : Unsupported gpu architecture 'compute_120'",
        "This nvcc does not know the GPU that it is told to build for: the toolkit is older than "
        "the GPU, or it is CUDA 13 and the GPU is older than Turing (7.5).",
        "For a newer GPU, put a newer toolkit first on the PATH; for an older one, use CUDA 12. "
        "nvcc --list-gpu-arch says what an nvcc knows.",
        GUIDE + "cuda/cuda-compiler-driver-nvcc/#gpu-feature-list",
        ("nvcc and GPU",),
        (r"Unsupported gpu architecture",),
    ),
    SetupError(
        "forward compatibility was attempted on non supported HW",
        "A libcuda newer than the kernel module is in use. Either a cuda-compat package brought "
        "it (many container images have one), and a GPU that is none for data centers refuses "
        "that; or the driver was updated while the old module kept running.",
        "After an update, restart the computer. Otherwise update the driver, or keep the folder "
        "of cuda-compat out of LD_LIBRARY_PATH, or take an image of an older CUDA.",
        GUIDE + "deploy/cuda-compatibility/forward-compatibility.html",
        ("driver restart", "CUDA starts"),
        (r"forward compatibility was attempted", r"COMPAT_NOT_SUPPORTED_ON_DEVICE"),
    ),
    SetupError(
        "Failed to initialize NVML: Unknown Error",
        "A container has lost its access to the GPU; a systemctl daemon-reload on the host can "
        "take it away.",
        "Start the container again.",
        GUIDE + "datacenter/cloud-native/container-toolkit/latest/troubleshooting.html",
        ("driver",),
        (r"Failed to initialize NVML: Unknown Error",),
    ),
)


class Explained:
    """Some of the errors, as a table in a notebook and as text elsewhere."""

    def __init__(self, errors: Iterable[SetupError], otherwise: str = ""):
        self.errors = tuple(errors)
        self.otherwise = otherwise

    def __repr__(self) -> str:
        texts = [
            f"{e.message}\n  cause: {e.cause}\n  cure:  {e.cure}\n  more:  {e.source}"
            for e in self.errors
        ]
        return "\n\n".join(texts) or self.otherwise

    def _repr_html_(self) -> str:
        if not self.errors:
            return f"<p>{html.escape(self.otherwise)}</p>"
        cell = "<td style='text-align:left;vertical-align:top'>"
        rows = [
            f"<tr>{cell}<code>{html.escape(e.message)}</code></td>{cell}{html.escape(e.cause)}</td>"
            f"{cell}{html.escape(e.cure)} <a href='{e.source}'>more</a></td></tr>"
            for e in self.errors
        ]
        head = "".join(
            f"<th style='text-align:left'>{name}</th>" for name in ("message", "cause", "cure")
        )
        return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def table(first: int, last: int) -> Explained:
    """Errors number `first` to `last`, counted from 1."""
    return Explained(ERRORS[first - 1 : last])


def explain(message: str) -> Explained:
    """Cause and cure of an error message, pasted whole; says so when it is not a usual one."""
    matching = []
    for error in ERRORS:
        if any(re.search(pattern, message, re.IGNORECASE) for pattern in error.patterns):
            matching.append(error)
    return Explained(
        matching,
        "None of the usual ones. Run `make doctor`, and search for the message's last line.",
    )
