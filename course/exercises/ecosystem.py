"""The exercises of the chapter The ecosystem."""

import numpy as np
from numba import cuda

from course.checking.inputs import a_thread_each, factor, lengths, some_length, uniform
from course.checking.model import Exercise, Hypothesis, Out
from course.checking.quiz import Quiz, one_of

# ---- bytes_moved: one kernel per operation, or one for all


def bytes_moved(inputs_of, distinct, n, itemsize):
    one_by_one = sum(inputs + 1 for inputs in inputs_of) * n * itemsize
    fused = (distinct + 1) * n * itemsize
    return one_by_one, fused


BYTES_MOVED = Exercise(
    id="ecosystem.bytes_moved",
    title="How many bytes does fusion save?",
    minutes=8,
    kind="function",
    task=(
        "An expression is computed by elementwise operations on arrays of `n` elements of"
        " `itemsize` bytes. `inputs_of[k]` says how many arrays operation k reads; each writes one."
        " Together they start from `distinct` different arrays. Return `(bytes one by one, bytes"
        " fused)`: with one kernel per operation, and with a single kernel for all of them. For"
        " relu(a*x + b) the call is `bytes_moved([1, 2, 1], 2, n, 4)`."
    ),
    starter="""
def bytes_moved(inputs_of, distinct, n, itemsize): ...  # return (bytes one by one, bytes fused)
""",
    solution=bytes_moved,
    inputs=lambda rng, shape: dict(
        zip(("inputs_of", "distinct", "n", "itemsize"), (list(shape[0]), *shape[1:]), strict=True)
    ),
    reference=bytes_moved,
    shapes=(
        ((1, 2, 1), 2, 1000, 4),
        ((1,), 1, 10, 4),
        ((2,), 2, 7, 8),
        ((2, 2, 1), 3, 1 << 20, 2),
        ((1, 1, 1, 2), 1, 33, 4),
        ((3, 2, 2, 1, 1), 5, 100, 2),
        ((1, 2), 3, (1 << 52) + 1, 1),  # a float has not as many digits
    ),
    draws=lambda some: some.tuples(
        some.lists(some.integers(1, 3), min_size=1, max_size=6).map(tuple),
        some.integers(1, 8),
        some.integers(1, 1 << 34),
        some.sampled_from((1, 2, 4, 8)),
    ),
    hints=(
        (
            "One by one: operation k reads `inputs_of[k]` arrays and writes one. Add that up over"
            " all operations."
        ),
        (
            "Fused: every array that the expression starts from is read once, and one is written."
            " What lies between stays in registers."
        ),
        (
            "An array is `n * itemsize` bytes. One by one that is `sum(inputs + 1 for inputs in"
            " inputs_of)` arrays."
        ),
    ),
    wrong=(
        (
            ("inputs + 1 for", "inputs for"),
            ("(distinct + 1)", "distinct"),
            "wrong_value",
            "Writing counts, too: each kernel writes one array.",
        ),
        (
            "return one_by_one, fused",
            "return one_by_one // itemsize, fused // itemsize",
            "wrong_value",
            "These are elements. Each of them has `itemsize` bytes.",
        ),
        (
            "sum(inputs + 1 for inputs in inputs_of)",
            "(sum(inputs_of) + 1)",
            "wrong_value",
            "One by one, every operation writes its result to memory, not only the last.",
        ),
        (
            "(distinct + 1)",
            "(sum(inputs_of) + 1)",
            "wrong_value",
            "The fused kernel reads each of the `distinct` arrays once; what lies between never"
            " leaves the registers.",
        ),
        (
            "(distinct + 1)",
            "(distinct + len(inputs_of))",
            "wrong_value",
            "Fused, only the last result is written; those before it stay in registers.",
        ),
        (
            "one_by_one, fused",
            "fused, one_by_one",
            "swapped_axes",
            "One by one comes first, then fused.",
        ),
        (
            ("inputs_of) * n * itemsize", "inputs_of) * n * 4"),
            ("(distinct + 1) * n * itemsize", "(distinct + 1) * n * 4"),
            "wrong_value",
            "An element has `itemsize` bytes, and not always 4.",
        ),
        (
            "return one_by_one, fused",
            "return one_by_one, one_by_one - fused",
            "wrong_value",
            "The second number is what the fused kernel moves, not what it saves.",
        ),
    ),
)


# ---- kernels_after_fusion: a compiler in three lines


