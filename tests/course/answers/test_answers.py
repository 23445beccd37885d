"""A class hands in: what is read, what an answer needs, what looks alike, and what is written."""

import csv
import io
import json
import math
import os
import re
import subprocess
from collections import defaultdict

import pytest

import utils  # noqa: F401  first: it puts Numba on this machine's engine
from course import answers, exercises
from course.answers import (
    alike,
    collecting,
    grading,
    outcomes,
    reaching,
    sandbox,
    slicing,
    tables,
)
from course.answers.__main__ import main
from course.answers.collecting import Learner
from course.answers.grading import Result
from course.answers.slicing import Cell
from course.copies import workspace
from utils.files import ROOT

CHAPTER = "05_first_kernels.ipynb"
SCALE, BLOCKS = "first_kernels.scale_guard", "first_kernels.blocks_for"


@pytest.fixture(scope="module")
def original():
    return json.loads((ROOT / "chapters" / CHAPTER).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wanted():
    known = collecting.asked()
    return {id: known[id] for id in (SCALE, BLOCKS)}


def notebook(original, **sources):
    """The chapter's text with other sources in some cells, and outputs that say that all is
    solved.
    """
    copy = json.loads(json.dumps(original))
    for cell in copy["cells"]:
        cell["source"] = sources.get(cell["id"].replace("-", "_"), cell["source"])
        if cell["cell_type"] == "code" and "exercises.check" in "".join(cell["source"]):
            said = f"✓ {SCALE} · Solved"
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": said}]
    return json.dumps(copy)


def solution(id):
    return exercises.solution_source(exercises.EXERCISES[id])


# ---- the learner's half


def test_one_line_writes_one_file_which_the_instructor_reads(tmp_path, monkeypatch):
    copy = tmp_path / "mine" / "chapters" / CHAPTER
    made_from = tmp_path / "mine" / workspace.MADE_FROM / "chapters" / CHAPTER
    for path in (copy, made_from):
        path.parent.mkdir(parents=True)
        path.write_bytes((ROOT / "chapters" / CHAPTER).read_bytes())
    monkeypatch.chdir(copy.parent)
    nothing = answers.hand_in("Zoë / ../Å")
    assert "Nothing to hand in" in repr(nothing) and not nothing.path.exists()
    text = json.loads(copy.read_text(encoding="utf-8"))
    start = next(cell for cell in text["cells"] if cell["id"] == "start-scale-guard")
    start["source"] = solution(SCALE)
    copy.write_text(json.dumps(text), encoding="utf-8")
    done = answers.hand_in("Zoë / ../Å")
    assert done.path.parent == tmp_path / "mine" and done.chapters == {"first_kernels": 1}
    assert "download" in done._repr_html_()
    (tmp_path / "class").mkdir()
    done.path.rename(tmp_path / "class" / done.path.name)
    (learner,) = collecting.collect(tmp_path / "class")
    assert learner.name.startswith("Zoë")
    cells = learner.files[0].chapters["first_kernels"]
    assert Cell("start-scale-guard", solution(SCALE)) in cells


def test_without_a_copy_the_notebooks_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(workspace, "MINE", tmp_path / "nowhere")
    with pytest.raises(ValueError, match=".ipynb"):
        answers.hand_in()


# ---- what is read


def test_names_of_learners_come_from_what_systems_and_browsers_make_of_them():
    folder, file = True, False
    for entry, is_folder, name, id in (
        ("Ann Lee_1234_assignsubmission_file_", folder, "Ann Lee", "1234"),
        ("leeann_LATE_12_99_05_first_kernels-1.ipynb", file, "leeann", "12"),
        ("answers_Zoe\u0308 (1).json", file, "Zo\u00eb", ""),
        ("bob_05_first_kernels.ipynb", file, "bob", ""),
        ("carol", folder, "carol", ""),
        ("a\nb\x1b[2J.json", file, "a\\nb\\x1b[2J", ""),
    ):
        assert collecting.named(entry, is_folder) == (name, id)


def test_each_bad_file_is_named_and_nothing_else_is_touched(tmp_path, original):
    secret = tmp_path / "secret.ipynb"
    secret.write_text(notebook(original))
    mine = tmp_path / "class" / "eve"
    mine.mkdir(parents=True)
    (mine / "a_link.ipynb").symlink_to(secret)
    os.mkfifo(mine / "b_pipe.ipynb")
    (mine / "c_text.ipynb").write_text("no JSON")
    (mine / "d_deep.json").write_text("[" * 100_000)
    (mine / "e_other.json").write_text('{"first_kernels": {"cell": 5}}')
    (mine / "f_zip.zip").write_bytes(b"PK")
    (mine / "g_cells.ipynb").write_text('{"cells": [1, {"cell_type": "code", "source": 7}]}')
    (mine / "h_bytes.ipynb").write_bytes(b"\xff\xfe\x00")
    (mine / "i_no_chapter.json").write_text('{"../../etc/passwd": {"a": "b"}}')
    (tmp_path / "class" / "folder_link").symlink_to(tmp_path)
    eve, link = collecting.collect(tmp_path / "class")
    assert link.files[0].problem == "it is a link, or no plain file"
    problems = [file.problem for file in eve.files]
    assert len(problems) == 9 and all(problems)
    assert problems[0] == problems[1] == link.files[0].problem
    assert "no JSON" in problems[2] and "no JSON" in problems[3] and "no JSON" in problems[7]
    assert "holds no answers" in problems[4] and "neither" in problems[5]
    assert "checks an exercise" in problems[6] and "no chapter" in problems[8]


def test_an_answer_is_found_without_its_id_too(original, wanted):
    text = json.loads(notebook(original, start_scale_guard=solution(SCALE)))
    for cell in text["cells"]:
        del cell["id"]
    cells = collecting._of_notebook(text)["first_kernels"]
    number = collecting.answer_cell(cells, wanted[SCALE])
    assert cells[number].source == solution(SCALE)


def test_an_answer_in_a_cell_of_the_learners_own_counts(original, wanted):
    cells = [Cell(c["id"], "".join(c["source"])) for c in original["cells"]]
    own = [*cells, Cell("new", "# tried\ndef blocks_for(*given):\n    return 1")]
    own.append(Cell("newer", solution(BLOCKS)))
    task, outcome = grading.task_of(own, wanted[BLOCKS], cells)
    assert outcome is None and task["own"] == solution(BLOCKS)
    names = {}
    exec(task["source"], names)
    assert names["blocks_for"](5, 9, 4, 4) == exercises.EXERCISES[BLOCKS].solution(5, 9, 4, 4)
    task, outcome = grading.task_of(cells, wanted[BLOCKS], cells)
    assert task is None and outcome["status"] == "untouched"


def test_an_answer_brings_what_it_needs_and_nothing_else():
    cells = [
        Cell("a", "import numpy as np\nfrom numba import cuda\nprint('loud')\n%matplotlib inline"),
        Cell("b", "table = [0]\ntable[0] = 3\nunused = 1 / 0"),
        Cell("c", "%%writefile build/x.cu\nint a;"),
        Cell("d", "np.sort([1 / 0])\ndef helper(x):\n    return x + table[0] + late(x)"),
        Cell("e", "def answer(x):\n    return helper(x)\nwhile True: pass\nanswer(3)"),
        Cell("f", "def late(x):\n    return np.float32(x)\nanswer = None"),
    ]
    source = slicing.sliced(cells, 4, "answer")
    names = {}
    exec(source, names)
    assert names["answer"](2) == 7
    assert "loud" not in source and "unused" not in source and "while" not in source
    for text in ("(" * 5000, "x = " + "-" * 50_000 + "1", "\0", "x = 1\udc80"):
        try:
            slicing.sliced([Cell("a", text)], 0, "x")
        except slicing.Unreadable:
            continue
    with pytest.raises(slicing.Unreadable, match="characters of code"):
        slicing.sliced([Cell(str(n), "x = 1\n" * 15_000) for n in range(10)], 9, "x")
    with pytest.raises(slicing.Unreadable, match="line 2"):
        slicing.sliced([Cell("a", "x = 1\ndef answer(:")], 0, "answer")


def test_what_an_answer_reaches_for_is_told():
    own = "import os, numpy\nfrom course.checking import checker\ndef f(): return f.__globals__"
    assert reaching.names(own, []) == ["__globals__", "course.checking", "os"]
    assert reaching.names(own, ["import os"]) == ["__globals__", "course.checking"]
    assert reaching.names("from numba import cuda\nx = max(1, 2)", []) == []
    assert reaching.names("random._os; dataclasses.sys", []) == ["_os", "sys"]
    assert reaching.names("__global__ void k() {}", []) == []
    assert reaching.names("__attribute__((constructor)) void f() {}", []) == ["constructor"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'{"status": "solved"}',
        b'{"status": "solved", "reason": "race", "lines": []}',
        b'{"status": "top marks", "reason": "", "lines": []}',
        b'{"status": "not yet", "reason": "liked", "lines": []}',
        b'{"status": "solved", "reason": "", "lines": [{}]}',
    ],
)
def test_what_is_no_outcome_is_none(text):
    assert outcomes.valid(text) is None


