"""A process that judges one Triton kernel on the engine without a GPU, on a machine with one.

Run as ``python -m course.exercises.triton_child FOLDER``: FOLDER/request.json holds the exercise's
id, the kernel's source and a seed; FOLDER/answer.json gets null or [reason, message, code].
`course.checking.triton_kernels` starts it.
"""

import json
import sys
from pathlib import Path

from course.checking.triton_kernels import judge, kernel_of
from course.exercises import EXERCISES


def main(folder: Path) -> None:
    """Answer the request in a folder."""
    request = json.loads((folder / "request.json").read_text())
    found = judge(EXERCISES[request["id"]], kernel_of(request["source"]), request["seed"])
    (folder / "answer.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