def kernels_after_fusion(operations):
    kernels, before = 0, None
    for operation in operations:
        if operation == "matmul" or before != "elementwise":
            kernels += 1
        before = operation
    return kernels


KERNELS_AFTER_FUSION = Exercise(
    id="ecosystem.kernels_after_fusion",
    title="A fusing compiler",
    minutes=8,
    kind="function",
    task=(
        'A program is a list of operations, each "elementwise" or "matmul". A simple compiler turns'
        " every run of elementwise operations that follow one another into one kernel, and every"
        " matmul into a kernel of its own. Return how many kernels it launches."
    ),
    starter="""
def kernels_after_fusion(operations):
    # go through the operations: when does a new kernel begin?
    ...
""",
    solution=kernels_after_fusion,
    inputs=lambda rng, shape: {
        "operations": ["elementwise" if letter == "e" else "matmul" for letter in shape]
    },
    reference=kernels_after_fusion,
    shapes=("", "e", "m", "eee", "mm", "em", "me", "emmee", "eemeeemme", "mmem", "emeem"),
    fresh=lambda rng: "".join(rng.choice(["e", "m"], int(rng.integers(4, 12)))),
    draws=lambda some: some.text("em", max_size=14),
    hints=(
        "A matmul always begins a new kernel. And an elementwise operation?",
        "An elementwise operation joins the one before it, if that was elementwise, too.",
        "Keep the operation before in a variable that starts as `None`, and count the beginnings.",
    ),
    wrong=(
        (
            'operation == "matmul" or before != "elementwise"',
            "True",
            "wrong_value",
            "This is one kernel per operation: nothing is fused.",
        ),
        (
            "return kernels",
            'return operations.count("matmul") + ("elementwise" in operations)',
            "wrong_value",
            "Elementwise operations with a matmul between them cannot share a kernel here.",
        ),
        (
            'operation == "matmul" or before != "elementwise"',
            "operation != before",
            "wrong_value",
            "Two matmuls in a row are two kernels; only elementwise ones are fused.",
        ),
        (
            '== "matmul" or',
            '!= "matmul" and',
            "wrong_value",
            "The matmuls are kernels, too.",
        ),
        (
            "return kernels",
            'return max(1, operations.count("matmul")) if operations else 0',
            "wrong_value",
            (
                "This compiler does not put elementwise work into the matmul's kernel. (Better ones"
                " do.)"
            ),
        ),
        (
            "return kernels",
            "return kernels - (before == 'elementwise')",
            "wrong_value",
            "The last run of elementwise operations has no matmul behind it: count it as well.",
        ),
        (
            "return kernels",
            'return 2 * operations.count("matmul") + 1',
            "wrong_value",
            "Not every matmul has elementwise operations before and behind it: count those runs"
            " that are there.",
        ),
    ),
)


# ---- clamp_line: the fused kernel of another expression


@cuda.jit
def clamp_line(y, x, b, a, low):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = max(a * x[i] + b[i], low)


def line(x, b, a):
    """a*x + b in float64."""
    return float(a) * x.astype(np.float64) + b


