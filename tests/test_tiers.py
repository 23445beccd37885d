"""Every test runs in some tier: `make test` leaves out what is marked, `make nightly` nothing."""

import os
import re
import sys
from types import SimpleNamespace

import nbformat
import pytest

from tests import tiers
from tests.processes import completed
from utils import timing
from utils.files import ROOT

TESTS = """
import pytest

def test_plain(): pass

@pytest.mark.parametrize("n", [0, pytest.param(1, marks=pytest.mark.nightly("as 0"))])
def test_at_night(n, pytestconfig):
    print("seed", pytestconfig.getoption("--seed"))
"""
FAMILY = """
import pytest

@pytest.mark.one_in(3, "each is a program of its own")
@pytest.mark.parametrize("n", range(90))
def test_alike(n): pass
"""
EACH_TIER = {"test": {"plain", "at_night[0]"}, "nightly": {"plain", "at_night[0]", "at_night[1]"}}


@pytest.fixture
def run(tmp_path):
    """run(tests, *options) gives pytest's output for a file of tests in a folder of its own."""
    markers = "nightly(why): x", "quick: x", "one_in(count, why): x"
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    " + "\n    ".join(markers))

    def pytest_in(tests, *options):
        (tmp_path / "test_it.py").write_text(tests)
        command = [sys.executable, "-m", "pytest", "-p", "tests.tiers", "-s", "-v", *options, "."]
        environment = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = completed(command, cwd=tmp_path, env=environment, check=False)
        return done.stdout + done.stderr

    return pytest_in


def passed(output):
    """The names of the tests that passed."""
    lines = [line for line in output.splitlines() if "PASSED" in line or "seed" in line]
    return {line.split("::test_")[1].split()[0] for line in lines if "::test_" in line}


@pytest.mark.parametrize("tier, expected", EACH_TIER.items())
def test_a_tier_leaves_out_what_is_marked_and_nothing_else(run, tier, expected):
    assert passed(run(TESTS, f"--tier={tier}")) == expected


def test_of_many_parameters_the_same_third_runs_by_day(run):
    assert passed(run(FAMILY, "--tier=test")) == {f"alike[{n}]" for n in range(0, 90, 3)}
    assert len(passed(run(FAMILY, "--tier=nightly"))) == 90


def test_of_a_folder_a_share_of_each_tests_parameters_runs_by_day():
    place, count = next(iter(tiers.SHARES.items()))
    many = [f"{place}test_a.py::test_b[{n}]" for n in range(count + 1)]
    single = [f"{place}test_a.py::test_{name}" for name in ("c[1]", "d")]
    elsewhere = [f"tests/test_a.py::test_b[{n}]" for n in range(2)]
    items = [
        SimpleNamespace(nodeid=name, get_closest_marker=lambda _: None)
        for name in (*many, *single, *elsewhere)
    ]
    chosen = [item.nodeid for item in tiers.of_the_day(items)]
    assert chosen == [many[0], many[count], *single, *elsewhere]
    assert all((ROOT / place).exists() for place in tiers.SHARES)


def test_nothing_is_left_out_without_being_asked(run):
    assert passed(run(TESTS)) == EACH_TIER["nightly"]


@pytest.mark.parametrize(
    "tier, name, left_out",
    [
        ("test", "06_memory.ipynb", True),
        ("test", tiers.ESTIMATED[0], False),
        ("test", "test_timing.py", False),
        ("nightly", "06_memory.ipynb", False),
    ],
)
def test_by_day_most_notebooks_say_no_estimates(monkeypatch, tier, name, left_out):
    monkeypatch.setenv(timing.NO_ESTIMATES, "as an earlier test had it")
    config = SimpleNamespace(option=SimpleNamespace(tier=tier))
    tiers.pytest_runtest_setup(SimpleNamespace(path=ROOT / "chapters" / name, config=config))
    assert os.environ.get(timing.NO_ESTIMATES) == ("1" if left_out else None)
    assert all((ROOT / "chapters" / each).is_file() for each in tiers.ESTIMATED)


def runs(tier, name, id, source="split = 3"):
    """Whether a tier runs such a cell of a notebook."""
    unmarked = {"get_closest_marker": lambda name: None, "nodeid": f"chapters/{name}::Cell 1"}
    cell, path = SimpleNamespace(id=id, source=source), ROOT / "chapters" / name
    return tiers.belongs(SimpleNamespace(cell=cell, path=path, **unmarked), tier)


