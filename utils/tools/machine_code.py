"""A kernel's PTX and SASS beside its source, each instruction in its source line's colour.

    machine_code.nvcc("build/vector_add.cu", "vector_add")
    machine_code.numba(vector_add, "void(float32[::1], float32[::1], float32[::1])")
    machine_code.triton(copy, out="*fp32", a="*fp32", n="i32", BLOCK=512)

No GPU is needed: the compilers write machine code for this machine's GPU, or for sm_90 where there
is none. Which line an instruction came from is what the compiler itself wrote down (its line
table). Where a compiler is missing, the listing recorded in ``assets/listings`` is shown, says so,
and says how to get the compiler.
"""

import ast
import functools
import html
import inspect
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from utils.engine import target_arch
from utils.files import ASSETS, scratch_folder
from utils.plots import BLOCK_COLOURS
from utils.tools import nvcc as nvcc_tools
from utils.tools import process, toolkit
from utils.tools.source import Listing

#: (line of the source or None, text)
Lines = Sequence[tuple[int | None, str]]
RECORDED = ASSETS / "listings"
CHILD = Path(__file__).with_name("compile_kernel.py")
SECONDS = 600  # by the clock: a tool that takes longer hangs, however busy the computer
GET = {
    "nvcc": "nvcc is missing: pip install 'cuda-toolkit[nvcc,cudart,cccl]==13.0.*'",
    "numba": "Numba's compiler library is missing: pip install 'cuda-toolkit[nvvm,nvrtc]==13.0.*'",
    "triton": "Triton is missing (it exists for Linux): pip install triton",
}


_CELL = "vertical-align:top;text-align:left;padding:2px 4px"


class Missing(RuntimeError):
    """A compiler is not on this machine and no listing is recorded; the text says how to get it."""


@dataclass(frozen=True)
class MachineCode:
    """Source, PTX and SASS of one kernel.

    The line of the source counts from the file's or cell's first.
    `made` says by which compiler for which architecture, `note` (or "") what the reader must know
    about it.
    """

    name: str
    made: str
    source: Lines
    ptx: Lines
    sass: Lines
    note: str = ""

    def count(self, instruction: str, kind: str = "ptx") -> int:
        """How many instructions of a kind ("ptx" or "sass") begin with `instruction`.

        A predicate before it does not count.
        """
        return len(self.find(instruction, kind))

    def find(self, instruction: str, kind: str = "ptx") -> list[str]:
        """The instructions that `count` counts."""
        instructions = [re.sub(r"^@!?%?\w+\s+", "", text) for _, text in getattr(self, kind)]
        return [text for text in instructions if text.startswith(instruction)]

    def __repr__(self) -> str:
        parts = [f"// {self.name}, {self.made}"]
        if self.note:
            parts.append(f"// {self.note}")
        for title in ("ptx", "sass"):
            parts += [f"// {title.upper()}", *(text for _, text in getattr(self, title))]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        return self.html()

    def html(self, columns: Sequence[str] = ("source", "ptx", "sass"), size: str = "10.5px") -> str:
        """The columns side by side as HTML. size: of the letters, as CSS has it."""
        used = sorted({line for line, _ in [*self.ptx, *self.sass] if line})
        colours: dict[int | None, str]
        colours = dict(zip(used, itertools.cycle(BLOCK_COLOURS), strict=False))
        titles = {
            "source": "source",
            "ptx": f"PTX, {len(self.ptx)} lines",
            "sass": f"SASS, {len(self.sass)} instructions",
        }
        cells = ""
        for column in columns:
            lines = _coloured(getattr(self, column), colours, size, wrap=column == "source")
            cells += f'<td style="{_CELL}"><b>{titles[column]}</b>{lines}</td>'
        note = f" · {self.note}" if self.note else ""
        title = html.escape(f"{self.name}, {self.made}{note}")
        return (
            f'<div style="font-size:12px">{title}</div>'
            f'<table style="border-collapse:collapse"><tr>{cells}</tr></table>'
        )


