"""What a language model is here: sizes, weights, cache, and what a token costs in bytes.

The shape is Llama 3's: RMS norms, rotary positions, heads of queries that share heads of keys,
SwiGLU, and an embedding that is also the head.
Sources: Touvron et al., LLaMA (2023); Su et al., RoFormer (2021); Ainslie et al., GQA (2023);
Shazeer, GLU Variants Improve Transformer (2020).
"""

from dataclasses import dataclass

import torch

from utils.occupancy import ceil_div

PAGE = 16  # positions of a page of the cache


@dataclass(frozen=True)
class Config:
    """The sizes of a model.

    heads: of queries; each of the kv_heads serves heads / kv_heads of them. head: numbers of a
    head, an even number. hidden: of SwiGLU. theta: the base of the rotary positions.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    head: int
    hidden: int
    vocabulary: int
    theta: float = 500_000.0
    eps: float = 1e-5

    def __post_init__(self):
        if self.heads % self.kv_heads or self.head % 2:
            raise ValueError("heads must be a multiple of kv_heads, and a head's numbers even")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of each weight. The layers' are stacked; qkv has all queries' rows, then keys', values'.

        gate_up: all rows of the gate, then all of the other half.
        """
        layers, width = self.layers, self.width
        queries = self.heads * self.head
        return {
            "embedding": (self.vocabulary, width),
            "norm_1": (layers, width),
            "qkv": (layers, (self.heads + 2 * self.kv_heads) * self.head, width),
            "out": (layers, width, queries),
            "norm_2": (layers, width),
            "gate_up": (layers, 2 * self.hidden, width),
            "down": (layers, width, self.hidden),
            "norm": (width,),
        }

    @property
    def parameters(self) -> int:
        """How many numbers all weights have."""
        return sum(torch.Size(shape).numel() for shape in self.shapes.values())

    def cache_bytes(self, positions: int, bits: int = 16) -> int:
        """Bytes of the keys and values of one sequence."""
        return 2 * self.layers * positions * self.kv_heads * self.head * bits // 8

    def bytes_per_token(self, position: int, bits: int = 16, batch: int = 1) -> int:
        """The fewest bytes that a step of `batch` tokens at this position reads.

        Every weight once, of `bits` each, and each sequence's keys and values, of 16 bits each.
        (The embedding is read once, whole, as the head.)
        """
        return self.parameters * bits // 8 + batch * self.cache_bytes(position + 1)


#: The shape of Llama 3.2 1B
ONE_BILLION = Config(16, 2048, 32, 8, 64, 8192, 128_256)
#: The shape of Llama 3.1 8B, but for its head, which is not its embedding
EIGHT_BILLION = Config(32, 4096, 32, 8, 128, 14_336, 128_256)
#: What a CPU runs in a second
TOY = Config(2, 64, 4, 2, 16, 160, 256, theta=10_000.0)
#: What a GPU trains in minutes; of 16 bits its weights are 2.5 MB
SMALL = Config(4, 160, 5, 1, 32, 432, 1024, theta=10_000.0)


def weights(config: Config, seed: int = 0, dtype=torch.float32, device="cpu") -> dict:
    """Random weights as a model begins with: name -> tensor of `config.shapes`.

    Norms are about 1 (not all equal, so that a forgotten one is noticed); rows of matrices have
    products of about the size of what they multiply.
    """
    generator = torch.Generator(device).manual_seed(seed)
    result = {}
    for name, shape in config.shapes.items():
        numbers = torch.empty(shape, dtype=dtype, device=device)
        if name.startswith("norm"):
            numbers.uniform_(0.8, 1.2, generator=generator)
        else:
            numbers.normal_(0, shape[-1] ** -0.5, generator=generator)
        result[name] = numbers
    return result


@dataclass
class Cache:
    """Keys and values in pages of 16 positions.

    k, v: [layers, pages, 16, kv_heads, head]; keys are kept turned (after RoPE). table: int32
    [batch, most pages of a sequence]: the page that holds positions 16 i to 16 i + 15.
    """

    k: torch.Tensor
    v: torch.Tensor
    table: torch.Tensor

    @property
    def capacity(self) -> int:
        """The most positions of a sequence."""
        return self.table.shape[1] * PAGE


def cache(config: Config, batch: int, positions: int, dtype=torch.float32, device="cpu") -> Cache:
    """A plain cache: each sequence has its own pages 0, 1, 2, … behind those of the one before."""
    pages = ceil_div(positions, PAGE)
    shape = config.layers, batch * pages, PAGE, config.kv_heads, config.head
    k, v = (torch.zeros(shape, dtype=dtype, device=device) for _ in "kv")
    table = torch.arange(batch * pages, dtype=torch.int32, device=device).reshape(batch, pages)
    return Cache(k, v, table)
