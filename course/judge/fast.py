"""Is it fast? On a GPU it is timed beside its rival; without one it is said that nobody knows."""

import statistics
import time

from course.judge import handed_in, sandbox
from course.judge.report import NO, YES, Answer, Reason
from course.judge.values import plain_of

ROUNDS = 30
SETS = 3
TURNS = 4
#: The rest of the device may be done this share later than the call's own stream, or these ms
LATER, LATER_MS = 0.25, 0.05
#: A time that is told may be this share of what the judge's own clock says of many calls
TOLD = 0.3
#: Milliseconds of one call, below which the judge's clock sees nothing but the way there and back
SEEN_MS = 0.2


def answer(box, rival, trials, demands, found) -> Answer:
    """The answer where there is a GPU. box, rival: sandboxes in which both are loaded."""
    size = demands.timed_size if demands.timed_size is not None else trials.size
    times = {"candidate": [], "rival": []}
    reasons = list(found)
    order = [("candidate", box), ("rival", rival)]
    for turn in range(TURNS):
        for name, one in order if turn % 2 else reversed(order):
            took = timed(one, trials, size, rival=name == "rival")
            times[name] += took["own"]
            if name == "candidate":
                reasons += of_clocks(took)
    mine, theirs = (statistics.median(times[name]) for name in ("candidate", "rival"))
    evidence = {
        "milliseconds": {name: spread_of(one) for name, one in times.items()},
        "size": str(size),
        "times_as_fast": theirs / mine,
    }
    reasons += beyond_the_roof(demands, trials, size, mine)
    if not reasons and mine > theirs:
        says = f"{mine:.4g} ms, and its rival takes {theirs:.4g} ms."
        reasons.append(Reason.of("slower", says))
    unique = {reason.key: reason for reason in reasons}
    return Answer(NO if unique else YES, tuple(unique.values()), evidence)


def spread_of(samples):
    """Median, least and half the interquartile range."""
    low, middle, high = statistics.quantiles(samples, n=4)
    return {"median": middle, "least": min(samples), "spread": (high - low) / 2}


def timed(box, trials, size, rival=False):
    """What a process tells of its calls, and how long the judge waited for one of them."""
    sets = [trials.draw(size) for _ in range(SETS)]
    plain = [[plain_of(trials.filled(value)) for value in one] for one in sets]
    packed = [list(map(sandbox.pack, one)) for one in plain]
    launch = trials.demands.launch(*plain[0]) if trials.demands.launch and not rival else None
    waited = {}
    for rounds in (1, ROUNDS):
        begin = time.perf_counter()
        header, _ = box.ask(
            "time", patience=sandbox.STARTING, sets=packed, rounds=rounds, launch=launch
        )
        waited[rounds] = 1e3 * (time.perf_counter() - begin)
    each = (waited[ROUNDS] - waited[1]) / (ROUNDS - 1)
    return {"own": header["own"], "whole": header["whole"], "each": each}


def of_clocks(took):
    """The reasons that two clocks show which do not agree."""
    own, whole = statistics.median(took["own"]), statistics.median(took["whole"])
    found = []
    if whole > own + max(LATER_MS, LATER * own):
        says = f"Its own stream was done after {own:.4g} ms, the device after {whole:.4g} ms."
        found.append(Reason.of("left_running", says))
    if took["each"] > SEEN_MS and whole < TOLD * took["each"]:
        says = f"It tells {whole:.4g} ms per call, and the judge waited {took['each']:.4g} ms."
        found.append(Reason.of("clock_differs", says))
    return found


def beyond_the_roof(demands, trials, size, milliseconds):
    """The reason for a time in which the GPU cannot even move the bytes, or do the operations."""
    from utils.timing import copy_bandwidth, matmul_rate

    arguments = [plain_of(one) for one in trials.draw(size)]
    limits = []
    if demands.bytes:
        limits.append(("move the bytes", demands.bytes(*arguments) / copy_bandwidth()))
    if demands.flops:
        limits.append(("do the work", demands.flops(*arguments) / matmul_rate("bfloat16")))
    for what, seconds in limits:
        if 1e-3 * milliseconds < 0.5 * seconds:
            says = f"{milliseconds:.4g} ms, and to {what} takes {1e3 * seconds:.4g} ms."
            return [Reason.of("too_fast", says)]
    return []


def rival_of(demands, reference):
    """What a candidate is raced with, as it is handed in."""
    return handed_in.of(demands.rival or reference, demands)