CLAMP_LINE = Exercise(
    id="ecosystem.clamp_line",
    title="One kernel for another expression",
    minutes=8,
    task=(
        "Write y = max(a*x + b, low) as **one** kernel: one thread per element, each input read"
        " once, each result written once. `a` and `low` are numbers, the others are arrays."
    ),
    starter="""
@cuda.jit
def clamp_line(y, x, b, a, low): ...  # which element is this thread's? a guard, then one line
""",
    solution=clamp_line,
    inputs=lambda rng, n: {
        "y": Out(n),
        "x": uniform(rng, *n),
        "b": uniform(rng, *n),
        "a": np.float32(rng.choice([0, factor(rng)], p=[0.2, 0.8])),
        "low": np.float32(rng.choice([-1e30, 1.5, rng.uniform(-0.6, 0.6)], p=[0.2, 0.1, 0.7])),
    },
    reference=lambda y, x, b, a, low: np.maximum(line(x, b, a), low),
    large=(66_000,),
    specials="finite",  # who compares NaN first decides
    shapes=lengths(0, 1, 31, 32, 33, 64, 97),
    fresh=some_length,
    elements=1,
    extents=a_thread_each,
    effort=1,
    other_block=(96, 1, 1),
    hints=(
        (
            "Compare with `line_relu_numba` above: what is the same, and what stands in the place"
            " of 0?"
        ),
        "The guard: only threads with `i < y.size` have an element.",
        "`max(a * x[i] + b[i], low)` is computed in registers; only the result goes to `y[i]`.",
    ),
    wrong=(
        ("i < y.size", "True", "missing_guard"),
        ("], low)", "], np.float32(0))", "wrong_value"),
        ("max", "min", "wrong_value"),
        ("a * x[i] + b[i]", "a * (x[i] + b[i])", "wrong_value"),
        (" + b[i], low)", ", low) + b[i]", "wrong_value"),
        ("max(a * x[i] + b[i], low)", "a * x[i] + b[i]", "wrong_value"),
        (
            "y[i] = max(a * x[i] + b[i], low)",
            "y[i] = a * x[i] + b[i]\n        y[i] = max(y[i], low)",
            "too_much_work",
        ),
        ("cuda.grid(1)", "cuda.threadIdx.x", "first_block_only"),
        ("y.size", "y.size - 1", "off_by_one"),
        (
            "y[i] = max(a * x[i] +",
            "y[i] += a * x[i]\n        y[i] = max(y[i] +",
            "reads_output",
        ),
        (
            "y[i] = max(a * x[i] + b[i], low)",
            "x[i] = a * x[i] + b[i]\n        y[i] = max(x[i], low)",
            "modifies_input",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "This is relu, which cuts off at 0. Here it is at `low`.",
            lambda y, x, b, a, low: np.maximum(line(x, b, a), 0),
        ),
        Hypothesis(
            "wrong_value",
            "`min` keeps what lies below `low`; the larger of the two is asked for.",
            lambda y, x, b, a, low: np.minimum(line(x, b, a), low),
        ),
        Hypothesis(
            "wrong_value",
            "`b` must be added before the maximum is taken.",
            lambda y, x, b, a, low: np.maximum(float(a) * x.astype(np.float64), low) + b,
        ),
        Hypothesis(
            "wrong_value",
            "Nothing is cut off: values below `low` are still there.",
            lambda y, x, b, a, low: line(x, b, a),
        ),
        Hypothesis(
            "wrong_value",
            "`a` multiplies `b` as well: it belongs to `x` alone.",
            lambda y, x, b, a, low: np.maximum(line(x, float(a) * b, a), low),
        ),
    ),
)


# ---- bias_gelu: a fused kernel in CUDA C

BIAS_GELU_CU = """
// y[i] = v * sigmoid(1.702 v) with v = x[i] + bias[i], where sigmoid(t) = 1 / (1 + exp(-t)).
__global__ void bias_gelu(float* y, const float* x, const float* bias, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = x[i] + bias[i];
        y[i] = v / (1.0f + expf(-1.702f * v));
    }
}
"""


def gelu(v, steepness=1.702):
    """The sigmoid approximation of GELU, in float64."""
    with np.errstate(over="ignore"):  # far below 0 the result is 0
        return v / (1 + np.exp(-steepness * v))


