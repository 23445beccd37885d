"""__shared__ declarations: each becomes a reference into the block's memory."""

import re
from collections.abc import Iterator

from .tokens import OPEN, Token, Tokens, closing, error, made, split_commas, text_of


class SharedMemory:
    """The __shared__ declarations of one translation unit; `numbers` make their helpers' names."""

    def __init__(self, tokens: Tokens, numbers: Iterator[int]):
        self.tokens = tokens
        self.numbers = numbers
        self.in_namespaces: set[str] = set()

    def function_scopes(self) -> list[bool]:
        """For each token: is it in the body of a function?"""
        result = []
        stack = [False]
        head = []
        for t in self.tokens:
            if t.kind == "raw":
                result.append(stack[-1])
                continue
            if t.text == "{":
                words = [h.text for h in head]
                if stack[-1]:
                    inside = True
                elif "namespace" in words or words[:1] == ["extern"] and head[-1].kind == "string":
                    inside = False
                elif any(w in ("class", "struct", "union", "enum") for w in words):
                    named = [
                        w
                        for w in words
                        if w not in ("__align__", "alignas", "__attribute__", "aligned")
                    ]
                    plain = re.sub(r"template\s*<.*?>", "", " ".join(named))
                    inside = bool(re.search(r"\w+ \( [^()]*\w", plain)) and not plain.startswith(
                        "typedef"
                    )
                    inside = inside and not re.match(
                        r"(typedef )?(class|struct|union|enum) \( ", plain
                    )
                    if re.match(
                        r"(typedef |static |const )*(class|struct|union|enum)\b", plain
                    ) and not re.search(r"(class|struct|union|enum) \w+ [*&\w]", plain):
                        inside = False
                else:
                    inside = True
                stack.append(inside)
                head = []
            elif t.text == "}":
                if len(stack) > 1:
                    stack.pop()
                head = []
            elif t.text == ";":
                head = []
            else:
                head.append(t)
            result.append(stack[-1])
        return result

    def rewrite(self) -> None:
        """Change all declarations."""
        if "__shared__" not in {t.text for t in self.tokens}:
            return
        scopes = self.function_scopes()
        tokens = self.tokens
        i = len(self.tokens) - 1
        while i >= 0:
            if tokens[i].text != "__shared__" or tokens[i].kind != "name":
                i -= 1
                continue
            start = i
            while (
                start
                and tokens[start - 1].text not in (";", "{", "}", ")", ":")
                and tokens[start - 1].kind not in ("raw", "pragma")
            ):
                start -= 1
            end = i
            while tokens[end].text != ";":
                end = closing(tokens, end) + 1 if tokens[end].text in OPEN else end + 1
            if "__global__" not in (t.text for t in tokens[start:end]):
                tokens[start : end + 1] = self.declaration(tokens[start:end], scopes[i])
            i = start - 1

    def declaration(self, tokens: Tokens, in_function: bool) -> Tokens:
        first = tokens[0]
        external = False
        aligned = ""
        kept = []
        i = 0
        while i < len(tokens):
            t = tokens[i]
            if t.text in ("__align__", "alignas", "__attribute__") and tokens[i + 1].text == "(":
                close = closing(tokens, i + 1)
                if t.text != "__attribute__":
                    inside = text_of(tokens[i + 2 : close])
                    aligned = f", size_t({inside})"
                i = close
            elif t.text == "extern":
                external = True
            elif t.text not in ("__shared__", "static", "__device__", "inline", "constexpr"):
                kept.append(t)
            i += 1
        names: Tokens = []
        typedef = [made("typedef", first)]
        for n, part in enumerate(split_commas(kept)):
            name = shared_name(part)
            if name is None:
                raise error(first, "this __shared__ declaration is not understood")
            names.append(name)
            if n:
                typedef.append(made(",", first))
            typedef += [made(name.text + "__t", t) if t is name else t for t in part]
        result = [*typedef, made(";", first)]
        for name in names:
            alias = name.text + "__t"
            pointer = f"::cuda_cpu::Element<{alias}>*"
            if external and in_function:
                code = (
                    f"{pointer} {name.text} = static_cast<{pointer}>(::cuda_cpu::dynamic_shared());"
                )
            elif in_function:
                code = f"{alias}& {name.text} = ::cuda_cpu::shared<{alias}{aligned}>([]{{}});"
            elif external:
                if name.text in self.in_namespaces:
                    return []
                self.in_namespaces.add(name.text)
                number = next(self.numbers)
                code = (
                    f"static __thread {pointer} {name.text}; static ::cuda_cpu::DynamicPointer "
                    f"cuda_cpu_pointer_{number}([](void* p) {{ {name.text} = "
                    f"static_cast<{pointer}>(p); }});"
                )
            else:
                number = next(self.numbers)
                code = f"static ::cuda_cpu::SharedVariable<{alias}, {number}> {name.text};"
            result.append(made(code, name))
        return result


STRUCTURES = {"struct", "union", "class"}


def shared_name(part: Tokens) -> Token | None:
    """The name that one part of a __shared__ declaration declares."""
    name = None
    j = 0
    while j < len(part):
        t = part[j]
        following = part[j + 1].text if j + 1 < len(part) else ""
        if t.text == "=" or t.text == "{" and j and part[j - 1] is name:
            raise error(
                t,
                "a __shared__ variable cannot have an initial value: let one thread store it, "
                "then __syncthreads()",
            )
        if t.text == "[":
            if any(x.text == "warpSize" for x in part[j:]):
                raise error(
                    t,
                    "warpSize is no constant for the compiler: write 32 for the size of this array",
                )
            break
        if t.text == "{":  # the members of a struct or union that is declared here
            j = closing(part, j)
        elif t.kind == "name" and following in ("", "[", "="):
            name = t
        elif t.kind == "name" and following == "{" and t.text not in STRUCTURES:
            if not STRUCTURES & {x.text for x in part[:j]}:
                name = t
        j += 1
    return name
