"""Compile and launch the fast kernels (kernels/fast*.cu), which need Hopper or a later GPU.

A kernel is compiled for one shape (`shapes.Shape`) and one element type when first asked for.
"""

import functools
import math
from dataclasses import dataclass, field
from pathlib import Path

import torch

from course.kernels.row_kernels import classic
from course.kernels.row_kernels.shapes import (
    ACCESS,
    MANY,
    SPLIT_THREADS,
    USUAL,
    Layout,
    Shape,
    Split,
    about,
    best_shape,
)
from utils import cuda_c
from utils.cuda_c.device_code import toolkit_headers
from utils.cuda_c.launching import POINTER, Launcher, configuration
from utils.engine import gpu, has_gpu
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
ELEMENTS = {
    torch.float32: "float",
    torch.bfloat16: "__nv_bfloat16",
    torch.float16: "__half",
}
COMPILED = {}  # (file, shape, dtype, arch, what a learner changed): machine code
CODES = {int: "q", float: "f"}  # how `struct` writes a number; all else is a pointer
SHARED_NEEDED = 227 << 10  # bytes a block
PORTABLE_CLUSTER = 8  # larger ones must be asked for


@functools.cache
def available() -> bool:
    """Whether this GPU has bulk copies, clusters and enough shared memory: Hopper's and Blackwell's
    data-centre GPUs.
    """
    if not has_gpu() or gpu().compute_capability < (9, 0):
        return False
    from cuda.core import Device

    room = Device(torch.cuda.current_device()).properties.max_shared_memory_per_block_optin
    return room >= SHARED_NEEDED


