"""What a token should take, before it is measured: weights that stream, and blocks that wait.

A model of one block, which stands for all: its stages of weights come one after the other, as fast
as its share of the memory's rate allows and as the ring has room; a part of a layer begins when the
barrier before it has let it go and its activations have come, and takes its stages as they arrive.
"""

from dataclasses import dataclass

from course.kernels.language_model.problem import Config


@dataclass(frozen=True)
class Machine:
    """What the model is told of a GPU; times in seconds.

    rate: bytes per second that all blocks together read. barrier: from the last block's arrival
    to all blocks' going on. trip: of activations, from L2 to where products take them. stage: of
    the products of a stage. attention: between two barriers.
    """

    rate: float
    blocks: int = 132
    barrier: float = 1e-6
    trip: float = 1e-6
    stage: float = 0.2e-6
    attention: float = 2.5e-6


def stages_of(config: Config, part: str, stage_bytes: int, blocks: int, bits: int = 16) -> float:
    """How many stages of a part a block has, on average."""
    *_, rows, columns = config.shapes[part]
    return rows * columns * bits / 8 / blocks / stage_bytes


def token(
    config: Config, machine: Machine, *, stage_bytes: int = 32 << 10, depth: int = 6, bits: int = 16
) -> float:
    """Seconds of one token. depth: stages of the ring."""
    period = stage_bytes * machine.blocks / machine.rate
    taken = []  # when each stage has been multiplied, and its place is free
    due = 0.0  # stages of the parts so far; fractions add up
    now = arrived = 0.0
    layer = ("qkv", None, "out", "gate_up", "down")
    for part in layer * config.layers + ("embedding",):
        if part is None:
            now += machine.attention + machine.barrier
            continue
        now += machine.trip
        due += stages_of(config, part, stage_bytes, machine.blocks, bits)
        while len(taken) < round(due):
            room = taken[-depth] if len(taken) >= depth else 0.0
            arrived = max(arrived, room) + period
            now = max(now, arrived) + machine.stage
            taken.append(now)
        if part != "embedding":
            now += machine.barrier
    return now
