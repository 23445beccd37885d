"""Issue forms, the pull request's template and the hooks before a commit are sound, and what they
ask to run is there.
"""

import importlib.util
import re

import pytest
import yaml

from tests.test_contributing import TEXT as CONTRIBUTING
from utils.files import ROOT

FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]-*.yml"))
KINDS = {"markdown", "input", "textarea", "dropdown", "checkboxes"}
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
TEMPLATE = (ROOT / ".github" / "pull_request_template.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_form_is_one_that_github_takes(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert form["name"] and form["description"] and form["body"]
    assert {field["type"] for field in form["body"]} <= KINDS
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    assert all(field["attributes"]["label"] for field in asked)
    ids = [field["id"] for field in asked]
    assert len(ids) == len(set(ids))
    assert any(field.get("validations", {}).get("required") for field in asked)


def test_there_are_forms():
    assert len(FORMS) == 3


def test_the_template_asks_for_commands_that_are_there():
    makefile = (ROOT / "Makefile").read_text()
    verbs = re.findall(r"`make (\w+)", TEMPLATE)
    assert len(verbs) >= 2
    assert [verb for verb in verbs if not re.search(rf"^{verb}:", makefile, re.M)] == []


def test_hooks_need_nothing_but_the_courses_own_environment():
    (repository,) = HOOKS["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        words = hook["entry"].split()
        assert hook["language"] == "system" and words[0].startswith(".venv/bin/"), hook["id"]
        if words[1] == "-m":
            assert importlib.util.find_spec(words[2]), hook["entry"]
        paths = [word for word in words if word.startswith("tests/")]
        assert all((ROOT / path).exists() for path in paths), hook["entry"]


def test_there_are_ten_first_issues():
    _, _, rest = CONTRIBUTING.partition("## Ten first issues")
    numbers = re.findall(r"^(\d+)\. \*\*", rest.split("\n## ")[0], re.M)
    assert numbers == [str(n) for n in range(1, 11)]


@pytest.mark.parametrize("name", ["CODE_OF_CONDUCT.md", ".pre-commit-config.yaml"])
def test_contributing_names_it(name):
    assert name in CONTRIBUTING