@dataclass
class Fast:
    """A compiled kernel.

    clusters: how many of its clusters the GPU runs at a time. device: torch's number of the GPU.
    launcher: made at the first launch, whose arguments tell their kinds. configs: by rows and
    stream.
    """

    kernel: object
    shape: Shape
    clusters: int
    device: int
    launcher: Launcher | None = None
    configs: dict = field(default_factory=dict)

    def grid_clusters(self, rows: int) -> int:
        """Clusters to launch: one a tile, or no more than run at a time if each takes many."""
        if self.shape.gather > 1:
            return self.shape.gather
        tiles = -(-rows // self.shape.tile_rows)
        if not self.shape.persistent:
            return tiles
        # rows that a block takes one after another are to begin alike within an access
        step = self.shape.pack if self.shape.ragged else 1
        most = self.clusters - self.clusters % step
        return min(most or tiles, tiles)

    def launch(self, rows: int, *arguments) -> None:
        """Launch on torch's current stream.

        arguments: tensors, None, ints (64 bits) and floats (32 bits), always of the same kinds.
        Raises RuntimeError with the driver's error.
        """
        if self.launcher is None:
            codes = [CODES.get(type(each), POINTER) for each in arguments]
            self.launcher = Launcher(int(self.kernel.handle), codes)
        where = rows, torch._C._cuda_getCurrentRawStream(self.device)
        config = self.configs.get(where)
        if config is None:
            config = self.configs[where] = self._configuration(*where)
        values = [
            each.data_ptr() if isinstance(each, torch.Tensor) else each or 0 for each in arguments
        ]
        error = self.launcher(config, values)
        if error:
            from cuda.bindings.driver import CUresult

            raise RuntimeError(f"{self.shape}: {CUresult(error).name}")

    def _configuration(self, rows, stream):
        shape = self.shape
        blocks = self.grid_clusters(rows) * shape.cluster
        return configuration((blocks, 1, 1), (shape.threads, 1, 1), shape.shared_bytes, stream)


class SplitNorm:
    """The norms' backward passes in two kernels (kernels/split_norms.cu)."""

    def __init__(self, shape: Split, dtype: torch.dtype):
        self.shape = shape
        flags = (f"-DELEMENT={ELEMENTS[dtype]}",)
        module = cuda_c.load(KERNELS / "split_norms.cu", flags=flags)
        self.row_sums = module[f"row_sums<{shape.access}, {shape.packs}>"]
        self.gradients = module[f"gradients<{shape.access}, {shape.packs}>"]

    def launch(self, dx, dy, x, gamma, means, inverses) -> tuple[torch.Tensor, bool]:
        """Write dx; returns the sums of dgamma and, with means, of dbeta: [2 or 1, columns], or
        [2 or 1, groups of rows, columns] that are still to be added up, and whether they are.
        """
        rows, columns = x.shape
        stride = x.stride(0) if rows > 1 else columns
        pieces, groups = self.shape.pieces, self.shape.groups(rows)
        kinds = 1 if means is None else 2
        on = {"device": x.device}
        sums = torch.empty((rows, pieces, 2), dtype=torch.float32, **on)
        results = torch.empty((kinds, columns), dtype=x.dtype, **on)
        partial = torch.empty((kinds, groups if groups > 1 else 0, columns), **on)
        common = whole(dy), whole(x), gamma, means, inverses, rows, columns, stride
        where = SPLIT_THREADS, 0, classic.stream(x)
        self.row_sums[(pieces, self.shape.sum_groups(rows)), *where](sums, *common)
        self.gradients[(pieces, groups), *where](dx, partial, results, sums, pieces, *common)
        return (partial, False) if groups > 1 else (results, True)


def whole(x: torch.Tensor) -> torch.Tensor:
    """A matrix with gaps as the piece of memory from its first element to its last."""
    if x.is_contiguous():
        return x
    rows, columns = x.shape
    return x.as_strided(((rows - 1) * x.stride(0) + columns,), (1,))


def kernel_for(
    operation: str,
    shape: Shape | None,
    inputs: tuple[torch.Tensor, ...],
    parameters: tuple[torch.Tensor, ...] = (),
    out: torch.Tensor | None = None,
) -> Fast | SplitNorm | None:
    """The fast kernel of an operation for these tensors, or None where there is none.

    shape: chosen by the rows' length, number and place unless given. inputs: matrices whose rows
    lie equally far apart; parameters: one a column. out: a matrix without gaps that the caller
    gave; one that was just made begins at an access.
    """
    x = inputs[0]
    kind = x.dtype
    if kind not in ELEMENTS or not available():
        return None
    places = out.data_ptr() if out is not None else 0
    for t in inputs:  # loops: they are a part of what a call costs
        if t.dtype is not kind:
            return None
        places |= t.data_ptr()
    for t in parameters:
        if t.dtype is not kind:
            return None
        places |= t.data_ptr()
    if shape:
        return of_shape(operation, shape, kind)
    count, columns = x.shape
    if not places % ACCESS and x.is_contiguous():
        return chosen(operation, columns, kind, len(inputs), about(count))
    layout = layout_of(inputs, places, out)
    return chosen(operation, columns, kind, len(inputs), about(count), layout)


@yours.cache
def chosen(
    operation: str,
    columns: int,
    dtype: torch.dtype,
    inputs: int = 1,
    rows: int = MANY,
    layout: Layout = USUAL,
) -> Fast | SplitNorm | None:
    """The fast kernel of an operation for rows of a length, or None. inputs: matrices it reads."""
    shape = best_shape(operation, columns, dtype.itemsize, inputs, rows, layout)
    return of_shape(operation, shape, dtype) if shape else None


def layout_of(inputs: tuple, places: int, out: torch.Tensor | None) -> Layout:
    """Where the rows of these matrices lie. places: all their addresses, bit by bit together."""
    count, columns = inputs[0].shape
    written = out.data_ptr() if out is not None else 0
    read, alike = 0, True
    for t in inputs:
        read |= t.data_ptr()
        alike = alike and not (t.data_ptr() - written) % ACCESS
    stride = inputs[0].stride(0) if count > 1 else columns
    return Layout(
        stride=0 if stride == columns else stride,
        aligned=math.gcd(ACCESS, places),
        alike=alike,
        inputs_aligned=0 if written % ACCESS else math.gcd(ACCESS, read),
    )


def of_shape(operation: str, shape: Shape | Split, dtype: torch.dtype) -> Fast | SplitNorm:
    """The fast kernel of an operation that takes a shape."""
    if isinstance(shape, Split):
        return split(shape, dtype)
    way = way_of(shape)
    if operation.startswith("cross_entropy"):
        return load(f"{way}_cross_entropy.cu", f"{operation}_{way}", shape, dtype)
    return load(f"{way}_{operation}.cu", f"{operation}_{way}", shape, dtype)


def way_of(shape: Shape) -> str:
    """How the kernels' files are called that take this shape."""
    if shape.passes:
        return "short"
    return "two_reads" if shape.twice else "fast"


@yours.cache
def split(shape: Split, dtype: torch.dtype) -> SplitNorm:
    """The two kernels of a backward pass that is split."""
    return SplitNorm(shape, dtype)


@yours.cache
def load(
    file: str,
    name: str,
    shape: Shape,
    dtype: torch.dtype,
) -> Fast:
    """The kernel `name` of kernels/`file`, compiled for a shape and an element type."""
    from cuda.core import Device, ObjectCode

    Device(torch.cuda.current_device()).set_current()
    code = compile_kernel(file, shape, dtype, gpu().arch + "a")
    kernel = ObjectCode.from_cubin(code).get_kernel(name)
    _allow(kernel, shape)
    return Fast(kernel, shape, _clusters(kernel, shape), torch.cuda.current_device())


def compile_kernel(
    file: str,
    shape: Shape,
    dtype: torch.dtype,
    arch: str,
) -> bytes:
    """Machine code of a file for an architecture such as "sm_90a"; needs no GPU. Compiled once."""
    path = yours.current(Path(shape.folder or KERNELS) / file)
    request = file, shape, dtype, arch, path.read_text()
    if request not in COMPILED:
        COMPILED[request] = _compile(path, shape, dtype, arch)
    return COMPILED[request]


def _compile(path, shape, dtype, arch) -> bytes:
    from cuda.core import Program, ProgramOptions

    macros = {"ELEMENT": ELEMENTS[dtype]} | shape.macros
    options = ProgramOptions(
        name=path.name,
        arch=arch,
        std="c++17",
        include_path=[str(path.parent), *toolkit_headers()],
        define_macro=[f"{name}={value}" for name, value in macros.items()],
    )
    return Program(path.read_text(), "c++", options).compile("cubin").code


def _allow(kernel, shape: Shape) -> None:
    """Ask for what a kernel does not get unasked: much shared memory, clusters of 16 blocks."""
    from cuda.bindings.driver import CUfunction_attribute as Attribute

    _set(kernel, Attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shape.shared_bytes)
    if max(shape.cluster, shape.gather) > PORTABLE_CLUSTER:
        _set(kernel, Attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)


def _set(kernel, attribute, value: int) -> None:
    from cuda.bindings import driver

    device = torch.cuda.current_device()
    (error,) = driver.cuKernelSetAttribute(attribute, value, kernel.handle, device)
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{attribute.name} = {value} is refused: {error.name}")


def _clusters(kernel, shape: Shape) -> int:
    """How many clusters run at a time: all blocks of one must fit a GPC, a part of the GPU."""
    from cuda.bindings import driver

    device = torch.cuda.current_device()
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH
    _, width = driver.cuKernelGetAttribute(attribute, kernel.handle, device)
    if width <= 1 or shape.gather > 1:  # blocks that share a row may run anywhere
        sms = torch.cuda.get_device_properties(device).multi_processor_count
        return sms * shape.blocks // shape.cluster
    config = driver.CUlaunchConfig()
    config.gridDimX = shape.cluster
    config.gridDimY = 1
    config.gridDimZ = 1
    config.blockDimX = shape.threads
    config.blockDimY = 1
    config.blockDimZ = 1
    config.sharedMemBytes = shape.shared_bytes
    function = driver.CUfunction(int(kernel.handle))
    error, clusters = driver.cuOccupancyMaxActiveClusters(function, config)
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"clusters of {shape.cluster} blocks: {error.name}")
    if clusters == 0:
        raise RuntimeError(f"no cluster of {shape.cluster} such blocks fits this GPU ({shape})")
    return clusters
