"""The megakernel: a token as one launch, its weights in the order in which they are read.

Sources of the idea: Spector et al., Look Ma, No Bubbles! (Hazy Research, 2025); Cheng et al.,
Mirage Persistent Kernel (2025).
"""

import ctypes
from dataclasses import dataclass
from functools import partial

import torch
from torch.nn import functional

from course.kernels.attention.problem import stream
from course.kernels.language_model.plain import KERNELS
from course.kernels.language_model.problem import PAGE, Cache, Config
from course.kernels.language_model.quantized import (
    GROUP,
    MATRICES,
    Quantized,
    quantized,
    rounded,
)
from course.kernels.matmul.tensor import Needs, sms
from utils import cuda_c, has_gpu
from utils.occupancy import ceil_div
from utils.tools import yours

#: Bulk copies, and shared memory for a ring that outlasts a barrier
NEEDS = Needs("compute capability 9.0 or 10", (9, 0), (10, 3))
ROWS = 8  # of a tile
PAIRS = ROWS // 2
PAD = 32  # numbers behind a row of activations in shared memory
ROOM = 227 << 10  # bytes of shared memory of a block
ALIGNED = 128  # bytes that alignment may cost
NOTED = 4 * 512 + 512  # bytes for rows of keys, positions and the like
MOST_SUMS = 8  # tiles whose sums a block adds up at once, at most
KEYS = 176  # of a part of attention, about
AHEAD = {16: 192, 8: 192, 4: 96}  # KB of weights asked into L2 for one sequence, by bits
CPU_BLOCKS = 3  # on the CPU runtime
MOST_BATCH = 8
MOST_SLICE = 256  # 8 columns for each lane


class Sizes(ctypes.Structure):
    """As kernels/mega_parts.cuh has it."""

    _fields_ = [
        *((name, ctypes.c_int) for name in ("layers", "width", "heads", "kv_heads", "hidden")),
        *((name, ctypes.c_int) for name in ("vocabulary", "pages", "cache_pages")),
        ("advance", ctypes.c_int),
        ("eps", ctypes.c_float),
    ]


