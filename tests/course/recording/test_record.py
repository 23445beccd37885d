"""Recording: only on a GPU, notebooks that fail are left as they were, results become one valid
file.
"""

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course import record
from course.publish import stills
from utils import engine, hardware, results

GPU = engine.GPU("Test GPU", (9, 0), 80 << 30, "580.1", (13, 0), "GPU-x")


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(engine, "gpu", lambda: GPU)
    monkeypatch.setattr(
        hardware, "machine", lambda: hardware.Machine(GPU, 132, 50 << 20, 4e12, "13.0")
    )
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")
    monkeypatch.setattr(record, "ROOT", tmp_path)
    monkeypatch.setattr(record, "RECORDED_ON", GPU.name)
    for name in ("CUDA_COURSE_PROGRESS", results.RECORD):
        monkeypatch.setenv(name, "")  # so that what record sets is undone afterwards


def notebook(path, *cells):
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(
        new_notebook(cells=[new_code_cell(c) for c in cells], metadata={"kernelspec": kernel}), path
    )
    return path


def entry(name, value):
    fields = {
        "name": name,
        "value": value,
        "unit": "ms",
        "spread": 0.1,
        "gpu": GPU.name,
        "driver": GPU.driver,
    }
    return f"from utils import results\nresults.append({fields!r})"


def test_without_gpu_it_refuses(monkeypatch, capsys):
    monkeypatch.setattr(engine, "gpu", lambda: None)
    assert record.main([]) == 1
    assert "needs an NVIDIA GPU" in capsys.readouterr().err


def test_what_a_notebooks_process_prints_goes_into_its_log(gpu, tmp_path, capfd):
    path = notebook(tmp_path / "01_a.ipynb", "import os\nos.write(2, b'from outside')\nprint(1)")
    assert record.main([str(path)]) == 0
    assert "from outside" not in "".join(capfd.readouterr())
    assert "from outside" in (tmp_path / "build/recording/01_a.log").read_text()


def test_outputs_and_results_are_kept(gpu, tmp_path, capsys):
    path = notebook(tmp_path / "01_a.ipynb", "print(6 * 7)", entry("a/numba/time", 1.5))
    assert record.main([str(path)]) == 0
    assert nbformat.read(path, 4).cells[0].outputs[0].text == "42\n"
    written = json.loads((tmp_path / "results" / "test-gpu.json").read_text())
    assert results.validate(written) == []
    assert [(e["name"], e["value"]) for e in written["results"]] == [("a/numba/time", 1.5)]


@pytest.mark.parametrize("shown, options", [(GPU.name, ["--results-only"]), ("Another", [])])
def test_a_second_gpu_leaves_the_outputs_alone(gpu, tmp_path, monkeypatch, shown, options):
    monkeypatch.setattr(record, "RECORDED_ON", shown)
    path = notebook(tmp_path / "01_a.ipynb", entry("a/numba/time", 1.5))
    before = path.read_bytes()
    assert record.main([*options, str(path)]) == 0
    assert path.read_bytes() == before
    assert results.find("a/numba/time", folder=tmp_path / "results")["value"] == 1.5


def test_a_failing_notebook_is_left_as_it_was(gpu, tmp_path, capsys):
    good = notebook(tmp_path / "01_a.ipynb", entry("a/numba/time", 1.5))
    bad = notebook(tmp_path / "02_b.ipynb", entry("b/numba/time", 9), "1 / 0")
    before = bad.read_text()
    assert record.main([str(good), str(bad)]) == 1
    assert bad.read_text() == before
    written = json.loads((tmp_path / "results" / "test-gpu.json").read_text())
    assert [e["name"] for e in written["results"]] == ["a/numba/time"]
    assert ": ZeroDivisionError: division by zero" in capsys.readouterr().err


def test_an_error_is_told_as_its_cell_shows_it(gpu, tmp_path, capsys):
    long = "\\n".join(map(str, range(100)))
    for raised, told in (
        ("ValueError('undefined: order\\nld ended')", "ValueError: undefined: order\n    ld ended"),
        (f"ValueError('{long}')", "    5\n    ... 88 lines ...\n    94\n"),
        ("KeyError", ": KeyError\n"),
    ):
        path = notebook(tmp_path / "01_a.ipynb", f"raise {raised}")
        assert record.main([str(path)]) == 1
        said = capsys.readouterr().err
        assert told in said and "Traceback" not in said


SHOWN = """
class Shown:
    def _repr_html_(self):
        raise ValueError("no picture")


Shown()"""


def test_an_error_while_an_output_is_shown_has_its_name(gpu, tmp_path, capsys):
    assert record.main([str(notebook(tmp_path / "01_a.ipynb", SHOWN))]) == 1
    assert ": ValueError: no picture\n" in capsys.readouterr().err


