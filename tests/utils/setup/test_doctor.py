"""The doctor: each problem is found and has its cure, a healthy machine has none, and looking at a
machine is right.
"""

import os
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.processes import completed
from utils import engine
from utils.setup import checks as setup_checks
from utils.setup import doctor, survey
from utils.setup.checks import CHECKS, NOT_HERE, NOTE, OK, PROBLEM
from utils.setup.survey import Card, Facts, Toolkit, Torch

GIB = 2**30
CARD = Card("NVIDIA GeForce RTX 4090", (8, 9), 24 * GIB, 23 * GIB, "GPU-1234")
NVCC = Toolkit("/usr/local/cuda-13.0/bin/nvcc", (13, 0), (75, 80, 86, 89, 90, 100, 120), 15, 20)
OLD_NVCC = Toolkit(
    "/usr/local/cuda-12.4/bin/nvcc", (12, 4), (50, 60, 70, 75, 80, 86, 89, 90), 13, 17
)
TORCH = Torch(
    "2.13.0+cu130", (13, 0), ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120")
)
TORCH_12 = replace(TORCH, cuda=(12, 8))

BASE = {
    "system": "linux",
    "python": (3, 12, 3),
    "prefix": "/project/.venv",
    "venv": "/project/.venv",
    "kernel": "/project/.venv/bin/python",
    "free_disk": 50 * 10**9,
    "compiler": ("g++", 13),
}
HEALTHY = Facts(
    **BASE,
    pci=("0000:01:00.0",),
    loaded="580.95.05",
    libcuda="/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    cuinit=0,
    nodes=(("/dev/nvidia0", True), ("/dev/nvidiactl", True)),
    cuda=(13, 0),
    nvml=0,
    driver="580.95.05",
    cards=(CARD,),
    toolkits=(NVCC,),
    torch=TORCH,
    nvrtc=(13, 0),
)
CPU_ONLY = Facts(**BASE, nvml=12, torch=Torch("2.13.0+cpu"))
# A GPU whose driver does not answer: what is left of the facts then
DEAD = {"cards": (), "nvml": 9, "cuda": None, "driver": None}
WSL = {
    "wsl": True,
    "pci": (),
    "loaded": None,
    "nodes": (("/dev/dxg", True),),
    "libcuda": "/usr/lib/wsl/lib/libcuda.so.1",
}


def card(**changes):
    return (replace(CARD, **changes),)


def sick(check, cure, state=PROBLEM, **changes):
    return pytest.param(check, state, cure, changes, id=f"{check}: {cure}"[:60])