# ---- answers are checked anew


def outcomes_of(folder, wanted):
    """{learner: what each exercise became}, and the results by learner."""
    found = grading.graded(collecting.collect(folder), wanted, lambda line: None, at_once=2)
    results = {result.learner.name: result for result in found}
    return {
        name: [one.said(id) for id in (SCALE, BLOCKS)] for name, one in results.items()
    }, results


def test_a_class_is_checked_anew(tmp_path, original, wanted, monkeypatch):
    """Whatever saved outputs say. One learner's answers are right, one's code changes the check and
    starts processes that would outlive it.
    """
    monkeypatch.setattr(sandbox, "MOST_PROCESSES", 30)
    renamed = solution(SCALE).replace("factor", "how_much")
    tampers = """
from course.checking import checker
def kernel(function):
    checker.CHECKS["numba"] = lambda *given: "fine"
    return cuda.jit(function)
@kernel
def scale(out, a, factor):
    out[0] = 1
"""
    many = """
import subprocess
import time
sleepers = [subprocess.Popen(["sleep", "601"], start_new_session=True) for _ in range(60)]
def blocks_for(*given, sleepers=sleepers, nap=time.sleep(60)):
    return 1
"""
    ann = notebook(original, start_scale_guard=renamed, start_blocks_for=solution(BLOCKS))
    (tmp_path / "ann.ipynb").write_text(ann)
    eve = {"first_kernels": {"start-scale-guard": tampers, "start-blocks-for": many}}
    (tmp_path / "answers_eve.json").write_text(json.dumps(eve))
    (tmp_path / "zoe.ipynb").write_text(notebook(original, start_blocks_for="def blocks_for(n:"))
    reopens = """
import os
def reopened():
    for number in range(3, 64):
        try:
            os.close(os.open(f"/proc/{os.getppid()}/fd/{number}", os.O_RDONLY))
            return True
        except OSError:
            pass
    return False
seen = reopened()
def blocks_for(height, width, block_x, block_y):
    return (0, 0) if seen else (-(-width // block_x), -(-height // block_y))
"""
    (tmp_path / "mia.ipynb").write_text(notebook(original, start_blocks_for=reopens))
    found, results = outcomes_of(tmp_path, wanted)
    assert found == {
        "ann": ["solved", "solved"],
        "eve": ["not believed", "forks"],
        "mia": ["untouched", "solved"],  # it did not reach the files of the process that checks it
        "zoe": ["untouched", "does_not_compile"],
    }
    assert any("course.checking" in line for line in results["eve"].look_at())
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert "sleep 601" not in left


