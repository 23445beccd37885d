"""The fast trainer with the finale's exercises solved, beside the course's: is it right, how fast?

    python -m course.solved_trainer [--batches 64 256]

The solutions of the four exercises that have a socket (course.kernels.mnist_cnn.sockets) go in
together. Nothing is recorded before the losses of the first steps are PyTorch's and the accuracy
has passed the race's gate. Then both trainers take turns, and what was measured is written into
assets/results: `mnist/yours/accuracy`, and for each batch size `mnist/yours/64/time` and `.../ours`
(µs per step), `.../only_head` and so on with one of the four alone, `.../share_of_ours` and
`.../launches`.
"""

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from course.exercises import beating_pytorch
from course.kernels.mnist_cnn import fast, race, sockets
from utils import data, engine, hardware, results
from utils.timing import median_and_spread

BATCHES = (64, 256)
PREFIX = "mnist/yours"
OURS, SOLVED, ONLY = "ours", "solved", "only_"
DIFFERENT = 8  # batches that the steps go round


class NotShown(Exception):
    """A trainer whose losses or accuracy are not PyTorch's: how far they are off."""


def solutions(folder: Path) -> dict[str, Path]:
    """The four exercises' solutions as files in a folder, by their sockets."""
    files = {}
    for exercise in beating_pytorch.EXERCISES:
        if exercise.kernel_name in sockets.SOCKETS:
            path = folder / Path(exercise.path).name
            path.write_text(exercise.solution, encoding="utf-8")
            files[exercise.kernel_name] = path
    return files


def versions(mine: Mapping[str, Path]) -> dict[str, dict[str, Path]]:
    """Which files go into the sockets: none, all, and each alone."""
    alone = {f"{ONLY}{name}": {name: path} for name, path in mine.items()}
    return {OURS: {}, SOLVED: dict(mine), **alone}


def build(mine: Mapping[str, Path]) -> None:
    """Let nvcc do its work beforehand, all versions side by side."""
    kind = fast.precisions()[0]
    files = [sockets.checked(chosen) for chosen in versions(mine).values()]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda chosen: fast.build(kind, chosen), files))


def batches_of(size: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Some batches of MNIST's training digits, on a GPU in pinned memory."""
    if engine.has_gpu():
        return race.pinned_batches(size, DIFFERENT)[race.Ours]
    images, labels = data.mnist(subset=True)
    starts = range(0, DIFFERENT * size, size)
    return [(images[at : at + size].copy(), labels[at : at + size].copy()) for at in starts]


def expected_losses(weights, batches: Sequence[tuple], steps: int) -> np.ndarray:
    """The losses of so many steps of PyTorch in float32, on the CPU."""
    import torch
    from torch.nn import functional

    from course.kernels.mnist_cnn.pytorch import model_from

    model = model_from(weights)
    optimizer = torch.optim.SGD(model.parameters(), lr=race.LR)
    losses = []
    for k in range(steps):
        images, labels = batches[k % len(batches)]
        answers = torch.from_numpy(labels.astype(np.int64))
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(torch.from_numpy(images.copy())), answers)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


def verify(trainers: Mapping[str, fast.Trainer], batches, expected) -> dict[str, float]:
    """How far each trainer's first losses are off, as a share. NotShown where it is more than
    rounding.
    """
    off = {}
    for name, trainer in trainers.items():
        for k in range(len(expected)):
            trainer.step(*batches[k % len(batches)])
        off[name] = float(np.max(np.abs(trainer.losses() / expected - 1)))
        most = race.TOLERANCE[trainer.precision]
        if not off[name] <= most:
            raise NotShown(
                f"{name}: a loss of the first {len(expected)} steps is off by {off[name]:.2g} of "
                f"its value, and rounding explains {most:g}"
            )
    return off


def measure(trainers: Mapping[str, fast.Trainer], batches, steps: int, repeats: int) -> dict:
    """Microseconds per step of each trainer, one for each repeat; the trainers take turns."""
    times = {name: [] for name in trainers}
    for _ in range(repeats):
        for name, trainer in trainers.items():
            _steps(trainer, batches, race.WARM_UP)
            begun = time.perf_counter()
            _steps(trainer, batches, steps)
            times[name].append((time.perf_counter() - begun) / steps * 1e6)
    return times


def _steps(trainer, batches, steps):
    for k in range(steps):
        trainer.step(*batches[k % len(batches)])
    trainer.synchronize()


