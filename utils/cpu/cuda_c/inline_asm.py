"""Inline PTX: each `asm` statement with PTX in it becomes a block of C++.

    asm volatile("add.s32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
        ->  { auto& cuda_cpu_o0 = sum; const auto cuda_cpu_o1 = ...operand<'r'>(a); ...
              { ...assign(cuda_cpu_o0, ...add<...>(...)); } }

Outputs are references to the program's variables, which are the registers. See `ptx.py` (what a
template says) and `ptx_to_cpp.py` (what it means).
"""

import re

from . import ptx_arithmetic, ptx_async, ptx_memory, ptx_tensor  # noqa: F401  (the instructions)
from .architecture import Architecture
from .ptx import Instruction, PtxError, Template, parse, unescaped
from .ptx_to_cpp import Translator
from .tokens import Token, Tokens, closing, error, made, split_commas

WORDS = ("asm", "__asm__", "__asm")
QUALIFIERS = ("volatile", "__volatile__", "inline", "goto")
CONSTRAINTS = "hrlfdn"
PTX = re.compile(
    r"\b[a-z]\w*\.[a-z]\w*|%%?\w*(?:tid|laneid|smid|clock)"
    r"|\b(?:bar|trap|exit|bra|ret)\b"
)


def rewrite_asm(tokens: Tokens, gpu: Architecture) -> None:
    """Rewrites all `asm` statements that hold PTX, in place.

    Raises RewriteError with the name of the instruction that the runtime, or this GPU, lacks.
    """
    number = 0
    for i in reversed([i for i, t in enumerate(tokens) if t.text in WORDS]):
        start = _arguments(tokens, i)
        if start:
            end = closing(tokens, start)
            literals = [t.text for t in tokens[start:end] if t.kind == "string"]
            if literals[0].strip('" ') == "" and tokens[start + 2].kind != "string":
                # no instruction: operands that hold on to registers are the GPU's compiler's
                tokens[start + 1 : end] = [made('"" ::: "memory"', tokens[i])]
            elif PTX.search("".join(literals)):
                stop = end + 1 if tokens[end + 1].text == ";" else end
                block = _translated(tokens[i], tokens[start + 1 : end], number, gpu)
                tokens[i : stop + 1] = block
                number += 1


def _arguments(tokens: Tokens, i: int) -> int:
    """The index of the bracket of an asm statement that begins at `i`, or 0."""
    if tokens[i].text not in WORDS or tokens[i].kind != "name":
        return 0
    j = i + 1
    while j < len(tokens) and tokens[j].text in QUALIFIERS:
        j += 1
    return j if j < len(tokens) and tokens[j].text == "(" else 0


def _translated(
    at: Token,
    inside: Tokens,
    number: int,
    gpu: Architecture,
) -> Tokens:
    template, outputs, inputs = _sections(at, inside)
    result = [made("{", at)]
    try:
        for i, (constraint, expression) in enumerate(outputs + inputs):
            result += _operand(at, i, constraint, expression, i < len(outputs))
        parsed = parse(template)
        refuse_other_gpus(at, parsed, gpu)
        text = Translator(parsed, number).cpp()
    except PtxError as problem:
        raise error(
            at,
            f"inline PTX: the CPU runtime does not have {problem}; this program needs a GPU",
        ) from None
    return [*result, made(text, at), made("}", at)]


def refuse_other_gpus(at: Token, template: Template, gpu: Architecture) -> None:
    """Raises RewriteError for an instruction that the GPU does not have."""
    for step in template.body:
        if isinstance(step, Instruction) and (reason := gpu.lacks(step.opcode)):
            raise error(at, f"inline PTX: there is no {reason}")


def _sections(at: Token, inside: Tokens):
    """(template, [(constraint, expression)] of the outputs, the same of the inputs)."""
    sections: list[Tokens] = [[]]
    depth = 0
    for t in inside:
        depth += (t.text in "([{") - (t.text in ")]}") if len(t.text) == 1 else 0
        if depth == 0 and t.text in (":", "::"):
            sections += [[] for _ in t.text]
        else:
            sections[-1].append(t)
    if any(t.kind != "string" for t in sections[0]):
        raise error(at, "inline PTX: the template must be a string literal")
    sections += [[], []]
    template = unescaped([t.text for t in sections[0]])
    return template, _operands(at, sections[1]), _operands(at, sections[2])


def _operands(at: Token, tokens: Tokens) -> list:
    operands = []
    for part in split_commas(tokens):
        open_ = next((i for i, t in enumerate(part) if t.kind != "string"), 0)
        if not open_ or part[open_].text != "(":
            raise error(at, "inline PTX: this operand is not understood")
        constraint = "".join(t.text.strip('"') for t in part[:open_])
        operands.append((constraint, part[open_ + 1 : -1]))
    return operands


def _operand(
    at,
    i: int,
    constraint: str,
    expression: Tokens,
    is_output: bool,
) -> Tokens:
    letter = constraint.lstrip("=+&")
    if len(letter) != 1 or letter not in CONSTRAINTS or is_output != (constraint[0] in "=+"):
        raise PtxError(f'the constraint "{constraint}"')
    if is_output:
        check = f"; ::cuda_cpu::ptx::check_operand<'{letter}'>(cuda_cpu_o{i});"
        return [made(f"auto& cuda_cpu_o{i} = ", at), *expression, made(check, at)]
    head = f"const auto cuda_cpu_o{i} = ::cuda_cpu::ptx::operand<'{letter}'>("
    return [made(head, at), *expression, made(");", at)]