SICK = [
    sick("Python", "make lab PYTHON=", python=(3, 10, 2)),
    sick("Python", "make lab PYTHON=", python=(3, 14, 0)),
    sick("packages", "make install", missing=("numba-cuda",)),
    sick("packages", "make lab", NOTE, prefix="/usr", kernel="/usr/bin/python3"),
    sick(
        "notebook kernel",
        "jupyter kernelspec remove python3",
        kernel="/opt/conda/bin/python",
    ),
    sick("import order", "Kernel > Restart", early=("numba.cuda",)),
    sick("disk", "pip cache purge", free_disk=10**9),
    sick("CPU asked for", "unset CUDA_COURSE_CPU", NOTE, forced_cpu=True),
    sick(
        "driver",
        "ubuntu-drivers install",
        loaded=None,
        libcuda=None,
        cuinit=None,
        nodes=(),
        **DEAD,
    ),
    sick("driver", "nvidia-dkms", loaded=None, cuinit=100, nodes=(), **DEAD),
    sick("driver", "nvidia-dkms", loaded=None, cuinit=100, nodes=(), nouveau=True, **DEAD),
    sick(
        "driver",
        "--gpus all",
        container=True,
        libcuda=None,
        cuinit=None,
        nodes=(),
        **{**DEAD, "nvml": 12},
    ),
    sick("driver", "On the host", container=True, loaded=None, cuinit=100, nodes=(), **DEAD),
    sick("driver", "libnvidia-compute", libcuda=None, cuinit=None, cuda=None),
    sick(
        "driver",
        "install the driver in Windows",
        NOTE,
        **{**WSL, "libcuda": None},
        cuinit=None,
        **{**DEAD, "nvml": 12},
    ),
    sick("driver restart", "Restart the computer", cuinit=803, **{**DEAD, "nvml": 18}),
    sick(
        "driver restart",
        "Stop the container",
        container=True,
        cuinit=803,
        **{**DEAD, "nvml": 18},
    ),
    sick(
        "WSL2 driver",
        "apt purge",
        linux_libcuda="/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        **{**WSL, **DEAD},
        cuinit=100,
    ),
    sick(
        "device files",
        "usermod",
        nodes=(("/dev/nvidia0", False), ("/dev/nvidiactl", True)),
        cuinit=100,
        cards=(),
        nvml=4,
    ),
    sick("CUDA starts", "--gpus all", cuinit=100, cards=(), nvml=0),
    sick("CUDA starts", "fabricmanager", cuinit=802),
    sick("CUDA starts", "cuda-compat", cuinit=804),
    sick("CUDA starts", "nvidia_uvm", cuinit=999),
    sick("CUDA starts", "nvidia-smi", cuinit=46),
    sick("CUDA starts", "error 3", cuinit=3),
    sick("visible GPUs", "unset CUDA_VISIBLE_DEVICES", visible="", cuinit=100),
    sick("visible GPUs", "unset CUDA_VISIBLE_DEVICES", visible="1", cuinit=100),
    sick("visible GPUs", "unset CUDA_VISIBLE_DEVICES", visible="GPU-9", cuinit=100),
    sick("visible GPUs", "first instance", visible="MIG-9"),
    sick(
        "GPU memory",
        "kill <pid>",
        cards=card(free=GIB, processes=((77, 22 * GIB),)),
    ),
    sick("GPU shared", "nvidia-smi -c 0", cards=card(compute_mode=2)),
    sick(
        "GPU shared",
        "nvidia-smi -c 0",
        cards=card(compute_mode=3, processes=((77, GIB),)),
    ),
    sick(
        "GPU shared",
        "when the GPU is yours",
        NOTE,
        cards=card(processes=((77, GIB),)),
    ),
    sick("C++ compiler", "apt install g++", compiler=None),
    sick("C++ compiler", "NVCC_CCBIN=g++-15", compiler=("g++", 16)),
    sick("C++ compiler", "NVCC_CCBIN=clang++-20", compiler=("clang", 21)),
    sick("nvcc", "make install", toolkits=()),
    sick(
        "nvcc",
        "Update the driver to 580",
        toolkits=(),
        cuda=(12, 8),
        driver="570.1",
        nvrtc=(12, 8),
        torch=TORCH_12,
    ),
    sick(
        "nvcc and driver",
        "Update the driver",
        cuda=(12, 8),
        nvrtc=(12, 8),
        torch=TORCH_12,
    ),
    sick(
        "nvcc and GPU",
        "newer toolkit",
        cards=card(capability=(12, 1)),
    ),
    sick(
        "PTX and driver",
        "-arch=sm_89",
        NOTE,
        toolkits=(replace(NVCC, release=(13, 2)),),
    ),
    sick("PTX and driver", "give Numba the compiler", NOTE, nvrtc=(13, 2)),
    sick("PyTorch", "make install", torch=Torch("2.13.0+cpu")),
    sick(
        "PyTorch",
        "make install",
        torch=Torch(error="libcudart.so.13: cannot open shared object file"),
    ),
    sick(
        "PyTorch and driver",
        "Update the driver",
        cuda=(12, 8),
        nvrtc=(12, 8),
        toolkits=(OLD_NVCC,),
    ),
    sick(
        "PyTorch and GPU",
        "newer PyTorch",
        torch=replace(TORCH, built_for=("sm_90", "sm_120")),
    ),
    sick("Numba's compiler", "make install", nvrtc=None),
    sick(
        "Numba's compiler",
        "update the driver",
        cuda=(12, 8),
        toolkits=(OLD_NVCC,),
        torch=TORCH_12,
    ),
    sick("one toolkit", "Keep one", NOTE, toolkits=(NVCC, OLD_NVCC)),
    sick(
        "library path",
        "off LD_LIBRARY_PATH",
        NOTE,
        library_path=(("/usr/local/cuda-12.4/lib64", 12),),
    ),
    sick(
        "library path",
        "stubs folder",
        library_path=(("/usr/local/cuda/lib64/stubs", None),),
        cuinit=34,
    ),
]


