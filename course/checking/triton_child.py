"""The child process of `triton_kernels`: judges one kernel on the engine without a GPU.

Run as ``python -m course.checking.triton_child FOLDER``: FOLDER/request.json holds the exercise's
id, the kernel's source and a seed; FOLDER/answer.json gets null or [reason, message, code].
"""

import json
import linecache
import sys
from pathlib import Path

import torch
import triton
import triton.language as tl

from course.checking.triton_kernels import judge
from course.exercises import EXERCISES

FILE = "<the learner's kernel>"


def kernel_of(source: str):
    """The kernel that a source defines."""
    names = {"torch": torch, "triton": triton, "tl": tl}
    before = set(names)
    linecache.cache[FILE] = len(source), None, source.splitlines(True), FILE
    exec(compile(source, FILE, "exec"), names)
    defined = [
        value for name, value in names.items() if name not in before and hasattr(value, "fn")
    ]
    return defined[-1]


def main(folder: Path) -> None:
    """Answer the request in a folder."""
    request = json.loads((folder / "request.json").read_text())
    found = judge(EXERCISES[request["id"]], kernel_of(request["source"]), request["seed"])
    (folder / "answer.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
