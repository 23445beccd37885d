"""Does rung 18, as a learner has changed it, ask for a step before it waits for the one before?"""

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from course.kernels.matmul import ladder as judge
from course.kernels.matmul import tensor
from course.kernels.matmul.ladder import Multiply, operands
from utils import cuda_c, has_gpu
from utils.tools import yours
from utils.tools.diagnostics import LearnerError

PATH = tensor.KERNELS / "wgmma.cu"
TILES = '#include "hopper_tiles.cuh"\n'
STEPS = 3  # along k: the last one has no next step
SLOTS = 2
STAGE = 2 * 64 * (128 + 256)  # bytes of a step's tiles

#: Each thread of the only block counts what it asks for and waits for. In place of its sums, the
#: thread that asks stores how many waits found the next step asked for, too.
COUNTED = """
__device__ int asked[256], waited[256], early[256];

__device__ void note_wait() {
    early[threadIdx.x] += asked[threadIdx.x] - waited[threadIdx.x] > 1;
    ++waited[threadIdx.x];
}

__device__ void tell(bf16* c) {
    if (asked[threadIdx.x])
        c[0] = __float2bfloat16(early[threadIdx.x]);
    asked[threadIdx.x] = waited[threadIdx.x] = early[threadIdx.x] = 0;
}

#define load(...) (++asked[threadIdx.x], load(__VA_ARGS__))
#define barrier_wait(...) (note_wait(), barrier_wait(__VA_ARGS__))
#define store(c, ...) tell(c)
"""


def early_waits(path: Path = PATH) -> int:
    """Of STEPS waits, how many found that the kernel had asked for the next step already.

    path: the course's file, or one like it; a learner's copy counts in its place. Raises
    LearnerError where it does not compile or run.
    """
    theirs = yours.current(path)
    text = theirs.read_text(encoding="utf-8")
    c, a, b = operands(128, 256, STEPS * 64, "bf16")
    c.zero_()
    maps = tensor.map_of(a, 128), tensor.map_of(b, 64)
    with TemporaryDirectory() as folder:
        for header in theirs.parent.glob("*.cuh"):
            shutil.copy(header, folder)
        counted = Path(folder) / path.name
        counted.write_text(text.replace(TILES, TILES + COUNTED), encoding="utf-8")
        kernel = cuda_c.load(counted).matmul
        kernel[1, 256, SLOTS * (STAGE + 2 * 8)](c, *maps, 128, 256, STEPS * 64)
        if has_gpu():
            torch.cuda.synchronize()
    return int(c[0, 0])


def tried_ahead(make: Callable[[], Multiply], path: Path = PATH) -> None:
    """Say whether rung 18 asks a step ahead, and then whether it is right. Nothing is raised.

    make: compiles it and returns multiply(c, a, b), as for `tensor.tried`. path: as `early_waits`.
    """
    if has_gpu() and not tensor.HOPPER.met():
        print(f"this needs {tensor.HOPPER.words}")
        return
    try:
        early = early_waits(path)
    except LearnerError:
        early = None  # the judge runs it once more, and names the mistake in the learner's lines
    if early == 0:
        print("○ not yet: no step is asked for before the one before it has been waited for")
    elif judge.is_right(make, "bf16", tensor.SMALL_SIZES) and early is not None:
        print(f"  {early} of the {STEPS - 1} steps after the first were asked for one step ahead")
