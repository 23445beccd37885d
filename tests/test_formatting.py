"""What is not formatted is found: Python in files and notebooks by ruff, cells of C."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests import formatting


def notebook(path, source):
    nbformat.write(new_notebook(cells=[new_code_cell(source)]), path)
    return path


def test_python_in_files_and_notebooks(tmp_path):
    (tmp_path / "right.py").write_text("x = 1\n")
    notebook(tmp_path / "right.ipynb", "x = 1")
    assert formatting.python_problems(tmp_path) == []
    (tmp_path / "wrong.py").write_text("x=1\n")
    notebook(tmp_path / "wrong.ipynb", "x=1")
    found = formatting.python_problems(tmp_path)
    assert len(found) == 2 and all(line.startswith("Would reformat: ") for line in found)
    for place in ("wrong.py:1", "wrong.ipynb:cell 1"):
        assert any(place in line for line in found), found


def test_python_that_ruff_cannot_read_is_no_silence(tmp_path):
    (tmp_path / "broken.py").write_text("def f(:\n")
    with pytest.raises(RuntimeError, match="broken.py"):
        formatting.python_problems(tmp_path)


def test_c_in_a_cell(tmp_path):
    wrong = notebook(
        tmp_path / "wrong.ipynb", "%%writefile a.cu\nint  f( ) {return 1;}"
    ).read_text()
    none = notebook(tmp_path / "none.ipynb", "x = 1").read_text()
    right, same = formatting.formatted_notebooks([wrong, none])
    assert "int f() {" in right and same == none
    assert formatting.formatted_notebooks([right]) == [right]
    assert formatting.formatted_notebooks([none]) == [none]
