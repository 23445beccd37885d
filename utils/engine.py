"""GPU or CPU? One answer, decided once, before Numba or Triton is imported.

With an NVIDIA GPU kernels are compiled and run on it. Without one, or with the environment variable
``CUDA_COURSE_CPU=1``, they run on the CPU engines in ``utils.cpu``.

``CUDA_COURSE_LEVEL=7.5`` makes the course take the GPU for one of that compute capability: chapters
choose what such a GPU can do, nvcc and NVRTC compile PTX of that level, and the driver translates
it. Numba, Triton and PyTorch compile for the GPU that there is, and times stay that GPU's.
"""

import dataclasses
import functools
import os
import re
import sys
import warnings
from dataclasses import dataclass
from typing import TypeVar

from . import sizes

FORCE_CPU = "CUDA_COURSE_CPU"
LEVEL = "CUDA_COURSE_LEVEL"
Value = TypeVar("Value")


@dataclass(frozen=True)
class GPU:
    """What NVIDIA's management library (NVML) says of one GPU."""

    name: str
    compute_capability: tuple[int, int]
    memory_bytes: int
    driver: str
    cuda: tuple[int, int]  # newest CUDA version that this driver runs
    uuid: str
    pretended: bool = False  # whether the compute capability is one that CUDA_COURSE_LEVEL asks for

    @property
    def arch(self) -> str:
        """The real architecture that nvcc and NVRTC compile for, such as ``sm_90``."""
        return "sm_{}{}".format(*self.compute_capability)

    @property
    def run_arch(self) -> str:
        """What is compiled to be run here: `arch`, or PTX (``compute_75``) of a pretended level."""
        return self.arch.replace("sm_", "compute_") if self.pretended else self.arch

    @property
    def torch_arch(self) -> str:
        """The same as PyTorch's builder of extensions takes it: ``9.0``, or ``7.5+PTX``."""
        number = "{}.{}".format(*self.compute_capability)
        return f"{number}+PTX" if self.pretended else number


@functools.cache
def _nvml_gpus() -> tuple[GPU, ...]:
    """All GPUs that NVML lists; empty without a driver. Needs no CUDA context."""
    try:
        import pynvml
    except ImportError:
        return ()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
            warnings.warn(
                "the NVIDIA driver was updated and this machine not restarted since; "
                "restart it to use the GPU. Until then the CPU engines run.",
                stacklevel=2,
            )
        return ()
    try:
        return tuple(_nvml_gpu(index) for index in range(pynvml.nvmlDeviceGetCount()))
    except pynvml.NVMLError:
        return ()
    finally:
        pynvml.nvmlShutdown()


def _nvml_gpu(index: int) -> GPU:
    """One GPU, by its place in NVML's list."""
    import pynvml

    version = pynvml.nvmlSystemGetCudaDriverVersion()
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    return GPU(
        name=pynvml.nvmlDeviceGetName(handle),
        compute_capability=tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle)),
        memory_bytes=pynvml.nvmlDeviceGetMemoryInfo(handle).total,
        driver=pynvml.nvmlSystemGetDriverVersion(),
        cuda=(version // 1000, version % 1000 // 10),
        uuid=pynvml.nvmlDeviceGetUUID(handle),
    )


def gpu() -> GPU | None:
    """The GPU that kernels run on, or None.

    It is the first that ``CUDA_VISIBLE_DEVICES`` leaves visible, as ``CUDA_COURSE_LEVEL`` has it.
    ValueError for a level that is none, or more than the GPU has.
    """
    visible = None if forced_cpu() else _visible_gpu()
    level = os.environ.get(LEVEL)
    if visible is None or not level:
        return visible
    return _pretending(visible, level)


def the_gpu() -> GPU:
    """The same for what runs only where there is one. RuntimeError without a GPU."""
    this = gpu()
    if this is None:
        raise RuntimeError("there is no GPU here")
    return this


def _pretending(this: GPU, level: str) -> GPU:
    """The GPU with a lower compute capability, given as text such as "7.5"."""
    number = re.fullmatch(r"(\d+)\.(\d)", level)
    wanted = (int(number[1]), int(number[2])) if number else None
    if wanted is None or wanted > this.compute_capability:
        highest = "{}.{}".format(*this.compute_capability)
        raise ValueError(
            f"{LEVEL} is {level!r}: it takes a compute capability up to {highest}, such as 7.5"
        )
    if wanted == this.compute_capability:
        return this
    return dataclasses.replace(this, compute_capability=wanted, pretended=True)


def _visible_gpu() -> GPU | None:
    gpus = _nvml_gpus()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return gpus[0] if gpus else None
    first = visible.split(",")[0].strip()
    if first.isdigit():
        return gpus[int(first)] if int(first) < len(gpus) else None
    if first.startswith("MIG-"):  # a slice of a GPU: NVML describes the whole one
        return gpus[0] if gpus else None
    # A UUID may be given by any unambiguous beginning; an empty string or -1 hides every GPU.
    return next((g for g in gpus if first and g.uuid.startswith(first)), None)


def target_arch() -> str:
    """The architecture to compile for: this GPU's, or ``sm_90`` where there is none to ask."""
    this_gpu = gpu()
    return this_gpu.arch if this_gpu else "sm_90"


def run_arch() -> str:
    """The same for what is to run here: with a pretended level PTX, which the driver translates."""
    this_gpu = gpu()
    return this_gpu.run_arch if this_gpu else target_arch()


def forced_cpu() -> bool:
    """Whether ``CUDA_COURSE_CPU`` asks for the CPU engines on a machine that may have a GPU."""
    return os.environ.get(FORCE_CPU, "0") not in ("", "0")


@functools.cache
def has_gpu() -> bool:
    """Whether kernels run on a GPU in this process. The answer never changes once asked."""
    return gpu() is not None


def pick(*, gpu: Value, cpu: Value) -> Value:
    """`gpu` where kernels run on a GPU, `cpu` (usually a smaller size) where they do not.

    Of whole numbers that for the CPU remembers the other: see `utils.sizes`.
    """
    value: Value = gpu if has_gpu() else sizes.picked(gpu, cpu)
    return value


def choose_engine() -> None:
    """Point Numba and Triton at the GPU or the CPU engines; called when ``utils`` is imported."""
    if has_gpu():
        # NVML counts GPUs in PCI order; CUDA's own order would make "GPU 0" two different cards.
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        # A lesson's first kernels are small on purpose, which Numba would find worth a warning.
        os.environ.setdefault("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")
        return
    late = [name for name in ("numba.cuda", "triton") if name in sys.modules]
    if late:
        warnings.warn(
            f"{' and '.join(late)} was imported before utils, so it is not on the CPU engine: "
            "restart the kernel (Kernel > Restart) and run the set-up cell first.",
            stacklevel=3,
        )
        return
    from .cpu import numba_cuda, triton

    numba_cuda.install()
    triton.install()
