"""Train the small model on the course's own words, with the course's own kernels.

    python -m course.kernels.language_model.train [--steps 600] [--decay 0.1]

First holds the loss and every gradient to PyTorch's in float64. Then trains once for each number
of steps and decay of weights, as far as --minutes go, and keeps the weights with the least loss on
held-out paragraphs: they and their losses go to assets/data (`carried`) or to --out. Half a minute
each on a GPU. Begins anew each time.
"""

import argparse
import datetime
import itertools
import math
import time
from pathlib import Path

import torch
from torch.nn import functional

from course.kernels.language_model import carried, reference, text, tokens
from course.kernels.language_model.network import Network
from course.kernels.language_model.problem import SMALL, TOY, Config, weights
from course.kernels.language_model.speak import speak
from utils.engine import has_gpu

BATCH, LENGTH = 32, 256
EVERY = 50  # steps from one look at the held-out text to the next
HELD_OUT = 20  # of so many paragraphs one is held out
MOST = 1e-4  # by which a gradient may miss float64's, as a share of its largest number


class Lessons:
    """A text as rows of tokens to learn from.

    numbers: all tokens, in a row. Draws places with a seed of its own.
    """

    def __init__(self, numbers, batch: int, length: int, device="cpu", seed: int = 0):
        self.numbers = torch.as_tensor(numbers, dtype=torch.int32, device=device)
        self.batch, self.length = batch, length
        self.generator = torch.Generator().manual_seed(seed)
        self.ahead = torch.arange(length + 1, device=device)

    def draw(self) -> tuple:
        """(tokens, the tokens that follow them), each [batch, length]."""
        last = len(self.numbers) - self.length
        begins = torch.randint(0, last, (self.batch, 1), generator=self.generator)
        rows = self.numbers[begins.to(self.ahead.device) + self.ahead]
        return rows[:, :-1], rows[:, 1:]

    def all(self):
        """The text from its beginning, a batch after the other; what is left over is left out."""
        size = self.batch * self.length
        for first in range(0, len(self.numbers) - size, size):
            part = self.numbers[first : first + size + 1]
            yield part[:-1].reshape(self.batch, -1), part[1:].reshape(self.batch, -1)


def rate(step: int, steps: int, top: float = 3e-3) -> float:
    """Of learning: rises for a tenth of the steps, then falls along a cosine to a fiftieth."""
    rising = steps / 10
    if step < rising:
        return top * (step + 1) / rising
    falling = (step - rising) / (steps - rising)
    return top * (0.02 + 0.98 * (1 + math.cos(math.pi * falling)) / 2)


def learn(network: Network, lessons: Lessons, steps: int, top: float = 3e-3, decay: float = 0.1):
    """Train, and yield (step, loss in nats) after each step."""
    for step in range(steps):
        given, following = lessons.draw()
        network.forward(given)
        loss = network.loss(following).mean()
        network.backward()
        network.step(rate(step, steps, top), decay)
        yield step, loss


def held_out_loss(network: Network, lessons: Lessons) -> float:
    """The mean loss over all of a text, in nats per token."""
    losses = []
    for given, following in lessons.all():
        network.forward(given)
        losses.append(network.loss(following).mean().item())
    return sum(losses) / len(losses)


def gradient_errors(config: Config, own: dict, given, following) -> dict[str, float]:
    """By how much the loss and each gradient miss float64's, as a share of the largest number."""
    exact = {name: weight.double().requires_grad_() for name, weight in own.items()}
    logits = reference.forward(config, exact, given.long())
    right = functional.cross_entropy(logits.flatten(0, 1), following.flatten().long())
    right.backward()
    network = Network(config, own, *given.shape)
    network.forward(given)
    loss = network.loss(following).mean().item()
    network.backward()
    errors = {"loss": abs(loss - right.item()) / right.item()}
    for name, weight in exact.items():
        off = (network.gradients[name] - weight.grad).abs().max() / weight.grad.abs().max()
        errors[name] = off.item()
    return errors