def _coloured(lines: Lines, colours: Mapping[int | None, str], size: str, wrap: bool) -> str:
    """Lines as blocks of one colour, as the source line they belong to has it."""
    space = "white-space:pre-wrap;max-width:27em" if wrap else "white-space:pre"
    style = f"font-size:{size};line-height:1.2;margin:0;color:#222;{space};font-family:monospace"
    rows = ""
    for line, text in lines:
        colour = colours.get(line, "#ffffff")
        shown = html.escape(text) or "&nbsp;"
        rows += f'<div style="background:{colour};padding:0 4px">{shown}</div>'
    return f'<div style="{style}">{rows}</div>'


# ---- the three compilers


def nvcc(path: str | Path, kernel: str) -> MachineCode:
    """What nvcc makes of one kernel of a .cu file.

    Raises utils.tools.nvcc.NvccError for a source that does not compile, LookupError when it has no
    such kernel, Missing.
    """
    path = Path(path)
    if not path.exists():
        raise nvcc_tools.NvccError(f"{path} does not exist: run the cell that writes it")
    text = path.read_text()
    if not toolkit.find_nvcc() or not find_tool("nvdisasm"):
        return _recorded("nvcc", kernel, _c_kernel(text, kernel))
    with scratch_folder() as folder:
        made = {}
        for kind, source in (("ptx", path), ("cubin", folder / "out.ptx")):
            output = folder / f"out.{kind}"
            request = nvcc_tools.Request(source, [f"-{kind}", "-lineinfo"], output)
            done = process.run(nvcc_tools.nvcc_command(request, output), timeout=SECONDS)
            if done.returncode:
                raise nvcc_tools.compile_error(path, done.output)
            made[kind] = output
        return _taken_apart(
            kernel,
            f"nvcc {nvcc_tools.nvcc_version()}, {target_arch()}",
            _c_kernel(text, kernel),
            made["ptx"].read_text(),
            made["cubin"],
            path.name,
        )


def ptx(path: str | Path, kernel: str) -> Listing:
    """PTX of one kernel in a .cu file as text, without directives that only debuggers read.

    PTX is the virtual instruction set that nvcc compiles to first. Raises as `nvcc` does.
    """
    return _listing(path, kernel, "ptx")


def sass(path: str | Path, kernel: str) -> Listing:
    """Machine code of one kernel in a .cu file as text. Raises as `nvcc`."""
    return _listing(path, kernel, "sass")


def _listing(path: str | Path, kernel: str, kind: str) -> Listing:
    code = nvcc(path, kernel)
    head = [f"// {kernel} in {Path(path).name}, {code.made}"]
    if code.note:
        head.append(f"// {code.note}")
    lines = [text for _, text in getattr(code, kind)]
    return Listing("\n".join([*head, *lines]), language="")


def numba(kernel: Any, signature: str) -> MachineCode:
    """What Numba makes of a ``@cuda.jit`` kernel for arguments of these types.

    signature: such as ``"void(float32[::1], int32)"``; ``[::1]`` is a contiguous array.
    The kernel may use numpy as np, math and numba's types, nothing else from around it. Raises
    ValueError with Numba's message, or Missing.
    """
    lines, _ = inspect.getsourcelines(kernel.py_func)
    text = textwrap.dedent("".join(lines))
    shown = list(enumerate(text.splitlines(), 1))
    return _in_python("numba", kernel.py_func.__name__, text, shown, {"signature": signature})


def triton(kernel: Any, name: str = "", /, **arguments: Any) -> MachineCode:
    """What Triton makes of a ``@triton.jit`` kernel for arguments of these types.

    kernel: the kernel, or the path of a Python file that has it by this name.
    arguments: for each a type ("*fp32", "i32"), or the value of a tl.constexpr. Pointers and sizes
        count as divisible by 16, which a launch with ordinary tensors also finds them to be.
    Raises ValueError with Triton's message, LookupError when the file has no such kernel, Missing.
    """
    if name:
        text = Path(kernel).read_text()
    else:
        text = textwrap.dedent(inspect.getsource(kernel.fn))
        name = kernel.fn.__name__
    functions = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    if not functions:
        raise LookupError(f"{kernel} has no kernel named {name}")
    function = functions[0]
    heads: list[ast.stmt | ast.expr] = [function, *function.decorator_list]
    first = min(node.lineno for node in heads)
    lines = list(enumerate(text.splitlines(), 1))
    shown = lines[first - 1 : function.end_lineno]
    return _in_python("triton", name, text, shown, {"arguments": arguments})


