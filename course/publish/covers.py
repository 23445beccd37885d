"""The picture that opens each chapter on the website: one of its own, that gives nothing away."""

import copy

from nbformat.v4 import new_markdown_cell

#: A chapter's key -> the cell whose picture it is
COVERS = {
    "ecosystem": "stack",
    "your_gpu": "match-widget",
    "c_for_cuda": "array-picture",
    "meet_the_gpu": "gpu-picture",
    "first_kernels": "two-computers-picture",
    "memory": "hierarchy-steps",
    "synchronization": "timeline-four",
    "profiling": "nsys-trace",
    "libraries": "decide-picture",
    "reductions": "ring-picture",
    "matmul": "tile2d-picture",
    "tensor_cores": "wmma-tiles",
    "convolution": "what-picture",
    "fourier": "fft-matrix-draw",
    "triton": "add-picture",
    "fusion": "loss-picture",
    "low_precision": "bits-picture",
    "pytorch_extensions": "circle-relu",
    "mnist_cnn": "network",
    "beating_pytorch": "race-chart",
    "many_gpus": "link-picture",
    "attention": "weights-picture",
    "language_model": "likely",
    "estimates": "terms-picture",
    "not_written": "desk",
}


def cover(key, parts, folder):
    """Cells with the chapter's cover and where it is from; none for a chapter that has no cover.

    parts: the chapter's sections, of which one holds the cell. folder: where their pages are.
    """
    found = [
        (part, cell) for part in parts for cell in part.cells if cell.id == COVERS.get(key, "")
    ]
    if not found:
        return []
    part, cell = found[0]
    shown = copy.deepcopy(cell)
    shown.id = f"cover-{cell.id}"
    shown.metadata.tags = ["remove-input"]
    words = f"*From [{part.title}]({folder}/{part.slug}.ipynb)*"
    return [shown, new_markdown_cell(words)]