@pytest.mark.nightly("a check's own limits are held by tests/course/checking")
@pytest.mark.parametrize("apart", [True, False], ids=["namespaces", "plain"])
def test_wrong_endless_flooding_and_deadly_answers_harm_nobody(
    apart, tmp_path, original, wanted, monkeypatch
):
    if not apart:
        monkeypatch.setattr(sandbox, "own_namespaces", lambda: ())
    wrong = solution(SCALE).replace("<", "<=")
    loops = "def blocks_for(*given):\n    while True: pass"
    prints = "x = [print('x' * 1000) for _ in range(10**7)]\n" + solution(SCALE) + "\nscale.x = x"
    kills = "import os\nx = os.kill(os.getppid(), 9)\ndef blocks_for(*given):\n    return x"
    bob = notebook(original, start_scale_guard=wrong, start_blocks_for=loops)
    (tmp_path / "bob.ipynb").write_text(bob)
    eve = notebook(original, start_scale_guard=prints, start_blocks_for=kills)
    (tmp_path / "eve.ipynb").write_text(eve)
    found, _ = outcomes_of(tmp_path, wanted)
    # the first process of a namespace cannot be killed from within
    killed = "no_return" if apart and sandbox.own_namespaces() else "crashed"
    assert found == {"bob": ["off_by_one", "timeout"], "eve": ["flood", killed]}


