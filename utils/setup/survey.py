"""What this machine has of all that CUDA needs: driver, GPUs, toolkits, compilers, Python.

`look()` gathers them in one `Facts`; `utils.setup.doctor` judges them. Nothing here raises because
something is missing or broken: finding that out is what it is for. `root` stands for ``/``, so that
tests can build a machine in a folder.
"""

import ctypes
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from utils import data, engine
from utils.cpu.cuda_c import build
from utils.files import ROOT, size
from utils.tools.toolkit import find_nvcc

NVIDIA = "0x10de"  # vendor on the PCI bus
DISPLAY = "0x03"  # class of display controllers, those without a plug included

Version = tuple[int, int]


def dotted(version: Version | None) -> str:
    """(13, 0) as people write it: 13.0."""
    return ".".join(map(str, version)) if version else "of unknown version"


@dataclass(frozen=True)
class Card:
    """One GPU as the driver's management library (NVML) describes it; memory in bytes."""

    name: str
    capability: Version
    memory: int
    free: int
    uuid: str = ""
    compute_mode: int = 0  # 0: any process may use it, 3: one at a time, 2: none
    processes: tuple[
        tuple[int, int], ...
    ] = ()  # (process id, bytes) of other processes that compute on it


@dataclass(frozen=True)
class Toolkit:
    """One nvcc: release, what it builds for (90 for sm_90), newest GCC and Clang it accepts.

    folder: where its toolkit lies; an nvcc may be a link or a script that calls one elsewhere.
    """

    nvcc: str
    release: Version | None
    builds_for: tuple[int, ...] = ()
    newest_gcc: int | None = None
    newest_clang: int | None = None
    folder: str = ""


