"""Run every program on the engine without a GPU and print what came of it, as JSON.

    python -m tests.conformance.triton.run

{"right": {program: null or the error}, "broken": {program: {"kind", "line", "program", "text"}}}.
"""

import inspect
import json
import os
import traceback

os.environ["CUDA_COURSE_CPU"] = "1"

import torch  # noqa: E402

import utils  # noqa: E402, F401  puts the engine under Triton
from tests.conformance.triton import (  # noqa: E402
    broken,
    right_arithmetic,
    right_blocks,
    right_programs,
    right_reductions,
)
from utils.cpu.triton import KernelMistake  # noqa: E402

RIGHT = (right_arithmetic, right_blocks, right_programs, right_reductions)


def functions(module, prefix: str) -> dict:
    """A module's functions whose names begin so, by the rest of the name."""
    return {
        name.removeprefix(prefix): function
        for name, function in vars(module).items()
        if name.startswith(prefix) and inspect.isfunction(function)
    }


def outcome(check) -> str | None:
    """The error of a right program, or None."""
    torch.manual_seed(1)
    try:
        check()
    except Exception:
        return traceback.format_exc(limit=-4)
    return None


def named(run) -> dict:
    """What the engine says of a broken program."""
    torch.manual_seed(1)
    try:
        run()
    except KernelMistake as found:
        return {
            "kind": found.kind,
            "line": found.line,
            "program": found.program,
            "text": str(found),
        }
    except Exception as error:
        return {"kind": type(error).__name__, "line": None, "program": None, "text": str(error)}
    return {"kind": None, "line": None, "program": None, "text": "nothing was said"}


def main() -> None:
    right = {
        name: outcome(f) for module in RIGHT for name, f in functions(module, "check_").items()
    }
    wrong = {name: named(run) for name, run in functions(broken, "run_").items()}
    print(json.dumps({"right": right, "broken": wrong}, indent=1))


if __name__ == "__main__":
    main()
