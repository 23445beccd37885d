"""What Python has and kernels have not, told from a function's instructions."""

import dis
import functools
import types

from .errors import KernelError, placed

_UNSUPPORTED = {
    "lists": ("BUILD_LIST", "LIST_APPEND", "LIST_EXTEND"),
    "dictionaries": ("BUILD_MAP", "BUILD_CONST_KEY_MAP", "MAP_ADD"),
    "sets": ("BUILD_SET", "SET_ADD"),
    "f-strings": ("FORMAT_VALUE", "FORMAT_SIMPLE", "BUILD_STRING"),
    "imports": ("IMPORT_NAME",),
    "generators": ("YIELD_VALUE",),
    "assignments to global names": ("STORE_GLOBAL",),
    "try and with": ("CHECK_EXC_MATCH", "POP_EXCEPT", "BEFORE_WITH", "RERAISE"),
}
_REFUSED = {opname: what for what, opnames in _UNSUPPORTED.items() for opname in opnames}


@functools.cache
def refuse_unsupported(code):
    """Raise a KernelError for what runs in Python but not in kernels on a GPU."""
    line = code.co_firstlineno
    instructions = list(dis.get_instructions(code))
    # CPython gathers the parts of a long tuple in a list: these stand at the tuple's place
    tuples = {i.positions for i in instructions if "LIST_TO_TUPLE" in i.opname + i.argrepr}
    for instruction in instructions:
        line = instruction.positions.lineno or line
        what = _REFUSED.get(instruction.opname)
        if what and instruction.positions not in tuples:
            error = KernelError(
                f"kernels have no {what}",
                "They have numbers, tuples, arrays, and cuda.local.array for scratch space.",
            )
            raise placed(error, code, line)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            refuse_unsupported(constant)
