"""judge: from a candidate to its report."""

from dataclasses import replace

import numpy as np

from course.judge import fast, handed_in, honest, library, reading, right, sandbox
from course.judge.demands import Demands
from course.judge.report import Reason, Report, answer, shortened, unknown
from course.judge.right import volume
from course.judge.words import FACTS, FAST, HONEST, RIGHT, question_of, sentence
from utils import has_gpu

MOST_SEED = 1 << 31
#: Calls that are made again in a process where nobody watches
ALONE = 6
#: Elements of calls that are made again on the engines for machines without a GPU, and what counts
SEEN = 20_000
#: Calls of CUDA C that are made again in other orders of blocks and threads, and such orders
REORDERED, ORDERS = 4, 2
REORDERED_IN = 0.1  # seconds that each took
BY_ENGINES = ("race", "uninitialized", "out_of_bounds")


def judge(candidate, reference, inputs, demands=None, *, seed=None) -> Report:
    """Is a candidate right, fast and honest?

    candidate: a function (of NumPy arrays or torch tensors; it may launch Numba, Triton or CUDA C
        kernels), a bare kernel with `demands.launch`, the path of a .py or .cu file, or the text of
        one.
    reference: a function of the same arguments, without those that a candidate only fills. It is
        given float64 and its result is what is expected.
    inputs: (rng, size) -> the arguments of one call, in a tuple: arrays, tensors, numbers, `Out`
        and `InOut`. rng: a numpy.random.Generator.
    demands: what else is asked; `Demands()` says what is asked of everybody.
    seed: a whole number, for the same inputs once more; a fresh one unless given.

    Returns a Report. Raises NotAKernel (a TypeError) for what cannot be handed in, and whatever
    `inputs` and `reference` raise: a task's own mistakes are no candidate's.
    """
    demands = demands or Demands()
    seed = int(np.random.default_rng().integers(MOST_SEED)) if seed is None else int(seed)
    given = replace(handed_in.of(candidate, demands), hidden=sandbox.folders_of(reference, inputs))
    facts, speed = reading.facts_of(given.source), None
    if has_gpu() and given.speaks_of_kernels:
        sandbox.nursery(given.modules, engines=True)  # which gets ready meanwhile
    with sandbox.Sandbox(given.modules, demands.seconds) as box:
        reasons = loaded(box, given, demands, timed=True)
        if not box.fits:
            reference = demands.as_made or reference
        trials = right.Trials(box, reference, inputs, demands, seed)
        trials.has_kernels = given.speaks_of_kernels
        if not reasons:
            trials.all()
            without_a_past(given, trials)
            in_other_orders(given, trials)
            reasons = trials.reasons
            trials.ruled_out = ruled_out(trials)
        reasons += honest.reasons(given, box, trials, facts)
        if has_gpu() and not any(question_of(one.key) == RIGHT for one in reasons):
            speed = raced(box, trials, [one for one in reasons if question_of(one.key) == FAST])
    is_wrong = any(question_of(one.key) == RIGHT for one in reasons)
    if trials.done and not is_wrong:
        reasons += alone(given, trials)
        if has_gpu() and given.speaks_of_kernels:
            reasons += on_engines(given, trials)
    return report(given.name, reasons, trials, seed, speed)


def raced(box, trials, found):
    """The answer about a right candidate's time on this GPU, beside its rival's."""
    if trials.demands.rival is None:
        return fast.answer(box, None, trials, found)
    rival = handed_in.of(trials.demands.rival, trials.demands)
    with sandbox.Sandbox(rival.modules, trials.demands.seconds) as other:
        failed = loaded(other, rival, trials.demands, timed=True)
        told = fast.answer(box, None if failed else other, trials, found)
    return told


def ruled_out(trials):
    """What must not compute the result, by what the reference calls."""
    comparison = trials.comparison
    given = comparison.given(trials.done[0].arguments)
    return library.forbidden(trials.demands, comparison.reference, given)


def without_a_past(given, trials):
    """Make calls that went wrong in processes that made no earlier call.

    Only what is right there was kept from an earlier call, and only what is wrong there, too, is
    wrong because of its size.
    """
    for one in trials.done:
        if one.reason and one.reason.key == "stale" and not right_at_first(one, given, trials):
            one.rename("wrong_value")
    one = trials.wrong_when_drawn()
    trials.by_size = not (one and right_at_first(one, given, trials))


def right_at_first(tried, given, trials):
    """Whether a call has the right result where it is the first one."""
    with sandbox.Sandbox(given.modules, trials.demands.seconds) as box:
        if loaded(box, given, trials.demands):
            return False
        return trials.elsewhere(box).once_more(tried).reason is None


