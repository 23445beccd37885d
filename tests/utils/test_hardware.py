"""The machine: one decision, made before Numba, and the same in every process that asks alike."""

import json
import os
import sys

import pytest

from tests.processes import completed
from utils import engine, hardware


def python(code, **env):
    """Run code in a fresh interpreter, where nothing has been imported yet."""
    done = completed([sys.executable, "-c", code], timeout=600, env={**os.environ, **env})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def two_gpus(monkeypatch):
    gpus = tuple(
        engine.GPU(f"GPU {i}", (8 + i, 6), 8 << 30, "580.1", (13, 0), f"GPU-{i}aaa")
        for i in range(2)
    )
    monkeypatch.setattr(engine, "_nvml_gpus", lambda: gpus)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name in (engine.FORCE_CPU, engine.LEVEL):
        monkeypatch.delenv(name, raising=False)
    return gpus


def test_first_gpu_is_used(two_gpus):
    assert engine.gpu() is two_gpus[0]
    assert two_gpus[0].arch == "sm_86"


@pytest.mark.parametrize(
    "visible, index",
    [("1", 1), ("1,0", 1), ("GPU-1a", 1), ("", None), ("-1", None), ("7", None), ("MIG-3f2a", 0)],
)
def test_visible_devices(two_gpus, monkeypatch, visible, index):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert engine.gpu() is (None if index is None else two_gpus[index])


@pytest.mark.parametrize("value, forced", [("1", True), ("yes", True), ("0", False), ("", False)])
def test_cpu_can_be_forced(two_gpus, monkeypatch, value, forced):
    monkeypatch.setenv(engine.FORCE_CPU, value)
    assert (engine.gpu() is None) == forced


def test_a_level_can_be_pretended(two_gpus, monkeypatch):
    monkeypatch.setenv(engine.LEVEL, "7.5")
    old = engine.gpu()
    assert (old.compute_capability, old.name) == ((7, 5), "GPU 0")
    assert (old.arch, old.run_arch, old.torch_arch) == ("sm_75", "compute_75", "7.5+PTX")
    assert (engine.target_arch(), engine.run_arch()) == ("sm_75", "compute_75")
    line = repr(hardware.Machine(old, sms=1, l2_bytes=1, copy_bytes_per_second=1e12))
    assert "CC 7.5 (pretended)" in line
    monkeypatch.setenv(engine.LEVEL, "8.6")
    assert engine.gpu() is two_gpus[0] and engine.run_arch() == "sm_86"


@pytest.mark.parametrize("level", ["9.0", "75", "old"])
def test_what_is_no_level(two_gpus, monkeypatch, level):
    monkeypatch.setenv(engine.LEVEL, level)
    with pytest.raises(ValueError, match="up to 8.6, such as 7.5"):
        engine.gpu()


def test_kernels_run_on_the_cpu_after_importing_utils_first():
    out = python(
        "import utils\nfrom numba import cuda\nimport numpy as np\n"
        "@cuda.jit\ndef k(x):\n    x[cuda.grid(1)] = cuda.grid(1)\n"
        "x = np.zeros(6)\nk[2, 3](x)\nprint(x.tolist(), utils.pick(gpu='g', cpu='c'))",
        CUDA_COURSE_CPU="1",
    )
    assert out == "[0.0, 1.0, 2.0, 3.0, 4.0, 5.0] c"


def test_importing_utils_imports_nothing_heavy():
    out = python(
        "import sys, json, utils\n"
        "print(json.dumps([m for m in ('torch', 'matplotlib') if m in sys.modules]))"
    )
    assert json.loads(out) == []


def test_numba_imported_first_is_said():
    out = python(
        "import warnings\nwith warnings.catch_warnings(record=True) as w:\n    "
        "warnings.simplefilter('always')\n"
        "    import numba.cuda\n    import utils\nprint(*[str(x.message) for x in w])",
        CUDA_COURSE_CPU="1",
    )
    assert "restart the kernel" in out


def test_machine_without_gpu_says_so(monkeypatch):
    monkeypatch.setattr(engine, "gpu", lambda: None)
    hardware.machine.cache_clear()
    assert "CPU engines" in repr(hardware.machine())
    hardware.machine.cache_clear()


def test_machine_line_with_gpu(two_gpus):
    line = repr(
        hardware.Machine(
            two_gpus[0], sms=132, l2_bytes=1, copy_bytes_per_second=4.3e12, nvcc="13.0"
        )
    )
    assert (
        line
        == "GPU 0 · 132 SMs · CC 8.6 · 8 GiB · copy 4.30 TB/s · driver 580.1 (CUDA 13.0) · nvcc "
        "13.0"
    )


def test_broken_driver_library_is_no_gpu(monkeypatch):
    import pynvml

    def fail():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)
    engine._nvml_gpus.cache_clear()
    with pytest.warns(UserWarning, match="restart it to use the GPU"):
        assert engine._nvml_gpus() == ()
    engine._nvml_gpus.cache_clear()