@pytest.mark.parametrize("check, state, cure, changes", SICK)
def test_problem_is_found_with_its_cure_and_nothing_else_is_blamed(check, state, cure, changes):
    diagnosis = doctor.examine(replace(HEALTHY, **changes))
    found = {f.check: f for f in diagnosis.findings if f.state in (PROBLEM, NOTE)}
    assert list(found) == [check], diagnosis
    assert found[check].state == state
    assert cure in found[check].cure
    assert found[check].why and found[check].found


@pytest.mark.parametrize("container, cure", [(True, "--gpus all"), (False, "libnvidia-compute")])
def test_an_invented_machine_lacks_its_driver_alone(container, cure):
    sick = doctor.examine(survey.without_driver(HEALTHY, container))
    assert [cure in problem.cure for problem in sick.problems if problem.check == "driver"] == [
        True
    ]


def test_an_old_gpu_is_told_of_cuda_12():
    """Pascal: neither nvcc 13 nor this PyTorch knows it."""
    diagnosis = doctor.examine(replace(HEALTHY, cards=card(capability=(6, 1))))
    assert {f.check: f.cure for f in diagnosis.problems}.keys() == {
        "nvcc and GPU",
        "PyTorch and GPU",
    }
    assert "CUDA 12" in diagnosis.problems[0].cure


def test_every_check_that_can_fail_does_so_in_a_test():
    assert {p.values[0] for p in SICK} == set(CHECKS) - {"GPU"}  # which only says what there is


@pytest.mark.parametrize(
    "facts",
    [
        HEALTHY,
        CPU_ONLY,
        replace(HEALTHY, **WSL),
        replace(HEALTHY, container=True, pci=(), nodes=()),
        replace(HEALTHY, visible="GPU-12"),
        replace(HEALTHY, colab=True, venv=None, prefix="/usr", kernel="/usr/bin/python3"),
        replace(CPU_ONLY, system="darwin", compiler=("clang", 17)),
        replace(CPU_ONLY, container=True),
        replace(CPU_ONLY, venv=None, prefix="/conda", kernel="/conda/bin/python"),
        replace(HEALTHY, toolkits=(OLD_NVCC,)),  # an older toolkit than the driver is fine
        replace(HEALTHY, toolkits=(replace(NVCC, release=None),)),  # a script that says nothing
    ],
    ids=[
        "gpu",
        "cpu",
        "wsl",
        "container",
        "visible",
        "colab",
        "macos",
        "cpu container",
        "conda",
        "older toolkit",
        "nvcc of unknown version",
    ],
)
def test_a_healthy_machine_has_no_problem(facts):
    diagnosis = doctor.examine(facts)
    assert (diagnosis.problems, diagnosis.notes) == ([], [])
    assert diagnosis.summary().startswith("No problem found.")


def test_without_a_gpu_the_checks_of_gpus_do_not_apply():
    states = {f.check: f.state for f in doctor.examine(CPU_ONLY).findings}
    assert states["driver"] == states["CUDA starts"] == states["PyTorch and GPU"] == NOT_HERE
    assert states["Python"] == states["PyTorch"] == OK


def test_asking_for_the_cpu_silences_a_broken_driver():
    broken = replace(HEALTHY, loaded=None, cuinit=100, nodes=(), forced_cpu=True, **DEAD)
    assert doctor.examine(broken).problems == []


@pytest.mark.parametrize(
    "driver, toolkit, what",
    [
        ((13, 0), (13, 0), "everything"),
        ((13, 1), (12, 4), "everything"),
        ((13, 0), (11, 8), "everything"),
        ((13, 0), (13, 2), "machine code"),
        ((12, 2), (12, 9), "machine code"),
        ((12, 9), (13, 0), "nothing"),
    ],
)
def test_which_driver_runs_which_toolkit(driver, toolkit, what):
    assert setup_checks.fits(driver, toolkit) == what


@pytest.mark.parametrize(
    "built, capability, how",
    [
        ("sm_80", (8, 0), "as it is"),
        ("sm_80", (8, 9), "as it is"),
        ("sm_89", (8, 6), "not at all"),
        ("sm_80", (9, 0), "not at all"),
        ("compute_80", (9, 0), "translated"),
        ("compute_75", (12, 0), "translated"),
        ("compute_90", (8, 9), "not at all"),
        ("sm_90a", (9, 0), "as it is"),
        ("sm_100a", (10, 3), "not at all"),
        ("compute_90a", (10, 0), "not at all"),
        ("sm_100f", (10, 3), "as it is"),
        ("compute_100f", (12, 0), "not at all"),
        ("sm_120", (12, 1), "as it is"),
    ],
)
def test_which_code_a_gpu_loads(built, capability, how):
    assert setup_checks.loads(built, capability) == how


