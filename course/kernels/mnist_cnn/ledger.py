"""The learner's waterfall: a row for each idea, counted from what ran, and right before it counts.

ledger = Ledger(weights, images, labels)
ledger.add("a kernel per layer")
ledger.add("backward in one pass", "backward")
ledger.finish("tensor cores", mine={"head": "build/head.cu"})
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

from course.kernels.mnist_cnn import fast
from course.kernels.mnist_cnn.pytorch import loss_and_gradients, model_from, train
from course.kernels.mnist_cnn.steps import IDEAS, KERNELS, THEIRS, Step, finished_kilobytes
from utils import has_gpu, results
from utils.tools import yours
from utils.tools.diagnostics import LearnerError

#: How far a gradient may be from autograd's in float64, by norm: pooling makes of a rounding error
#: another choice. In the finished trainer operands have 8 bits.
OFF, OFF_IN_16_BITS = 2e-2, 0.2


class StepError(LearnerError):
    """A step whose gradients are not the network's."""


@dataclass(frozen=True)
class Row:
    """One version of the step: what it launches, and what its launches are handed for a digit.

    mine: the learner's kernels in it. time_us: of the finished trainer on a GPU, or as recorded,
    else None; a step whose kernels Python launches has none, since most of it would be the host's.
    """

    label: str
    launches: int
    kilobytes: float
    mine: tuple = ()
    off: float = 0.0
    time_us: float | None = None
    where: str = ""

    def __repr__(self):
        words = [f"{self.launches} launches", f"{self.kilobytes:,.0f} kB per digit"]
        if self.time_us:
            where = f" (batch 64, recorded on {self.where})" if self.where else ""
            words.append(f"{self.time_us:,.0f} µs per step{where}")
        words.append(f"gradients agree with autograd's to {self.off:.0e} of their size")
        text = " · ".join(words)
        if self.mine:
            text += f"\nyours: {', '.join(self.mine)}"
        return text


class Ledger:
    """Versions of one training step on one batch, each held to autograd before it gets a row."""

    def __init__(self, weights: Mapping[str, np.ndarray], images: np.ndarray, labels: np.ndarray):
        self.given = weights, images, labels
        self.rows: list[Row] = []
        _, _, self._exact = loss_and_gradients(weights, images, labels)

    def step(self, idea: str | None = None, mine: Mapping[str, str | Path] | None = None) -> Step:
        """A step with all ideas up to this one; of the learner's kernels those that belong."""
        ideas = IDEAS[: IDEAS.index(idea) + 1] if idea else ()
        fits = {name: path for name, path in (mine or {}).items() if THEIRS.get(name) in ideas}
        return Step(*self.given, ideas=ideas, mine=fits)

    def add(self, label: str, idea: str | None = None, mine=None) -> Row:
        """Run a step, hold it to autograd, and give it a row in the place of one of this label.

        Raises StepError where it is not right.
        """
        step = self.step(idea, mine)
        step.run()
        launches, kilobytes = len(step.launches), step.kilobytes
        off = self._judged(step.gradients(), OFF)
        own = (*step.mine, *_cells("plain.cu"), *_cells("fused.cu"))
        return self._put(Row(label, launches, kilobytes, own, off))

    def finish(self, label: str, mine: Mapping[str, str | Path] | None = None) -> Row:
        """The row of the finished trainer of eight kernels, with the learner's in its sockets."""
        weights, images, labels = self.given
        fits = {name: path for name, path in (mine or {}).items() if name in fast.sockets.SOCKETS}
        with fast.Trainer(weights, len(images), 0.05, mine=fits, **fast.EIGHT) as trainer:
            trainer.step(images, labels)
            launches = trainer.launches()
            moved = {name: weights[name] - value for name, value in trainer.weights().items()}
            off = self._judged({n: value / 0.05 for n, value in moved.items()}, OFF_IN_16_BITS)
            took = (self._clock(trainer), "") if has_gpu() else _recorded("mnist/step/64/ours/bf16")
        own = (*fits, *_cells("trainer.cu"))
        if own and not has_gpu():
            took = None, ""  # what is recorded is ours
        return self._put(Row(label, launches, finished_kilobytes(fits), own, off, *took))

    def _clock(self, trainer):
        """Microseconds of a step: many, one after the other."""
        import time

        _, images, labels = self.given
        for _ in range(20):
            trainer.step(images, labels)
        trainer.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            trainer.step(images, labels)
        trainer.synchronize()
        return (time.perf_counter() - start) / 200 * 1e6

    def tried(self, idea: str | None = None, mine=None) -> None:
        """Say whether a step is right as its kernels stand now. Nothing is raised."""
        try:
            step = self.step(idea, mine)
            step.run()
            off = self._judged(step.gradients(), OFF)
        except LearnerError as error:
            print("✗", error)
            return
        print(f"✓ right: gradients agree with autograd's to {off:.0e} of their size")

    def tried_finished(self, mine: Mapping[str, str | Path] | None = None) -> None:
        """Say whether the finished trainer is right as its kernels stand now. Nothing is raised.

        With the learner's kernels, but for the update.
        """
        weights, images, labels = self.given
        fits = {name: path for name, path in (mine or {}).items() if name in fast.sockets.SOCKETS}
        fits.pop("update", None)
        try:
            with fast.Trainer(weights, len(images), 0.05, gradients=True, mine=fits) as trainer:
                trainer.step(images, labels)
                off = self._judged(trainer.gradients(), OFF_IN_16_BITS)
        except LearnerError as error:
            print("✗", error)
            return
        print(f"✓ right: gradients agree with autograd's to {off:.0e} of their size")

    def losses(self, lr: float, steps: int, mine: Mapping[str, str | Path]) -> list[float]:
        """The loss of each step of the finished trainer, always on this one batch."""
        weights, images, labels = self.given
        with fast.Trainer(weights, len(images), lr=lr, mine=mine) as trainer:
            for _ in range(steps):
                trainer.step(images, labels)
            return trainer.losses().tolist()

    def pytorchs_losses(self, lr: float, steps: int) -> list[float]:
        """The loss of each step of PyTorch's plain SGD in fp32, always on this one batch."""
        weights, images, labels = self.given
        batch = torch.from_numpy(images), torch.from_numpy(labels).long()
        again = SimpleNamespace(epoch=lambda number, device: [batch])
        return train(model_from(weights), again, steps, lr)

    def _judged(self, gradients, most):
        """How far the worst gradient is off. Raises StepError."""
        off = {name: _distance(gradients[name], exact) for name, exact in self._exact.items()}
        worst = max(off, key=off.get)
        if off[worst] <= most:
            return off[worst]
        wrong = [name for name in off if not off[name] <= most]
        raise StepError(
            f"the gradient of {worst} is off by {off[worst]:.0%} of its size"
            + (f"; wrong are {', '.join(wrong)}" if len(wrong) > 1 else "")
        )

    def _put(self, row):
        places = [k for k, other in enumerate(self.rows) if other.label == row.label]
        if places:
            self.rows[places[0]] = row
        else:
            self.rows.append(row)
        return row


def _distance(actual, exact):
    off = np.linalg.norm(actual - exact) / np.linalg.norm(exact)
    return off if np.isfinite(off) else np.inf


def _recorded(name):
    """(microseconds, whose) of a step at batch 64 on a GPU, or (None, "")."""
    entry = results.find(name)
    return (entry["value"], f"{entry['gpu']}, {entry['date'][:10]}") if entry else (None, "")


def _cells(file):
    """Files of the course that the learner changed in a cell, among what `file` includes."""
    return tuple(changed.name for changed in yours.changed_files(KERNELS / file))
