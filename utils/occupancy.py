"""How many blocks of a kernel fit on a multiprocessor (SM) at once, and what stops one more.

The rules are NVIDIA's own: an SM has so many places for warps and for blocks, so many registers and
so much shared memory, and a block gets all it needs or does not start. Registers are handed out to
whole warps, each from its quarter of the SM; shared memory in pieces, and from compute capability
8.0 on with 1 KiB a block kept by CUDA.

The tests hold every result against NVIDIA's `cuda_occupancy.h` and, on a GPU, against
`cuOccupancyMaxActiveBlocksPerMultiprocessor`.
"""

from dataclasses import dataclass, field

WARP = 32
REGISTERS = 65536  # of an SM and at most of a block: the same on every GPU of the table
MAX_REGISTERS = 255  # of a thread
REGISTER_UNIT = 256  # a warp's registers are rounded up to a multiple of this
PARTS = 4  # of an SM, each with a scheduler and a quarter of the registers
MAX_THREADS = 1024  # of a block


@dataclass(frozen=True)
class Limits:
    """What an SM of one compute capability holds. Sizes in bytes.

    Source: CUDA Programming Guide, "Compute Capabilities", tables of technical specifications
    (docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html); up to 7.0
    its edition for CUDA 12 (docs.nvidia.com/cuda/archive/12.9.0/cuda-c-programming-guide).
    """

    warps: int
    blocks: int
    shared: int
    shared_block: int  # the most that one block may ask for
    reserved: int  # that CUDA keeps of it for each block
    shared_unit: int  # shared memory is handed out in multiples of this


def _limits(
    warps: int,
    blocks: int,
    shared_kib: int,
    block_kib: int,
    reserved_kib: int = 1,
    unit: int = 128,
) -> Limits:
    return Limits(warps, blocks, shared_kib << 10, block_kib << 10, reserved_kib << 10, unit)


#: compute capability -> its limits. 6.0 (P100), whose SM has two halves with rules of their own, is
#: left out.
TABLE = {
    (5, 0): _limits(64, 32, 64, 48, 0, 256),
    (5, 2): _limits(64, 32, 96, 48, 0, 256),
    (6, 1): _limits(64, 32, 96, 48, 0, 256),
    (7, 0): _limits(64, 32, 96, 96, 0, 256),
    (7, 5): _limits(32, 16, 64, 64, 0, 256),
    (8, 0): _limits(64, 32, 164, 163),
    (8, 6): _limits(48, 16, 100, 99),
    (8, 7): _limits(48, 16, 164, 163),
    (8, 9): _limits(48, 24, 100, 99),
    (9, 0): _limits(64, 32, 228, 227),
    (10, 0): _limits(64, 32, 228, 227),
    (10, 3): _limits(64, 32, 228, 227),
    (11, 0): _limits(48, 24, 228, 227),
    (12, 0): _limits(48, 24, 100, 99),
    (12, 1): _limits(48, 24, 100, 99),
}


@dataclass(frozen=True)
class Occupancy:
    """blocks, warps: on one SM at once. share: of the SM's places for warps that are taken.

    by: for each resource how many blocks it would allow alone. limited_by: the resources that allow
        the fewest.
    """

    blocks: int
    warps: int
    share: float
    by: dict = field(default_factory=dict)
    limited_by: tuple = ()

    def __repr__(self) -> str:
        return (
            f"{self.blocks} block{'s' * (self.blocks != 1)} = {self.warps} warps an SM, occupancy "
            f"{self.share:.0%}, limited by {' and '.join(self.limited_by)}"
        )


def occupancy(
    compute_capability: tuple[int, int], threads: int, registers: int = 32, shared: int = 0
) -> Occupancy:
    """How many blocks of `threads` threads fit on an SM.

    Each thread has `registers` registers, each block `shared` bytes of shared memory (static and
    dynamic together).

    Raises ValueError for a compute capability that is not in TABLE and for numbers that no launch
    may have.
    """
    sm = limits(compute_capability)
    for name, value, low, high in (
        ("threads", threads, 1, MAX_THREADS),
        ("registers", registers, 1, MAX_REGISTERS),
        ("shared", shared, 0, sm.shared_block),
    ):
        if not low <= value <= high:
            raise ValueError(
                f"{name} is {value:,}; a block on compute capability {compute_capability[0]}."
                f"{compute_capability[1]} may have {low:,} to {high:,}"
            )
    warps = ceil_div(threads, WARP)
    piece = rounded(shared + sm.reserved, sm.shared_unit)
    by = {
        "warps": sm.warps // warps,
        "blocks": sm.blocks,
        "registers": _by_registers(warps, registers),
    }
    if piece:
        by["shared memory"] = sm.shared // piece
    blocks = min(by.values())
    limited_by = tuple(resource for resource, most in by.items() if most == blocks)
    return Occupancy(blocks, blocks * warps, blocks * warps / sm.warps, by, limited_by)


def _by_registers(warps: int, registers: int) -> int:
    a_warp = rounded(registers * WARP, REGISTER_UNIT)
    if a_warp * rounded(warps, PARTS) > REGISTERS:
        return 0  # "too many resources requested for launch"
    return REGISTERS // PARTS // a_warp * PARTS // warps


def limits(compute_capability: tuple[int, int]) -> Limits:
    """The limits of a compute capability such as (9, 0); ValueError for one not in TABLE."""
    try:
        major, minor = compute_capability
        return TABLE[major, minor]
    except KeyError:
        listed = ", ".join("{}.{}".format(*cc) for cc in TABLE)
        raise ValueError(
            f"compute capability {compute_capability} is not in the table; it has {listed}"
        ) from None


def rounded(value: int, unit: int) -> int:
    """`value` rounded up to a multiple of `unit`."""
    return ceil_div(value, unit) * unit


def ceil_div(a: int, b: int) -> int:
    """The smallest integer that is not less than a / b."""
    return (a + b - 1) // b
