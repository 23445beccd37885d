"""Launch conv2.cu: the network's second convolution and its gradients, by the step's products.

x: (n, 14, 14, 32), w: (64, 3, 3, 32), y and dy: (n, 14, 14, 64); all bfloat16 and contiguous.
`stream` is a CUDA stream's number. Needs compute capability 8.0 or newer, or no GPU.
"""

from pathlib import Path

import torch

from utils import cuda_c, machine
from utils.tools import yours

SOURCE = Path(__file__).parent / "kernels" / "conv2.cu"
SIDE, INPUTS, OUTPUTS = 14, 32, 64
TAPS = 9
WEIGHTS = OUTPUTS * TAPS * INPUTS
BLOCKS_OF_AN_SM = 2
CPU_SMS = 1  # on the CPU runtime: a block takes more than one image

#: As conv2.cu has them: threads of a block.
FORWARD_THREADS, THREADS = 224, 256
ADDED_BY_A_BLOCK = 32

#: Rows in shared memory: channels and 8 numbers more, so that 8 rows lie in different banks.
INPUT_ROW, OUTPUT_ROW = INPUTS + 8, OUTPUTS + 8
INPUT_BYTES = 256 * INPUT_ROW * 2
OUTPUT_BYTES = 241 * OUTPUT_ROW * 2
WEIGHT_BYTES = TAPS * OUTPUTS * INPUT_ROW * 2


@yours.cache
def module():
    """The compiled kernels."""
    return cuda_c.load(SOURCE)


def blocks_for(images: int) -> int:
    """Two blocks an SM, where there are so many images."""
    sms = machine().sms or CPU_SMS
    return max(1, min(images, BLOCKS_OF_AN_SM * sms))


def forward(y, x, w, stream: int = 0) -> None:
    """Compute y."""
    images = len(x)
    shared = WEIGHT_BYTES + INPUT_BYTES
    kernel = module().conv2_forward[blocks_for(images), FORWARD_THREADS, shared, stream]
    kernel(y, x, w, images)


def data_gradient(dx, dy, w, stream: int = 0) -> None:
    """Compute dx."""
    images = len(dy)
    shared = WEIGHT_BYTES + OUTPUT_BYTES
    kernel = module().conv2_data_gradient[blocks_for(images), THREADS, shared, stream]
    kernel(dx, dy, w, images)


def weights_gradient(dw, dy, x, stream: int = 0) -> None:
    """Compute dw: each block a part of the images, then the sum of the parts."""
    images = len(x)
    count = blocks_for(images)
    parts = torch.empty(count, WEIGHTS, dtype=torch.float32, device=dw.device)
    shared = INPUT_BYTES + OUTPUT_BYTES
    kernel = module().conv2_weights_gradient[count, THREADS, shared, stream]
    kernel(parts, dy, x, images)
    add = module().conv2_add_parts[WEIGHTS // ADDED_BY_A_BLOCK, THREADS, 0, stream]
    add(dw, parts, count)
