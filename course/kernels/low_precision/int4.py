"""Weights of 4 bits: quantized, packed as the tensor cores take them, and multiplied.

A weight is a code from 0 to 15, minus 8, times the scale of its group: 128 neighbours of a row.
"""

import ctypes
from dataclasses import dataclass
from pathlib import Path

import torch

from course.kernels.low_precision.operands import expect
from utils import cuda_c, hardware, has_gpu, machine, pick
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
GROUP = 128  # columns that share a scale
TILE_ROWS = 16
MOST_VECTORS = 8
ZERO = 8  # the code of 0
MOST = 15  # of a code
TILE_BYTES = TILE_ROWS * GROUP // 2 + TILE_ROWS * 2  # codes and scales
AMPERE = (8, 0)  # its tensor cores were the first to multiply bfloat16
CPU_SMS = 2  # on the CPU runtime: a block takes several stripes, and there is more than one


def available() -> bool:
    """Whether this machine's tensor cores multiply bfloat16; without a GPU the CPU runtime does."""
    return not has_gpu() or machine().gpu.compute_capability >= AMPERE


@dataclass(frozen=True)
class Shape:
    """How a launch is cut (what for: kernels/gemv_int4.cu, and gemm_int4.cu for more vectors)."""

    tiles: int = 4
    warps: int = 8
    depth: int = 3
    blocks: int = 1
    vectors: int = 1
    room: bool = True

    @property
    def name(self) -> str:
        """Of the kernel, and of its file."""
        return "gemv_int4" if self.vectors == 1 else "gemm_int4"

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler's flags for it."""
        named = {
            "TILES": self.tiles,
            "WARPS": self.warps,
            "DEPTH": self.depth,
            "BLOCKS": self.blocks,
        }
        if self.vectors == 1:
            named["ROOM"] = int(self.room)
        return tuple(f"-D{name}={value}" for name, value in named.items())

    @property
    def rows(self) -> int:
        """Of a stripe, or of a block."""
        return TILE_ROWS * self.tiles

    @property
    def threads(self) -> int:
        """Of a block."""
        return 32 * self.warps

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory a block: for one vector, its warps' rings."""
        if self.vectors > 1:
            return 0
        return self.warps * self.depth * (self.tiles * TILE_BYTES + 2 * GROUP)

    @property
    def sums(self) -> int:
        """Bytes of shared memory besides: all warps' sums of a stripe, and a group of x each."""
        return self.warps * (self.rows * 4 + 2 * GROUP)

    def grid(self, rows: int) -> int:
        """Blocks for a matrix of so many rows. Those for one vector stay: as many as have room."""
        stripes = rows // self.rows
        if self.vectors > 1:
            return stripes
        sms = machine().sms or CPU_SMS
        return min(stripes, sms * self.blocks)


#: What was fastest on an H200 (`bench` tries others), for one vector and for more.
FASTEST = Shape(4, 16, 2, room=False)
FASTEST_OF_MORE = Shape(1, 8, 3, 4, vectors=MOST_VECTORS)
#: For one vector, in the shared memory that any GPU has, and for matrices of few rows.
SMALL = Shape(2, 8, 3)


def shape_for(rows: int, vectors: int) -> Shape:
    """The fastest shape that fits this machine's GPU and a matrix of so many rows."""
    if vectors > 1:
        return FASTEST_OF_MORE
    roomy = has_gpu() and FASTEST.shared + FASTEST.sums <= hardware.shared_limit()
    return FASTEST if roomy and rows % FASTEST.rows == 0 else SMALL


@dataclass(frozen=True)
class Packed:
    """A matrix of 4-bit weights as the kernel reads it.

    codes: uint32, 256 a tile of 16 × 128. scales: uint32, two bfloat16 each, 8 a tile.
    """

    codes: torch.Tensor
    scales: torch.Tensor
    rows: int
    columns: int

    @property
    def bytes(self) -> int:
        """Bytes of codes and scales."""
        return self.codes.nbytes + self.scales.nbytes


def quantize(weights: torch.Tensor, group: int = GROUP) -> tuple[torch.Tensor, torch.Tensor]:
    """(codes, scales): each group's largest magnitude becomes 7.

    weights: [rows, columns]; codes: uint8 [rows, columns], 1 to 15; scales: bfloat16, a row each.
    """
    groups = weights.float().unflatten(1, (-1, group))
    largest = groups.abs().amax(-1, keepdim=True)
    scales = (largest / 7).bfloat16()
    steps = groups / scales.float().clamp(min=2**-100)
    codes = steps.round().clamp(-7, 7) + ZERO
    return codes.byte().reshape(weights.shape), scales.squeeze(-1)


