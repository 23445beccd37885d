"""The workflows on GitHub run what the Makefile offers.

On a push what is fast on every Python that the project supports, and the whole on one; at night and
before a release everything; and the website.
"""

import re
import tomllib

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from utils.files import ROOT

FOLDER = ROOT / ".github" / "workflows"
ACTION = r"actions/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+"
MINOR_VERSIONS = [f"3.{minor}" for minor in range(30)]
NAMES = ["nightly.yml", "site.yml", "test.yml"]
PARTS = ["1/4", "2/4", "3/4", "4/4"]
# YAML 1.1, which PyYAML reads, takes the key `on` for the truth value
ON = True


def read(name):
    return yaml.safe_load((FOLDER / name).read_text())


@pytest.fixture(scope="module")
def pushed():
    """The jobs of a push: (check, test)."""
    jobs = read("test.yml")["jobs"]
    return jobs["check"], jobs["test"]


@pytest.fixture(scope="module")
def nightly():
    return read("nightly.yml")["jobs"]


def supported():
    """The Pythons that the project supports, as text: a bare 3.10 would be the number 3.1."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = SpecifierSet(project["requires-python"])
    return [version for version in MINOR_VERSIONS if version in wanted]


def pythons(job):
    """The Pythons that a job sets up."""
    used = [each["with"]["python-version"] for each in steps(job, "setup-python")]
    if used == ["${{ matrix.python }}"]:
        return job["strategy"]["matrix"]["python"]
    return used


def steps(job, action):
    return [step for step in job["steps"] if action in step.get("uses", "")]


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def test_they_are_all_looked_at():
    assert sorted(path.name for path in FOLDER.iterdir()) == NAMES


def test_a_push_runs_what_is_fast_on_every_python_and_the_whole_on_one(pushed):
    check, test = pushed
    assert set(read("test.yml")[ON]) == {"push", "pull_request"}
    assert commands(check) == ["make check"] and pythons(check) == supported()
    assert commands(test) == ["bash .ci/browser", "make test SHARD=${{ matrix.part }}"]
    assert test["strategy"]["matrix"]["part"] == PARTS
    assert len(pythons(test)) == 1 and pythons(test)[0] in supported()


def test_the_night_and_a_release_run_the_rest(nightly):
    when = read("nightly.yml")[ON]
    assert when["schedule"] and when["push"] == {"tags": ["v*"]}
    everything, rest = nightly["all"], nightly["faults-and-mutants"]
    assert commands(everything) == ["bash .ci/browser", "make nightly SHARD=${{ matrix.part }}"]
    assert everything["strategy"]["matrix"]["part"] == PARTS
    assert pythons(everything) == supported()
    assert rest["strategy"]["matrix"]["verb"] == ["make faults", "make mutants DAYS=7"]


def test_a_verb_is_one_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    for name in NAMES:
        verbs = set(re.findall(r"make ([a-z]+)", (FOLDER / name).read_text()))
        assert (
            verbs and [verb for verb in verbs if not re.search(rf"^{verb}:", makefile, re.M)] == []
        )


def test_the_readmes_test_command_is_run(pushed):
    (command,) = re.findall(r"^(make test)\b", (ROOT / "README.md").read_text(), re.M)
    assert commands(pushed[1])[-1].startswith(command)
    assert f"\n{command} || {command} AGAIN=--again\n" in (ROOT / ".ci" / "run").read_text()


def test_jobs_end_in_time(pushed, nightly):
    assert all(20 < job["timeout-minutes"] <= 60 for job in (*pushed, nightly["all"]))


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_named_by_commit(name):
    """A tag can be moved to other code; the comment says which version the commit is."""
    used = re.findall(r"uses: (.*)", (FOLDER / name).read_text())
    assert used
    assert [each for each in used if not re.fullmatch(ACTION, each)] == []


@pytest.mark.parametrize("name", NAMES)
def test_downloads_are_kept_until_the_pins_change(name):
    for job in read(name)["jobs"].values():
        (setup,) = steps(job, "setup-python")
        assert setup["with"]["cache"] == "pip"
        pins = setup["with"]["cache-dependency-path"].split()
        assert {"constraints.txt", "locks/cpu.txt"} <= set(pins)
        assert [pin for pin in pins if not (ROOT / pin).is_file()] == []


def test_the_website_and_the_decks_are_built_and_kept():
    (site,) = read("site.yml")["jobs"].values()
    assert commands(site) == ["make site", "make slides"]
    (kept,) = [step["with"]["path"].split() for step in steps(site, "upload-artifact")]
    assert kept == ["build/site", "build/slides"]


def test_screenshots_of_the_browser_tests_are_kept(pushed):
    (kept,) = steps(pushed[1], "upload-artifact")
    assert kept["if"] == "always()" and kept["with"]["path"] == "build/screenshots"
