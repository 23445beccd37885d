"""`make chapter` gives new outputs to what is new, and runs nothing where nothing is."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell

CHAPTER = "chapters/05_first_kernels.ipynb"


@pytest.mark.nightly("test_keeping tells by day which cells have run")
def test_only_what_has_not_run_gets_outputs_and_the_chapter_is_mended_again(course):
    done = course.run("course.authoring.outputs", "first_kernels")
    assert done.returncode == 0 and "every cell has run as it stands" in done.stdout
    assert course.changed() == {}
    path = course / CHAPTER
    before = nbformat.read(path, 4)
    edited = nbformat.read(path, 4)
    edited.cells.append(new_code_cell("print(6 * 7)", id="answer"))
    nbformat.write(edited, path)
    done = course.run("course.authoring.outputs", "05_first_kernels")
    assert done.returncode == 0, done.stderr
    assert "these have not run as they stand: answer" in done.stdout
    after = {cell.id: cell for cell in nbformat.read(path, 4).cells}
    assert after["answer"].outputs[0].text == "42\n"
    assert after["answer"].metadata.slideshow, "mended once more"
    kept = [each for each in before.cells if each.cell_type == "code"]
    assert all(after[each.id].outputs == each.outputs for each in kept)
