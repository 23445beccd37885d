"""The plain form: a token as nine kernels, launched in turn; on a GPU all launches are one graph.

The kernels take any config, weights of float32 or bfloat16, and any batch; each sequence reads all
weights for itself.
"""

from pathlib import Path

import torch

from course.kernels.language_model.problem import Cache, Config
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
        embed = self.kernels.embed[(ceil_div(width, THREADS), batch), THREADS]
        embed(self.x, weights["embedding"], self.token, width)
        for layer in range(config.layers):
            self._layer(layer)
        self._norm_gemv(self.logits, weights["norm"], weights["embedding"])
        argmax = self.kernels.argmax[(BLOCKS, batch), THREADS]
        argmax(self.best, self.logits, config.vocabulary)
        self.kernels.next_token[1, batch](self.token, self.position, self.best)

    def _layer(self, layer: int) -> None:
        config, batch = self.config, self.batch
        weights = {name: self.weights[name][layer] for name in self.weights if name in STACKED}
        heads, kv_heads, head = config.heads, config.kv_heads, config.head
        cache = self.cache
        pages, layer_pages = cache.table.shape[1], layer * cache.k.shape[1]
        where = [cache.k, cache.v, cache.table, self.position]
        self._norm_gemv(self.qkv, weights["norm_1"], weights["qkv"])
        turn = self.kernels.rope_append[(heads + 2 * kv_heads, batch), head // 2]
        sizes = heads, kv_heads, head, pages, layer_pages, config.theta
        turn(self.qkv, *where, *sizes)
        attend = self.kernels[f"attend<{head}>"][(self.parts, heads, batch), KEYS]
        attend(self.part, self.qkv, *where, kv_heads, pages, layer_pages)
        join = self.kernels.join[(heads, batch), head]
        join(self.attended, self.part, self.position, self.parts)
        self._gemv_add(self.attended, weights["out"])
        swiglu = self.kernels.norm_swiglu[self._rows(config.hidden)]
        gain, both = weights["norm_2"], weights["gate_up"]
        swiglu(self.hidden, self.x, gain, both, config.hidden, config.width, config.eps)
        self._gemv_add(self.hidden, weights["down"])

    def _rows(self, rows: int) -> tuple:
        """The launch in which a warp has a row, with `width` floats in shared memory."""
        return (ceil_div(rows, WARPS), self.batch), THREADS, 4 * self.config.width

    def _norm_gemv(self, out, gain, weight) -> None:
        rows, width = weight.shape
        launch = self.kernels.norm_gemv[self._rows(rows)]
        launch(out, self.x, gain, weight, rows, width, self.config.eps)

    def _gemv_add(self, y, weight) -> None:
        rows, columns = weight.shape
        launch = self.kernels.gemv_add[(ceil_div(rows, WARPS), self.batch), THREADS]
        launch(self.x, y, weight, rows, columns)


STACKED = ("norm_1", "qkv", "out", "norm_2", "gate_up", "down")
