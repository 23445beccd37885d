"""Operations as public task sets for machines order them, each with a right answer by other means.

Each is a task in KernelBench's form: a `Model` that calls PyTorch once or twice, and a `ModelNew`
that computes the same from smaller parts. They show whom a judge refuses who has done nothing
wrong, and that the judge's adapter takes what others' tasks look like.
"""

import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent

#: The head of every task and answer
HEAD = "import math\nimport torch\nimport torch.nn.functional as F\n\n\n"


@dataclass(frozen=True)
class Operation:
    """name: of what is computed. inputs: what is drawn, as a text of expressions. asked: PyTorch's
    expression for it, of `x` and, where there are several inputs, `y` and `z`. answer: the lines of
    another way to it; the last one returns."""

    name: str
    inputs: str
    asked: str
    answer: str

    @property
    def names(self):
        """Its arguments."""
        return ", ".join("xyz"[: self.inputs.count("|") + 1])

    @property
    def task(self) -> str:
        """The task's text."""
        given = ", ".join(self.inputs.split(" | "))
        asking = f"def get_inputs():\n    return [{given}]\n"
        return f"{HEAD}{self._module('Model', f'return {self.asked}')}\n\n{asking}"

    @property
    def candidate(self) -> str:
        """The answer's text."""
        return HEAD + self._module("ModelNew", self.answer)

    def _module(self, name, body):
        lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
        head = f"class {name}(torch.nn.Module):\n    def forward(self, {self.names}):"
        return f"{head}\n{lines}\n"


#: Inputs that many operations have in common
COMMON = {
    "MATRICES": "torch.randn(9, 14) | torch.randn(14, 11)",
    "PICTURES": "torch.randn(2, 3, 12, 10)",
    "SIGNALS": "torch.randn(2, 3, 31)",
    "ROWS": "torch.randn(13, 37)",
    "FEW": "torch.randn(7, 12)",
    "TWO": "torch.randn(13, 37) | torch.randn(13, 37)",
}


@cache
def operations() -> tuple[Operation, ...]:
    """All of `operations.txt`: a line `name / inputs / asked`, indented lines of the answer."""
    found = []
    for part in re.split(
        r"\n(?=\S)", (HERE / "operations.txt").read_text(encoding="utf-8").strip()
    ):
        head, _, answer = part.partition("\n")
        name, inputs, asked = head.split(" / ", 2)
        for word, common in COMMON.items():
            inputs = inputs.replace(word, common)
        found.append(Operation(name, inputs, asked, textwrap.dedent(answer)))
    return tuple(found)
