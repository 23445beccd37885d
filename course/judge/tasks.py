"""Tasks in files: what was ordered, beside what is handed in.

A task's file defines `reference` and `inputs`, and `demands` where something is demanded. A file in
KernelBench's form (a class `Model`, `get_inputs()`, `get_init_inputs()`) is one, too: what is
handed in for it is a class `ModelNew`.
"""

import ast
import copy
import types
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from course.judge import sandbox
from course.judge.demands import Demands
from course.judge.errors import UNIT_ROUNDOFF, Bound

#: Whole numbers of a KernelBench task's file above this become this where there is no GPU: its
#: batches and layers are made for one
WITHOUT_GPU = 16
#: A result may be off so many times as far as rounding the inputs puts it
TIMES_ROUNDED = 8


@dataclass(frozen=True)
class Task:
    """`judge(candidate, task.reference, task.inputs, task.demands)`."""

    name: str
    reference: object
    inputs: object
    demands: Demands


class NoTask(ValueError):
    """A file that is no task; the text says what it lacks."""


def read(path, most=None) -> Task:
    """The task in a file. most: for KernelBench's form, the largest size; None: as it stands on a
    GPU, WITHOUT_GPU elsewhere. Raises NoTask."""
    path = Path(path)
    source = path.read_text(encoding="utf-8")
    names = {one.name for one in ast.parse(source).body if hasattr(one, "name")}
    if {"Model", "get_inputs"} <= names:
        return kernelbench(source, path.stem, most)
    module = module_of(source, path)
    missing = [name for name in ("reference", "inputs") if not hasattr(module, name)]
    if missing:
        raise NoTask(f"{path} has no {' and no '.join(missing)}: a task defines both")
    demands = getattr(module, "demands", None) or Demands()
    return Task(path.stem, module.reference, module.inputs, demands)


@dataclass(frozen=True)
class AsModel(Bound):
    """The error that a model's roundings explain, or a few times as much as it changes by rounding
    its inputs once: where terms cancel, as in a variance of equal numbers, no way does better.

    model: in float64.
    """

    model: object = None

    def of(self, expected, arguments, reference):
        allowed = super().of(expected, arguments, reference)
        rounded = [other_last_bits(one, number) for number, one in enumerate(arguments)]
        changed = self.model(*rounded)
        if not hasattr(changed, "shape") or changed.shape != expected.shape:
            return allowed
        off = np.abs(changed.numpy() - expected)
        return allowed + TIMES_ROUNDED * np.max(off[np.isfinite(off)], initial=0)


def other_last_bits(value, seed):
    """A tensor of floats whose values are up to one rounding of float32 off; others as they are."""
    import torch

    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], tuple(value.shape))
    return value * (1 + UNIT_ROUNDOFF["float32"] * torch.from_numpy(np.asarray(signs)))


def module_of(source, path):
    """A module of a text."""
    module = types.ModuleType(Path(path).stem)
    module.__file__ = str(path)
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def kernelbench(source, name, most=None) -> Task:
    """A task in KernelBench's form.

    The candidate's `ModelNew` is made with the same arguments and gets the reference's weights, of
    which those that `init` makes constant are drawn anew; the reference computes in float64. Inputs
    are the task's own, drawn under another seed each time.
    """
    import torch

    on_gpu = torch.cuda.is_available()
    if most is None and not on_gpu:
        most = WITHOUT_GPU
    source = source if most is None else smaller(source, most)
    module = module_of(source, name)
    init = list(module.get_init_inputs()) if hasattr(module, "get_init_inputs") else []
    torch.manual_seed(0)
    model = module.Model(*init).eval()
    made = copy.deepcopy(model).double()
    model = with_other_constants(model)
    state = {key: sandbox.pack(value) for key, value in model.state_dict().items()}
    exact = copy.deepcopy(model).double()
    device = "cuda" if on_gpu else "cpu"

    def reference(*arguments):
        with torch.no_grad():
            return exact(*arguments)

    def as_made(*arguments):
        """For a model that keeps its weights in a form of its own: it has those of `init`."""
        with torch.no_grad():
            return made(*arguments)

    def inputs(rng, size):
        torch.manual_seed(int(rng.integers(1 << 31)))
        drawn = module.get_inputs()
        return tuple(one.to(device) if isinstance(one, torch.Tensor) else one for one in drawn)

    weights = max((value.numel() for value in model.state_dict().values()), default=1)

    def roundings(*arguments):
        """At most: a sum over all of an argument or of all weights of a layer."""
        return max(weights, *(getattr(one, "size", 1) for one in map(np.asarray, arguments)))

    demands = Demands(
        sizes=("the task's",),
        error=AsModel(roundings, model=reference),
        fresh=lambda rng: "the task's",
        entry="ModelNew",
        init={"arguments": [sandbox.pack(one) for one in init], "state": state, "seed": 0},
        as_made=as_made,
        rival=f"{source}\n\nModelNew = Model\n",
        timed_size="the task's",
    )
    return Task(name, reference, inputs, demands)


def with_other_constants(model):
    """A model in which no parameter is one number throughout, as `init` makes weights 1 and biases
    0: who leaves them out shows. Positive ones stay so, as variances must.
    """
    import torch

    rng = np.random.default_rng(0)
    for value in model.state_dict().values():
        if (
            value.is_floating_point()
            and value.numel()
            and bool((value == value.flatten()[0]).all())
        ):
            if value.numel() == 1 and not value.dim():
                share = rng.uniform(0.5, 0.9)
            else:
                share = torch.from_numpy(np.asarray(rng.uniform(-0.5, 0.5, tuple(value.shape))))
            first = float(value.flatten()[0])
            value.copy_(first + share * (abs(first) or 1.0))
    return model


def smaller(source, most):
    """A task's text with the whole numbers of its module no larger than `most`."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for part in ast.walk(node.value):
                if isinstance(part, ast.Constant) and type(part.value) is int:
                    part.value = min(part.value, most)
    return ast.unparse(tree)


def without_library(task) -> Task:
    """The same task, where libraries may compute, too."""
    return replace(task, demands=replace(task.demands, library=()))
