"""A function of a Python file as the chapter shows it, whether its packages are here or not."""

import ast
from pathlib import Path

from utils.tools.source import Listing

FOLDER = Path(__file__).parent
CUDA_C = FOLDER.parent / "matmul" / "kernels"
#: Of each language the file and the functions that a matmul consists of
MATMULS = {
    "Triton, pointers": ("matmul.py", ("place", "matmul_pointers")),
    "Triton, descriptors": ("matmul.py", ("place", "matmul_descriptors")),
    "Triton, staying": ("matmul.py", ("place", "matmul_persistent")),
    "cuTile": ("cutile/matmul.py", ("place", "matmul")),
    "Numba, float32": ("../matmul/numba_rungs/unsigned.py", ("unsigned",)),
    "Gluon": (
        "gluon_matmul.py",
        ("place", "produce", "put", "halve", "consume", "consume_top", "consume_bottom")
        + ("matmul_gluon",),
    ),
    "CuTe DSL": (
        "cute/matmul.py",
        ("place", "swizzled", "pieces", "produce", "multiply", "put", "consume", "matmul_blocks")
        + ("matmul",),
    ),
}
#: CUDA C's files
HOPPER = (
    "hopper.cu",
    "hopper_tiles.cuh",
    "hopper_rounds.cuh",
    "hopper_instructions.cuh",
    "wgmma_sums.cuh",
)


def text_of(file: str, name: str) -> str:
    """The source of one function, its decorators with it. LookupError where there is none."""
    source = (FOLDER / file).read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            parts = [node, *node.decorator_list]
            first = min(part.lineno for part in parts)
            lines = source.splitlines()[first - 1 : node.end_lineno]
            return "\n".join(lines)
    raise LookupError(f"{file} has no function {name}")


def show(
    file: str,
    name: str,
    start: str = "",
    lines: int | None = None,
) -> Listing:
    """One function, or `lines` lines of it from the one that holds `start`."""
    text = text_of(file, name).splitlines()
    first = next(n for n, line in enumerate(text) if start in line)
    return Listing("\n".join(text[first:][:lines]))


def lines_of_matmuls() -> dict[str, int]:
    """Lines of code of one matmul in each language, without blank lines and comments."""
    counts = {}
    for language, (file, names) in MATMULS.items():
        texts = [text_of(file, name) for name in names]
        counts[language] = sum(_code_lines(text, "#") for text in texts)
    texts = [(CUDA_C / file).read_text() for file in HOPPER]
    counts["CUDA C, Hopper"] = sum(_code_lines(text, "//") for text in texts)
    return counts


def _code_lines(text: str, comment: str) -> int:
    no_code = (comment, '"""', "*", "/*")
    lines = [line.strip() for line in text.splitlines()]
    return sum(bool(line) and not line.startswith(no_code) for line in lines)
