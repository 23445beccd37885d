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
    unsaid = views_unsaid(kernel, arguments)
    if unsaid:
        print(unsaid)
        return
    copies = [_copy(argument) for argument in arguments]
    if has_gpu():
        print(_in_child(kernel, grid, copies))
    else:
        print(said_of(kernel, grid, copies))


def views_unsaid(kernel, arguments) -> str:
    """What to say of a tensor whose elements do not lie in order, or "" where there is none.

    A kernel gets a pointer. Unless the view's strides stand among the other arguments, one behind
    the other, it reads the memory as if row stood behind row. (Where neighbours in a row lie
    together, the last stride may be left out.)
    """
    names = list(inspect.signature(kernel.fn).parameters)
    for name, argument in zip(names, arguments, strict=False):
        if not isinstance(argument, torch.Tensor) or argument.is_contiguous():
            continue
        strides = argument.stride()
        needed = strides[:-1] if strides[-1] == 1 else strides
        if not _holds(arguments, needed):
            return (
                f"✗ view: {name} is a view with strides {tuple(strides)}, and the kernel is not "
                "told: it gets a pointer only. Pass the strides, or .contiguous()"
            )
    return ""


def _holds(arguments, numbers) -> bool:
    """Whether these numbers stand somewhere among the arguments, one behind the other."""
    places = range(len(arguments) - len(numbers) + 1)
    parts = (arguments[place : place + len(numbers)] for place in places)
    return any(
        all(isinstance(a, int) and a == n for a, n in zip(part, numbers, strict=True))
        for part in parts
    )


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