@dataclass(frozen=True)
class Torch:
    """PyTorch: version, its CUDA (None: a CPU build), its architectures, or why it fails."""

    version: str = ""
    cuda: Version | None = None
    built_for: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that was looked at. None or empty: not there."""

    system: str
    python: tuple[int, int, int]
    prefix: str  # the Python environment this runs in
    venv: str | None  # the project's own, if it was made
    missing: tuple[str, ...] = ()  # packages that the project needs and this environment lacks
    kernel: str | None = None  # the Python that a new notebook would get
    early: tuple[str, ...] = ()  # modules that were imported before utils could choose an engine
    free_disk: int = 0
    caches: int = 0  # bytes of builds and data that the course keeps
    wsl: bool = False
    container: bool = False
    colab: bool = False
    pci: tuple[str, ...] = ()  # NVIDIA display controllers on the PCI bus
    nouveau: bool = False  # the open driver that comes with Linux, which has no CUDA, is loaded
    loaded: str | None = None  # version of NVIDIA's kernel module that is loaded
    nodes: tuple[tuple[str, bool], ...] = ()  # (/dev/nvidia…, may this user read and write it?)
    libcuda: str | None = None  # the driver's library for programs
    linux_libcuda: str | None = (
        None  # WSL2: one that a Linux driver package put beside Windows' own
    )
    cuinit: int | None = None  # what it answers to cuInit (0: ready)
    cuda: Version | None = None  # newest CUDA version that the driver runs
    nvml: int | None = None  # what the management library answers (0: ready)
    driver: str | None = None  # the driver's version as that library has it
    cards: tuple[Card, ...] = ()
    visible: str | None = None  # CUDA_VISIBLE_DEVICES
    forced_cpu: bool = False
    toolkits: tuple[Toolkit, ...] = ()  # the first is the one that %nvcc uses
    compiler: tuple[str, int] | None = (
        None  # the C++ compiler that nvcc calls, and its major version
    )
    library_path: tuple[
        tuple[str, int | None], ...
    ] = ()  # folders on LD_LIBRARY_PATH with CUDA libraries: its major version
    torch: Torch | None = None
    nvrtc: Version | None = None  # the compiler library behind Numba's kernels and cuda_c.load


def look(root: Path = Path("/")) -> Facts:
    """Look at this machine. Takes a few seconds, most of them for importing PyTorch."""
    libcuda, cuinit, cuda = driver_library()
    nvml, driver, cards = management_library()
    venv = ROOT / ".venv"
    return Facts(
        system=sys.platform,
        python=sys.version_info[:3],
        prefix=sys.prefix,
        venv=str(venv) if venv.is_dir() else None,
        missing=missing_packages(),
        kernel=notebook_python(),
        early=imported_early(),
        free_disk=shutil.disk_usage(ROOT).free,
        caches=sum(map(size, caches())),
        wsl=is_wsl(root),
        container=is_container(root),
        colab=is_colab(),
        pci=pci_gpus(root),
        nouveau=(root / "sys/module/nouveau").exists(),
        loaded=kernel_module(root),
        nodes=device_files(root),
        libcuda=libcuda,
        linux_libcuda=linux_driver_in_wsl(root),
        cuinit=cuinit,
        cuda=cuda,
        nvml=nvml,
        driver=driver,
        cards=cards,
        visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
        forced_cpu=engine.forced_cpu(),
        toolkits=toolkits(root),
        compiler=host_compiler(),
        library_path=cuda_folders(os.environ.get("LD_LIBRARY_PATH", "")),
        torch=pytorch(),
        nvrtc=nvrtc_version(),
    )


# ---- Python


def without_driver(here: Facts, container: bool) -> Facts:
    """The facts of an invented machine: `here`, but with a GPU on the bus of which no driver tells.

    container: whether it is a container, then one that was started without its GPU.
    """
    return replace(
        here,
        container=container,
        wsl=False,
        forced_cpu=False,
        pci=("0000:01:00.0",),
        loaded="580.95.05",
        cards=(),
        libcuda=None,
        cuinit=None,
        cuda=None,
        nvml=12,
        nodes=(),
    )


def missing_packages() -> tuple[str, ...]:
    """The packages that the project names and this environment does not have."""
    import tomllib

    lines = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    missing = []
    for line in lines:
        name, _, condition = line.partition(";")
        if "linux" in condition and sys.platform != "linux":
            continue
        try:
            importlib.metadata.version(name.strip())
        except importlib.metadata.PackageNotFoundError:
            missing.append(name.strip())
    return tuple(missing)


def notebook_python() -> str | None:
    """The Python of Jupyter's kernel "python3", as this environment's Jupyter finds it."""
    output = _said([sys.executable, "-m", "jupyter", "kernelspec", "list", "--json"])
    try:
        kernels = json.loads(output[output.index("{") :])["kernelspecs"]
        program = kernels["python3"]["spec"]["argv"][0]
    except (ValueError, KeyError, IndexError):
        return None
    # A bare "python" is replaced by the Python that runs Jupyter.
    return program if os.path.isabs(program) else sys.executable


def imported_early() -> tuple[str, ...]:
    """Of Numba and Triton, those imported before utils and so not on the CPU engine."""
    if engine.has_gpu():
        return ()
    early = []
    numba_cuda = sys.modules.get("numba.cuda")
    if numba_cuda and "utils" not in Path(getattr(numba_cuda, "__file__", None) or "").parts:
        early.append("numba.cuda")
    if "triton" in sys.modules and os.environ.get("TRITON_INTERPRET") != "1":
        early.append("triton")
    return tuple(early)


# ---- where this is


def caches() -> tuple[Path, ...]:
    """Where the course keeps what it can make or fetch again: builds, and MNIST."""
    return build.cache_folder(), *data.cache_folder().glob("*-idx?-ubyte*")


def is_wsl(root: Path) -> bool:
    """Whether this Linux runs under Windows (WSL)."""
    return "microsoft" in _text(root / "proc/version").lower()


def is_container(root: Path) -> bool:
    """Whether this is a Docker, Podman or similar container."""
    return (
        (root / ".dockerenv").exists()
        or (root / "run/.containerenv").exists()
        or bool(os.environ.get("container"))
    )


def is_colab() -> bool:
    """Whether this is Google Colab."""
    return "COLAB_RELEASE_TAG" in os.environ or "google.colab" in sys.modules


# ---- GPU and driver


def pci_gpus(root: Path) -> tuple[str, ...]:
    """Addresses of the NVIDIA GPUs on the PCI bus, driver or not; in a container the host's."""
    devices = sorted((root / "sys/bus/pci/devices").glob("*"))
    return tuple(
        d.name
        for d in devices
        if _text(d / "vendor").strip() == NVIDIA and _text(d / "class").startswith(DISPLAY)
    )