def _in_python(compiler: str, name: str, text: str, shown: Lines, request: dict) -> MachineCode:
    """Compile in a process of its own: here Numba and Triton may be on the CPU engines."""
    result = _compile_in_child(compiler, text, name, json.dumps(request), target_arch())
    if result is None:
        return _recorded(compiler, name, shown)
    return MachineCode(name, source=shown, **result)


@functools.lru_cache(maxsize=32)
def _compile_in_child(
    compiler: str, source: str, name: str, request: str, arch: str
) -> dict | None:
    with scratch_folder() as folder:
        (folder / "learners_kernel.py").write_text(source)
        (folder / "request.json").write_text(
            json.dumps(
                {
                    **json.loads(request),
                    "compiler": compiler,
                    "name": name,
                    "cc": int(re.sub(r"\D", "", arch)),
                }
            )
        )
        environment = {
            **os.environ,
            "TRITON_CACHE_DIR": str(folder / "cache"),
            "TRITON_INTERPRET": "0",
        }
        # As a file and without this folder on the path: whoever imports utils gets the CPU engines.
        done = process.run(
            [sys.executable, "-P", str(CHILD), str(folder)], timeout=SECONDS, env=environment
        )
        answer = folder / "answer.json"
        if not answer.exists():
            raise ValueError(f"{name} was not compiled: {done.output.strip()[-1500:]}")
        answer = json.loads(answer.read_text())
        if "missing" in answer or not find_tool("nvdisasm"):
            return None
        if "error" in answer:
            raise ValueError(f"{compiler} does not compile {name}: {answer['error']}")
        cubin = folder / "out.cubin"
        if not cubin.exists() and not _assemble(folder / "out.ptx", cubin, arch):
            return None
        code = _taken_apart(
            name,
            f"{answer['made']}, {arch}",
            [],
            (folder / "out.ptx").read_text(),
            cubin,
            "learners_kernel.py",
        )
        return {"made": code.made, "ptx": code.ptx, "sass": code.sass}


def _assemble(ptx: Path, cubin: Path, arch: str) -> bool:
    """PTX to machine code with the toolkit's or Triton's assembler; False if none reads it."""
    assemblers = [shutil.which("ptxas"), _beside_nvcc("ptxas"), _of_triton("ptxas")]
    for ptxas in filter(None, assemblers):
        done = process.run(
            [ptxas, f"-arch={arch}", "-lineinfo", str(ptx), "-o", str(cubin)], timeout=SECONDS
        )
        if done.returncode == 0:
            return True
    compiler = toolkit.find_nvcc()
    if compiler is None:
        return False
    command = [compiler, "-cubin", f"-arch={arch}", "-lineinfo", str(ptx), "-o", str(cubin)]
    return process.run(command, timeout=SECONDS).returncode == 0


def _beside_nvcc(tool: str) -> str | None:
    nvcc_path = toolkit.find_nvcc()
    beside = Path(nvcc_path).resolve().with_name(tool) if nvcc_path else None
    return str(beside) if beside and beside.exists() else None


def _of_triton(tool: str) -> str | None:
    import importlib.util

    spec = importlib.util.find_spec("triton")
    if not spec or not spec.origin:
        return None
    path = Path(spec.origin).parent / "backends" / "nvidia" / "bin" / tool
    return str(path) if path.exists() else None


def find_tool(name: str) -> str | None:
    """A tool of the CUDA toolkit, such as "nvdisasm": on the PATH, beside nvcc, or Triton's."""
    return shutil.which(name) or _beside_nvcc(name) or _of_triton(name)


# ---- taking listings apart


