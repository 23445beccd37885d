"""May this be published? ``make release-check`` says what stands against it.

    python -m course.publish.release               everything; asks the network about links
    python -m course.publish.release --offline     without the links

Each check returns the problems that it found, in words that say what to do. Publishing itself is
then: `git tag vX.Y.Z` (the version in pyproject.toml), and push the tag.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

from course.chapters import notebooks
from course.publish.frame import framed
from utils import results
from utils.files import ROOT
from utils.results.likeness import RECORDED_ON
from utils.setup import install
from utils.setup.colab import repository, tag

PLACEHOLDER = "OWNER"
LINK = re.compile(r"https?://[^\s)\"'<>\]`\\|{}]+")
PATIENCE = 20  # seconds for one link
GONE = (404, 410)
ASKED_AT_ONCE = 16
NOT_PAGES = ("localhost", "127.0.0.1", "example.org", "example.com", "schemas.", "/OWNER/")
GPU_LINE = "· CC "  # in what `machine()` says of a real GPU


def address_is_real() -> list[str]:
    """The placeholder is an account that anybody may own: Colab would run what they put there."""
    if f"/{PLACEHOLDER}/" in repository():
        return [f"the address is {repository()}: `make address URL=https://github.com/you/name`"]
    return []


def versions_agree() -> list[str]:
    """Notebooks and README name this version's tag; files and pins are of one date."""
    problems = []
    for path in notebooks():
        notebook = nbformat.read(path, 4)
        before = without_outputs(notebook)
        framed(notebook, path)
        if without_outputs(notebook) != before:
            problems.append(f"{path.name} is of another version: `make address`")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    if f"/blob/{tag()}/" not in readme:
        problems.append(f"README.md does not link to {tag()}: `make address`")
    return problems + pins_agree()


def without_outputs(notebook) -> str:
    """A notebook's cells as text, of their outputs, megabytes, the number alone."""
    cells = [{**cell, "outputs": len(cell.get("outputs", ()))} for cell in notebook.cells]
    return json.dumps(cells, sort_keys=True)


def pins_agree() -> list[str]:
    """Every pinned version is the one whose files are listed."""
    problems = []
    for kind, name in install.LOCKS.items():
        listed = dict(re.findall(r"^([\w.-]+)==([^\s;\\]+)", _text(ROOT / name), re.MULTILINE))
        pinned = dict(
            re.findall(r"^([\w.-]+)==(\S+)", _text(ROOT / install.CONSTRAINTS[kind]), re.MULTILINE)
        )
        different = sorted(
            each for each in listed if pinned.get(each, listed[each]) != listed[each]
        )
        if different:
            problems.append(f"{name} is older than the pins of {different}: `make lock`")
    return problems


def tag_is_here() -> list[str]:
    """Nothing is uncommitted, and the tag, if there is one, is this commit."""
    problems = []
    if _git("status", "--porcelain"):
        problems.append("there are changes that are not committed")
    tagged = _git("rev-parse", "-q", "--verify", f"refs/tags/{tag()}^{{commit}}")
    if tagged and tagged != _git("rev-parse", "HEAD"):
        problems.append(
            f"{tag()} is another commit: give pyproject.toml a new version, then `make address`"
        )
    return problems


def results_are_recorded() -> list[str]:
    """Every chapter shows what a real GPU said, and there are numbers of one."""
    problems = []
    if not any(entry["gpu"] == RECORDED_ON for entry in results.everything()):
        problems.append(f"assets/results holds no numbers of the {RECORDED_ON}: `make record`")
    for path in notebooks():
        for cell in nbformat.read(path, 4).cells:
            if "setup" in cell.metadata.get("tags", []) and GPU_LINE not in _printed(cell):
                problems.append(f"{path.name} was not recorded on a GPU: `make record`")
    return problems


def links_are_alive() -> list[str]:
    """Every page that the course links to is there. One that refuses to say is not counted."""
    places = linked()
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        answers = dict(zip(places, pool.map(status, places), strict=True))
    if places and not any(isinstance(answer, int) for answer in answers.values()):
        return [f"none of the {len(places)} pages linked to answers: is there a network?"]
    return [
        f"{places[url]} links to {url}: {answer}"
        for url, answer in answers.items()
        if answer in GONE or answer == "no such place"
    ]


def linked() -> dict[str, str]:
    """{address of a page elsewhere: the first file that links to it}."""
    found = {}
    for path in [*ROOT.glob("*.md"), *(ROOT / "course").glob("*.md"), *notebooks()]:
        for url in LINK.findall(_prose(path)):
            url = url.partition("#")[0].rstrip(".,;:*_")
            if not any(word in url for word in NOT_PAGES):
                found.setdefault(url, path.name)
    return found


def status(url: str):
    """The HTTP status of a page; "no such place" for a name that nobody has, or what went wrong."""
    import requests

    agent = {"User-Agent": "Mozilla/5.0 (link check)"}
    try:
        with requests.get(url, headers=agent, timeout=PATIENCE, stream=True) as answer:
            return answer.status_code
    except requests.ConnectionError as error:
        unknown = "NameResolutionError" in str(error)
        return "no such place" if unknown else "no answer"
    except requests.RequestException as error:
        return type(error).__name__


def _prose(path: Path) -> str:
    """The text of a Markdown file, or of a notebook's Markdown cells."""
    text = _text(path)
    if path.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def _printed(cell) -> str:
    """All text of a cell's outputs."""
    return "".join(str(output.get("text", output.get("data", ""))) for output in cell.outputs)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _git(*words) -> str:
    """What git prints; empty where it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


CHECKS = {
    "the address": address_is_real,
    "versions": versions_agree,
    "git": tag_is_here,
    "recorded results": results_are_recorded,
}


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m course.publish.release")
    parser.add_argument("--offline", action="store_true", help="do not ask whether links live")
    options = parser.parse_args(arguments)
    checks = CHECKS if options.offline else {**CHECKS, "links": links_are_alive}
    version = tomllib.loads(_text(ROOT / "pyproject.toml"))["project"]["version"]
    print(f"May version {version} be published?")
    count = 0
    for name, check in checks.items():
        problems = check()
        count += len(problems)
        print(f"{'✗' if problems else '✓'} {name}")
        for problem in problems:
            print(f"    {problem}")
    print(f"No: {count} things stand against it." if count else f"Yes: `git tag {tag()}`")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