def prove(device) -> None:
    """RuntimeError unless the loss and all gradients are float64's, in two shapes."""
    for config in (TOY, SMALL):
        generator = torch.Generator().manual_seed(1)
        size = 2, 70
        rows = torch.randint(0, config.vocabulary, size, generator=generator, dtype=torch.int32)
        rows = rows.to(device)
        own = weights(config, 1, device=device)
        errors = gradient_errors(config, own, rows[:, :-1], rows[:, 1:])
        worst = max(errors, key=errors.get)
        print(f"gradients of {config.parameters:,} numbers: off by {errors[worst]:.1e} at most")
        if not errors[worst] < MOST:
            raise RuntimeError(f"the gradient of {worst} is off by {errors[worst]:.1e}")


def shared_out(words: str) -> tuple[str, str]:
    """(the paragraphs to learn from, those held out)."""
    lines = words.splitlines(keepends=True)
    held = "".join(lines[HELD_OUT - 1 :: HELD_OUT])
    return "".join(line for i, line in enumerate(lines, 1) if i % HELD_OUT), held


def begun(config: Config, device, seed: int = 0) -> dict:
    """Weights to begin with: small, so that all tokens are about equally likely at first."""
    own = weights(config, seed, device=device)
    for name, weight in own.items():
        if name.startswith("norm"):
            weight.fill_(1)
    own["embedding"] *= 0.5
    for name in ("out", "down"):  # what is added to a token's row, by all layers together
        own[name] *= (2 * config.layers) ** -0.5
    return own


def copied(own: dict) -> dict:
    """Weights as they are now."""
    return {name: weight.clone() for name, weight in own.items()}


def trained(steps: int, decay: float, learned, held, device, ends: float) -> tuple:
    """(least held-out loss, its weights, what happened) of one training; ends: at this time."""
    own = begun(SMALL, device)
    network = Network(SMALL, own, BATCH, LENGTH)
    lessons = Lessons(learned, BATCH, LENGTH, device)
    examined = Lessons(held, BATCH, LENGTH, device)
    told = {"steps": steps, "decay": decay, "losses": [], "held_out": []}
    least, best = math.inf, None
    began = time.perf_counter()
    for step, loss in learn(network, lessons, steps, decay=decay):
        if step % 10 == 0:
            told["losses"].append([step, round(loss.item(), 4)])
        if step % EVERY == EVERY - 1 or step == steps - 1:
            found = held_out_loss(network, examined)
            told["held_out"].append([step, round(found, 4)])
            print(f"step {step + 1:5}: loss {loss.item():.3f}, held out {found:.3f}", flush=True)
            if found < least:
                least = found
                best = copied(own)
            if time.perf_counter() > ends:
                break
    told["seconds"] = round(time.perf_counter() - began, 1)
    return least, best, told


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=8, help="of all trainings together")
    parser.add_argument("--steps", type=int, nargs="+", default=[600])
    parser.add_argument("--decay", type=float, nargs="+", default=[0.1])
    parser.add_argument("--out", type=Path, default=carried.PATH, help="an .npz file")
    given = parser.parse_args()
    ends = time.perf_counter() + 60 * given.minutes
    device = "cuda" if has_gpu() else "cpu"
    prove(device)

    words = text.everything()
    merges = tokens.learn(words, SMALL.vocabulary)
    known = tokens.Tokens(merges)
    learned, held = map(known.encode, shared_out(words))
    print(f"{len(words.split()):,} words: {len(learned):,} tokens, {len(held):,} held out")

    runs = []
    for steps, decay in itertools.product(given.steps, given.decay):
        if not runs or time.perf_counter() < ends:
            print(f"{steps} steps of {BATCH} rows of {LENGTH} tokens, decay {decay}", flush=True)
            runs.append(trained(steps, decay, learned, held, device, ends))
    least, best, told = min(runs, key=lambda run: run[0])
    told |= {
        "held_out_loss": round(least, 4),
        "tokens": len(learned),
        "words": len(words.split()),
        "batch": BATCH,
        "length": LENGTH,
        "machine": torch.cuda.get_device_name() if has_gpu() else "CPU",
        "day": datetime.date.today().isoformat(),
    }
    carried.keep(SMALL, best, merges, told, given.out)
    print(f"{given.out}: held-out loss {least:.3f}, of {told['steps']} steps")
    for begins in ("A warp is", "The cache", "To make a kernel fast,"):
        print("·", speak((SMALL, best, known), begins, 60))


if __name__ == "__main__":
    main()
