"""The lexical rewrite: preprocessed CUDA C++ in, ordinary C++ out.

Only the learner's own lines are touched (and those of include/lib, which are written as CUDA C++
too); the text of system headers passes through. Nothing is parsed as C++: the rewrite finds a
handful of constructs by their tokens.

    __global__ void k(int* a) { body }
        ->  void k(int* a) { ... launch_kernel(info, [=]() mutable { body }, ...); }
    k<<<grid, block>>>(a)
        ->  (::cuda_cpu::configure(grid, block), k(a))
    __shared__ float s[16][17];
        ->  typedef float s__t[16][17]; auto& s = ::cuda_cpu::shared<s__t>([]{});
    extern __shared__ float s[];
        ->  typedef float s__t[]; ...* s = dynamic_shared();
    __device__, __constant__, ...
        ->  (nothing)
    printf, assert's failure function
        ->  the runtime's own

A kernel's stub keeps name and signature, so templates, overloads and default arguments follow C++'s
own rules. Every output line is preceded by a line marker where needed: diagnostics and debuggers
name the learner's file and line.
"""

import re

from .arithmetic import rewrite_arithmetic
from .inline_asm import rewrite_asm
from .tokens import (
    MARKER,
    OPEN,
    Token,
    angle_end,
    angle_start,
    closing,
    error,
    made,
    opening,
    split_commas,
    tokenize,
)

DROPPED = {
    "__device__",
    "__host__",
    "__constant__",
    "__managed__",
    "__grid_constant__",
    "__nv_pure__",
}
DROPPED_WITH_ARGUMENTS = {"__cluster_dims__", "__maxnreg__", "__block_size__"}
ATTRIBUTES_WITH_ARGUMENTS = {
    "__attribute__",
    "__align__",
    "alignas",
    "decltype",
    *DROPPED_WITH_ARGUMENTS,
}
REPLACED = {
    "__forceinline__": "inline",
    "__noinline__": "__attribute__((noinline))",
    "__inline_hint__": "",
    "__assert_fail": "::cuda_cpu::assert_failed",
    "__assert_rtn": "::cuda_cpu::assert_failed_apple",
}
#: What there is none of on the CPU, by the words that ask for it
UNSUPPORTED = {
    **dict.fromkeys(
        """texture tex1D tex1Dfetch tex2D tex3D tex1DLod tex2DLod tex2DLayered cudaTextureObject_t
        cudaCreateTextureObject cudaBindTexture cudaBindTexture2D cudaBindTextureToArray""".split(),
        "textures",
    ),
    **dict.fromkeys(["cudaSurfaceObject_t", "surf2Dread", "surf2Dwrite"], "surfaces"),
    **dict.fromkeys(
        ["cudaMallocArray", "cudaArray", "cudaArray_t", "cudaMalloc3DArray"], "texture arrays"
    ),
    "experimental": "4-bit and 1-bit matrices for tensor cores",
    "cudaGraphicsGLRegisterBuffer": "OpenGL",
}
TYPE_WORDS = set(
    "int float double char short long unsigned signed bool void const volatile size_t auto".split()
)


