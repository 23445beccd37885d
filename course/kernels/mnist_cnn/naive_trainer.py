"""The trainer of A CNN by hand: naive/train.cu, made of the course's parts and of the learner's."""

import itertools
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from course.kernels.mnist_cnn import files, pytorch, step_profile
from course.kernels.mnist_cnn.loader import Loader
from utils import check
from utils.files import write_whole
from utils.tools import nvcc, process, yours
from utils.tools.diagnostics import LearnerError

TRAIN = Path(__file__).parent / "naive" / "train.cu"
INCLUDE = re.compile(r'^#include "([^"]+)"$', re.MULTILINE)
KERNEL = re.compile(r"__global__ void (\w+)\(")

#: Which part of the program a solved exercise stands for.
PARTS = {
    "mnist_cnn.bias_gradient": "sum_over_batch.cuh",
    "mnist_cnn.conv_weight": "conv_backward_weight.cuh",
    "mnist_cnn.norm_backward": "norm_backward.cuh",
    "mnist_cnn.pool_backward": "pool_backward.cuh",
    "mnist_cnn.backward": "backward.cuh",
    "mnist_cnn.wait": "losses.cuh",
}
FUNCTIONS = {"backward.cuh": "Network::backward", "losses.cuh": "Losses::wait"}

STEPS = 100  # that are compared with float64
JUMP = 1e-4  # the distance beyond which a step is told

#: On the way back, what must be launched for the gradient of each tensor, in this order, where the
#: gradients before it are right.
WAY_BACK = {
    "fc2.bias": "cross_entropy, sum_over_batch",
    "fc2.weight": "linear_backward_weight",
    "fc1.bias": "linear_backward_input, relu_backward, sum_over_batch",
    "fc1.weight": "linear_backward_weight",
    "bn2.bias": "linear_backward_input, pool_backward, relu_backward, norm_backward_sums",
    "bn2.weight": "norm_backward_sums",
    "conv2.weight": "norm_backward, conv_backward_weight, sum_over_batch",
    "bn1.bias": "conv_backward_input, pool_backward, relu_backward, norm_backward_sums",
    "bn1.weight": "norm_backward_sums",
    "conv1.weight": "norm_backward, conv_backward_weight, sum_over_batch",
}


def assemble(mine: Mapping[str, Path], path: str | Path = "build/train.cu") -> None:
    """Write the program to `path`, as a file that includes its parts, and say whose they are.

    mine: the learner's files by exercise, as `exercises.solved_files` gives them; the course's
    parts stand in the other places, with what cells have changed in them.
    """
    theirs = {PARTS[id]: Path(file).resolve() for id, file in mine.items() if id in PARTS}
    source = yours.current(TRAIN)

    def part(match):
        name = match[1]
        if name in theirs:
            return f'#include "{theirs[name]}"  // yours'
        folder = TRAIN.parent if "/" in name else source.parent
        return f'#include "{(folder / name).resolve()}"'

    text = INCLUDE.sub(part, source.read_text(encoding="utf-8"))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    print(whose(theirs))


def tried(mine: Mapping[str, Path], start, images, labels) -> None:
    """Build the program as it stands now and hold one step of it to autograd. Nothing is raised:
    what is wrong is printed.
    """
    try:
        assemble(mine)
        program = nvcc.build(nvcc.Request(Path("build/train.cu"), ["-O3"]))
        check_step(program, start, images, labels)
    except (check.CheckError, LearnerError) as error:
        print(error)


def watched(mine: Mapping[str, Path], start, images, labels) -> None:
    """Run one step on one digit under the CPU runtime's slow checks, on every machine: bounds,
    races between threads and between streams. What they find is printed, and nothing raised.
    """
    try:
        assemble(mine)
        built = nvcc.Request(Path("build/train.cu"), output=Path("build/watched"), check=True)
        done = _one_step(nvcc.build(built), start, images[:1], labels[:1], "build/watch")
    except LearnerError as error:
        print(error)
        return
    if done.returncode:
        print(done.output.strip())
    else:
        print("✓ right: one step on one digit, every access watched, and no complaint")


def whose(theirs: Mapping[str, Path]) -> str:
    """A sentence: which of the trainer's kernels and functions are the learner's."""
    kernels = KERNEL.findall("".join(map(_text, TRAIN.parent.glob("*.cuh"))))
    solved = [name.removesuffix(".cuh") for name in theirs if name not in FUNCTIONS]
    functions = [FUNCTIONS[name] for name in theirs if name in FUNCTIONS]
    mine = [f"{len(solved)} of the {len(kernels)} kernels ({', '.join(solved)})"] if solved else []
    if mine or functions:
        says = f"yours: {' and '.join(mine + functions)}; the rest is the course's"
    else:
        says = f"all {len(kernels)} kernels are the course's: a solved exercise takes its place"
    changed = yours.note(TRAIN)
    return says + (f". In cells, {changed}" if changed else "")


