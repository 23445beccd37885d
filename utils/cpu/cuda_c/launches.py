"""Launches, `kernel<<<...>>>(...)`, and kernels whose address is taken."""

from .tokens import OPEN, Tokens, angle_end, angle_start, closing, error, made, opening


def rewrite_addresses(tokens: Tokens, kernels: set[str]) -> None:
    """A kernel's address without its type is registered for cudaLaunchKernel."""
    i = len(tokens) - 1
    while i >= 3:
        if tokens[i].kind == "name" and tokens[i].text in kernels:
            j = i - 1
            if tokens[j].text == "&":
                j -= 1
            if [t.text for t in tokens[j - 2 : j + 1]] == ["void", "*", ")"]:
                start = j - 3 if tokens[j - 3].text == "(" else j - 4
                end = i
                if i + 1 < len(tokens) and tokens[i + 1].text == "<":
                    end = max(angle_end(tokens, i + 1), i)
                if tokens[start].text == "(":
                    tokens[end + 1 : end + 1] = [made(")", tokens[end])]
                    tokens[start : j + 1] = [made("::cuda_cpu::kernel_address(", tokens[i])]
                    i = start
        i -= 1


def rewrite_launches(tokens: Tokens) -> None:
    """`k<<<grid, block>>>(a)` becomes `(configure(grid, block), k(a))`."""
    i = len(tokens) - 1
    while i >= 0:
        if tokens[i].text == "<<<" and tokens[i].kind == "operator":
            rewrite_launch(tokens, i)
        i -= 1


def rewrite_launch(tokens: Tokens, at: int) -> None:
    """The launch whose `<<<` stands at `at`."""
    end = at + 1
    while end + 3 < len(tokens) and not all(tokens[end + k].text == ">" for k in range(3)):
        end = closing(tokens, end) + 1 if tokens[end].text in OPEN else end + 1
        if tokens[end].text in (";", "}"):
            raise error(tokens[at], "this launch has no '>>>'")
    # template arguments of the last value may end there too: k<<<n, T<int>>>>(...)
    while tokens[end + 3].text == ">":
        end += 1
    arguments = end + 3
    if tokens[arguments].text != "(":
        raise error(
            tokens[at],
            "after '>>>' the kernel's arguments are missing: kernel<<<blocks, threads>>>(...)",
        )
    close = closing(tokens, arguments)
    start = launch_start(tokens, at)
    configuration = tokens[at + 1 : end]
    if not configuration:
        raise error(
            tokens[at],
            "this launch says neither blocks nor threads: kernel<<<blocks, threads>>>(...)",
        )
    tokens[start : close + 1] = [
        made("(::cuda_cpu::configure(", tokens[start]),
        *configuration,
        made("),", tokens[at]),
        *tokens[start:at],
        *tokens[arguments : close + 1],
        made(")", tokens[close]),
    ]


def launch_start(tokens: Tokens, at: int) -> int:
    """Index of the first token of the expression that names the kernel, which ends before `at`."""
    i = at - 1
    while True:
        t = tokens[i].text
        if t == ">":
            i = angle_start(tokens, i) - 1
        elif t in (")", "]"):
            i = opening(tokens, i)
            before = tokens[i - 1]
            if before.kind == "name" and before.text not in ("return", "if", "else", "do"):
                i -= 1
            elif before.text == ">" or before.text in (")", "]"):
                i -= 1
                continue
        if i < 0:
            raise error(tokens[at], "what stands before '<<<' is not understood")
        before = tokens[i - 1].text if i else ""
        if before in (".", "->"):
            i -= 2
        elif before == "template" and i > 1:
            i -= 1
        elif before == "::":
            i -= 1
            if i and (
                tokens[i - 1].kind == "name" and tokens[i - 1].text not in ("return", "else", "do")
            ):
                i -= 1
            elif i and tokens[i - 1].text == ">":
                i -= 1
                continue
            else:
                return i
            if not (i and tokens[i - 1].text in ("::", ".", "->")):
                return i
            continue
        else:
            return i
