"""The exercises of the chapter Triton and tile languages."""

import contextlib
import functools
import logging
from importlib.util import find_spec
from unittest import mock

import torch

from course.checking.model import Exercise
from course.checking.quiz import Quiz, one_of

# ---- one_graph: a choice that torch.compile can follow

#: Clipped gradients are powers of two, so that each way of computing them gives the same digits
DIGITS = 4
TINY = 6  # from this shape on gradients are tiny
LONG = 12  # this shape's gradient is longer than anybody would write into a condition
#: Of the last call, how `play` tells `after`: breaks, graphs, whether the argument was changed
LAST = {"breaks": 0, "graphs": 1, "changed": False}


def clip(gradient, most):
    norm = gradient.square().sum().sqrt()
    return torch.where(norm > most, gradient * (most / norm), gradient)


def clip_in_numbers(gradient, most):
    """What `clip` returns, as `numbers` has it."""
    norm = gradient.double().square().sum().sqrt()
    return numbers(gradient * (most / norm) if norm > most else gradient)


def numbers(values):
    """A tensor's values as a tuple of floats that does not know the last digits."""
    return tuple(float(f"{float(value):.{DIGITS}g}") + 0.0 for value in values.flatten())


def gradients(rng, shape):
    """A gradient of elements ±v, and how long it may be at most: powers of two.

    That of shape 0 is 0, every third is too long, others are as long as they may be, or shorter.
    Some are matrices.
    """
    _start_dynamo()
    sides = (1 << 14,) if shape == LONG else ((4,), (4, 4))[shape // 3 % 2]
    signs = torch.from_numpy(rng.choice((-1.0, 1.0), sides).astype("float32"))
    value = 2.0 ** int(rng.integers(-1, 3)) if shape else 0.0
    value *= 2.0**-20 if shape >= TINY else 1
    most = value * signs.numel() ** 0.5 * (1 / 2, 1, 2)[shape % 3]
    return {"gradient": signs * value, "most": most or 0.5}


@functools.cache
def _start_dynamo():
    """Dynamo loads itself at its first use, for seconds on a slow computer: none of an answer's."""
    with _without_cuda():
        torch._dynamo.explain(torch.neg)(torch.zeros(1))


def compiled_whole(answer, gradient, most):
    """What an answer returns; notes what Dynamo made of it, and what became of the gradient."""
    log = logging.getLogger("torch._dynamo")  # it warns of each `.item()`
    level = log.level
    log.setLevel(logging.ERROR)
    torch._dynamo.reset()
    try:
        with _without_cuda():
            seen = torch._dynamo.explain(answer)(gradient.clone(), most)
    finally:
        log.setLevel(level)
    before = gradient.clone()
    result = answer(gradient, most)
    LAST["breaks"], LAST["graphs"] = len(seen.break_reasons), seen.graph_count
    if getattr(answer, "_torchdynamo_disable", False):  # `explain` takes it apart even so
        LAST["graphs"] = 0
    LAST["changed"] = not torch.equal(gradient, before)
    return numbers(result) if isinstance(result, torch.Tensor) else result


def _without_cuda():
    """Keeps Dynamo from saving the GPU's random state, in a process that may not touch the GPU.

    That is a copy (`fork`) of one that has used it. The gradients here are all on the CPU.
    """
    if torch.cuda._is_in_bad_fork():
        return mock.patch.object(torch.cuda, "is_available", lambda: False)
    return contextlib.nullcontext()


def without_a_break(given, expected):
    """What is wrong with the means, or None."""
    breaks = LAST["breaks"]
    if breaks:
        return (
            f"Dynamo still stops in it ({breaks}×), and makes more than one graph. Where does"
            " Python ask for a tensor's number: in an `if`, in `.item()`, in `float()`?"
        )
    if LAST["graphs"] != 1:
        return f"Dynamo makes {LAST['graphs']} graphs of it, and one is asked for."
    if LAST["changed"]:
        return (
            "It changes the gradient that it is given. The function above leaves that as it is, and"
            " returns another one."
        )
    return None


ONE_GRAPH = Exercise(
    id="triton.one_graph",
    title="Clip without a break",
    minutes=7,
    kind="function",
    real=True,
    task=(
        "Training loops clip gradients: where the gradient's norm is larger than `most`, all of it"
        " is scaled down until its norm is `most`; otherwise it stays as it is. This function is"
        " right, and breaks the graph. Write it so that torch.compile makes one graph of it."
        " The gradient may be of any size, all zeros, too."
    ),
    starter="""
def clip(gradient, most):
    norm = gradient.square().sum().sqrt()
    if norm.item() > most:
        gradient = gradient * (most / norm)
    return gradient
""",
    solution=clip,
    inputs=gradients,
    reference=clip_in_numbers,
    play=compiled_whole,
    after=without_a_break,
    shapes=(3, 1, 2, 0, 6, 5, 9, LONG),
    hints=(
        "What makes Python wait for the tensor's value? The choice must become a part of the"
        " graph, as a value of its own.",
        "`torch.where(condition, this, that)` computes both, and takes one of the two for each"
        " element.",
        "Or scale always, by a factor of at most 1: `torch.clamp(most / norm, max=1)`. For a norm"
        " of 0 the quotient is infinite, and the clamp makes it 1. (Dynamo follows Python's"
        " `min(1.0, most / norm)`, too, and makes it a part of the graph.)",
    ),
    wrong=(
        (
            "    return torch.where(norm > most, gradient * (most / norm), gradient)",
            "    if norm > most:\n        gradient = gradient * (most / norm)\n    return gradient",
            "other_means",
        ),
        (
            "torch.where(norm > most, gradient * (most / norm), gradient)",
            "gradient * min(1.0, most / norm.item() if norm.item() else 1.0)",
            "other_means",
        ),
        (
            "torch.where(norm > most, gradient * (most / norm), gradient)",
            "gradient * (most / norm)",
            "wrong_value",
        ),
        ("gradient * (most / norm)", "gradient.clamp(-most, most)", "wrong_value"),
        ("torch.where(norm > most, ", "torch.where(gradient.abs() > most, ", "wrong_value"),
        ("square().sum().sqrt()", "abs().sum()", "wrong_value"),
        ("    return torch", "    torch", "no_return"),
    ),
)

QUIZZES = (
    Quiz(
        id="triton.q_program",
        question=(
            "A Triton kernel has `tl.arange(0, 1024)` and `num_warps=4`. How many threads does a"
            " program have?"
        ),
        answer=128,
        unit="threads",
        explain_right=(
            "Four warps of 32. Each thread has 8 of the 1,024 elements; the compiler decides which."
        ),
        explain={
            1024: "That is the number of *elements*. `num_warps` says how many threads share them.",
            4: "That is the number of warps. A warp has 32 threads.",
            8: "That is how many of the 1,024 elements each thread has.",
            None: "`num_warps` warps of 32 threads each.",
        },
    ),
    one_of(
        "triton.q_other",
        "`x = tl.load(p + i, mask=i < n)` without `other=`. When is that a mistake?",
        ("Always", "A store with the same mask drops what was not read: nothing is lost."),
        (
            "Never: the masked elements are zero",
            "On today's NVIDIA GPUs they happen to be. The language leaves them undefined.",
        ),
        (
            "When a masked element reaches a result: through a sum, a maximum, a product",
            "An element that is dropped again, by the store's mask or tl.where, may be anything.",
        ),
        answer="c",
    ),
    one_of(
        "triton.q_break",
        (
            "A compiled function prints a value of a tensor in its middle. What does torch.compile"
            " make of it?"
        ),
        ("An error", "Only with `fullgraph=True`, which is how one finds breaks."),
        (
            "Two graphs, with Python between them",
            "A graph break: nothing is fused across it, and Python waits for the GPU.",
        ),
        (
            "One graph, which prints at its end",
            "The value is not known while the graph is made, and printing cannot wait.",
        ),
        answer="b",
    ),
)

EXERCISES = (ONE_GRAPH,)
if find_spec("triton"):
    from course.exercises import triton_kernels

    EXERCISES = (*triton_kernels.EXERCISES, ONE_GRAPH)