def dequantize(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """The float32 weights that codes and scales stand for."""
    group = codes.shape[1] // scales.shape[1]
    of_columns = scales.float().repeat_interleave(group, dim=1)
    return (codes.float() - ZERO) * of_columns


def pack(codes: torch.Tensor, scales: torch.Tensor) -> Packed:
    """Arrange codes [rows, columns] and scales [rows, columns / 128] for the kernel.

    Lane (row, quarter) of a warp has 32 neighbours of one row, eight to a word: bit 4 * pair + 16 *
    which of the pair. Raises ValueError unless the matrix is whole tiles of 16 × 128, of uint8 from
    0 to 15 and bfloat16.
    """
    rows, columns = codes.shape
    if rows % TILE_ROWS or columns % GROUP:
        raise ValueError(f"{rows} × {columns} is not whole tiles of {TILE_ROWS} × {GROUP}")
    down = rows // TILE_ROWS
    across = columns // GROUP
    expect(
        codes.device,
        codes=(codes, torch.uint8, rows, columns),
        scales=(scales, torch.bfloat16, rows, across),
    )
    if (codes > MOST).any():
        raise ValueError(f"a code is {codes.max()}, but 4 bits hold at most {MOST}")
    # (tile row, half, row, tile, quarter, word, pair, of the pair) -> by tile, half, lane and word
    tiles = codes.reshape(down, 2, 8, across, 4, 4, 4, 2)
    tiles = tiles.permute(0, 3, 1, 2, 4, 5, 6, 7).long()
    of_pairs = 4 * torch.arange(4, device=codes.device)
    within_pairs = 16 * torch.arange(2, device=codes.device)
    places = of_pairs[:, None] + within_pairs
    words = (tiles << places).sum((-1, -2))
    bits = scales.view(torch.int16).long() & 0xFFFF
    halves = bits.reshape(down, 2, 8, across).permute(0, 3, 2, 1)
    pairs = halves[..., 0] | halves[..., 1] << 16
    return Packed(_words(words), _words(pairs), rows, columns)


def _words(values: torch.Tensor) -> torch.Tensor:
    """The lowest 32 bits of each, flat."""
    wrapped = values - 2**32
    signed = torch.where(values >= 2**31, wrapped, values)
    return signed.int().flatten().view(torch.uint32)


@yours.cache
def kernel(shape: Shape):
    """The compiled kernel."""
    module = cuda_c.load(KERNELS / f"{shape.name}.cu", flags=shape.flags)
    return getattr(module, shape.name)


def multiply(
    packed: Packed,
    x: torch.Tensor,
    y=None,
    shape: Shape | None = None,
    overlapped: bool = False,
) -> torch.Tensor:
    """y = W x for each row of x: bfloat16 [vectors, columns] -> bfloat16 [vectors, rows].

    At most 8 vectors. overlapped: the kernel may begin while the one before it still runs (Hopper).
    Raises ValueError where sizes or types do not fit.
    """
    if shape is None:
        shape = shape_for(packed.rows, len(x))
    if packed.rows % shape.rows:
        raise ValueError(f"{packed.rows} rows are not whole stripes of {shape.rows}")
    vectors = max(1, min(len(x), shape.vectors))
    if y is None:
        y = x.new_empty(vectors, packed.rows)
    expect(
        packed.codes.device,
        x=(x, torch.bfloat16, vectors, packed.columns),
        y=(y, torch.bfloat16, vectors, packed.rows),
    )
    arrays = (y, packed.codes, packed.scales, x)
    sizes = (packed.rows, packed.columns)
    if shape.vectors > 1:
        sizes += (vectors,)
    if overlapped:
        launch_overlapped(shape, shape.grid(packed.rows), arrays, sizes)
    else:
        stream = torch.cuda.current_stream() if has_gpu() else 0
        launch = kernel(shape)[shape.grid(packed.rows), shape.threads, shape.shared, stream]
        launch(*arrays, *sizes)
    return y


@yours.cache
def overlapping_kernel(shape: Shape):
    """The driver's handle of the kernel, which may use as much shared memory as it needs."""
    from cuda.bindings import driver

    handle = kernel(shape).handle
    attributes = driver.CUfunction_attribute
    attribute = attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    device = torch.cuda.current_device()
    kernel_handle = driver.CUkernel(handle)
    (error,) = driver.cuKernelSetAttribute(attribute, shape.shared, kernel_handle, device)
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{shape.shared:,} bytes of shared memory are refused: {error.name}")
    return driver.CUfunction(handle)


def launch_overlapped(shape: Shape, blocks: int, arrays, sizes) -> None:
    """Launch with programmatic stream serialization: the kernel waits for the one before by itself.

    arrays: tensors on the GPU; sizes: ints (32 bits). Source: CUDA Driver API, cuLaunchKernelEx.
    """
    from cuda.bindings import driver

    attribute = driver.CUlaunchAttribute()
    names = driver.CUlaunchAttributeID
    attribute.id = names.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    config = driver.CUlaunchConfig()
    config.gridDimX = blocks
    config.gridDimY = 1
    config.gridDimZ = 1
    config.blockDimX = shape.threads
    config.blockDimY = 1
    config.blockDimZ = 1
    config.sharedMemBytes = shape.shared
    stream = torch.cuda.current_stream().cuda_stream
    config.hStream = driver.CUstream(stream)
    config.attrs = [attribute]
    config.numAttrs = 1
    pointers = [array.data_ptr() for array in arrays]
    types = [ctypes.c_void_p] * len(arrays) + [ctypes.c_int] * len(sizes)
    arguments = ((*pointers, *sizes), tuple(types))
    (error,) = driver.cuLaunchKernelEx(config, overlapping_kernel(shape), arguments, 0)
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the launch is refused: {error.name}")


def random_weights(
    rows: int,
    columns: int,
    device=None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Random codes and scales, for tests and races."""
    device = device or pick(gpu="cuda", cpu="cpu")
    groups = columns // GROUP
    codes = torch.randint(0, 16, (rows, columns), dtype=torch.uint8, device=device)
    scales = torch.rand(rows, groups, device=device) / columns**0.5
    return codes, scales.bfloat16()
