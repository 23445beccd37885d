"""What an answer's own code reaches for besides kernels and numbers: nothing is refused for it, and
the instructor is told. A check runs in the process that the answer is in, so whoever goes for the
check itself shows here; what can be tried again apart from the check is, by `apart`.
"""

import ast
import re

#: Modules that answers use
USUAL = {"numpy", "numba", "math", "cmath", "torch", "triton", "functools", "itertools"}
USUAL |= {"collections", "dataclasses", "random", "time", "utils", "cuda", "typing", "operator"}
#: Built-in functions by which code runs code, or changes what is not its own
BUILTINS = {
    "exec",
    "eval",
    "compile",
    "open",
    "__import__",
    "globals",
    "setattr",
    "delattr",
    "vars",
}
BUILTINS |= {"breakpoint", "input", "locals"}
#: Modules that hang on usual ones: dataclasses.sys
LENT = {"sys", "os", "builtins", "ctypes", "importlib", "inspect", "gc"}
#: What no kernel of the course's C and CUDA C exercises needs
IN_C = re.compile(r"\b(?:constructor|destructor|asm|fork|exec\w+|syscall|dlopen|ptrace)\b|/proc\b")


def names(own: str, given) -> list[str]:
    """What a learner's code reaches for that the course's own cells do not.

    own: source in Python, or in C. given: sources of cells.
    """
    return sorted(_found(own).difference(*map(_found, given)))


def _found(source):
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(IN_C.findall(source))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if not _usual(alias.name)}
        elif isinstance(node, ast.ImportFrom) and not _usual(node.module or "."):
            found.add(node.module or ".")
        elif isinstance(node, ast.Attribute) and (node.attr[0] == "_" or node.attr in LENT):
            found.add(node.attr)
        elif isinstance(node, ast.Name) and (node.id in BUILTINS or _is_inner(node.id)):
            found.add(node.id)
    return found


def _usual(module):
    root = module.partition(".")[0]
    return root in USUAL and not module.startswith(("utils.cpu", "utils.check", "utils.tracer"))


def _is_inner(name):
    """Whether a name is one of Python's inner ones, such as __globals__ or _getframe."""
    return (name.startswith("__") and name.endswith("__")) or name == "_getframe"
