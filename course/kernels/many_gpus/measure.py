"""Measures everything of this folder on however many GPUs a machine has: on all, then on fewer.

    python -m course.kernels.many_gpus.measure --out results.json --budget 480
    python -m course.kernels.many_gpus.measure --parts links reduce     some parts only

On two GPUs names are many_gpus/..., with more of them many_gpus/<ranks>/... The parts, the most
important first; each result is written as soon as it is there:

    prepare   what compilers have to do: nvcc, and torch.compile for the rival
    train     data-parallel training: right? how does it scale?
    reduce    all-reduces of all sizes, ours and NCCL's
    links     peer copies between all pairs
    bf16      all-reduces of bfloat16
    window    all-reduces beside NCCL's with registered memory
    ddp       our training beside PyTorch's DistributedDataParallel
    autotune  the same with PyTorch's mode that compiles longest
    gate      test accuracy, ours beside PyTorch's in fp32 (needs MNIST, see utils/data.py)
    model     time = alpha + bytes / beta, and what it predicts for more GPUs
"""

import argparse
import os
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PARTS = (
    "prepare",
    "train",
    "reduce",
    "links",
    "bf16",
    "window",
    "gate",
    "ddp",
    "autotune",
    "model",
)
#: What runs in the same processes, on how many of the machine's GPUs: one that breaks its GPU's
#: context costs the others of its row. What a smaller number of GPUs adds comes behind the largest.
SESSIONS = (
    ("all", ("train",)),
    ("all", ("reduce", "links")),
    ("fewer", ("train", "reduce")),
    ("all", ("bf16", "window")),
    ("all", ("ddp",)),
    ("all", ("gate",)),
    ("all", ("autotune",)),
)
#: Seconds that a part may take of a budget of 480; with another budget in proportion.
SECONDS = {
    "train": 60,
    "reduce": 60,
    "links": 25,
    "bf16": 20,
    "window": 25,
    "ddp": 120,
    "gate": 80,
    "autotune": 120,
}
BUDGET = 480
#: Of the budget, how much of it compilers may take for the rivals; and what a session needs to
#: start and to end, seconds.
FOR_COMPILERS, AROUND = 0.25, 45
BATCH = 4096
AUTOTUNE = "graph_max_autotune_bf16_channels_last"
HEAP, SCRATCH = (2 << 30) + (64 << 20), (1 << 30) + (1 << 20)
PATIENCE = 5.0  # seconds that a kernel waits for another rank


# ---- what runs on every rank ---------------------------------------------------------------------


def session(group, parts, out, modes, gpus) -> None:
    """Run some parts, [(name, seconds)], on this rank. The next one runs also if one fails.

    gpus: of the machine, of which as many are used as there are ranks.
    """
    from course.kernels.many_gpus.communicator import Communicator
    from course.kernels.many_gpus.recording import Clock, Recording

    recording = Recording(out, group.rank, group.size, gpus)
    recording.machine()
    communicator = Communicator(group, HEAP, SCRATCH, PATIENCE).connect()
    if any(part != "train" for part, _ in parts):
        from course.kernels.many_gpus.rivals import join_nccl

        join_nccl(group)
    for part, seconds in parts:
        mark, start = communicator.mark(), time.monotonic()
        error = ""
        try:
            WORK[part](communicator, recording, Clock(seconds), modes)
        except Exception:
            error = traceback.format_exc()
            communicator.release(mark)
        errors = [e for e in group.all_gather(error) if e]
        if errors:
            recording.note(f"FAILED {part}", errors[0][-2500:])
            communicator.reset()
        if group.rank == 0:
            print(f"== {part}: {time.monotonic() - start:.1f} s", flush=True)


def train(communicator, recording, clock, _modes):
    """Data-parallel training: checked, then timed."""
    from course.kernels.many_gpus import training

    good = training.check(communicator, BATCH, recording)
    training.measure(communicator, recording, clock, (BATCH,), good)
    training.measure_strong(communicator, recording, BATCH, good)
    good = training.check(communicator, 256, recording) and good
    training.measure(
        communicator,
        recording,
        clock,
        (1024, 256),
        good,
    )


def reduce(communicator, recording, clock, _modes):
    """All-reduces in float32."""
    from course.kernels.many_gpus import rivals

    rivals.measure(communicator, recording, clock)


def links(communicator, recording, _clock, _modes):
    """Peer copies between all pairs."""
    from course.kernels.many_gpus import links

    links.measure(communicator, recording)
    links.missing_rank(communicator.group, recording)


def bf16(communicator, recording, clock, _modes):
    """All-reduces in bfloat16, of fewer sizes."""
    import torch

    from course.kernels.many_gpus import rivals

    sizes = [4 * rivals.KIB, 256 * rivals.KIB, rivals.MIB, 64 * rivals.MIB, rivals.GIB]
    rivals.measure(
        communicator,
        recording,
        clock,
        sizes,
        torch.bfloat16,
        rounds=5,
    )


def window(communicator, recording, clock, _modes):
    """All-reduces beside NCCL's with registered memory."""
    from course.kernels.many_gpus import rivals

    rivals.measure_window(communicator, recording, clock)


def ddp(communicator, recording, clock, modes):
    """Our training beside PyTorch's DDP."""
    from course.kernels.many_gpus import ddp

    ddp.race(
        communicator,
        recording,
        clock,
        BATCH,
        [m for m in modes if m != AUTOTUNE],
    )


def autotune(communicator, recording, clock, modes):
    """The same with the mode that compiles longest, in a session of its own."""
    from course.kernels.many_gpus import ddp

    if AUTOTUNE in modes:
        ddp.race(
            communicator, recording, clock, BATCH, ["graph_compile_bf16_channels_last", AUTOTUNE]
        )


