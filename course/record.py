"""Run notebooks and keep what they show: on a GPU its outputs and times, without one what is new.

    python -m course.record [--budget SECONDS] [--results-only] [NOTEBOOK.ipynb ...]
    python -m course.record --cpu [--all] [--cells ID,ID] [--since COMMIT] [NOTEBOOK.ipynb ...]

The first is `make record`: it runs every notebook on this machine's GPU, several at a time, but
each cell alone that times something, and writes the measured numbers. The notebooks keep the
outputs of one GPU (RECORDED_ON in `utils.results.likeness`); on another one, and with
--results-only, they stay as they are, and results alone are written.

--cpu is for who has edited a chapter: it runs it on the CPU engines and measures nothing. Cells
whose code is that of the last commit, and of which nothing has changed that they depend on, keep
the outputs that were committed, which are a GPU's; cells that are new or changed get new ones.
What they depend on: names that other cells set, files that these write, and of the project what
draws, launches and asks (`course/recording/versions.py`). --cells takes some outputs anew all the
same, --all takes all. --since names another commit, where edits were committed before their
outputs.

What a notebook's process prints outside of its cells (a kernel's printf, a library's warning) goes
into a file of `build/recording`, one per notebook.

A notebook that fails is left as it was, its measurements are not recorded, and the command says so
and ends with status 1; the others are kept.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import nbformat

from course.chapters import notebooks
from course.recording import running, turns
from course.recording.cells import files_written
from course.recording.clocks import timed
from course.recording.keeping import Committed, Kept, keep, note_run
from course.recording.running import client_for  # noqa: F401  others run notebooks with it, too
from course.recording.tidy import tidy
from course.recording.versions import git
from utils import engine, hardware, results, widgets
from utils.files import ROOT, write_whole
from utils.results.likeness import RECORDED_ON

AT_ONCE = 4  # notebooks
CORES = 2  # that one of them keeps busy
MEMORY = 16 << 30  # bytes of a GPU that one of them may need


@dataclass(frozen=True)
class Options:
    """How to record.

    measure: take results. save: write the notebooks. since: the commit whose outputs stay where
    their work is the same, or None to take all anew. renew: ids of cells whose outputs are taken
    anew in any case. at_once: notebooks that run at a time.
    """

    measure: bool = True
    save: bool = True
    since: str | None = None
    renew: frozenset[str] = frozenset()
    at_once: int = 1


async def record_one(path: Path, options: Options, gate: turns.Turns, left, folder: Path) -> None:
    """Run one notebook; keep its outputs and its results. Raises running.Failed."""
    begun = time.monotonic()
    lines = folder / f"{path.stem}.jsonl"
    lines.touch()
    book = nbformat.read(path, as_version=4)
    alone = timed(book.cells) if options.measure else set()
    env = {
        **os.environ,
        # a recording must not show or change the progress of whoever runs it
        "CUDA_COURSE_PROGRESS": str(folder / "progress.json"),
        results.RECORD: str(lines) if options.measure else "",
        widgets.DRAW: "all",  # a page without Python can move what it shows, too
    }
    # a borrowed GPU must not wait for a cell that hangs; a busy laptop may take its time
    longest = running.CELL if options.measure else left()
    seconds = max(1, int(min(longest, left())))
    with log_of(path).open("w", encoding="utf-8") as log:
        await running.execute(book, path, running.turns_of(gate, alone), seconds, env, log)
    said = []
    if options.save:
        tidy(book)
        if options.since is not None:
            said = told(keep(book, Committed(path, options.since), options.renew))
        write_whole(path, nbformat.writes(book) + "\n")
        note_run(path)
    # results are written at once: a later notebook, or whoever stops the command, must not cost
    # what was measured
    entries = results.read_lines(lines)
    if entries:
        results.add(entries, hardware.this_gpu())
    print(f"{shown(path)}: {time.monotonic() - begun:.0f} s, {len(entries)} results", flush=True)
    for line in said:
        print("  ", line, flush=True)


def log_of(path: Path) -> Path:
    """Where what a notebook's process prints outside of its cells goes; its folder is made."""
    log = ROOT / "build" / "recording" / f"{path.stem}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    return log


