"""The accuracy gate of the race (course/kernels/mnist_cnn/race.py) for data-parallel training.

The same seeds, epochs, digits a step and learning rate: each step's digits are shared out among the
ranks. Our mean accuracy on the test digits must lie within the race's gate of PyTorch's in fp32.
"""

import statistics

import numpy as np

from course.kernels.many_gpus.recording import Recording
from course.kernels.many_gpus.trainer import ParallelTrainer
from course.kernels.mnist_cnn.race import EPOCHS, GATE, GATE_BATCH, GATE_LR, SEEDS


class Epochs:
    """This rank's part of an epoch's batches, in pinned memory that every epoch uses again."""

    def __init__(self, digits, rank: int, ranks: int):
        import torch

        self.digits, self.rank, self.each = digits, rank, GATE_BATCH // ranks
        steps = len(digits[0]) // GATE_BATCH
        shape = (steps, self.each)
        self.images = torch.empty(
            (*shape, 28, 28),
            dtype=torch.uint8,
            pin_memory=True,
        )
        self.labels = torch.empty(
            shape,
            dtype=torch.uint8,
            pin_memory=True,
        )

    def batches(self, loader, epoch: int, kind=np.ndarray):
        """The epoch's batches, as NumPy arrays or torch tensors."""
        images, labels = self.images.numpy(), self.labels.numpy()
        part = slice(self.rank * self.each, (self.rank + 1) * self.each)
        for step, chosen in enumerate(loader.order(epoch)):
            np.take(
                self.digits[0],
                chosen[part],
                axis=0,
                out=images[step],
                mode="clip",
            )
            np.take(
                self.digits[1],
                chosen[part],
                out=labels[step],
                mode="clip",
            )
        if kind is np.ndarray:
            return list(zip(images, labels, strict=True))
        return list(zip(self.images, self.labels, strict=True))


def _ours(communicator, digits, seed, statistics_of_all):
    """The weights after training with all ranks."""
    from course.kernels.mnist_cnn.loader import Loader
    from course.kernels.mnist_cnn.pytorch import initial_weights

    group = communicator.group
    loader = Loader(*digits, GATE_BATCH, seed=seed)
    epochs = Epochs(digits, group.rank, group.size)
    options = {"statistics": statistics_of_all}
    weights = initial_weights(seed)
    with ParallelTrainer(
        communicator,
        weights,
        epochs.each,
        GATE_LR,
        **options,
    ) as trainer:
        for epoch in range(EPOCHS):
            for images, labels in epochs.batches(loader, epoch):
                trainer.step(images, labels)
            trainer.synchronize()  # the pinned memory is free for the next epoch
        communicator.check()
        group.barrier()
        return trainer.weights()


def _pytorch(digits, seed):
    """The weights after PyTorch's training in fp32, on this rank's GPU alone."""
    import torch

    from course.kernels.mnist_cnn import pytorch_modes
    from course.kernels.mnist_cnn.loader import Loader
    from course.kernels.mnist_cnn.pytorch import initial_weights

    mode = pytorch_modes.MODES["graph_fp32"]
    loader, epochs = (
        Loader(
            *digits,
            GATE_BATCH,
            seed=seed,
        ),
        Epochs(digits, 0, 1),
    )
    trainer = pytorch_modes.Trainer(initial_weights(seed), GATE_BATCH, GATE_LR, mode)
    with pytorch_modes.precision(mode):
        for epoch in range(EPOCHS):
            for images, labels in epochs.batches(loader, epoch, torch.Tensor):
                trainer.step(images, labels)
            torch.cuda.synchronize()
    return trainer.weights()


def measure(communicator, recording: Recording, clock) -> None:
    """Record many_gpus/accuracy/<who>, and whether the gate is passed."""
    from course.kernels.mnist_cnn.pytorch import accuracy, model_from
    from utils import data

    group = communicator.group
    digits, test = data.mnist(), data.mnist("test")
    accuracies = {
        "shared_statistics": [],
        "own_statistics": [],
        "pytorch": [],
    }
    for seed in range(SEEDS):
        if clock.agreed(group) < 6:
            recording.note("many_gpus/accuracy", f"{seed} of {SEEDS} seeds: the time was used up")
            break
        for name, shared in (("shared_statistics", True), ("own_statistics", False)):
            weights = _ours(communicator, digits, seed, shared)
            accuracies[name].append(accuracy(model_from(weights, "cuda"), *test))
        if seed % group.size == group.rank:  # the ranks share PyTorch's seeds
            accuracies["pytorch"].append(
                accuracy(model_from(_pytorch(digits, seed), "cuda"), *test)
            )
    group.barrier()
    theirs = [a for other in group.all_gather(accuracies["pytorch"]) for a in other]
    accuracies["pytorch"] = theirs
    for name, values in accuracies.items():
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        recording.add(f"many_gpus/accuracy/{name}", statistics.mean(values), "1", spread)
    for name in ("shared_statistics", "own_statistics"):
        off = statistics.mean(accuracies[name]) - statistics.mean(theirs)
        passed = float(abs(off) <= GATE)
        recording.add(
            f"many_gpus/accuracy/{name}/passed",
            passed,
            "1",
            off=off,
        )
