"""__global__ functions: each becomes a stub, which hands its body and its arguments to a launch."""

from collections.abc import Iterator

from .declarations import declaration_start, is_lambda, parameter_name, without_defaults
from .tokens import (
    OPEN,
    Token,
    Tokens,
    angle_end,
    closing,
    made,
    quoted,
    split_commas,
    text_of,
    triples,
)

DROPPED_WITH_ARGUMENTS = {"__cluster_dims__", "__maxnreg__", "__block_size__"}
ATTRIBUTES_WITH_ARGUMENTS = {
    "__attribute__",
    "__align__",
    "alignas",
    "decltype",
    *DROPPED_WITH_ARGUMENTS,
}


class Kernels:
    """The kernels of one translation unit; `numbers` make their helpers' names."""

    def __init__(self, tokens: Tokens, numbers: Iterator[int]):
        self.tokens = tokens
        self.numbers = numbers
        self.names: list[str] = []

    def rewrite(self) -> list[str]:
        """Change all kernels; their names."""
        tokens = self.tokens
        i = len(self.tokens) - 1
        while i >= 0:
            if tokens[i].text == "__global__" and tokens[i].kind == "name":
                self.rewrite_one(i)
            i -= 1
        return list(dict.fromkeys(reversed(self.names)))

    def rewrite_one(self, at: int) -> None:
        tokens = self.tokens
        start = declaration_start(tokens, at)
        limit = "0"
        for k in range(start, at):
            if tokens[k].text == "__launch_bounds__":
                limit = drop_launch_bounds(tokens, k) or limit
        name, open_parameters, later_limit = self.kernel_name(at)
        limit = later_limit or limit
        if name < 0:
            return
        cluster = self.cluster_size(start, name)
        self.names.append(tokens[name].text)
        close_parameters = closing(tokens, open_parameters)
        body = close_parameters + 1
        while body < len(tokens) and tokens[body].text not in (";", "{"):
            body += 1
        if body == len(tokens):
            return
        name_token = tokens[name]
        tokens[at] = made("__attribute__((noinline))", tokens[at])
        if tokens[body].text == ";":
            return
        end = closing(tokens, body)
        self.mark_returns(body, end)
        shared = self.static_shared(body, end)
        for t in tokens[body:end]:
            if t.kind == "name" and t.text in ("__func__", "__FUNCTION__", "__PRETTY_FUNCTION__"):
                t.kind = "string"
                t.text = f'"{name_token.text}"'
        parameters = split_commas(tokens[open_parameters + 1 : close_parameters])
        arguments = ""
        captures = "="
        for parameter in parameters:
            own_name = parameter_name(parameter)
            if is_reference(parameter):  # a kernel gets the address of what it refers to
                captures += f", &{own_name}"
                arguments += f'.add("&{own_name}", __builtin_addressof({own_name}))'
            elif own_name:
                arguments += f'.add("{own_name}", {own_name})'
        number = next(self.numbers)
        info = f"cuda_cpu_kernel_{number}"
        place = f"{quoted(name_token.file)}, {name_token.line}"
        before = (
            f'static ::cuda_cpu::Kernel {info}("{name_token.text}", {place}, '
            f"int({limit}), 0{shared}{cluster}); "
            f"::cuda_cpu::Args cuda_cpu_args_; cuda_cpu_args_{arguments or '.size()'}; "
            f"::cuda_cpu::launch_kernel({info}, ::cuda_cpu::KernelBody{{[{captures}]() mutable"
        )
        after = "}, __builtin_return_address(0), cuda_cpu_args_.list, cuda_cpu_args_.size()); }"
        words = {t.text for t in tokens[start:name]}
        registration = []
        if tokens[name + 1].text == "(" and not words & {"template", "friend"}:
            registration = self.registration(name_token, parameters, tokens[end])
        tokens[end + 1 : end + 1] = [made(after, tokens[end]), *registration]
        tokens[body:body] = [made("{", tokens[body]), made(before, name_token)]

    def kernel_name(self, at: int) -> tuple[int, int, str]:
        """(place of the name, of its parameters' bracket, launch bounds) behind a __global__.

        The name is what stands before the parameters; attributes with arguments may come first. It
        is -1 where there is none.
        """
        tokens = self.tokens
        limit = ""
        j = at + 1
        while j < len(tokens) and tokens[j].text not in (";", "{"):
            t = tokens[j]
            if t.text == "__launch_bounds__":
                limit = drop_launch_bounds(tokens, j) or limit
            elif t.text in ATTRIBUTES_WITH_ARGUMENTS:
                j = closing(tokens, j + 1)
            elif t.kind == "name" and t.text != "operator":
                k = j + 1
                if tokens[k].text == "<":
                    k = angle_end(tokens, k) + 1
                if k > 0 and tokens[k].text == "(":
                    return j, k, limit
            j += 1
        return -1, -1, limit

    def cluster_size(self, start: int, name: int) -> str:
        """C++ for the arguments of __cluster_dims__ before a kernel's name, each after a comma."""
        tokens = self.tokens
        for i in range(start, name):
            if tokens[i].text == "__cluster_dims__":
                sizes = split_commas(tokens[i + 2 : closing(tokens, i + 1)])
                return "".join(f", unsigned({text_of(size)})" for size in sizes)
        return ""

    def registration(self, name: Token, parameters: list, end: Token) -> Tokens:
        """What makes a kernel known by its name before main begins."""
        number = next(self.numbers)
        variable = f"cuda_cpu_registration_{number}"
        head = f"static ::cuda_cpu::Registration {variable}(static_cast<void (*)("
        tail = f')>(&{name.text}), "{name.text}");'
        return [made(head, name), *without_defaults(parameters), made(tail, end)]

    def mark_returns(self, body: int, end: int) -> None:
        """`return;` of the kernel itself: the thread leaves on purpose, barriers do not wait."""
        tokens = self.tokens
        i = body
        while i < end:
            t = tokens[i]
            if t.text == "{" and i > body and is_lambda(tokens, i):
                i = closing(tokens, i)
            elif t.text == "return" and tokens[i + 1].text == ";":
                tokens[i + 1].text = " (void)++::cuda_cpu::hot.left;"
            i += 1

    def static_shared(self, body: int, end: int) -> str:
        """C++ for the bytes of __shared__ variables, as far as known outside the kernel."""
        tokens = self.tokens
        inside = tokens[body:end]
        local = {
            t.text
            for before, t, after in triples(inside)
            if t.kind == "name"
            and after.text in ("=", ";", "{", ",", "(")
            and (
                before.kind == "name"
                and before.text != "return"
                or before.text in (">", "*", "&", ",", "{")
            )
        }
        result = ""
        for i, t in enumerate(inside):
            if t.kind != "made" or t.text != "typedef":
                continue
            stop = i
            while inside[stop].text != ";":
                stop = closing(inside, stop) + 1 if inside[stop].text in OPEN else stop + 1
            declaration = inside[i + 1 : stop]
            if "[" in (d.text for d in declaration) and "]" in (
                declaration[j + 1].text for j, d in enumerate(declaration[:-1]) if d.text == "["
            ):
                continue  # extern
            parts = split_commas(declaration)
            if len(parts) != 1 or any(
                d.text in local or d.text in OPEN and d.text == "{" for d in declaration
            ):
                continue
            result += (
                " + sizeof(" + text_of([d for d in declaration if not d.text.endswith("__t")]) + ")"
            )
        return result


def is_reference(parameter: Tokens) -> bool:
    """Whether a parameter with a name is a reference."""
    name = parameter_name(parameter)
    pairs = zip(parameter, parameter[1:], strict=False)
    return bool(name) and any(t.text == name and b.text in ("&", "&&") for b, t in pairs)


def drop_launch_bounds(tokens: Tokens, i: int) -> str:
    """Take __launch_bounds__ away; the first of its arguments, as C++."""
    close = closing(tokens, i + 1)
    first = split_commas(tokens[i + 2 : close])
    text = text_of(first[0]) if first else ""
    for t in tokens[i : close + 1]:
        t.kind = "made"
        t.text = ""
    return text
