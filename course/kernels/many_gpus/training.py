"""Our data-parallel training measured: right first, then how it scales."""

import hashlib
import time

import numpy as np

from course.kernels.many_gpus.recording import Recording, slowest
from course.kernels.many_gpus.trainer import ParallelTrainer
from course.kernels.mnist_cnn import fast
from utils.timing import median_and_spread

LR = 0.02
STEPS, REPEATS, WARM_UP = 100, 5, 10
CHECKED_STEPS = 10
#: With shared statistics?, after how many steps.
CHECKS = (
    (True, 1),
    (True, CHECKED_STEPS),
    (False, 1),
)
#: After ten steps the weights may lie so many times as far from the reference's as the reference
#: lies from itself when it takes the same digits in another order: that is rounding alone.
TIMES_ROUNDING = 3
#: After one step: rounding turns a few ReLUs on or off, each of them one of digits * 128 random
#: terms of a gradient. So many of them are allowed.
FLIPS, HIDDEN = 5, 128
#: Where the reference takes the same sums in the same order, what float32 may round.
TOLERANCE = 1e-4


def digits(
    batch: int,
    count: int,
    rank: int,
    ranks: int,
):
    """This rank's part of `count` batches of random digits, [(images, labels)], pinned."""
    import torch

    batches = []
    for number in range(count):
        random = np.random.default_rng([number, rank, ranks])
        images = random.integers(0, 256, (batch, 28, 28), np.uint8)
        # Strokes on paper rather than noise: most pixels are 0, as in MNIST.
        images *= random.random((batch, 28, 28)) < 0.2
        labels = random.integers(0, 10, batch, np.uint8)
        arrays = map(torch.from_numpy, (images, labels))
        pinned = tuple(array.pin_memory().numpy() for array in arrays)
        batches.append(pinned)
    return batches


def _run(trainer, batches, steps):
    for k in range(steps):
        trainer.step(*batches[k % len(batches)])


def time_of_steps(trainer, batches, group=None, steps=STEPS) -> float:
    """Seconds a step of steps queued one behind the other."""
    _run(trainer, batches, WARM_UP)
    trainer.synchronize()
    if group:
        group.barrier()
    start = time.perf_counter()
    _run(trainer, batches, steps)
    trainer.synchronize()
    return (time.perf_counter() - start) / steps


def _distance(weights, others, first) -> float:
    """How far two trainings lie apart, as a share of how far the second has gone from its start."""
    return (_square_sum(weights, others) / _square_sum(others, first)) ** 0.5


def _square_sum(weights, others) -> float:
    """The squares of all differences, added up."""
    total = 0.0
    for name, value in weights.items():
        difference = value - others[name]
        total += float(np.sum(difference**2))
    return total


# ---- is it right? --------------------------------------------------------------------------------


class Reference:
    """What one GPU's weights are after some steps, and how far others' may lie from them.

    expected and limits: by (shared statistics?, steps). On rank 0; empty on the others.
    """

    def __init__(self, group, weights, batch, precision):
        self.weights = weights
        self.expected, self.limits = {}, {}
        if group.rank:
            return
        every = range(group.size)
        parts = [digits(batch, CHECKED_STEPS, rank, group.size) for rank in every]
        for steps in (1, CHECKED_STEPS):
            after = _alone_on_whole_batch(weights, parts, steps, precision)
            self.expected[True, steps] = after
        shuffled = _alone_on_whole_batch(
            weights,
            parts,
            CHECKED_STEPS,
            precision,
            shuffled=True,
        )
        rounding = _distance(shuffled, after, weights)
        self.limits[True, 1] = FLIPS / (batch * group.size * HIDDEN) ** 0.5
        self.limits[True, CHECKED_STEPS] = TIMES_ROUNDING * rounding
        self.expected[False, 1] = _mean_of_steps_alone(weights, parts, precision)
        self.limits[False, 1] = TOLERANCE

    def verdict(self, mine, key):
        """(how far off weights are, how far they may be); None where there is no reference."""
        if key not in self.expected:
            return None
        off = _distance(mine, self.expected[key], self.weights)
        return off, self.limits[key]


