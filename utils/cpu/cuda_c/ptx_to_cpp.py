"""Inline PTX in C++: each instruction becomes a call of `include/detail/ptx` or an expression.

An instruction is known by a pattern of its whole opcode; what matches none is refused by name. The
instructions themselves stand in `ptx_arithmetic.py`, `ptx_memory.py` (memory, flow, warps),
`ptx_async.py` (barriers, copies) and `ptx_tensor.py` (tensor cores). Source: PTX ISA,
"Instruction Set".
"""

import re

from .ptx import Address, Instruction, Label, PtxError, Template

P = "::cuda_cpu::ptx::"
TYPE = r"(?P<type>pred|[busf](?:8|16|32|64)(?:x2)?|bf16(?:x2)?|f16(?:x2)?)"
ROUND = {"n": "nearest", "z": "zero", "m": "down", "p": "up", "a": "away"}
INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?$")
BITS_OF_FLOAT = re.compile(r"0([fFdD])([0-9a-fA-F]+)$")
REAL = re.compile(r"-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?$")
HERE = "::cuda_cpu::Site{__builtin_FILE(), __builtin_LINE()}"
OPERAND = re.compile(r"%(\d+)$")
SPECIAL = {
    **{f"%{name}.{axis}": f"::{variable}.{axis}"
       for name, variable in (("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"),
                              ("nctaid", "gridDim"))
       for axis in "xyz"},
    **{f"%{name}.{axis}": f"{P}cluster_special({2 + 3 * n + k})"
       for n, name in enumerate(("cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid"))
       for k, axis in enumerate("xyz")},
    "%cluster_ctarank": f"{P}cluster_special(0)",
    "%cluster_nctarank": f"{P}cluster_special(1)",
    "%is_explicit_cluster": f"{P}cluster_special(14)",
    "%laneid": "::cuda_cpu::lane()",
    "%warpid": "(::cuda_cpu::hot.tid / 32)",
    "%nwarpid": f"{P}warps_of_block()",
    "%smid": f"{P}processor()",
    "%nsmid": f"{P}processors()",
    "%gridid": "0ull",
    "%clock": "unsigned(::clock64())",
    "%clock_hi": "unsigned(::clock64() >> 32)",
    "%clock64": "::clock64()",
    "%globaltimer": "::__globaltimer()",
    "%globaltimer_lo": "unsigned(::__globaltimer())",
    "%globaltimer_hi": "unsigned(::__globaltimer() >> 32)",
    "%lanemask_eq": "(1u << ::cuda_cpu::lane())",
    "%lanemask_lt": "((1u << ::cuda_cpu::lane()) - 1)",
    "%lanemask_le": "(~0u >> (31 - ::cuda_cpu::lane()))",
    "%lanemask_gt": "(~0u << ::cuda_cpu::lane() << 1)",
    "%lanemask_ge": "(~0u << ::cuda_cpu::lane())",
    "%dynamic_smem_size": f"{P}dynamic_bytes()",
    "WARP_SZ": "32u",
}  # fmt: skip
PATTERNS: list[tuple[re.Pattern, object]] = []


def instruction(pattern: str):
    """Registers what translates the opcodes that match."""

    def register(function):
        PATTERNS.append((re.compile(pattern), function))
        return function

    return register


def kind(name: str) -> str:
    """The C++ type of a PTX type."""
    return "bool" if name == "pred" else P + name


ORDERINGS = ("weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc")
SCOPES = ("cta", "cluster", "gpu", "sys")


def in_order(opcode: str) -> str:
    """Accesses to memory with ordering and scope in front of the state space: both are written."""
    words = opcode.split(".")
    if words[0] not in ("ld", "st", "atom", "red"):
        return opcode
    first = [w for w in words if w in ORDERINGS] + [w for w in words if w in SCOPES]
    return ".".join([words[0], *first, *(w for w in words[1:] if w not in first)])


