"""Run every program of a folder on the CPU engine and print what happened as JSON.

    python -m tests.conformance.numba.run FOLDER [SEED ...]

For each program and seed (`-`: threads in order): what it printed and, if it failed, the error's
type, text and line; for `SEED by generators` the same where threads wait as they do without
greenlets. A process of its own, so that the engine is used on machines with a GPU as well.
"""

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path

from utils.cpu import numba_cuda
from utils.cpu.numba_cuda import fibres

WAYS = {"": contextlib.nullcontext, " by generators": fibres.by_generators}


def run(source, seed):
    printed, problem = io.StringIO(), None
    try:
        with (
            contextlib.redirect_stdout(printed),
            numba_cuda.schedule(seed),
            numba_cuda.time_limit(20),
        ):
            runpy.run_path(str(source))
    except Exception as error:
        problem = {
            "type": type(error).__name__,
            "text": str(error),
            "line": getattr(error, "lineno", None),
        }
    return {"printed": printed.getvalue(), "problem": problem}


def run_in(way, source, seed):
    with WAYS[way]():
        return run(source, seed)


def main():
    folder, *seeds = sys.argv[1:]
    numba_cuda.install()
    results = {
        source.stem: {
            seed + way: run_in(way, source, None if seed == "-" else int(seed))
            for seed in seeds or ["-"]
            for way in WAYS
        }
        for source in sorted(Path(folder).glob("*.py"))
    }
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