@pytest.mark.parametrize(
    "tier, name, source, expected",
    [
        ("test", "06_memory.ipynb", 'exercises.check("memory.split", split)', False),
        ("test", "06_memory.ipynb", "split = 3", True),
        ("test", "06_memory.ipynb", 'x = exercises.check("memory.split", split)', True),
        ("test", "06_memory.ipynb", 'exercises.quiz("memory.q_bytes")\n', False),
        ("test", tiers.WHOLE[0], 'exercises.check("first_kernels.rotate", "a.cu")', True),
        ("nightly", "06_memory.ipynb", 'exercises.check("memory.split", split)', True),
    ],
)
def test_by_day_most_notebooks_hand_in_no_starter_and_ask_nothing(tier, name, source, expected):
    assert runs(tier, name, "check-split", source) == expected
    assert (ROOT / "chapters" / name).is_file()


@pytest.mark.parametrize("name", tiers.AT_NIGHT)
def test_a_cell_waits_for_the_night_where_a_test_stands_for_it(name):
    cells = {cell.id for cell in nbformat.read(ROOT / "chapters" / name, 4).cells}
    for id, test in tiers.AT_NIGHT[name].items():
        assert id in cells and (ROOT / test).is_file()
        assert runs("nightly", name, id) and not runs("test", name, id)
    assert runs("test", name, "another")


@pytest.mark.parametrize("name", tiers.LESS)
def test_a_cell_does_less_by_day(name):
    cells = {cell.id: cell for cell in nbformat.read(ROOT / "chapters" / name, 4).cells}
    for id, (words, fewer) in tiers.LESS[name].items():
        before = cells[id].source
        tiers.shorten(SimpleNamespace(cell=cells[id], path=ROOT / "chapters" / name))
        assert before.count(words) == 1 and cells[id].source == before.replace(words, fewer)


def test_a_mark_without_a_reason_is_refused(run):
    tests = "import pytest\n\n@pytest.mark.nightly\ndef test_a(): pass\n"
    assert 'test_a: nightly("why") needs a reason' in run(tests, "--tier=test")
    assert 'test_a: one_in(3, "why") needs a reason' in run(
        tests.replace("nightly", "one_in(3)"), "--tier=test"
    )


def test_a_nights_inputs_are_new_said_and_repeated(run):
    one, other = (run(TESTS, "--tier=nightly") for _ in range(2))
    seeds = [re.search(r"--seed=(\d+)", output)[1] for output in (one, other)]
    assert f"seed {seeds[0]}" in one and seeds[0] != seeds[1]
    again = run(TESTS, "--tier=nightly", f"--seed={seeds[0]}", "-p", "xdist.plugin", "-n", "1")
    assert f"--seed={seeds[0]}" in again
    assert "--seed=0" in run(TESTS, "--tier=test")


def test_the_parts_are_the_whole(run, tmp_path):
    """Of several files, and of a large one, whose chapters are dealt one by one."""
    for name in "abc":
        (tmp_path / f"test_{name}.py").write_text(f"def test_{name}(): pass\n")
    parts = [passed(run(TESTS, f"--shard={n}/3")) for n in (1, 2, 3)]
    assert set().union(*parts) == {"a", "b", "c", *EACH_TIER["nightly"]}
    assert sum(map(len, parts)) == 6 and all(parts)


def test_a_part_that_is_none_is_refused(run):
    for text in ("0/4", "5/4", "2", "a/b"):
        with pytest.raises(ValueError):
            tiers.part(text)
    assert "invalid part value: '5/4'" in run(TESTS, "--shard=5/4")


def test_a_large_file_is_dealt_by_chapters():
    large = tiers.LARGE[0]
    assert tiers.unit(f"{large}::test_solution_passes[matmul.tile]") == f"{large} matmul"
    assert tiers.unit("tests/test_a.py::test_b[matmul.tile]") == "tests/test_a.py"


def test_the_files_of_the_tiers_are_there():
    assert [name for name in tiers.FAST + tiers.SAMPLED if not (ROOT / name).exists()] == []
    for name in tiers.DEAR:
        assert name.startswith(tiers.FAST) and list(ROOT.glob(f"{name}*")), name
    for name in tiers.SAMPLED:
        assert "pytest.mark.quick" in (ROOT / name).read_text(), (
            f"make check runs nothing of {name}"
        )


def command(verb):
    """The words with which a verb of the Makefile runs pytest."""
    lines = completed(["make", "--no-print-directory", "-n", verb, "AGAIN="], cwd=ROOT).stdout
    (line,) = [line for line in lines.replace("\\\n", " ").splitlines() if "tests.tiers" in line]
    return set(line.split())


def test_make_nightly_runs_all_that_make_test_leaves_out():
    """Both are given the same folders; of these --tier alone leaves anything out."""
    day, night = command("test"), command("nightly")
    assert day - night == {"--tier=test", "tests.again"}
    assert night - day == {"--tier=nightly"}
    assert {"tests", "course", "chapters", "--nbval-lax"} <= night
    assert not [word for word in night if word.startswith(("-k", "-m=", "--deselect", "--ignore"))]
