"""One model on several devices: each has a share of every matrix (tensor parallel).

Of the matrices that come first (qkv, gate_up) a rank has some rows: its heads, its part of SwiGLU.
Of those that follow (out, down) it has the columns that these meet. So nothing is exchanged between
the two, and after the second the ranks' results are added up, by `many_gpus`' all-reduce: twice in
each layer. The head's rows are shared out as well.
Source: Shoeybi et al., Megatron-LM (2019).
"""

import re
from dataclasses import dataclass, replace
from functools import partial

import torch
from greenlet import getcurrent, greenlet

from course.kernels.language_model import problem
from course.kernels.language_model.plain import Plain
from course.kernels.language_model.problem import Config
from course.kernels.language_model.serving.batch import BatchRunner
from course.kernels.many_gpus import communicator as comm
from course.kernels.many_gpus.choices import choose
from course.kernels.many_gpus.model import TRIP
from utils import has_gpu, results

DEVICE = "cuda" if has_gpu() else "cpu"
BANDWIDTH = 4.2e12  # bytes a second of an H200's memory, and
KERNEL = 2.5e-6  # seconds of a kernel in a graph that has nothing to do: what a prediction assumes
KERNELS_A_LAYER, KERNELS_MORE = 7, 4  # of the plain form
ROOM = 1 << 22  # bytes of a communicator for messages
ROUNDED = 0.03  # of the largest logit: what roundings to bfloat16 in another order explain
IN_FLOAT32 = 1e-5
KINDS = {torch.float32: 0, torch.bfloat16: 1}  # as communicator.all_reduce_together names them
#: To try it: a head of keys for each of two ranks, or of four
HALF = Config(2, 128, 4, 2, 64, 96, 64, theta=10_000.0)
QUARTER = replace(HALF, kv_heads=4)


# ---- whose is what


def config_of(config: Config, ranks: int) -> Config:
    """The sizes of a rank's share. ValueError where they cannot be shared out."""
    for name in ("heads", "kv_heads", "hidden", "vocabulary"):
        if getattr(config, name) % ranks:
            raise ValueError(
                f"{getattr(config, name)} {name} cannot be shared out to {ranks} ranks"
            )
    return replace(
        config,
        heads=config.heads // ranks,
        kv_heads=config.kv_heads // ranks,
        hidden=config.hidden // ranks,
    )


def share_of(config: Config, weights: dict, rank: int, ranks: int) -> dict:
    """A rank's weights: rows of qkv and gate_up, columns of out and down, and all of the others."""
    counts = [n * config.head for n in (config.heads, config.kv_heads, config.kv_heads)]
    share = dict(weights)
    share["qkv"] = rows_of(weights["qkv"], counts, rank, ranks)
    share["gate_up"] = rows_of(weights["gate_up"], [config.hidden] * 2, rank, ranks)
    for name in ("out", "down"):
        share[name] = weights[name].chunk(ranks, 2)[rank].contiguous()
    return share


def rows_of(weight, counts: list[int], rank: int, ranks: int) -> torch.Tensor:
    """A rank's rows of each part of [layers, rows, columns]. counts: rows of the parts."""
    return torch.cat([part.chunk(ranks, 1)[rank] for part in weight.split(counts, 1)], 1)


def vocabulary_of(config: Config, rank: int, ranks: int) -> slice:
    """The rows of the head that are a rank's."""
    count = config.vocabulary // ranks
    return slice(rank * count, (rank + 1) * count)


def runner_of(config: Config, weights: dict, rank: int, ranks: int, add_up, **how) -> BatchRunner:
    """A rank's runner. weights: all, of which it takes its share. how: as for BatchRunner."""
    return BatchRunner(
        config_of(config, ranks),
        share_of(config, weights, rank, ranks),
        add_up=add_up,
        vocabulary=vocabulary_of(config, rank, ranks),
        **how,
    )