BIAS_GELU = Exercise(
    id="ecosystem.bias_gelu",
    title="Bias and GELU, in CUDA C",
    minutes=12,
    kind="cuda_c",
    kernel_name="bias_gelu",
    path="build/bias_gelu.cu",
    task=(
        "The layers of a transformer add a bias and apply GELU. Fuse both: y[i] = v * sigmoid(1.702"
        " v) with v = x[i] + bias[i], where sigmoid(t) = 1 / (1 + exp(-t)) (the approximation of"
        " [Hendrycks and Gimpel](https://arxiv.org/abs/1606.08415)). In C the exponential of a"
        " float is `expf`."
    ),
    starter="""
%%writefile build/bias_gelu.cu
// y[i] = v * sigmoid(1.702 v) with v = x[i] + bias[i], where sigmoid(t) = 1 / (1 + exp(-t)).
__global__ void bias_gelu(float* y, const float* x, const float* bias, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    // your code: a guard, then v, then one assignment
}
""",
    solution=BIAS_GELU_CU,
    inputs=lambda rng, n: {
        "y": Out(n),
        "x": 3 * uniform(rng, *n) * rng.choice((1, 60), n).astype(np.float32),
        "bias": uniform(rng, *n),
        "n": n[0],
    },
    reference=lambda y, x, bias, n: gelu(x.astype(np.float64) + bias),
    shapes=lengths(1, 2, 7, 22, 31, 32, 33, 64, 97),
    large=(66_000,),
    extents=a_thread_each,
    other_block=(96, 1, 1),
    hints=(
        "The guard is `if (i < n)`; a C array does not know its length.",
        "Keep `x[i] + bias[i]` in a variable: `float v = ...;` It stays in a register.",
        "`v * sigmoid(1.702 v)` is `v / (1.0f + expf(-1.702f * v))`.",
    ),
    wrong=(
        ("if (i < n) ", "", "missing_guard"),
        ("i < n", "i < n - 1", "off_by_one"),
        ("v = x[i] + bias[i];", "v = x[i];", "wrong_value"),
        ("-1.702f", "1.702f", "wrong_value"),
        ("v / (1.0f", "1.0f / (1.0f", "wrong_value"),
        ("-1.702f * v", "-v", "wrong_value"),
        (
            "blockIdx.x * blockDim.x + threadIdx.x",
            "threadIdx.x",
            "first_block_only",
        ),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value", "The bias is missing.", lambda y, x, bias, n: gelu(x.astype(np.float64))
        ),
        Hypothesis(
            "wrong_value",
            "The sign of the exponent is wrong: sigmoid(t) is 1 / (1 + exp(-t)).",
            lambda y, x, bias, n: gelu(x.astype(np.float64) + bias, -1.702),
        ),
        Hypothesis(
            "wrong_value",
            "This is the sigmoid alone; multiply it by v.",
            lambda y, x, bias, n: 1 / (1 + np.exp(-1.702 * (x.astype(np.float64) + bias))),
        ),
        Hypothesis(
            "wrong_value",
            "This is v * sigmoid(v), which is called SiLU; the factor 1.702 is missing.",
            lambda y, x, bias, n: gelu(x.astype(np.float64) + bias, 1.0),
        ),
    ),
)

EXERCISES = (BYTES_MOVED, KERNELS_AFTER_FUSION, CLAMP_LINE, BIAS_GELU)

QUIZZES = (
    Quiz(
        id="ecosystem.q_fused",
        question=(
            "PyTorch computes `(x + y) * z` on three arrays of 1,000 floats (4 bytes), one"
            " operation at a time. How many bytes does it read and write?"
        ),
        answer=24000,
        unit="bytes",
        explain_right="Two kernels, each reads two arrays and writes one: 6 × 4,000 bytes.",
        explain={
            16000: "That is the fused kernel: three arrays read, one written.",
            6000: "These are elements. Each has four bytes.",
            12000: "That is one of the two operations.",
            20000: "The sum is written by the first kernel and read again by the second.",
            None: "Count the arrays that each of the two kernels reads and writes.",
        },
    ),
    one_of(
        "ecosystem.q_place",
        (
            "Your model is in PyTorch. The profiler shows twenty small elementwise kernels in a"
            " row. What do you try first?"
        ),
        (
            "torch.compile",
            "Fusing elementwise work is what it is best at, and it costs you one line.",
        ),
        (
            "A kernel in CUDA C",
            (
                "It would work. But first let the compiler try: it is one line, and you know what"
                " to beat."
            ),
        ),
        (
            "TorchScript",
            (
                "Deprecated: PyTorch's documentation sends you to torch.export, and for speed to"
                " torch.compile."
            ),
        ),
        (
            "A GPU with more TFLOP/s",
            "These kernels wait for memory or for their launch. Arithmetic shortens neither.",
        ),
        answer="a",
    ),
    one_of(
        "ecosystem.q_triton",
        "Which Triton does torch.compile write for an NVIDIA GPU?",
        (
            "Triton, the language and compiler for kernels",
            "TorchInductor writes kernels in the language. The server only shares its name.",
        ),
        (
            "Triton Inference Server",
            "That one, now a part of NVIDIA Dynamo, answers requests with finished models.",
        ),
        ("Both: one is the compiler of the other", "They have nothing but the name in common."),
        answer="a",
    ),
    one_of(
        "ecosystem.q_names",
        "An old tutorial tells you to deploy with TensorFlow Lite. What do you look for today?",
        ("ExecuTorch", "That is PyTorch's runtime for devices, the successor of PyTorch Mobile."),
        ("LiteRT", "The same runtime under a new name; its files still end in .tflite."),
        ("Core ML", "That is Apple's, and has Core AI beside it now."),
        answer="b",
    ),
)
