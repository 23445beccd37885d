"""The workflows on GitHub run what the README says: the tests on every Python that the project
supports, and the website.
"""

import re
import tomllib

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from utils.files import ROOT

ACTION = r"actions/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+"
MINOR_VERSIONS = [f"3.{minor}" for minor in range(30)]


@pytest.fixture(scope="module")
def workflow():
    return yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())


@pytest.fixture(scope="module")
def job(workflow):
    (job,) = workflow["jobs"].values()
    return job


def test_it_runs_on_every_push_and_pull_request(workflow):
    # YAML 1.1, which PyYAML reads, takes the key `on` for the truth value
    assert set(workflow[True]) == {"push", "pull_request"}


def test_it_runs_on_every_supported_python(job):
    supported = SpecifierSet(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    )
    # as text: a bare 3.10 would be the number 3.1
    assert job["strategy"]["matrix"]["python"] == [
        version for version in MINOR_VERSIONS if version in supported
    ]
    used = [
        step["with"]["python-version"]
        for step in job["steps"]
        if "setup-python" in step.get("uses", "")
    ]
    assert used == ["${{ matrix.python }}"]


def test_it_calls_the_readmes_test_command(job):
    (command,) = re.findall(r"^(make test)\b", (ROOT / "README.md").read_text(), re.M)
    assert [step["run"] for step in job["steps"] if "run" in step] == ["bash .ci/browser", command]


def test_it_ends_in_time(job):
    assert 20 < job["timeout-minutes"] <= 60


@pytest.mark.parametrize("name", ["test.yml", "site.yml"])
def test_actions_are_named_by_commit(name):
    """A tag can be moved to other code; the comment says which version the commit is."""
    text = (ROOT / ".github" / "workflows" / name).read_text()
    used = re.findall(r"uses: (.*)", text)
    assert used
    wrong = [each for each in used if not re.fullmatch(ACTION, each)]
    assert wrong == []


def test_downloads_are_kept_until_the_pins_change(job):
    (options,) = [step["with"] for step in job["steps"] if "setup-python" in step.get("uses", "")]
    assert options["cache"] == "pip"
    pins = options["cache-dependency-path"].split()
    assert {"constraints.txt", "locks/cpu.txt"} <= set(pins)
    assert [name for name in pins if not (ROOT / name).is_file()] == []


def test_the_website_and_the_decks_are_built_and_kept():
    (site,) = yaml.safe_load((ROOT / ".github" / "workflows" / "site.yml").read_text())[
        "jobs"
    ].values()
    assert [step["run"] for step in site["steps"] if "run" in step] == ["make site", "make slides"]
    (kept,) = [
        step["with"]["path"].split()
        for step in site["steps"]
        if "upload-artifact" in step.get("uses", "")
    ]
    assert kept == ["build/site", "build/slides"]


def test_screenshots_of_the_browser_tests_are_kept(job):
    (kept,) = [step for step in job["steps"] if "upload-artifact" in step.get("uses", "")]
    assert kept["if"] == "always()" and kept["with"]["path"] == "build/screenshots"