# ---- how it is shown


def test_the_problem_stands_in_text_and_page():
    diagnosis = doctor.examine(replace(HEALTHY, cards=card(free=GIB)))
    assert "✗ GPU memory: 1.0 of 24.0 GiB free" in repr(diagnosis)
    assert "kill &lt;pid&gt;" in diagnosis._repr_html_()
    assert "One problem." in diagnosis.summary()


@pytest.mark.parametrize(
    "facts, status",
    [
        (HEALTHY, 0),
        (replace(HEALTHY, toolkits=(NVCC, OLD_NVCC)), 0),
        (replace(HEALTHY, cuinit=802), 1),
    ],
    ids=["healthy", "note", "problem"],
)
def test_exit_status(facts, status, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "look", lambda: facts)
    assert doctor.main() == status
    printed = capsys.readouterr().out
    assert "Python 3.12.3" in printed
    assert ("fabricmanager" in printed) == bool(status)


def test_this_machine_can_be_examined_from_the_command_line():
    done = completed([sys.executable, "-m", "utils.setup.doctor"], timeout=600, cwd=survey.ROOT)
    assert done.returncode in (0, 1), done.stderr
    assert "import order" in done.stdout and done.stderr == ""


# ---- looking at a machine


def tree(root, files):
    """A machine in a folder: path -> text."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_gpus_on_the_bus(tmp_path):
    devices = {
        "0000:00:02.0": ("0x8086", "0x030000"),
        "0000:01:00.0": ("0x10de", "0x030000"),
        "0000:01:00.1": ("0x10de", "0x040300"),
        "0000:02:00.0": ("0x10de", "0x030200"),
    }
    for name, (vendor, kind) in devices.items():
        files = {"vendor": vendor + "\n", "class": kind + "\n"}
        tree(tmp_path / "sys/bus/pci/devices" / name, files)
    assert survey.pci_gpus(tmp_path) == (
        "0000:01:00.0",
        "0000:02:00.0",
    )  # not Intel's, not the GPU's sound


@pytest.mark.parametrize(
    "line, version",
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC "
            "2024\n",
            "535.183.01",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  "
            "(dvs-builder)\n",
            "580.95.05",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  610.43  Release Build\n",
            "610.43",
        ),
    ],
)
def test_version_of_the_kernel_module(tmp_path, line, version):
    assert survey.kernel_module(tree(tmp_path, {"proc/driver/nvidia/version": line})) == version
    assert survey.kernel_module(tmp_path / "elsewhere") is None


def test_device_files(tmp_path, monkeypatch):
    tree(
        tmp_path,
        {
            "dev/nvidia0": "",
            "dev/nvidiactl": "",
            "dev/nvidia-modeset": "",
            "dev/nvidia-caps/one": "",
        },
    )
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "nvidia0")
    assert survey.device_files(tmp_path) == (("/dev/nvidia0", False), ("/dev/nvidiactl", True))


def test_a_linux_driver_inside_wsl(tmp_path, monkeypatch):
    monkeypatch.delenv("container", raising=False)
    version = "Linux version 6.6.87.2-microsoft-standard-WSL2"
    tree(tmp_path, {"proc/version": version, "usr/lib/wsl/lib/libcuda.so.1": ""})
    library = tmp_path / "usr/lib/x86_64-linux-gnu/libcuda.so.1"
    library.parent.mkdir(parents=True)
    library.symlink_to(tmp_path / "usr/lib/wsl/lib/libcuda.so.1")
    assert survey.linux_driver_in_wsl(tmp_path) is None  # a link to Windows' own is as it should be
    library.unlink()
    library.write_text("")
    assert survey.linux_driver_in_wsl(tmp_path) == "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
    (tmp_path / ".dockerenv").write_text("")
    assert survey.linux_driver_in_wsl(tmp_path) is None


def shared_library(folder, name, code):
    source, library = folder / "library.c", folder / name
    source.write_text(code)
    try:
        subprocess.run(
            ["cc", "-shared", "-fPIC", str(source), "-o", str(library)],
            check=True,
            capture_output=True,
        )
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("no C compiler")
    return str(library)


@pytest.mark.parametrize("answer", [0, 100, 803])
def test_the_drivers_library_is_asked(tmp_path, answer):
    code = (
        f"int cuInit(unsigned f) {{ return {answer}; }}\n"
        "int cuDriverGetVersion(int *v) { *v = 13010; return 0; }"
    )
    library = shared_library(tmp_path, f"libcuda{answer}.so.1", code)
    assert survey.driver_library(["no such library", library]) == (library, answer, (13, 1))
    assert survey.driver_library(["no such library"]) == (None, None, None)


class NVMLError(Exception):
    def __init__(self, value):
        super().__init__(value)
        self.value = value


def nvml(error=None):
    """NVML with one GPU, another process on it, and no answer to the compute mode."""
    fake = Mock(NVMLError=NVMLError)
    if error:
        fake.nvmlInit.side_effect = NVMLError(error)
    fake.nvmlDeviceGetComputeMode.side_effect = NVMLError(3)
    both = [Mock(pid=pid, usedGpuMemory=GIB) for pid in (os.getpid(), 1)]
    answers = {
        "nvmlSystemGetDriverVersion": "580.95.05",
        "nvmlDeviceGetCount": 1,
        "nvmlDeviceGetName": "GPU",
        "nvmlDeviceGetUUID": "GPU-1",
        "nvmlDeviceGetCudaComputeCapability": [8, 9],
        "nvmlDeviceGetMemoryInfo": Mock(total=8 * GIB, free=GIB),
        "nvmlDeviceGetComputeRunningProcesses": both,
    }
    for name, answer in answers.items():
        getattr(fake, name).return_value = answer
    return fake


def test_the_management_library_is_asked(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    assert survey.management_library() == (
        0,
        "580.95.05",
        (Card("GPU", (8, 9), 8 * GIB, GIB, "GPU-1", 0, ((1, GIB),)),),
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml(error=18))
    assert survey.management_library() == (18, None, ())
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert survey.management_library() == (None, None, ())


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


FAKE_NVCC = """case "$1" in
  --version) echo "Cuda compilation tools, release {release}, V{release}.1" ;;
  --list-gpu-arch) echo compute_75; echo compute_90 ;;
  *) echo "#$ TOP={top}" >&2 ;;
