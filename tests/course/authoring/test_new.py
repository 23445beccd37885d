"""Skeletons: all that a machine can write is there, it runs, and what is left says so."""

import json
import re
import shlex

import nbformat
import pytest

from course.authoring.exercise import RIGHT
from tests.course.authoring.conftest import ANSWERS, LAST
from utils.files import ROOT

CHAPTER = "chapters/05_first_kernels.ipynb"
CHECK = """
import importlib, json
from course import exercises
from course.exercises import first_kernels as module
name = {name!r}
entry = exercises.EXERCISES["first_kernels." + name]
answer = entry.solution
if entry.in_file:
    from pathlib import Path
    answer = Path("answer.cu")
    answer.write_text(entry.solution)
reasons = []
for wrong in entry.wrong:
    given = wrong.answer
    if entry.in_file:
        given = Path("wrong.cu")
        given.write_text(wrong.answer)
    reasons.append([exercises.check(entry.id, given).reason, wrong.reason])
print(json.dumps([exercises.check(entry.id, answer).status, reasons]))
"""


def cells(course, name=CHAPTER):
    return {cell.id: cell for cell in nbformat.read(course / name, 4).cells}


BY_EXAMPLE = pytest.mark.nightly("by day the examples in CONTRIBUTING are run")
ANOTHER_KIND = pytest.mark.nightly("by day an exercise of the kind that takes the least")


@pytest.mark.parametrize(
    "kind",
    ["function", *(pytest.param(kind, marks=ANOTHER_KIND) for kind in ("numba", "cuda_c"))],
)
def test_an_exercise_has_all_that_it_needs_and_can_be_solved(course, kind):
    done = course.run("course.new", "exercise", "first_kernels.clamp", "--kind", kind)
    assert done.returncode == 0, done.stderr
    module = "course/exercises/first_kernels.py"
    assert course.changed() == {CHAPTER: "M", module: "M", ANSWERS: "M"}
    assert "first_kernels takes " in done.stdout and "of 120 minutes" in done.stdout
    right = (course / ANSWERS).read_text()
    assert [right.count(f"### first_kernels.clamp {name}\n") for name in RIGHT] == [1, 1, 1]
    module = (course / "course/exercises/first_kernels.py").read_text()
    assert "GRID_STRIDE, CLAMP)" in module and module.count("TODO") >= 6
    new = cells(course)
    for name in ("ex-clamp", "start-clamp", "check-clamp", "hint-clamp"):
        assert new[name].metadata.slideshow.slide_type
    assert new["start-clamp"].metadata.tags == ["exercise"]
    script = course / "look.py"
    script.write_text(CHECK.format(name="clamp"))
    done = course.run("look")
    assert done.returncode == 0, done.stderr
    status, reasons = json.loads(done.stdout.splitlines()[-1])
    assert status == "solved"
    assert [found for found, wanted in reasons] == [wanted for found, wanted in reasons]


@BY_EXAMPLE
def test_cells_go_before_the_recap_or_where_one_says(course):
    course.run("course.new", "exercise", "first_kernels.clamp")
    done = course.run("course.new", "exercise", "first_kernels.wrap", "--after", "no-guard")
    assert "hint-wrap, behind guard-why\n" in done.stdout, "where the section of no-guard ends"
    course.run("course.new", "question", "first_kernels.q_clamp")
    order = list(cells(course))
    assert order[order.index("guard-why") + 1 :][:2] == ["ex-wrap", "start-wrap"]
    # 13 is folded: who adds an exercise to the end of it would hide it
    assert order[order.index("hint-clamp") + 1] == "stages"
    assert order[order.index("q3") + 1] == "q-clamp"
    kept = set(order) - {each for each in order if "clamp" in each or "wrap" in each}
    before = nbformat.read(ROOT / CHAPTER, 4).cells
    assert {id: cells(course)[id] for id in kept} == {cell.id: cell for cell in before}


def test_the_examples_in_contributing_do_what_they_say(with_ladder):
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    examples = re.findall(r"^\.venv/bin/python -m (course\.new .+)$", text, re.MULTILINE)
    kinds = {example.split()[1] for example in examples}
    assert kinds == {"chapter", "exercise", "question", "picture", "rung", "cell"}
    for example in examples:
        done = with_ladder.run(*shlex.split(example))
        assert done.returncode == 0, (example, done.stderr)


REFUSED = {
    "exercise first_kernels.rotate": "there is an exercise first_kernels.rotate already",
    "exercise first_kernels.x --after no-gard": "no cell 'no-gard'. Did you mean no-guard",
    "exercise clamp": "CHAPTER.NAME is asked for",
    "exercise first.x": "no chapter is called 'first'; there are meet_the_gpu",
    "exercise first_kernel.x": "Did you mean 'first_kernels'?",
    "question first_kernels.q_guard": "there is a question",
    "picture first_kernels.x": "where? Say --after CELL. The chapter's headings",
    "cell first_kernels --kernel matmul/wma.cu --after no-guard": "Did you mean matmul/wmma.cu",
    "cell first_kernels --kernel matmul/wmma.cu mul --after no-guard": "mul",
    "cell first_kernels --kernel matmul/wmma.cu --after no-guard": "lines, 30 at most",
    "chapter First": "of small letters",
    f"chapter {LAST.key}": f"there is a chapter {LAST.key} already",
    "chapter demo --after sums": "no chapter is called 'sums'",
}


