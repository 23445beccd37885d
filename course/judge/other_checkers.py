"""Other checkers, by the rules that they document, for the leaderboard in `bench.py`.

    python -m course.judge.other_checkers RULE TASK SUBMISSION ENTRY

judges one submission in this very process, as these checkers do, and prints "accepted" or
"refused". What they use a GPU for is left out: nothing here is said of their clocks.

allclose    one input, NumPy's `allclose` with its own tolerances
kernelbench five random inputs of one size, the reference first, `allclose` with 1e-4 for float32
            (https://github.com/ScalingIntelligence/KernelBench, src/kernelbench/eval.py)
pygpubench  inputs and expected results made before the candidate is imported, kept elsewhere and
            copied to the same addresses before each call; every call is checked, NaN never passes
            (https://github.com/gpu-mode/pygpubench, README.md)
"""

import sys

import numpy as np

from course.judge.tasks import module_of

SIZE = 64
TRIALS = {"allclose": 1, "kernelbench": 5, "pygpubench": 20}
TOLERANCE = {
    "allclose": {},
    "kernelbench": {"rtol": 1e-4, "atol": 1e-4},
    "pygpubench": {"rtol": 1e-4, "atol": 1e-4},
}


def accepts(rule, task, source, entry) -> bool:
    """Whether a checker of this rule takes a submission's text for right."""
    rng = np.random.default_rng(0)
    drawn = [task.inputs(rng, SIZE) for _ in range(TRIALS[rule])]
    if rule == "pygpubench":
        drawn = [one for one in drawn if shapes(one) == shapes(drawn[0])]
        expected = [np.asarray(task.reference(*one)) for one in drawn]
        here = tuple(np.empty_like(one) for one in drawn[0])
        candidate = getattr(module_of(source, "submission.py"), entry)
        return all(
            right_at_the_same_place(candidate, here, *pair)
            for pair in zip(drawn, expected, strict=True)
        )
    candidate = getattr(module_of(source, "submission.py"), entry)
    for arguments in drawn:
        expected = np.asarray(task.reference(*arguments))
        got = candidate(*arguments)
        if np.shape(got) != expected.shape or not np.allclose(got, expected, **TOLERANCE[rule]):
            return False
    return True


def shapes(arguments):
    """Of each argument."""
    return [np.shape(one) for one in arguments]


def right_at_the_same_place(candidate, here, arguments, expected):
    """Whether a call is right for values that are copied to where others were."""
    for place, value in zip(here, arguments, strict=True):
        np.copyto(place, value)
    got = np.asarray(candidate(*here))
    known = not np.isnan(expected).any() and not np.isnan(got).any()
    return (
        known
        and got.shape == expected.shape
        and np.allclose(got, expected, **TOLERANCE["pygpubench"])
    )


if __name__ == "__main__":
    from course.judge.bank.tasks import TASKS

    rule, task, path, entry = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    print("accepted" if accepts(rule, TASKS[task], text, entry) else "refused")
