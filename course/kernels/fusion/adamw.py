"""AdamW over many tensors in one launch, and the clipping of their gradients' norm."""

from dataclasses import dataclass
from pathlib import Path

import torch

from utils import cuda_c, has_gpu
from utils.occupancy import ceil_div
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
ALIGNED = 16  # bytes: the kernel's widest access
MOST_BLOCKS = 132 * 16  # that add up squares: more than run at a time bring nothing
#: A gradient's type as the kernel calls it
NUMBERS = {
    torch.float32: "float",
    torch.bfloat16: "__nv_bfloat16",
}


@dataclass(frozen=True)
class Shape:
    """How the kernel is compiled (what for: kernels/adamw.cu)."""

    threads: int = 128
    packs: int = 2
    blocks: int = 8
    streamed: bool = False

    @property
    def chunk(self) -> int:
        """Numbers that a block updates."""
        return self.threads * self.packs * 4

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler's flags for it."""
        named = {
            "THREADS": self.threads,
            "PACKS": self.packs,
            "BLOCKS": self.blocks,
            "STREAMED": int(self.streamed),
        }
        return tuple(f"-D{name}={value}" for name, value in named.items())


#: What was fastest on an H200 (`bench` tries others).
FASTEST = Shape()


@yours.cache
def _kernel(name: str, shape: Shape):
    module = cuda_c.load(KERNELS / "adamw.cu", flags=shape.flags)
    return module[name]


class AdamW:
    """An optimizer of float32 weights, all in one launch a step.

    weights: tensors, contiguous. gradients: as many, float32 or bfloat16, always the same memory.
    copies: bfloat16 tensors that receive the weights after each step, for mixed precision.
    Raises ValueError for a tensor with gaps, or one that begins at no multiple of 16 bytes.
    """

    def __init__(
        self,
        weights,
        gradients,
        copies=None,
        *,
        rate: float = 1e-3,
        betas=(0.9, 0.999),
        epsilon: float = 1e-8,
        decay: float = 1e-2,
        most: float | None = None,
        shape: Shape = FASTEST,
    ):
        self.rate = rate
        self.betas = betas
        self.epsilon = epsilon
        self.decay = decay
        self.most = most
        self.shape = shape
        self.steps = 0
        self.means = [torch.zeros_like(w) for w in weights]
        self.squares = [torch.zeros_like(w) for w in weights]
        self._alive = weights, gradients, copies  # their addresses are in the table
        self._table(list(weights), list(gradients), copies)

    def _table(self, weights, gradients, copies) -> None:
        """Write down where everything lies, and cut it into chunks."""
        device = weights[0].device
        copies = copies or [None] * len(weights)
        columns = (weights, self.means, self.squares, gradients, copies)
        rows = []
        for row in zip(*columns, strict=True):
            addresses = [_address(tensor) for tensor in row]
            numbers = row[0].numel()
            rows.append([*addresses, numbers])
        self._tensors = torch.tensor(rows, dtype=torch.int64, device=device)
        self._chunks = self._cut(weights).to(device)
        number = NUMBERS[gradients[0].dtype]
        self._adamw = _kernel(f"adamw<{number}>", self.shape)
        if self.most is not None:
            self._norm = _kernel(f"gradient_norm<{number}>", self.shape)
        self._partial = torch.empty(MOST_BLOCKS, dtype=torch.float32, device=device)
        self._arrived = torch.zeros(1, dtype=torch.uint32, device=device)
        self.norm_and_factor = torch.ones(2, dtype=torch.float32, device=device)

    def _cut(self, weights) -> torch.Tensor:
        """Of each chunk the tensor and the chunk's number in it, int32 [chunks, 2]."""
        chunks = []
        for which, tensor in enumerate(weights):
            count = ceil_div(tensor.numel(), self.shape.chunk)
            numbers = torch.arange(count, dtype=torch.int32)
            chunks.append(torch.stack([torch.full_like(numbers, which), numbers], 1))
        return torch.cat(chunks)

    def step(self) -> None:
        """One step; with `most`, gradients are first scaled to a norm of at most that."""
        self.steps += 1
        chunks = len(self._chunks)
        threads = self.shape.threads
        tables = (self._tensors, self._chunks)
        clip = None
        if self.most is not None:
            clip = self.norm_and_factor
            launch = self._norm[min(chunks, MOST_BLOCKS), threads]
            launch(clip, self._partial, self._arrived, *tables, chunks, self.most)
        first, second = self.betas
        launch = self._adamw[chunks, threads]
        launch(
            *tables,
            clip,
            self.rate,
            self.decay,
            first,
            second,
            self.epsilon,
            1 - first**self.steps,
            (1 - second**self.steps) ** 0.5,
        )


def _address(tensor: torch.Tensor | None) -> int:
    """Where a tensor lies, 0 for None. Raises ValueError where a wide load could not read it."""
    if tensor is None:
        return 0
    if has_gpu() and not tensor.is_cuda:
        raise ValueError(f"each tensor must be on the GPU, one is on the {tensor.device}")
    address = tensor.data_ptr()
    if not tensor.is_contiguous() or address % ALIGNED:
        begin = f"begin at a multiple of {ALIGNED} bytes"
        raise ValueError(f"each tensor must be contiguous and {begin}")
    return address


def sizes(
    count: int,
    layers: int = 12,
    width: int = 768,
) -> list[tuple[int, ...]]:
    """Shapes of a transformer's tensors: an embedding of `count` rows, and twelve a layer."""
    norm = [(width,), (width,)]
    attention = [
        (3 * width, width),
        (3 * width,),
        (width, width),
        (width,),
    ]
    perceptron = [
        (4 * width, width),
        (4 * width,),
        (width, 4 * width),
        (width,),
    ]
    layer = norm + attention + norm + perceptron
    return [(count, width), (1024, width), *layer * layers, *norm]
