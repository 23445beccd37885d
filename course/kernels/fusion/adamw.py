"""AdamW over many tensors in one launch, and the clipping of their gradients' norm."""

import functools
from dataclasses import dataclass
from pathlib import Path

import torch

from utils import cuda_c

KERNELS = Path(__file__).parent / "kernels"
MOST_BLOCKS = 132 * 16  # that add up squares: more than run at a time bring nothing


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
        named = {"THREADS": self.threads, "PACKS": self.packs}
        named |= {"BLOCKS": self.blocks, "STREAMED": int(self.streamed)}
        return tuple(f"-D{name}={value}" for name, value in named.items())


#: What was fastest on an H200 (`bench` tries others).
FASTEST = Shape()


@functools.cache
def _kernel(name: str, shape: Shape):
    return cuda_c.load(KERNELS / "adamw.cu", flags=shape.flags)[name]


class AdamW:
    """An optimizer of float32 weights, all in one launch a step.

    weights: tensors, contiguous. gradients: as many, float32 or bfloat16, always the same memory.
    copies: bfloat16 tensors that receive the weights after each step, for mixed precision.
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
        self.rate, self.betas, self.epsilon, self.decay = rate, betas, epsilon, decay
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
        rows = []
        for row in zip(weights, self.means, self.squares, gradients, copies, strict=True):
            addresses = [0 if t is None else t.data_ptr() for t in row]
            rows.append([*addresses, row[0].numel()])
        self._tensors = torch.tensor(rows, dtype=torch.int64, device=device)
        counts = torch.tensor([-(-w.numel() // self.shape.chunk) for w in weights])
        which = torch.repeat_interleave(torch.arange(len(weights)), counts)
        begins = torch.repeat_interleave(counts.cumsum(0) - counts, counts)
        number = torch.arange(len(which)) - begins
        self._chunks = torch.stack([which, number], 1).int().contiguous().to(device)
        name = {torch.float32: "float", torch.bfloat16: "__nv_bfloat16"}[gradients[0].dtype]
        self._adamw = _kernel(f"adamw<{name}>", self.shape)
        if self.most is not None:
            self._norm = _kernel(f"gradient_norm<{name}>", self.shape)
        self._partial = torch.empty(MOST_BLOCKS, dtype=torch.float32, device=device)
        self._arrived = torch.zeros(1, dtype=torch.uint32, device=device)
        self.norm_and_factor = torch.ones(2, dtype=torch.float32, device=device)

    def step(self) -> None:
        """One step; with `most`, gradients are first scaled to a norm of at most that."""
        self.steps += 1
        tables = self._tensors, self._chunks
        configuration = len(self._chunks), self.shape.threads
        if self.most is not None:
            launch = self._norm[min(len(self._chunks), MOST_BLOCKS), self.shape.threads]
            sums = self.norm_and_factor, self._partial, self._arrived
            launch(*sums, *tables, len(self._chunks), self.most)
        clip = None if self.most is None else self.norm_and_factor
        first, second = self.betas
        correction1 = 1 - first**self.steps
        correction2 = (1 - second**self.steps) ** 0.5
        numbers = self.rate, self.decay, first, second, self.epsilon
        self._adamw[configuration](*tables, clip, *numbers, correction1, correction2)


def sizes(count: int, layers: int = 12, width: int = 768) -> list[tuple[int, ...]]:
    """Shapes of a transformer's tensors: an embedding of `count` rows, and twelve a layer."""
    layer = [(width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,)]
    layer += [(width,), (width,), (4 * width, width), (4 * width,), (width, 4 * width), (width,)]
    return [(count, width), (1024, width), *layer * layers, (width,), (width,)]
