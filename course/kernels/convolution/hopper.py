"""Launch the kernels that need Hopper: implicit matrix products, and those with a halo.

x: (n, h, w, c), w: (k, rows, columns, c), y and dy: (n, p, q, k), all bfloat16 on the GPU; channels
are multiples of 8. What writes a tensor returns it.
"""

import ctypes
import functools
from dataclasses import dataclass
from pathlib import Path

import torch

from course.kernels.convolution import tensor_maps
from course.kernels.convolution.shapes import Convolution
from utils import cuda_c, has_gpu, machine
from utils.occupancy import ceil_div
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
BOX = 64  # channels
ROW = 2 * BOX  # bytes
BARRIER = 8  # bytes


@dataclass(frozen=True)
class Tile:
    """How hopper.cu is compiled. `consumers` warp groups of 64 pixels, `bn` outputs."""

    consumers: int = 3
    bn: int = 256
    stages: int = 3
    cluster: int = 2

    @property
    def bm(self) -> int:
        return BOX * self.consumers

    @property
    def threads(self) -> int:
        return 128 * (self.consumers + (self.consumers < 3))

    @property
    def shared(self) -> int:
        stage = (self.bm + self.bn) * ROW
        boxes = self.consumers * 2 * BOX * ROW
        return self.stages * (stage + 2 * BARRIER) + boxes

    @property
    def flags(self) -> tuple[str, ...]:
        return (
            f"-DCONSUMERS={self.consumers}",
            f"-DBN={self.bn}",
            f"-DSTAGES={self.stages}",
            f"-DCLUSTER={self.cluster}",
        )


WIDE = Tile()
USUAL = Tile(consumers=2, stages=4)
NARROW = Tile(consumers=2, bn=64, stages=7, cluster=1)


ABOUT = 0.97  # as good as the other: the usual tile is a little faster for the same work


def tile_for(pixels: int, outputs: int) -> Tile:
    """The tile whose rounds are fullest: as little as possible is computed for nothing."""
    if outputs <= BOX:
        return NARROW
    fullest = fullness(WIDE, pixels, outputs)
    if fullness(USUAL, pixels, outputs) >= ABOUT * fullest:
        return USUAL
    return WIDE


def fullness(tile: Tile, pixels: int, outputs: int) -> float:
    """The share of the results computed in all rounds of tiles that is asked for."""
    clusters = sms() // tile.cluster
    down = ceil_div(pixels, tile.cluster * tile.bm)
    across = ceil_div(outputs, tile.bn)
    rounds = ceil_div(down * across, clusters)
    computed = rounds * clusters * tile.cluster * tile.bm * tile.bn
    return pixels * outputs / computed


def available() -> bool:
    """Whether this machine's GPU has wgmma and the copy engine; without one the CPU runtime has."""
    return not has_gpu() or machine().gpu.compute_capability == (9, 0)


CPU_SMS = 4  # on the CPU runtime: a block takes several tiles, and there is more than one


@functools.cache
def sms() -> int:
    if not has_gpu():
        return CPU_SMS
    return torch.cuda.get_device_properties(0).multi_processor_count


@yours.cache
def module(file: str, flags: tuple[str, ...] = ()):
    return cuda_c.load(KERNELS / file, flags=flags)


@yours.cache
def _implicit(tile: Tile, turned: bool):
    return module("hopper.cu", (*tile.flags, f"-DTURNED={int(turned)}"))


def _corners(problem, stride: int, height: int, width: int):
    """The box of places that the first tap visits, of a picture of this size."""
    last_row = (problem.height - 1) * stride + problem.top
    last_column = (problem.width - 1) * stride + problem.left
    first = problem.top, problem.left
    beyond = last_row + 1 - height, last_column + 1 - width
    return first, beyond


