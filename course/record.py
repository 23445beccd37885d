"""Record a GPU: run every notebook on it, keep the outputs, and write the measured numbers.

    python -m course.record [--budget SECONDS] [--cpu | --results-only] [NOTEBOOK.ipynb ...]

That is `make record`. The notebooks keep the outputs of one GPU (RECORDED_ON in
`utils.results.likeness`); on another one, and with --results-only, they stay as they are, and
results alone are written.

Needs an NVIDIA GPU, unless --cpu asks for the outputs of the CPU engines (after editing a chapter
on a machine without a GPU): then nothing is measured and no results are written. A notebook that
fails is left as it was, its measurements are not recorded, and the command says so and ends with
status 1; the others are kept.
"""

import argparse
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from course.chapters import notebooks
from course.publish import stills
from utils import engine, hardware, results
from utils.files import ROOT, write_whole
from utils.plots.svg import inline_only
from utils.results.likeness import RECORDED_ON
from utils.tools.diagnostics import unstyled

CELL = 100  # seconds for a single cell; the slowest compile a GPU architecture's worth of kernels


class Failed(RuntimeError):
    """A notebook that did not run to its end; the text names the cell."""


def client_for(notebook, folder: Path, **options):
    """The nbclient.NotebookClient that executes a notebook in a folder, widgets and all.

    options: NotebookClient's own.
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

    resources = {"metadata": {"path": str(folder)}}
    options = {"kernel_name": "python3", **options}
    client = NotebookClient(notebook, resources=resources, **options)
    client.widget_registry["@jupyter-widgets/output"]["OutputModel"] = Output
    return client


def execute(path: Path, timeout: int, *, save: bool = True) -> None:
    """Run one notebook in its own folder; save it only if every cell did what it should.

    timeout: seconds for a single cell. save: else the file stays as it is. Raises Failed, which
    names the cell.
    """
    import nbformat
    from nbclient.exceptions import CellTimeoutError

    notebook = nbformat.read(path, as_version=4)
    cell = "the kernel's start"

    def entered(cell_index, **_):
        nonlocal cell
        cell = f"cell {notebook.cells[cell_index].id}"

    try:
        client = client_for(
            notebook,
            path.parent,
            timeout=timeout,
            record_timing=False,
            on_cell_start=entered,
        )
        client.execute()
    except CellTimeoutError as error:
        raise Failed(f"{cell}: not done after {timeout} s") from error
    except Exception as error:  # of a cell, or of the notebook's kernel
        lines = unstyled(str(error)).strip().splitlines()
        raise Failed(f"{cell}: {lines[-1] if lines else type(error).__name__}") from error
    if not save:
        return
    tidy(notebook)
    write_whole(path, nbformat.writes(notebook) + "\n")


PYTHON_WARNING = re.compile(r"^\S+\.py:\d+: \w*Warning: .*\n(?:  .*\n?)?", re.MULTILINE)
LOOKS = "LayoutModel", "StyleModel"  # how the names of such widget models end
PROGRESS_BAR = re.compile(r"\d+%\|")


def tidy(notebook) -> None:
    """Leave out, in place, what tells of this run instead of the chapter.

    That is Python's version, its warnings, which name folders of this machine, and progress bars,
    whose kept output stands at 0 %.
    """
    notebook.metadata["language_info"] = {"name": "python"}
    if "widgets" in notebook.metadata:
        notebook.metadata.widgets = as_jupyterlab_writes(notebook.metadata.widgets)
        leave_out_unset_looks(notebook)
    give_widgets_pictures(notebook)
    leave_out_second_pictures(notebook)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            if output.get("name") == "stderr":
                output.text = PYTHON_WARNING.sub("", output.text)
        cell.outputs = [
            output
            for output in cell.outputs
            if output.get("text") != ""
            and not PROGRESS_BAR.search(output.get("data", {}).get("text/plain", ""))
        ]


def as_jupyterlab_writes(value):
    """The same JSON with 10 for 10.0, as JavaScript has it: else the learner's first save would
    change a file that they did not.
    """
    if isinstance(value, dict):
        return type(value)({key: as_jupyterlab_writes(each) for key, each in value.items()})
    if isinstance(value, list):
        return [as_jupyterlab_writes(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def give_widgets_pictures(notebook) -> None:
    """Put beside each `interact` what it shows at first, in place.

    Where widgets do not run (a page that is no notebook, a notebook that Jupyter does not trust)
    this stands there, in place of the widget's name in Python.
    """
    models = notebook.metadata.get("widgets", {}).get(stills.STATE, {}).get("state", {})
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            name = data.get("text/plain", "")
            if stills.VIEW not in data or not name.startswith("interactive("):
                continue
            data["text/html"] = stills.still(data[stills.VIEW]["model_id"], models)
            data["text/plain"] = stills.words_of(data[stills.VIEW]["model_id"], models)


def widget_models(notebook) -> list[dict]:
    """The saved models of the notebook's widgets."""
    saved = notebook.metadata.get("widgets", {}).get(stills.STATE, {})
    return list(saved.get("state", {}).values())