def alone(given, trials):
    """The reasons that show where nobody watches: in a process without hooks, from its first call.

    The same calls must give the same results there.
    """
    demands = trials.demands
    again = [one for one in trials.done if one.reason is None and one.got is not None]
    again = [again[int(n)] for n in trials.rng.permutation(len(again))[:ALONE]]
    with sandbox.Sandbox(given.modules, demands.seconds) as box:
        failed = loaded(box, given, demands, watched=False)
        if failed:
            return [Reason.of("otherwise_alone", failed[0].says)]
        unwatched = trials.elsewhere(box)
        for one in again:
            unwatched.once_more(one)
    for one in unwatched.reasons:
        first = f"{sentence('otherwise_alone')} {one.says}"
        return [Reason("otherwise_alone", first, one.evidence)]
    return []


def in_other_orders(given, trials):
    """Make the longest right calls of CUDA C once more, with blocks and threads in other orders.

    Its engine takes an order for a whole process. On a GPU nobody chooses one.
    """
    again = [one for one in trials.done if one.reason is None and one.got is not None]
    again = sorted((one for one in again if one.seconds < REORDERED_IN), key=volume)[-REORDERED:]
    if has_gpu() or not given.speaks_of_cuda_c or not again or trials.reasons:
        return
    for _ in range(ORDERS):
        order = 2 * int(trials.rng.integers(1, MOST_SEED // 2)) + 1
        with sandbox.Sandbox(given.modules, trials.demands.seconds) as box:
            if loaded(box, given, trials.demands, order=order):
                return
            others = trials.elsewhere(box)
            for one in again:
                tried = others.once_more(one, label="blocks and threads in another order")
                if trials.demands.deterministic and tried.reason is None:
                    others.same_twice(one, tried)
        trials.done += [one for one in others.done if one.reason is not None][:1]
        if trials.reasons:
            return


def on_engines(given, trials):
    """What the engines for machines without a GPU see in a few calls: a GPU says nothing of a race,
    of memory that nobody wrote or that is another's.

    What they cannot run is no candidate's fault, so nothing else is said.
    """
    small = [one for one in trials.done if one.drawn is not None and volume(one) <= SEEN]
    with sandbox.Sandbox(given.modules, trials.demands.seconds, engines=True) as box:
        if not small or loaded(box, given, trials.demands):
            return []
        others = trials.elsewhere(box)
        for one in small:
            others.once_more(one, races=others.watched_threads(), device_arrays=False)
    return [one for one in others.reasons if one.key in BY_ENGINES]


def loaded(box, given, demands, watched=True, timed=False, patience=sandbox.STARTING, order=None):
    """The reasons why a candidate cannot be loaded, in so many seconds: one, or none.

    timed: a clock is made before, with all of a GPU that belongs to it. order: of blocks and
    threads, a whole number, for the engine of CUDA C.
    """
    try:
        ordered = handed_in.message(given, demands) | {"order": order}
        header, _ = box.ask("load", patience=patience, watched=watched, timed=timed, **ordered)
        error = sandbox.error_of(header) if "error" in header else None
        box.fits = header.get("fits") is not False
    except sandbox.Lost as lost:
        key = "timeout" if lost.how == "timeout" else "does_not_load"
        return [Reason.of(key, "Its process ended while it was loaded.")]
    except sandbox.Forged as forged:
        return [Reason.of("forged", f"{forged}.")]
    if error is None:
        return []
    line = f" ({error['line']})" if error["line"] else ""
    says = f"{error['type']}{line}: {shortened(error['says'])}"
    return [Reason.of("does_not_load", says)]


def report(name, reasons, trials, seed, speed=None):
    """The Report of all reasons, each with its question, each key once."""
    by_question = {RIGHT: {}, FAST: {}, HONEST: {}}
    for reason in reasons:
        if reason.key in trials.demands.allow:
            continue
        by_question[question_of(reason.key)].setdefault(reason.key, reason)
    facts = by_question[HONEST]
    facts = [facts.pop(key) for key in FACTS if key in facts]
    tried = {"calls": len(trials.done), "sizes": [str(one.size) for one in trials.done][:40]}
    found = by_question[FAST].values()
    if speed is None:
        why = "wrong" if has_gpu() else "no_gpu"
        speed = answer(found) if found else unknown(why, sentence(why))
    return Report(
        candidate=name,
        right=of_values(by_question[RIGHT], tried),
        fast=speed,
        honest=answer(by_question[HONEST].values(), facts=facts),
        seed=seed,
    )


def of_values(found, tried):
    """The answer about what is right: unknown where nothing was wrong but an engine's lack."""
    wrong = [one for key, one in found.items() if key != "not_run"]
    if wrong or not found:
        return answer(wrong, tried)
    return unknown("not_run", found["not_run"].says, tried)
