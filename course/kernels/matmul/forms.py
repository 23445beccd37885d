"""The forms of a product at any size: tiles, warp groups, stages, clusters; and launches.

A `Form` or a `Float32` is how a kernel is compiled, a `Choice` how it is launched, a `Problem` what
is asked.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from course.kernels.matmul import maps
from utils import cuda_c, has_gpu, machine
from utils.occupancy import ceil_div
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
CPU_SMS = 4  # on the CPU runtime: a block takes several tiles, and there is more than one
#: Of the numbers that are multiplied, as kernels/any_type.cuh numbers them
KINDS = {
    "bf16": 0,
    "fp16": 1,
    "tf32": 2,
    "fp8": 3,
}
TYPES = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "tf32": torch.float32,
    "fp8": torch.float8_e4m3fn,
    "fp32": torch.float32,  # without tensor cores
}
RESULTS = TYPES | {"fp8": torch.bfloat16}
LINE = 128  # bytes of a step along k
BARRIERS = 16  # bytes a stage
#: That the blocks of an SM may leave for others
MOST_SUMS = 1 << 16
MOST_FLAGS = 16


@dataclass(frozen=True)
class Problem:
    """c = a b for a batch: (m, k) times (k, n).

    along_k: b is stored as (n, k), as torch.nn.Linear has its weights.
    """

    kind: str
    m: int
    n: int
    k: int
    batch: int = 1
    along_k: bool = False

    @property
    def number_bytes(self) -> int:
        return TYPES[self.kind].itemsize

    @property
    def result_bytes(self) -> int:
        return RESULTS[self.kind].itemsize

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k * self.batch

    @property
    def reads(self) -> int:
        """Bytes of a and b."""
        return self.batch * (self.m + self.n) * self.k * self.number_bytes

    @property
    def writes(self) -> int:
        """Bytes of c."""
        return self.batch * self.m * self.n * self.result_bytes

    def __str__(self):
        batch = f"{self.batch} x " if self.batch > 1 else ""
        return f"{batch}{self.m} x {self.n} x {self.k}"


@dataclass(frozen=True)
class Form:
    """How a kernel is compiled. rows, columns: of a block's tile. per_sm: blocks on an SM.

    split: 0 for kernels/any.cu, whose blocks stay; else of kernels/any_small.cu, how many blocks
    share a tile's k. cluster: blocks that share what they need of b (any.cu). turns: its two
    consumers have tiles of their own.
    """

    rows: int
    columns: int
    consumers: int
    stages: int
    cluster: int = 1
    per_sm: int = 1
    split: int = 0
    turns: bool = False

    def __str__(self):
        tile = f"{self.rows}x{self.columns}"
        if self.split:
            return f"{tile} split {self.split}"
        turns = " in turns" if self.turns else ""
        return f"{tile}{turns} cluster {self.cluster} per SM {self.per_sm}"

    @property
    def threads(self) -> int:
        return 128 * (1 + self.consumers)

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory a block: `Shared` of the kernel."""
        ring = self.stages * ((self.rows + self.columns) * LINE + BARRIERS)
        if self.split:
            return ring + 4 * self.rows * (self.columns + 8)
        scales = self.consumers * 4 * self.columns
        return ring + self.consumers * self.boxes * 64 * LINE + scales + BARRIERS

    @property
    def parts_of_box(self) -> int:
        """Into which boxes of b fall that lie along n: blocks of a cluster bring as many each."""
        return 2 if self.cluster == 2 and self.columns // 64 % 2 else 1

    @property
    def boxes(self) -> int:
        """Boxes of results that leave together (kernels/any.cu, BOXES)."""
        return 1 if self.columns in (64, 192) else 2

    def flags(self, kind: str, along_k: bool) -> tuple[str, ...]:
        """The compiler's flags for it."""
        named = {
            "KIND": KINDS[kind],
            "B_ALONG_K": int(along_k),
            "BM": self.rows,
            "BN": self.columns,
            "CONSUMERS": self.consumers,
            "STAGES": self.stages,
            "PER_SM": self.per_sm,
        }
        if self.split:
            named["SPLIT"] = self.split
        else:
            named |= {"CLUSTER": self.cluster, "HIGH": self.high, "TURNS": int(self.turns)}
        return tuple(f"-D{name}={value}" for name, value in named.items())

    @property
    def high(self) -> int:
        """Rows of tiles in a patch: what runs together is about as high as it is wide."""
        square = self.clusters * self.columns / (self.rows * self.cluster)
        return max(1, round(square**0.5))

    def kernel(self, kind: str, along_k: bool):
        """The compiled kernel."""
        file = "any_small.cu" if self.split else "any.cu"
        return cuda_c.load(KERNELS / file, flags=self.flags(kind, along_k)).matmul

    def steps(self, problem: Problem) -> int:
        """Of 128 bytes, along k."""
        return ceil_div(problem.k * problem.number_bytes, LINE)

    def tiles(self, problem: Problem) -> int:
        """Of a cluster's blocks each a tile, for the whole batch."""
        down = ceil_div(problem.m, self.rows * self.cluster)
        across = ceil_div(problem.n, self.columns)
        return problem.batch * down * across

    @property
    def clusters(self) -> int:
        """Clusters that run at the same time."""
        return (machine().sms or CPU_SMS) * self.per_sm // self.cluster


