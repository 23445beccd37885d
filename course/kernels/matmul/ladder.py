"""The ladder's judge: is a product right, and how fast is it beside cuBLAS?

A chapter makes one `Ladder`, adds its rungs and lets them climb::

    ladder = Ladder()
    ladder.climb("tile", make=tile)  # tile() compiles it, and returns multiply(c, a, b)

A rung counts when roundings explain its largest error against float64: on random numbers, with
an output that was full of NaN, at sizes that fill no tile too. Then it is timed, in turn with
cuBLAS; without a GPU it is counted what it asks of memory.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from course.kernels.matmul.records import Measured, is_recorded, recorded, recorded_line
from course.kernels.trying import first_of
from utils import compare, cuda_c, has_gpu, pick, results
from utils.hardware import fp32_roofs
from utils.timing import speedup
from utils.tools.diagnostics import LearnerError

#: The upper rungs' files.
KERNELS = Path(__file__).parent / "kernels"
DEVICE = "cuda" if has_gpu() else "cpu"
TYPE = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
#: Half a step between neighbours at 1: the most by which one rounding changes a number.
HALF_STEP = {
    "fp32": 2**-24,
    "tf32": 2**-11,
    "bf16": 2**-8,
    "fp16": 2**-11,
}
#: (m, n, k) that fill no tile; in the second all rows of 16-bit types start at 16 bytes.
ODD_SIZES = pick(
    gpu=((257, 129, 65), (1, 1, 1), (100, 300, 37)),
    cpu=((37, 70, 19), (1, 1, 1)),
)
EVEN_SIZES = (
    (264, 136, 72),
    (100, 304, 40),
    (1, 8, 8),
)

Multiply = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]


# ---- right?


def operands(
    m: int,
    n: int,
    k: int,
    kind: str = "fp32",
) -> tuple[torch.Tensor, ...]:
    """c (m × n, all NaN), a (m × k) and b (k × n), random and normally distributed."""
    dtype = TYPE[kind]
    a = torch.randn(m, k, device=DEVICE)
    b = torch.randn(k, n, device=DEVICE)
    c = torch.full(
        (m, n),
        torch.nan,
        device=DEVICE,
        dtype=dtype,
    )
    return c, a.to(dtype), b.to(dtype)


def error_of(
    multiply: Multiply,
    m: int,
    n: int,
    k: int,
    kind: str = "fp32",
) -> float:
    """The largest error against float64, as a share of √k, the typical size of an element.

    NaN where one element is NaN: it was never written, or something uninitialised was read.
    """
    c, a, b = operands(m, n, k, kind)
    multiply(c, a, b)
    exact = a.double() @ b.double()
    largest = (c.double() - exact).abs().max()
    typical = k**0.5
    return (largest / typical).item()


def bound(kind: str, k: int) -> float:
    """The largest error that roundings explain, as a share of √k.

    float32: k roundings, up or down by chance, add up like a random walk. In the other types the
    rounding of the inputs, or of the result, is far larger than that.
    """
    roundings = k**0.5 if kind == "fp32" else 1
    return 16 * HALF_STEP[kind] * roundings


def prove(
    name: str,
    multiply: Multiply,
    shapes: Iterable,
    kind: str = "fp32",
) -> float:
    """The largest error over some shapes; AssertionError where roundings do not explain it."""
    worst = 0.0
    for m, n, k in shapes:
        error = error_of(multiply, m, n, k, kind)
        most = bound(kind, k)
        where = f"{name} is wrong at {m} × {n} × {k}"
        assert error == error, f"{where}: some elements are NaN, as where nothing was written"
        assert error <= most, f"{where}: error {error:.2g}, at most {most:.2g} is rounding"
        worst = max(worst, error)
    return worst


#: For kernels that may be wrong: several tiles, several steps along k, and no multiple of either
TRIED = ((37, 70, 75),)


def is_right(make: Callable[[], "Multiply"], kind: str = "fp32", shapes: Iterable = TRIED) -> bool:
    """Whether a kernel as it stands now is right, against float64; says so. Nothing is raised.

    make: compiles it and returns multiply(c, a, b). Without a GPU the CPU runtime's slow checks
    watch, and name the mistake with its line.
    """
    try:
        with cuda_c.checked():
            error = prove("this kernel", make(), shapes, kind)
    except (AssertionError, LearnerError) as mistake:
        print(first_of(str(mistake)))
        return False
    print(f"✓ right: the largest error is {error:.1e}, and rounding explains it")
    return True


def tried(make: Callable[[], "Multiply"], kind: str = "fp32", shapes: Iterable = TRIED) -> None:
    """Say whether a kernel as it stands now is right, as `is_right`."""
    is_right(make, kind, shapes)


# ---- launches


def blocks(size: int, tile: int) -> int:
    """How many tiles cover a side."""
    return (size + tile - 1) // tile


def sizes(a: torch.Tensor, b: torch.Tensor) -> tuple[int, int, int]:
    """(m, n, k) of a product a b."""
    m, k = a.shape
    return m, b.shape[1], k


def launcher(
    path,
    tile,
    threads,
    *,
    shared=0,
    flags=(),
    kernel="matmul",
    multiple=1,
    rows_first=False,
) -> Multiply:
    """multiply(c, a, b) with a kernel (c, a, b, m, n, k) of a CUDA C file, a block for a tile of c.

    tile: (rows, columns) of c that a block computes. threads: of a block. shared: bytes of dynamic
    shared memory. multiple: n and k must be multiples of it, else ValueError. rows_first: the
    grid's x counts tiles down the rows, and not along the columns.
    """
    module = cuda_c.load(path, flags=flags)
    function = getattr(module, kernel)
    rows, columns = tile

    def multiply(c, a, b):
        m, n, k = sizes(a, b)
        if n % multiple or k % multiple:
            needed = f"n and k must be multiples of {multiple} here, not {n} and {k}"
            raise ValueError(f"{needed}: pad a and b with zeros")
        grid = (blocks(n, columns), blocks(m, rows))  # x: columns
        if rows_first:
            grid = grid[::-1]
        launch = function[grid, threads, shared]
        launch(c, a, b, m, n, k)

    multiply.module = module
    return multiply


def cublas(c, a, b):
    """The rival: cuBLAS through PyTorch; on a CPU PyTorch's own product."""
    torch.matmul(a, b, out=c)


