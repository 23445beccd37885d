"""Who may call whom: what nvcc refuses of device code, in its words.

On the CPU a kernel could call any function and read any variable of the host; on a GPU there is
neither. The rules are those of the CUDA C++ Programming Guide (execution and memory space
specifiers, C++ language support) as nvcc 13.0 was seen to apply them. Where tokens alone do not
tell, nothing is refused.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .declarations import TYPE_WORDS
from .scopes import (
    BEFORE_A_CALL,
    CLASSES,
    Declaration,
    class_name,
    declarations,
    declared_names,
    end_of_statement,
    enumerators,
    function_name,
    is_constant,
    is_variable,
    names_of_members,
    template_parameters,
    variable_name,
)
from .tokens import (
    OWN_HEADERS,
    Findings,
    RewriteError,
    Token,
    Tokens,
    angle_start,
    closing,
    error,
    is_own,
    triples,
)

CALL = 'calling a {}__host__ function("{}") from a {} function("{}") is not allowed'
CALL_OF_DEVICE = 'calling a __device__ function("{}") from a __host__ function("{}") is not allowed'
RELAXED = (
    ". The experimental flag '--expt-relaxed-constexpr' can be used to allow this"  # nvcc's words
)
UNDEFINED = 'identifier "{}" is undefined in device code'
UNCONFIGURED = "a __global__ function call must be configured"
CONFIGURED = "a {} function call cannot be configured"
DYNAMIC = "dynamic initialization is not supported for a {} variable"
ELLIPSIS = "a __global__ function cannot have ellipsis"
NOT_CONSTANT = "expression must have a constant value"
LOCAL_CONSTANT = (
    'an automatic "__constant__" variable declaration is not allowed inside a device function body'
)
MEMBER = "memory qualifier on data member is not allowed"
EXCEPTION = "device code does not support exception handling"
OPERATOR = "The operator '{}' is not allowed in device code"

#: Members of containers, strings, smart pointers, streams, atomics and locks
STANDARD_MEMBERS = set(
    """
    append assign at back begin bad c_str cbegin cend clear close count data emplace emplace_back
    empty end eof erase exchange fail fill find first flush front get good has_value insert is_open
    join length load lock max min next open pop pop_back pop_front push push_back push_front put
    read release reserve reset resize second seed shrink_to_fit size store str substr swap test top
    unlock use_count value wait write
    """.split()
)

Declarations = list[Declaration]

VARIABLES = {"__device__", "__constant__", "__managed__"}
NOT_FOR_HOST = {*VARIABLES, "__shared__", "__global__"}
#: What the C library and CUDA's runtime have for the host alone
LIBRARY = set(
    """fprintf puts putchar snprintf sprintf scanf sscanf fopen fclose fflush fgets fread fwrite
    exit abort rand srand calloc realloc atoi atof strtol qsort getenv system memcmp memmove strcmp
    strncmp strcpy strncpy strcat strstr strchr time drand48 random perror toupper tolower
    isdigit isalpha isspace usleep sleep gettimeofday
    cudaMemcpy cudaMallocManaged cudaMemset cudaSetDevice cudaMemcpyToSymbol cudaMemcpyFromSymbol
    cudaDeviceReset cudaMallocHost cudaFreeHost cudaHostAlloc cudaStreamSynchronize
    cudaEventSynchronize cudaEventElapsedTime""".split()
)
#: Of std, by what nvcc says of them
STREAMS = {"cout", "cerr", "clog", "cin"}
STD_CONSTEXPR = {"min", "max", "clamp", "gcd", "lcm", "minmax"}
STD_HOST = set(
    """vector string map set unordered_map list deque queue function unique_ptr make_unique
    shared_ptr make_shared thread mutex sort stable_sort swap accumulate fill copy find transform
    for_each reverse to_string stoi getline iota""".split()
)
#: Of std by the names that kernels have: of both the compiler takes what fits the arguments
STD_ALGORITHMS = set(
    """accumulate advance copy copy_n count exclusive_scan fill fill_n find for_each generate
    inclusive_scan inner_product iota max merge min move partial_sum partition reduce remove
    replace reverse rotate search shuffle sort stable_sort swap transform transform_reduce
    unique""".split()
)
NO_FUNCTION = set("operator ~ using typedef".split())
#: Templates of CUDA's past, which `rewrite` refuses in words of its own
REFERENCES = {"texture", "surface"}
#: What a statement follows that begins with a call
BEFORE_A_STATEMENT = set("; { } ) else".split())
UNEVALUATED = {"sizeof", "decltype", "noexcept", "alignof"}
#: Calls in an initializer that no compiler computes
NOT_COMPUTED = re.compile(r"make_\w+|__\w+2\w+|__\w+_as_\w+|(?:sqrt|exp|log|sin|cos|tan|pow)f?")


@dataclass
class Names:
    """What a file declares, by name, and for whom."""

    host: dict[str, str] = field(default_factory=dict)  # function -> "constexpr " or ""
    device: set[str] = field(default_factory=set)
    device_alone: set[str] = field(default_factory=set)  # that the host has nothing like
    callable: set[str] = field(default_factory=set)  # what the host may call
    computed: set[str] = field(default_factory=set)  # constexpr ones of the device
    kernels: set[str] = field(default_factory=set)
    plain: set[str] = field(default_factory=set)  # functions that are no kernels
    never: set[str] = field(default_factory=set)  # names of nothing but such functions
    variables: set[str] = field(default_factory=set)  # of the host
    arrays: set[str] = field(default_factory=set)  # constant ones without a memory space
    others: set[str] = field(default_factory=set)  # members, enumerators, parameters and so on
    scopes: set[str] = field(default_factory=set)  # namespaces and classes
    classes: dict[str, set[int]] = field(default_factory=dict)  # the classes of each name
    built: set[str] = field(default_factory=set)  # classes that run code where one begins
    free: set[str] = field(default_factory=set)  # classes that may begin without any


def check(tokens: Tokens, *, relaxed: bool, is_program: bool) -> None:
    """Raise RewriteError ("file:line: error: ...") for what nvcc would not compile.

    tokens: as the compiler for the device sees the file. relaxed: --expt-relaxed-constexpr.
    is_program: whether nvcc compiles it; else NVRTC does, which has some of std's functions.
    """
    known: set[str] = set()
    found = []
    for declaration in declarations(tokens, known):
        found.append(declaration)
        is_here = declaration.scope.kind == "namespace" and not declaration.is_template
        if is_here and not declaration.body and is_variable(declaration.head, known):
            known.add(variable_name(declaration.head).text)
    names = _names(found, known)
    names.others |= enumerators(tokens) | template_parameters(tokens)
    _leave_out_what_may_be_another(names)
    names.device_alone -= names.callable | names.others | names.scopes | names.kernels
    names.device_alone -= _of_system_headers(tokens, names.device_alone)
    if any(t.text == "std" for t in tokens):
        names.kernels -= STD_ALGORITHMS
    judge = _Judge(tokens, names, relaxed, is_program)
    errors = [*_of_declarations(found, names, known), *judge.bodies(found, known)]
    if errors:
        lines = [str(error(*each)) for each in errors]
        raise RewriteError("\n".join(dict.fromkeys(lines)))


def _words(head: Iterable[Token]) -> set[str]:
    return {t.text for t in head}


def _names(found: Declarations, known: set[str]) -> Names:
    names = Names()
    for declaration in found:
        head = declaration.head
        words = _words(head)
        around = declaration.scope.head
        if around:
            scope = class_name(around) or around[-1].text
            names.scopes.add(scope)
            names.classes.setdefault(scope, set()).add(id(around))
        name = function_name(head, known)
        if name:
            _note_function(names, declaration, name, words)
        elif head and declaration.scope.kind == "class":
            names.others |= names_of_members(head)
        elif head and not declaration.body:
            _note_variable(names, declaration, words)
    return names


def _leave_out_what_may_be_another(names: Names) -> None:
    """Of a name that a file gives to several things nothing is said: tokens do not tell which."""
    several = {name for name, classes in names.classes.items() if len(classes) > 1}
    for name in names.device | names.kernels | names.others | several:
        names.host.pop(name, None)
    names.never = names.plain - names.kernels - names.others - names.scopes - several
    names.never -= names.variables | names.arrays
    taken = names.others | names.scopes | names.plain | names.kernels
    names.variables -= taken
    names.arrays -= taken
    names.built -= names.free | names.others | several
    names.kernels -= names.others | names.plain


def _note_function(names: Names, declaration: Declaration, name: Token, words: set[str]) -> None:
    head = declaration.head
    around = declaration.scope
    of_class = class_name(around.head) if around.kind == "class" else ""
    if name.text == of_class:
        (names.built if _runs_code(declaration, words) else names.free).add(of_class)
    if "__global__" in words:
        names.kernels.add(name.text)
        return
    names.plain.add(name.text)
    is_free = around.kind == "namespace" and is_own(name.file)
    is_devices = "__device__" in words and not words & {"__host__", "constexpr", "consteval"}
    (names.device_alone if is_free and is_devices else names.callable).add(name.text)
    if "__device__" in words or "=" in words or "friend" in words:
        names.device.add(name.text)
        if "constexpr" in words or "consteval" in words:
            names.computed.add(name.text)
    elif is_own(name.file) and NO_FUNCTION.isdisjoint(words):
        is_typed = head[0] is not name
        if is_typed or name.text == of_class:
            is_constexpr = "constexpr" in words
            names.host[name.text] = "constexpr " if is_constexpr else ""


def _of_system_headers(tokens: Tokens, wanted: set[str]) -> set[str]:
    """Which of some names headers of the system or of CUDA call or declare as a function, too."""
    if not wanted:
        return set()
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, wanted))})\s*\(")
    found = {name for t in tokens if t.kind == "raw" for name in pattern.findall(t.text)}
    return found | wanted & _of_cuda()


def _runs_code(constructor: Declaration, words: set[str]) -> bool:
    """Whether a constructor is known to do something that no compiler computes."""
    if not constructor.body or "constexpr" in words:
        return False
    begin, end = constructor.body
    return end > begin + 1 or ":" in words


def _note_variable(names: Names, declaration: Declaration, words: set[str]) -> None:
    head = declaration.head
    name = variable_name(head)
    if not is_own(name.file) or head[0].text in CLASSES:
        return
    is_hosts = is_variable(head) and not words & (NOT_FOR_HOST | REFERENCES)
    after = head[head.index(name) + 1 :]
    if not is_hosts or declaration.is_template:
        names.others |= names_of_members(head)
    elif not is_constant(head):
        names.variables.add(name.text)
    elif after and after[0].text == "[":
        names.arrays.add(name.text)
    else:
        names.others |= names_of_members(head)


def _of_declarations(found: Declarations, names: Names, known: set[str]) -> Findings:
    """What is wrong with how a kernel or a variable is declared."""
    for declaration in found:
        head = declaration.head
        words = _words(head)
        name = function_name(head, known)
        if not head or not is_own(head[0].file):
            continue
        if name and "__global__" in words and "..." in words and not declaration.is_template:
            yield name, ELLIPSIS
        spaces = [t for t in head if t.text in VARIABLES]
        if name or not spaces or declaration.body:
            continue
        if declaration.scope.kind == "class":
            yield spaces[0], MEMBER
        elif _is_dynamic(head, names):
            yield variable_name(head), DYNAMIC.format(spaces[0].text)


def _is_dynamic(head: Tokens, names: Names) -> bool:
    """Whether the value of a device's variable would have to be computed before main."""
    name = variable_name(head)
    begin = head.index(name)
    if "extern" in _words(head):
        return False
    if begin and head[begin - 1].text in names.built:
        return True
    for _, t, after in triples(head[begin:]):
        if after.text == "(" and _is_computed_late(t.text, names):
            return True
    values = [t.text for t in head[begin + 1 :]]
    if values[:1] != ["="] or len(values) != 2:
        return False
    return values[1] in names.variables


