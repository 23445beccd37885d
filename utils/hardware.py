"""What a GPU is and can do: this machine's line, memories and roofs, facts of generations.

Which engine runs the kernels is decided in `utils.engine`; here are measurements and data sheets.
"""

import functools
from dataclasses import dataclass
from typing import Any

from utils import engine, results, timing
from utils.data_sheets import FP32_UNITS, data_sheet, generations, sources_of  # noqa: F401
from utils.engine import FORCE_CPU, GPU, forced_cpu
from utils.occupancy import limits
from utils.results.likeness import listed
from utils.tools.nvcc import nvcc_version

#: The types of matrix product whose speed is measured as a roof
MATMULS = ("float32", "tf32", "bfloat16")
#: What was recorded of the kernels from which the roofs follow
ROOFLINE = (
    "vector_add/bandwidth",
    "vector_add/share_of_copy",
    "matmul/rate",
    "matmul/share_of_matmul",
)


@dataclass(frozen=True)
class Machine:
    """What `machine()` found. Its repr is the one line that a chapter opens with."""

    gpu: GPU | None
    sms: int | None = None
    l2_bytes: int | None = None
    copy_bytes_per_second: float | None = None
    nvcc: str | None = None

    def __repr__(self) -> str:
        if self.gpu is None:
            why = f"{FORCE_CPU} is set" if forced_cpu() else "no NVIDIA GPU"
            return f"{why}: kernels run on the CPU engines, sizes reduced, no times measured"
        g = self.gpu
        parts = [
            g.name,
            f"{self.sms} SMs",
            "CC {}.{}".format(*g.compute_capability) + (" (pretended)" if g.pretended else ""),
            f"{g.memory_bytes / 2**30:.0f} GiB",
            f"copy {(self.copy_bytes_per_second or 0) / 1e12:.2f} TB/s",
            f"driver {g.driver} (CUDA {g.cuda[0]}.{g.cuda[1]})",
            f"nvcc {self.nvcc}" if self.nvcc else "no nvcc",
        ]
        return " · ".join(parts)


@functools.cache
def machine() -> Machine:
    """Say which GPU this is, with its copy bandwidth as measured now, or that there is none.

    Returns a `Machine` whose fields are in bytes and bytes per second.
    """
    this = engine.gpu()
    if this is None:
        return Machine(None)
    device = _device()
    return Machine(
        this,
        sms=device.MULTIPROCESSOR_COUNT,
        l2_bytes=device.L2_CACHE_SIZE,
        copy_bytes_per_second=timing.copy_bandwidth(),
        nvcc=nvcc_version(),
    )


def _device() -> Any:
    """Numba's view of the GPU, which has the numbers that NVML lacks."""
    from numba import cuda

    return cuda.get_current_device()


def this_gpu() -> dict:
    """The GPU of this machine as the "gpu" object of a results file. RuntimeError without a GPU."""
    this = engine.gpu()
    if this is None:
        raise RuntimeError("there is no GPU here to describe")
    return {
        "name": this.name,
        "compute_capability": "{}.{}".format(*this.compute_capability),
        "sms": machine().sms,
        "memory_bytes": this.memory_bytes,
        "driver": this.driver,
        "cuda": "{}.{}".format(*this.cuda),
    }


def shared_limit() -> int:
    """Bytes of shared memory that a block may ask for, by the driver; no more than a pretended
    level has.
    """
    from cuda.core import Device

    driver: int = Device().properties.max_shared_memory_per_block_optin
    this = engine.the_gpu()
    most = limits(this.compute_capability).shared_block
    return min(driver, most) if this.pretended else driver


# ---- what this GPU has, else a data sheet's


def memories(datasheet: str = "H100 SXM") -> tuple[str, dict[str, int]]:
    """(whose, {name: bytes}): this GPU's memories of each kind, all SMs together, by its driver.

    Without a GPU: those of `datasheet`, which the first value says.
    """
    if engine.has_gpu():
        return _memories_of_driver()
    facts = generations()
    chip = next(chip for chip in facts["chips"] if chip["chip"] == f"NVIDIA {datasheet}")
    stores = {name: kilobytes << 10 for name, kilobytes in chip["storage_kb"].items()}
    sizes = {
        "registers": stores["registers"],
        "L1 / shared memory": stores["L1 / shared"],
        "L2 cache": stores["L2"],
        "global memory": data_sheet(datasheet)["memory_gb"] * 10**9,
    }
    title = facts["sources"]["hopper"]["title"]
    return f"{datasheet}, {chip['cores']} SMs, data sheet:\n{title}", sizes