class PlainRank(Plain):
    """A rank's plain form, one step at a time; arguments as for Plain, of the whole model.

    cache: with the rank's heads. add_up: sums a tensor over all ranks, in place.
    """

    def __init__(self, config, weights, cache, token, position, *, rank: int, ranks: int, add_up):
        share = share_of(config, weights, rank, ranks)
        super().__init__(config_of(config, ranks), share, cache, token, position)
        self._rank, self._add_up = rank, add_up
        self._own = vocabulary_of(config, rank, ranks)
        self._own_logits = self.logits.new_empty(self.batch, config.vocabulary // ranks)

    def _gemv_add(self, y, weight) -> None:
        if self._rank:  # what x was, one rank adds
            self.x.zero_()
        super()._gemv_add(y, weight)
        self._add_up(self.x)

    def _norm_gemv(self, out, gain, weight) -> None:
        if out is not self.logits:
            super()._norm_gemv(out, gain, weight)
            return
        super()._norm_gemv(self._own_logits, gain, weight[self._own])
        self.logits.zero_()
        self.logits[:, self._own] = self._own_logits
        self._add_up(self.logits)


# ---- what to expect


@dataclass(frozen=True)
class Prediction:
    """Seconds of a token on one device and on several, by a model of bytes, kernels and messages.

    kernels: what does not become less with more devices. sums: what they add.
    """

    ranks: int
    bytes: float
    kernels: float
    sums: float

    @property
    def alone(self) -> float:
        """On one device."""
        return self.bytes + self.kernels

    @property
    def together(self) -> float:
        """On all."""
        return self.bytes / self.ranks + self.kernels + self.sums

    @property
    def speedup(self) -> float:
        """How much faster several are."""
        return self.alone / self.together

    def __str__(self):
        parts = {"bytes": self.bytes / self.ranks, "kernels": self.kernels, "sums": self.sums}
        said = " + ".join(f"{name} {1e6 * seconds:,.0f}" for name, seconds in parts.items())
        return (
            f"one device {1e6 * self.alone:,.0f} µs, {self.ranks} devices {said} = "
            f"{1e6 * self.together:,.0f} µs: {self.speedup:.2f} times as fast (an estimate)"
        )


def predicted(
    config: Config,
    ranks: int,
    position: int = 1000,
    *,
    batch: int = 1,
    bandwidth: float = BANDWIDTH,
    alone: float | None = None,
) -> Prediction:
    """What a step of `batch` sequences takes.

    bandwidth: bytes a second. alone: seconds of one device, where they are known; what its bytes do
    not explain, its kernels do. Messages are short, so that their latency alone counts.
    """
    bytes = config.bytes_per_token(position, batch=batch) / bandwidth
    kernels = (KERNELS_A_LAYER * config.layers + KERNELS_MORE) * KERNEL
    if alone is not None:
        kernels = alone - bytes
    return Prediction(ranks, bytes, kernels, (2 * config.layers + 1) * latency(ranks))


def latency(ranks: int) -> float:
    """Seconds of a short all-reduce in a CUDA graph: as recorded, or some trips over the link."""
    for name in (f"many_gpus/{ranks}/all_reduce/4096", "many_gpus/all_reduce/4096"):
        entry = results.find(f"{name}/ours/graph")
        if entry:
            return entry["value"]
    return 4 * TRIP


def recorded() -> str:
    """A line for each recorded race of one device against several, of every GPU."""
    lines = []
    for entry in results.everything():
        whole = re.fullmatch(r"(llm/tensor_parallel/(\d+)/(\w+))/speedup", entry["name"])
        if not whole:
            continue
        place, ranks, model = whole.groups()
        alone, together, told = (
            results.find(f"{place}/{what}", gpu=entry["gpu"])
            for what in ("alone", "together", "speedup/predicted")
        )
        line = (
            f"{ranks} x {entry['gpu']}, {model}: {1e6 * together['value']:,.0f} µs for"
            f" {1e6 * alone['value']:,.0f} µs on one, {entry['value']:.2f} times as fast"
        )
        lines.append(line + (f" (told before: {told['value']:.2f})" if told else ""))
    return "\n".join(lines)


# ---- ranks in one process


class Together:
    """Ranks in one process and on one device, in step with each other: right, and no use for speed.

    What all of them add up, one grid of `many_gpus`' kernels adds up.
    """

    def __init__(self, ranks: int):
        self.ranks = ranks
        self._communicators = comm.together(ranks, ROOM, ROOM)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for communicator in self._communicators:
            communicator.close()

    def add_up(self, part) -> None:
        """What a rank calls: it goes on when all ranks have come here."""
        getcurrent().parent.switch(part)

    def run(self, steps: list) -> list:
        """Call a function of each rank; returns what they return. ValueError if they sum unlike."""
        runs = [greenlet(step) for step in steps]
        while True:
            parts = [run.switch() for run in runs]
            ended = [run.dead for run in runs]
            if all(ended):
                return parts
            if any(ended) or len({(part.shape, part.dtype) for part in parts}) > 1:
                raise ValueError("the ranks do not add up the same")
            self._sum(parts)

    def _sum(self, parts) -> None:
        addresses = [part.data_ptr() for part in parts]
        choice = choose(parts[0].nbytes, self.ranks, True)
        if has_gpu():
            torch.cuda.synchronize()
        kind = KINDS[parts[0].dtype]
        told = addresses, addresses, parts[0].numel(), kind, choice
        comm.all_reduce_together(self._communicators, *told)


def errors(ranks: int = 2, config: Config = HALF, steps: int = 5, rows: int = 3) -> tuple:
    """(largest difference between ranks, largest from one device's logits as a share of them).

    rows: sequences of one token per step, each in two blocks.
    """
    weights = problem.weights(config, 0, torch.bfloat16, DEVICE)
    how = {"blocks": 2 * rows, "longest": 32, "graphs": False}
    alone = BatchRunner(config, weights, **how)
    generator = torch.Generator().manual_seed(0)
    tables = torch.randperm(2 * rows, generator=generator).reshape(rows, 2).int()
    between, apart = 0.0, 0.0
    with Together(ranks) as together:
        runners = [
            runner_of(config, weights, rank, ranks, together.add_up, **how) for rank in range(ranks)
        ]
        for step in range(steps):
            tokens = torch.randint(config.vocabulary, (rows,), generator=generator)
            told = tokens, torch.full((rows,), 13 + step), tables, torch.arange(rows)
            found = together.run([partial(runner.step, *told) for runner in runners])
            between, apart = worse(between, apart, found, alone.step(*told))
    return between, apart


def plain_errors(ranks: int = 2, config: Config = HALF, steps: int = 3) -> tuple:
    """The same of the plain form, in float32: one sequence, greedily."""
    weights = problem.weights(config, 0, torch.float32, DEVICE)

    def made(kind, of, **how):
        cache = problem.cache(of, 1, 32, torch.float32, DEVICE)
        place = torch.full((1,), 5, device=DEVICE), torch.zeros(1, device=DEVICE)
        return kind(config, weights, cache, *place, **how)

    alone = made(Plain, config)
    between, apart = 0.0, 0.0
    with Together(ranks) as together:
        how = {"ranks": ranks, "add_up": together.add_up}
        plains = [
            made(PlainRank, config_of(config, ranks), rank=rank, **how) for rank in range(ranks)
        ]
        for _ in range(steps):
            together.run([plain.step for plain in plains])
            alone.step()
            found = [plain.logits for plain in plains]
            between, apart = worse(between, apart, found, alone.logits)
            assert all(torch.equal(plain.token, alone.token) for plain in plains)
    return between, apart


def worse(between: float, apart: float, found: list, expected) -> tuple[float, float]:
    """The larger of the errors so far and of these ranks' logits."""
    first, expected = found[0].float(), expected.float()
    between = max(between, *((x.float() - first).abs().max().item() for x in found))
    return between, max(apart, ((first - expected).abs().max() / expected.abs().max()).item())


def check(ranks: int = 2) -> None:
    """Print how far ranks are apart. AssertionError where roundings do not explain it."""
    between, apart = plain_errors(ranks)
    assert between == 0, f"the ranks differ by {between:.2g}"
    assert apart <= IN_FLOAT32, f"{ranks} ranks are {apart:.2g} apart from one device"
    print(
        f"✓ {ranks} ranks have the same logits; one device's differ by {apart:.0e} of the largest"
    )
