"""Measures everything of this folder on however many GPUs a machine has.

    python -m course.kernels.many_gpus.measure --out results.json --budget 480
    python -m course.kernels.many_gpus.measure --parts links reduce     some parts only

The parts, in the order in which they run; each result is written as soon as it is there:

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
#: Parts that share their processes: one that breaks its GPU's context costs the others of its row.
SESSIONS = (("train",), ("reduce", "bf16", "window", "links"), ("ddp",), ("gate",), ("autotune",))
#: Seconds that a part may take of a budget of 150; with another budget in proportion.
SECONDS = {
    "train": 20,
    "reduce": 30,
    "links": 8,
    "bf16": 8,
    "window": 12,
    "ddp": 40,
    "gate": 40,
    "autotune": 60,
}
BATCH = 4096
AUTOTUNE = "graph_max_autotune_bf16_channels_last"
HEAP, SCRATCH = (2 << 30) + (64 << 20), (1 << 30) + (1 << 20)
PATIENCE = 5.0  # seconds that a kernel waits for another rank


# ---- what runs on every rank ---------------------------------------------------------------------


def session(group, parts, out, modes) -> None:
    """Run some parts, [(name, seconds)], on this rank. The next one runs also if one fails."""
    from course.kernels.many_gpus.communicator import Communicator
    from course.kernels.many_gpus.recording import Clock, Recording

    recording = Recording(out, group.rank, group.size)
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
        if group.rank == 0:
            print(f"== {part}: {time.monotonic() - start:.1f} s", flush=True)


def train(communicator, recording, clock, _modes):
    """Data-parallel training: checked, then timed."""
    from course.kernels.many_gpus import training

    good = training.check(communicator, 256, recording)
    good = training.check(communicator, BATCH, recording) and good
    training.measure(communicator, recording, clock, (BATCH, 1024, 256), good)
    training.measure_strong(communicator, recording, BATCH)


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
    rivals.measure(communicator, recording, clock, sizes, torch.bfloat16, rounds=5)


def window(communicator, recording, clock, _modes):
    """All-reduces beside NCCL's with registered memory."""
    from course.kernels.many_gpus import rivals

    rivals.measure_window(communicator, recording, clock)


def ddp(communicator, recording, clock, modes):
    """Our training beside PyTorch's DDP."""
    from course.kernels.many_gpus import ddp

    ddp.race(communicator, recording, clock, BATCH, [m for m in modes if m != AUTOTUNE])


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
            work.append(pool.submit(launch, measure.prepare_ddp, ranks, [modes], timeout=seconds))
        for each in work:
            try:
                each.result()
            except Exception as error:
                print("FAILED prepare:", str(error)[-3000:], flush=True)


def prepare_ddp(group, modes):
    """Let torch.compile do its work."""
    from course.kernels.many_gpus import ddp

    ddp.prepare(BATCH, modes, group)


def _run_session(parts, options, ranks, seconds):
    """Run parts on all ranks; an error is printed and kept, and the other sessions go on."""
    from course.kernels.many_gpus import measure  # by its name, also where this is __main__
    from course.kernels.many_gpus.launch import launch
    from course.kernels.many_gpus.recording import Recording

    start = time.monotonic()
    arguments = [parts, options.out, options.modes]
    names = " ".join(part for part, _ in parts)
    try:
        launch(measure.session, ranks, arguments, timeout=seconds, patience=120)
    except Exception as error:
        Recording(options.out).note(f"FAILED {names}", str(error) or traceback.format_exc())
        print(f"FAILED {names}:\n{str(error)[-2500:]}", flush=True)
    print(f"== session {names}: {time.monotonic() - start:.1f} s", flush=True)


def main(arguments=None) -> int:
    """Command line; returns the exit status."""
    from course.kernels.many_gpus import ddp

    parser = argparse.ArgumentParser(
        prog="python -m course.kernels.many_gpus.measure", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--out", default="many_gpus.json", help="file for the results")
    parser.add_argument("--budget", type=float, default=480, help="seconds for everything")
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=[p for p in PARTS if p != "gate"]
    )
    parser.add_argument("--ranks", type=int, help="GPUs to use (default: all)")
    parser.add_argument("--modes", nargs="*", default=list(ddp.MODES), choices=ddp.MODES)
    options = parser.parse_args(arguments)
    options.out = os.path.abspath(options.out)
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    ranks = options.ranks or _gpus()
    if ranks < 2:
        print("this needs two GPUs or more", file=sys.stderr)
        return 1
    scale = options.budget / 150
    if "prepare" in options.parts:
        prepare(ranks, options.modes if "ddp" in options.parts else [], options.budget * 0.4)
        print(f"== prepare: {time.monotonic() - started:.1f} s", flush=True)
    for row in SESSIONS:
        parts = [(part, SECONDS[part] * scale) for part in row if part in options.parts]
        left = options.budget - (time.monotonic() - started)
        if parts and left < 12:
            print(f"== {' '.join(row)}: left out, the budget is used up", flush=True)
        elif parts:
            parts = [(part, min(seconds, left - 8)) for part, seconds in parts]
            _run_session(parts, options, ranks, left)
    if "model" in options.parts:
        from course.kernels.many_gpus import model

        model.add_to(options.out, ranks)
    print(f"== all: {time.monotonic() - started:.1f} s", flush=True)
    return 0


def _gpus() -> int:
    import torch

    return torch.cuda.device_count()


if __name__ == "__main__":
    sys.exit(main())
