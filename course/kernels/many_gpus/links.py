"""Peer copies between all pairs of GPUs: bandwidth by copy engines and by kernels, and latency."""

import itertools
import statistics
import time

from course.kernels.many_gpus.communicator import Communicator, CommunicatorError
from course.kernels.many_gpus.recording import Recording

BYTES = 256 << 20
REPEATS, ROUNDS = 9, 2000
KERNEL = (132, 512)  # blocks, threads of a copy by the multiprocessors


def _rate(
    communicator,
    to,
    source,
    repeats=REPEATS,
    **how,
) -> float:
    """Bytes a second of a copy between two addresses, median."""
    import torch

    times = []
    for _ in range(repeats + 1):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        communicator.copy(to, source, BYTES, **how)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return BYTES / statistics.median(times[1:]) * 1e3


WAYS = {
    "push": {},
    "pull": {},
    "kernel_push": {"kernel": KERNEL},
    "kernel_pull": {"kernel": KERNEL},
}


def measure(communicator, recording: Recording) -> None:
    """Record many_gpus/peer_copy/<how>/<from>_<to>, bytes a second, and the latencies, seconds."""
    mark = communicator.mark()
    here, there = communicator.allocate(BYTES), communicator.allocate(BYTES)
    _pairs(communicator, recording, here, there)
    _all_at_once(communicator, recording, here, there)
    _latencies(communicator, recording)
    communicator.check()
    communicator.release(mark)


def _pairs(communicator, recording, here, there):
    """Every way from every GPU to every other, one after the other."""
    group, size = communicator.group, communicator.size
    best = {}
    for way, how in WAYS.items():
        for a, b in itertools.product(range(size), repeat=2):
            if a == b and way != "push":
                continue
            mine = a if "push" in way else b
            rate = None
            group.barrier()
            if communicator.rank == mine:
                target, source = communicator.address(there, b), communicator.address(here, a)
                rate = _rate(communicator, target, source, **how)
            rate = group.all_gather(rate)[mine]
            recording.add(f"many_gpus/peer_copy/{way}/{a}_{b}", rate, "B/s")
            if a != b:
                best[a, b] = max(best.get((a, b), 0), rate)
    if best:
        recording.add("many_gpus/peer_copy/bandwidth", min(best.values()), "B/s")


def _all_at_once(communicator, recording, here, there):
    """Everyone sends to the next at the same time."""
    group = communicator.group
    peer = (communicator.rank + 1) % communicator.size
    for way, how in (("both_push", {}), ("both_kernel_push", {"kernel": KERNEL})):
        group.barrier()
        source = communicator.address(here)
        rate = _rate(
            communicator,
            communicator.address(there, peer),
            source,
            20,
            **how,
        )
        recording.add(f"many_gpus/peer_copy/{way}", min(group.all_gather(rate)), "B/s")


def _latencies(communicator, recording):
    """Seconds of a word's way from each GPU to each other."""
    import torch

    group, rank = communicator.group, communicator.rank
    clock = torch.zeros(
        1,
        dtype=torch.int64,
        device="cuda",
    )
    for a, b in itertools.combinations(range(communicator.size), 2):
        for rounds in (10, ROUNDS):
            group.barrier()
            if rank in (a, b):
                peer = b if rank == a else a
                communicator.ping_pong(peer, rounds, rank == a, clock.data_ptr())
            torch.cuda.synchronize()
        seconds = group.all_gather(clock.item() / (ROUNDS - 1) / 2 * 1e-9)[a]
        recording.add(f"many_gpus/peer_copy/latency/{a}_{b}", seconds, "s")


def missing_rank(group, recording: Recording) -> None:
    """Record how long a kernel waits for a rank that does not call, before it ends and names it."""
    import torch

    patience = 0.25
    communicator = Communicator(group, 1 << 16, 1 << 16, patience).connect()
    numbers = communicator.empty(64)
    start, named = time.perf_counter(), False
    if group.rank == 0:
        communicator.all_reduce(numbers)  # and no other rank does
        torch.cuda.synchronize()
        try:
            communicator.check()
        except CommunicatorError as error:
            named = "of rank 1" in str(error)
            print(error, flush=True)
    took = time.perf_counter() - start
    recording.add(
        "many_gpus/missing_rank/seconds",
        took,
        "s",
        named=named,
        patience=patience,
    )
    group.barrier()
