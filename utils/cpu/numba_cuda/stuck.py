"""Says why no thread can go on: a barrier only some reach, absent lanes, a deadlock.

Each function returns a BarrierError that names the thread and line which waits.
"""

from .errors import BarrierError, as_text


def _error(launch, block, waiter, problem, hint):
    error = BarrierError(problem, hint)
    error.thread = launch.coordinates[waiter.rank][:3]
    error.block = block.index
    error.place = waiter.frame, waiter.site[1], waiter.line
    return error


def _some(launch, ranks):
    """'thread (0,0,0)' or '16 threads (first (0,0,0))'."""
    first = as_text(launch.coordinates[min(ranks)][:3])
    return f"thread {first}" if len(ranks) == 1 else f"{len(ranks)} threads (first {first})"


def _where(launch, waiter):
    """Which function a line is in, if it is not the kernel itself; else ""."""
    name = waiter.frame.f_code.co_name
    return "" if name == launch.function.__name__ else f" (in {name}, which the kernel calls)"


def different_barriers(launch, block):
    """All threads wait at __syncthreads, but not at the same call."""
    places = {}
    for waiter in block.barrier:
        places.setdefault(waiter.line, []).append(waiter.rank)
    text = "; ".join(
        f"{_some(launch, ranks)} at line {line}" for line, ranks in sorted(places.items())
    )
    return _error(
        launch,
        block,
        max(block.barrier, key=lambda waiter: waiter.line),
        f"Threads of one block wait at different barriers: {text}",
        "cuda.syncthreads() must be the same call for all threads: move it out of the branch.",
    )


def stuck(launch, block):
    """Some threads wait, the others have returned or wait elsewhere."""
    if block.groups:
        return _absent_lanes(launch, block)
    waiting = sorted(block.barrier + block.grid_barrier, key=lambda waiter: waiter.rank)
    places = {}
    for waiter in waiting:
        places.setdefault((waiter.what, waiter.line), []).append(waiter.rank)
    missing = sorted(set(block.finished) - set(block.left))
    gone = len(missing)
    text = "; ".join(
        f"{_some(launch, ranks)} in {what} at line {n}" for (what, n), ranks in places.items()
    )
    if len(places) > 1:
        return _error(
            launch,
            block,
            waiting[0],
            f"Deadlock: no thread of the block can go on. {text}"
            + (f"; {gone} returned" if gone else ""),
            "Threads that wait for each other must wait at the same call.",
        )
    out = as_text(launch.coordinates[missing[0]][:3])
    return _error(
        launch,
        block,
        waiting[0],
        f"{len(waiting)} of {block.size} threads wait at {waiting[0].what}, line "
        f"{waiting[0].line}{_where(launch, waiting[0])}, but "
        f"{gone} {'has' if gone == 1 else 'have'} returned without reaching it (thread {out}, say)",
        "Every thread of the block must reach the barrier: no return and no branch around it.",
    )


def _absent_lanes(launch, block):
    """A warp operation whose mask names lanes that wait elsewhere."""
    (warp, mask, what, _), group = min(block.groups.items(), key=lambda item: item[1][0][0].rank)
    waiter = group[0][0]
    present = sum(1 << (other.rank & 31) for other, _ in group)
    absent = mask & block.live_mask(warp) & ~present
    elsewhere = {}
    in_groups = [waiter for group in block.groups.values() for waiter, _ in group]
    others = block.barrier + block.grid_barrier + in_groups
    for other in others:
        if other.rank >> 5 == warp and absent >> (other.rank & 31) & 1:
            elsewhere.setdefault((other.what, other.line), []).append(other.rank)
    text = "; ".join(
        f"{_some(launch, ranks)} in {w} at line {n}" for (w, n), ranks in elsewhere.items()
    )
    return _error(
        launch,
        block,
        waiter,
        f"{what} at line {waiter.line} waits for ever: its mask 0x{mask:08x} names lanes of warp "
        f"{warp} that do not come (0x{absent:08x}): {text}",
        "All lanes named in the mask must reach the same call: give each branch the mask of its "
        "own lanes.",
    )


def grid_divergence(launch, parked):
    """Some blocks wait at grid.sync(), the others have ended."""
    return _error(
        launch,
        parked[0],
        parked[0].grid_barrier[0],
        f"{len(parked)} of {launch.grid_size} blocks wait at grid.sync(), but the others have "
        "returned without it",
        "Every thread of every block must reach grid.sync().",
    )


def cannot_wait(launch, block, waiter):
    """A thread was to wait where it cannot be put aside: its kernel is no generator."""
    return _error(
        launch,
        block,
        waiter,
        f"{waiter.what} at line {waiter.line}: without greenlets a thread can wait only where the "
        "source of the kernel shows it",
        "Define the kernel with `def`, and call the barrier by its own name.",
    )
