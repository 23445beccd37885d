"""One model on several devices: each has a share of every matrix (tensor parallel).

Of the matrices that come first (qkv, gate_up) a rank has some rows: its heads, its part of SwiGLU.
Of those that follow (out, down) it has the columns that these meet. So nothing is exchanged between
the two, and after the second the ranks' results are added up, by `many_gpus`' all-reduce: twice in
each layer. The head's rows are shared out as well.
Source: Shoeybi et al., Megatron-LM (2019).
"""

from dataclasses import dataclass, replace

import torch

from course.kernels.language_model import problem
from course.kernels.language_model.problem import Config
from course.kernels.language_model.serving.batch import BatchRunner
from course.kernels.many_gpus import communicator as comm
from course.kernels.many_gpus.choices import choose
from course.kernels.many_gpus.model import TRIP
from utils import has_gpu, results

DEVICE = "cuda" if has_gpu() else "cpu"
BANDWIDTH = 4.2e12  # bytes a second of an H200's memory, and
SHARE = 0.5  # what plain products in a graph reach of it: assumptions of a prediction
ROOM = 1 << 22  # bytes of a communicator for messages
ROUNDED = 0.03  # of the largest logit: what roundings to bfloat16 in another order explain
BFLOAT16 = 1  # as communicator.all_reduce_together names it
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


# ---- what to expect


@dataclass(frozen=True)
class Prediction:
    """Seconds of a token on one device and on several, by a model of bytes and messages."""

    ranks: int
    alone: float
    together: float
    sums: float  # seconds, of the latter

    @property
    def speedup(self) -> float:
        """How much faster several are."""
        return self.alone / self.together

    def __str__(self):
        return (
            f"one device {1e6 * self.alone:,.0f} µs, {self.ranks} devices "
            f"{1e6 * self.together:,.0f} µs, of which sums {1e6 * self.sums:,.0f} µs: "
            f"{self.speedup:.2f} times as fast (a model's prediction)"
        )


def predicted(
    config: Config,
    ranks: int,
    position: int = 1000,
    batch: int = 1,
    alone: float | None = None,
) -> Prediction:
    """What a token takes: an equal share of one device's time, and the sums.

    alone: seconds of one device, where they are known; else what its bytes take at SHARE of
    BANDWIDTH. Messages are short, so that their latency alone counts.
    """
    alone = alone or config.bytes_per_token(position, batch=batch) / (SHARE * BANDWIDTH)
    sums = (2 * config.layers + 1) * latency(ranks)
    return Prediction(ranks, alone, alone / ranks + sums, sums)


def latency(ranks: int) -> float:
    """Seconds of a short all-reduce in a CUDA graph: as recorded, or some trips over the link."""
    for name in (f"many_gpus/{ranks}/all_reduce/4096", "many_gpus/all_reduce/4096"):
        entry = results.find(f"{name}/ours/graph")
        if entry:
            return entry["value"]
    return 4 * TRIP


# ---- ranks in one process


class Together:
    """Ranks in one process and on one device, in step with each other: right, and no use for speed.

    What all ranks yield is added up by one grid of `many_gpus`' kernels. Arguments as for
    BatchRunner.
    """

    def __init__(self, config: Config, weights: dict, ranks: int, blocks: int, longest: int = 2048):
        self._communicators = comm.together(ranks, ROOM, ROOM)
        how = {"blocks": blocks, "longest": longest, "graphs": False}
        self.runners = [
            runner_of(config, weights, rank, ranks, in_step, **how) for rank in range(ranks)
        ]

    @torch.no_grad()
    def step(self, tokens, positions, tables, wanted) -> list[torch.Tensor]:
        """Every rank's logits, which are the same."""
        steps = [runner.rows(len(tokens)) for runner in self.runners]
        for rows in steps:
            rows.fill(tokens, positions, tables, wanted)
        for parts in zip(*(rows.parts() for rows in steps), strict=True):
            self._add_up(parts)
        return [rows.logits[: len(wanted)] for rows in steps]

    def _add_up(self, parts) -> None:
        addresses = [part.data_ptr() for part in parts]
        choice = choose(parts[0].nbytes, len(parts), True)
        told = parts[0].numel(), BFLOAT16, choice
        if has_gpu():
            torch.cuda.synchronize()
        comm.all_reduce_together(self._communicators, addresses, addresses, *told)

    def close(self) -> None:
        """Give the communicators' memory back."""
        for communicator in self._communicators:
            communicator.close()


def in_step(part):
    """A rank of `Together` adds nothing up by itself."""
    raise RuntimeError("these ranks go in step: call Together.step")


def errors(ranks: int = 2, config: Config = HALF, steps: int = 5, rows: int = 3) -> tuple:
    """(largest difference between ranks, largest from one device's logits as a share of them).

    rows: sequences of one token per step, each further on than the one before.
    """
    weights = problem.weights(config, 0, torch.bfloat16, DEVICE)
    alone = BatchRunner(config, weights, 2 * rows, 32)
    together = Together(config, weights, ranks, 2 * rows, 32)
    generator = torch.Generator().manual_seed(0)
    tables = torch.randperm(2 * rows, generator=generator).reshape(rows, 2).int()
    between, apart = 0.0, 0.0
    try:
        for step in range(steps):
            tokens = torch.randint(config.vocabulary, (rows,), generator=generator)
            told = tokens, torch.full((rows,), 13 + step), tables, torch.arange(rows)
            exact = alone.step(*told).float()
            found = [logits.float() for logits in together.step(*told)]
            between = max(between, *((x - found[0]).abs().max().item() for x in found))
            error = (found[0] - exact).abs().max() / exact.abs().max()
            apart = max(apart, error.item())
    finally:
        together.close()
    return between, apart


def check(ranks: int = 2) -> None:
    """Print how far ranks are apart. AssertionError where roundings do not explain it."""
    between, apart = errors(ranks)
    assert between == 0, f"the ranks differ by {between:.2g}"
    assert apart <= ROUNDED, f"{ranks} ranks are {apart:.2g} apart from one device"
    print(
        f"✓ {ranks} ranks have the same logits; one device has others by {apart:.1%} of the "
        "largest, as roundings of bfloat16 do"
    )
