"""The tensor-core kernels: they compile without spills, to the instructions that the chapter
promises, with every switch; on a CPU two of them run; on a Hopper GPU the fastest is right for
shapes that fill no tile.
"""

import re

import pytest
import torch

from course.kernels.matmul import tensor
from course.kernels.matmul.ladder import EVEN_SIZES, launcher, prove
from tests.compiling import compiled, needs_nvcc, sass, unspilled
from tests.needs import without_gpu
from utils import cuda_c
from utils.engine import gpu, has_gpu

#: What does the arithmetic and what brings the tiles.
INSTRUCTIONS = {
    "wmma": ("HMMA.16816.F32.BF16",),
    "mma_tf32": ("HMMA.1688.F32.TF32", "LDSM", "LDGSTS"),
    "mma_bf16": ("HMMA.16816.F32.BF16", "LDSM.16.MT88.4", "LDGSTS"),
    "wgmma": ("HGMMA.64x256x16.F32.BF16", "UTMALDG.2D"),
    "wgmma_tma": ("HGMMA.64x256x16.F32.BF16", "UTMALDG.2D", "USETMAXREG"),
    "hopper": (
        "HGMMA.64x256x16.F32.BF16",
        "UTMALDG.2D.MULTICAST",
        "UTMASTG.2D",
        "STSM.16.M88.4",
    ),
}
#: The switches with which the chapter measures one idea at a time, as the compiler gets them.
SWITCHES = (
    ("mma_bf16", "-DSTAGES=2"),
    ("mma_bf16", "-DAHEAD=0"),
    ("mma_bf16", "-DPAD=0"),
    ("mma_bf16", "-DBN=128 -DBK=32"),
    ("mma_tf32", "-DBM=128 -DBK=16"),
    ("wgmma_tma", "-DSTAGES=2"),
    ("hopper", "-DCLUSTER=1 -DGROUP=1 -DTMA_STORE=0"),
    ("hopper", "-DCLUSTER=1 -DGROUP=1"),
    ("hopper", "-DCLUSTER=1 -DGROUP=16"),
)


BY_DAY = "mma_bf16", "hopper"
OTHERS = pytest.mark.nightly("by day two compile, and the chapter builds and runs them all")


@needs_nvcc
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in BY_DAY else [OTHERS]) for name in INSTRUCTIONS]
)
def test_compiles_to_the_promised_instructions(tmp_path, name):
    code = sass(unspilled(tensor.KERNELS / f"{name}.cu", tmp_path, "sm_90a"))
    assert [i for i in INSTRUCTIONS[name] if i not in code] == []
    loop = code[code.find("HGMMA") : code.rfind("HGMMA")]
    assert "MEMBAR.ALL.GPU" not in loop  # a fence for the whole GPU in the inner loop is dear


@pytest.mark.nightly("by day each kernel compiles without spills as it stands")
@needs_nvcc
@pytest.mark.parametrize("name, flags", SWITCHES)
def test_every_switch_compiles_without_spills(tmp_path, name, flags):
    unspilled(tensor.KERNELS / f"{name}.cu", tmp_path, "sm_90a", *flags.split())


@pytest.mark.nightly("by day two others compile, and the CPU runtime builds it")
@needs_nvcc
def test_before_ampere_wmma_takes_float16(tmp_path):
    unspilled(tensor.KERNELS / "wmma.cu", tmp_path, "sm_75", "-DHALF")


@needs_nvcc
@pytest.mark.parametrize(
    "name, arch, why",
    [("hopper", "sm_80", "only Hopper has"), ("mma_bf16", "sm_75", "8.0 (Ampere)")],
)
def test_other_gpus_are_told_why(tmp_path, name, arch, why):
    with pytest.raises(AssertionError, match=re.escape(why)):
        compiled(tensor.KERNELS / f"{name}.cu", tmp_path, arch)


@without_gpu("the chapter checks them on the GPU")
@pytest.mark.parametrize("switches", [{}, {"AHEAD": 0}, {"PAD": 0}], ids=str)
def test_mma_is_right_on_the_cpu(switches):
    prove("mma_bf16", tensor.mma_launcher("mma_bf16", **switches), EVEN_SIZES, "bf16")


@pytest.mark.parametrize(
    "name, shared",
    [("mma_bf16", 208_896), ("mma_tf32", 162_816)],
)
def test_the_launch_is_computed_from_the_file(monkeypatch, name, shared):
    """A data-centre GPU gets the sizes that the file has by itself."""
    asked = {}
    monkeypatch.setattr(tensor, "has_gpu", lambda: True)
    monkeypatch.setattr(tensor, "shared_limit", lambda: 227 << 10)
    monkeypatch.setattr(tensor, "launcher", lambda path, **how: asked.update(how))
    tensor.mma_launcher(name)
    assert asked["shared"] == shared
    assert asked["threads"] == 256
    assert asked["flags"] == ()