def test_of_two_files_the_better_answer_counts(wanted, original, monkeypatch):
    def judged(tasks, tell=None):
        return {
            t["exercise"]: {
                "status": "solved" if "<=" not in t["source"] else "not yet",
                "reason": "" if "<=" not in t["source"] else "missing_guard",
                "lines": [],
            }
            for t in tasks
        }

    monkeypatch.setattr(sandbox, "judged", judged)
    cells = [Cell(c["id"], "".join(c["source"])) for c in original["cells"]]
    right, wrong = solution(SCALE), solution(SCALE).replace("<", "<=")

    def file(source):
        own = [Cell(c.id, source if c.id == "start-scale-guard" else c.source) for c in cells]
        return collecting.File("a file", {"first_kernels": own})

    for order in ((right, wrong), (wrong, right)):
        learner = Learner("ann", files=[file(source) for source in order])
        result = grading.of_learner(learner, wanted, {"first_kernels": cells})
        assert result.said(SCALE) == "solved" and result.said(BLOCKS) == "untouched"


@pytest.mark.nightly("each solution is checked by test_exercises, too")
@pytest.mark.parametrize("chapter", ["memory", "synchronization", "triton", "mnist_cnn", "start"])
def test_solutions_that_are_handed_in_are_solved(chapter):
    wanted = {id: where for id, where in collecting.asked().items() if id.startswith(f"{chapter}.")}
    paths = {collecting.key_of(path): path for path in collecting.notebooks()}
    tasks = []
    for id, where in wanted.items():
        cells = [Cell(c.id, c.source) for c in collecting.originals(paths[where.chapter])]
        number = collecting.answer_cell(cells, where)
        source = solution(id)
        if where.name:
            solved = exercises.EXERCISES[id].solution
            name = getattr(solved, "py_func", getattr(solved, "fn", solved)).__name__
            cells[number] = Cell(where.cell, f"{source}\n{where.name} = {name}")
            source = slicing.sliced(cells, number, where.name)
        tasks.append({"exercise": id, "name": where.name, "path": where.path, "source": source})
    found = sandbox.judged(tasks)
    assert {id: outcome["status"] for id, outcome in found.items()} == dict.fromkeys(
        wanted, "solved"
    )


# ---- look-alikes