class Rewriter:
    """One translation unit. `kernels` holds the names of its kernels after `run`."""

    def __init__(self, preprocessed: str):
        self.tokens = tokenize(preprocessed)
        first = MARKER.match(preprocessed)
        self.source = re.sub(r"\\(.)", r"\1", first[2]) if first else "source.cu"
        self.kernels: list[str] = []
        self.count = 0
        self.namespace_shared: set[str] = set()

    def run(self) -> str:
        self.refuse()
        rewrite_asm(self.tokens)
        self.rewrite_clock()
        self.rewrite_device_arithmetic()
        self.rewrite_waits()
        self.rewrite_steps()
        self.rewrite_shared()
        self.rewrite_kernels()
        self.rewrite_addresses()
        self.rewrite_launches()
        self.rewrite_words()
        return self.emit()

    # ---- what there is not
    def refuse(self) -> None:
        tokens = self.tokens
        for i, t in enumerate(tokens):
            if t.kind != "name":
                continue
            following = tokens[i + 1].text if i + 1 < len(tokens) else ""
            if t.text in UNSUPPORTED:
                if t.text == "texture" and following != "<":
                    continue
                if t.text == "experimental" and (i < 2 or tokens[i - 2].text != "wmma"):
                    continue
                raise error(
                    t,
                    f"the CPU runtime has no {UNSUPPORTED[t.text]} ('{t.text}'): this program "
                    "needs a GPU",
                )
        for start, end, qualifiers in function_bodies(tokens).values():
            for t in tokens[start:end]:
                if (
                    t.text == "cudaDeviceSynchronize"
                    and t.kind == "name"
                    and "__host__" not in qualifiers
                ):
                    raise error(t, "cudaDeviceSynchronize() cannot be called in a kernel since "
                                   "CUDA 12: split the kernel, or "
                                "launch what comes after into cudaStreamTailLaunch")  # fmt: skip

    def rewrite_clock(self) -> None:
        """clock() of a kernel counts cycles, that of the C library the processor's time."""
        for start, end, qualifiers in function_bodies(self.tokens).values():
            for i in range(start, end - 1):
                t = self.tokens[i]
                if t.text == "clock" and t.kind == "name" and "__host__" not in qualifiers:
                    if self.tokens[i + 1].text == "(" and self.tokens[i - 1].text not in (
                        ".",
                        "->",
                        "::",
                    ):
                        t.text = "(clock_t)::cuda_cpu::clock_cycles"

    def rewrite_device_arithmetic(self) -> None:
        for start, end, _ in reversed(function_bodies(self.tokens).values()):
            rewrite_arithmetic(self.tokens, start, end)

    # ---- loops that wait
    def rewrite_waits(self) -> None:
        """`while (flag == 0);` of a device function lets others run."""
        tokens = self.tokens
        for start, end, _ in reversed(function_bodies(tokens).values()):
            for i in range(end - 1, start, -1):
                if tokens[i].text != "while" or tokens[i].kind != "name" or ends_do(tokens, i):
                    continue
                close = closing(tokens, i + 1)
                last = close + 1 if tokens[close + 1].text == ";" else close + 2
                condition = tokens[i + 2 : close]
                if last == close + 2 and [t.text for t in tokens[close + 1 : last + 1]] != [
                    "{",
                    "}",
                ]:
                    continue
                if changes_something(condition):
                    continue
                calls = any(
                    a.kind == "name" and b.text == "("
                    for a, b in zip(condition, condition[1:], strict=False)
                )
                again = f";) cuda_cpu_wait_.again({'true' if calls else 'false'});"
                tokens[i : last + 1] = [
                    made("for (::cuda_cpu::WaitLoop cuda_cpu_wait_;", tokens[i]),
                    *condition,
                    made(again, tokens[close]),
                ]

    # ---- volatile shared memory
    def rewrite_steps(self) -> None:
        """`s[i] += s[i + 16];` on volatile memory: the warp's lanes stay in step after it."""
        tokens = self.tokens
        if not any(t.text == "volatile" for t in tokens):
            return
        for start, end, qualifiers in reversed(function_bodies(tokens).values()):
            head = start
            while (
                head
                and tokens[head - 1].text not in (";", "}")
                and tokens[head - 1].kind not in ("raw", "pragma")
            ):
                head -= 1
            # A kernel's own parameters are global memory: of those nobody expects it.
            names = volatile_names(
                tokens[start:end] if "__global__" in qualifiers else tokens[head:end]
            )
            i = end - 1
            while i > start:
                t = tokens[i]
                if t.text in names and t.kind == "name" and tokens[i + 1].text == "[":
                    before = tokens[i - 1].text
                    stop = i + 1
                    while tokens[stop].text == "[":
                        stop = closing(tokens, stop) + 1
                    stores = tokens[stop].text in ("=", "+", "-", "*", "/", "|", "&", "^") and (
                        tokens[stop].text == "="
                        and tokens[stop + 1].text != "="
                        or tokens[stop + 1].text == "="
                    )
                    in_for = before == ";" and not balanced(tokens[start:i])
                    if stores and before in (";", "{", "}", ")", "else", ":") and not in_for:
                        while tokens[stop].text != ";":
                            stop = (
                                closing(tokens, stop) + 1 if tokens[stop].text in OPEN else stop + 1
                            )
                        tokens[stop + 1 : stop + 1] = [
                            made("::cuda_cpu::in_step();", tokens[stop]),
                            made("}", tokens[stop]),
                        ]
                        tokens[i:i] = [made("{", t)]
                i -= 1

    # ---- __shared__
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

    def rewrite_shared(self) -> None:
        if not any(t.text == "__shared__" for t in self.tokens):
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
                tokens[start : end + 1] = self.shared_declaration(tokens[start:end], scopes[i])
            i = start - 1

    def shared_declaration(self, tokens: list[Token], in_function: bool) -> list[Token]:
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
                    inside = " ".join(x.text for x in tokens[i + 2 : close])
                    aligned = f", size_t({inside})"
                i = close
            elif t.text == "extern":
                external = True
            elif t.text not in ("__shared__", "static", "__device__", "inline", "constexpr"):
                kept.append(t)
            i += 1
        names: list[Token] = []
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
                code = f"auto& {name.text} = ::cuda_cpu::shared<{alias}{aligned}>([]{{}});"
            elif external:
                if name.text in self.namespace_shared:
                    return []
                self.namespace_shared.add(name.text)
                self.count += 1
                code = (
                    f"static __thread {pointer} {name.text}; static ::cuda_cpu::DynamicPointer "
                    f"cuda_cpu_pointer_{self.count}([](void* p) {{ {name.text} = "
                    f"static_cast<{pointer}>(p); }});"
                )
            else:
                self.count += 1
                code = f"static ::cuda_cpu::SharedVariable<{alias}, {self.count}> {name.text};"
            result.append(made(code, name))
        return result

    # ---- __global__
    def rewrite_kernels(self) -> None:
        tokens = self.tokens
        i = len(self.tokens) - 1
        while i >= 0:
            if tokens[i].text == "__global__" and tokens[i].kind == "name":
                self.rewrite_kernel(i)
            i -= 1
        self.kernels = list(dict.fromkeys(reversed(self.kernels)))

    def rewrite_kernel(self, at: int) -> None:
        tokens = self.tokens
        start = declaration_start(tokens, at)
        limit = "0"
        for k in range(start, at):
            if tokens[k].text == "__launch_bounds__":
                limit = self.drop_launch_bounds(k) or limit
        name, open_parameters, later_limit = self.kernel_name(at)
        limit = later_limit or limit
        if name < 0:
            return
        cluster = self.cluster_size(start, name)
        self.kernels.append(tokens[name].text)
        close_parameters = closing(tokens, open_parameters)
        body = close_parameters + 1
        while tokens[body].text not in (";", "{"):
            body += 1
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
        arguments = "".join(f'.add("{n}", {n})' for n in map(parameter_name, parameters) if n)
        self.count += 1
        info = f"cuda_cpu_kernel_{self.count}"
        place = f"{quoted(name_token.file)}, {name_token.line}"
        before = (
            f'static ::cuda_cpu::Kernel {info}("{name_token.text}", {place}, '
            f"int({limit}), 0{shared}{cluster}); "
            f"::cuda_cpu::Args cuda_cpu_args_; cuda_cpu_args_{arguments or '.size()'}; "
            f"::cuda_cpu::launch_kernel({info}, [=]() mutable"
        )
        after = ", __builtin_return_address(0), cuda_cpu_args_.list, cuda_cpu_args_.size()); }"
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
                limit = self.drop_launch_bounds(j) or limit
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
                return "".join(f", unsigned({' '.join(t.text for t in size)})" for size in sizes)
        return ""

    def registration(self, name: Token, parameters: list, end: Token) -> list[Token]:
        """What makes a kernel known by its name before main begins."""
        self.count += 1
        variable = f"cuda_cpu_registration_{self.count}"
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
            for before, t, after in zip(inside, inside[1:], inside[2:], strict=False)
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
                " + sizeof("
                + " ".join(d.text for d in declaration if not d.text.endswith("__t"))
                + ")"
            )
        return result

    def drop_launch_bounds(self, i: int) -> str:
        close = closing(self.tokens, i + 1)
        first = split_commas(self.tokens[i + 2 : close])
        text = " ".join(t.text for t in first[0]) if first else ""
        for t in self.tokens[i : close + 1]:
            t.kind = "made"
            t.text = ""
        return text

    # ---- (void*)kernel
    def rewrite_addresses(self) -> None:
        """A kernel's address without its type is registered for cudaLaunchKernel."""
        tokens = self.tokens
        kernels = set(self.kernels)
        i = len(self.tokens) - 1
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

    # ---- <<< >>>
    def rewrite_launches(self) -> None:
        tokens = self.tokens
        i = len(self.tokens) - 1
        while i >= 0:
            if tokens[i].text == "<<<" and tokens[i].kind == "operator":
                self.rewrite_launch(i)
            i -= 1

    def rewrite_launch(self, at: int) -> None:
        tokens = self.tokens
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

    # ---- words
    def rewrite_words(self) -> None:
        tokens = self.tokens
        for i, t in enumerate(tokens):
            if t.kind != "name":
                continue
            if t.text in DROPPED:
                t.text = ""
            elif t.text in REPLACED:
                if not (t.text == "__noinline__" and i and tokens[i - 1].text in ("(", ",")):
                    t.text = REPLACED[t.text]
                    if t.text.startswith("::") and i and tokens[i - 1].text == "::":
                        tokens[i - 1].text = ""
            elif t.text == "__launch_bounds__":
                self.drop_launch_bounds(i)
            elif t.text in DROPPED_WITH_ARGUMENTS:
                for x in tokens[i : closing(tokens, i + 1) + 1]:
                    x.kind = "made"
                    x.text = ""
            elif t.text in ("__align__", "__builtin_align__") and tokens[i + 1].text == "(":
                close = closing(tokens, i + 1)
                t.text = "__attribute__((aligned"
                tokens[close].text = ")))"
            elif t.text == "printf" and i + 1 < len(tokens) and tokens[i + 1].text == "(":
                if i and tokens[i - 1].text in (".", "->"):
                    continue
                if i and tokens[i - 1].text == "::":
                    tokens[i - 1].text = ""
                    if i > 1 and tokens[i - 2].text == "std":
                        tokens[i - 2].text = ""
                t.text = "::cuda_cpu::device_printf"

    # ---- output
    def emit(self) -> str:
        out: list[str] = [
            f"# 1 {quoted(self.source)}\n"
        ]  # debug information names the first file as the source
        file, line = "", 0
        for t in self.tokens:
            if t.kind == "raw":
                out.append("\n" + t.text)
                file = ""
                continue
            if t.kind == "pragma":
                if not re.match(r"#pragma\s+(unroll|nounroll|nv_|once)", t.text):
                    out.append(f"\n# {t.line} {quoted(t.file)}\n{t.text}\n")
                    file = ""
                continue
            if not t.text:
                continue
            if t.file != file or t.line != line:
                if t.file == file and 0 < t.line - line < 8:
                    out.append("\n" * (t.line - line))
                else:
                    out.append(f"\n# {t.line} {quoted(t.file)}\n")
                file = t.file
                line = t.line
                out.append(" " * t.column)  # so that the compiler's columns are the learner's
            elif t.space:
                out.append(" ")
            out.append(t.text)
            line += t.text.count("\n")
        return "".join(out) + "\n"