def check(
    communicator,
    batch: int,
    recording: Recording,
    precision="bf16",
) -> bool:
    """Train with all ranks, and on rank 0 alone. True: they differ by no more than rounding.

    With shared statistics the first step and ten steps must agree with one GPU's on the whole
    batch. With own statistics the first step must be the mean of those that each rank's part alone
    would take.
    """
    from course.kernels.mnist_cnn.pytorch import initial_weights

    group, weights = communicator.group, initial_weights(0)
    reference = Reference(group, weights, batch, precision)
    data = digits(batch, CHECKED_STEPS, group.rank, group.size)
    good = True
    for shared, steps in CHECKS:
        for bucket in (True, False):
            options = {"statistics": shared, "bucket": bucket}
            mine = _trained(communicator, weights, data, steps, precision, options)
            same = len(set(group.all_gather(_digest(mine)))) == 1
            verdict = reference.verdict(mine, (shared, steps))
            off, limit = group.all_gather(verdict)[0]
            name = f"many_gpus/ddp/{batch}/check/{_kind(options)}/{steps}_steps"
            recording.add(
                name,
                off,
                "1",
                same_bits=same,
                limit=limit,
            )
            good = good and same and off <= limit
    return good


def _trained(communicator, weights, data, steps, precision, options):
    """The weights after some steps with all ranks."""
    batch = len(data[0][1])
    with ParallelTrainer(
        communicator,
        weights,
        batch,
        LR,
        precision,
        **options,
    ) as trainer:
        _run(trainer, data, steps)
        mine = trainer.weights()
        communicator.check()
        communicator.group.barrier()
    return mine


def _digest(weights) -> str:
    """A name for the bits of weights."""
    every = b"".join(value.tobytes() for value in weights.values())
    return hashlib.sha256(every).hexdigest()


def _alone_on_whole_batch(weights, parts, steps, precision, *, shuffled=False):
    """The weights of one trainer with all ranks' parts, maybe in another order."""
    labels = parts[0][0][1]
    order = np.arange(len(parts) * len(labels))
    if shuffled:
        np.random.default_rng(0).shuffle(order)
    with fast.Trainer(weights, len(order), LR, precision, **fast.EIGHT) as alone:
        for step in range(steps):
            images = np.concatenate([part[step][0] for part in parts])
            labels = np.concatenate([part[step][1] for part in parts])
            if shuffled:
                images, labels = images[order], labels[order]
            alone.step(images, labels)
            alone.synchronize()
        return alone.weights()


def _mean_of_steps_alone(weights, parts, precision):
    """The mean of the weights after a step on each part alone: the mean gradient's step."""
    after = []
    for part in parts:
        images, labels = part[0]
        with fast.Trainer(weights, len(labels), LR, precision, **fast.EIGHT) as alone:
            alone.step(images, labels)
            after.append(alone.weights())
    means = {}
    for name in weights:
        ranks = [weights_of_rank[name] for weights_of_rank in after]
        means[name] = np.mean(ranks, axis=0)
    return means


def _kind(options) -> str:
    statistics = "shared_statistics" if options["statistics"] else "own_statistics"
    return f"{statistics}/{'bucket' if options['bucket'] else 'at_end'}"


# ---- how fast is it? -----------------------------------------------------------------------------

KINDS = tuple(
    {"statistics": statistics, "bucket": bucket}
    for statistics in (True, False)
    for bucket in (True, False)
)


