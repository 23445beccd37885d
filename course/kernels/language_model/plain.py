"""The plain form: a token as nine kernels, launched in turn; on a GPU all launches are one graph.

The kernels take any config, weights of float32 or bfloat16, and any batch; each sequence reads all
weights for itself.
"""

from pathlib import Path

import torch

from course.kernels.attention.problem import stream
from course.kernels.language_model.problem import Cache, Config
from course.kernels.language_model.reference import STACKED
from utils import cuda_c
from utils.occupancy import ceil_div
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
THREADS = 256
WARPS = THREADS // 32
KEYS = 32  # of a part of attention
BLOCKS = 64  # of argmax


@yours.cache
def module(file: str, *flags: str):
    """A compiled file of kernels."""
    return cuda_c.load(KERNELS / f"{file}.cu", flags=flags)


class Plain:
    """Decodes greedily, a step at a time; everything it needs lies where the kernels run.

    weights: as `problem.weights`, of float32 or bfloat16. cache: of the same type. token, position:
    int32 [batch], the next token of each sequence and where it stands; a step moves both on.
    logits: float32 [batch, vocabulary], of the last step.
    """

    def __init__(self, config: Config, weights: dict, cache: Cache, token, position):
        self.config, self.weights, self.cache = config, weights, cache
        self.token, self.position = (x.int().contiguous() for x in (token, position))
        kind = weights["qkv"].dtype
        self.kernels = module("plain", *(["-DFLOAT"] if kind == torch.float32 else []))
        self.batch = len(token)
        self.parts = ceil_div(cache.capacity, KEYS)
        rows = (config.heads + 2 * config.kv_heads) * config.head
        attended = config.heads * config.head

        def floats(*shape):
            return torch.empty(self.batch, *shape, device=token.device)

        self.x, self.qkv = floats(config.width), floats(rows)
        self.part = floats(config.heads, self.parts, config.head + 2)
        self.attended, self.hidden = floats(attended), floats(config.hidden)
        self.logits = floats(config.vocabulary)
        self.best = torch.zeros(self.batch, dtype=torch.uint64, device=token.device)

    def step(self) -> None:
        """One token of each sequence."""
        config, weights, batch = self.config, self.weights, self.batch
        width = config.width
        columns = ceil_div(width, THREADS), batch
        self._run("embed", columns, THREADS, self.x, weights["embedding"], self.token, width)
        for layer in range(config.layers):
            self._layer(layer)
        self._norm_gemv(self.logits, weights["norm"], weights["embedding"])
        self._run("argmax", (BLOCKS, batch), THREADS, self.best, self.logits, config.vocabulary)
        self._run("next_token", 1, batch, self.token, self.position, self.best)

    def _run(self, name: str, grid, block, *arguments, shared: int = 0) -> None:
        """Launch a kernel on PyTorch's stream."""
        self.kernels[name][grid, block, shared, stream()](*arguments)

    def _layer(self, layer: int) -> None:
        config, batch = self.config, self.batch
        weights = {name: self.weights[name][layer] for name in STACKED}
        heads, kv_heads, head = config.heads, config.kv_heads, config.head
        cache = self.cache
        pages, layer_pages = cache.table.shape[1], layer * cache.k.shape[1]
        where = [cache.k, cache.v, cache.table, self.position]
        self._norm_gemv(self.qkv, weights["norm_1"], weights["qkv"])
        sizes = heads, kv_heads, head, pages, layer_pages, config.theta
        self._run("rope_append", (heads + 2 * kv_heads, batch), head // 2, self.qkv, *where, *sizes)
        sizes = kv_heads, pages, layer_pages
        grid = self.parts, heads, batch
        self._run(f"attend<{head}>", grid, KEYS, self.part, self.qkv, *where, *sizes)
        joined = self.attended, self.part, self.position, self.parts
        self._run("join", (heads, batch), head, *joined)
        self._gemv_add(self.attended, weights["out"])
        self._swiglu(weights["norm_2"], weights["gate_up"])
        self._gemv_add(self.hidden, weights["down"])

    def _rows(self, rows: int) -> tuple:
        """Grid and block in which a warp has a row."""
        return (ceil_div(rows, WARPS), self.batch), THREADS

    def _norm_gemv(self, out, gain, weight) -> None:
        rows, width = weight.shape
        arguments = out, self.x, gain, weight, rows, width, self.config.eps
        self._run("norm_gemv", *self._rows(rows), *arguments, shared=4 * width)

    def _swiglu(self, gain, weight) -> None:
        hidden, width = self.config.hidden, self.config.width
        arguments = self.hidden, self.x, gain, weight, hidden, width, self.config.eps
        self._run("norm_swiglu", *self._rows(hidden), *arguments, shared=4 * width)

    def _gemv_add(self, y, weight) -> None:
        rows, columns = weight.shape
        self._run("gemv_add", *self._rows(rows), self.x, y, weight, rows, columns)