def volatile_names(tokens: list[Token]) -> set[str]:
    """Names of volatile pointers and shared arrays that are declared in these tokens."""
    names = set()
    for i, t in enumerate(tokens):
        if t.text != "volatile" or t.kind != "name":
            continue
        around = [x.text for x in tokens[max(0, i - 3) : i + 2]]
        pointer = False
        shared = "__shared__" in around
        j = i + 1
        while j + 1 < len(tokens) and (
            tokens[j].kind == "name" or tokens[j].text in ("*", "::", "<", ">")
        ):
            pointer |= tokens[j].text == "*"
            if tokens[j].kind == "name" and (pointer or shared and tokens[j + 1].text == "["):
                names.add(tokens[j].text)
            j += 1
    return names - {"__restrict__", "const", "__shared__"}


def ends_do(tokens: list[Token], i: int) -> bool:
    """Does the `while` at `i` end a do-while loop?"""
    if tokens[i - 1].text == "}":
        return tokens[opening(tokens, i - 1) - 1].text == "do"
    start = i - 1
    while start and tokens[start - 1].text not in (";", "{", "}"):
        start -= 1
    return tokens[start].text == "do"


def changes_something(expression: list[Token]) -> bool:
    """Does it have ++, -- or an assignment?"""
    words = ["", *(t.text for t in expression), ""]
    for before, word, after in zip(words, words[1:], words[2:], strict=False):
        if (
            word in ("+", "-")
            and after == word
            or word == "="
            and after != "="
            and before not in ("=", "!", "<", ">")
        ):
            return True
    return False


