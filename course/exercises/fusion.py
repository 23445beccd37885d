"""The exercises of the chapter Fusion."""

import numpy as np
from numba import cuda

from course.checking.inputs import some_numbers
from course.checking.model import Exercise, Hypothesis, InOut, Launch, Wrong
from course.checking.quiz import Quiz, one_of

# ---- table: many tensors, one launch


@cuda.jit
def scale_all(values, starts, factors, chunks):
    tensor = chunks[cuda.blockIdx.x, 0]
    chunk = chunks[cuda.blockIdx.x, 1]
    i = starts[tensor] + chunk * cuda.blockDim.x + cuda.threadIdx.x
    if i < starts[tensor + 1]:
        values[i] *= factors[tensor]


@cuda.jit
def scale_all_by_search(values, starts, factors, chunks):
    i = cuda.grid(1)  # the mistake: the table is not asked
    if i < values.size:
        tensor = 0
        while starts[tensor + 1] <= i:
            tensor += 1
        values[i] *= factors[tensor]


def tensor_lengths(shape):
    """As many lengths as shape[0], always the same for a shape; the first is shape[1]."""
    lengths = np.random.default_rng(shape).integers(1, 100, shape[0])
    lengths[0] = shape[1]
    return lengths


def chunks_of(shape):
    """(tensor, number of the chunk) of every chunk, each of shape[2] elements.

    Of three tensors or more, the second is left as it is: none of its chunks is in the table.
    """
    lengths = tensor_lengths(shape)
    return [
        (tensor, chunk)
        for tensor, length in enumerate(lengths)
        for chunk in range(-(-length // shape[2]))
        if tensor != 1 or len(lengths) < 3
    ]


def many_tensors(rng, shape):
    """Tensors behind one another, their factors, and the chunks that cover them in any order."""
    lengths = tensor_lengths(shape)
    chunks = np.array(chunks_of(shape), np.int32)
    return {
        "values": InOut(rng.uniform(1, 4, lengths.sum()).astype(np.float32)),
        "starts": np.concatenate([[0], lengths.cumsum()]).astype(np.int32),
        "factors": rng.uniform(2, 3, shape[0]).astype(np.float32),
        "chunks": rng.permutation(chunks),
    }


def scaled_tensors(values, starts, factors, chunks):
    listed = np.isin(np.arange(len(factors)), chunks[:, 0])
    return values * np.repeat(np.where(listed, factors, 1), np.diff(starts))


TABLE = Exercise(
    id="fusion.table",
    title="Many tensors, one launch",
    minutes=10,
    task=(
        "Tensor t lies in `values` from `starts[t]` up to, without, `starts[t + 1]`. Each block"
        " multiplies one chunk of one tensor by that tensor's factor. `chunks[block]` says which:"
        " (tensor, number of the chunk in it); a chunk is as long as the block has threads. A"
        " tensor's last chunk may be shorter."
    ),
    starter="""
@cuda.jit
def scale_all(values, starts, factors, chunks):
    tensor = chunks[cuda.blockIdx.x, 0]
    chunk = chunks[cuda.blockIdx.x, 1]
    i = ...  # which element is mine?
""",
    solution=scale_all,
    inputs=many_tensors,
    reference=scaled_tensors,
    shapes=((1, 1, 32), (1, 32, 32), (2, 33, 32), (5, 64, 32), (7, 31, 32), (3, 70, 48)),
    fresh=some_numbers((1, 8), (1, 100), (16, 65)),
    launches=lambda shape: [Launch((len(chunks_of(shape)), 1, 1), (shape[2], 1, 1))],
    extents=lambda shape: (len(chunks_of(shape)) * shape[2], 1, 1),
    is_square=lambda shape: False,
    hints=(
        "Within its tensor a chunk begins at `chunk * cuda.blockDim.x`. Where does the tensor?",
        "What lies in `values` right behind the last element of tensor t?",
        "`i = starts[tensor] + chunk * cuda.blockDim.x + cuda.threadIdx.x`; guard: the next start.",
    ),
    wrong=(
        ("i < starts[tensor + 1]", "i < values.size", "duplicate_work"),
        ("starts[tensor] + ", "", "duplicate_work"),
        ("chunk * cuda.blockDim.x + ", "", "duplicate_work"),
        ("factors[tensor]", "factors[0]", "wrong_value"),
        Wrong(scale_all_by_search, "wrong_value"),
    ),
    hypotheses=(
        Hypothesis(
            "wrong_value",
            "A tensor that has no chunk in the table is changed, too: `chunks` says what to do.",
            lambda values, starts, factors, chunks: values * np.repeat(factors, np.diff(starts)),
        ),
    ),
)


EXERCISES = (TABLE,)


QUIZZES = (
    Quiz(
        id="fusion.q_step",
        question=(
            "A model of a billion weights, on a GPU that moves 4 TB/s. How many milliseconds does"
            " a step of AdamW take at least?"
        ),
        answer=7,
        unit="ms",
        explain_right="28 bytes a weight are 28 GB, and 4 GB move in a millisecond.",
        explain={
            4: "16 GB are read. 12 GB are written besides.",
            28: "So many GB move. How many of them in a millisecond?",
            None: "28 bytes a weight, a billion weights: how long does memory need for them?",
        },
    ),
    one_of(
        "fusion.q_bytes",
        (
            "y = relu(x + bias) + residual, n float32 numbers, bias small. Three kernels, one a"
            " step, against one: how many times as many bytes do the three move?"
        ),
        (
            "1.5 times",
            "Each kernel writes its result and the next one reads it again: count all passes.",
        ),
        ("about 2.3 times", "2 + 2 + 3 passes over n numbers against 3: 28 n bytes against 12 n."),
        ("3 times", "Three launches, but the first two do not read the residual."),
        answer="b",
    ),
    one_of(
        "fusion.q_across",
        "Which pair can NOT become one kernel without changing the algorithm?",
        (
            "A matrix product, then a bias and GELU on its result",
            "That is an epilogue: a tile of the result is still in registers.",
        ),
        (
            "Softmax over rows of 100,000 scores, then a product with another matrix",
            (
                "The product needs probabilities, and these need the whole row's sum. "
                "Online softmax"
                " changes the algorithm: it corrects what it has when the largest value changes."
            ),
        ),
        (
            "GELU of a matrix, then its product with weights",
            "That is a prologue: each tile is changed as it is loaded (and perhaps often).",
        ),
        answer="b",
    ),
)
