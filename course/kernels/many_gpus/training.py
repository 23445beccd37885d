"""Our data-parallel training measured: right first, then how it scales."""

import hashlib
import time

import numpy as np

from course.kernels.many_gpus.recording import Recording, median_and_spread
from course.kernels.many_gpus.trainer import ParallelTrainer
from course.kernels.mnist_cnn import fast

LR = 0.02
STEPS, REPEATS, WARM_UP = 100, 5, 10
CHECKED_STEPS = 10
#: After ten steps the weights may lie so many times as far from the reference's as the reference
#: lies from itself when it takes the same digits in another order: that is rounding alone.
TIMES_ROUNDING = 3
#: After one step: rounding turns a few ReLUs on or off, each of them one of digits * 128 random
#: terms of a gradient. So many of them are allowed.
FLIPS, HIDDEN = 5, 128
#: Where the reference takes the same sums in the same order, what float32 may round.
TOLERANCE = 1e-4


def digits(batch: int, count: int, rank: int, ranks: int):
    """This rank's part of `count` batches of random digits, [(images, labels)], pinned."""
    import torch

    batches = []
    for number in range(count):
        random = np.random.default_rng([number, rank, ranks])
        images = random.integers(0, 256, (batch, 28, 28), np.uint8)
        # Strokes on paper rather than noise: most pixels are 0, as in MNIST.
        images *= random.random((batch, 28, 28)) < 0.2
        labels = random.integers(0, 10, batch, np.uint8)
        pinned = [torch.from_numpy(a).pin_memory() for a in (images, labels)]
        batches.append(tuple(t.numpy() for t in pinned))
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
    apart = sum(float(np.sum((weights[n] - others[n]) ** 2)) for n in weights)
    gone = sum(float(np.sum((others[n] - first[n]) ** 2)) for n in weights)
    return (apart / gone) ** 0.5


def check(communicator, batch: int, recording: Recording, precision="bf16") -> bool:
    """Train with all ranks, and on rank 0 alone. True: they differ by no more than rounding.

    With shared statistics the first step and ten steps must agree with one GPU's on the whole
    batch. With own statistics the first step must be the mean of those that each rank's part alone
    would take.
    """
    from course.kernels.mnist_cnn.pytorch import initial_weights

    group, weights = communicator.group, initial_weights(0)
    needed = range(group.size) if group.rank == 0 else [group.rank]
    every = {rank: digits(batch, CHECKED_STEPS, rank, group.size) for rank in needed}
    parts = list(every.values())
    expected, limits = {}, {}
    if group.rank == 0:
        for steps in (1, CHECKED_STEPS):
            expected[True, steps] = _alone_on_whole_batch(weights, parts, steps, precision)
        last = expected[True, CHECKED_STEPS]
        shuffled = _alone_on_whole_batch(weights, parts, CHECKED_STEPS, precision, shuffled=True)
        limits[True, 1] = FLIPS / (batch * group.size * HIDDEN) ** 0.5
        limits[True, CHECKED_STEPS] = TIMES_ROUNDING * _distance(shuffled, last, weights)
        expected[False, 1] = _mean_of_steps_alone(weights, parts, precision)
        limits[False, 1] = TOLERANCE
    good = True
    runs = [(True, 1), (True, CHECKED_STEPS), (False, 1)]
    kinds = [(shared, steps, bucket) for shared, steps in runs for bucket in (True, False)]
    for shared, steps, bucket in kinds:
        options = {"statistics": shared, "bucket": bucket}
        with ParallelTrainer(communicator, weights, batch, LR, precision, **options) as trainer:
            _run(trainer, every[group.rank], steps)
            mine = trainer.weights()
            communicator.check()
            group.barrier()
        digest = hashlib.sha256(b"".join(value.tobytes() for value in mine.values())).hexdigest()
        same = len(set(group.all_gather(digest))) == 1
        verdict = None
        if group.rank == 0:
            verdict = _distance(mine, expected[shared, steps], weights), limits[shared, steps]
        off, limit = group.all_gather(verdict)[0]
        name = f"many_gpus/ddp/{batch}/check/{_kind(options)}/{steps}_steps"
        recording.add(name, off, "1", same_bits=same, limit=limit)
        good = good and same and off <= limit
    return good


def _alone_on_whole_batch(weights, parts, steps, precision, *, shuffled=False):
    """The weights of one trainer with all ranks' parts, maybe in another order."""
    order = np.arange(len(parts) * len(parts[0][0][1]))
    if shuffled:
        np.random.default_rng(0).shuffle(order)
    with fast.Trainer(weights, len(order), LR, precision) as alone:
        for step in range(steps):
            images, labels = (np.concatenate([part[step][i] for part in parts]) for i in range(2))
            if shuffled:
                images, labels = images[order], labels[order]
            alone.step(images, labels)
            alone.synchronize()
        return alone.weights()


