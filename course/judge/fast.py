"""Is it fast? On a GPU it is timed beside its rival; without one it is said that nobody knows."""

import statistics
import time

from course.judge import sandbox
from course.judge.report import NO, UNKNOWN, YES, Answer, Reason
from course.judge.values import plain_of
from utils import has_gpu

ROUNDS = 30
#: Rounds of a call that is slow: as many as take these seconds, but some
FEW_ROUNDS, SECONDS = 5, 0.5
WARM_UP, WARM_STILL = 3, 1
SETS = 2
TURNS = 4
#: The rest of the device may be done this share later than the call's own stream, or these ms
LATER, LATER_MS = 0.25, 0.05
#: What half the interquartile range may be: this share of the median, or these ms
STEADY, STEADY_MS = 0.5, 0.02
#: A time that is told may be this share of what the judge's own clock says of many calls
TOLD = 0.3
#: Milliseconds of one call, below which the judge's clock sees nothing but the way there and back
SEEN_MS = 0.5


class NotTimed(Exception):
    """A call failed while it was timed; the text says how."""


def answer(box, rival, trials, found) -> Answer:
    """The answer where there is a GPU.

    box, rival: sandboxes in which both are loaded; rival: None where there is none. found: Reason
    entries of this question that are known already.
    """
    demands = trials.demands
    size = demands.timed_size if demands.timed_size is not None else trials.size
    boxes = {"candidate": box} | ({"rival": rival} if rival else {})
    turns = {name: [] for name in boxes}
    packed, launch = inputs_of(trials, size)
    for turn in range(TURNS):
        for name in list(boxes)[:: -1 if turn % 2 else 1]:
            try:
                if turn == 0:
                    prepare(boxes[name], packed, launch)
                turns[name].append(timed(boxes[name]))
            except NotTimed as error:
                key = "not_timed" if name == "candidate" else "no_rival"
                verdict = NO if name == "candidate" else UNKNOWN
                return Answer(verdict, (Reason.of(key, f"The {name}: {error}"),))
    spreads = {name: spread_of([t for took in turns[name] for t in took["own"]]) for name in boxes}
    typical = {name: spread["median"] for name, spread in spreads.items()}
    waited = [took["each"] for took in turns["candidate"]]
    whole = statistics.median(t for took in turns["candidate"] for t in took["whole"])
    evidence = {"milliseconds": spreads, "size": str(size), "whole": whole, "waited": waited}
    reasons = [*found, *of_clocks(turns["candidate"])]
    reasons += beyond_the_roof(demands, trials, size, typical["candidate"])
    if rival is not None:
        evidence["times_as_fast"] = typical["rival"] / typical["candidate"]
        if not reasons and (unsteady := of_spreads(spreads)):
            return Answer(UNKNOWN, (unsteady,), evidence)
        reasons += [] if reasons else slower(spreads)
    unique = {reason.key: reason for reason in reasons}
    if unique or rival is not None:
        return Answer(NO if unique else YES, tuple(unique.values()), evidence)
    says = f"{typical['candidate']:.4g} ms for size {size}."
    return Answer(UNKNOWN, (Reason.of("no_rival", says),), evidence)


def spread_of(samples):
    """Median, least and half the interquartile range."""
    low, middle, high = statistics.quantiles(samples, n=4)
    return {"median": middle, "least": min(samples), "spread": (high - low) / 2}


def of_spreads(milliseconds):
    """The reason where times vary too much to be compared, else None."""
    for name, told in milliseconds.items():
        if told["spread"] > max(STEADY * told["median"], STEADY_MS):
            says = f"The {name} takes {told['median']:.4g} ± {told['spread']:.4g} ms."
            return Reason.of("unsteady", says)
    return None


def slower(milliseconds):
    """The reason where the rival takes less time: by more than both spread, or less than the
    candidate's fastest run."""
    mine, theirs = milliseconds["candidate"], milliseconds["rival"]
    by = mine["median"] - theirs["median"]
    if by <= mine["spread"] + theirs["spread"] and mine["least"] <= theirs["median"]:
        return []
    says = f"{mine['median']:.4g} ms, and its rival takes {theirs['median']:.4g} ms."
    return [Reason.of("slower", says)]