def row(batch: int, mine: Mapping[str, Path], steps: int, repeats: int) -> dict[str, tuple]:
    """One batch size: {result: (value, unit, spread)}, verified and then measured in turn."""
    from course.kernels.mnist_cnn.pytorch import initial_weights

    weights, batches = initial_weights(0), batches_of(batch)
    checked = min(race.CHECKED_STEPS, 2 * steps)
    expected = expected_losses(weights, batches, checked)
    with contextlib.ExitStack() as stack:
        trainers = {}
        for name, files in versions(mine).items():
            trainer = fast.Trainer(weights, batch, race.LR, mine=files)
            trainers[name] = stack.enter_context(trainer)
        off = verify(trainers, batches, expected)
        print(f"batch {batch}: losses off by {max(off.values()):.1e} at most", flush=True)
        launches = trainers[SOLVED].launches()
        times = measure(trainers, batches, steps, repeats)
    took = {name: median_and_spread(samples) for name, samples in times.items()}
    (our_us, our_spread), (solved_us, solved_spread) = took.pop(OURS), took.pop(SOLVED)
    share = our_us / solved_us
    share_spread = share * (our_spread / our_us + solved_spread / solved_us)
    return {
        "time": (solved_us, "µs", solved_spread),
        "ours": (our_us, "µs", our_spread),
        "share_of_ours": (share, "1", share_spread),
        "launches": (launches, "1", 0.0),
        **{name: (micro, "µs", spread) for name, (micro, spread) in took.items()},
    }


def accuracy(mine: Mapping[str, Path], seeds: int, epochs: int, batch: int) -> tuple[float, float]:
    """Test accuracy of the solved trainer as the race's gate measures it: mean and deviation over
    seeds. Needs a GPU.
    """
    from course.kernels.mnist_cnn import program, pytorch
    from course.kernels.mnist_cnn.loader import Loader

    train, test = data.mnist(), data.mnist("test")
    images, labels = (tensor.numpy() for tensor in program.pinned_tensors(len(train[0])))
    found = []
    for seed in range(seeds):
        loader = Loader(*train, batch, seed=seed)
        weights = pytorch.initial_weights(seed)
        with fast.Trainer(weights, batch, race.GATE_LR, mine=mine) as trainer:
            for epoch in range(epochs):
                trainer.synchronize()  # the epoch before has been copied: its memory is free
                for k, chosen in enumerate(loader.order(epoch)):
                    place = slice(k * batch, (k + 1) * batch)
                    program.gather(train, chosen, images[place], labels[place])
                    trainer.step(images[place], labels[place])
            model = pytorch.model_from(trainer.weights(), "cuda")
        found.append(pytorch.accuracy(model, *test))
    return statistics.mean(found), statistics.stdev(found)


def gate(mine: Mapping[str, Path]) -> tuple[float, str, float]:
    """The accuracy as a result. NotShown unless it is within the race's gate of PyTorch's recorded
    one.
    """
    wanted = results.find("mnist/accuracy/pytorch")
    if wanted is None:
        raise NotShown("no accuracy of PyTorch is recorded to compare with: run the race first")
    mean, spread = accuracy(mine, race.SEEDS, race.EPOCHS, race.GATE_BATCH)
    print(f"accuracy {mean:.2%} ± {spread:.2%}, PyTorch's {wanted['value']:.2%}", flush=True)
    if abs(mean - wanted["value"]) > race.GATE:
        raise NotShown(f"an accuracy of {mean:.2%} has not passed the gate")
    return mean, "1", spread


def entries_of(found: Mapping[str, tuple]) -> list[dict]:
    """Results as the file takes them. found: {name: (value, unit, spread)}."""
    gpu = engine.gpu()
    same = {"gpu": gpu.name, "driver": gpu.driver}
    same |= {"versions": results.versions(), "date": results.now()}
    return [
        {"name": f"{PREFIX}/{name}", "value": value, "unit": unit, "spread": spread, **same}
        for name, (value, unit, spread) in found.items()
    ]


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course.solved_trainer", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES, help="digits per step")
    options = parser.parse_args(arguments)
    if engine.gpu() is None:
        print("the times need an NVIDIA GPU, and there is none here", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        mine = solutions(Path(folder))
        build(mine)
        try:
            found = {"accuracy": gate(mine)}
            for batch in options.batches:
                for name, value in row(batch, mine, race.STEPS, race.REPEATS).items():
                    found[f"{batch}/{name}"] = value
                # written at once: whoever stops the command keeps what was measured
                written = results.add(entries_of(found), hardware.this_gpu())
        except NotShown as no:
            print(f"nothing more is recorded. {no}", file=sys.stderr)
            return 1
    for name, (value, unit, spread) in found.items():
        print(f"{name:24} {value:10,.4g} ± {spread:.2g} {unit if unit != '1' else ''}")
    print("wrote", written.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
