"""The exercises of the chapter Beating PyTorch."""

import re

import numpy as np

from course.checking.answers import replace
from course.checking.inputs import some_zeros, uniform, with_small
from course.checking.model import Exercise, Hypothesis, InOut, Launch, Out, Wrong, ceil_div
from course.checking.quiz import Quiz, one_of
from course.checking.text import COMMENTS
from course.exercises import beating_pytorch_slips as slips
from course.kernels.mnist_cnn.sockets import SOCKETS, head_of, pooled_of

# ---- bn_relu_pool: three layers forward in one pass

PLAIN_BN_RELU_POOL = """
// Batch norm (as scale and shift of each channel), ReLU and 2x2 max-pooling in one pass.
// y [rows, width, channels], out [rows / 2, width / 2, channels].
__global__ void bn_relu_pool(float* out, const float* y, const float* scale, const float* shift,
                             int rows, int width, int channels) {
    int total = rows / 2 * (width / 2) * channels;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        int c = i % channels;
        int x = i / channels % (width / 2);
        int row = i / channels / (width / 2);
        float best = 0;
        for (int k = 0; k < 4; ++k) {
            float v = y[((2 * row + k / 2) * width + 2 * x + k % 2) * channels + c];
            best = fmaxf(best, scale[c] * v + shift[c]);
        }
        out[i] = best;
    }
}
"""
FOUR_AT_A_TIME = """
// Right, too: four channels in one load.
__global__ void bn_relu_pool(float* out, const float* y, const float* scale, const float* shift,
                             int rows, int width, int channels) {
    const float4* in = reinterpret_cast<const float4*>(y);
    int fours = channels / 4;
    int total = rows / 2 * (width / 2) * fours;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        int c = i % fours;
        int x = i / fours % (width / 2);
        int row = i / fours / (width / 2);
        float4 s = reinterpret_cast<const float4*>(scale)[c];
        float4 t = reinterpret_cast<const float4*>(shift)[c];
        float4 best = make_float4(0, 0, 0, 0);
        for (int k = 0; k < 4; ++k) {
            float4 v = in[((2 * row + k / 2) * width + 2 * x + k % 2) * fours + c];
            best.x = fmaxf(best.x, fmaf(s.x, v.x, t.x));
            best.y = fmaxf(best.y, fmaf(s.y, v.y, t.y));
            best.z = fmaxf(best.z, fmaf(s.z, v.z, t.z));
            best.w = fmaxf(best.w, fmaf(s.w, v.w, t.w));
        }
        reinterpret_cast<float4*>(out)[i] = best;
    }
}
"""
POOLED_FIRST = replace(
    PLAIN_BN_RELU_POOL,
    ("best = 0", "best = -1e30f"),
    ("scale[c] * v + shift[c]", "v"),
    ("out[i] = best", "out[i] = fmaxf(0, scale[c] * best + shift[c])"),
)