def inputs_of(trials, size):
    """(Some sets of arguments, packed anew, their launch); a rival is given the same ones."""
    sets = [trials.draw(size) for _ in range(SETS)]
    launch = trials.demands.launch
    launch = launch(*map(plain_of, sets[0])) if launch else None
    filled = [[plain_of(trials.filled(value)) for value in one] for one in sets]
    return [list(map(sandbox.pack, one)) for one in filled], launch


def prepare(box, packed, launch):
    """Give a process the arguments with which its calls are timed, as from `inputs_of`.

    Raises NotTimed.
    """
    device_arrays = launch is not None and has_gpu()
    asked(box, "prepare", sets=packed, launch=launch, device_arrays=device_arrays)


def timed(box):
    """What a process tells of its calls, and how long the judge waited for one of them.

    A slow call is made fewer times. Raises NotTimed.
    """
    one = waited(box, 1, WARM_UP)
    rounds = round(1e3 * SECONDS * (1 + WARM_UP) / one) if one > 0 else ROUNDS
    rounds = min(max(rounds, FEW_ROUNDS), ROUNDS)
    # of one round: all but the calls is the same in both
    each = (waited(box, rounds, WARM_STILL) - waited(box, 1, WARM_STILL)) / (rounds - 1)
    took = times_of(asked(box, "time", rounds=rounds, calls=1, warm_up=WARM_STILL))
    return {**took, "each": each}


def waited(box, calls, warm_up):
    """Milliseconds until a process has made some calls and told of it."""
    begin, in_line = time.perf_counter(), box.queued()
    asked(box, "time", rounds=1, calls=calls, warm_up=warm_up)
    took = 1e3 * (time.perf_counter() - begin)
    return took - (box.queued() - in_line)  # a busy host is no fault of a candidate's


def asked(box, what, **message):
    """The header of a reply. Raises NotTimed."""
    try:
        header, _ = box.ask(what, patience=sandbox.STARTING, **message)
        error = sandbox.error_of(header) if "error" in header else None
    except (sandbox.Lost, sandbox.Forged) as lost:
        raise NotTimed(f"{lost}.") from None
    if error:
        raise NotTimed(f"{error['type']}: {error['says']}")
    return header


def times_of(header):
    """The times that a reply tells. Raises NotTimed for another form."""
    own, whole, held = (header.get(name) for name in ("own", "whole", "held"))
    lists = isinstance(own, list) and isinstance(whole, list) and isinstance(held, int)
    if not lists or not all(isinstance(one, float) and one >= 0 for one in (*own, *whole)):
        raise NotTimed("it told times of another form.")
    return {"own": own, "whole": whole, "held": held}


def of_clocks(turns):
    """The reasons that two clocks show which do not agree, and that of a cache that is held.

    turns: what `timed` returned, several times.
    """
    own, whole = (
        statistics.median(one for took in turns for one in took[name]) for name in ("own", "whole")
    )
    each = min(took["each"] for took in turns)  # whoever else uses the machine adds to it
    held = max(took["held"] for took in turns)
    found = []
    if whole > own + max(LATER_MS, LATER * own):
        says = f"Its own stream was done after {own:.4g} ms, the device after {whole:.4g} ms."
        found.append(Reason.of("left_running", says))
    if each > SEEN_MS and whole < TOLD * each:
        says = f"It tells {whole:.4g} ms per call, and the judge waited {each:.4g} ms."
        found.append(Reason.of("clock_differs", says))
    if held:
        found.append(Reason.of("holds_cache", f"{held:,} bytes of it are set aside."))
    return found


def beyond_the_roof(demands, trials, size, milliseconds):
    """The reason for a time in which the GPU cannot even move the bytes, or do the operations."""
    from utils.timing import copy_bandwidth, matmul_rate

    if not demands.bytes and not demands.flops:
        return []
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