def _memories_of_driver() -> tuple[str, dict[str, int]]:
    from numba import cuda

    device = _device()
    sms = device.MULTIPROCESSOR_COUNT
    name = device.name
    name = name.decode() if isinstance(name, bytes) else name
    sizes = {
        "registers": 4 * device.MAX_REGISTERS_PER_MULTIPROCESSOR * sms,
        "shared memory": device.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR * sms,
        "L2 cache": device.L2_CACHE_SIZE,
        "global memory": cuda.current_context().get_memory_info().total,
    }
    return f"{name}, {sms} SMs, as its driver says", sizes


def is_here(gpu: str | None) -> bool:
    """Whether this machine's GPU is the named one; None means any."""
    here = engine.gpu()
    return here is not None and gpu in (None, here.name)


def roofs(
    datasheet: str = "H100 SXM",
    gpu: str | None = None,
) -> tuple[dict[str, float], dict[str, float], str]:
    """(bytes/s, FLOP/s, whose): measured on this GPU, else recorded on one, else a data sheet's.

    The two dicts name each roof; what is measured is a copy and the library's matrix products.
    gpu: the name of the GPU that they must be of, where its recorded times stand beside them.
        LookupError where nothing is known of it.
    """
    if is_here(gpu):
        flops = {f"matmul {dtype}": timing.matmul_rate(dtype) for dtype in MATMULS}
        return {"copy": timing.copy_bandwidth()}, flops, f"measured on this {engine.the_gpu().name}"
    entries = [results.find(f"roofline/{name}", gpu) for name in ROOFLINE]
    known = [entry for entry in entries if entry]
    if len(known) == len(ROOFLINE):
        return _roofs_of_records(known)
    if gpu:
        datasheet = listed(gpu)["gpu"]
    sheet = data_sheet(datasheet)
    peaks = {
        "fp32 units": sheet["fp32_tflops"] * 1e12,
        "tensor cores, 16 bit": sheet["tensor16_tflops"] * 1e12,
    }
    whose = f"datasheet of the {datasheet}, nothing measured"
    return {"memory": sheet["bandwidth_gb_s"] * 1e9}, peaks, whose


def _roofs_of_records(
    entries: list[dict],
) -> tuple[dict[str, float], dict[str, float], str]:
    """A rate divided by its share of the roof is the roof."""
    bandwidth, share_of_copy, rate, share_of_matmul = (entry["value"] for entry in entries)
    whose = f"recorded on {entries[0]['gpu']}, {entries[0]['date'][:10]}"
    return {"copy": bandwidth / share_of_copy}, {"matmul float32": rate / share_of_matmul}, whose


def fp32_roofs(datasheet: str = "H200") -> tuple[str, float, float]:
    """(whose, FLOP/s, bytes/s): a GPU's fp32 units at their highest clock, and its memory.

    On a GPU: SMs × units × 2 × clock as its driver says, and the measured copy bandwidth. Without
    one: a data sheet.
    """
    if not engine.has_gpu():
        sheet = data_sheet(datasheet)
        peak = sheet["fp32_tflops"] * 1e12
        whose = f"no GPU here; {datasheet}, data sheet: {peak / 1e12:.0f} TFLOP/s"
        return whose, peak, sheet["bandwidth_gb_s"] * 1e9
    device = _device()
    sms = device.MULTIPROCESSOR_COUNT
    units = FP32_UNITS.get(device.compute_capability, 128)
    hertz = device.CLOCK_RATE * 1e3
    peak = sms * units * 2 * hertz
    product = f"{sms} SMs × {units} units × 2 × {hertz / 1e9:.2f} GHz"
    whose = f"{engine.the_gpu().name}: {product} = {peak / 1e12:.1f} TFLOP/s"
    return whose, peak, timing.copy_bandwidth()