def test_what_cannot_be_is_told_and_nothing_is_written(course):
    for arguments, says in REFUSED.items():
        done = course.run("course.new", *arguments.split())
        assert done.returncode == 1 and says in done.stderr, arguments
    assert course.changed() == {}


@BY_EXAMPLE
def test_a_picture_has_its_cell_and_a_test_that_fails(course):
    after = ("--after", "no-guard")
    done = course.run("course.new", "picture", "first_kernels.between", *after)
    assert done.returncode == 0, done.stderr
    assert cells(course)["between-picture"].source == "diagrams.between()"
    own = ("--module", "first_kernels")
    course.run("course.new", "picture", "first_kernels.beside", *own, *after)
    source = cells(course)["beside-picture"].source
    assert source == "from course.pictures import first_kernels\n\nfirst_kernels.beside()"
    test = "tests/course/pictures/test_first_kernels_pictures.py"
    assert course.changed() == {
        CHAPTER: "M",
        "course/pictures/diagrams.py": "M",
        "tests/course/pictures/test_diagrams.py": "M",
        "course/pictures/first_kernels.py": "??",
        test: "??",
    }
    assert "def test_beside_shows" in (course / test).read_text()
    script = course / "look.py"
    script.write_text(
        "from course.pictures import diagrams, first_kernels\n"
        "print(first_kernels.beside()._repr_html_()[:7], 'TODO' in diagrams.between().alt)"
    )
    assert course.run("look").stdout == "<style> True\n"


@BY_EXAMPLE
def test_a_picture_that_is_there_gets_its_cell_alone(course):
    done = course.run("course.new", "picture", "first_kernels.gpu", "--after", "guard")
    assert done.returncode == 0 and "diagrams.py: has gpu already" in done.stdout, done.stderr
    assert course.changed() == {CHAPTER: "M"}
    order = list(cells(course))
    assert order[order.index("no-guard") + 1] == "gpu-picture", "what guard asks is answered first"


@BY_EXAMPLE
def test_a_kernel_of_a_file_gets_a_cell_to_change(course):
    command = ("course.new", "cell", "first_kernels", "--after", "no-guard", "--kernel")
    done = course.run(*command, "matmul/wmma.cu", "multiply")
    assert done.returncode == 0, done.stderr
    assert course.run(*command, "reductions/scan_uses.py", "gather_marked").returncode == 0
    assert course.changed() == {CHAPTER: "M"}
    made = cells(course)
    assert made["multiply-kernel"].source.startswith("%%cuda matmul/wmma.cu multiply\n")
    python = made["gather-marked-kernel"]
    assert python.source.startswith("@cuda.jit\ndef gather_marked(")
    assert python.metadata.source == "reductions/scan_uses.py:gather_marked"
    assert course.run("course.publish.cells", "--check").returncode == 0


@BY_EXAMPLE
def test_a_chapter_gets_the_next_number_and_those_behind_move_up(course):
    done = course.run(
        "course.new", "chapter", "demo", "--title", "A demo", "--after", "first_kernels"
    )
    assert done.returncode == 0, done.stderr
    changed = course.changed()
    assert changed["chapters/06_demo.ipynb"] == "??"
    assert changed["course/exercises/demo.py"] == "??"
    moved = f"{LAST.number + 1}_{LAST.key}"
    assert f"chapters/{LAST.name}.ipynb -> chapters/{moved}.ipynb" in changed
    names = (course / "course/chapters.py").read_text()
    assert names.index('"05_first_kernels"') < names.index('"06_demo"') < names.index('"07_memory"')
    glossary = (course / "course/glossary.md").read_text()
    assert f"{moved}.ipynb" in glossary and LAST.name not in glossary
    reading = (course / "course/reading.md").read_text()
    places = [reading.index(f"## {title}\n") for title in ("First kernels", "A demo", "Memory")]
    assert places == sorted(places)


ANNOUNCED = """\
    Chapter(
        BEYOND,
        "{number}_{key}",
        "A {key}",
        30,
        "What it brings, in one line.",
    ),
"""


@BY_EXAMPLE
def test_a_chapter_that_is_announced_keeps_its_place_and_mending_does_the_rest(course):
    announced = "demo"
    chapters = course / "course/chapters.py"
    text = chapters.read_text()
    end = text.index("\n)\n", text.index("CHAPTERS = (")) + 1
    entry = ANNOUNCED.format(number=LAST.number + 1, key=announced)
    chapters.write_text(text[:end] + entry + text[end:])
    course.commit()
    assert course.run("course.new", "chapter", announced).returncode == 0
    assert "course/chapters.py" not in course.changed()
    done = course.run("course.authoring.mend", announced)
    assert done.returncode == 1 and not done.stderr, "what is left to write is named"
    assert f"course/exercises/{announced}.py" not in done.stdout
    assert "cell one-title: TODO: a title" in done.stdout
    assert f"test_{announced}_pictures.py:8: TODO: what must be seen" in done.stdout
    changed = course.changed()
    assert {"README.md", "course/index.ipynb", "course/instructors.md"} <= changed.keys()
    (path,) = course.folder.glob(f"chapters/*_{announced}.ipynb")
    book = cells(course, f"chapters/{path.name}")
    assert f'"{announced}": "opening-picture"' in (course / "course/publish/covers.py").read_text()
    assert book["opening-picture"].source.endswith(f"{announced}.opening()")
    assert {"open-in-colab", "navigation", "recap", "next", "exercises"} <= book.keys()
    assert "Start page" in book["navigation"].source
    assert course.run("course.publish.tables", "--check").returncode == 0