# ---- what a rung asks for


@dataclass(frozen=True)
class Asked:
    """What a kernel asks of memory for one multiply-add, on average: bytes of global memory, and
    accesses to shared memory (one of 16 bytes counts once).
    """

    global_bytes: float
    shared: float

    def __str__(self):
        of_shared = f"{self.shared:.3g} accesses to shared memory"
        return f"{self.global_bytes:.3g} bytes of global memory, {of_shared}"


WHOLE_TILES = (128, 256)  # m, n of a product without edges for all rungs
DEPTHS = (32, 64)  # its k: the difference is what steps along k ask for, without storing C


def asked(multiply: Multiply) -> Asked:
    """Count what a rung of `launcher`, built with the CPU runtime's checks, asks of memory."""
    m, n = WHOLE_TILES
    counts = []
    for k in DEPTHS:
        multiply(*operands(m, n, k))
        counts.append(multiply.module.counts())
    fewer, more = counts
    products = m * n * (DEPTHS[1] - DEPTHS[0])
    global_bytes = more["global_bytes"] - fewer["global_bytes"]
    return Asked(global_bytes / products, (more["shared"] - fewer["shared"]) / products)


def allowed(asked: Asked) -> str:
    """What the accesses to shared memory allow at most, in a line: a bound, and no estimate.

    An SM hands out one value of 4 bytes for each lane of a warp, while it could start the
    multiply-adds of four warps. Beside the bound stands rung 3's, and what that was measured to
    reach.
    """
    _, peak, _ = fp32_roofs()
    share = min(1, 1 / (4 * asked.shared)) if asked.shared else 1
    said = (
        f"  by its accesses, if each brings 4 bytes, it can reach {share:.0%} of the peak at most"
    )
    whose, known = recorded()
    tile, rival = known.get(("fp32", 4096, "tile")), known.get(("fp32", 4096, "cuBLAS"))
    if tile and rival:
        most = share * peak / rival.rate
        of_tile = f"rung 3 can reach {1 / 8:.0%}, and reached {tile.rate / peak:.0%} ({whose})"
        said += f", {min(1, most):.0%} of cuBLAS; {of_tile}"
    return said


# ---- the ladder