LONG = """@cuda.jit
def scale(out, a, factor):
    start = cuda.grid(1)
    step = cuda.gridsize(1)
    for i in range(start, out.size, step):  # grid-stride, as I like it
        value = a[i] * factor
        out[i] = value
"""
OTHER = """@cuda.jit
def scale(out, a, factor):
    i = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
    size = min(len(out), len(a))
    if i >= size:
        return
    out[i] = factor * a[i]
"""


def test_the_command_writes_the_tables_and_says_what_to_look_at(
    tmp_path, original, monkeypatch, capsys
):
    solved = {"status": "solved", "reason": "", "lines": []}
    monkeypatch.setattr(sandbox, "judged", lambda tasks: {t["exercise"]: solved for t in tasks})
    folder = tmp_path / "class"
    folder.mkdir()
    for name in ("ann_1_assignsubmission_file_", "ann_2_assignsubmission_file_"):
        (folder / name).mkdir()
        (folder / name / "mine.ipynb").write_text(notebook(original, start_scale_guard=LONG))
    (folder / "bob.txt").write_text("I was ill")
    roster = tmp_path / "grades.csv"
    roster.write_text("name,id\nAnn,1\nAnn,2\n")
    out = tmp_path / "out"
    arguments = [str(folder), "--out", str(out), "--only", SCALE, "--roster", str(roster)]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert f"look alike: {SCALE}: ann (1), ann (2) ({alike.TO_THE_LETTER})" in said
    assert "look at: bob: bob.txt: it is neither" in said
    assert "not listed in it: bob" in said
    learners = rows_of((out / "learners.csv").read_text(encoding="utf-8"))
    assert [row[:4] for row in learners[1:]] == [
        ["ann", "1", "1", "1"],
        ["ann", "2", "1", "1"],
        ["bob", "", "1", "0"],
    ]
    assert (out / "filled_grades.csv").read_text().splitlines()[1:] == ["Ann,1,1", "Ann,2,1"]
    assert main([str(folder), "--only", "no.such"]) == 1
    assert main([str(tmp_path / "missing")]) == 1


def test_copied_answers_are_shown_and_usual_ones_are_not():
    starter = exercises.EXERCISES[SCALE].starter
    given = (starter, solution(SCALE))
    renamed = LONG.replace("step", "wide").replace("  # grid-stride, as I like it", "")
    nearly = LONG.replace("value = a[i] * factor", "value = factor * a[i]")
    lines = LONG.splitlines(keepends=True)
    lines[2:4] = reversed(lines[2:4])  # two statements that need no order
    everybody = {f"learner {n}": solution(SCALE) for n in range(6)}
    answers = everybody | {"ann": LONG, "bob": LONG, "cy": renamed, "dan": OTHER, "eve": nearly}
    answers["fay"] = "".join(lines)
    found = alike.look_alikes(SCALE, answers, given)
    told = {(one.learners, one.how) for one in found}
    assert (("ann", "bob"), alike.TO_THE_LETTER) in told
    assert (("ann", "bob", "cy"), alike.BUT_NAMES) in told
    for near in ("eve", "fay"):
        assert any(near in one.learners and one.share < 1 for one in found)
    assert not any("dan" in one.learners for one in found)
    assert not any(name.startswith("learner") for one in found for name in one.learners)


@pytest.mark.parametrize(
    "text", ["a += b;" * 2800, "'\\" * 9000, '"' * 19_000, "/*" * 9000, "{a[" * 6000]
)
def test_long_answers_are_compared_in_time_with_their_length(text):
    """A form has no more passages than words; two of these once took minutes."""
    answers = {"ann": text, "bob": text.replace("b", "c"), "eve": text + "x = 1"}
    alike.look_alikes(SCALE, answers, ("a += c;" * 50,))
    form = alike.normal(text)
    assert len(alike.passages(form)) <= len(form) <= len(text)