def gate(communicator, recording, clock, _modes):
    """Test accuracy."""
    from course.kernels.many_gpus import gate

    gate.measure(communicator, recording, clock)


WORK = {part.__name__: part for part in (train, reduce, links, bf16, window, ddp, gate, autotune)}


# ---- the command ---------------------------------------------------------------------------------


def prepare(ranks, modes, seconds) -> None:
    """All that compilers have to do, side by side."""
    from course.kernels.many_gpus import (  # measure: by its name, also where this is __main__
        build,
        measure,
    )
    from course.kernels.many_gpus.launch import launch
    from course.kernels.mnist_cnn import fast

    with ThreadPoolExecutor() as pool:
        work = [pool.submit(build.library, source) for source in build.SOURCES]
        work.append(pool.submit(fast.build, "bf16"))
        if modes:
            work.append(
                pool.submit(
                    launch,
                    measure.prepare_ddp,
                    ranks,
                    [modes],
                    timeout=seconds,
                )
            )
        for each in work:
            try:
                each.result()
            except Exception as error:
                print("FAILED prepare:", str(error)[-3000:], flush=True)


def prepare_ddp(group, modes):
    """Let torch.compile do its work."""
    from course.kernels.many_gpus import ddp

    ddp.prepare(BATCH, modes, group)


def counts(gpus: int) -> list[int]:
    """How many of a machine's GPUs are used, the most first: 8, 4, 2."""
    return sorted({gpus, *(n for n in (2, 4, 8) if n < gpus)}, reverse=True)


def plan(
    gpus: int,
    parts,
    budget: float,
) -> list[tuple[int, list[tuple[str, float]]]]:
    """What runs in which order: [(ranks, [(part, seconds), ...])], the most important first."""
    scale = budget / BUDGET
    sessions = []
    for on, row in SESSIONS:
        timed = [(part, SECONDS[part] * scale) for part in row if part in parts]
        for ranks in counts(gpus)[:1] if on == "all" else counts(gpus)[1:]:
            if timed:
                sessions.append((ranks, timed))
    return sessions


def _run_session(parts, options, ranks, gpus, seconds):
    """Run parts on so many ranks; an error is printed and kept, and the other sessions go on."""
    from course.kernels.many_gpus import measure  # by its name, also where this is __main__
    from course.kernels.many_gpus.launch import launch
    from course.kernels.many_gpus.recording import Recording

    start = time.monotonic()
    arguments = [parts, options.out, options.modes, gpus]
    names = f"{ranks} GPUs: {' '.join(part for part, _ in parts)}"
    try:
        launch(
            measure.session,
            ranks,
            arguments,
            timeout=seconds,
            patience=90,
        )
    except Exception as error:
        Recording(options.out).note(f"FAILED {names}", str(error) or traceback.format_exc())
        print(f"FAILED {names}:\n{str(error)[-2500:]}", flush=True)
    print(f"== session on {names}: {time.monotonic() - start:.1f} s", flush=True)


def _run_sessions(options, gpus, end):
    """All sessions for which there is time: no part may take what its seconds do not give it."""
    for ranks, parts in plan(gpus, options.parts, options.budget):
        left = end - time.monotonic()
        names = " ".join(part for part, _ in parts)
        if left < 12:
            print(f"== {names} on {ranks} GPUs: left out, the budget is used up", flush=True)
            continue
        most = sum(seconds for _, seconds in parts) + AROUND
        shorter = [(part, min(seconds, left - 8)) for part, seconds in parts]
        _run_session(shorter, options, ranks, gpus, min(left, most))


def _options(arguments):
    from course.kernels.many_gpus import ddp

    parser = argparse.ArgumentParser(
        prog="python -m course.kernels.many_gpus.measure", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--out",
        default="many_gpus.json",
        help="file for the results",
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=BUDGET,
        help="seconds for everything",
    )
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=PARTS,
        help="(default: all but the gate)",
    )
    parser.add_argument(
        "--ranks",
        type=int,
        help="GPUs to use, and fewer (default: all)",
    )
    parser.add_argument(
        "--modes",
        nargs="*",
        default=list(ddp.MODES),
        choices=ddp.MODES,
    )
    options = parser.parse_args(arguments)
    options.out = os.path.abspath(options.out)
    return options


def main(arguments=None) -> int:
    """Command line; returns the exit status."""
    options = _options(arguments)
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    gpus = options.ranks or _gpus()
    if gpus < 2:
        print("this needs two GPUs or more", file=sys.stderr)
        return 1
    # With many GPUs the time goes to how our code scales; what PyTorch does was asked on two.
    seldom = {"gate"} if gpus == 2 else {"gate", "autotune"}
    options.parts = options.parts or [part for part in PARTS if part not in seldom]
    if "autotune" not in options.parts:
        options.modes = [mode for mode in options.modes if mode != AUTOTUNE]
    if "prepare" in options.parts:
        # On two GPUs the rival compiles beside nvcc; on more it does so in its own, last session.
        modes = options.modes if "ddp" in options.parts and gpus == 2 else []
        prepare(gpus, modes, options.budget * FOR_COMPILERS)
        print(f"== prepare: {time.monotonic() - started:.1f} s", flush=True)
    _run_sessions(options, gpus, started + options.budget)
    if "model" in options.parts:
        from course.kernels.many_gpus import model

        model.add_to(options.out, gpus)
    print(f"== all: {time.monotonic() - started:.1f} s", flush=True)
    return 0


def _gpus() -> int:
    import torch

    return torch.cuda.device_count()


if __name__ == "__main__":
    sys.exit(main())
