"""The bill of materials names all that is installed, with its licence."""

import importlib.metadata
import json
import sys

import pytest

from utils.setup import bom


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """A program in CycloneDX's place: prints the components that it is given, without licences."""
    program = tmp_path / "cyclonedx-py"

    def prints(names):
        bill = {"components": [{"name": name} for name in names]}
        (tmp_path / "bill.json").write_text(json.dumps(bill))
        lines = [f"#!{sys.executable}", "import sys", f"asked = {bom.VERSION!r}"]
        lines += ["if '--version' in sys.argv: sys.exit(print('cyclonedx-py', asked))"]
        lines += [f"print(open({str(tmp_path / 'bill.json')!r}).read())"]
        program.write_text("\n".join(lines))
        program.chmod(0o755)

    monkeypatch.setattr(bom, "TOOL", program)
    monkeypatch.setattr(bom, "ROOT", tmp_path)
    monkeypatch.setattr(bom, "BILL", tmp_path / "sbom.json")
    return prints


def installed():
    return {each.metadata["Name"] for each in importlib.metadata.distributions()}


def test_a_licence_that_no_metadata_name_comes_from_its_file(tool, capsys):
    tool(["pytest"])
    bom.main()
    (component,) = json.loads(bom.BILL.read_text())["components"]
    (licence,) = component["licenses"]
    assert "Permission is hereby granted" in licence["license"]["text"]["content"]
    assert "sbom.json: 1 packages, 1 with their licences" in capsys.readouterr().out


def test_what_is_not_in_the_bill_is_named(tool, capsys, monkeypatch):
    monkeypatch.setattr(bom, "licence_files", lambda name: [("LICENSE", "free")])
    tool(installed() - {"pytest"})
    assert bom.main() == 1
    assert "pytest is installed and not in the bill" in capsys.readouterr().err


def test_what_has_no_licence_is_named(tool, capsys, monkeypatch):
    monkeypatch.setattr(bom, "licence_files", lambda name: [])
    tool(["pytest"])
    assert bom.main() == 1
    assert "pytest names no licence" in capsys.readouterr().err
    assert "licenses" not in json.loads(bom.BILL.read_text())["components"][0]


def test_a_tool_that_is_torn_or_of_another_version_is_made_anew(tool, monkeypatch):
    made = []
    monkeypatch.setattr(bom.subprocess, "run", _noting(bom.subprocess.run, made))
    tool(["pytest"])
    bom.tool()
    assert made == []
    monkeypatch.setattr(bom, "VERSION", "99.0")
    bom.tool()
    bom.TOOL.unlink()
    bom.tool()
    assert [command[-1] for command in made if "pip" in command] == ["cyclonedx-bom==99.0"] * 2


def _noting(run, made):
    """subprocess.run, which notes what would make the tool, and does not do it."""

    def noting(command, **options):
        if "--version" in command:
            return run(command, **options)
        made.append(command)

    return noting


def test_a_tool_that_fails_ends_with_its_words(tool, capsys):
    tool(["pytest"])
    bom.TOOL.write_text(bom.TOOL.read_text().replace("print(open", "sys.exit('no way'); (open"))
    assert bom.main() == 1
    assert capsys.readouterr().err == "error: CycloneDX's tool did not do its work. no way\n"
