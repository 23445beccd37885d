"""A learner's change of one cell arrives in the cells that follow, and goes when it is undone.

Only the cells that are needed run, in a folder of their own, without a GPU.
"""

from dataclasses import dataclass

import nbformat
import pytest
from nbclient import NotebookClient

from course.chapters import FOLDER
from tests.needs import cpp_compiler, without_gpu
from utils.files import ROOT

cpp_compiler()
pytestmark = without_gpu("the CPU runtime, which names the mistakes")


@dataclass(frozen=True)
class Edit:
    """In a chapter, after the cells `before`: change cell `id` from `old` to `new`; then cell
    `shows` must print `words`, and without the change `right`.
    """

    chapter: str
    before: tuple
    id: str
    old: str
    new: str
    shows: str
    words: str
    right: str = "✓ right"
    says_yours: bool = True  # not where the kernel is the cell, and no file's


MATMUL = ("setup", "exercises-import", "judge-poison", "tile-climb")
TENSOR_CORES = ("setup", "imports")
TRAINER = ("setup", "exercises-import", "data", "torch-import", "torch-train", "assemble")
EDITS = {
    "an addition of the first sum": Edit(
        "10_reductions",
        ("setup", "exercises-import", "data", "atomic-numba", "judge"),
        "atomic-numba",
        "cuda.atomic.add(out, 0, x[i])",
        "out[0] += x[i]",
        "break-atomic",
        "RACE on out[0]",
    ),
    "an element that is none": Edit(
        "16_fusion",
        ("setup", "exercises-import", "softmax-names", "softmax-three", "softmax-judge"),
        "softmax-once",
        ": -infinity()",
        ": 0",
        "break-other",
        "CUDA C: row 0 (with a -inf) begins with",
    ),
    "a barrier of batch norm's sum": Edit(
        "19_mnist_cnn",
        ("setup", "break-border"),
        "block-sum-c",
        "    __syncthreads();  // the next call must not overwrite part[0] too early\n",
        "",
        "break-barrier",
        "two threads use the same shared memory without a barrier between",
    ),
    "a launch on the trainer's way back": Edit(
        "19_mnist_cnn",
        TRAINER,
        "backward-c",
        "relu_backward<<<LAUNCH(n)>>>(d, d, a, n);\n",
        "",
        "break-relu",
        "bn2.bias: its gradient is off by",
        right="✓ one step on 5 digits",
    ),
    "a barrier of the ladder's third rung": Edit(
        "11_matmul",
        MATMUL,
        "file-tile",
        "    __syncthreads();  // nobody reads them any more\n",
        "",
        "break-tile",
        "two threads use the same shared memory without a barrier between",
    ),
    "two factors of cuBLAS": Edit(
        "09_libraries",
        ("setup", "exercises-import", "gemv-run"),
        "gemm-c",
        "b, n, a, k",
        "a, k, b, n",
        "break-gemm",
        "gemm: largest error 2.3e+00, WRONG",
        "right",
    ),
    "a mask of a Triton kernel": Edit(
        "15_triton",
        ("setup", "add", "add-run"),
        "add",
        "tl.store(out + i, total, mask=inside)",
        "tl.store(out + i, total)",
        "silent",
        "the first is element 1000 of out, which has 1000. Guard it with mask=.",
        "✓ the engine has nothing to say",
        says_yours=False,
    ),
    "a barrier of wmma": Edit(
        "12_tensor_cores",
        (*TENSOR_CORES, "wmma-launch"),
        "wmma-kernel",
        "    __syncthreads();\n}",
        "}",
        "break-barrier",
        "two threads use the same shared memory without a barrier between",
    ),
    "a wait of wgmma": Edit(
        "12_tensor_cores",
        (*TENSOR_CORES, "mma-feed", "wgmma-feed", "wgmma-launch"),
        "wgmma-kernel",
        "wgmma_wait<0>();",
        "",
        "break-wait",
        "overwrites shared memory that the wgmma",
    ),
    "a line of an encoder": Edit(
        "17_low_precision",
        ("setup", "bits-picture"),
        "encode-source",
        "    octave = max(octave, f.lowest());\n",
        "",
        "encode-all",
        "e4m3: 60 numbers get another code than PyTorch gives them",
        "✓ e4m3 is right",
    ),
    "an edge of the matrix that nobody makes": Edit(
        "13_convolution",
        ("setup", "imports"),
        "implicit-c",
        " || x < 0 || x >= s.w",
        "",
        "implicit-run",
        "before the 960 bytes of argument `x`",
    ),
    "a mask of a backward pass": Edit(
        "18_pytorch_extensions",
        ("setup", "exercises-import", "circle-relu", "curve", "function", "gradcheck"),
        "fused-source",
        "dropout.scales(scales, first);",
        "dropout.scales(scales, first + 1);",
        "fused-check",
        "gradient: ✗ Jacobian mismatch",
        "gradient: True",
    ),
    "a barrier of the Fourier transform": Edit(
        "14_fourier",
        ("setup", "imports"),
        "fft-transform",
        "        meet<ONE_WARP>();  // all",
        "        // all",
        "break-meet",
        "two threads use the same shared memory without a barrier between",
    ),
}