class Translator:
    """One template as a C++ block; `cpp` gives its text."""

    def __init__(self, template: Template, number: int):
        self.template = template
        self.number = number
        self.labels = {s.name for s in template.body if isinstance(s, Label)}

    def cpp(self) -> str:
        lines = [f"{kind(bits)} {name}{{}};" for name, bits in self.template.registers.items()]
        if any(re.search(r"\.cc|addc|subc|madc", str(s)) for s in self.template.body):
            lines.append("bool cuda_cpu_carry = false;")
        for step in self.template.body:
            if isinstance(step, Label):
                lines.append(f"{self.label(step.name)}:;")
            else:
                lines.append(self.step(step))
        return " ".join(lines)

    def label(self, name: str) -> str:
        return f"cuda_cpu_{self.number}_" + re.sub(r"\W", "_", name)

    def step(self, step: Instruction) -> str:
        opcode = in_order(step.opcode)
        for pattern, function in PATTERNS:
            match = pattern.fullmatch(opcode)
            if match:
                try:
                    text = function(self, match, *step.operands)
                except TypeError as error:
                    if "positional argument" not in str(error):
                        raise
                    raise PtxError(f"'{step.opcode}' with {len(step.operands)} operands") from None
                return self.guarded(step, text)
        raise PtxError(f"'{step.opcode}'")

    def guarded(self, step: Instruction, text: str) -> str:
        if not step.guard:
            return f"{{ {text} }}"
        name, negated = step.guard
        return f"if ({'!' if negated else ''}{self.value(name, 'pred')}) {{ {text} }}"

    # ---- operands
    def name(self, text: str) -> str:
        """A register or an operand of the asm statement."""
        match = OPERAND.match(text)
        if match:
            return f"cuda_cpu_o{match[1]}"
        if re.match(r"cuda_cpu_r\d+_", text):
            return text
        raise PtxError(f"the name '{text}'")

    def value(self, text: str, bits: str) -> str:
        """An operand as a value of a PTX type."""
        if not isinstance(text, str):
            raise PtxError(f"the operand {text}")
        if text.startswith("!") and bits == "pred":
            return f"!{self.value(text[1:], bits)}"
        if INTEGER.match(text):
            if bits[0] == "f" or bits.startswith("bf"):
                return f"{kind(bits)}({text})"
            return f"{kind(bits)}({text.rstrip('U')}ll)" if len(text) < 19 else f"{text}ull"
        raw = BITS_OF_FLOAT.match(text)
        if raw:
            width = "u32" if raw[1] in "fF" else "u64"
            real = "float" if raw[1] in "fF" else "double"
            return f"{P}same_bits<{real}>({P}{width}(0x{raw[2]}ull))"
        if REAL.match(text):
            return f"{kind(bits)}({text})"
        if text in SPECIAL:
            return f"{P}as<{kind(bits)}>({SPECIAL[text]})"
        return f"{P}as<{kind(bits)}>({self.name(text)})"

    def set(self, text: str, bits: str, value: str) -> str:
        """A statement that stores a value of a PTX type in a register."""
        if text == "_":
            return f"(void)({value});"
        return f"{P}assign({self.name(text)}, {kind(bits)}({value}));"

    def pointer(self, address: Address, space: str) -> str:
        """A char* to what an address names."""
        if not isinstance(address, Address):
            raise PtxError(f"the address {address}")
        if address.coordinates:
            raise PtxError("coordinates without a tensor map")
        base = f"{self.value(address.base, 'u64')} + ({address.offset}ll)"
        if space.startswith("shared"):
            return f"{P}shared_pointer({base}, {{__builtin_FILE(), __builtin_LINE()}})"
        return f"reinterpret_cast<char*>({base})"

    def number_of(self, address: Address) -> str:
        """An address in shared memory as a number."""
        if not isinstance(address, Address):
            raise PtxError(f"the address {address}")
        return f"{self.value(address.base, 'u64')} + ({address.offset}ll)"
