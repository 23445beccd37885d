"""The search for tile sizes: compile `kernels/tuned.cu` for each choice, check it, time it.

A choice gives all of tiles.cuh's macros, such as ``{"BM": 128, "BN": 256, ...}``.
"""

import itertools
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tqdm.auto import tqdm

from course.kernels.matmul.ladder import (
    KERNELS,
    ODD_SIZES,
    Multiply,
    blocks,
    launcher,
    operands,
    prove,
)
from utils import benchmark, hardware, has_gpu, machine, pick, results

Choice = Mapping[str, int]
#: What the chapter tries: tiles of a block, a warp and a thread; and depths.
TILES = {
    "64 × 64, warps 32 × 32": dict(BM=64, BN=64, WM=32, WN=32, TM=8, TN=4, BLOCKS=4),
    "128 × 128, warps 64 × 32": dict(
        BM=128,
        BN=128,
        WM=64,
        WN=32,
        TM=8,
        TN=8,
        BLOCKS=2,
    ),
    "128 × 128, warps 32 × 128": dict(
        BM=128,
        BN=128,
        WM=32,
        WN=128,
        TM=8,
        TN=16,
        BLOCKS=2,
    ),
    "128 × 256, warps 64 × 64": dict(
        BM=128,
        BN=256,
        WM=64,
        WN=64,
        TM=8,
        TN=16,
        BLOCKS=1,
    ),
    "128 × 256, warps 32 × 128": dict(
        BM=128,
        BN=256,
        WM=32,
        WN=128,
        TM=8,
        TN=16,
        BLOCKS=1,
    ),
}
DEPTHS = {
    "BK 8, 4 stages": dict(BK=8, STAGES=4),
    "BK 16, 4 stages": dict(BK=16, STAGES=4),
    "BK 32, 3 stages": dict(BK=32, STAGES=3),
}
EVERY = {
    (tile, depth): TILES[tile] | DEPTHS[depth] for tile, depth in itertools.product(TILES, DEPTHS)
}
CPU_SHARED = 48 << 10  # bytes of shared memory that a block may have on the CPU runtime


def flags(choice: Choice) -> tuple[str, ...]:
    """The compiler's flags for a choice."""
    return tuple(f"-D{name}={value}" for name, value in choice.items())


def threads(choice: Choice) -> int:
    """Threads of a block: 32 for each warp's tile."""
    warps_down = choice["BM"] // choice["WM"]
    warps_across = choice["BN"] // choice["WN"]
    return 32 * warps_down * warps_across


def shared(choice: Choice) -> int:
    """Bytes of shared memory of a block: so many pairs of tiles, A's padded by 4."""
    stage = choice["BK"] * (choice["BM"] + 4 + choice["BN"])
    return 4 * choice["STAGES"] * stage


def shared_limit() -> int:
    """Bytes of shared memory that a block may ask for here."""
    if not has_gpu():
        return CPU_SHARED
    return hardware.shared_limit()


def fits(choice: Choice) -> bool:
    """Whether a block's tiles fit into this machine's shared memory."""
    return shared(choice) <= shared_limit()


def tuned(choice: Choice) -> Multiply:
    """The tuned kernel, compiled for a choice: multiply(c, a, b)."""
    return launcher(
        KERNELS / "tuned.cu",
        (choice["BM"], choice["BN"]),
        threads(choice),
        shared=shared(choice),
        flags=flags(choice),
    )


def tiles_of(
    m: int,
    n: int,
    choice: Choice,
) -> tuple[int, int]:
    """(across, down): how many tiles of a choice cover an m × n matrix."""
    return blocks(n, choice["BN"]), blocks(m, choice["BM"])


def places(choice: Choice) -> int:
    """Blocks that run at the same time on this GPU; on the CPU a few.

    Launch bounds leave registers for `BLOCKS` on an SM; its shared memory may hold fewer.
    """
    if not has_gpu():
        return 4
    from cuda.core import Device

    sm = Device().properties
    each = shared(choice) + sm.reserved_shared_memory_per_block
    in_shared_memory = sm.max_shared_memory_per_multiprocessor // each
    return machine().sms * min(choice["BLOCKS"], in_shared_memory)


def slug(choice: Choice) -> str:
    """The name under which a choice's speed is recorded."""
    words = [f"{name.lower()}{value}" for name, value in choice.items()]
    return "matmul/search/" + "_".join(words)


def search(choices: Mapping[object, Choice], n: int = 4096) -> dict[object, float]:
    """{key: FLOP/s} of every choice that fits, right ones all; {} without a GPU.

    There two choices are compiled and checked.
    """
    tried = [key for key, choice in choices.items() if fits(choice)]
    tried = tried[: pick(gpu=None, cpu=2)]
    with ThreadPoolExecutor(pick(gpu=8, cpu=1)) as pool:  # compile several at a time
        made = pool.map(lambda key: tuned(choices[key]), tried)
        made = list(tqdm(made, total=len(tried), desc="compiling"))
    candidates = dict(zip(tried, made, strict=True))
    rates = {}
    for key, multiply in tqdm(candidates.items(), desc="checking and timing"):
        prove(str(key), multiply, ODD_SIZES)
        if has_gpu():
            prove(str(key), multiply, [(n, n, n)])
            run = partial(multiply, *operands(n, n, n))
            timing = benchmark(
                run,
                flops=2 * n**3,
                name=slug(choices[key]),
            )
            rates[key] = timing.flops_per_second
    return rates


def recorded(choices: Mapping[object, Choice]) -> tuple[str, dict[object, float]]:
    """(GPU and date, {key: FLOP/s}) of the choices whose speed is recorded."""
    values = {}
    whose = set()
    for key, choice in choices.items():
        entry = results.find(slug(choice) + "/rate")
        if entry:
            values[key] = entry["value"]
            whose.add(f"{entry['gpu']}, {entry['date'][:10]}")
    return ", ".join(sorted(whose)), values