def kernel_module(root: Path) -> str | None:
    """Version of NVIDIA's kernel module, if it is loaded."""
    match = re.search(
        r"Kernel Module\D.*?\s(\d+\.\d+(?:\.\d+)?)\s", _text(root / "proc/driver/nvidia/version")
    )
    return match.group(1) if match else None


def device_files(root: Path) -> tuple[tuple[str, bool], ...]:
    """The files through which programs talk to the driver, each with whether this user may."""
    names = [
        p
        for p in sorted((root / "dev").glob("nvidia*"))
        if not p.is_dir() and re.fullmatch(r"nvidia(\d+|ctl|-uvm)", p.name)
    ]
    names += [p for p in (root / "dev/dxg",) if p.exists()]
    return tuple((f"/dev/{p.name}", os.access(p, os.R_OK | os.W_OK)) for p in names)


def linux_driver_in_wsl(root: Path) -> str | None:
    """WSL2: a libcuda not from Windows, which hides the one that is. Not in containers."""
    if not is_wsl(root) or is_container(root):
        return None
    for folder in ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64"):
        library = root / folder / "libcuda.so.1"
        if library.exists() and "wsl" not in library.resolve().parts:
            return f"/{folder}/libcuda.so.1"
    return None


def driver_library(
    names: Sequence[str] = ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"),
) -> tuple[str | None, int | None, Version | None]:
    """(path, answer to cuInit, newest CUDA) of the driver's library; Nones without one."""
    for name in names:
        try:
            library = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        return None, None, None
    number = ctypes.c_int()
    code = library.cuInit(0)
    failed = library.cuDriverGetVersion(ctypes.byref(number)) or not number.value
    return (
        _path_of(name),
        code,
        None if failed else (number.value // 1000, number.value % 1000 // 10),
    )


def _path_of(library: str) -> str:
    """Where a loaded library lies."""
    for line in _text(Path("/proc/self/maps")).splitlines():
        if Path(library).name.split(".so")[0] + ".so" in line:
            return line.split(maxsplit=5)[-1]
    return library


def management_library() -> tuple[int | None, str | None, tuple[Card, ...]]:
    """(error code, driver version, GPUs) from NVML; the code is None without nvidia-ml-py."""
    try:
        import pynvml
    except ImportError:
        return None, None, ()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return error.value, None, ()
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return (
            0,
            pynvml.nvmlSystemGetDriverVersion(),
            tuple(_card(pynvml, handle) for handle in handles),
        )
    except pynvml.NVMLError as error:
        return error.value, None, ()
    finally:
        pynvml.nvmlShutdown()


def _card(pynvml: ModuleType, handle: object) -> Card:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Card(
        pynvml.nvmlDeviceGetName(handle),
        tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle)),
        memory.total,
        memory.free,
        pynvml.nvmlDeviceGetUUID(handle),
        _or_zero(pynvml, pynvml.nvmlDeviceGetComputeMode, handle),
        tuple(
            (p.pid, p.usedGpuMemory or 0)
            for p in _or_zero(pynvml, pynvml.nvmlDeviceGetComputeRunningProcesses, handle) or ()
            if p.pid != os.getpid()
        ),
    )


def _or_zero(pynvml: ModuleType, ask: Callable[[Any], Any], handle: object) -> Any:
    """Not every GPU and not every container answers everything."""
    try:
        return ask(handle)
    except pynvml.NVMLError:
        return 0


# ---- toolkits and compilers