def _is_computed_late(function: str, names: Names) -> bool:
    """Whether no compiler computes what a function returns."""
    if function in names.host or function in names.scopes or function in names.computed:
        return False
    is_devices = function in names.device
    return is_devices or bool(NOT_COMPUTED.fullmatch(function))


class _Judge:
    """Looks through the bodies of the functions that run on a device."""

    def __init__(self, tokens: Tokens, names: Names, relaxed: bool, is_program: bool):
        self.tokens = tokens
        self.names = names
        self.relaxed = relaxed
        self.is_program = is_program
        self.uses = Counter(t.text for t in tokens if t.kind == "name")
        self.member_uses: set[str] = set()

    def bodies(self, found: Declarations, known: set[str]) -> Findings:
        """What is wrong in each."""
        named = [(declaration, function_name(declaration.head, known)) for declaration in found]
        self.uses -= Counter(name.text for _, name in named if name)
        self.member_uses = self.used_members(named)
        for declaration, name in named:
            if not name or not is_own(name.file) or not self.is_made(declaration, name):
                continue
            words = _words(declaration.head)
            yield from self.configured(declaration)
            if not words & {"__device__", "__global__"}:
                yield from self.unconfigured(declaration)
                yield from self.of_host(declaration, name.text)
                continue
            yield from self.words_of(declaration.body)
            if "__host__" not in words:
                space = "__global__" if "__global__" in words else "__device__"
                yield from self.body(declaration, space, name.text)

    def is_made(self, declaration: Declaration, name: Token) -> bool:
        """Whether a function is sure to be compiled, all but its branches of `if constexpr`."""
        if not declaration.body:
            return False
        if self.is_of_template(declaration, name):
            return name.text in self.member_uses
        return not declaration.is_template or self.uses[name.text] > 0

    def is_of_template(self, declaration: Declaration, name: Token) -> bool:
        """Whether it is a member of a class template."""
        at = next(i for i, t in enumerate(declaration.head) if t is name)
        is_outside = at > 0 and declaration.head[at - 1].text == "::"
        return declaration.scope.is_template or declaration.is_template and is_outside

    def used_members(self, named: list[tuple[Declaration, Token | None]]) -> set[str]:
        """Names of one function each that code outside of class templates calls as a member.

        Not names that the standard library's classes have for theirs: `v.size()` may be a vector's.
        """
        bodies = Counter(name.text for each, name in named if name and each.body)
        result = set()
        for declaration, name in named:
            if not name or self.is_of_template(declaration, name):
                continue
            if not self.is_made(declaration, name):
                continue
            for i in self.sure(declaration.body):
                is_member = self.tokens[i - 1].text in (".", "->", "::")
                if is_member and self.tokens[i + 1].text in ("(", "<"):
                    result.add(self.tokens[i].text)
        return {name for name in result - STANDARD_MEMBERS if bodies[name] == 1}

    def sure(self, body: tuple[int, int]) -> Iterator[int]:
        """The places in a body of what is compiled whatever an `if constexpr` says."""
        begin, end = body
        i = begin + 1
        while i < end:
            if self.tokens[i].text == "if" and self.tokens[i + 1].text == "constexpr":
                i = end_of_statement(self.tokens, i)
            else:
                yield i
            i += 1

    def evaluated(self, body: tuple[int, int]) -> Iterator[int]:
        """The places of `sure` less the operands of sizeof and its like, which nobody computes."""
        operand_end = 0
        for i in self.sure(body):
            if i <= operand_end:
                continue
            if self.tokens[i].text in UNEVALUATED and self.tokens[i + 1].text == "(":
                operand_end = closing(self.tokens, i + 1)
            else:
                yield i

    def unconfigured(self, declaration: Declaration) -> Findings:
        """Calls of kernels without <<< >>> in a function of the host."""
        begin, end = declaration.body
        own = self.names.kernels - self.local(declaration)
        for i in range(begin + 1, end):
            t = self.tokens[i]
            if t.text not in own or self.tokens[i + 1].text != "(":
                continue
            if self.tokens[i - 1].text in BEFORE_A_STATEMENT:
                yield t, UNCONFIGURED

    def of_host(self, declaration: Declaration, caller: str) -> Findings:
        """Calls of functions that devices alone have, in a function of the host.

        Nothing is said of templates and of functions in which a lambda for devices stands.
        """
        if declaration.is_template or declaration.scope.is_template:
            return
        begin, end = declaration.body
        if any(t.text in ("__device__", "__CUDA_ARCH__") for t in self.tokens[begin:end]):
            return
        own = self.names.device_alone - self.local(declaration)
        for i in self.evaluated(declaration.body):
            t = self.tokens[i]
            if t.text in own and self.tokens[i + 1].text == "(" and self.is_call(i):
                if self.tokens[i - 1].text not in (".", "->", "::"):
                    yield t, CALL_OF_DEVICE.format(t.text, caller)

    def configured(self, declaration: Declaration) -> Findings:
        """Launches of functions that are no kernels; in a template it may be a parameter's name."""
        if declaration.is_template or declaration.scope.is_template:
            return
        local = self.local(declaration)
        for i in self.sure(declaration.body):
            if self.tokens[i].text != "<<<" or self.tokens[i].kind != "operator":
                continue
            at = i - 1
            if self.tokens[at].text == ">":
                at = angle_start(self.tokens, at) - 1
            t = self.tokens[at]
            if t.text in self.names.never - local and self.tokens[at - 1].text not in (".", "->"):
                is_devices = t.text in self.names.device
                yield t, CONFIGURED.format("__device__" if is_devices else "host")

    def words_of(self, body: tuple[int, int]) -> Findings:
        """Words that no device code may hold, not even what the host may call, too."""
        for t in (self.tokens[i] for i in self.sure(body)):
            if t.kind != "name":
                continue
            if t.text in ("throw", "try"):
                yield t, EXCEPTION
            elif t.text in ("typeid", "dynamic_cast"):
                yield t, OPERATOR.format(t.text)
            elif t.text == "__constant__":
                yield t, LOCAL_CONSTANT

    def body(self, declaration: Declaration, space: str, caller: str) -> Findings:
        """What a function that runs on devices alone calls and reads of the host's."""
        local = self.local(declaration)
        parameters = _parameters(declaration.head)
        for i in self.evaluated(declaration.body):
            t = self.tokens[i]
            following = self.tokens[i + 1].text
            if t.text == "[" and self.tokens[i + 1].text in parameters:
                if self.is_array(i):
                    yield self.tokens[i + 1], NOT_CONSTANT
            elif t.kind == "name" and is_own(t.file) and t.text not in local:
                says = self.of_name(i, following, space, caller)
                if says:
                    yield t, says

    def of_name(self, i: int, following: str, space: str, caller: str) -> str:
        """What nvcc says of a name in device code, or nothing."""
        t, names = self.tokens[i], self.names
        before = self.tokens[i - 1].text
        around = self.qualifier(i)
        if around == "std" and self.is_program:
            return self.of_std(t.text, space, caller)
        if around and around != "std" and around not in names.scopes:
            return ""
        is_call = following == "(" and self.is_call(i)
        if is_call and t.text in names.host and t.text not in _of_cuda():
            kind = names.host[t.text]
            if kind and self.relaxed:
                return ""
            return CALL.format(kind, t.text, space, caller) + (RELAXED if kind else "")
        is_member = before in (".", "->")
        if is_call and t.text in LIBRARY and t.text not in names.device and not is_member:
            return CALL.format("", t.text, space, caller)
        if not is_member and following != "(" and before != "&":
            if t.text in names.variables:
                return UNDEFINED.format(t.text)
            if self.is_program and t.text in names.arrays and following == "[":
                return UNDEFINED.format(t.text)
        return ""

    def qualifier(self, i: int) -> str:
        """What stands before the :: of a name, as in `std` of std::max and cuda::std of its own."""
        words = [t.text for t in self.tokens[i - 4 : i]]
        if words[3] != "::" or self.tokens[i - 2].kind != "name":
            return ""
        is_inner = words[1] == "::" and self.tokens[i - 4].kind == "name"
        return f"{words[0]}::{words[2]}" if is_inner else words[2]

    def of_std(self, name: str, space: str, caller: str) -> str:
        if name in STREAMS:
            return UNDEFINED.format(f"std::{name}")
        if name in STD_CONSTEXPR and not self.relaxed:
            return CALL.format("constexpr ", name, space, caller) + RELAXED
        if name in STD_HOST or name in LIBRARY:
            return CALL.format("", f"std::{name}", space, caller)
        return ""

    def is_call(self, i: int) -> bool:
        """Whether the name at i, with a bracket behind it, is called and not declared."""
        before = self.tokens[i - 1]
        if before.text in (".", "->"):
            return True
        if before.kind == "name":
            return before.text in BEFORE_A_CALL
        return before.text not in (">", "~") and before.kind not in ("raw", "pragma")

    def is_array(self, bracket: int) -> bool:
        """Whether it declares an array whose size is the one name in the brackets."""
        if self.tokens[bracket + 2].text != "]":
            return False
        before = self.tokens[bracket - 2]
        is_type = before.text in TYPE_WORDS - {"auto"} or re.fullmatch(
            r"(?:float|int|double)[234]|\w+_t", before.text
        )
        return bool(is_type) and self.tokens[bracket - 1].kind == "name"

    def local(self, declaration: Declaration) -> set[str]:
        """Names that a function declares for itself, parameters among them."""
        begin, end = declaration.body
        return declared_names([*declaration.head, *self.tokens[begin:end]])


def _parameters(head: Tokens) -> set[str]:
    """Names of what a function is given."""
    name = function_name(head)
    if not name or name.text == "operator":
        return set()
    begin = next(i for i, t in enumerate(head) if t is name)
    while head[begin].text != "(":
        begin += 1
    inside = head[begin + 1 : closing(head, begin) + 1]
    return {
        t.text
        for before, t, after in triples(inside)
        if t.kind == "name" and after.text in (",", ")") and before.text != ","
    }


@functools.cache
def _of_cuda() -> frozenset[str]:
    """Every name that CUDA's headers, as they are here, call or declare as a function."""
    names = set()
    for path in Path(OWN_HEADERS).rglob("*"):
        if path.is_file():
            names |= set(re.findall(r"(\w+)\s*\(", path.read_text(errors="replace")))
    return frozenset(names)
