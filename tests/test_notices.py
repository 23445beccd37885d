"""What of others' the course hands on is named with its licence."""

import re
from importlib import metadata

import pytest

from course.publish.here import runtime
from utils.files import ROOT

NOTICES = (ROOT / "NOTICES.md").read_text(encoding="utf-8")
#: Packages whose files end up in decks and website, and the word for their licence
HANDED_ON = {
    "furo": "MIT",
    "sphinx-basic-ng": "MIT",
    "sphinx-copybutton": "MIT",
    "sphinx-revealjs": "",  # carries reveal.js, which has a licence of its own
    "sphinx": "BSD-2-Clause",
    "pygments": "BSD-2-Clause",
}


@pytest.mark.parametrize("package, licence", HANDED_ON.items())
def test_each_is_named_with_the_licence_that_its_package_states(package, licence):
    rows = [line for line in NOTICES.splitlines() if re.search(rf"\b{package}\b", line, re.I)]
    assert rows, f"{package} is not named"
    facts = metadata.metadata(package)
    stated = " ".join(
        [
            facts.get("License-Expression") or facts.get("License") or "",
            *(each for each in facts.get_all("Classifier") or [] if each.startswith("License")),
        ]
    )
    assert licence.partition("-")[0] in stated, f"{package} states {stated}"
    assert any(licence in row for row in rows)


def test_reveal_is_under_the_licence_that_its_file_states():
    package = metadata.distribution("sphinx-revealjs")
    (file,) = [each for each in package.files if str(each).endswith("dist/reveal.js")][:1]
    head = file.read_text()[:500]
    assert "MIT" in head and "Hakim El Hattab" in head


def test_what_a_page_loads_to_run_cells_is_named():
    wheels = [file.name for file in runtime.CORE + runtime.PICTURES if file.name.endswith(".whl")]
    names = {wheel.partition("-")[0].replace("_", "-") for wheel in wheels}
    names |= {*runtime.PURE, "pyodide", runtime.HYPOTHESIS.name}
    assert len(names) > 12
    assert {name for name in names if name not in NOTICES.lower()} == set()
    assert f"Hypothesis {runtime.HYPOTHESIS.version}" in NOTICES
