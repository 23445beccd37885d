"""The lexical rewrite: preprocessed CUDA C++ in, ordinary C++ out.

Only the learner's own lines are touched (and those of include/lib, which are written as CUDA C++
too); the text of system headers passes through. Nothing is parsed as C++: the rewrite finds a
handful of constructs by their tokens.

    __global__ void k(int* a) { body }
        ->  void k(int* a) { ... launch_kernel(info, KernelBody{[=]() mutable { body }}, ...); }
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

import itertools
import re

from . import spaces
from .architecture import Architecture
from .arithmetic import rewrite_arithmetic
from .declarations import function_bodies, merge_device_code
from .implicit import Implicit
from .inline_asm import rewrite_asm
from .kernels import DROPPED_WITH_ARGUMENTS, Kernels, drop_launch_bounds
from .launches import rewrite_addresses, rewrite_launches
from .shared_memory import SharedMemory
from .tokens import (
    MARKER,
    OWN_HEADERS,
    Tokens,
    closing,
    error,
    is_own,
    quoted,
    the_end,
    tokenize,
)
from .waits import rewrite_steps, rewrite_waits

DROPPED = {
    "__device__",
    "__host__",
    "__constant__",
    "__managed__",
    "__grid_constant__",
    "__nv_pure__",
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
        """texture cudaBindTexture cudaBindTexture2D cudaBindTextureToArray surface
        cudaBindSurfaceToArray""".split(),
        "texture and surface references, which CUDA 12 has removed",
    ),
    **dict.fromkeys(
        "cudaMallocMipmappedArray tex1DLod tex2DLod tex3DLod tex1DGrad tex2DGrad tex3DGrad".split(),
        "mipmaps",
    ),
    **dict.fromkeys("texCubemap texCubemapLayered surfCubemapread".split(), "cubemaps"),
    "tex2Dgather": "texture gathers",
    **dict.fromkeys(
        "CUdeviceptr CUmodule CUfunction CUcontext CUlibrary CUkernel".split(),
        "memory, modules and contexts of the driver API",
    ),
    **dict.fromkeys(
        "cudaIpcMemHandle_t cudaIpcEventHandle_t cudaIpcGetMemHandle cudaIpcOpenMemHandle".split(),
        "device memory shared between processes",
    ),
    "experimental": "4-bit and 1-bit matrices for tensor cores",
    "cudaGraphicsGLRegisterBuffer": "OpenGL",
}
NO_KERNELS = "to nvcc this is no CUDA C++: give a file with kernels the ending .cu, or say -x cu"
#: Templates of old, whose names are ordinary words elsewhere
ONLY_BEFORE_ANGLE = {"texture", "surface"}
#: Kinds of tokens within a line
ONE_LINE = {"name", "number", "operator"}


class Rewriter:
    """One translation unit. `kernels` holds the names of its kernels after `run`."""

    def __init__(
        self, preprocessed: str, gpu: Architecture | None = None, tokens: Tokens | None = None
    ):
        self.gpu = gpu or Architecture()
        self.tokens = tokenize(preprocessed) if tokens is None else tokens
        self.tokens += the_end(self.tokens)
        first = MARKER.match(preprocessed)
        self.source = re.sub(r"\\(.)", r"\1", first[2]) if first else "source.cu"
        self.kernels: list[str] = []

    def run(self) -> str:
        self.refuse()
        rewrite_asm(self.tokens, self.gpu)
        self.rewrite_clock()
        self.rewrite_device_arithmetic()
        rewrite_waits(self.tokens)
        rewrite_steps(self.tokens)
        numbers = itertools.count(1)
        SharedMemory(self.tokens, numbers).rewrite()
        self.kernels = Kernels(self.tokens, numbers).rewrite()
        rewrite_addresses(self.tokens, set(self.kernels))
        rewrite_launches(self.tokens)
        self.rewrite_words()
        return self.emit()

    # ---- what there is not
    def refuse_kernels(self) -> None:
        """In a source that nvcc hands to the host's compiler; the engine's headers have kernels."""
        for t in self.tokens:
            if t.text in ("__global__", "<<<") and t.kind != "string" and is_own(t.file):
                raise error(t, NO_KERNELS)

    def refuse(self) -> None:
        tokens = self.tokens
        for i, t in enumerate(tokens):
            if t.kind != "name":
                continue
            following = tokens[i + 1].text if i + 1 < len(tokens) else ""
            if t.text in UNSUPPORTED:
                if t.text in ONLY_BEFORE_ANGLE and following != "<":
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
        implicit = Implicit(self.tokens)
        for start, end, _ in function_bodies(self.tokens).values():
            if not self.tokens[start].file.startswith(OWN_HEADERS):
                implicit.rewrite(start, end)
        implicit.insert()
        for start, end, _ in reversed(function_bodies(self.tokens).values()):
            rewrite_arithmetic(self.tokens, start, end)

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
                drop_launch_bounds(self.tokens, i)
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
            if t.line == line and t.file == file and t.kind in ONE_LINE:  # as most do
                out.append(" " + t.text if t.space and t.text else t.text)
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


def rewrite(
    preprocessed: str,
    for_device: str | None = None,
    gpu: Architecture | None = None,
    *,
    tokens: Tokens | None = None,
    relaxed: bool = False,
    is_program: bool = True,
    host_only: bool = False,
) -> tuple[str, tuple[str, ...]]:
    """C++ for the host compiler from the output of its `-E`, and the names of the kernels in it.

    `for_device` is the output with `__CUDA_ARCH__` defined, for sources that look at it, `gpu` what
    it is built for; `tokens` are those of `preprocessed`, where they are known; `relaxed` and
    `is_program`: see `spaces.check`; `host_only`: the source may have no kernels and launches of
    its own. Raises RewriteError ("file:line: error: ...") for what the runtime lacks, and what nvcc
    refuses.
    """
    rewriter = Rewriter(preprocessed, gpu, tokens)
    if host_only:
        rewriter.refuse_kernels()
    device_tokens = rewriter.tokens if for_device is None else tokenize(for_device)
    spaces.check(device_tokens, relaxed=relaxed, is_program=is_program)
    if for_device is not None:
        merge_device_code(rewriter.tokens, device_tokens)
    text = rewriter.run()
    return text, tuple(rewriter.kernels)