def _text(path):
    return path.read_text(encoding="utf-8")


def check_step(
    program: str | Path,
    start: Mapping[str, np.ndarray],
    images: np.ndarray,
    labels: np.ndarray,
) -> None:
    """Hold one step of the built program to autograd in float64.

    With lr = 1 the weights move by the gradient itself. Raises CheckError with the first tensor on
    the way back whose gradient is wrong, and with what may be to blame.
    """
    step = gradients(program, start, images, labels)
    _, _, right = pytorch.loss_and_gradients(start, images, labels)
    for name, kernels in WAY_BACK.items():
        error = np.linalg.norm(step[name] - right[name]) / np.linalg.norm(right[name])
        if not error < 1e-3:  # NaN, too. (A difference of float32 weights has lost some digits)
            raise check.CheckError(
                f"{name}: its gradient is off by {error:.0%}, the first on the way back. "
                f"For it the program must launch, in this order: {kernels}. "
                "Is each there, and right?"
            )
    print(f"✓ one step on {len(labels)} digits: all ten gradients agree with autograd's")


def gradients(program, start, images, labels, folder: str = "build/step") -> dict:
    """The gradients of all weights, by name, from one step of the built program."""
    done = _one_step(program, start, images, labels, folder)
    if done.returncode:
        raise check.CheckError(f"the program stopped: {done.output.strip()}")
    try:
        moved = files.load_weights(f"{folder}/end")
    except ValueError as error:  # not all of them are numbers
        raise check.CheckError(f"after one step {error}") from None
    return {name: start[name].astype(float) - moved[name] for name in start}


def _one_step(program, start, images, labels, folder):
    """The finished process: one step with lr = 1 on these digits."""
    files.write_digits(folder, "train", images, labels)
    files.write_digits(folder, "t10k", images, labels)
    files.write_order(f"{folder}/order.bin", Loader(images, labels, len(labels)), 1)
    files.save_weights(f"{folder}/start", start)
    outputs = f"weights={folder}/start checkpoint={folder}/end result={folder}/result.json"
    inputs = f"digits={folder} order={folder}/order.bin batch={len(labels)} lr=1 steps=1"
    return process.run([Path(program).resolve(), *inputs.split(), *outputs.split()], timeout=120)


# ---- beside PyTorch


class _First:
    """A loader's first batches, over all of its epochs."""

    def __init__(self, loader, steps):
        self.loader = loader
        self.left = steps

    def epoch(self, epoch, device):
        for batch in itertools.islice(self.loader.epoch(epoch, device), self.left):
            self.left -= 1
            yield batch


def distances(start, loader, epochs: int, lr: float, device, curves: Mapping) -> dict:
    """How far each curve's first hundred losses are from PyTorch's in float64, where rounding is
    next to nothing. Prints where each jumps, and raises CheckError for one that is not a training
    of the same network.

    curves: losses by name, of training from `start` with the batches of `loader`.
    """
    import torch

    model = pytorch.model_from(start, device, torch.float64)
    exact = np.array(pytorch.train(model, _First(loader, STEPS), epochs, lr))
    far = {name: np.abs(losses[: exact.size] - exact) for name, losses in curves.items()}
    for name, distance in far.items():
        if not distance[:3].max() < 1e-4:
            raise check.CheckError(f"{name}: the third step is {distance[:3].max():.1e} off")
        jumps = np.append(np.flatnonzero(distance > JUMP) + 1, 0)[0]
        when = f"beyond {JUMP} for the first time in step {jumps}" if jumps else "never far"
        print(f"{name}: {distance[0]:.0e} in the first step, {when}")
    return far


def print_speed(result: Mapping, batch: int, ours: float, theirs: float) -> None:
    """The time of a step of ours, or on the GPU of the records; kept with both accuracies where
    runs are recorded. And what PyTorch took there.
    """
    micro = step_profile.step_of_ours(result, batch)
    if micro:
        step_profile.record("mnist/accuracy/naive", ours, "1")
        step_profile.record("mnist/accuracy/pytorch_eager", theirs, "1")
        print(f"ours, naive: {micro:,.0f} µs per step of {batch} digits")
    theirs_too = step_profile.pytorch_step()
    if theirs_too:
        time_us, whose = theirs_too
        digits = step_profile.ON_A_GPU
        print(f"PyTorch, eager: {time_us:,.0f} µs per step of {digits} digits ({whose})")
