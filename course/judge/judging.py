"""judge: from a candidate to its report."""

import numpy as np

from course.judge import handed_in, honest, right, sandbox
from course.judge.demands import Demands
from course.judge.report import Reason, Report, answer, unknown
from course.judge.words import FAST, HONEST, RIGHT, question_of, sentence

MOST_SEED = 1 << 31


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
    given = handed_in.of(candidate, demands)
    with sandbox.Sandbox(given.modules, demands.seconds) as box:
        reasons = loaded(box, given, demands)
        trials = right.Trials(box, reference, inputs, demands, seed)
        if not reasons:
            trials.all()
            reasons = trials.reasons
        reasons += honest.reasons(given, box, trials)
    return report(given.name, reasons, trials, seed)


def loaded(box, given, demands):
    """The reasons why a candidate cannot be loaded: one, or none."""
    try:
        header, _ = box.ask("load", patience=sandbox.STARTING, **handed_in.message(given, demands))
    except sandbox.Lost as lost:
        key = "timeout" if lost.how == "timeout" else "does_not_load"
        return [Reason(key, f"{sentence(key)} Its process ended while it was loaded.")]
    except sandbox.Forged as forged:
        return [Reason("forged", f"{sentence('forged')} {forged}.")]
    if "error" not in header:
        return []
    error = header["error"]
    line = f" ({error['line']})" if error["line"] else ""
    says = f"{error['type']}{line}: {' '.join(error['says'].split())[:300]}"
    return [Reason("does_not_load", f"{sentence('does_not_load')} {says}")]


def report(name, reasons, trials, seed):
    """The Report of all reasons, each with its question, each key once."""
    by_question = {RIGHT: {}, FAST: {}, HONEST: {}}
    for reason in reasons:
        by_question[question_of(reason.key)].setdefault(reason.key, reason)
    tried = {"calls": len(trials.done), "sizes": [str(one.size) for one in trials.done][:40]}
    fast = by_question[FAST].values()
    return Report(
        candidate=name,
        right=answer(by_question[RIGHT].values(), tried),
        fast=answer(fast) if fast else unknown("no_gpu", sentence("no_gpu")),
        honest=answer(by_question[HONEST].values()),
        seed=seed,
    )