def _taken_apart(
    kernel: str, made: str, source: Lines, ptx: str, cubin: Path, file: str
) -> MachineCode:
    command = [find_tool("nvdisasm") or "nvdisasm", "-g", "-c", str(cubin)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    ptx_lines = parse_ptx(ptx, kernel, file)
    sass_lines = parse_sass(done.stdout, kernel, file)
    if not ptx_lines or not sass_lines:
        complaint = done.stderr.strip()
        why = f"; nvdisasm says: {complaint}" if complaint else ""
        raise LookupError(f"there is no kernel named {kernel} in what was compiled{why}")
    return MachineCode(kernel, made, source, ptx_lines, sass_lines)


def _c_kernel(text: str, kernel: str) -> Lines:
    """(line, text) of a kernel in CUDA C: from its __global__ to the closing brace."""
    lines = list(enumerate(text.splitlines(), 1))
    named = re.compile(rf"\b{kernel}\b")
    heads = [n for n, line in lines if "__global__" in line and named.search(line)]
    first = heads[0] if heads else 1
    ends = [n for n, line in lines if n >= first and line.startswith("}")]
    last = ends[0] if ends else len(lines)
    return lines[first - 1 : last]


def _is_named(symbol: str, kernel: str) -> bool:
    """Whether a symbol is this kernel's: plain, as C++ mangles it or as Numba does.

    C++: _Z10vector_addPf. Numba: _ZN8…10vector_addB….
    """
    return symbol == kernel or re.match(rf"_Z(N\d+\w*?)?{len(kernel)}{kernel}", symbol) is not None


def parse_ptx(text: str, kernel: str, file: str) -> Lines:
    """(source line or None, text) of each line of a kernel's PTX, debuggers' directives aside."""
    files = re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', text, flags=re.M)
    numbers = {number for number, name in files if Path(name).name == file}
    entries = re.split(r"(?=^[ \t]*(?:\.visible|\.weak)\s+\.entry\s)", text, flags=re.M)
    for entry in entries[1:]:
        head = re.match(r"\s*\S+\s+\.entry\s+([\w$]+)", entry)
        if head is None or not _is_named(head[1], kernel):
            continue
        body = entry[: entry.index("\n}")].replace(head[1] + "_param", "param")
        return _ptx_lines(body, numbers)
    return []


#: Beginnings of lines of PTX that hold no instruction
_NO_CODE = (".reg", ".pragma", ".file", "$L__tmp", "$L__func", "{", "}")


def _ptx_lines(body: str, numbers: set[str]) -> Lines:
    lines = []
    current = None
    started = False
    for line in body.splitlines():
        line = re.sub(r"\s*//.*", "", line).strip()
        place = re.match(r"\.loc\s+(\d+)\s+(\d+)", line)
        if place:
            outer = re.search(r"inlined_at\s+(\d+)\s+(\d+)", line)
            where = place if place[1] in numbers or not outer else outer
            current = int(where[2]) if where[1] in numbers else None
        elif line == "{":
            started = True
        elif started and line and not line.startswith(_NO_CODE):
            lines.append((current, " ".join(line.rstrip(";").split())))
    return lines


def parse_sass(text: str, kernel: str, file: str) -> Lines:
    """(source line or None, text) of each instruction of a kernel by ``nvdisasm -g -c``."""
    for section in text.split("//--------------------- .text.")[1:]:
        if not _is_named(section.split()[0], kernel):
            continue
        lines = []
        current = None
        for line in section.splitlines():
            instruction = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line)
            if "//## File" in line:
                places = re.findall(r'"([^"]*)", line (\d+)', line)
                own = [int(n) for name, n in places if Path(name).name == file]
                current = own[0] if own else None
            elif instruction:
                words = instruction[1].split()
                lines.append((current, " ".join(words)))
        # padding and a jump to itself: never run
        while lines and re.match(r"NOP|BRA `\(\.L_x_\d+\)$", lines[-1][1]):
            lines.pop()
        return lines
    return []


# ---- recorded listings


def _path(compiler: str, kernel: str) -> Path:
    return RECORDED / f"{kernel}.{compiler}.json"


def _recorded(compiler: str, kernel: str, source: Lines) -> MachineCode:
    path = _path(compiler, kernel)
    if not path.exists():
        raise Missing(f"{GET[compiler]}; no listing of {kernel} is recorded")
    content = json.loads(path.read_text(encoding="utf-8"))
    same = [text for _, text in content["source"]] == [text for _, text in source]
    note = f"{GET[compiler]}; shown is a listing recorded with {content['made']}"
    if not same:
        note += ", of the kernel as the chapter has it, not as it is now"
    return MachineCode(**{**content, "note": note})


def record(code: MachineCode, compiler: str) -> Path:
    """Keep a listing in ``assets/listings``, for machines without the compiler."""
    path = _path(compiler, code.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(code), indent=0, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    return path
