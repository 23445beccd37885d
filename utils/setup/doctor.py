"""Find what is wrong with this machine's set-up: ``make doctor``, or ``doctor()`` in a notebook.

`utils.setup.survey` looks, `utils.setup.checks` judges, and here the findings are put together and
shown.
"""

import argparse
import html
import sys
from dataclasses import dataclass

from utils.cpu.cuda_c.cache import empty
from utils.files import remove, size
from utils.setup.checks import CHECKS, NOT_HERE, NOTE, OK, PROBLEM
from utils.setup.survey import Facts, caches, look

MARKS = {OK: "✓", PROBLEM: "✗", NOTE: "!", NOT_HERE: "·"}


@dataclass(frozen=True)
class Finding:
    """What one check found. why and cure are there for problems and notes."""

    check: str
    state: str
    found: str
    why: str = ""
    cure: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All findings: the checks that apply, and for each problem why it matters and the cure."""

    findings: tuple[Finding, ...]

    @property
    def problems(self) -> list[Finding]:
        return [f for f in self.findings if f.state == PROBLEM]

    @property
    def notes(self) -> list[Finding]:
        return [f for f in self.findings if f.state == NOTE]

    def summary(self) -> str:
        """The last line: how many problems, or that there are none."""
        apart = [f.check for f in self.findings if f.state == NOT_HERE]
        rest = (
            f" {len(apart)} of {len(self.findings)} checks do not apply to this machine."
            if apart
            else ""
        )
        if self.problems:
            many = len(self.problems) > 1
            return (
                f"{len(self.problems)} problems: begin with the first." if many else "One problem."
            ) + rest
        return f"No problem found.{rest}"

    def __repr__(self) -> str:
        lines = [
            f"{MARKS[f.state]} {f.check:19} {f.found}" for f in self.findings if f.state != NOT_HERE
        ]
        for f in (*self.problems, *self.notes):
            lines += [
                "",
                f"{MARKS[f.state]} {f.check}: {f.found}",
                f"  why:  {f.why}",
                f"  cure: {f.cure}",
            ]
        return "\n".join([*lines, "", self.summary()])

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><td>{MARKS[f.state]}</td><td style='text-align:left'>{f.check}</td>"
            f"<td style='text-align:left'>{html.escape(f.found)}</td></tr>"
            for f in self.findings
            if f.state != NOT_HERE
        ]
        more = [
            f"<p>{MARKS[f.state]} <b>{f.check}: "
            f"{html.escape(f.found)}</b><br>{html.escape(f.why)}<br>"
            f"<b>Cure:</b> {html.escape(f.cure)}</p>"
            for f in (*self.problems, *self.notes)
        ]
        return f"{''.join(more)}<table>{''.join(rows)}</table><p>{self.summary()}</p>"


def examine(facts: Facts) -> Diagnosis:
    """Judge these facts."""
    return Diagnosis(tuple(Finding(name, *check(facts)) for name, check in CHECKS.items()))


def doctor() -> Diagnosis:
    """Look at this machine and say what is wrong with its set-up, why, and the cure."""
    return examine(look())


def clear() -> int:
    """Remove the builds and data that the course keeps, which come again when needed; bytes."""
    gone = 0
    for path in caches():
        gone += size(path)
        (empty if path.is_dir() else remove)(path)
    return gone


def main(arguments: list[str] | None = None) -> int:
    """``python -m utils.setup.doctor [--clear]``: print everything; exit status 1 if there is a
    problem. --clear empties the caches first.
    """
    parser = argparse.ArgumentParser(prog="python -m utils.setup.doctor")
    parser.add_argument("--clear", action="store_true", help="empty the course's caches first")
    if parser.parse_args(arguments or []).clear:
        print(f"{clear() / 1e9:.1f} GB of builds and data removed")
    return show(doctor())


def show(diagnosis: Diagnosis) -> int:
    """Print a diagnosis; the exit status."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    colours = {OK: "green", PROBLEM: "bold red", NOTE: "yellow", NOT_HERE: "dim"}
    table = Table("", "check", "found", box=None, pad_edge=False)
    for f in diagnosis.findings:
        table.add_row(
            MARKS[f.state],
            f.check,
            escape(f.found),
            style=colours[f.state] if f.state != OK else None,
        )
    console.print(table)
    for f in (*diagnosis.problems, *diagnosis.notes):
        console.print(f"\n[{colours[f.state]}]{MARKS[f.state]} {f.check}[/]:", end=" ")
        console.print(f"{f.found}\n  why:  {f.why}\n  cure: {f.cure}", markup=False, soft_wrap=True)
    console.print(f"\n{diagnosis.summary()}", markup=False)
    return 1 if diagnosis.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
