"""The colleague's ring of the chapter on tensor cores: the error that is shown comes from one slip,
and from none of the others that the question names.
"""

import nbformat
import pytest

from course.kernels.matmul import tensor
from course.kernels.matmul.ladder import blocks, sizes
from tests.needs import without_gpu
from utils import cuda_c
from utils.files import ROOT

CHAPTER = ROOT / "chapters" / "12_tensor_cores.ipynb"
SLOTS = 2
SHARED = SLOTS * (2 * 64 * (128 + 256) + 2 * 8)  # bytes: a slot's tiles, and two barriers
SLIPS = {
    "produce": ("&s.empty[slot], (lap + 1) % 2", "&s.empty[slot], lap % 2"),
    "consume": ("&s.full[slot], lap % 2", "&s.full[slot], (lap + 1) % 2"),
    "gives nothing back": ("barrier_arrive(&s.empty[(step - 1) % STAGES]);", ";"),
}


def shown():
    """The lines of the error in the chapter."""
    cells = {cell.id: cell.source for cell in nbformat.read(CHAPTER, 4).cells}
    return cells["break-ring-title"].split("```")[1].strip().splitlines()


@without_gpu("on a GPU these kernels never end")
@pytest.mark.parametrize("slip", SLIPS)
def test_only_one_slip_says_what_the_chapter_shows(slip, tmp_path, capsys):
    old, new = SLIPS[slip]
    text = (tensor.KERNELS / "wgmma_tma.cu").read_text()
    assert text.count(old) == 1
    for header in tensor.KERNELS.glob("*.cuh"):
        (tmp_path / header.name).write_text(header.read_text())
    path = tmp_path / "wgmma_tma.cu"
    path.write_text(text.replace(old, new))

    def colleague():
        kernel = cuda_c.load(path, flags=(f"-DSTAGES={SLOTS}",)).matmul

        def multiply(c, a, b):
            m, n, k = sizes(a, b)
            maps = tensor.map_of(a, 128), tensor.map_of(b, 64)
            kernel[(blocks(n, 256), blocks(m, 128)), 384, SHARED](c, *maps, m, n, k)

        return multiply

    tensor.tried(colleague, needs=tensor.HOPPER)
    said = capsys.readouterr().out
    assert "✓" not in said
    assert all(line in said for line in shown()) == (slip == "produce")
