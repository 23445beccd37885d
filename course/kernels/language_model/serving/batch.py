"""A runner for large batches: PyTorch's products, this course's attention, a CUDA graph per size.

    runner = BatchRunner(config, weights, blocks=20_000)

Rows are filled up to one of a few sizes, so that a step is one launch of a graph that is kept. The
rows that fill it up look at a block of their own. Without a GPU the same kernels run on the CPU
runtime, and no graph.

Of a rank of several, see `parallel`: within a layer a step adds up what all ranks have found.
"""

import functools
from collections.abc import Callable

import torch
from torch.nn import functional

from course.kernels.attention import decode
from course.kernels.attention.problem import stream
from course.kernels.language_model.plain import module
from course.kernels.language_model.problem import Config
from course.kernels.language_model.reference import STACKED
from course.kernels.language_model.serving.runner import come
from course.kernels.language_model.serving.scheduler import BLOCK
from utils import has_gpu
from utils.occupancy import ceil_div
from utils.tools.torch_threads import one_thread

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)  # rows of a step
ENOUGH = 512  # blocks of threads that keep a GPU busy: with fewer, sequences are cut in parts
PART = 256  # keys of a part


class BatchRunner:
    """See serving.runner.Runner. weights: bfloat16, heads of 64 or 128.

    longest: tokens of a sequence at most. add_up: sums a tensor over all ranks, in place; config
    and weights are then the rank's share. vocabulary: rows of the head that are this rank's; empty:
    makes a tensor of so many bfloat16 that can be added up however long it is, for the logits.
    graphs: whether a GPU's steps are CUDA graphs.
    """

    def __init__(
        self,
        config: Config,
        weights: dict,
        blocks: int,
        longest: int = 2048,
        add_up: Callable | None = None,
        vocabulary: slice | None = None,
        empty: Callable | None = None,
        graphs: bool = True,
    ):
        # without gradients from here on: ranks of one process take turns within a step, and would
        # leave `torch.no_grad` in another order than they entered it
        weights = {name: weight.detach() for name, weight in weights.items()}
        self.config, self.weights, self.blocks = config, weights, blocks
        self.vocabulary, self.add_up, self.empty = config.vocabulary, add_up, empty
        self.own_vocabulary = vocabulary or slice(0, config.vocabulary)
        self.device = weights["embedding"].device
        self.table_length = ceil_div(longest, BLOCK)
        shape = (
            config.layers,
            blocks + 1,
            BLOCK,
            config.kv_heads,
            config.head,
        )  # one to fill up with
        like = {"dtype": torch.bfloat16, "device": self.device}
        self.k, self.v = (torch.zeros(shape, **like) for _ in "kv")
        self.layers = [{name: weights[name][i] for name in STACKED} for i in range(config.layers)]
        self.kernels = module("plain")
        self.drawn = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.graphs = graphs and has_gpu()
        self._rows = {}

    def copy(self, copies) -> None:
        """See Runner."""
        for source, target in copies:
            self.k[:, target] = self.k[:, source]
            self.v[:, target] = self.v[:, source]

    def step(self, tokens, positions, tables, wanted):
        """See Runner."""
        rows = self.rows(len(tokens))
        with one_thread():
            rows.fill(tokens, positions, tables, wanted)
        rows.run()
        return rows.logits[: len(wanted)]

    def rows(self, count: int) -> "Rows":
        """The step for so many rows, made when it is first asked for."""
        size = next(size for size in SIZES if size >= count)
        if size not in self._rows:
            self._rows[size] = Rows(self, size)
            if self.graphs:
                self._rows[size].capture()
        return self._rows[size]

    def prepare(self, most: int) -> None:
        """Make the steps of all sizes up to so many rows, the largest first: it needs most room."""
        for size in reversed([size for size in SIZES if size <= most]):
            self.rows(size)


def here(like) -> torch.Tensor:
    """Memory of the CPU for such numbers, from where a GPU fetches them by itself."""
    return torch.empty(like.shape, dtype=like.dtype, pin_memory=has_gpu())


