"""What NVRTC refuses is refused here, too.

On a GPU a file of kernels is compiled by NVRTC. That knows device code alone: it has no headers of
the C++ library but those of `utils/cuda_c/nvrtc`, and takes no function or variable of the host.
Here every header is at hand and the host's functions do no harm, so a file that runs would fail on
the next GPU if nobody looked.
"""

import functools
import re
from collections.abc import Iterator
from pathlib import Path

from .declarations import is_lambda
from .scopes import (
    CLASSES,
    Declaration,
    declarations,
    declared_names,
    function_name,
    is_constant,
    is_deduction_guide,
    is_defaulted,
    is_variable,
    lambda_in,
    variable_name,
)
from .tokens import (
    MARKER,
    OWN_HEADERS,
    Findings,
    RewriteError,
    Token,
    Tokens,
    closing,
    error,
    is_own,
    split_commas,
    tokenize,
    triples,
)

#: As NVRTC defines it: what stands under #ifndef of it is for nvcc alone
MACRO = "-D__CUDACC_RTC__"
HOST_FUNCTION = (
    "on a GPU NVRTC compiles this file, and it takes device code only: write __device__ (or "
    "__host__ __device__) in front of this function, or put the host's part into a program of its "
    "own, for %nvcc"
)
HOST_VARIABLE = (
    "on a GPU NVRTC compiles this file, and it takes device code only: make this variable "
    "__device__, __constant__ or constexpr, or put the host's part into a program of its own, for "
    "%nvcc"
)
NO_HEADER = (
    "on a GPU NVRTC compiles this file, and it takes device code only, without <{}>: leave it out, "
    "or put the host's part into a program of its own, for %nvcc"
)
NO_NAME = (
    "on a GPU NVRTC compiles this file, and there std::{0} is not without its header, if at all: "
    "#include the header, or write it with CUDA's own functions"
)
LAUNCH = (
    "on a GPU NVRTC compiles this file, and it cannot launch kernels: launch from Python, or make "
    "this a program, for %nvcc"
)
#: In every file that NVRTC compiles; what NVRTC knows by itself
PRELUDE = "prelude.h"
BUILT_IN = ("move", "forward")
#: CUDA's headers for the host, whose stand-ins a program finds here
FOR_HOST = re.compile(
    r"thrust/|nvtx3/|cu(blas|dnn|fft|rand|solver|sparse)|nccl|npp|cudaTypedefs|cuda_profiler|"
    r"cub/(device|block\.cuh|adjacent)|cuda/(stream_ref|std/algorithm)"
)
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)

LAMBDA = (
    "on a GPU NVRTC compiles this file, and it takes a lambda in functions only: make this a "
    "__device__ function"
)
MARKED_LAMBDA = "__host__ or __device__ annotation on lambda requires --extended-lambda nvcc flag"
STATIC_MEMBER = (
    "on a GPU NVRTC compiles this file, and a class's static member is the host's there: make this "
    "constexpr, or a __device__ variable outside the class"
)
UNDEFINED = 'identifier "{}" is undefined'

FOR_DEVICE = {"__device__", "__global__", "__shared__", "__constant__", "__managed__"}
NO_DEFINITION = {"using", "typedef", "static_assert", "asm", "concept", "friend"}
#: Words that g++ knows, and what NVRTC says of them
NO_WORDS = {
    "register": 'use of the "register" storage class specifier is not allowed',
    "__asm__": UNDEFINED.format("__asm__") + ": write asm",
    "__float128": "128-bit floating point type is not supported",
}
#: Of what utils/cuda_c/nvrtc/algorithm has in one form alone
MOST_ARGUMENTS = {"min": 2, "max": 2, "clamp": 3}
#: Functions that nvcc finds for a device in libraries, or computes
RUNTIME = re.compile(r"cuda[A-Z]\w+|strlen")


def check(preprocessed: str, headers: Path) -> Tokens:
    """Raise RewriteError ("file:line: error: ...") for what NVRTC would not compile.

    preprocessed: as NVRTC sees it, with its #include lines (see `preprocess`).
    headers: the folder of the C++ library's headers that NVRTC has.
    Returns all tokens of the text without these lines.
    """
    whole = tokenize(without_includes(preprocessed))
    tokens = [t for t in whole if is_own(t.file)]
    names = names_in_std(headers, PRELUDE)
    errors = []
    for token, header, is_there in _includes(preprocessed, headers):
        if not is_there:
            errors.append((token, NO_HEADER.format(header)))
        elif (headers / header).exists():
            names |= names_in_std(headers, header)
    errors += _host_code(tokens)
    errors += _launches(tokens)
    errors += _other_words(tokens)
    errors += _unknown_names(tokens, names)
    if errors:
        raise RewriteError("\n".join(str(error(*each)) for each in errors))
    return whole


@functools.cache
def names_in_std(headers: Path, header: str) -> frozenset[str]:
    """What a header of the folder puts into namespace std."""
    text = (headers / header).read_text()
    names = {*BUILT_IN, *re.findall(r"using (?:cuda::std)?::(\w+);", text)}
    names |= set(re.findall(r"^__host__ __device__ .*?(\w+)\(", text, re.MULTILINE))
    for included in INCLUDE.findall(text):
        if (headers / included).exists():
            names |= names_in_std(headers, included)
    return frozenset(names)


def without_includes(preprocessed: str) -> str:
    """The text without the #include lines that `preprocess` was asked to leave in.

    Where nothing was included again, such a line stands in the place of an empty one.
    """
    line = r"^[ \t]*#[ \t]*include.*"
    text = re.sub(line + r"\n(?=# \d)", "", preprocessed, flags=re.MULTILINE)
    return re.sub(line, "", text, flags=re.MULTILINE)