@dataclass(frozen=True)
class Form:
    """How the megakernel is compiled. bits: of a weight: 16, 8 or 4.

    warps: that multiply; slice: columns that each of them holds. pieces: stages of so many columns
    of a tile. together: tiles that are multiplied together. stages: of the ring, None for as many
    as there is room for. flight: stages on their way at once, None for all. tiles: whose sums a
    block adds up at once, None for the most that fit. ahead: KB of weights that a block asks into
    L2 ahead of the ring.
    """

    bits: int = 16
    batch: int = 1
    warps: int = 8
    slice: int = 256
    pieces: int = 1
    together: int = 2
    stages: int | None = None
    flight: int | None = None
    tiles: int | None = None
    ahead: int = 0

    def __post_init__(self):
        step = 32 if self.bits == 16 else GROUP
        if self.slice % (step * self.pieces) or self.slice > MOST_SLICE:
            raise ValueError(f"with {self.bits} bits a piece is a multiple of {step} columns")
        if not 1 <= self.batch <= MOST_BATCH:
            raise ValueError(f"the megakernel takes 1 to {MOST_BATCH} sequences")

    @property
    def chunk(self) -> int:
        """Columns of a stage."""
        return self.warps * self.slice

    @property
    def stage_bytes(self) -> int:
        """Of a stage: its codes, and their scales."""
        scales = 0 if self.bits == 16 else ROWS * self.chunk // GROUP * 2
        return (ROWS * self.chunk * self.bits // 8 + scales) // self.pieces

    @property
    def sums(self) -> int:
        """Tiles whose sums a warp holds at once: a thread adds up one sum of all warps."""
        return self.tiles or min(MOST_SUMS, 32 * self.warps // (self.batch * ROWS))

    def beside(self, config: Config) -> int:
        """Bytes of shared memory beside the ring, at most."""
        group = config.heads // config.kv_heads
        activations = self.warps * self.batch * (self.slice + PAD) * 2
        partial = 2 * self.sums * self.warps * self.batch * ROWS * 4
        found = self.warps * group * (config.head + 2) * 4
        turn = self.batch * config.head * 4
        return activations + partial + found + turn + self.warps * self.batch * 4 + NOTED

    def depth(self, config: Config) -> int:
        """Stages of the ring."""
        return self.stages or (ROOM - ALIGNED - self.beside(config)) // (self.stage_bytes + 16)

    def shared(self, config: Config) -> int:
        """Bytes of shared memory of a block."""
        return self.beside(config) + self.depth(config) * (self.stage_bytes + 16) + ALIGNED

    def flags(self, config: Config, parts: int) -> tuple[str, ...]:
        """The compiler's flags. parts: of a sequence's keys, for attention."""
        named = {
            "BITS": self.bits,
            "BATCH": self.batch,
            "WARPS": self.warps,
            "SLICE": self.slice,
            "PIECES": self.pieces,
            "TOGETHER": self.together,
            "STAGES": self.depth(config),
            "FLIGHT": self.flight or self.depth(config),
            "AHEAD": self.ahead,
            "TILES": self.sums,
            "HEAD": config.head,
            "GROUP": config.heads // config.kv_heads,
            "PARTS": parts,
        }
        return tuple(f"-D{name}={value}" for name, value in named.items())


def form_for(bits: int = 16, batch: int = 1) -> Form:
    """The fastest of those tried on an H200 with a model of 1.2 billion weights."""
    if batch > 1:
        return Form(bits, batch, flight=2 if bits == 16 else None)
    ahead = AHEAD[bits]
    return Form(pieces=2, flight=3, ahead=ahead) if bits == 16 else Form(bits, ahead=ahead)


# ---- weights in the order in which they are read


def order_of_rows(config: Config, name: str) -> torch.Tensor:
    """Which row of a matrix comes when: what one thread needs together is in one tile.

    qkv: of each head, the pairs that are turned together; gate_up: a row of either half.
    """
    heads = config.heads + 2 * config.kv_heads
    halves = {"qkv": (heads, config.head // 2), "gate_up": (1, config.hidden)}
    if name not in halves:
        return torch.arange(config.shapes[name][-2])
    blocks, half = halves[name]
    rows = torch.arange(blocks * 2 * half).reshape(blocks, 2, half // PAIRS, PAIRS)
    return rows.transpose(1, 2).flatten()


def packed(weight, form: Form) -> torch.Tensor:
    """The bytes of [..., rows, columns] as kernels/mega_stream.cuh reads them: stage by stage."""
    if form.bits == 16:
        return in_stages(weight.bfloat16(), form, 32).view(torch.uint8).flatten()
    return with_scales(quantized(weight, form.bits), form)


def in_stages(weight, form: Form, columns: int) -> torch.Tensor:
    """[tiles, chunks, pieces, warps, steps, 8 rows, 4 lanes, columns / 32, 8]: as stages have them.

    columns: those of which a lane reads 16 bytes at once, for each row.
    """
    weight = functional.pad(weight, (0, -weight.shape[-1] % form.chunk))
    chunks = weight.shape[-1] // form.chunk
    steps = form.slice // form.pieces // columns
    shape = -1, ROWS, chunks, form.warps, form.pieces, steps, columns // 32, 4, 8
    return weight.reshape(shape).permute(0, 2, 4, 3, 5, 1, 7, 6, 8).contiguous()


def with_scales(weight: Quantized, form: Form) -> torch.Tensor:
    """The same of codes, and behind a stage's codes their scales."""
    steps = 16 // form.bits
    codes = in_stages(weight.codes, form, 32 * steps)
    tiles, chunks, pieces = codes.shape[:3]
    bytes_ = nibbles(codes) if form.bits == 4 else e4m3(codes)
    groups = form.slice // GROUP // pieces  # of a warp in a stage
    columns = chunks * form.chunk // GROUP
    scales = functional.pad(weight.scales, (0, columns - weight.scales.shape[-1]))
    scales = scales.reshape(tiles, ROWS, chunks, form.warps, pieces, groups)
    scales = scales.permute(0, 2, 4, 3, 5, 1).contiguous().view(torch.uint8)
    both = [part.reshape(tiles, chunks, pieces, -1) for part in (bytes_, scales)]
    return torch.cat(both, -1).flatten()


def nibbles(codes) -> torch.Tensor:
    """Codes [..., 8] from -8 to 7 as 4 bytes: code 2p in bits 4p, code 2p + 1 in bits 16 + 4p."""
    low, high = (codes + 8).to(torch.uint8).unflatten(-1, (4, 2)).unbind(-1)
    halves = [half.unflatten(-1, (2, 2)).unbind(-1) for half in (low, high)]
    return torch.cat([first | second << 4 for first, second in halves], -1).contiguous()


def e4m3(codes) -> torch.Tensor:
    """Codes [..., 8] as 8 bytes, of each 4 in the order 0, 2, 1, 3."""
    bytes_ = codes.to(torch.float8_e4m3fn).view(torch.uint8).unflatten(-1, (2, 2, 2))
    return bytes_.transpose(-1, -2).flatten(-3).contiguous()


def packed_weights(config: Config, weights: dict, form: Form) -> dict:
    """All matrices packed, a layer at a time, so that memory holds little twice."""
    result = {}
    for name in MATRICES:
        rows = order_of_rows(config, name).to(weights[name].device)
        weight = weights[name] if weights[name].dim() == 3 else weights[name][None]
        result[name] = torch.cat([packed(layer[rows], form) for layer in weight])
    return result


# ---- launches


@yours.cache
def module(*flags: str):
    """The compiled megakernel."""
    return cuda_c.load(KERNELS / "mega.cu", flags=flags)


def launched(kernel, grid: int, block: int, shared: int, *arguments) -> None:
    """Launch on PyTorch's stream."""
    kernel[grid, block, shared, stream()](*arguments)


class Megakernel:
    """Decodes greedily, a step for each launch, as `plain.Plain` does.

    weights: of bfloat16 where bits are 16; the embedding of tokens is read from them, the matrices
    from what `packed_weights` makes of them once. cache: of bfloat16. blocks: as many as SMs.
    advance: by how much a step moves positions on; 0 to time one position.
    """

    def __init__(
        self,
        config: Config,
        weights: dict,
        cache: Cache,
        token,
        position,
        form: Form | None = None,
        *,
        blocks: int | None = None,
        advance: int = 1,
        load=module,
    ):
        batch = len(token)
        form = form or form_for(batch=batch)
        if form.batch != batch:
            raise ValueError(f"the kernel is compiled for {form.batch} sequences, not {batch}")
        self.config, self.cache, self.form = config, cache, form
        self.token, self.position = (x.int().contiguous() for x in (token, position))
        device = token.device
        blocks = blocks or (sms() if has_gpu() else CPU_BLOCKS)
        self.parts = max(
            1, min(blocks // (batch * config.kv_heads), ceil_div(cache.capacity, KEYS))
        )
        pairs = torch.arange(0, config.head, 2, dtype=torch.float64, device=device)
        self.frequency = (config.theta ** (-pairs / config.head)).float()

        def floats(*shape):
            return torch.empty(batch, *shape, device=device)

        def numbers(*shape):
            return torch.empty(batch, *shape, dtype=torch.bfloat16, device=device)

        self.logits = floats(config.vocabulary)
        self.best = torch.zeros(batch, dtype=torch.uint64, device=device)
        between = [
            torch.zeros(1, dtype=torch.uint32, device=device),
            floats(config.width),
            floats(config.heads, config.head),
            numbers(config.heads, self.parts, config.head),
            floats(config.heads, self.parts, 2),
            numbers(config.hidden),
        ]
        self.sizes = Sizes(
            config.layers,
            config.width,
            config.heads,
            config.kv_heads,
            config.hidden,
            config.vocabulary,
            cache.table.shape[1],
            cache.k.shape[1],
            advance,
            config.eps,
        )
        matrices = packed_weights(config, weights, form)
        looked_up = rounded({"embedding": weights["embedding"]}, form.bits)
        plain = [looked_up["embedding"].bfloat16()]
        plain += [weights[name].bfloat16() for name in ("norm_1", "norm_2", "norm")]
        order = ("qkv", "out", "gate_up", "down", "embedding")
        self.arguments = [
            self.token,
            self.position,
            *between,
            self.logits,
            self.best,
            cache.k,
            cache.v,
            cache.table,
            self.frequency,
            *plain,
            *(matrices[name] for name in order),
            self.sizes,
        ]
        kernel = load(*form.flags(config, self.parts)).decode_token
        self.launch = partial(launched, kernel, blocks, 32 * (form.warps + 1), form.shared(config))

    def step(self) -> None:
        """One token of each sequence."""
        self.launch(*self.arguments)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the matrices as the kernel reads them, each once for each token."""
        return sum(matrix.nbytes for matrix in self.arguments[-6:-1])


assert PAGE == 16  # as mega_parts.cuh has it