@dataclass(frozen=True)
class Float32:
    """How kernels/any_float32.cu is compiled. rows, columns: of a block's tile. depth: of a step.

    warp, thread: (rows, columns) of theirs. per_sm: blocks on an SM.
    """

    rows: int
    columns: int
    depth: int
    warp: tuple[int, int]
    thread: tuple[int, int]
    stages: int
    per_sm: int
    cluster = 1
    split = 0

    def __str__(self):
        return f"{self.rows}x{self.columns}x{self.depth} per SM {self.per_sm}"

    @property
    def threads(self) -> int:
        return 32 * (self.rows // self.warp[0]) * (self.columns // self.warp[1])

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory a block: so many pairs of tiles, A's padded by 4."""
        return 4 * self.stages * self.depth * (self.rows + 4 + self.columns)

    def kernel(self, kind: str, along_k: bool):
        """The compiled kernel."""
        named = {
            "BM": self.rows,
            "BN": self.columns,
            "BK": self.depth,
            "WM": self.warp[0],
            "WN": self.warp[1],
            "TM": self.thread[0],
            "TN": self.thread[1],
            "STAGES": self.stages,
            "BLOCKS": self.per_sm,
        }
        flags = tuple(f"-D{name}={value}" for name, value in named.items())
        return cuda_c.load(KERNELS / "any_float32.cu", flags=flags).matmul

    def steps(self, problem: Problem) -> int:
        """Along k."""
        return ceil_div(problem.k, self.depth)

    def tiles(self, problem: Problem) -> int:
        """For the whole batch."""
        down = ceil_div(problem.m, self.rows)
        return problem.batch * down * ceil_div(problem.n, self.columns)

    @property
    def clusters(self) -> int:
        """Blocks that run at the same time."""
        return (machine().sms or CPU_SMS) * self.per_sm


@dataclass(frozen=True)
class Choice:
    """A form, and where blocks stay, how many clusters there are and how many tiles come whole.

    cuts: parts of each other tile; 0 where they are one stream.
    """

    form: Form | Float32
    clusters: int = 0
    whole: int = 0
    cuts: int = 0

    def __str__(self):
        if not self.clusters:
            return str(self.form)
        cuts = f"/{self.cuts}" if self.cuts else ""
        return f"{self.form} {self.clusters}/{self.whole}{cuts}"


@yours.cache
def kernel(form: Form | Float32, kind: str, along_k: bool):
    """The compiled kernel."""
    compiled = form.kernel(kind, along_k)
    if has_gpu():
        _prefer_shared_memory(compiled.handle)
    return compiled


def _prefer_shared_memory(handle: int) -> None:
    """Let an SM have as much of it as it can, so that all blocks find room at the same time."""
    from cuda.bindings import driver

    preference = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
    device = torch.cuda.current_device()
    (error,) = driver.cuKernelSetAttribute(preference, 100, driver.CUkernel(handle), device)
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"shared memory is not preferred: {error.name}")


@functools.cache
def exchange(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """(Sums, flags) that blocks leave for each other; one launch at a time."""
    sms = machine().sms or CPU_SMS
    sums = torch.empty(sms * MOST_SUMS, device=device)
    return sums, torch.zeros(sms * MOST_FLAGS, dtype=torch.int32, device=device)


def batched(matrix: torch.Tensor) -> torch.Tensor:
    """A matrix as a batch of one."""
    return matrix if matrix.dim() == 3 else matrix[None]


def launch(choice: Choice, problem: Problem, c, a, b, scales=(None, None)) -> Callable[[], None]:
    """What starts the kernel on these matrices; their tensor maps are made here, once.

    b: (.., n, k) if the problem is along_k. Rows of a and b begin at multiples of 16 bytes, except
    of "fp32".
    """
    form = choice.form
    compiled = kernel(form, problem.kind, problem.along_k)
    sizes = problem.m, problem.n, problem.k
    streams = *exchange(c.device), *sizes, problem.batch, choice.whole
    blocks = choice.clusters * form.cluster
    if problem.kind == "fp32":
        arguments = c, a, b, *streams
    else:
        map_a, map_b = _maps(form, problem, batched(a), batched(b))
        if form.split:
            blocks = form.split * form.tiles(problem)
            arguments = c, map_a, map_b, *scales, *sizes
        else:
            map_c = _map_of_result(problem, batched(c))
            arguments = c, map_c, map_a, map_b, *scales, *streams, choice.cuts

    def start():
        compiled[blocks, form.threads, form.shared, stream(c)](*arguments)

    return start


def _maps(form: Form, problem: Problem, a, b):
    line = LINE // problem.number_bytes
    rows = form.columns // form.cluster if problem.along_k else line // form.parts_of_box
    return maps.boxes(a, form.rows, line), maps.boxes(b, rows, line)


def _map_of_result(problem: Problem, c):
    """Where rows do not begin at multiples of 16 bytes, the kernel does without: of no matrix."""
    line = LINE // problem.result_bytes
    if problem.n * problem.result_bytes % 16:
        c = torch.empty(1, 1, line, dtype=c.dtype, device=c.device)
    return maps.boxes(c, 64, line)


def stream(x: torch.Tensor) -> int:
    """The handle of torch's current stream where x lies: a CUDA graph captures what runs there."""
    return torch._C._cuda_getCurrentRawStream(x.device.index) if x.is_cuda else 0
