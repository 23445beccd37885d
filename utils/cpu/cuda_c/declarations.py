"""Where declarations begin, the names of parameters, and the bodies of device functions."""

from .tokens import Token, Tokens, closing, made, opening

TYPE_WORDS = set(
    "int float double char short long unsigned signed bool void const volatile size_t auto".split()
)

#: Between these stands one declaration, or its body
BOUNDS = {"{", "}", ";"}


def is_lambda(tokens: Tokens, brace: int) -> bool:
    """Does the '{' at `brace` open the body of a lambda?"""
    i = brace - 1
    while i > 0 and (
        tokens[i].kind == "name" or tokens[i].text in ("->", "::", "*", "&", "<", ">")
    ):
        i -= 1
    if tokens[i].text == ")":
        i = opening(tokens, i) - 1
    return tokens[i].text == "]"


def declaration_start(tokens: Tokens, at: int) -> int:
    """Index of the first token of the declaration that `at` is a part of."""
    while at:
        before = tokens[at - 1]
        if before.text in (";", "{", "}") or before.kind in ("raw", "pragma"):
            break
        at -= 1
    return at


def parameter_name(parameter: Tokens) -> str:
    """Name of a parameter, or "" where it has none or is a pack, an array or a function pointer."""
    words = []
    for t in parameter:
        if t.text == "=":
            break
        words.append(t)
    if len(words) < 2 or any(t.text in ("...", "(", "[") for t in words):
        return ""
    last = words[-1]
    if last.kind != "name" or last.text in TYPE_WORDS or words[-2].text == "::":
        return ""
    if words[-2].text in ("const", "struct", "typename") and len(words) == 2:
        return ""
    return last.text


def without_defaults(parameters: list[Tokens]) -> Tokens:
    result: Tokens = []
    for n, parameter in enumerate(parameters):
        if n:
            result.append(made(",", parameter[0]))
        for t in parameter:
            if t.text == "=":
                break
            result.append(Token(t.kind, t.text, t.line, t.file, t.space, t.column))
    return result


def function_bodies(tokens: Tokens) -> dict[tuple, tuple[int, int, set[str]]]:
    """Bodies of __device__ and __global__ functions by where '{' stands.

    Each with its first and last token and its qualifiers.
    """
    bodies = {}
    braces_at = {}
    done = -1  # the last token that is no part of what begins behind it
    bounds = [i for i, t in enumerate(tokens) if t.text in BOUNDS or t.kind == "raw"]
    for i in bounds:
        if i <= done:  # in a body
            continue
        t = tokens[i]
        if t.text == "{":
            place = (t.file, t.line)
            braces_at[place] = braces_at.get(place, 0) + 1
            head = {h.text for h in tokens[done + 1 : i]}
            qualifiers = head & {"__device__", "__global__", "__host__"}
            if qualifiers & {"__device__", "__global__"} and "(" in head:
                end = closing(tokens, i)
                bodies[(*place, braces_at[place])] = (i, end, qualifiers)
                i = end
        done = i
    return bodies


def merge_device_code(host: Tokens, device: Tokens) -> None:
    """Puts what is compiled for the device (`__CUDA_ARCH__` defined) into the tokens `host`.

    Device functions and kernels get their device body; a __host__ __device__ function whose two
    bodies differ gets both, and chooses when it runs. Functions that the device alone has come in,
    and those for it that stand where it does not look leave.
    """
    _exchange_device_functions(host, device)
    device_bodies = function_bodies(device)
    for place, (start, end, qualifiers) in reversed(function_bodies(host).items()):
        if place not in device_bodies:
            continue
        device_start, device_end, _ = device_bodies[place]
        body = device[device_start : device_end + 1]
        if [t.text for t in body] == [t.text for t in host[start : end + 1]]:
            continue
        if "__host__" in qualifiers:
            host[start : end + 1] = [
                made("{ if (::cuda_cpu::in_kernel())", host[start]), *body,
                made("else", host[start]), *host[start : end + 1], made("}", host[end]),
            ]  # fmt: skip
        else:
            host[start : end + 1] = body


def _exchange_device_functions(host: Tokens, device: Tokens) -> None:
    """Whole functions behind `#if __CUDA_ARCH__ ...`: what nvcc's device pass has is what counts.

    One for both sides stays as it stands in `host` if it has another text there, and so do the
    members of classes.
    """
    host_bodies = function_bodies(host)
    device_bodies = function_bodies(device)
    changes = []  # (index in `host`, how many tokens leave, which come)
    for place, (start, end, qualifiers) in host_bodies.items():
        if place not in device_bodies and _moves(host, start, qualifiers):
            first = declaration_start(host, start)
            changes.append((first, end + 1 - first, []))
    places = {(t.file, t.line, t.column): i for i, t in enumerate(host) if t.kind != "raw"}
    for place, (start, end, qualifiers) in device_bodies.items():
        if place in host_bodies or not _moves(device, start, qualifiers):
            continue
        following = (places.get((t.file, t.line, t.column)) for t in device[end + 1 :])
        before = next((i for i in following if i is not None), None)
        if before is not None:
            changes.append((before, 0, device[declaration_start(device, start) : end + 1]))
    # from the last to the first; of several before one token the first comes to stand first
    for index, leave, come in reversed(sorted(changes, key=lambda change: change[0])):
        host[index : index + leave] = come


def _moves(tokens: Tokens, brace: int, qualifiers: set[str]) -> bool:
    """Whether the function whose body opens at `brace` is the device's alone, and no member."""
    if "__host__" in qualifiers:
        return False
    depth = 0
    for i in range(declaration_start(tokens, brace) - 1, -1, -1):
        depth += {"}": 1, "{": -1}.get(tokens[i].text, 0)
        if depth < 0:
            head = {t.text for t in tokens[declaration_start(tokens, i) : i]}
            return head.isdisjoint({"struct", "class", "union"})
    return True
