"""Run a chapter whose cells are new or changed, so that its outputs are those of its cells.

    python -m course.authoring.outputs NAME                   (a step of `make chapter NAME=x`)

Where every cell has run as it stands, nothing runs. The command is that of CONTRIBUTING,
`course.record --cpu`: cells whose work is that of the last commit keep the outputs committed there.
After it the chapter is mended once more.
"""

import subprocess
import sys

from course import record
from course.authoring.mend import named
from course.recording import keeping
from utils.files import ROOT


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    names = sys.argv[1:] if arguments is None else arguments
    chapter = named(names[0] if names else "")
    cells = keeping.stale(chapter.path)
    if not cells:
        print(f"{chapter.name}: every cell has run as it stands")
        return 0
    print(f"{chapter.name}: these have not run as they stand: {', '.join(cells)}", flush=True)
    status = record.main(["--cpu", str(chapter.path)])
    if status == 0:  # what is shown is read, too, and counts among the minutes
        again = [sys.executable, "-m", "course.authoring.mend", chapter.key]
        status = subprocess.run(again, cwd=ROOT).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