def leave_out_unset_looks(notebook) -> None:
    """Of layouts and styles keep what is set, in place; JupyterLab fills in the rest as it is.

    Without it the hundred layouts of a chapter's quizzes say 40 times each that nothing is set.
    """
    for model in widget_models(notebook):
        if model["model_name"].endswith(LOOKS):
            said = {name: value for name, value in model["state"].items() if value is not None}
            model["state"] = said


def leave_out_second_pictures(notebook) -> None:
    """Keep pictures within widgets once, in place: the image that stands in for the SVG where a
    page lets none through has no use there, since such a page runs no widgets.
    """
    for model in widget_models(notebook):
        for output in model["state"].get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                data["text/html"] = inline_only(data["text/html"])


def record(
    paths: list[Path], budget: float, *, measure: bool = True, save: bool = True
) -> list[str]:
    """Run the notebooks, with `measure` write the results file; what went wrong, a line each.

    save: keep the notebooks' outputs.
    """
    failures, written, started = [], None, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        # A recording must not show or change the progress of whoever runs it.
        os.environ["CUDA_COURSE_PROGRESS"] = str(Path(folder) / "progress.json")
        for path in paths:
            left = budget - (time.monotonic() - started)
            if left <= 0:
                failures.append(f"{path.name}: not run, the {budget:g} s were used up")
                continue
            lines = Path(folder) / f"{path.stem}.jsonl"
            lines.touch()
            os.environ[results.RECORD] = str(lines) if measure else ""
            print(f"{path.relative_to(ROOT)} ...", end=" ", flush=True)
            begun = time.monotonic()
            try:
                execute(path, timeout=max(1, min(CELL, int(left))), save=save)
            except Exception as error:
                failures.append(f"{path.name}: {error}")
                print("FAILED")
                continue
            entries = results.read_lines(lines)
            # written at once: a later notebook, or whoever stops the command, must not cost what
            # was measured
            if entries:
                written = results.add(entries, hardware.this_gpu())
            print(f"{time.monotonic() - begun:.0f} s, {len(entries)} results")
        del os.environ[results.RECORD]
    if written:
        print("wrote", written.relative_to(ROOT))
    return failures


def of_the_notebooks() -> bool:
    """Whether this GPU is the one whose outputs the notebooks keep; says so where it is not."""
    here = engine.gpu().name
    if here != RECORDED_ON:
        print(f"the notebooks keep the outputs of the {RECORDED_ON}: of the {here}, results alone")
    return here == RECORDED_ON


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course.record", description=__doc__.splitlines()[0]
    )
    parser.add_argument("notebooks", nargs="*", type=Path, help="only these (default: all)")
    parser.add_argument(
        "--cpu", action="store_true", help="keep the outputs of the CPU engines, measure nothing"
    )
    parser.add_argument(
        "--results-only", action="store_true", help="measure, and leave the notebooks as they are"
    )
    parser.add_argument(
        "--budget", type=float, default=570, help="seconds for everything (default 570)"
    )
    options = parser.parse_args(arguments)
    if options.cpu:
        os.environ[engine.FORCE_CPU] = "1"  # for the notebooks' kernels
    elif engine.gpu() is None:
        print(
            "recording needs an NVIDIA GPU, and there is none here"
            + (f" ({engine.FORCE_CPU} is set)" if engine.forced_cpu() else ""),
            file=sys.stderr,
        )
        return 1
    missing = [str(p) for p in options.notebooks if not p.exists()]
    if missing:
        print(f"no such notebook: {', '.join(missing)}", file=sys.stderr)
        return 1
    print("outputs of the CPU engines" if options.cpu else hardware.machine())
    paths = [p.resolve() for p in options.notebooks] or notebooks()
    save = options.cpu or (not options.results_only and of_the_notebooks())
    failures = record(paths, options.budget, measure=not options.cpu, save=save)
    for failure in failures:
        print("FAILED", failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
