"""A whole training program: from nothing to a network that reads 98.5 % of MNIST's test digits.

    python -m course.kernels.mnist_cnn.program ours [--batch 128] [--lr 0.05]
    python -m course.kernels.mnist_cnn.program graph_tf32      any mode of `pytorch_modes`
    python -m course.kernels.mnist_cnn.program ours --steps 3  so many steps and no target:
                                                               short, for compute-sanitizer

The race times such programs as a user would: with a stopwatch from the command to the prompt.
Both sides start from the same weights, take the same batches in the same order, and look at the
test digits after every epoch.
"""

import argparse
import ctypes
import sys

import numpy as np

from course.kernels.mnist_cnn import SHAPES
from utils import data

TARGET = 0.985
MOST_EPOCHS = 10
TEST_BATCH = 1000


def starting_weights(seed: int) -> dict[str, np.ndarray]:
    """PyTorch's initialization, drawn by NumPy so that ours need not load PyTorch for it.

    Convolutions and linear layers: uniform within ±1/√(inputs of a neuron), weights and biases
        alike
    (`torch.nn.init.kaiming_uniform_` with a = √5); batch norms: 1 and 0.
    """
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in SHAPES.items():
        layer = name.split(".")[0]
        if layer.startswith("bn"):
            weights[name] = np.full(shape, name.endswith("weight"), np.float32)
        else:
            bound = np.prod(SHAPES[f"{layer}.weight"][1:]) ** -0.5
            weights[name] = rng.uniform(-bound, bound, shape).astype(np.float32)
    return weights


def orders(digits: int, batch: int, epoch: int) -> np.ndarray:
    """Which digits make up each batch of an epoch, [batches, batch]; the last, smaller batch is
    left out.
    """
    order = np.random.default_rng([0, epoch]).permutation(digits)
    return order[: digits // batch * batch].reshape(-1, batch)


def pinned(*shape: int) -> np.ndarray:
    """Bytes in pinned host memory, for the rest of the program.

    Needs a CUDA context, as a trainer makes one. Raises MemoryError when the driver has none left.
    """
    size = int(np.prod(shape))
    pointer = ctypes.c_void_p()
    driver = ctypes.CDLL("libcuda.so.1")
    code = driver.cuMemHostAlloc(ctypes.byref(pointer), ctypes.c_size_t(size), 0)
    if code:
        raise MemoryError(
            f"{size:,} bytes of pinned memory cannot be had: the driver says error {code}"
        )
    memory = (ctypes.c_uint8 * size).from_address(pointer.value)
    return np.ctypeslib.as_array(memory).reshape(shape)


def pinned_tensors(digits: int) -> tuple:
    """Tensors in pinned memory for so many images and labels."""
    import torch

    shapes = (digits, 28, 28), (digits,)
    return tuple(torch.empty(shape, dtype=torch.uint8, pin_memory=True) for shape in shapes)


def gather(digits, chosen, images, labels) -> None:
    """Copy the chosen digits, of (images, labels), into arrays."""
    np.take(digits[0], chosen, axis=0, out=images)
    np.take(digits[1], chosen, out=labels)


def train_ours(train, test, batch, lr, epochs=MOST_EPOCHS) -> list[float]:
    """Our trainer; the accuracy after every epoch."""
    from course.kernels.mnist_cnn import fast

    accuracies = []
    with fast.Trainer(starting_weights(0), batch, lr) as trainer:
        images = pinned(*train[0].shape)
        labels = pinned(len(train[1]))
        for epoch in range(epochs):
            # the last epoch's batches have been copied: their memory is free again
            trainer.synchronize()
            for k, chosen in enumerate(orders(len(train[0]), batch, epoch)):
                place = slice(k * batch, (k + 1) * batch)
                # while the GPU trains on the batches before
                gather(train, chosen, images[place], labels[place])
                trainer.step(images[place], labels[place])
            with fast.Trainer(trainer.weights(), TEST_BATCH, 0.0, graph=False) as tester:
                accuracies.append(_accuracy(tester, *test))
            if accuracies[-1] >= TARGET:
                break
    return accuracies


def _accuracy(tester, images, labels) -> float:
    """Share of the digits that a trainer reads right."""
    right = 0
    for start in range(0, len(images), TEST_BATCH):
        chosen = slice(start, start + TEST_BATCH)
        answers = tester.logits(images[chosen]).argmax(1)
        right += int((answers == labels[chosen]).sum())
    return right / len(images)


def train_pytorch(
    train,
    test,
    batch,
    lr,
    mode,
    epochs=MOST_EPOCHS,
) -> list[float]:
    """PyTorch in one mode; the accuracy after every epoch."""
    import torch

    from course.kernels.mnist_cnn.pytorch import accuracy
    from course.kernels.mnist_cnn.pytorch_modes import MODES, Trainer, precision

    trainer = Trainer(starting_weights(0), batch, lr, MODES[mode])
    accuracies = []
    images, labels = pinned_tensors(len(train[1]))
    for epoch in range(epochs):
        torch.cuda.synchronize()
        with precision(trainer.mode):
            for k, chosen in enumerate(orders(len(train[0]), batch, epoch)):
                place = slice(k * batch, (k + 1) * batch)
                gather(train, chosen, images[place].numpy(), labels[place].numpy())
                trainer.step(images[place], labels[place])
            accuracies.append(accuracy(trainer.model, *test, batch=TEST_BATCH))
        if accuracies[-1] >= TARGET:
            break
    return accuracies


def main(arguments: list[str] | None = None) -> int:
    """Command line; the exit status is 0 only when the target was reached."""
    parser = argparse.ArgumentParser(
        prog="python -m course.kernels.mnist_cnn.program", description=__doc__.splitlines()[0]
    )
    parser.add_argument("trainer", help='"ours", or a mode of PyTorch such as "graph_tf32"')
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--steps", type=int, help="only so many steps, and no target")
    options = parser.parse_args(arguments)
    if options.trainer != "ours":
        from course.kernels.mnist_cnn.pytorch_modes import MODES

        if options.trainer not in MODES:
            parser.error(f"no such trainer: {options.trainer}. There are ours, {', '.join(MODES)}")
    train = data.mnist("train")
    test = data.mnist("test")
    epochs = MOST_EPOCHS
    if not 1 <= options.batch <= len(train[1]):
        parser.error(
            f"--batch {options.batch}: it must be between 1 and the {len(train[1]):,} digits that "
            "there are"
        )
    if options.steps is not None and options.steps < 1:
        parser.error(f"--steps {options.steps}: at least one")
    if options.steps:
        train, test, epochs = (
            [a[: options.steps * options.batch] for a in train],
            [a[:TEST_BATCH] for a in test],
            1,
        )
    if options.trainer == "ours":
        accuracies = train_ours(train, test, options.batch, options.lr, epochs)
    else:
        accuracies = train_pytorch(train, test, options.batch, options.lr, options.trainer, epochs)
    print("accuracy after each epoch:", " ".join(f"{a:.2%}" for a in accuracies))
    return 0 if options.steps or accuracies[-1] >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
