"""Running a notebook in a kernel of its own, cell by cell, each in its turn."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from course.recording.turns import Turns
from utils.tools.diagnostics import unstyled

CELL = 100  # seconds for a single cell; the slowest compile a GPU architecture's worth of kernels
KEPT = 6  # lines of an error's beginning, and as many of its end


class Failed(RuntimeError):
    """A notebook that did not run to its end; the text names the cell."""


def client_for(notebook, folder: Path, turn: Callable | None = None, **options):
    """The nbclient.NotebookClient that executes a notebook in a folder, widgets and all.

    turn: takes a cell, gives what is held while it runs (an async context). options:
    NotebookClient's own.
    """
    from nbclient import NotebookClient
    from nbclient.output_widget import OutputWidget

    class Output(OutputWidget):
        """Keeps a widget's output without sending it back to the kernel, which has no use for it.

        What is sent while the client waits on the same socket can hide the cell's end from it until
        the cell's time is up.
        """

        def sync_state(self):
            pass

    class Client(NotebookClient):
        """Waits for each cell's turn; the cell's time begins when it runs.

        Ctrl-C ends the whole command: nbclient would end the newest of several kernels.
        """

        @contextlib.asynccontextmanager
        async def async_setup_kernel(self, **named):
            async with super().async_setup_kernel(**named):
                for each in (signal.SIGINT, signal.SIGTERM):
                    asyncio.get_running_loop().remove_signal_handler(each)
                yield

        async def async_execute_cell(self, cell, *arguments, **named):
            async with turn(cell) if turn else contextlib.nullcontext():
                return await super().async_execute_cell(cell, *arguments, **named)

    resources = {"metadata": {"path": str(folder)}}
    options = {"kernel_name": "python3", **options}
    client = Client(notebook, resources=resources, **options)
    client.widget_registry["@jupyter-widgets/output"]["OutputModel"] = Output
    return client


def turns_of(turns: Turns, timed: set[str]) -> Callable:
    """A cell -> its turn: alone where it times something, else together with others."""

    def turn(cell):
        if cell.cell_type != "code":
            return contextlib.nullcontext()
        return turns.alone() if cell.id in timed else turns.together()

    return turn


async def execute(
    notebook, path: Path, turn: Callable, timeout: int, env: dict[str, str], log: TextIO
) -> None:
    """Run a notebook, in place, in the folder of its path.

    turn: as for `client_for`. timeout: seconds for a single cell. env: the kernel's environment.
    log: a file for what its process prints outside of the cells. Raises Failed, which names the
    cell.
    """
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    cell = "the kernel's start"

    def entered(cell_index, **_):
        nonlocal cell
        cell = f"cell {notebook.cells[cell_index].id}"

    client = client_for(
        notebook,
        path.parent,
        turn,
        timeout=timeout,
        record_timing=False,
        on_cell_start=entered,
    )
    try:
        await client.async_execute(env=env, stdout=log, stderr=log)
    except CellTimeoutError as error:
        raise Failed(f"{cell}: not done after {timeout} s") from error
    except CellExecutionError as error:
        kind, message = error.ename, error.evalue
        if kind == "NoneType":  # it came while an output was shown: only its traceback has its name
            *_, last = unstyled(error.traceback).strip().splitlines()
            kind, _, message = last.partition(": ")
        raise Failed(f"{cell}: {said(kind, message)}") from error
    except Exception as error:  # of the notebook's kernel
        raise Failed(f"{cell}: {said(type(error).__name__, str(error))}") from error


def said(kind: str, message: str) -> str:
    """An error as its cell shows it, without the way that led there; a long one loses its middle.

    Whoever is not there when a notebook runs has nothing but this: a linker says why above its last
    line.
    """
    lines = unstyled(message).strip().splitlines()
    if len(lines) > 2 * KEPT + 1:
        left_out = f"... {len(lines) - 2 * KEPT} lines ..."
        lines = [*lines[:KEPT], left_out, *lines[-KEPT:]]
    return "\n    ".join([f"{kind}: {lines[0]}" if lines else kind, *lines[1:]])
