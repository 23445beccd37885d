"""Who did the work, and by what means: one launch counted, of either engine, and what it must be.

An answer is held against the exercise's own solution in the same launch on the same inputs. So
"one thread does everything" needs no rule of its own in any exercise.
"""

from dataclasses import dataclass, fields

import numpy as np

from course.checking.model import Exercise, Launch
from utils.tracer import ACCESSES, ATOMIC, BARRIER, MEETING, Trace

#: Accesses that the busiest thread may always make beyond its share.
SPARE = 2
#: As many times the solution's accesses all threads may make together.
TOTAL = 6
#: Of the growth of the busiest thread's accesses, the part by which all threads' have grown where
#: each of them does more than it need.
EVENLY = 0.7

#: Means that a right answer uses as often as the solution: they are how it moves all there is.
WIDE = ("wide", "wide_loads")

MEANS = {
    "shared": "Use shared memory: here no thread reads any.",
    "barriers": "Use `__syncthreads()`: here no thread comes to one.",
    "atomics": "Use an atomic operation: here no thread runs one.",
    "shuffles": "Use the warp's shuffles: here no lane takes part in one.",
    "wide": "Load and store 16 bytes at once (`float4`): here no store is so wide, or few.",
    "products": "Multiply on the tensor cores: here no warp runs `mma_sync`.",
    "wide_loads": "Load and store 16 bytes at once (`float4`): here no load is so wide, or few.",
}
FORBIDDEN = {
    "shared": "Without shared memory, please.",
    "atomics": "Without atomic operations, please.",
    "shuffles": "Without shuffles, please.",
    "sums": "Without atomic additions, please: an atomic operation adds up here.",
    "partial": "Some threads end before a `__syncthreads()` that the others come to: let every"
    " thread of the block reach it.",
}
NO_MORE = {
    "barriers": "`__syncthreads()` makes all threads of the block wait for each other more often"
    " than they have to.",
}

STORED_TWICE = "Threads store to elements that other threads have stored to."
WAITS = (
    "A thread reads one place again and again, until others have written it. These may wait until"
    " its block has ended, in a launch that is not cooperative: let who comes last go on."
)


@dataclass(frozen=True)
class Work:
    """Counts of one launch.

    busiest: accesses to memory of the thread with the most; total: of all threads. The others say
    how often something was used: reads of shared memory, barriers (threads that came to one),
    atomics, shuffles (lanes that took part), global stores of 16 bytes. global_bytes: that went
    to and from global memory. CUDA C only: wide_loads, of 16 bytes; sums, atomics that added more
    than one; products, of tensor cores, or their matrices' loads; rewrites, stores to what another
    thread had stored; partial, barriers that came after some threads of the block had ended.
    """

    busiest: int
    total: int
    threads: int
    shared: int = 0
    barriers: int = 0
    atomics: int = 0
    shuffles: int = 0
    wide: int = 0
    wide_loads: int = 0
    sums: int = 0
    products: int = 0
    global_bytes: int = 0
    rewrites: int = 0
    partial: int = 0


def work_of(traced: Trace) -> Work:
    """The Work of a traced launch of a Numba kernel."""
    events = traced.events
    accesses = np.isin(events.kind, ACCESSES)
    thread = events.thread[accesses]
    spaces = events.spaces[events.memory[accesses]] if len(thread) else np.array([], object)
    kept = thread[spaces != "local"]
    threads = traced.blocks * traced.threads_a_block
    each = np.bincount(kept, minlength=threads)
    return Work(
        busiest=int(each.max(initial=0)),
        total=len(kept),
        threads=threads,
        shared=int((spaces == "shared").sum()),
        barriers=int((events.kind == BARRIER).sum()),
        atomics=int((events.kind == ATOMIC).sum()),
        shuffles=int((events.kind == MEETING).sum()),
        global_bytes=int(events.size[accesses][spaces == "global"].sum()),
    )


def counted(counts: dict[str, int], launch: Launch) -> Work:
    """The Work of a watched launch of a CUDA C kernel; counts: as of `Module.counts`."""
    names = {field.name for field in fields(Work)}
    known = {name: n for name, n in counts.items() if name in names}
    return Work(threads=int(np.prod(launch.threads)), **known)


def unmet(work: Work, least: Work, exercise: Exercise) -> tuple[str, str] | None:
    """(reason, sentence) of what the answer's Work should not be, or None.

    least: the Work of the exercise's solution in the same launch.
    """
    for means in exercise.needs:
        if getattr(work, means) < (getattr(least, means) if means in WIDE else 1):
            return "no_shared" if means == "shared" else "other_means", MEANS[means]
    for means in exercise.without:
        if getattr(work, means):
            return "barrier" if means == "partial" else "other_means", FORBIDDEN[means]
    for means in exercise.no_more:
        if getattr(work, means) > getattr(least, means):
            return "other_means", NO_MORE[means]
    spare = SPARE if exercise.effort > 1 else 0
    if work.busiest > exercise.effort * least.busiest + spare:
        if work.total * least.busiest > least.total * work.busiest * EVENLY:
            return "too_much_work", (
                f"A thread accesses memory {work.busiest:,} times where {least.busiest:,} times"
                " would do: is something loaded or stored more than once?"
            )
        return "one_thread", (
            f"In a launch of {work.threads} threads one of them accessed memory {work.busiest:,}"
            f" times, where {least.busiest:,} times would do: share the work out among all threads."
        )
    if work.global_bytes > exercise.traffic * least.global_bytes:
        return "too_much_traffic", (
            f"{work.global_bytes:,} bytes move between the threads and global memory, where"
            f" {least.global_bytes:,} would do: what is needed again belongs in shared memory or"
            " in registers."
        )
    if work.rewrites > least.rewrites and not exercise.shared_output:
        return "duplicate_work", STORED_TWICE
    if work.total > max(TOTAL, exercise.effort) * least.total + SPARE * work.threads:
        return "too_much_work", (
            f"All threads together accessed memory {work.total:,} times, where {least.total:,}"
            " times would do: is everything done by every thread?"
        )
    return None