@pytest.mark.nightly("reads the exercises of all chapters")
def test_right_answers_that_differ_are_seldom_taken_for_copies():
    """Those in tests/course/exercises were written one by one, to differ."""
    handed = defaultdict(dict)
    text = (ROOT / "tests" / "course" / "exercises" / "answers" / "right.txt").read_text()
    for part in re.split(r"(?m)^### ", text)[1:]:
        head, source = part.split("\n", 1)
        id, _, title = head.partition(" ")
        handed[id][title] = source
    pairs = sum(math.comb(len(sources), 2) for sources in handed.values())
    found = []
    for id, sources in handed.items():
        given = (exercises.EXERCISES[id].starter, solution(id))
        found += alike.look_alikes(id, sources, given)
    assert pairs > 200 and len(found) <= 0.02 * pairs


def test_cuda_c_is_compared_without_names_and_comments():
    one = "%%writefile a.cu\n__global__ void k(float* a) { a[0] = 1; /* x */ } // y"
    other = "%%writefile b.cu\n__global__ void kern(float *out)\n{\n  out[0] = 1;\n}"
    assert alike.normal(one) == alike.normal(other)
    assert alike.normal(one) != alike.normal(other.replace("= 1", "= 2"))


# ---- tables


def rows_of(text):
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"))))


def test_no_name_becomes_a_formula(tmp_path):
    names = ["=cmd|'/c calc'!A0", "+1", "-1", "@x", " =1", "\t=1", "ann"]
    results = [Result(Learner(name)) for name in names]
    path = tmp_path / "learners.csv"
    tables.write(path, tables.of_learners(results, [SCALE]))
    cells = [row[0] for row in rows_of(path.read_text(encoding="utf-8"))[1:]]
    assert cells == [f"'{name}" for name in names[:-1]] + ["ann"]
    assert rows_of(path.read_text(encoding="utf-8"))[1][3:5] == ["0", "1"]


def test_reasons_are_counted(tmp_path):
    results = [Result(Learner(name), {SCALE: outcome}) for name, outcome in CLASS.items()]
    rows = list(tables.of_exercises(results, [SCALE], grading.sentence))
    assert rows[1][:3] == [SCALE, "missing_guard", 2] and rows[1][4] == "bob; cy"
    assert list(tables.stuck(results, [SCALE], grading.sentence)) == [
        f"2 of 3: {SCALE}: {grading.sentence('missing_guard')}"
    ]


CLASS = {
    "ann": {"status": "solved", "reason": "", "lines": []},
    "bob": {"status": "not yet", "reason": "missing_guard", "lines": []},
    "cy": {"status": "not yet", "reason": "missing_guard", "lines": []},
}
MOODLE = """Identifier,"Full name","Email address",Status,Grade,"Maximum Grade"
"Participant 1234","Ann Lee",ann@example.org,Submitted,,100.00
"Participant 1299","Bob Ray",bob@example.org,Submitted,,100.00
"""
CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section
"    Points Possible",,,,
"Lee, Ann",12,s1,lee1,One
"Ray, Bob",13,s2,bob,One
"Fox, Eve",14,s3,efox,One
"""


def test_a_learning_management_systems_own_file_is_filled_in(tmp_path):
    path = tmp_path / "grades.csv"
    path.write_text(MOODLE)
    text, missing = tables.filled(path, {("Ann Lee", "1234"): 1, ("Eve", "7"): 2}, most=2)
    assert [row[4] for row in rows_of(text)] == ["Grade", "50", ""] and missing == ["Eve"]

    path.write_text(CANVAS)
    text, missing = tables.filled(path, {("whoever", "12"): 2, ("bob", ""): 1}, most=2)
    assert [row[-1] for row in rows_of(text)] == [tables.POINTS, "2", "2", "1", ""]
    assert missing == []
    assert rows_of(text)[2][:5] == ["Lee, Ann", "12", "s1", "lee1", "One"]

    path.write_text("colour,shape\nred,round\n")
    with pytest.raises(tables.NoRoster, match="names learners"):
        tables.filled(path, {}, most=2)