@without_gpu("the chapter checks them on the GPU")
@pytest.mark.parametrize("kind, flags", [("bf16", ()), ("fp16", ("-DHALF",))])
def test_wmma_is_right_on_the_cpu(kind, flags):
    how = {"tile": (128, 128), "threads": 256, "flags": flags}
    prove("wmma", launcher(tensor.KERNELS / "wmma.cu", **how), EVEN_SIZES, kind)


@without_gpu("the chapter checks them on the GPU")
def test_a_wrong_fragment_is_found(tmp_path):
    """The judge sees a fragment whose lower half is taken from the upper."""
    for path in tensor.KERNELS.glob("mma*"):
        text = path.read_text()
        wrong = text.replace('"r"(a[0]), "r"(a[1])', '"r"(a[1]), "r"(a[0])')
        (tmp_path / path.name).write_text(wrong)
    small = ("-DBN=128", "-DBK=32", "-DSTAGES=2")
    how = {"tile": (128, 128), "threads": 128, "shared": 37_888, "flags": small}
    with pytest.raises(AssertionError, match="is wrong at"):
        prove("mma_bf16", launcher(tmp_path / "mma_bf16.cu", **how), EVEN_SIZES, "bf16")


HOPPER_FORMS = (
    ("-DCLUSTER=1", "-DGROUP=1", "-DTMA_STORE=0"),
    ("-DCLUSTER=1", "-DGROUP=16"),
    (),
)


ODD_SHAPES = [(1, 8, 8), (257, 136, 72), (300, 328, 520)]
if has_gpu():
    ODD_SHAPES += [(1000, 1000, 1000), (300, 2056, 4104)]
CPU_SMS = 2  # on the CPU runtime: a block takes several tiles


@pytest.mark.skipif(
    has_gpu() and gpu().compute_capability != (9, 0), reason="this GPU has no wgmma"
)
@pytest.mark.parametrize("flags", HOPPER_FORMS, ids=lambda flags: " ".join(flags) or "all ideas")
@pytest.mark.parametrize("m, n, k", ODD_SHAPES)
def test_fastest_kernel_is_right_for_odd_shapes(m, n, k, flags):
    kernel = cuda_c.load(tensor.KERNELS / "hopper.cu", flags=flags).matmul
    cluster = 1 if flags else 2
    device = "cuda" if has_gpu() else "cpu"
    a = torch.randn(m, k, device=device).bfloat16()
    b = torch.randn(k, n, device=device).bfloat16()
    c = torch.full((m, n), float("nan"), device=device, dtype=torch.bfloat16)
    tiles = -(-m // (128 * cluster)) * -(-n // 256)
    sms = CPU_SMS
    if has_gpu():
        sms = torch.cuda.get_device_properties(0).multi_processor_count
    maps = tensor.map_of(c, 64), tensor.map_of(a, 128), tensor.map_of(b, 64)
    grid = cluster * min(tiles, sms // cluster)
    kernel[grid, 384, 229_440](c, *maps, m, n, k)
    reference = a.double() @ b.double()
    assert (c.double() - reference).norm() <= 4e-3 * reference.norm()


# ---- what the chapter says where a rung cannot run


@without_gpu("says what there is without a GPU")
def test_without_a_gpu_the_records_speak(capsys):
    def make():
        raise AssertionError("nothing is compiled that cannot run")

    tensor.climb(tensor.Ladder(), "hopper", make, needs=tensor.HOPPER)
    said = capsys.readouterr().out
    assert "needs a Hopper GPU" in said
    assert len(re.findall(r"bf16, (4096|8192): ", said)) == 2


@without_gpu("a GPU has TF32")
def test_a_cpu_rounds_to_tf32_by_hand():
    ways, exact = tensor.three_formats(64)
    errors = {}
    for name, (multiply, c) in ways.items():
        multiply()
        errors[name] = (c.double() - exact).abs().max().item()
    assert errors["fp32"] < errors["TF32"] / 50 < errors["bf16"] / 50


def test_the_clock_of_what_cannot_run_is_the_recorded_one(capsys):
    from course.kernels.matmul import clock

    clock.report({"bf16, ours": None})
    assert re.match(
        r"bf16, ours +(\d\.\d\d GHz on NVIDIA|not recorded yet)", capsys.readouterr().out
    )