def measure(
    communicator,
    recording: Recording,
    clock,
    batches=(4096,),
    good=True,
) -> None:
    """Record microseconds a step of one GPU and of all, and many_gpus/ddp/<batch>/scaling.

    batches: digits a rank. good: were the results right? Else the times get another name.
    """
    group = communicator.group
    prefix = "many_gpus" if good else "many_gpus/WRONG"
    for batch in batches:
        if clock.agreed(group) < 3:
            recording.note(f"many_gpus/ddp/{batch}", "left out: the time was used up")
            continue
        everyone = group.all_gather(_samples(communicator, batch))
        _keep(recording, f"{prefix}/ddp/{batch}", everyone)


def _samples(communicator, batch) -> dict[str, list[float]]:
    """Seconds a step on this rank: alone, beside the others, and with them in every kind, in turn.

    Alone only rank 0 works.
    """
    from course.kernels.mnist_cnn.pytorch import initial_weights

    group, weights = communicator.group, initial_weights(0)
    data = digits(batch, 8, group.rank, group.size)
    samples = {"alone": [], "side_by_side": []}
    for _ in range(REPEATS):
        alone = _alone(
            group,
            weights,
            batch,
            data,
            only_first=True,
        )
        samples["alone"].append(alone)
        samples["side_by_side"].append(_alone(group, weights, batch, data))
        for options in KINDS:
            seconds = _together(communicator, weights, batch, data, options)
            samples.setdefault(_kind(options), []).append(seconds)
    return samples


def _keep(recording, name, everyone):
    """Record the medians, and how the kinds scale. everyone: each rank's samples."""
    size, medians = len(everyone), {}
    for kind in everyone[0]:
        medians[kind], spread = median_and_spread(slowest(everyone, kind))
        recording.add(f"{name}/step/{kind}", medians[kind], "s", spread)
    scaling = {kind: size * medians["alone"] / medians[kind] for kind in map(_kind, KINDS)}
    for kind, value in scaling.items():
        recording.add(f"{name}/scaling/{kind}", value, "1")
    shared = ("shared_statistics/bucket", "shared_statistics/at_end")
    best = max(shared, key=scaling.get)
    recording.add(
        f"{name}/scaling",
        scaling[best],
        "1",
        best=best,
    )


def measure_strong(
    communicator,
    recording: Recording,
    whole: int,
    good=True,
) -> None:
    """Record many_gpus/ddp/<whole>/strong_scaling: one batch, shared out among all GPUs."""
    from course.kernels.mnist_cnn.pytorch import initial_weights

    group, weights = communicator.group, initial_weights(0)
    batch = whole // group.size
    all_of_it = digits(whole, 4, 0, 1)
    part = digits(batch, 4, group.rank, group.size)
    samples = {"alone": [], "together": []}
    for _ in range(REPEATS):
        alone = _alone(
            group,
            weights,
            whole,
            all_of_it,
            only_first=True,
        )
        samples["alone"].append(alone)
        together = _together(communicator, weights, batch, part, {})
        samples["together"].append(together)
    everyone = group.all_gather(samples)
    alone, together = (median_and_spread(slowest(everyone, key))[0] for key in samples)
    prefix = "many_gpus" if good else "many_gpus/WRONG"
    name = f"{prefix}/ddp/{whole}/strong_scaling"
    recording.add(
        name,
        alone / together,
        "1",
        step=together,
    )


def _together(communicator, weights, batch, data, options) -> float:
    """Seconds a step of a trainer that works with all ranks."""
    group = communicator.group
    with ParallelTrainer(
        communicator,
        weights,
        batch,
        LR,
        **options,
    ) as trainer:
        seconds = time_of_steps(trainer, data, group)
        communicator.check()
        group.barrier()
    return seconds


def _alone(
    group,
    weights,
    batch,
    data,
    *,
    only_first=False,
) -> float:
    """Seconds a step of a trainer that talks to nobody; 0 on the ranks that do not take part."""
    group.barrier()
    seconds = 0.0
    if group.rank == 0 or not only_first:
        with fast.Trainer(weights, batch, LR, **fast.EIGHT) as trainer:
            seconds = time_of_steps(trainer, data)
    group.barrier()
    return seconds