def told(kept: Kept) -> list[str]:
    """What a recording without a GPU did to a notebook, in lines."""
    lines = []
    if kept.new:
        lines.append(f"first outputs, from the CPU engines: {', '.join(kept.new)}")
    if kept.renewed:
        lines.append(f"new outputs, from the CPU engines: {', '.join(kept.renewed)}")
    return [*lines, f"{kept.same} cells keep the outputs that were committed"]


def shown(path: Path) -> Path:
    """A path as the command names it."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def record(paths: list[Path], budget: float, options: Options) -> list[str]:
    """Run the notebooks; what went wrong, a line each. budget: seconds for all of them."""
    end = time.monotonic() + budget

    def left() -> float:
        return end - time.monotonic()

    async def all_of_them(folder: Path) -> dict[str, str]:
        gate = turns.Turns()
        jobs = [
            turns.Job(
                path.name,
                partial(record_one, path, options, gate, left, folder),
                files_written(nbformat.read(path, as_version=4).cells),
            )
            for path in paths
        ]
        return await turns.run(jobs, options.at_once, left)

    with tempfile.TemporaryDirectory() as folder:
        failures = asyncio.run(all_of_them(Path(folder)))
    return [f"{name}: {said}" for name, said in failures.items()]


def at_once(gpu: engine.GPU | None) -> int:
    """How many notebooks this machine can run at a time."""
    by_memory = gpu.memory_bytes // MEMORY if gpu else AT_ONCE
    return max(1, min(AT_ONCE, (os.cpu_count() or 1) // CORES, by_memory))


def is_commit(name: str) -> bool:
    """Whether git knows a commit of this name here."""
    return git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") is not None


def of_the_notebooks() -> bool:
    """Whether this GPU is the one whose outputs the notebooks keep; says so where it is not."""
    here = engine.gpu().name
    if here != RECORDED_ON:
        print(f"the notebooks keep the outputs of the {RECORDED_ON}: of the {here}, results alone")
    return here == RECORDED_ON


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The command line's options."""
    parser = argparse.ArgumentParser(
        prog="python -m course.record", description=__doc__.splitlines()[0]
    )
    parser.add_argument("notebooks", nargs="*", type=Path, help="only these (default: all)")
    parser.add_argument(
        "--cpu", action="store_true", help="run on the CPU engines, measure nothing, keep what is"
    )
    parser.add_argument(
        "--all", action="store_true", help="with --cpu: take all outputs anew, a GPU's are lost"
    )
    parser.add_argument(
        "--cells", default="", help="with --cpu: ids of cells whose outputs are taken anew"
    )
    parser.add_argument(
        "--since", default="HEAD", help="with --cpu: the commit whose outputs stay (default HEAD)"
    )
    parser.add_argument(
        "--results-only", action="store_true", help="measure, and leave the notebooks as they are"
    )
    parser.add_argument(
        "--budget", type=float, default=570, help="seconds for everything (default 570)"
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    given = parsed(arguments)
    if given.cpu:
        os.environ[engine.FORCE_CPU] = "1"  # for the notebooks' kernels
    elif engine.gpu() is None:
        forced = f" ({engine.FORCE_CPU} is set)" if engine.forced_cpu() else ""
        print(
            f"recording needs an NVIDIA GPU, and there is none here{forced}; what you have edited "
            "is run on the CPU with --cpu",
            file=sys.stderr,
        )
        return 1
    missing = [str(p) for p in given.notebooks if not p.exists()]
    if missing:
        print(f"no such notebook: {', '.join(missing)}", file=sys.stderr)
        return 1
    paths = [path.resolve() for path in given.notebooks] or notebooks()
    since = given.since if given.cpu and not given.all else None
    if since and any(path.is_relative_to(ROOT) for path in paths) and not is_commit(since):
        print(
            f"git knows no commit {since!r} here, so it is not known which outputs may stay; --all "
            "takes all of them anew",
            file=sys.stderr,
        )
        return 1
    options = Options(
        measure=not given.cpu,
        save=given.cpu or (not given.results_only and of_the_notebooks()),
        since=since,
        renew=frozenset(filter(None, given.cells.split(","))),
        at_once=at_once(None if given.cpu else engine.gpu()),
    )
    print("on the CPU engines" if given.cpu else hardware.machine())
    failures = record(paths, given.budget, options)
    for failure in failures:
        print("FAILED", failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