def feature_maps(rng, shape):
    """Outputs of a convolution, and the two numbers a channel that batch norm comes down to; some
    scales are negative.
    """
    rows, width, channels = shape
    return {
        "out": Out((rows // 2, width // 2, channels)),
        "y": some_zeros(rng, rows, width, channels),
        "scale": uniform(rng, channels),
        "shift": uniform(rng, channels) * np.float32(0.5),
        "rows": rows,
        "width": width,
        "channels": channels,
    }


def few_and_enough_blocks(shape):
    """Two blocks for everything, and a thread for each output."""
    outputs = shape[0] // 2 * (shape[1] // 2) * shape[2]
    return [
        Launch((2, 1, 1), (64, 1, 1), "two blocks for everything"),
        Launch((ceil_div(outputs, 64), 1, 1), (64, 1, 1)),
    ]


BN_RELU_POOL = Exercise(
    id="beating_pytorch.bn_relu_pool",
    title="Three layers in one pass",
    minutes=6,
    kind="cuda_c",
    kernel_name="bn_relu_pool",
    path="build/bn_relu_pool.cu",
    task=(
        "Batch norm, ReLU and max-pooling in one pass. `y` holds `rows` lines of `width` pixels"
        " with `channels` channels each; each value becomes `scale[c] * y + shift[c]`, what is"
        " negative becomes 0, and of each 2×2 window the largest goes to `out`. The starter finds"
        " the window of output i: `window[0]` is its upper left value, in channel c. Its other"
        " three lie to the right and below. `rows` and `width` are even, `channels` is a multiple"
        " of 4."
    ),
    starter="""
%%writefile build/bn_relu_pool.cu
// y [rows, width, channels], scale and shift [channels], out [rows / 2, width / 2, channels]
__global__ void bn_relu_pool(float* out, const float* y, const float* scale, const float* shift,
                             int rows, int width, int channels) {
    int total = rows / 2 * (width / 2) * channels;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        int c = i % channels;
        int x = i / channels % (width / 2);
        int row = i / channels / (width / 2);
        const float* window = &y[(2 * row * width + 2 * x) * channels + c];
        float best = 0;
        // your code: the largest of four
        out[i] = best;
    }
}
""",
    solution=PLAIN_BN_RELU_POOL,
    inputs=feature_maps,
    reference=slips.pooled,
    specials="finite",
    shapes=(
        (2, 2, 4),
        (4, 6, 4),
        (6, 4, 8),
        (28, 28, 4),
        (8, 14, 32),
        (2, 10, 12),
        (288, 2, 4),  # more lines, pixels, channels than a byte counts
        (2, 288, 4),
        (2, 2, 576),
    ),
    large=((64, 66, 64), (132_000, 2, 4), (2, 132_000, 4), (2, 2, 66_000)),
    fresh=lambda rng: (
        tuple(2 * int(n) for n in rng.integers(1, 6, 2)) + (4 * int(rng.integers(1, 5)),)
    ),
    block=(64, 1, 1),
    extents=lambda s: (s[0] // 2 * (s[1] // 2) * s[2], 1, 1),
    launches=few_and_enough_blocks,
    other_block=(96, 1, 1),
    is_square=lambda s: s[0] == s[1],
    swapped=(0, 1),
    hints=(
        (
            "From a value to its right neighbour in the same channel it is `channels` numbers, and"
            " to the one below `width * channels`."
        ),
        (
            "Value k of the window is `window[(k / 2 * width + k % 2) * channels]`. Batch norm"
            " comes first, then the larger of the two. That `best` begins at 0 is the ReLU."
        ),
        (
            "Faster: the channels of a pixel lie side by side, so a thread can take four of them,"
            " as a `float4`, in one load. Then it needs scale and shift once for four windows of"
            " four values."
        ),
    ),
    wrong=(
        ("int row =", "signed char row =", "out_of_bounds"),
        Wrong(POOLED_FIRST, "wrong_value"),
        Wrong(replace(PLAIN_BN_RELU_POOL, "* v", "* fmaxf(0, v)"), "wrong_value"),
        Wrong(
            replace(PLAIN_BN_RELU_POOL, "i += gridDim.x * blockDim.x", "i += total"),
            "needs_full_grid",
        ),
        Wrong(replace(PLAIN_BN_RELU_POOL, "best = 0", "best = -1e30f"), "wrong_value"),
        Wrong(replace(PLAIN_BN_RELU_POOL, "i < total; ", "i <= total; "), "off_by_one"),
        Wrong(replace(PLAIN_BN_RELU_POOL, "2 * x + k % 2", "x + k % 2"), "wrong_value"),
        Wrong(replace(PLAIN_BN_RELU_POOL, "2 * row + k / 2", "row + k / 2"), "wrong_value"),
        Wrong(replace(PLAIN_BN_RELU_POOL, "k < 4", "k < 3"), "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "It pools first and normalizes then. Where a channel's scale is negative, the largest"
            " becomes the smallest.",
            slips.pooled_then_normalized,
        ),
        Hypothesis(
            "wrong_value",
            "What is negative must become 0: the ReLU is missing.",
            lambda **given: slips.pooled(**given, lowest=-np.inf),
        ),
        Hypothesis(
            "wrong_value",
            "The ReLU stands before batch norm here. It belongs after it.",
            lambda **given: slips.pooled(**given | {"y": np.maximum(given["y"], 0)}),
        ),
        Hypothesis(
            "wrong_value",
            "Windows begin two pixels apart: the first pixel of output x is pixel 2 x of its line.",
            slips.windows_side_by_side,
        ),
        Hypothesis(
            "wrong_value",
            "Windows begin two lines apart: the first line of output line r is line 2 r.",
            slips.windows_below_one_another,
        ),
        Hypothesis(
            "wrong_value",
            "`y` is taken for whole pictures, one for each channel. Here a pixel's channels lie"
            " side by side, and the next pixel `channels` numbers further.",
            lambda **given: slips.pooled(
                **given
                | {
                    "y": given["y"]
                    .reshape(given["channels"], given["rows"], given["width"])
                    .transpose(1, 2, 0)
                }
            ),
        ),
        Hypothesis(
            "wrong_value",
            "A pixel's number is not multiplied by `channels`: pixel p has its channel c at p *"
            " channels + c.",
            slips.pixels_side_by_side,
        ),
        Hypothesis(
            "wrong_value",
            "The window's values lie too near to one another: the next value in the same channel is"
            " `channels` numbers away, and the one below `width * channels`.",
            slips.in_places(lambda k, width, channels: k // 2 * width + k % 2),
        ),
        Hypothesis(
            "wrong_value",
            "`window[1]` is the next channel of the same pixel. The right neighbour in the same"
            " channel is `channels` numbers away.",
            slips.in_places(lambda k, width, channels: k // 2 * width * channels + k % 2),
        ),
        Hypothesis(
            "wrong_value",
            "The value below is not at `window[width]`: a line has `width * channels` numbers.",
            slips.in_places(lambda k, width, channels: k // 2 * width + k % 2 * channels),
        ),
        Hypothesis(
            "wrong_value",
            "It takes four values of one line. Two of a window lie in the line below, `width *"
            " channels` numbers further.",
            slips.in_places(lambda k, width, channels: k * channels),
        ),
        Hypothesis(
            "wrong_value",
            "A line of `y` has `width` pixels here, and not the half of them that `out` has.",
            slips.in_places(lambda k, width, channels: (k // 2 * (width // 2) + k % 2) * channels),
        ),
        Hypothesis(
            "wrong_value",
            "Output i is taken apart in another order than `out` has. There the channel runs"
            " fastest: it is i % channels.",
            slips.channel_slowest,
        ),
        Hypothesis(
            "wrong_value",
            "The shift is added behind the ReLU. It belongs to batch norm, in front of it.",
            lambda **given: (
                slips.pooled(**given | {"shift": np.zeros_like(given["shift"])}) + given["shift"]
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The shift is missing: batch norm makes scale[c] * y + shift[c].",
            lambda **given: slips.pooled(**given | {"shift": np.zeros_like(given["shift"])}),
        ),
        Hypothesis(
            "wrong_value",
            "Scale and shift are exchanged: batch norm makes scale[c] * y + shift[c].",
            lambda **given: slips.pooled(
                **given | {"scale": given["shift"], "shift": given["scale"]}
            ),
        ),
        Hypothesis(
            "wrong_value",
            "It takes the mean of a window. Pooling keeps the largest.",
            slips.of_each_window(lambda four: four.mean(2)),
        ),
        Hypothesis(
            "wrong_value",
            "It looks at three values of a window. There are four, the last of them below and to"
            " the right.",
            slips.of_each_window(lambda four: four[:, :, :3].max(2)),
        ),
        Hypothesis(
            "wrong_value",
            "It looks at the first value of each window alone. There are four.",
            slips.of_each_window(lambda four: four[:, :, 0]),
        ),
        Hypothesis(
            "wrong_value",
            "Only the last of a window's four values is kept: `best` is replaced where it should"
            " only grow.",
            slips.of_each_window(lambda four: four[:, :, 3]),
        ),
    ),
)

# ---- the sockets: kernels of the learner's that train in the fast trainer (sockets.cuh)

THREADS = slips.THREADS  # of their blocks
MANY_BLOCKS = 32  # so many that a thread too many in each of them counts as a warp


def some_small(rng, arguments):
    """These, some numbers of each array of floats 0 and some near it."""
    arrays = {name: value for name, value in arguments.items() if isinstance(value, np.ndarray)}
    floats = {name: array for name, array in arrays.items() if array.dtype == np.float32}
    return arguments | {name: with_small(rng, array) for name, array in floats.items()}


def as_exercise(socket, given=None):
    """The kind, inputs, reference and launches of a socket's kernel."""

    def inputs(rng, shape):
        arguments = given(rng, shape) if given else some_small(rng, socket.inputs(rng, shape))
        output, array = next(iter(arguments.items()))
        # all but one add to what is there
        arguments[output] = Out(array.shape) if socket.name == "conv1_pool" else InOut(array)
        return arguments

    return {
        "kind": "cuda_c",
        "kernel_name": socket.name,
        "path": f"build/{socket.name}.cu",
        "inputs": inputs,
        "reference": socket.reference,
        "block": (THREADS, 1, 1),
        "one_block": True,
        "launches": one_and_three_blocks,
        "extents": lambda shape: (3 * THREADS, 1, 1),
        "specials": "finite",
        "is_square": lambda shape: False,
    }


def one_and_three_blocks(shape):
    """Fewer blocks than digits, and more."""
    return [
        Launch((1, 1, 1), (THREADS, 1, 1), "one block for everything"),
        Launch((3, 1, 1), (THREADS, 1, 1), "three blocks"),
    ]


PIXEL_AT = """
// A pixel counts as its byte - 33, outside of the image as 0.328125.
__device__ float pixel_at(const unsigned char* image, int y, int x) {
    bool inside = y >= 0 && y < 28 && x >= 0 && x < 28;
    return inside ? image[y * 28 + x] - 33.0f : 0.328125f;
}
"""

PATCH_MOMENTS_START = f"""{PIXEL_AT}
// moments[17][16] is zero when the kernel begins.
__global__ void patch_moments(double* moments, const unsigned char* images, int batch) {{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 17 * 16; i += gridDim.x * blockDim.x) {{
        int a = i / 16;
        int b = i % 16;
        double sum = 0;
        for (int n = 0; n < batch; ++n)
            for (int y = -1; y < 27; y += 2)
                for (int x = -1; x < 27; x += 2) {{
                    const unsigned char* image = &images[n * 784];
                    float first = a < 16 ? pixel_at(image, y + a / 4, x + a % 4) : 1;
                    sum += first * pixel_at(image, y + b / 4, x + b % 4);
                }}
        moments[i] = sum;
    }}
}}
"""

PATCH_MOMENTS_CU = f"""{PIXEL_AT}
// A block takes a digit at a time into shared memory; a thread has one of the 16 x 16 products.
__global__ void patch_moments(double* moments, const unsigned char* images, int batch) {{
    __shared__ float pixels[30][30];  // with the border
    int a = threadIdx.x / 16;
    int b = threadIdx.x % 16;
    double products = 0;
    double singles = 0;
    for (int n = blockIdx.x; n < batch; n += gridDim.x) {{
        __syncthreads();  // nobody reads the last digit any more
        for (int i = threadIdx.x; i < 30 * 30; i += blockDim.x)
            pixels[i / 30][i % 30] = pixel_at(&images[n * 784], i / 30 - 1, i % 30 - 1);
        __syncthreads();
        for (int y = 0; y < 28; y += 2)
            for (int x = 0; x < 28; x += 2) {{
                float own = pixels[y + b / 4][x + b % 4];
                products += pixels[y + a / 4][x + a % 4] * own;
                singles += own;
            }}
    }}
    atomicAdd(&moments[a * 16 + b], products);
    if (a == 0)
        atomicAdd(&moments[16 * 16 + b], singles);
}}
"""


PATCH_MOMENTS = Exercise(
    id="beating_pytorch.patch_moments",
    title="A digit is read once",
    minutes=24,
    task=(
        "The starter is right and slow: each of its 272 sums reads every digit from global memory,"
        " and all blocks but two have nothing to do. Let a block take a whole digit into shared"
        " memory, digit `blockIdx.x` first and then every `gridDim.x`-th. From there its 256"
        " threads add up the products and the single pixels, in `double`: over thousands of digits"
        " a float loses what the last ones add. `moments[a][b]`: the sum of q[a] · q[b] over all"
        " windows of all digits; `moments[16][b]`: the sum of q[b]. A window's q[0] to q[15] are"
        " its 4 × 4 pixels, line by line; window (y, x) begins at pixel (2y - 1, 2x - 1)."
    ),
    starter=f"\n%%writefile build/patch_moments.cu{PATCH_MOMENTS_START}",
    solution=PATCH_MOMENTS_CU,
    shapes=((1,), (2,), (5,)),
    fresh=lambda rng: (int(rng.integers(1, 6)),),
    large=(300,),
    rtol=1e-4,  # a float will do for one digit
    shared_output=True,
    effort=6,
    traffic=3,
    needs=("shared",),
    hints=(
        (
            "`__shared__ float pixels[30][30]` holds a digit and its border. All threads fill it:"
            " `for (int i = threadIdx.x; i < 900; i += blockDim.x)`, line i / 30, column i % 30."
        ),
        (
            "Thread t takes a = t / 16 and b = t % 16 and goes through the 14 × 14 windows of the"
            " digit in shared memory. Its sum stays in a register from digit to digit, as a"
            " `double`."
        ),
        (
            "Two barriers: one after the digit has been written, one before the next is. At the end"
            " `atomicAdd(&moments[a * 16 + b], sum)`, because other blocks add theirs. The 16"
            " threads with a = 0 add up the single pixels, too."
        ),
    ),
    wrong=(
        ("        __syncthreads();  // nobody reads the last digit any more\n", "", "race"),
        ("atomicAdd(&moments[a * 16 + b], products)", "moments[a * 16 + b] = products", "race"),
        ("    if (a == 0)\n", "    if (a < 0)\n", "wrong_value"),
        (": 0.328125f", ": 0", "wrong_value"),
        (" - 33.0f", "", "wrong_value"),
        ("i / 30 - 1, i % 30 - 1", "i / 30, i % 30", "wrong_value"),
        Wrong(PATCH_MOMENTS_START, "no_shared"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "A pixel outside of the image counts as 0.328125, not as 0.",
            lambda moments, images, batch: slips.moments_in_other_windows(images, border=0),
        ),
        Hypothesis(
            "wrong_value",
            "Row 16 is missing: the sums of the single pixels.",
            slips.singles_times(0),
        ),
        Hypothesis(
            "wrong_value",
            "Row 16 is 16 times as large as it should be: 16 threads add up the same pixel. The"
            " threads with a = 0 are enough for that.",
            slips.singles_times(16),
        ),
        Hypothesis(
            "wrong_value",
            "A block takes one digit and ends. It must go on with every `gridDim.x`-th.",
            lambda moments, images, batch, blocks: slips.moments_in_other_windows(images[:blocks]),
            by_blocks=True,
        ),
        Hypothesis(
            "wrong_value",
            "Every block adds up every digit. A digit belongs to one block: the first is"
            " `blockIdx.x`, and then every `gridDim.x`-th.",
            lambda moments, images, batch, blocks: blocks * slips.moments_in_other_windows(images),
            by_blocks=True,
        ),
        Hypothesis(
            "wrong_value",
            "Windows begin two pixels apart, and not at every pixel.",
            lambda moments, images, batch: slips.moments_in_other_windows(images, apart=1),
        ),
        Hypothesis(
            "wrong_value",
            "Windows begin two pixels apart, and not at every pixel.",
            lambda moments, images, batch: slips.moments_in_other_windows(
                images, apart=1, behind=2
            ),
        ),
        Hypothesis(
            "wrong_value",
            "One of the two pixels of a product is the plain byte. 33 must be taken from both.",
            slips.plain_byte_first,
        ),
        Hypothesis(
            "wrong_value",
            "Sums that a block has added to `moments` are added once more with its next digit. Add"
            " them once, after the last digit, or begin each digit at 0.",
            slips.added_after_each_digit,
            by_blocks=True,
        ),
        Hypothesis(
            "wrong_value",
            "Windows begin at pixel (2y, 2x) here. They begin one pixel above and to the left of"
            " it.",
            lambda moments, images, batch: slips.moments_in_other_windows(images, before=0),
        ),
        Hypothesis(
            "wrong_value",
            "33 must be taken from each byte, as `pixel_at` does.",
            lambda moments, images, batch: slips.moments_in_other_windows(images, less=0),
        ),
    ),
    **as_exercise(SOCKETS["patch_moments"]),
)

# ---- conv1_pool: the array that nobody stores

CONV1_POOL_CU = f"""{PIXEL_AT}
// pooled[batch][14][14][32], weights[32][9], scale[32], shift[32]
__global__ void conv1_pool(float* pooled, const unsigned char* images, const float* weights,
                           const float* scale, const float* shift, int batch) {{
    int total = batch * 14 * 14 * 32;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {{
        int c = i % 32;
        int x = i / 32 % 14;
        int y = i / 32 / 14 % 14;
        const unsigned char* image = &images[i / (14 * 14 * 32) * 784];
        float largest = 0;
        for (int k = 0; k < 4; ++k) {{
            float sum = 0;
            for (int t = 0; t < 9; ++t)
                sum += weights[c * 9 + t]
                       * pixel_at(image, 2 * y + k / 2 + t / 3 - 1, 2 * x + k % 2 + t % 3 - 1);
            largest = fmaxf(largest, scale[c] * sum + shift[c]);
        }}
        pooled[i] = largest;
    }}
}}
"""
CONV1_POOL_START = replace(
    CONV1_POOL_CU,
    (
        CONV1_POOL_CU[
            CONV1_POOL_CU.index("        float largest = 0;") : CONV1_POOL_CU.index(
                "        pooled[i] = largest;"
            )
        ],
        "        float largest = 0;\n        // your code: the largest of four outputs\n",
    ),
)


CONV1_POOL = Exercise(
    id="beating_pytorch.conv1_pool",
    title="The array that nobody stores",
    minutes=10,
    task=(
        "Convolution, batch norm, ReLU and pooling in one kernel: from the bytes of the image to"
        " the largest of four outputs, and nothing between is stored. The window of `pooled` at"
        " (y, x) begins at line 2y, column 2x; its output k lies k / 2 lines down and k % 2 to the"
        " right. Tap t of the convolution sees the pixel t / 3 - 1 lines down and t % 3 - 1 to the"
        " right of the output. Batch norm makes `scale[c] * sum + shift[c]` of a sum, and what is"
        " negative becomes 0."
    ),
    starter=f"\n%%writefile build/conv1_pool.cu{CONV1_POOL_START}",
    solution=CONV1_POOL_CU,
    shapes=((1,), (2,)),
    fresh=lambda rng: (int(rng.integers(1, 3)),),
    large=(20,),
    rtol=1e-4,
    effort=3,
    hints=(
        "Two loops: over the four outputs k, and inside over the nine taps t, as in a convolution.",
        (
            "The pixel that tap t of output k sees: line 2 * y + k / 2 + t / 3 - 1, column 2 * x"
            " + k % 2 + t % 3 - 1. `pixel_at` looks after the border."
        ),
        (
            "First batch norm, then the larger of the two: `largest = fmaxf(largest, scale[c] * sum"
            " + shift[c])`. That it begins at 0 is the ReLU."
        ),
    ),
    wrong=(
        ("k / 2 + t / 3 - 1", "k / 2 + t / 3", "wrong_value"),
        ("fmaxf(largest, scale[c] * sum + shift[c])", "fmaxf(largest, sum)", "wrong_value"),
        ("float largest = 0;", "float largest = -1e30f;", "wrong_value"),
        ("k < 4", "k < 3", "wrong_value"),
        ("2 * y + k / 2", "y + k / 2", "wrong_value"),
        (" + shift[c]", "", "wrong_value"),
        ("[i / (14 * 14 * 32) * 784]", "[0]", "wrong_value"),
        ((" - 1, 2 * x", ", 2 * x"), ("t % 3 - 1", "t % 3"), "wrong_value"),
        (
            ("            float sum = 0;\n", ""),
            ("largest = 0;", "largest = 0, sum = 0;"),
            "wrong_value",
        ),
        (
            ("float largest = 0;", "float largest = -1e30f;"),
            ("fmaxf(largest, scale[c] * sum + shift[c])", "fmaxf(largest, sum)"),
            ("pooled[i] = largest", "pooled[i] = fmaxf(0, scale[c] * largest + shift[c])"),
            "wrong_value",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "It pools first and normalizes then. Where a channel's scale is negative, the largest"
            " becomes the smallest.",
            slips.pooled_before_norm,
        ),
        Hypothesis(
            "wrong_value",
            "Batch norm is missing: scale[c] * sum + shift[c].",
            slips.pooled_by(lambda scale, shift: (np.ones(32), np.zeros(32))),
        ),
        Hypothesis(
            "wrong_value",
            "The shift is missing: scale[c] * sum + shift[c].",
            slips.pooled_by(lambda scale, shift: (scale, np.zeros(32))),
        ),
        Hypothesis(
            "wrong_value",
            "The shift is scaled, too: scale[c] * sum + shift[c] has no bracket around the sum and"
            " the shift.",
            slips.pooled_by(lambda scale, shift: (scale, scale * shift)),
        ),
        Hypothesis(
            "wrong_value",
            "The last tap is missing: there are nine, t from 0 to 8.",
            slips.pooled_with(slips.eight_taps),
        ),
        Hypothesis(
            "wrong_value",
            "The scale is missing: scale[c] * sum + shift[c].",
            slips.pooled_by(lambda scale, shift: (np.ones(32), shift)),
        ),
        Hypothesis(
            "wrong_value",
            "The weights are read as [9][32]. They are [32][9]: a channel's nine taps lie side by"
            " side, from c * 9 on.",
            slips.pooled_with(lambda weights: weights.reshape(9, 32).T),
        ),
        Hypothesis(
            "wrong_value",
            "All channels have the weights of channel 0 here: those of channel c begin at"
            " weights[c * 9].",
            slips.pooled_with(slips.first_channel_alone),
        ),
        Hypothesis(
            "wrong_value",
            "The taps are in reverse order, as if the filter were turned. Tap t has weight t.",
            slips.pooled_with(lambda weights: weights.reshape(32, 9)[:, ::-1]),
        ),
        Hypothesis(
            "wrong_value",
            "Rows and columns of the taps are swapped: tap t is t / 3 - 1 lines down and t % 3 - 1"
            " to the right.",
            slips.pooled_with(lambda weights: weights.reshape(32, 3, 3).swapaxes(1, 2)),
        ),
        Hypothesis(
            "wrong_value",
            "What is negative must become 0: the ReLU is missing.",
            slips.without_relu,
        ),
        Hypothesis(
            "wrong_value",
            "The ReLU stands before batch norm here. It belongs after it.",
            slips.of_fours(lambda four: np.maximum(four, 0)),
        ),
        Hypothesis(
            "wrong_value",
            "The taps begin at the output's own pixel. Tap 0 lies one line above it and one to the"
            " left: t / 3 - 1 and t % 3 - 1.",
            slips.of_sums(up=0, left=0),
        ),
        Hypothesis(
            "wrong_value",
            "The taps begin in the output's own column. Tap 0 lies one to the left of it: t % 3 -"
            " 1.",
            slips.of_sums(left=0),
        ),
        Hypothesis(
            "wrong_value",
            "The taps begin in the output's own line. Tap 0 lies one above it: t / 3 - 1.",
            slips.of_sums(up=0),
        ),
        Hypothesis(
            "wrong_value",
            "Outside of the image a pixel counts as 0.328125, not as 0: `pixel_at` looks after"
            " that.",
            slips.of_sums(border=0),
        ),
        Hypothesis(
            "wrong_value",
            "33 must be taken from each byte, as `pixel_at` does.",
            slips.of_sums(less=0),
        ),
        Hypothesis(
            "wrong_value",
            "The sum goes on from one output of the window to the next: each of the four begins at"
            " 0.",
            slips.of_fours(lambda four: four.cumsum(3)),
        ),
        Hypothesis(
            "wrong_value",
            "Only the last of the four outputs is kept: `largest` is replaced where it should only"
            " grow.",
            slips.of_fours(lambda four: four[:, :, :, 3:]),
        ),
        Hypothesis(
            "wrong_value",
            "All four outputs of a window are the first one here: output k lies k / 2 lines down"
            " and k % 2 to the right.",
            slips.of_fours(lambda four: four[:, :, :, :1]),
        ),
        Hypothesis(
            "wrong_value",
            "It takes the mean of the four outputs. Pooling keeps the largest.",
            slips.mean_of_outputs,
        ),
        Hypothesis(
            "wrong_value",
            "Windows begin two lines apart: output k of window y lies in line 2 * y + k / 2.",
            slips.windows_one_apart(down=True, right=False),
        ),
        Hypothesis(
            "wrong_value",
            "Windows begin two pixels apart: output k of window x lies in column 2 * x + k % 2.",
            slips.windows_one_apart(down=False, right=True),
        ),
        Hypothesis(
            "wrong_value",
            "Windows begin two lines and two pixels apart: output k lies in line 2 * y + k / 2,"
            " column 2 * x + k % 2.",
            slips.windows_one_apart(down=True, right=True),
        ),
        Hypothesis(
            "wrong_value",
            "All digits look at the first image: digit n begins at images[n * 784].",
            lambda **given: pooled_of(
                **given | {"images": np.repeat(given["images"][:1], given["batch"], axis=0)}
            ),
        ),
    ),
    **as_exercise(SOCKETS["conv1_pool"]),
)

# ---- head: the end of the network

HEAD_CU = """
__device__ float sum_of_warp(float value) {  // each lane gets the sum
    for (int bit = 16; bit > 0; bit /= 2)
        value += __shfl_xor_sync(~0u, value, bit);
    return value;
}
// A warp for each digit. Lane l holds hidden values l, l + 32, l + 64 and l + 96.
__global__ void head(float* out, const float* hidden, const float* w, const float* bias,
                     const unsigned char* labels, int batch) {
    int lane = threadIdx.x % 32;
    int warps = gridDim.x * blockDim.x / 32;
    for (int n = (blockIdx.x * blockDim.x + threadIdx.x) / 32; n < batch; n += warps) {
        const float* h = &hidden[n * 128];
        float z[10] = {}, gradient[10] = {}, loss = 0;
        for (int k = 0; k < 10; ++k) {
            for (int j = lane; j < 128; j += 32)
                z[k] += w[k * 128 + j] * h[j];
            z[k] = sum_of_warp(z[k]) + bias[k];
        }
        float largest = z[0], sum = 0;
        for (int k = 1; k < 10; ++k)
            largest = fmaxf(largest, z[k]);
        for (int k = 0; k < 10; ++k)
            sum += expf(z[k] - largest);
        for (int k = 0; k < 10; ++k)
            gradient[k] = (expf(z[k] - largest) / sum - (k == labels[n])) / batch;
        loss = (logf(sum) + largest - z[labels[n]]) / batch;
        for (int j = lane; j < 128; j += 32) {
            float dh = 0;
            for (int k = 0; k < 10; ++k) {
                atomicAdd(&out[k * 128 + j], gradient[k] * h[j]);
                dh += gradient[k] * w[k * 128 + j];
            }
            dh = h[j] > 0 ? dh : 0;  // back through the ReLU
            atomicAdd(&out[10 * 128 + j], dh);
            out[(12 + n) * 128 + j] = dh;
        }
        if (lane < 11)
            atomicAdd(&out[11 * 128 + lane], lane < 10 ? gradient[lane] : loss);
    }
}
"""
HEAD_START = (
    HEAD_CU[: HEAD_CU.index("        for (int k = 0; k < 10; ++k) {\n            for (int j")]
    + "        // your code: z[k], the sum of w[k * 128 + j] * h[j] over all 128 j, plus bias[k];\n"
    + "        // then gradient[k], and loss\n"
    + HEAD_CU[HEAD_CU.index("        for (int j = lane; j < 128; j += 32) {") :]
)


def in_rounds(shape):
    """Of many digits there is also a launch whose warps leave some for a second round."""
    many = [Launch((MANY_BLOCKS, 1, 1), (THREADS, 1, 1), f"{MANY_BLOCKS} blocks")]
    return one_and_three_blocks(shape) + many * (shape[0] > MANY_BLOCKS * THREADS // 32)


def never_the_likeliest(rng, shape):
    """As the socket's inputs; no digit is right for certain, whose loss would be rounding alone.

    Of two digits all logits are so far below 0 that `expf` of them is 0.
    """
    given = some_small(rng, SOCKETS["head"].inputs(rng, shape))
    if shape == (2,):
        given["bias"] -= given["bias"].max() + np.float32(160)
    order = np.argsort(given["hidden"] @ given["w"].T + given["bias"], axis=1)
    digits = np.arange(len(order))
    given["labels"] = order[digits, rng.integers(0, 9, len(order))].astype(np.uint8)
    return given


HEAD = Exercise(
    id="beating_pytorch.head",
    title="The end of the network in one warp",
    minutes=14,
    task=(
        "A warp has a digit: four of its 128 hidden values in each lane. Compute the ten logits,"
        " each a dot product over all lanes plus its bias, then from these in every lane"
        " `gradient[k]`, the gradient of logit k: (softmax - 1 at the label) / batch, and `loss`,"
        " the digit's cross-entropy / batch. The logits may be large: subtract the largest before"
        " `expf`. The lines that follow hand gradients and loss on."
    ),
    starter=f"\n%%writefile build/head.cu{HEAD_START}",
    solution=HEAD_CU,
    shapes=((1,), (2,), (11,), (30,)),
    fresh=lambda rng: (int(rng.integers(1, 40)),),
    large=(300,),
    rtol=1e-4,
    shared_output=True,
    effort=4,
    hints=(
        (
            "A lane takes j = lane, lane + 32, lane + 64, lane + 96, and adds up w[k * 128 + j] *"
            " h[j]. `sum_of_warp` then gives every lane the sum of all."
        ),
        (
            "Softmax: expf(z[k] - largest) / sum, where sum is that of the ten exponentials. All"
            " lanes hold all ten logits, so each does the same, and no lane has to wait."
        ),
        "The loss is logf(sum) + largest - z[labels[n]]. Divide it and the gradients by batch.",
    ),
    wrong=(
        ("z[k] = sum_of_warp(z[k]) + bias[k];", "z[k] += bias[k];", "wrong_value"),
        ("sum_of_warp(z[k]) + bias[k]", "sum_of_warp(z[k] + bias[k])", "wrong_value"),
        (" - (k == labels[n])", "", "wrong_value"),
        (
            ("float largest = z[0], sum = 0;", "float largest = 0, sum = 0;"),
            ("largest = fmaxf(largest, z[k]);", "largest = 0;"),
            "wrong_value",
        ),
        ("float largest = z[0], sum = 0;", "float largest = 0, sum = 0;", "wrong_value"),
        ("(k == labels[n])) / batch", "(k == labels[n]))", "wrong_value"),
        ("            gradient[k] =", "            if (lane == 0) gradient[k] =", "wrong_value"),
        (
            "for (int j = lane; j < 128; j += 32)\n                z",
            "for (int j = 0; j < 128; ++j)\n                z",
            "wrong_value",
        ),
        ("(k == labels[n])", "(k == labels[0])", "wrong_value"),
        ("(expf(z[k] - largest) / sum", "-(expf(z[k] - largest) / sum", "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Neither the gradients nor the loss are divided by the batch: the loss is the digits'"
            " mean.",
            lambda **given: head_of(**given) * given["batch"],
        ),
        Hypothesis(
            "wrong_value",
            "The gradients of the logits are not divided by the batch: the loss is the digits'"
            " mean.",
            lambda **given: slips.gradients_times(lambda batch: batch, **given),
        ),
        Hypothesis(
            "wrong_value",
            "The gradients are right. The loss is not divided by the batch: it is the digits'"
            " mean.",
            lambda **given: slips.loss_made(lambda loss, largest, batch: loss * batch, **given),
        ),
        Hypothesis(
            "wrong_value",
            "The gradients are right. The loss lacks the largest logit, which was subtracted"
            " before `expf`: `logf(sum) + largest - z[labels[n]]`.",
            lambda **given: slips.loss_made(
                lambda loss, largest, batch: loss - largest / batch, **given
            ),
        ),
        Hypothesis(
            "wrong_value",
            "The gradients are right. The loss has the wrong sign: it is minus the logarithm of"
            " the label's softmax.",
            lambda **given: slips.loss_made(lambda loss, largest, batch: -loss, **given),
        ),
        Hypothesis(
            "wrong_value",
            "The gradients are right. The loss is 0 in the lane that adds it up: every lane needs"
            " it.",
            lambda **given: slips.loss_made(lambda loss, largest, batch: 0, **given),
        ),
        Hypothesis(
            "wrong_value",
            "The gradients are right. The loss is the logarithm of a softmax that was rounded to"
            " 0: `logf(sum) + largest - z[labels[n]]` is the same without that.",
            slips.logarithm_of_softmax,
        ),
        Hypothesis(
            "wrong_value",
            "The label is missing: the gradient of its logit is softmax minus 1.",
            slips.without_labels,
        ),
        Hypothesis(
            "wrong_value",
            "The exponentials are not divided by their sum: softmax is expf(z[k] - largest) / sum.",
            slips.not_normalized,
        ),
        Hypothesis(
            "wrong_value",
            "The bias is missing in the logits.",
            lambda **given: head_of(**given | {"bias": 0 * given["bias"]}),
        ),
        Hypothesis(
            "wrong_value",
            "The bias is in the sum 32 times, once for each lane: add it after the sum.",
            lambda **given: head_of(**given | {"bias": 32 * given["bias"]}),
        ),
        Hypothesis(
            "wrong_value",
            "Nothing is subtracted before `expf`: that of a large logit is infinite, and infinity"
            " over infinity is no number.",
            slips.nothing_subtracted,
        ),
        Hypothesis(
            "wrong_value",
            "Where all ten logits are far below 0, all their exponentials are 0. Subtract the"
            " largest of the ten: it may be negative, so it must not begin at 0.",
            slips.subtracted_from_0_on,
        ),
        Hypothesis(
            "wrong_value",
            "The 1 at the label is subtracted after the division: softmax less 1 is divided by the"
            " batch as a whole.",
            slips.label_not_divided,
        ),
        Hypothesis(
            "wrong_value",
            "`gradient` and `loss` are 0, so the lines that follow add zeros.",
            lambda **given: head_of(**given) * 0,
        ),
        Hypothesis(
            "wrong_value",
            "Only lane 0 has gradients and the loss. The lines that follow run in every lane, so"
            " each needs all ten and the loss.",
            slips.in_lane_0_alone,
        ),
        Hypothesis(
            "wrong_value",
            "The gradients are right in lane 0 alone. The lines that follow run in every lane, so"
            " each needs all ten.",
            lambda **given: slips.in_lane_0_alone(**given, loss_too=False),
        ),
        Hypothesis(
            "wrong_value",
            "Each lane has logits of its own four values: `sum_of_warp` must add them up.",
            slips.each_lane_alone,
        ),
        Hypothesis(
            "wrong_value",
            "Each lane adds one product where it has four: hidden values lane, lane + 32, lane +"
            " 64 and lane + 96.",
            slips.one_of_four,
        ),
        Hypothesis(
            "wrong_value",
            "Each product is in the sum 32 times: a lane adds up its own four values, and"
            " `sum_of_warp` the lanes.",
            slips.each_32_times,
        ),
        Hypothesis(
            "wrong_value",
            "The gradients have the wrong sign: softmax less 1 at the label.",
            lambda **given: slips.gradients_times(lambda batch: -1, **given),
        ),
        Hypothesis(
            "wrong_value",
            "All digits have the first one's label here: digit n has labels[n].",
            lambda **given: head_of(
                **given | {"labels": np.repeat(given["labels"][:1], given["batch"])}
            ),
        ),
    ),
    **as_exercise(SOCKETS["head"], never_the_likeliest)
    | {"launches": in_rounds, "extents": lambda shape: in_rounds(shape)[-1].threads},
)


# ---- update: all weights in one launch

UPDATE_CU = """
// The gradient of weight i is the sum of parts[s][i] over s; parts[splits][count]
__global__ void update(float* weights, const float* parts, int count, int splits, float rate) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        float gradient = 0;
        for (int s = 0; s < splits; ++s)
            gradient += parts[s * count + i];
        weights[i] -= rate * gradient;
    }
}
"""

SEEN = 0.1  # so far a gradient is from 0 at least


def each_weight_moves(rng, shape):
    """Weights, and gradients of which no sum is so near 0 that its weight seems to stand still."""
    socket = SOCKETS["update"]
    arguments = some_small(rng, socket.inputs(rng, shape))
    parts = arguments["parts"]
    parts[0, np.abs(parts.sum(0)) < SEEN] += 1
    return arguments


UPDATE = Exercise(
    id="beating_pytorch.update",
    title="One update of everything",
    minutes=6,
    task=(
        "All weights lie in one array, and one launch moves them all: `weights[i]` goes downhill by"
        " `rate` times its gradient. The gradient comes in `splits` parts, `parts[s][i]`, because"
        " several blocks have added it up; sum them on the way. Any number of blocks must do:"
        " begin at the thread's own number and go on by the number of all threads."
    ),
    starter="""
%%writefile build/update.cu
// The gradient of weight i is the sum of parts[s][i] over s; parts[splits][count]
__global__ void update(float* weights, const float* parts, int count, int splits, float rate) {
    // your code
}
""",
    solution=UPDATE_CU,
    shapes=((4, 1), (12, 2), (256, 1), (2068, 3), (1028, 5)),
    fresh=lambda rng: (4 * int(rng.integers(1, 500)), int(rng.integers(1, 6))),
    large=((66_000, 1), (4, 300)),
    rtol=1e-5,
    effort=4,
    hints=(
        (
            "`for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x *"
            " blockDim.x)`: each weight is one thread's."
        ),
        "Part s of weight i is parts[s * count + i]. Downhill is minus.",
    ),
    wrong=(
        ("s < splits", "s < 1", "wrong_value"),
        ("weights[i] -=", "weights[i] +=", "wrong_value"),
        ("weights[i] -=", "weights[i] =", "wrong_value"),
        ("parts[s * count + i]", "parts[i * splits + s]", "wrong_value"),
        ("i += gridDim.x * blockDim.x", "i += count", "unwritten"),
        ("i < count;", "i <= count;", "out_of_bounds"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Only the first part is taken: a weight's gradient is the sum of all `splits`.",
            slips.update_of(lambda parts: parts[0]),
        ),
        Hypothesis(
            "wrong_value",
            "The first part is taken `splits` times: part s of weight i is parts[s * count + i].",
            slips.update_of(lambda parts: len(parts) * parts[0]),
        ),
        Hypothesis(
            "wrong_value",
            "The gradient goes on from one weight of a thread to its next: each begins at 0.",
            slips.gradient_goes_on,
            by_blocks=True,
        ),
        Hypothesis(
            "wrong_value",
            "Only the last part is taken: the gradient is replaced by each part where they should"
            " add up.",
            slips.update_of(lambda parts: parts[-1]),
        ),
        Hypothesis(
            "wrong_value",
            "The rate is missing: a weight moves by `rate` times its gradient.",
            slips.without_rate,
        ),
        Hypothesis(
            "wrong_value", "The weights went uphill: the sign is wrong.", slips.update_of(sign=-1)
        ),
        Hypothesis(
            "wrong_value",
            "This takes the mean of the parts. Each block added up other digits: the gradient is"
            " the parts' sum.",
            slips.update_of(lambda parts: parts.mean(0)),
        ),
        Hypothesis(
            "wrong_value",
            "The parts lie one after the other, each with a number for every weight: parts[s *"
            " count + i].",
            slips.update_of(lambda parts: parts.reshape(parts.shape[::-1]).sum(1)),
        ),
        Hypothesis(
            "wrong_value",
            "The old weight is gone: a step is subtracted from it, `weights[i] -= ...`.",
            lambda weights, parts, count, splits, rate: rate * parts.astype(np.float64).sum(0),
        ),
        Hypothesis(
            "wrong_value",
            "The old weight is gone: what is stored is the step alone. `weights[i] -= ...` keeps"
            " the weight.",
            lambda weights, parts, count, splits, rate: -rate * parts.astype(np.float64).sum(0),
        ),
    ),
    **as_exercise(SOCKETS["update"], each_weight_moves),
)

# ---- split_sums: the first linear layer with a part of each sum in every block

OUTPUTS = 128  # of the layer, and threads of a block

SPLIT_SUMS_CU = """
// out[batch][128], x[batch][inputs], w[inputs][128]. out is zero when the kernel begins.
__global__ void split_sums(float* out, const float* x, const float* w, int inputs, int splits) {
    int n = blockIdx.x;  // the digit
    int part = blockIdx.y;  // of `splits`
    int o = threadIdx.x;  // the output
    float sum = 0;
    for (int i = part; i < inputs; i += splits)
        sum += x[n * inputs + i] * w[i * 128 + o];
    atomicAdd(&out[n * 128 + o], sum);
}
"""
SPLIT_SUMS_START = replace(
    SPLIT_SUMS_CU,
    ("    float sum = 0;\n", "    if (part > 0)\n        return;\n    float sum = 0;\n"),
    ("int i = part; i < inputs; i += splits", "int i = 0; i < inputs; ++i"),
    ("atomicAdd(&out[n * 128 + o], sum);", "out[n * 128 + o] = sum;"),
)


ROUNDED_UP = re.compile(r"\(\s*inputs\s*\+\s*splits\s*-\s*1\s*\)\s*/\s*splits")
INDEX = re.compile(r"\[[^\[\]<>?]*\]")


def unbounded(source: str) -> tuple[str, str] | None:
    """(the sentence for parts that are rounded up and not stopped, its reason), or None.

    Where `inputs` stands only in the length of a part and in indices, nothing stops the last part.
    """
    body = COMMENTS.sub(" ", source).partition("{")[2]
    rest, count = ROUNDED_UP.subn(" ", body)
    if not count or re.search(r"\binputs\b", INDEX.sub(" ", rest)):
        return None
    says = (
        "A part's length is rounded up, so the last parts go past the end of `x` and `w` where"
        " `inputs` is no multiple of `splits`. Each part must stop at `inputs`, too."
    )
    return says, "out_of_bounds"


def linear_layer(rng, shape):
    """Digits' values and the layer's weights; sums begin at 0."""
    batch, inputs, splits = shape
    return {
        "out": InOut(np.zeros((batch, OUTPUTS), np.float32)),
        "x": uniform(rng, batch, inputs),
        "w": uniform(rng, inputs, OUTPUTS),
        "inputs": inputs,
        "splits": splits,
    }


def a_block_a_part(shape):
    """A block for each digit and part."""
    batch, _, splits = shape
    return [Launch((batch, splits, 1), (OUTPUTS, 1, 1), f"{splits} parts")]


SPLIT_SUMS = Exercise(
    id="beating_pytorch.split_sums",
    title="A sum in parts",
    minutes=6,
    kind="cuda_c",
    kernel_name="split_sums",
    path="build/split_sums.cu",
    task=(
        "A linear layer with 128 outputs: `out[n][o]` is the sum of `x[n][i] * w[i][o]` over all i."
        " The grid has `splits` blocks for each digit n, and the starter lets all but the first of"
        " them return at once. Give each of them its part of the sum, and add the parts up in"
        " `out`, which is 0 when the kernel begins. Which block takes which products is up to you,"
        " but no product may be missing or be there twice, and `inputs` need not be a multiple of"
        " `splits`."
    ),
    starter=f"\n%%writefile build/split_sums.cu{SPLIT_SUMS_START}",
    solution=SPLIT_SUMS_CU,
    inputs=linear_layer,
    reference=slips.summed,
    slip=unbounded,
    specials="finite",
    shapes=(
        (1, 5, 2),
        (2, 100, 3),
        (2, 64, 1),
        (5, 33, 4),
        (1, 3, 5),
        (3, 72, 8),
        (1, 96, 4),
        (1, 200, 2),  # more than 64 in a part
    ),
    fresh=lambda rng: tuple(int(rng.integers(1, most)) for most in (4, 150, 7)),
    large=((300, 2, 2), (1, 300, 200)),
    block=(OUTPUTS, 1, 1),
    one_block=True,
    launches=a_block_a_part,
    extents=lambda shape: (shape[0] * OUTPUTS, shape[2], 1),
    is_square=lambda shape: False,
    rtol=1e-4,
    shared_output=True,
    effort=3,
    probe=(1, 96, 4),
    hints=(
        (
            "The early `return` goes, and two lines change: the loop, and the line that stores."
            " Part 0 may take products 0, splits, 2 * splits ..., and part 1 those behind them."
        ),
        "All blocks of a digit add to the same `out[n * 128 + o]`: `atomicAdd`.",
    ),
    wrong=(
        ("int i = part; i < inputs; i += splits", "int i = 0; i < inputs; ++i", "wrong_value"),
        ("atomicAdd(&out[n * 128 + o], sum)", "out[n * 128 + o] = sum", "race"),
        ("atomicAdd(&out[n * 128 + o], sum)", "out[n * 128 + o] += sum", "race"),
        ("i < inputs;", "i <= inputs;", "out_of_bounds"),
        ("w[i * 128 + o]", "w[o * inputs + i]", "wrong_value"),
        (
            ("int i = part; i < inputs; i += splits", "int i = first; i < first + share; ++i"),
            ("    float sum = 0;", "    int first = part * share;\n    float sum = 0;"),
            ("    int o =", "    int share = inputs / splits;\n    int o ="),
            "wrong_value",
        ),
        Wrong(SPLIT_SUMS_START, "one_thread"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "Each block adds up the whole sum, so it is in `out` as many times as there are parts.",
            lambda **given: slips.summed(**given) * given["splits"],
        ),
        Hypothesis(
            "wrong_value",
            "Products are missing at the end: inputs / splits rounds down, and the rest belongs to"
            " no part.",
            slips.summed_without_rest,
        ),
        Hypothesis(
            "wrong_value",
            "Only the first part is in the sum: do the other blocks still return at once?",
            slips.first_part_alone,
        ),
        Hypothesis(
            "wrong_value",
            "Every block begins at product 0 and takes the same ones: part p begins at p.",
            lambda **given: slips.first_part_alone(**given) * given["splits"],
        ),
        Hypothesis(
            "wrong_value",
            "Two parts overlap by a product: where one ends, the next begins, and it is there"
            " twice. A part ends before its end, with `<`.",
            slips.overlapping,
        ),
        Hypothesis(
            "wrong_value",
            "Each part goes on to the end of the sum, so the later products are there several"
            " times. A part ends where the next one begins.",
            slips.to_the_end,
        ),
        Hypothesis(
            "wrong_value",
            "Parts of 64 products hold `64 * splits` of them, and the rest belongs to no part."
            " How long a part is must come from `inputs` and `splits`.",
            slips.sixty_four_each,
        ),
        Hypothesis(
            "wrong_value",
            "The weights are read as [128][inputs]. They are [inputs][128]: the 128 of an input lie"
            " side by side.",
            lambda **given: slips.summed(
                **given | {"w": given["w"].reshape(OUTPUTS, given["inputs"]).T}
            ),
        ),
    ),
)

EXERCISES = (BN_RELU_POOL, PATCH_MOMENTS, CONV1_POOL, HEAD, UPDATE, SPLIT_SUMS)

QUIZZES = (
    Quiz(
        id="beating_pytorch.q_moments",
        question="One weight, y = -2 p, and the pixels 1 and 5. What is the variance of y?",
        answer=16,
        explain_right="mean(y) = -2 · 3 = -6 and mean(y²) = 4 · 13 = 52: 52 - 36.",
        explain={
            52: "That is mean(y²). The square of mean(y) must still be subtracted.",
            4: "That is the variance of the pixels. The weight enters it squared.",
            58: "mean(y) is -6, and its *square* is subtracted: 36.",
            88: "The square of mean(y) is subtracted from mean(y²), not added.",
            None: (
                "The pixels' moments are 3 and 13. The variance is mean(y²) less the *square* of"
                " mean(y)."
            ),
        },
    ),
    one_of(
        "beating_pytorch.q_graph",
        (
            "At batch 64 one CUDA graph makes PyTorch's step several times faster; at batch 4,096"
            " it hardly helps. Why?"
        ),
        (
            "A graph's kernels run on more SMs, and a large batch has them all already",
            "A graph does not change where a kernel runs.",
        ),
        (
            (
                "A graph removes the cost of launching, and with large kernels the GPU never waits"
                " for a launch"
            ),
            (
                "The same kernels run with the same speed. What a graph saves is the host's "
                "time, which"
                " only shows where the GPU is done before the next kernel has been launched."
            ),
        ),
        (
            "A large batch does not fit into a graph",
            "A graph holds kernels and addresses, not data: it is as large for every batch.",
        ),
        answer="b",
    ),
    one_of(
        "beating_pytorch.q_recompute",
        (
            "At batch 4,096 it is faster not to keep the first convolution's output, and to compute"
            " it again where it is needed. Why?"
        ),
        (
            "The next time the results are in the cache",
            (
                "At large batches nothing of the forward pass is left in the cache when the"
                " backward pass comes."
            ),
        ),
        (
            "Tensor cores make multiplications free",
            (
                "They are fast, but the reason lies in the memory: what is never stored is never"
                " moved."
            ),
        ),
        (
            "Nine multiplications cost less than storing the result and reading it back",
            (
                "The output of conv1 has 32 numbers for each pixel, and storing it and reading it"
                " back took most of the pair's time. Whether a whole step gains as much depends on"
                " what it waits for."
            ),
        ),
        answer="c",
    ),
    one_of(
        "beating_pytorch.q_master",
        (
            "Weights in bf16 only, updated with a rate of 0.05: after a while the network stops"
            " learning. Why?"
        ),
        (
            "bf16 has a smaller range than fp32, so the weights overflow",
            "bf16 has fp32's exponent, so nearly the same range. What it lacks is digits.",
        ),
        (
            "An update smaller than 1/512 or so of the weight is rounded away",
            (
                "bf16 keeps 8 bits of a number. A weight of 1 plus 0.001 is 1 again, every "
                "time. So the"
                " updates go to a copy in fp32, and bf16 is made from that."
            ),
        ),
        (
            "Tensor cores cannot add",
            "They do add, in fp32. And the update of a weight does not use them at all.",
        ),
        answer="b",
    ),
    one_of(
        "beating_pytorch.q_gate",
        (
            "A trainer is twice as fast as PyTorch, and after the same epochs it is right on 97.9 %"
            " where PyTorch has 98.9 %. What does its time say?"
        ),
        ("Twice as fast", "A trainer that left out a gradient could be ten times as fast."),
        (
            "Nothing yet: it computes something else",
            (
                "Dropping work is easy to make fast. Only among versions that learn equally "
                "well is a"
                " time a comparison."
            ),
        ),
        (
            "Twice as fast at large batches",
            "The batch size has nothing to do with it: what it computes is another result.",
        ),
        answer="b",
    ),
)