EDITS["a barrier before a flag"] = Edit(
    "21_many_gpus",
    ("setup", "imports"),
    "flags-code",
    "    __syncthreads();\n",
    "",
    "break-flags",
    "two threads use the same global memory without a barrier between",
)
EDITS["a key of the future"] = Edit(
    "22_attention",
    ("setup", "imports"),
    "score",
    "key < seen",
    "key <= seen",
    "break-mask",
    "of 5,120 values. The first is [0, 0, 0, 0]",
)
EDITS["a ReLU of the finale's backward pass"] = Edit(
    "20_beating_pytorch",
    ("setup", "exercises-import", "race-pytorch", "ledger-start"),
    "block-backward",
    " && open",
    "",
    "break-open",
    "wrong are conv1.weight, bn1.weight, bn1.bias, conv2.weight",
)

EDITS["half a warp of the finale's trainer"] = Edit(
    "20_beating_pytorch",
    ("setup", "exercises-import", "race-pytorch", "ledger-start", "add-forward", "learn"),
    "gate-lanes",
    "bit < 32",
    "bit < 16",
    "break-lanes",
    "wrong are conv1.weight, bn1.weight, bn1.bias, conv2.weight",
)

PICK = ("setup", "exercises-import", "race-pytorch", "ledger-start")
EDITS["the largest alone in the finale's second block"] = Edit(
    "20_beating_pytorch",
    PICK,
    "pick-cell",
    "two[e] = s * fmaxf(upper, lower)",
    "two[e] = fmaxf(fmaxf(v0, v1), fmaxf(v2, v3))",
    "pick-tried",
    "the gradient of",
)


def printed(cells, folder):
    """What each of these cells prints, run one after the other in a notebook's folder."""
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return ["".join(out.get("text", "") for out in cell.outputs) for cell in notebook.cells]


#: A kernel in Python, and a kernel file that is loaded
BY_DAY = (
    "a mask of a Triton kernel",
    "a barrier of the Fourier transform",
)
ANOTHER = pytest.mark.nightly("by day two edits, in Python and of a kernel file")


def names():
    """pytest.param(name) of each edit, marked unless it is one of BY_DAY.

    By its id `make chapter` finds the chapter's own.
    """
    assert set(BY_DAY) < set(EDITS)
    for name, edit in EDITS.items():
        marks = [] if name in BY_DAY else [ANOTHER]
        yield pytest.param(name, id=f"{edit.chapter}-{name}", marks=marks)


@pytest.mark.parametrize("name", list(names()))
def test_a_change_arrives_and_goes(name, tmp_path, monkeypatch):
    edit = EDITS[name]
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(FOLDER / f"{edit.chapter}.ipynb", 4)
    cells = {cell.id: cell for cell in notebook.cells}
    kernel = cells[edit.id]
    assert edit.old in kernel.source
    changed = nbformat.v4.new_code_cell(kernel.source.replace(edit.old, edit.new))
    before = [cells[id] for id in edit.before]
    undone = nbformat.v4.new_code_cell(kernel.source)
    shows, again = (nbformat.v4.new_code_cell(cells[edit.shows].source) for _ in range(2))
    said = printed([*before, changed, shows, undone, again], tmp_path)
    with_change, without = said[-3], said[-1]
    assert edit.words in with_change
    assert ("yours" in with_change) == edit.says_yours
    assert edit.right in without
    assert "yours" not in without
