"""Launch a kernel where every mistake is named: on the engine that needs no GPU, always.

python -m course.kernels.tiles.watch FOLDER     (what `watch` runs on a machine with a GPU)
"""

import inspect
import json
import sys
import tempfile
import textwrap
from pathlib import Path

import torch

from course.checking.triton_kernels import kernel_of
from utils import has_gpu
from utils.cpu.triton import KernelMistake
from utils.engine import FORCE_CPU
from utils.tools import process

SECONDS = 120


def watch(kernel, grid: tuple, *arguments) -> None:
    """Launch, and print what a GPU would keep to itself, or that there is nothing to say.

    arguments: tensors, which stay as they are, and numbers.
    """
    copies = [_copy(argument) for argument in arguments]
    if has_gpu():
        print(_in_child(kernel, grid, copies))
    else:
        print(said_of(kernel, grid, copies))


def _copy(argument):
    if isinstance(argument, torch.Tensor):
        return argument.cpu().clone()
    return argument


def said_of(kernel, grid: tuple, arguments: list) -> str:
    """What the engine says of a launch in this process."""
    try:
        kernel[grid](*arguments)
    except KernelMistake as found:
        return f"✗ {found.kind}: {found}"
    return "✓ the engine has nothing to say"


def _in_child(kernel, grid: tuple, arguments: list) -> str:
    with tempfile.TemporaryDirectory() as folder:
        source = textwrap.dedent(inspect.getsource(kernel.fn))
        launch = {"source": source, "grid": grid}
        (Path(folder) / "launch.json").write_text(json.dumps(launch))
        torch.save(arguments, Path(folder) / "arguments.pt")
        command = [sys.executable, "-m", "course.kernels.tiles.watch", folder]
        environment = process.python_environment(**{FORCE_CPU: "1"})
        done = process.run(command, timeout=SECONDS, env=environment)
        return done.output.strip()


def main(folder: Path) -> None:
    """Do the launch that a folder describes."""
    launch = json.loads((folder / "launch.json").read_text())
    arguments = torch.load(folder / "arguments.pt")
    kernel = kernel_of(launch["source"])
    print(said_of(kernel, tuple(launch["grid"]), arguments))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