def _mean_of_steps_alone(weights, parts, precision):
    """The mean of the weights after a step on each part alone: the mean gradient's step."""
    after = []
    for part in parts:
        with fast.Trainer(weights, len(part[0][1]), LR, precision) as alone:
            alone.step(*part[0])
            after.append(alone.weights())
    return {name: np.mean([w[name] for w in after], axis=0) for name in weights}


def _kind(options) -> str:
    statistics = "shared_statistics" if options["statistics"] else "own_statistics"
    return f"{statistics}/{'bucket' if options['bucket'] else 'at_end'}"


def measure(communicator, recording: Recording, clock, batches=(4096,), good=True) -> None:
    """Record microseconds a step of one GPU and of all, and many_gpus/ddp/<batch>/scaling.

    batches: digits a rank. good: were the results right? Else the times get another name.
    """
    from course.kernels.mnist_cnn.pytorch import initial_weights

    group, size, weights = communicator.group, communicator.size, initial_weights(0)
    prefix = "many_gpus" if good else "many_gpus/WRONG"
    for batch in batches:
        if clock.agreed(group) < 3:
            recording.note(f"many_gpus/ddp/{batch}", "left out: the time was used up")
            continue
        data = digits(batch, 8, group.rank, size)
        kinds = [{"statistics": s, "bucket": b} for s in (True, False) for b in (True, False)]
        samples = {"alone": [], "side_by_side": [], **{_kind(options): [] for options in kinds}}
        for _ in range(REPEATS):
            samples["alone"].append(_alone(group, weights, batch, data, only_first=True))
            samples["side_by_side"].append(_alone(group, weights, batch, data))
            for options in kinds:
                with ParallelTrainer(communicator, weights, batch, LR, **options) as trainer:
                    samples[_kind(options)].append(time_of_steps(trainer, data, group))
                    communicator.check()
                    group.barrier()
        slowest = _slowest(group, samples)
        medians = {}
        for kind, seconds in slowest.items():
            medians[kind], spread = median_and_spread(seconds)
            recording.add(f"{prefix}/ddp/{batch}/step/{kind}", medians[kind], "s", spread)
        for options in kinds:
            kind = _kind(options)
            scaling = size * medians["alone"] / medians[kind]
            recording.add(f"{prefix}/ddp/{batch}/scaling/{kind}", scaling, "1")
        best = min(("shared_statistics/bucket", "shared_statistics/at_end"), key=medians.get)
        recording.add(
            f"{prefix}/ddp/{batch}/scaling", size * medians["alone"] / medians[best], "1", best=best
        )


def _slowest(group, samples):
    """Of each sample the time of the slowest rank."""
    everyone = group.all_gather(samples)
    return {k: [max(t) for t in zip(*(s[k] for s in everyone), strict=True)] for k in samples}


def measure_strong(communicator, recording: Recording, whole: int, good=True) -> None:
    """Record many_gpus/ddp/<whole>/strong_scaling: one batch, shared out among all GPUs."""
    from course.kernels.mnist_cnn.pytorch import initial_weights

    group, weights = communicator.group, initial_weights(0)
    batch = whole // group.size
    all_of_it, part = digits(whole, 4, 0, 1), digits(batch, 4, group.rank, group.size)
    samples = {"alone": [], "together": []}
    for _ in range(REPEATS):
        samples["alone"].append(_alone(group, weights, whole, all_of_it, only_first=True))
        with ParallelTrainer(communicator, weights, batch, LR) as trainer:
            samples["together"].append(time_of_steps(trainer, part, group))
            communicator.check()
            group.barrier()
    slowest = _slowest(group, samples)
    alone, together = (median_and_spread(slowest[k])[0] for k in samples)
    prefix = "many_gpus" if good else "many_gpus/WRONG"
    recording.add(f"{prefix}/ddp/{whole}/strong_scaling", alone / together, "1", step=together)


def _alone(group, weights, batch, data, *, only_first=False) -> float:
    """Seconds a step of a trainer that talks to nobody; 0 on the ranks that do not take part."""
    group.barrier()
    seconds = 0.0
    if group.rank == 0 or not only_first:
        with fast.Trainer(weights, batch, LR) as trainer:
            seconds = time_of_steps(trainer, data)
    group.barrier()
    return seconds