def toolkits(root: Path = Path("/")) -> tuple[Toolkit, ...]:
    """Every nvcc that %nvcc, the PATH, CUDA_HOME or /usr/local offers, the used one first."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    candidates = [find_nvcc()]
    candidates += [str(Path(folder) / "nvcc") for folder in folders if folder]
    candidates += [str(Path(home) / "bin/nvcc") for home in homes if home]
    candidates += [str(path) for path in sorted((root / "usr/local").glob("cuda*/bin/nvcc"))]
    programs: dict[str, str] = {}
    by_folder: dict[str, Toolkit] = {}
    for path in candidates:
        if path and os.access(path, os.X_OK) and not os.path.isdir(path):
            programs.setdefault(os.path.realpath(path), path)
    for path in programs.values():
        kit = toolkit(path)
        by_folder.setdefault(kit.folder, kit)
    return tuple(by_folder.values())


def toolkit(nvcc: str) -> Toolkit:
    """What this nvcc says of itself, and what its headers say of host compilers."""
    release = re.search(r"release (\d+)\.(\d+)", _said([nvcc, "--version"]))
    archs = re.findall(r"compute_(\d+)", _said([nvcc, "--list-gpu-arch"]))
    top = re.search(r"TOP=(\S+)", _said([nvcc, "-dryrun", "-E", "-x", "cu", os.devnull]))
    folder = Path(top.group(1)) if top else Path(nvcc).resolve().parent.parent
    header = _text(folder / "include/crt/host_config.h")
    gcc = re.search(r"#if __GNUC__ > (\d+)", header)
    clang = re.search(r"__clang_major__ >= (\d+)", header)
    return Toolkit(
        nvcc,
        (int(release[1]), int(release[2])) if release else None,
        tuple(sorted({int(a) for a in archs})),
        int(gcc[1]) if gcc else None,
        int(clang[1]) - 1 if clang else None,
        os.path.realpath(folder),
    )


def host_compiler() -> tuple[str, int] | None:
    """The C++ compiler that nvcc would call and its major version: NVCC_CCBIN, or g++."""
    program = os.environ.get("NVCC_CCBIN") or "g++"
    output = _said([program, "--version"]) if shutil.which(program) else ""
    clang = re.search(r"clang version (\d+)", output)
    version = clang or re.search(r"(\d+)\.\d+\.\d+", output)
    if not version:
        return None
    return "clang" if clang else "g++", int(version[1])


def cuda_folders(library_path: str) -> tuple[tuple[str, int | None], ...]:
    """The folders of an LD_LIBRARY_PATH that matter.

    Each with the major version of the CUDA runtime in it, or None for stubs of the driver.
    """
    folders = []
    for folder in (Path(name) for name in library_path.split(os.pathsep) if name):
        majors = [
            int(m[1])
            for file in folder.glob("libcudart.so.*")
            if (m := re.fullmatch(r"libcudart\.so\.(\d+).*", file.name))
        ]
        if majors or (folder.name == "stubs" and any(folder.glob("libcuda.so*"))):
            folders.append((str(folder), max(majors, default=None)))
    return tuple(folders)


def pytorch() -> Torch | None:
    """What PyTorch was built for; None where it is not installed."""
    try:
        import torch
    except ModuleNotFoundError:
        return None
    except (ImportError, OSError) as error:
        return Torch(error=str(error).strip().splitlines()[-1])
    if not torch.version.cuda:
        return Torch(torch.__version__)
    major, minor = torch.version.cuda.split(".")[:2]
    return Torch(
        torch.__version__,
        (int(major), int(minor)),
        tuple((torch._C._cuda_getArchFlags() or "").split()),
    )


def nvrtc_version() -> Version | None:
    """Version of NVRTC, CUDA's compiler as a library, as Python's CUDA packages find it."""
    try:
        from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
    except ImportError:
        return None
    try:
        library = ctypes.CDLL(load_nvidia_dynamic_lib("nvrtc").abs_path)
    except (DynamicLibNotFoundError, OSError):
        return None
    major = ctypes.c_int()
    minor = ctypes.c_int()
    return (
        None
        if library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        else (major.value, minor.value)
    )


def _said(command: Sequence[str]) -> str:
    """All that a command prints; empty where it cannot be run."""
    try:
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=30,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _text(path: Path) -> str:
    """A file's text; empty where it cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
