"""The tensor-core kernels of the chapter on matmul: they compile for a Hopper GPU without spills, to the instructions that
the chapter promises; on a Hopper GPU the fastest is right for shapes that fill no tile."""

import subprocess

import nbformat
import pytest

from tests.cells import write_file
from utils.engine import gpu, has_gpu
from utils.files import ROOT
from utils.tools import listing, nvcc

CHAPTER = ROOT / "chapters" / "10_matmul.ipynb"
INSTRUCTIONS = {  # what does the arithmetic and what brings the tiles
    "matmul_wmma": ("HMMA.16816.F32.BF16",),
    "matmul_mma_tf32": ("HMMA.1688.F32.TF32", "LDSM", "LDGSTS"),
    "matmul_mma_bf16": ("HMMA.16816.F32.BF16", "LDSM.16.MT88.4", "LDGSTS"),
    "matmul_wgmma": ("HGMMA.64x256x16.F32.BF16", "UTMALDG.2D"),
    "matmul_wgmma_tma": ("HGMMA.64x256x16.F32.BF16", "UTMALDG.2D", "USETMAXREG"),
    "matmul_hopper": ("HGMMA.64x256x16.F32.BF16", "UTMALDG.2D.MULTICAST", "UTMASTG.2D", "STSM.16.M88.4"),
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The folder with everything that the chapter writes."""
    folder = tmp_path_factory.mktemp("matmul")
    for cell in nbformat.read(CHAPTER, as_version=4).cells:
        write_file(cell, folder)
    return folder / "build"


@pytest.mark.skipif(not nvcc.find_nvcc(), reason="no nvcc here")
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_compiles_to_the_promised_instructions(sources, name):
    cubin = sources / f"{name}.cubin"
    done = subprocess.run([nvcc.find_nvcc(), "-cubin", "-gencode=arch=compute_90a,code=sm_90a", "-O3", "-std=c++17", "-Xptxas=-v",
                           str(sources / f"{name}.cu"), "-o", str(cubin)], capture_output=True, text=True, timeout=120)
    report = done.stdout + done.stderr
    assert done.returncode == 0, report
    assert "0 bytes spill stores" in report and "warning" not in report, report
    if not listing._cuobjdump():
        pytest.skip("compiled; no cuobjdump here to read the machine code")
    sass = subprocess.run([listing._cuobjdump(), "--dump-sass", str(cubin)], capture_output=True, text=True, timeout=60).stdout
    assert [i for i in INSTRUCTIONS[name] if i not in sass] == []
    loop = sass[sass.find("HGMMA"):sass.rfind("HGMMA")]
    assert "MEMBAR.ALL.GPU" not in loop  # a fence for the whole GPU in the inner loop costs 30 %


@pytest.mark.skipif(not nvcc.find_nvcc(), reason="no nvcc here")
def test_other_gpus_are_told_why(sources):
    done = subprocess.run([nvcc.find_nvcc(), "-cubin", "-arch=sm_80", str(sources / "matmul_hopper.cu"), "-o", "/dev/null"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode and "only Hopper has" in done.stderr


@pytest.mark.skipif(not has_gpu() or gpu().compute_capability != (9, 0), reason="needs a Hopper GPU")
@pytest.mark.parametrize("m, n, k", [(1, 8, 8), (257, 136, 72), (1000, 1000, 1000), (300, 2056, 4104)])
def test_fastest_kernel_is_right_for_odd_shapes(sources, m, n, k):
    import torch

    from utils import cuda_c
    from utils.cuda_c.tensor_map import tensor_map

    kernel = cuda_c.load(sources / "matmul_hopper.cu").matmul_hopper
    a, b = torch.randn(m, k, device="cuda").bfloat16(), torch.randn(k, n, device="cuda").bfloat16()
    c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
    clusters = min(-(-m // 256) * -(-n // 256), torch.cuda.get_device_properties(0).multi_processor_count // 2)
    maps = tensor_map(c, (64, 64)), tensor_map(a, (128, 64)), tensor_map(b, (64, 64))
    kernel[2 * clusters, 384, 229_440](*maps, m, n, k)
    reference = a.double() @ b.double()
    assert (c.double() - reference).norm() <= 4e-3 * reference.norm()
