"""The chapters' CUDA C programs are CUDA C to NVIDIA's own compiler too: the CPU runtime, which
runs them where there is no
GPU, takes a few things that nvcc refuses, such as a __device__ function called by the host."""

import re

import nbformat
import pytest

from course.kernels.mnist_cnn import naive_trainer
from tests.cells import write_file
from tests.compiling import needs_nvcc
from tests.processes import completed
from utils.files import ROOT
from utils.tools import nvcc

# Headers that come with their libraries, which a toolkit may be without.
ABSENT = re.compile(r"fatal error: (nccl|cudnn|cusparse|cublas\w*|cufft\w*|curand\w*)\.h: No such")
CHAPTERS = [
    path
    for path in sorted((ROOT / "chapters").glob("[0-9]*.ipynb"))
    if "%nvcc" in path.read_text(encoding="utf-8")
]


def programs(chapter, folder):
    """Write the chapter's files as its cells would, and yield each %nvcc call of a .cu file as soon
    as its file is written.
    """
    for cell in nbformat.read(chapter, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        write_file(cell, folder)
        if "naive_trainer.tried(" in cell.source:  # which puts the program's parts together
            naive_trainer.assemble({}, folder / "build" / "train.cu")
        for line in cell.source.splitlines():
            words = line.split()
            if "raises-exception" in cell.metadata.get("tags", ()) and "--check" not in words:
                continue  # that it does not compile may be the point
            if words[:1] == ["%nvcc"] and words[1].endswith(".cu") and "{" not in words[1]:
                yield [word for word in words[1:] if word != "{flag}"]


BY_DAY = "first_kernels"
ANOTHER = pytest.mark.nightly("by day a chapter's programs, by make chapter the chapter's own")


@needs_nvcc
@pytest.mark.parametrize(
    "chapter",
    [pytest.param(c, marks=[] if c.stem.endswith(BY_DAY) else [ANOTHER]) for c in CHAPTERS],
)
def test_nvcc_compiles_them(chapter, tmp_path, monkeypatch):
    (tmp_path / "course").symlink_to(ROOT / "course")
    folder = tmp_path / "chapters"
    folder.mkdir()
    monkeypatch.chdir(folder)
    refused = []
    for words in programs(chapter, folder):
        request = nvcc.parse(words)
        kind = [] if "-cubin" in request.flags else ["-cuda"]  # g++ builds it elsewhere
        done = completed(
            [
                nvcc.find_nvcc(),
                *request.flags,
                *kind,
                "-arch=sm_90",
                "-std=c++17",
                str(request.source),
                "-o",
                "program",
            ]
        )
        if done.returncode and not ABSENT.search(done.stderr):
            refused.append(done.stderr)
    assert not refused, "\n".join(refused)