def _includes(preprocessed: str, headers: Path) -> Iterator[tuple[Token, str, bool]]:
    """Each #include in the learner's files: where, of what, whether NVRTC finds it."""
    file, line, own = "", 0, False
    for text in preprocessed.split("\n"):
        marker = MARKER.match(text)
        if marker:
            file = re.sub(r"\\(.)", r"\1", marker[2])
            line = int(marker[1]) - 1
            own = is_own(file) and "3" not in marker[3].split()
            continue
        line += 1
        if own and (include := INCLUDE.match(text)):
            place = Token("name", include[1], line, file, False)
            yield place, include[1], _is_there(include[1], headers, Path(file).parent)


def _is_there(header: str, headers: Path, folder: Path) -> bool:
    if (headers / header).exists() or (folder / header).exists():
        return True
    folders = Path(OWN_HEADERS), Path(OWN_HEADERS, "lib")
    is_cudas = any((own / header).exists() for own in folders)
    return is_cudas and not FOR_HOST.match(header)


def _launches(tokens: Tokens) -> Findings:
    return ((t, LAUNCH) for t in tokens if t.text == "<<<")


def _unknown_names(tokens: Tokens, names: frozenset[str]) -> Findings:
    """Each std::name that none of the headers has."""
    rows = zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False)
    for i, (before, std, colons, name) in enumerate(rows):
        if std.text == "std" and colons.text == "::" and before.text != "::":
            if name.kind == "name" and name.text not in names:
                yield name, NO_NAME.format(name.text)
            elif name.text in MOST_ARGUMENTS and not _is_plain(tokens, i + 4, name.text):
                yield name, f'no instance of function template "std::{name.text}" matches'


def _is_plain(tokens: Tokens, bracket: int, name: str) -> bool:
    """Whether a call names its values one by one, without a list or a comparison of its own."""
    if bracket >= len(tokens) or tokens[bracket].text != "(":
        return True
    inside = tokens[bracket + 1 : closing(tokens, bracket)]
    if inside and inside[0].text == "{":
        return False
    return len(split_commas(inside)) <= MOST_ARGUMENTS[name]


def _other_words(tokens: Tokens) -> Findings:
    """What g++ takes in C++17 and NVRTC does not."""
    declared = declared_names(tokens)
    declared |= {name.text for each in declarations(tokens) if (name := function_name(each.head))}
    for i, (before, t, after) in enumerate(triples(tokens)):
        is_member = before.text in (".", "->", "::")
        is_attribute = i and before.text == "]" and tokens[i - 1].text == "]"  # [[nodiscard]]
        if t.text in NO_WORDS and not is_member:
            yield t, NO_WORDS[t.text]
        elif t.text == "?" and after.text == ":":
            yield t, "expected an expression"
        elif before.text in ("{", ",") and t.text == "." and after.kind == "name":
            yield t, "expected an expression: members are named in braces from C++20 on"
        elif before.text == "]" and not is_attribute and t.text in ("__device__", "__host__"):
            yield t, MARKED_LAMBDA
        elif is_member or after.text != "(" or t.text in declared:
            continue
        elif RUNTIME.fullmatch(t.text):
            yield t, UNDEFINED.format(t.text)


def _generic_lambdas(tokens: Tokens, body: tuple[int, int]) -> Findings:
    """Lambdas with `auto` parameters: templates, of which NVRTC takes no unmarked ones."""
    begin, end = body
    for brace in range(begin + 1, end):
        if tokens[brace].text != "{" or not is_lambda(tokens, brace):
            continue
        at = brace
        while tokens[at].text != "]":
            at -= 1
        if tokens[at + 1].text != "(":
            continue
        parameters = tokens[at + 1 : closing(tokens, at + 1)]
        if any(t.text == "auto" for t in parameters):
            yield tokens[at], HOST_FUNCTION


def _host_code(tokens: Tokens) -> Findings:
    """The functions and variables of the host, and the message for each."""
    for_device: set[str] = set()  # names of functions declared for the device
    variables: set[str] = set()
    for declaration in declarations(tokens, variables):
        head = declaration.head
        words = {t.text for t in head}
        if declaration.body:
            yield from _generic_lambdas(tokens, declaration.body)
        elif not head or head[0].text in NO_DEFINITION or words >= {"extern", "template"}:
            continue
        name = function_name(head, variables)
        if name and words & FOR_DEVICE:
            for_device.add(name.text)
        elif name:
            is_free = is_defaulted(head) or is_deduction_guide(head, name)
            if name.text not in for_device and not is_free:
                yield name, HOST_FUNCTION
        elif not declaration.body:
            if not declaration.is_template and is_variable(head, variables):
                variables.add(variable_name(head).text)
            yield from _host_variable(declaration, words)


def _host_variable(declaration: Declaration, words: set[str]) -> Findings:
    head, of_class = declaration.head, declaration.of_class
    before = {t.text for t in of_class}
    name = variable_name(head)
    is_const = is_constant(head) or before & {"const", "constexpr"}
    if declaration.scope.kind == "class":
        if "static" in words and not is_const:
            yield name, STATIC_MEMBER
        elif "static" in words and lambda_in(head):
            yield lambda_in(head), LAMBDA
        return
    if "typedef" in before or "namespace" in words or (words | before) & FOR_DEVICE:
        return
    if of_class and head[0].text in ("__attribute__", "alignas"):
        return
    if lambda_in(head) and is_const:
        yield lambda_in(head), LAMBDA
    elif not is_const and (of_class or len(head) > 1 and head[0].text not in CLASSES):
        yield name, HOST_VARIABLE
