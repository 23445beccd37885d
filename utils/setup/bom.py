"""A bill of materials of all that is installed, with licences, in build/sbom.json: ``make sbom``.

CycloneDX's own tool lists what is in .venv. It is installed elsewhere, in build/cyclonedx,
so that it does not list itself. A package whose metadata name no licence brings a file with one:
its text goes into the bill.
"""

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

from packaging.utils import canonicalize_name

from utils.files import ROOT, write_whole

VERSION = "7.5.0"
TOOL = ROOT / "build" / "cyclonedx" / "bin" / "cyclonedx-py"
BILL = ROOT / "build" / "sbom.json"
OWN = "cuda-course"  # the bill's subject, not a part of it
LICENCE_FILE = re.compile(r"(LICEN[CS]E|COPYING|UNLICENSE)", re.IGNORECASE)


def tool() -> Path:
    """CycloneDX's program, installed where it is missing. CalledProcessError if pip fails."""
    if not _works(TOOL):
        folder = TOOL.parents[1]
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip: list[str | Path] = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, f"cyclonedx-bom=={VERSION}"], check=True)
    return TOOL


def _works(program: Path) -> bool:
    """Whether it is there, whole, and of the version that is asked for."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True)
    except OSError:
        return False
    return said.returncode == 0 and said.stdout.strip().endswith(VERSION)


def listed() -> dict:
    """The bill as the tool writes it, in CycloneDX's JSON."""
    words: list[str | Path] = [
        "environment",
        sys.executable,
        "--pyproject",
        ROOT / "pyproject.toml",
    ]
    words += ["--output-reproducible", "--gather-license-texts", "-o", "-"]
    done = subprocess.run([tool(), *words], check=True, capture_output=True)
    bill: dict = json.loads(done.stdout)
    return bill


def add_licences(bill: dict) -> list[str]:
    """Give components without a licence the text that their package brings; whose there is none."""
    without = []
    for component in bill["components"]:
        if component.get("licenses"):
            continue
        name = component["name"]
        component["licenses"] = [_licence(*file) for file in licence_files(name)]
        if not component["licenses"]:
            del component["licenses"]
            without.append(name)
    return without


def licence_files(name: str) -> list[tuple[str, str]]:
    """(name, text) of the licence files in a package's folder of facts."""
    pairs = []
    for file in importlib.metadata.files(name) or []:
        if ".dist-info" in str(file) and LICENCE_FILE.match(file.name):
            text = Path(file.locate()).read_text(errors="replace")
            pairs.append((file.name, text))
    return pairs


def _licence(name: str, text: str) -> dict:
    """A licence in CycloneDX's words, known by its text."""
    content = {"contentType": "text/plain", "content": text}
    return {"license": {"name": f"declared license file: {name}", "text": content}}


def missing(bill: dict) -> list[str]:
    """Packages that are installed and not in the bill."""
    known = {canonicalize_name(component["name"]) for component in bill["components"]}
    here = importlib.metadata.distributions()
    names = {canonicalize_name(each.metadata["Name"]) for each in here}
    return sorted(names - known - {OWN})


def main() -> int:
    """Write the bill; returns the exit status."""
    try:
        bill = listed()
    except subprocess.CalledProcessError as error:
        said = (error.stderr or b"").decode(errors="replace").strip()
        print(f"error: CycloneDX's tool did not do its work. {said}".strip(), file=sys.stderr)
        return 1
    without = add_licences(bill)
    write_whole(BILL, json.dumps(bill, indent=1) + "\n")
    count = len(bill["components"])
    print(f"{BILL.relative_to(ROOT)}: {count} packages, {count - len(without)} with their licences")
    problems = [f"{name} names no licence" for name in without]
    problems += [f"{name} is installed and not in the bill" for name in missing(bill)]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
