"""Our data-parallel training measured: right first, then how it scales."""

import hashlib
import time

import numpy as np

from course.many_gpus.recording import Recording, median_and_spread
from course.many_gpus.trainer import ParallelTrainer
from course.mnist_cnn import fast

LR = 0.02
STEPS, REPEATS, WARM_UP = 100, 5, 10
CHECKED_STEPS = 10
#: How far the weights may lie from those of one GPU on the whole batch, as a share of how far training
#: has moved them: bfloat16 keeps 8 bits, and sums in another order round otherwise.
TOLERANCE = 0.05


def digits(batch: int, count: int, rank: int, ranks: int):
    """`count` batches of random digits: this rank's part of each, in pinned memory. [(images, labels)]"""
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
    """Train with all ranks, and on rank 0 alone; record how far the results differ. True: within rounding.

    With shared statistics ten steps must agree with one GPU's on the whole batch. With own statistics
    the first step must be the mean of the steps that each rank's part alone would take.
    """
    from course.mnist_cnn.pytorch import initial_weights

    group, weights = communicator.group, initial_weights(0)
    parts = [digits(batch, CHECKED_STEPS, rank, group.size) for rank in range(group.size)]
    expected = {}
    if group.rank == 0:
        expected = {True: _alone_on_whole_batch(weights, parts, precision),
                    False: _mean_of_steps_alone(weights, parts, precision)}  # fmt: skip
    good = True
    for statistics, bucket in ((True, True), (True, False), (False, True), (False, False)):
        options = {"statistics": statistics, "bucket": bucket}
        with ParallelTrainer(communicator, weights, batch, LR, precision, **options) as trainer:
            _run(trainer, parts[group.rank], CHECKED_STEPS if statistics else 1)
            mine = trainer.weights()
            communicator.check()
            group.barrier()
        digest = hashlib.sha256(b"".join(value.tobytes() for value in mine.values())).hexdigest()
        same = len(set(group.all_gather(digest))) == 1
        off = _distance(mine, expected[statistics], weights) if group.rank == 0 else None
        off = group.all_gather(off)[0]
        recording.add(f"many_gpus/ddp/{batch}/check/{_kind(options)}", off, "1", same_bits=same)
        good = good and same and off <= TOLERANCE
    return good


def _alone_on_whole_batch(weights, parts, precision):
    """The weights after one trainer has trained on all ranks' parts put together."""
    with fast.Trainer(weights, len(parts) * len(parts[0][0][1]), LR, precision) as alone:
        for step in range(CHECKED_STEPS):
            images, labels = (np.concatenate([part[step][i] for part in parts]) for i in range(2))
            alone.step(images, labels)
            alone.synchronize()
        return alone.weights()


def _mean_of_steps_alone(weights, parts, precision):
    """The mean of the weights after one step on each rank's part alone: that is the mean gradient's step."""
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

    batches: digits a rank. good: were the results right? Else the times are kept under another name.
    """
    from course.mnist_cnn.pytorch import initial_weights

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
        slowest = {
            k: [max(t) for t in zip(*group.all_gather(v), strict=True)] for k, v in samples.items()
        }
        medians = {}
        for kind, seconds in slowest.items():
            medians[kind], spread = median_and_spread(seconds)
            recording.add(f"{prefix}/ddp/{batch}/step/{kind}", medians[kind], "s", spread)
        for options in kinds:
            kind = _kind(options)
            scaling = size * medians["alone"] / medians[kind]
            recording.add(f"{prefix}/ddp/{batch}/scaling/{kind}", scaling, "1")


def _alone(group, weights, batch, data, *, only_first=False) -> float:
    """Seconds a step of a trainer that talks to nobody; 0 on the ranks that do not take part."""
    group.barrier()
    seconds = 0.0
    if group.rank == 0 or not only_first:
        with fast.Trainer(weights, batch, LR) as trainer:
            seconds = time_of_steps(trainer, data)
    group.barrier()
    return seconds