class Rows:
    """A step of a fixed number of rows: where its inputs lie, and its kernels."""

    def __init__(self, runner: BatchRunner, size: int):
        self.runner, self.size = runner, size
        numbers = {"dtype": torch.int32, "device": runner.device}
        self.tokens = torch.zeros(size, **numbers)
        self.positions = torch.zeros(size, **numbers)
        self.lengths = torch.ones(size, **numbers)
        self.tables = torch.full((size, runner.table_length), runner.blocks, **numbers)
        self.wanted = torch.zeros(size, **numbers)
        capacity = runner.table_length * BLOCK
        self.caches = []
        for k, v in zip(runner.k, runner.v, strict=True):
            cache = decode.Cache(k, v, (capacity,) * size, self.tables)
            object.__setattr__(cache, "lengths_there", self.lengths)  # which change in every step
            self.caches.append(cache)
        blocks = size * runner.config.kv_heads
        self.part = capacity if blocks >= ENOUGH else min(PART, capacity)
        self.logits = None
        self.whole = self._room_for_logits() if runner.add_up else None
        self.graph = None

    def _room_for_logits(self) -> torch.Tensor:
        """For all columns, of which a rank has some."""
        count = self.size * self.runner.config.vocabulary
        if self.runner.empty is None:
            room = torch.empty(count, dtype=torch.bfloat16, device=self.runner.device)
        else:
            room = self.runner.empty(count, torch.bfloat16)
        return room.view(self.size, -1)

    def fill(self, tokens, positions, tables, wanted) -> None:
        """Put a step's inputs where the kernels read them."""
        count, runner = len(tokens), self.runner
        table = here(self.tables).fill_(runner.blocks)
        table[:count, : tables.shape[1]] = tables
        packed = here(self.tokens.expand(3, -1)).zero_()
        packed[0, :count], packed[1, :count], packed[2, : len(wanted)] = tokens, positions, wanted
        there = packed.to(runner.device, non_blocking=True)
        self.tables.copy_(table, non_blocking=True)
        self.tokens.copy_(come(there[0], runner.drawn))
        self.positions.copy_(there[1])
        torch.add(there[1], 1, out=self.lengths)
        self.wanted.copy_(there[2])

    def run(self) -> None:
        """Compute the step."""
        if self.graph is None:
            self.launch()
        else:
            self.graph.replay()

    def launch(self) -> None:
        """Queue the step's kernels; on a rank of several, with the sums between them."""
        runner, config = self.runner, self.runner.config
        norm = functools.partial(functional.rms_norm, normalized_shape=(config.width,))
        x = runner.weights["embedding"][self.tokens]
        for layer, own in enumerate(runner.layers):
            y = norm(x, weight=own["norm_1"], eps=config.eps)
            qkv = functional.linear(y, own["qkv"])
            x = x + self._summed(functional.linear(self._attended(layer, qkv), own["out"]))
            y = norm(x, weight=own["norm_2"], eps=config.eps)
            gate, up = functional.linear(y, own["gate_up"]).chunk(2, -1)
            x = x + self._summed(functional.linear(functional.silu(gate) * up, own["down"]))
        y = norm(x[self.wanted], weight=runner.weights["norm"], eps=config.eps)
        own = runner.own_vocabulary
        logits = functional.linear(y, runner.weights["embedding"][own])
        if self.whole is not None:  # each rank has some columns, and zeros elsewhere
            self.whole.zero_()[:, own] = logits
            logits = self._summed(self.whole)
        self.logits = logits

    def _summed(self, part) -> torch.Tensor:
        """A tensor, summed over all ranks."""
        if self.runner.add_up is not None:
            self.runner.add_up(part)
        return part

    def capture(self) -> None:
        """Make a CUDA graph of the step."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.launch()
            self.launch()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.launch()
        self.graph = graph

    def _attended(self, layer: int, qkv) -> torch.Tensor:
        """Turn queries and keys, append keys and values to the cache, and attend."""
        runner, config = self.runner, self.runner.config
        heads, kv_heads, head = config.heads, config.kv_heads, config.head
        qkv = qkv.float()
        launch = runner.kernels["rope_append"]
        sizes = heads, kv_heads, head, runner.table_length, layer * (runner.blocks + 1)
        where = runner.k, runner.v, self.tables, self.positions
        grid = heads + 2 * kv_heads, self.size
        launch[grid, head // 2, 0, stream()](qkv, *where, *sizes, config.theta)
        q = qkv[:, : heads * head].bfloat16().view(self.size, 1, heads, head)
        cache = self.caches[layer]
        out, _ = decode.attention(q, cache, form=decode.GROUP, chunk=self.part)
        return out.view(self.size, heads * head)