def test_results_of_other_notebooks_stay(gpu, tmp_path, monkeypatch):
    a = notebook(tmp_path / "01_a.ipynb", entry("a/numba/time", 1.5))
    b = notebook(tmp_path / "02_b.ipynb", entry("b/numba/time", 2.5))
    monkeypatch.setattr(
        results,
        "load",
        lambda: (
            json.loads((tmp_path / "results" / "test-gpu.json").read_text())["results"]
            if (tmp_path / "results" / "test-gpu.json").exists()
            else []
        ),
    )
    assert record.main([str(a)]) == 0 and record.main([str(b)]) == 0
    assert {e["name"] for e in results.load()} == {"a/numba/time", "b/numba/time"}


def test_only_on_a_gpu_has_a_cell_a_time_of_its_own(gpu, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(record.running, "CELL", 1)
    monkeypatch.setenv(engine.FORCE_CPU, "")  # so that what record sets is undone afterwards
    path = notebook(tmp_path / "01_a.ipynb", "import time\ntime.sleep(2)")
    assert record.main([str(path)]) == 1
    assert "not done after 1 s" in capsys.readouterr().err
    assert record.main(["--cpu", str(path)]) == 0


def test_no_time_left(gpu, tmp_path, capsys):
    path = notebook(tmp_path / "01_a.ipynb", "1")
    assert record.main(["--budget", "0", str(path)]) == 1
    assert "not run" in capsys.readouterr().err


MEET = """
from pathlib import Path
from time import sleep

Path({mine!r}).touch()
for _ in range(600):
    if Path({other!r}).exists():
        break
    sleep(0.1)
else:
    raise TimeoutError("nobody came")
"""


def meeting(folder, name, other):
    """A cell that waits for another notebook's."""
    return MEET.format(mine=str(folder / name), other=str(folder / other))


def test_notebooks_run_several_at_a_time(gpu, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "at_once", lambda gpu: 2)
    a = notebook(tmp_path / "01_a.ipynb", meeting(tmp_path, "a", "b"), entry("a/numba/time", 1.5))
    b = notebook(tmp_path / "02_b.ipynb", meeting(tmp_path, "b", "a"), entry("b/numba/time", 2.5))
    assert record.main([str(a), str(b)]) == 0, capsys.readouterr().err
    written = json.loads((tmp_path / "results" / "test-gpu.json").read_text())
    assert {e["name"] for e in written["results"]} == {"a/numba/time", "b/numba/time"}


def test_what_git_does_not_know_is_no_reason_to_lose_outputs(monkeypatch, capsys):
    assert record.main(["--cpu", "--since", "no-such-commit", str(record.notebooks()[0])]) == 1
    assert "git knows no commit 'no-such-commit'" in capsys.readouterr().err


def test_outputs_without_a_gpu_are_no_results(gpu, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(engine.FORCE_CPU, "")
    path = notebook(
        tmp_path / "01_a.ipynb",
        "from utils import has_gpu\nprint(has_gpu())",
        entry("a/numba/time", 1.5),
    )
    assert record.main(["--cpu", str(path)]) == 0
    assert nbformat.read(path, 4).cells[0].outputs[0].text == "False\n"
    assert not (tmp_path / "results").exists()


def test_all_notebooks_are_found():
    names = [p.name for p in record.notebooks()]
    assert (
        names[0] == "index.ipynb"
        and "05_first_kernels.ipynb" in names
        and names[1:] == sorted(names[1:])
    )


def test_outputs_tell_of_the_chapter_only(gpu, tmp_path):
    path = notebook(
        tmp_path / "01_a.ipynb",
        "import warnings\nwarnings.warn_explicit('slow', UserWarning, '/opt/me/x.py', 3)",
        "import sys\nprint('kept', file=sys.stderr)",
        "display({'text/plain': 'timing:   0%|          | 0/10'}, raw=True)\nprint('100 %')",
    )
    assert record.main([str(path)]) == 0
    outputs = [cell.outputs for cell in nbformat.read(path, 4).cells]
    assert outputs[0] == []
    assert [o.text for o in outputs[1] + outputs[2]] == ["kept\n", "100 %\n"]


INTERACT = """
from ipywidgets import IntSlider, interact
from IPython.display import HTML


@interact(n=IntSlider(3, 0, 9))
def draw(n):
    return HTML(f"<img alt='{n} threads' src='data:,'>")
"""


def test_a_slider_is_kept_with_what_it_shows_at_first(gpu, tmp_path):
    path = notebook(tmp_path / "01_a.ipynb", INTERACT)
    assert record.main([str(path)]) == 0
    kept = nbformat.read(path, 4)
    shown = [output.data for output in kept.cells[0].outputs if "data" in output]
    (data,) = [data for data in shown if stills.VIEW in data]
    assert "3 threads" in data["text/html"]
    assert "interactive(" not in data["text/plain"]
