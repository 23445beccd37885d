"""The course's exercises as tasks of the judge: what learners hand in, judged as a stranger's.

What `course.checking` asks besides, such as few accesses or certain means, is not asked here.
"""

import inspect
import re
from dataclasses import dataclass

import numpy as np

from course.checking import model
from course.checking.evidence import ATOL
from course.judge import demands as asked
from course.judge.errors import Bound, typical
from utils import has_gpu

#: Kinds of exercises that are a function of their arguments
KINDS = ("numba", "cuda_c", "triton", "function")
CALLS = 4


@dataclass(frozen=True)
class AsChecked(Bound):
    """The error that an exercise allows."""

    rtol: float = 0.0
    as_drawn: bool = True

    def of(self, expected, arguments, reference):
        known = np.where(np.isfinite(expected), np.abs(expected), 0)
        size = np.maximum(known, typical(expected))
        return self.rtol * size + ATOL * max(1, known.max(initial=0))


class Task:
    """An exercise's reference, inputs and demands, as `judge` takes them."""

    def __init__(self, exercise):
        self.exercise = exercise
        self.launches = {}  # shapes and numbers of a call -> its launch
        self.outs = {}  # and its outputs by name, for a reference that asks for their shape
        self.names = ()
        shapes = exercise.shapes
        if exercise.kind == "triton":
            blocks = exercise.blocks
            sizes = [(shape, blocks[n % len(blocks)]) for n, shape in enumerate(shapes)]
        elif exercise.kind == "function":
            sizes = [(shape, 0) for shape in shapes]
        else:
            sizes = [(shape, 0) for shape in shapes] + [(shapes[-1], -1)]
        has_fresh = exercise.fresh is not None
        self.demands = asked.Demands(
            sizes=tuple(sizes),
            fresh=self.fresh if has_fresh else lambda rng: sizes[int(rng.integers(len(sizes)))],
            error=Bound(exact=True) if exercise.rtol == 0 else AsChecked(rtol=exercise.rtol),
            widen=False,
            hostile=exercise.specials == "any" and exercise.kind != "function",
            may_alias=exercise.kind == "function",
            deterministic=not exercise.shared_output,
            library=(),
            entry=exercise.kernel_name or None,
            launch=None if exercise.kind == "function" else self.launch,
            race_free=exercise.race_free,
            calls=CALLS,
            may_mutate=exercise.workspace != () or exercise.kind == "function",
        )

    def fresh(self, rng):
        """One more size."""
        shape = self.exercise.fresh(rng)
        kind = self.exercise.kind
        return shape, int(rng.choice(self.exercise.blocks)) if kind == "triton" else 0

    def inputs(self, rng, size):
        """The arguments of a call, in the kernel's order."""
        shape, number = size
        drawn = self.exercise.inputs(rng, shape)
        self.names = tuple(drawn)
        if self.exercise.kind == "triton":
            self.names += tuple(inspect.signature(self.exercise.solution.fn).parameters)[-1:]
        values = [self.argument(value) for value in drawn.values()]
        if self.exercise.kind == "triton":
            values.append(number)
            grid = self.exercise.grid(shape, number)
            self.launches[key_of(values)] = (grid if isinstance(grid, tuple) else (grid,), {})
        elif self.exercise.kind != "function":
            launch = self.exercise.launches_for(shape)[number]
            self.launches[key_of(values)] = launch.grid, launch.block
        outs = {name: value for name, value in drawn.items() if isinstance(value, model.Out)}
        self.outs[key_of(values)] = outs
        return tuple(values)

    def argument(self, value):
        """An argument as the judge marks it; arrays are tensors for Triton."""
        tensors = self.exercise.kind == "triton"
        if isinstance(value, model.Out):
            return asked.Out(value.shape, value.dtype, tensors)
        if isinstance(value, model.InOut):
            return asked.InOut(self.argument(value.array))
        if tensors and isinstance(value, np.ndarray):
            import torch

            return torch.from_numpy(value.copy()).to("cuda" if has_gpu() else "cpu")
        return value

    def launch(self, *arguments):
        """The launch with which these arguments were drawn."""
        return self.launches[key_of(arguments)]

    def reference(self, *values):
        """The exercise's own reference, of arguments in order, with outputs left out."""
        given = [one.cpu().numpy() if hasattr(one, "numpy") else one for one in values]
        outs = self.outs[key_of(values)]
        left = iter(given)
        named = {name: outs[name] if name in outs else next(left) for name in self.names}
        wanted = inspect.signature(self.exercise.reference).parameters
        kinds = {one.kind for one in wanted.values()}
        if inspect.Parameter.VAR_POSITIONAL in kinds:
            return self.exercise.reference(*named.values())
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            named = {name: value for name, value in named.items() if name in wanted}
        return self.exercise.reference(**named)


def key_of(values):
    """Shapes and numbers, by which a call is known again."""
    plain = (getattr(one, "array", one) for one in values)
    return tuple(
        tuple(one.shape) if hasattr(one, "shape") and np.ndim(one) else str(one)
        for one in plain
        if not isinstance(one, asked.Out)
    )


IMPORTS = {
    "numba": "import math\nimport re\nimport numpy as np\nfrom numba import cuda\n",
    "function": "import math\nimport re\nimport numpy as np\n",
    "triton": "import triton\nimport triton.language as tl\n",
    "cuda_c": "",
}


def right_answers(text, exercises):
    """(exercise, title, candidate, entry) of all right answers: each exercise's solution, and those
    of a text in which each begins with a line `### ID TITLE`. entry: its function's or kernel's
    name, None where there is one alone.

    Those in CUDA C stand in one file, each under a name of its own, as the course's tests have it.
    """
    for exercise in exercises.values():
        if can_be_judged(exercise):
            yield exercise, "solution", exercise.solution, exercise.kernel_name or None
    files = {}
    for part in re.split(r"(?m)^### ", text)[1:]:
        head, source = part.split("\n", 1)
        id, _, title = head.partition(" ")
        exercise = exercises[id]
        if can_be_judged(exercise):
            if exercise.kind == "cuda_c":
                files.setdefault(id, {})[title] = source
            else:
                yield exercise, title, IMPORTS[exercise.kind] + source, entry_of(source)
    for id, sources in files.items():
        exercise = exercises[id]
        whole = in_one_file(exercise.kernel_name, sources)
        for title in sources:
            yield exercise, title, whole, f"{exercise.kernel_name}_{title}"


def in_one_file(kernel, sources):
    """Several files with a kernel of one name as one file, in which names have the title's end."""
    helpers = [re.findall(HELPER, source) for source in sources.values()]
    names = [name for one in helpers for name in one]
    own = {kernel, *(name for name in names if names.count(name) > 1)}
    pattern = re.compile(rf"\b({'|'.join(own)})\b")
    return "".join(pattern.sub(rf"\1_{title}", source) for title, source in sources.items())


#: The name of a device function
HELPER = r"__device__ [\w ]*?\b(\w+)\("


def can_be_judged(exercise):
    """Whether an exercise is a function of numbers, arrays and lists of these."""
    if exercise.kind not in KINDS or exercise.play:
        return False
    drawn = exercise.inputs(np.random.default_rng(0), exercise.shapes[-1])
    own = (type(value).__module__ for value in drawn.values())
    return not any(module.startswith("course.exercises") for module in own)


def entry_of(source):
    """The name of the last function in a text."""
    return re.findall(r"^(?:async )?def (\w+)", source, re.M)[-1]