esac
"""


def test_toolkits_on_the_path(tmp_path, monkeypatch):
    for release in ("12.4", "13.0"):
        top = tmp_path / "usr/local" / f"cuda-{release}"
        script(top / "bin/nvcc", FAKE_NVCC.format(release=release, top=top))
        tree(
            top,
            {
                "include/crt/host_config.h": "#if __GNUC__ > 13\n#error\n#if (__clang_major__ >= "
                "18) || (__clang_major__ < 3)\n"
            },
        )
    (tmp_path / "usr/local/cuda").symlink_to(tmp_path / "usr/local/cuda-13.0")
    first = str(tmp_path / "usr/local/cuda-12.4/bin/nvcc")
    monkeypatch.setattr(survey, "find_nvcc", lambda: first)
    monkeypatch.setenv(
        "PATH", f"{tmp_path}/usr/local/cuda-12.4/bin:{tmp_path}/usr/local/cuda/bin:/usr/bin:/bin"
    )
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    inside = [t for t in survey.toolkits(tmp_path) if str(tmp_path) in t.nvcc]
    assert [t.release for t in inside] == [(12, 4), (13, 0)]  # each once, the one in use first
    assert inside[0] == Toolkit(
        first, (12, 4), (75, 90), 13, 17, str(tmp_path / "usr/local/cuda-12.4")
    )


@pytest.mark.parametrize(
    "said, compiler",
    [
        ("g++ (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0", ("g++", 13)),
        ("g++ (GCC) 15.2.1 20250813", ("g++", 15)),
        ("Apple clang version 17.0.0 (clang-1700.0.13)", ("clang", 17)),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)", ("clang", 18)),
    ],
)
def test_host_compiler(tmp_path, monkeypatch, said, compiler):
    monkeypatch.setenv("NVCC_CCBIN", str(script(tmp_path / "mine", f'echo "{said}"\n')))
    assert survey.host_compiler() == compiler
    monkeypatch.setenv("NVCC_CCBIN", str(tmp_path / "nothing"))
    assert survey.host_compiler() is None


def test_folders_on_the_library_path(tmp_path):
    tree(
        tmp_path,
        {
            "cuda/libcudart.so.12.4.127": "",
            "stubs/libcuda.so": "",
            "driver/libcuda.so.1": "",
            "other/libm.so": "",
        },
    )
    wanted = f"{tmp_path}/other:{tmp_path}/cuda::{tmp_path}/stubs:{tmp_path}/driver:{tmp_path}/gone"
    # The driver's own folder belongs there (Colab and NVIDIA's images put it there).
    assert survey.cuda_folders(wanted) == ((f"{tmp_path}/cuda", 12), (f"{tmp_path}/stubs", None))


def test_a_foreign_notebook_kernel_is_seen(tmp_path, monkeypatch):
    kernel = '{"argv": ["/opt/other/bin/python", "-m", "ipykernel"], "display_name": "x"}'
    tree(tmp_path, {"kernels/python3/kernel.json": kernel})
    assert survey.notebook_python() != "/opt/other/bin/python"
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    assert survey.notebook_python() == "/opt/other/bin/python"


def test_numba_imported_before_utils_is_seen(monkeypatch):
    monkeypatch.setattr(engine, "has_gpu", lambda: False)
    monkeypatch.setitem(
        sys.modules,
        "numba.cuda",
        types.SimpleNamespace(__file__="/site-packages/numba_cuda/numba/cuda/__init__.py"),
    )
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    assert survey.imported_early() == ("numba.cuda",)
    monkeypatch.setattr(engine, "has_gpu", lambda: True)
    assert survey.imported_early() == ()


def test_missing_packages(tmp_path, monkeypatch):
    wanted = "['numpy', 'no-such-package-at-all', \"mac; sys_platform == 'darwin'\"]"
    tree(tmp_path, {"pyproject.toml": f"[project]\ndependencies = {wanted}"})
    monkeypatch.setattr(survey, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    assert "no-such-package-at-all" in survey.missing_packages()
    assert "numpy" not in survey.missing_packages()


def test_pytorch_that_cannot_be_imported(tmp_path, monkeypatch):
    code = "raise ImportError('libcudart.so.13: cannot open shared object file')"
    tree(tmp_path, {"torch/__init__.py": code})
    monkeypatch.setitem(sys.modules, "torch", None)
    assert survey.pytorch() is None
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert survey.pytorch().error == "libcudart.so.13: cannot open shared object file"


def test_nvrtc(tmp_path, monkeypatch):
    pathfinder = pytest.importorskip("cuda.pathfinder")
    library = shared_library(
        tmp_path,
        "libnvrtc.so.13",
        "int nvrtcVersion(int *a, int *b) { *a = 13; *b = 1; return 0; }",
    )
    monkeypatch.setattr(
        pathfinder, "load_nvidia_dynamic_lib", lambda name: types.SimpleNamespace(abs_path=library)
    )
    assert survey.nvrtc_version() == (13, 1)


# ---- caches


def test_the_caches_are_shown_and_cleared(tmp_path, monkeypatch, capsys):
    """Builds and data, and nothing that lies beside them."""
    builds = tmp_path / "builds" / "cuda_c"
    fetched = tmp_path / "data"
    monkeypatch.setattr(survey.build, "cache_folder", lambda: builds)
    monkeypatch.setattr(survey.data, "cache_folder", lambda: fetched)
    for path in (builds / "builds" / "a.so", fetched / "t10k-labels-idx1-ubyte.gz"):
        path.parent.mkdir(parents=True)
        path.write_bytes(bytes(1000))
    (fetched / "thesis.tex").write_text("not ours")
    assert sum(map(survey.size, survey.caches())) == 2000
    monkeypatch.setattr(doctor, "doctor", lambda: doctor.examine(CPU_ONLY))
    assert doctor.main(["--clear"]) == 0
    assert "0.0 GB of builds and data removed" in capsys.readouterr().out
    assert list(builds.iterdir()) == []
    assert [path.name for path in fetched.iterdir()] == ["thesis.tex"]


def test_what_is_kept_is_said():
    kept = replace(CPU_ONLY, caches=12 * 10**9)
    assert "12.0 GB of builds and data kept" in CHECKS["disk"](kept)[1]
