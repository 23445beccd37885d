"""Which kernels does a CUDA C++ source hold, and what do they take?

A launch from Python hands over raw addresses and numbers, so a wrong type would be read as garbage.
The types stand in the source: this module reads the ``__global__`` signatures lexically (no macros,
no typedefs are followed; a type that it does not know is passed on unchecked).
"""

import functools
import re
from dataclasses import dataclass, replace

import numpy as np

#: C++ spelling of a parameter type -> NumPy dtype of a value, or of what a pointer points to.
DTYPES = {
    "float": np.float32,
    "double": np.float64,
    "bool": np.bool_,
    "half": np.float16,
    "__half": np.float16,
    "char": np.int8,
    "signed char": np.int8,
    "unsigned char": np.uint8,
    "uchar": np.uint8,
    "short": np.int16,
    "unsigned short": np.uint16,
    "int": np.int32,
    "unsigned": np.uint32,
    "unsigned int": np.uint32,
    "uint": np.uint32,
    "long long": np.int64,
    "long long int": np.int64,
    "unsigned long long": np.uint64,
    "unsigned long long int": np.uint64,
    "long": np.int64,
    "unsigned long": np.uint64,
    "size_t": np.uint64,
    "int8_t": np.int8,
    "uint8_t": np.uint8,
    "int16_t": np.int16,
    "uint16_t": np.uint16,
    "int32_t": np.int32,
    "uint32_t": np.uint32,
    "int64_t": np.int64,
    "uint64_t": np.uint64,
    "ptrdiff_t": np.int64,
}
# CUDA's vector types: an array of float4 is an array of float32 to Python.
_VECTOR = re.compile(r"(char|uchar|short|ushort|int|uint|longlong|ulonglong|float|double)[1-4]$")
_VECTOR_BASE = {
    "uchar": "unsigned char",
    "ushort": "unsigned short",
    "uint": "unsigned int",
    "longlong": "long long",
    "ulonglong": "unsigned long long",
}

# What may stand between __global__ and the kernel's name and looks like a function:
# __launch_bounds__(256, (2)) ...
_ATTRIBUTE = re.compile(
    r"__(?:launch_bounds|cluster_dims|maxnreg)__\s*\([^()]*(?:\([^()]*\)[^()]*)*\)"
)


_QUALIFIERS = set(
    "const volatile __restrict__ __restrict restrict __grid_constant__ struct".split()
)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel: its bare C++ type (no const, __restrict__ or *), and its name."""

    type: str
    name: str
    pointer: bool
    const: bool  # the kernel only reads what a pointer points to

    @functools.cached_property
    def dtype(self) -> np.dtype | None:
        """NumPy dtype of the value or the pointed-to elements; None if it is no built-in type."""
        base = self.type
        if self.pointer and _VECTOR.match(base):
            base = base[:-1]
            base = _VECTOR_BASE.get(base, base)
        return np.dtype(DTYPES[base]) if base in DTYPES else None

    @property
    def declared(self) -> str:
        """Its type as in a declaration, but for what is const about a value."""
        const = "const " if self.const and self.pointer else ""
        return f"{const}{self.type}{'*' if self.pointer else ''}"

    def __str__(self) -> str:
        const = "const " if self.const else ""
        star = "*" if self.pointer else ""
        return f"{const}{self.type} {star}{self.name}"


@dataclass(frozen=True)
class Signature:
    """A kernel as its source declares it."""

    name: str
    parameters: tuple[Parameter, ...]
    template: tuple[str, ...] = ()  # names of a template's parameters

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    @property
    def address(self) -> str:
        """An expression of C++ for this very kernel, where functions of CUDA bear its name, too."""
        types = ", ".join(parameter.declared for parameter in self.parameters)
        return f"static_cast<void (*)({types})>({self.name})"

    def instantiate(self, arguments: tuple[str, ...]) -> "Signature":
        """The signature with the template's type parameters replaced, e.g. T by float."""
        types = dict(zip(self.template, arguments, strict=False))
        parameters = [replace(p, type=types.get(p.type, p.type)) for p in self.parameters]
        return Signature(self.name, tuple(parameters))


def kernels_in(source: str) -> dict[str, Signature]:
    """All kernels that `source` (text of a .cu file) defines or declares, by name."""
    text = _strip_comments(source)
    signatures = {}
    for match in re.finditer(r"\b__global__\b", text):
        declaration = _ATTRIBUTE.sub(" ", text[match.end() : match.end() + 4000])
        head = re.match(r"[^(;{]*?(\w+)\s*\(", declaration)
        if not head:
            continue
        name = head.group(1)
        parameters = _split(_until_closed(declaration[head.end() :]))
        template = _template_before(text[: match.start()])
        signatures[name] = Signature(name, tuple(map(_parameter, parameters)), template)
    return signatures


def _strip_comments(source: str) -> str:
    """Blank out comments, macros and string contents, so that nothing in them looks like code."""
    macro = r"^[ \t]*#[ \t]*define(?:\\\n|[^\n])*"
    pattern = re.compile(rf'//[^\n]*|/\*.*?\*/|{macro}|"(?:\\.|[^"\\\n])*"', re.S | re.M)
    return pattern.sub(lambda m: '""' if m.group().startswith('"') else " ", source)


def _until_closed(text: str) -> str:
    """The part of `text` before the parenthesis that closes the one already open."""
    depth = 1
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[:position]
    return text


def _split(text: str) -> list[str]:
    """Split at commas that stand in no bracket."""
    parts = []
    depth = 0
    start = 0
    for position, character in enumerate(text):
        depth += (character in "(<[{") - (character in ")>]}")
        if character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip() and part.strip() != "void"]


def _parameter(text: str) -> Parameter:
    text = text.split("=")[0]
    array = re.search(r"\[[^\]]*\]\s*$", text)
    pointer = "*" in text or bool(array)
    words = re.findall(r"[A-Za-z_][\w:]*(?:<[^<>]*>)?", re.sub(r"\[[^\]]*\]", " ", text))
    const = "const" in words
    words = [word for word in words if word not in _QUALIFIERS]
    name = words.pop() if len(words) > 1 and words[-1] not in DTYPES else ""
    kind = " ".join(w.removeprefix("std::") for w in words)
    return Parameter(kind, name, pointer, const)


def _template_before(text: str) -> tuple[str, ...]:
    """Names of the template parameters if a ``template <...>`` stands just before."""
    tail = text[-1000:].rstrip()
    tail = re.sub(r"(\bstatic\b|\binline\b|extern\s+\"\")\s*$", "", tail).rstrip()
    if not tail.endswith(">"):
        return ()
    depth = 0
    for position in range(len(tail) - 1, -1, -1):
        depth += (tail[position] == ">") - (tail[position] == "<")
        if depth == 0:
            break
    if not re.search(r"\btemplate\s*$", tail[:position]):
        return ()
    declared = [part.split("=")[0].split() for part in _split(tail[position + 1 : -1])]
    return tuple(words[-1] for words in declared)