def balanced(tokens: list[Token]) -> bool:
    """Is every parenthesis that is opened here closed again?"""
    return sum((t.text == "(") - (t.text == ")") for t in tokens) == 0


def is_lambda(tokens: list[Token], brace: int) -> bool:
    """Does the '{' at `brace` open the body of a lambda?"""
    i = brace - 1
    while i > 0 and (
        tokens[i].kind == "name" or tokens[i].text in ("->", "::", "*", "&", "<", ">")
    ):
        i -= 1
    if tokens[i].text == ")":
        i = opening(tokens, i) - 1
    return tokens[i].text == "]"


def declaration_start(tokens: list[Token], at: int) -> int:
    """Index of the first token of the declaration that `at` is a part of."""
    while at:
        before = tokens[at - 1]
        if before.text in (";", "{", "}") or before.kind in ("raw", "pragma"):
            break
        at -= 1
    return at


def launch_start(tokens: list[Token], at: int) -> int:
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


def parameter_name(parameter: list[Token]) -> str:
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


STRUCTURES = {"struct", "union", "class"}


def shared_name(part: list[Token]) -> Token | None:
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


def without_defaults(parameters: list[list[Token]]) -> list[Token]:
    result: list[Token] = []
    for n, parameter in enumerate(parameters):
        if n:
            result.append(made(",", parameter[0]))
        for t in parameter:
            if t.text == "=":
                break
            result.append(Token(t.kind, t.text, t.line, t.file, t.space, t.column))
    return result


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def function_bodies(tokens: list[Token]) -> dict[tuple, tuple[int, int, set[str]]]:
    """Bodies of __device__ and __global__ functions by where '{' stands.

    Each with its first and last token and its qualifiers.
    """
    bodies = {}
    head = []
    i = 0
    braces_at = {}
    while i < len(tokens):
        t = tokens[i]
        if t.text == "{":
            place = (t.file, t.line)
            braces_at[place] = braces_at.get(place, 0) + 1
            qualifiers = {h.text for h in head} & {"__device__", "__global__", "__host__"}
            if qualifiers & {"__device__", "__global__"} and any(h.text == "(" for h in head):
                end = closing(tokens, i)
                bodies[(*place, braces_at[place])] = (i, end, qualifiers)
                i = end
            head = []
        elif t.text in (";", "}") or t.kind == "raw":
            head = []
        else:
            head.append(t)
        i += 1
    return bodies


def merge_device_code(host: list[Token], device: list[Token]) -> None:
    """Puts what is compiled for the device (`__CUDA_ARCH__` defined) into the tokens `host`.

    Device functions and kernels get their device body; a __host__ __device__ function whose two
    bodies differ gets both, and chooses when it runs.
    """
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


def rewrite(preprocessed: str, for_device: str | None = None) -> tuple[str, tuple[str, ...]]:
    """C++ for the host compiler from the output of its `-E`, and the names of the kernels in it.

    `for_device` is the output with `__CUDA_ARCH__` defined, for sources that look at it. Raises
    RewriteError ("file:line: error: ...") for what the runtime does not have.
    """
    rewriter = Rewriter(preprocessed)
    if for_device is not None:
        merge_device_code(rewriter.tokens, tokenize(for_device))
    text = rewriter.run()
    return text, tuple(rewriter.kernels)