def _product(
    result,
    source,
    w,
    problem,
    tile: Tile | None,
    turned: bool,
    stride: int,
):
    """Launch hopper.cu: `result` from `source`, both NHWC."""
    tile = tile or tile_for(result.numel() // problem.outputs, problem.outputs)
    taps = problem.rows * problem.columns
    corners = _corners(problem, stride, *source.shape[1:3])
    box = BOX, 1, BOX
    if not turned:
        box = tile.bn // tile.cluster, 1, BOX
    matrix = result.view(-1, problem.outputs)
    by_tap = w.view(len(w), taps, -1)
    maps = (
        tensor_maps.boxes(matrix, (BOX, BOX)),
        tensor_maps.pixels(source, tile.bm, corners, stride),
        tensor_maps.boxes(by_tap, box),
    )
    down = ceil_div(len(matrix), tile.cluster * tile.bm)
    across = ceil_div(problem.outputs, tile.bn)
    room = sms() // tile.cluster
    blocks = tile.cluster * min(room, down * across)
    kernel = _implicit(tile, turned).convolve
    launch = kernel[blocks, tile.threads, tile.shared]
    return lambda: launch(*maps, problem)


def forward(y, x, w, conv: Convolution, tile: Tile | None = None):
    """A function that computes y: the maps are made once."""
    problem = conv.forward_problem()
    return _product(y, x, w, problem, tile, False, conv.stride)


def data_gradient(dx, dy, w, conv: Convolution, tile: Tile | None = None):
    """A function that computes dx, for stride 1."""
    if conv.stride != 1:
        raise ValueError("this kernel computes the data gradient for stride 1 only")
    problem = conv.backward_problem()
    return _product(dx, dy, w, problem, tile, True, 1)


# ---- the weights' gradient

COLUMNS = 256  # of a tile of dw


@dataclass(frozen=True)
class WeightsTile:
    """How hopper_weights.cu is compiled: `consumers` warp groups of 64 filters in each block."""

    consumers: int = 2
    cluster: int = 2
    stages: int = 4

    @property
    def rows(self) -> int:
        """Filters of a cluster's tile."""
        return self.cluster * self.consumers * BOX

    @property
    def threads(self) -> int:
        return 128 * (self.consumers + 1)

    @property
    def shared(self) -> int:
        return self.stages * ((COLUMNS + self.consumers * BOX) * ROW + 2 * BARRIER)

    @property
    def flags(self) -> tuple[str, ...]:
        return (
            f"-DCONSUMERS={self.consumers}",
            f"-DCLUSTER={self.cluster}",
            f"-DSTAGES={self.stages}",
        )


FEW_FILTERS = WeightsTile(consumers=1, cluster=1, stages=5)


def weights_tile(conv: Convolution) -> WeightsTile:
    """The tile for a convolution: one that its filters fill."""
    return FEW_FILTERS if conv.k <= BOX else WeightsTile()


def clusters_for(tile: WeightsTile, tiles: int, steps: int, even: bool) -> int:
    """How many clusters share the steps of all tiles.

    As many as the GPU has room for; or, if that leaves few idle, a whole number for each tile: then
    clusters that work on different tiles go through the same pixels at the same time, and the L2
    cache has them.
    """
    most = min(sms() // tile.cluster, tiles * steps)
    whole = most // tiles * tiles
    return whole if even and whole >= FULL * most else most


FULL = 0.9  # of the clusters busy


def weights_gradient(
    dw,
    dy,
    x,
    conv: Convolution,
    tile: WeightsTile | None = None,
    even=True,
):
    """A function that computes dw."""
    tile = tile or weights_tile(conv)
    problem = conv.forward_problem()
    corners = _corners(problem, conv.stride, conv.h, conv.w)
    matrix = dy.view(-1, conv.k)
    maps = (
        tensor_maps.boxes(matrix, (BOX, BOX)),
        tensor_maps.pixels(x, BOX, corners, conv.stride),
    )
    steps = ceil_div(len(matrix), BOX)
    columns = conv.taps * ceil_div(conv.c, BOX) * BOX
    across = ceil_div(columns, COLUMNS)
    tiles = across * ceil_div(conv.k, tile.rows)
    clusters = clusters_for(tile, tiles, steps, even)
    most = (tiles * steps // clusters + 1) // steps + 2  # tiles that a cluster touches
    numbers = clusters * most * tile.rows * COLUMNS
    parts = torch.empty(numbers, dtype=torch.float32, device=x.device)
    built = module("hopper_weights.cu", tile.flags)
    blocks = clusters * tile.cluster
    multiply = built.convolve_weights[blocks, tile.threads, tile.shared]
    pieces = tile.rows // BOX * COLUMNS // 8
    add = built.add_parts[(pieces, tiles), 128]

    def run():
        multiply(parts, *maps, problem)
        add(dw, parts, problem, clusters)

    return run


# ---- 64 channels: the patch with its halo

HALO_PIXELS = 232
HALO_SLOT = 352
HALO_SLOTS = 3


def halo_rows(width: int, columns: int) -> int:
    """Rows of the result a patch; 0 where a row is too long."""
    pitch = width + columns - 1
    return max(0, (HALO_PIXELS - width) // pitch + 1) if width <= HALO_PIXELS else 0


def _halo(result, source, w, problem, turned: bool, in_turn: int):
    rows = halo_rows(problem.width, problem.columns)
    rows = min(rows, problem.height)
    pitch = problem.width + problem.columns - 1
    high = rows + problem.rows - 1
    if not rows or high * pitch > HALO_SLOT:
        raise ValueError(f"rows of {problem.width} pixels are too long for this kernel")
    maps = (
        tensor_maps.boxes(result, (1, rows, problem.width, BOX)),
        tensor_maps.boxes(source, (1, high, pitch, BOX)),
        tensor_maps.boxes(w.view(BOX, -1, BOX), (BOX, 1, BOX)),
    )
    taps = problem.rows * problem.columns
    slot = HALO_SLOT * ROW + 2 * BARRIER
    weights = taps * BOX * ROW + 3 * BARRIER
    shared = weights + HALO_SLOTS * slot
    flags = (
        f"-DTURNED={int(turned)}",
        f"-DTAPS={taps}",
        f"-DIN_TURN={in_turn}",
    )
    patches = problem.images * ceil_div(problem.height, rows)
    blocks = min(sms(), patches)
    launch = module("halo.cu", flags).convolve[blocks, 384, shared]
    return lambda: launch(*maps, problem, rows)


def halo_forward(y, x, w, conv: Convolution, in_turn: int = 1):
    """A function that computes y, for 64 channels in and out and stride 1."""
    problem = conv.forward_problem()
    return _halo(y, x, w, problem, False, in_turn)


def halo_data_gradient(dx, dy, w, conv: Convolution, in_turn: int = 1):
    """A function that computes dx, for 64 channels in and out and stride 1."""
    problem = conv.backward_problem()
    return _halo(dx, dy, w, problem, True, in_turn)


HALO_STAGE = 600  # pixels
HALO_DY = 240  # pixels


def halo_weights_gradient(dw, dy, x, conv: Convolution):
    """A function that computes dw, for 64 channels in and out, 3 × 3 taps and stride 1."""
    problem = conv.forward_problem()
    rows = halo_rows(conv.q, conv.side)
    rows = min(rows, conv.p)
    pitch = conv.q + conv.side - 1
    if not rows or HALO_DY + 2 * pitch + 2 > HALO_STAGE - HALO_DY:
        raise ValueError(f"rows of {conv.q} pixels are too long for this kernel")
    maps = (
        tensor_maps.boxes(dy, (1, rows, pitch, BOX)),
        tensor_maps.boxes(x, (1, rows + conv.side - 1, pitch, BOX)),
    )
    patches = conv.n * ceil_div(conv.p, rows)
    blocks = min(sms(), patches)
    parts = torch.empty(
        blocks * dw.numel(),
        dtype=torch.float32,
        device=x.device,
    )
    shared = 3 * (HALO_STAGE * ROW + 2 * BARRIER)
    built = module("halo_weights.cu")
    multiply = built.convolve_weights[blocks, 512, shared]
    add = built.add_parts[288, 256]

    def run():
        multiply(parts, *maps, problem, rows)
        add(dw, parts, blocks)

    return run


# ---- depthwise


class Picture(ctypes.Structure):
    """The struct of this name in kernels/depthwise_hopper.cu."""

    _fields_ = [(name, ctypes.c_int) for name in "nhwc"]


WALK_COLUMNS = 56


def depthwise(
    y,
    x,
    weights,
    *,
    blocks: int = 1,
    stages: int = 6,
    wide: int = 7,
):
    """A function that computes y: NHWC, stride 1, "same", c a multiple of 8.

    weights: (side, side, c). blocks: of an SM. wide: columns of a warp, 7 or 4.
    """
    n, h, w, c = x.shape
    side = weights.shape[0]
    rows = 3 if side == 3 else 2
    across = WALK_COLUMNS + side - 1
    described = tensor_maps.boxes(x, (1, rows, across, BOX), swizzled=False)
    strips = ceil_div(w, WALK_COLUMNS)
    items = n * strips * ceil_div(c, BOX)
    stage = rows * across * ROW + 2 * BARRIER
    warps = WALK_COLUMNS // wide
    flags = (
        f"-DSIDE={side}",
        f"-DBLOCKS={blocks}",
        f"-DSTAGES={stages}",
        f"-DWIDE={wide}",
        f"-DWARPS={warps}",
    )
    kernel = module("depthwise_hopper.cu", flags).depthwise
    grid = min(items, sms() * blocks)
    launch = kernel[grid, 32 * warps, stages * stage]
    picture = Picture(n, h, w, c)
    return lambda: launch(y, described, weights, picture)