class Ladder:
    """Rungs by name, and what was measured of them in this run."""

    def __init__(self):
        self.rungs: dict[str, Multiply] = {}
        self.measured: dict[tuple[str, int, str], Measured] = {}
        self.predictions: dict[str, float] = {}
        self.asked: dict[str, Asked] = {}
        torch.backends.cuda.matmul.allow_tf32 = False  # else cuBLAS may round float32 to TF32

    def add(self, name: str, multiply: Multiply) -> Multiply:
        """A rung: multiply(c, a, b) computes c = a b. Returns it."""
        self.rungs[name] = multiply
        return multiply

    def predict(self, name: str, percent=...) -> None:
        """Keep what a reader expects of a rung, in percent of cuBLAS's speed; `...`: nothing."""
        if percent is ...:
            print(f"{name}: write your guess in place of the dots, in percent of cuBLAS's speed")
            return
        percent = float(str(percent).replace("%", ""))
        self.predictions[name] = percent / 100
        print(f"{name}: you say {percent:g} % of cuBLAS")

    def climb(
        self,
        name: str,
        kind: str = "fp32",
        n: int = 4096,
        shapes=ODD_SIZES,
        *,
        make: Callable[[], Multiply] | None = None,
    ) -> None:
        """Check a rung at odd shapes, then at n × n × n, and time it beside cuBLAS.

        make: compiles the rung as it is now and returns it; None: it was added before.
        Without a GPU: check it on small matrices, count what it asks of memory if it is made here,
        and say what a GPU has recorded.
        """
        if make:
            with cuda_c.checked():
                self.add(name, make())
        multiply = self.rungs[name]
        worst = prove(name, multiply, shapes, kind)
        if has_gpu():
            error = prove(name, multiply, [(n, n, n)], kind)
            found = self.race(name, kind, n, error)
            speed = f"{found.rate / 1e12:.2f} TFLOP/s, {found.share:.1%} of cuBLAS"
            print(f"✓ {name}, {kind}, {n}: {speed}; error {found.error:.1e}")
        else:
            where = ", ".join("{} × {} × {}".format(*shape) for shape in shapes)
            if make:
                self.asked[name] = asked(multiply)  # before all is well: it finds races, too
            print(f"✓ {name} is right at {where} (error {worst:.1e})")
            if make:
                print(f"  counted here, for each multiply-add: {self.asked[name]}")
            path = f"matmul/{kind}/{n}/{name}"
            print(recorded_line(path))
            if make and not is_recorded(path):
                print(allowed(self.asked[name]))

    def race(self, name, kind, n, error, best=False) -> Measured:
        """Time a rung in turn with cuBLAS on the same matrices, and record its share.

        error: goes into the record. best: record the share as the ladder's too.
        """
        path = f"matmul/{kind}/{n}"
        tf32 = torch.backends.cuda.matmul
        tf32.allow_tf32 = kind == "tf32"
        timed = self._time([name], kind, n)
        tf32.allow_tf32 = False
        ours = timed[name]
        theirs = timed["cuBLAS"]
        share, spread = speedup(ours, theirs)
        results.record(f"{path}/{name}/share_of_cublas", share, spread=spread)
        if best:
            results.record(f"{path}/share_of_cublas", share, spread=spread)
        results.record(f"{path}/{name}/error", error)
        found = Measured(ours.flops_per_second, share, error)
        self.measured[kind, n, "cuBLAS"] = Measured(theirs.flops_per_second, 1.0)
        self.measured[kind, n, name] = found
        return found

    def _time(
        self,
        names: Iterable[str],
        kind: str,
        n: int,
    ) -> dict:
        """The times of rungs and of cuBLAS, in turn."""
        given = operands(n, n, n, kind)
        rivals = {name: partial(self.rungs[name], *given) for name in names}
        rivals["cuBLAS"] = partial(cublas, *given)
        return compare(rivals, flops=2 * n**3, name=f"matmul/{kind}/{n}").timings

    def compare(
        self,
        kind: str,
        n: int,
        names: Iterable[str],
    ) -> None:
        """Time several rungs and cuBLAS in turn, quietly, and record their shares."""
        timed = self._time(names, kind, n)
        theirs = timed["cuBLAS"]
        for name, timing in timed.items():
            share = theirs.median / timing.median
            self.measured[kind, n, name] = Measured(timing.flops_per_second, share)
            if name != "cuBLAS":
                path = f"matmul/{kind}/{n}/{name}/share_of_cublas"
                relative = timing.spread / timing.median
                results.record(path, share, spread=share * relative)

    def best_of(self, kind: str, n: int, names) -> str:
        """The fastest of some rungs, as measured; without a GPU the last."""
        shares = {}
        for name in names:
            if (kind, n, name) in self.measured:
                shares[name] = self.measured[kind, n, name].share
        return max(shares, key=shares.get, default=names[-1])

    def record_best(self, kind: str, n: int, name: str) -> None:
        """Race a rung again; its share is the ladder's. Without a GPU: say what is recorded."""
        if (kind, n, name) not in self.measured:
            print(f"{kind}, {n}: {_recorded_best(kind, n)}")
            return
        error = self.measured[kind, n, name].error
        found = self.race(name, kind, n, error, best=True)
        speed = f"{found.rate / 1e12:.1f} TFLOP/s, {found.share:.1%} of cuBLAS"
        print(f"{name}, {kind}, {n}: {speed}")

    def known(self) -> tuple[str, dict]:
        """(whose, {(kind, n, rung): Measured}), as measured here; without a GPU as recorded."""
        if not has_gpu():
            return recorded()
        from utils import machine

        return machine().gpu.name, self.measured

    def shares(
        self,
        kind: str = "fp32",
        n: int = 4096,
        also: Iterable[str] = (),
    ) -> tuple[str, dict[str, float]]:
        """(whose, {name: share of cuBLAS}) of the rungs so far, and of others if known."""
        whose, known = self.known()
        names = dict.fromkeys((*self.rungs, *also))
        shares = {name: known[kind, n, name].share for name in names if (kind, n, name) in known}
        return whose, shares

    def share_between(
        self,
        first: str,
        second: str,
        kind: str = "fp32",
        n: int = 4096,
    ) -> str:
        """The speed of one rung as a share of another's, now or as recorded."""
        _, known = self.known()
        one = known.get((kind, n, first))
        two = known.get((kind, n, second))
        if one and two:
            return f"{one.rate / two.rate:.0%}"
        return "not recorded yet"


def _recorded_best(kind: str, n: int) -> str:
    entry = results.find(f"matmul/{kind}/{n}/share_of_cublas")
    if not entry:
        return "nothing recorded yet"
    place = f"{entry['gpu']}, {entry['date'][:10]}"
    return f"recorded on {place}: {entry['value']:.1%} of cuBLAS"
