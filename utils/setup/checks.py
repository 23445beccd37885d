"""The doctor's checks: small functions that judge the `Facts` of `utils.setup.survey`.

Each returns (state, what was found) or, for a problem or a note, (state, found, why it matters,
cure). A problem stops the course or keeps it from the GPU; after a note it works, and there is
something to know. Checks know nothing of each other: one that needs a working driver does not
apply where there is none, so that the cause is named and not its consequences.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from utils.files import ROOT
from utils.setup.install import NEWEST, OLDEST
from utils.setup.survey import Card, Facts, Version, dotted

OK = "ok"
PROBLEM = "problem"
NOTE = "note"
NOT_HERE = "does not apply"

# Answers of NVML and of cuInit that mean: the driver was updated, the machine not restarted
NVML_LIB_RM_VERSION_MISMATCH = 18
CUDA_SYSTEM_DRIVER_MISMATCH = 803

LEAST_DISK = 5e9  # bytes: room for builds, data sets and one more wheel of PyTorch's size
# bytes of free GPU memory: the chapters' largest arrays with room for a library's own
LEAST_MEMORY = 2 * 2**30

DRIVER_DOWNLOAD = "https://www.nvidia.com/drivers"
# `make install` alone does nothing where it was done before; this undoes what was changed by hand
# since.
REMAKE = "rm -rf .venv && make install"
CUINIT: dict[int | None, tuple[str, str, str]] = {
    46: (
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "Another process has the GPU for itself.",
        "End it (nvidia-smi lists it), or wait.",
    ),
    100: (
        "CUDA_ERROR_NO_DEVICE",
        "The driver runs and sees no GPU that it may use.",
        "In a container: start it with --gpus all. Else look at `sudo dmesg | grep -i nvrm` for "
        "what the driver says of the GPU.",
    ),
    101: (
        "CUDA_ERROR_INVALID_DEVICE",
        "The driver cannot use the GPU it was given, often half a MIG instance.",
        "Name a whole GPU or MIG instance from `nvidia-smi -L` in CUDA_VISIBLE_DEVICES.",
    ),
    802: (
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "On a server with NVSwitch the fabric manager must run, in the driver's very version.",
        "sudo systemctl start nvidia-fabricmanager (on a rented machine: ask the provider, or "
        "take another).",
    ),
    804: (
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "A compatibility libcuda (cuda-compat) is in front of the driver's own; it works on data "
        "center GPUs alone.",
        "Take the cuda-compat folder off LD_LIBRARY_PATH, or remove the cuda-compat package.",
    ),
    999: (
        "CUDA_ERROR_UNKNOWN",
        "The kernel module lost its state, often while the computer slept.",
        "sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm, or restart the computer.",
    ),
}


def fits(driver: Version, toolkit: Version) -> str:
    """What of a program built with this CUDA toolkit runs on a driver for CUDA `driver`.

    "everything"; "machine code" (SASS for this GPU runs, PTX does not: a newer toolkit of the same
    major version); or "nothing" (a newer major version).
    https://docs.nvidia.com/deploy/cuda-compatibility/
    """
    if toolkit <= driver:
        return "everything"
    return "machine code" if toolkit[0] == driver[0] else "nothing"


def loads(built: str, capability: Version) -> str:
    """How a GPU runs code built for an architecture.

    "as it is", "translated" (PTX, by the driver), or "not at all".

    built: ``sm_86`` (machine code), ``compute_86`` (PTX), or with the ending a (that very GPU) or f
        (its family).
    https://docs.nvidia.com/cuda/cuda-programming-guide/01-introduction/cuda-platform.html
    """
    kind, _, number = built.partition("_")
    exact = number.endswith("a")
    family = number.endswith("f")
    digits = number.rstrip("af")
    target = (int(digits[:-1]), int(digits[-1]))
    same_family = target[0] == capability[0] and target <= capability
    if exact:
        runs = target == capability
    elif kind == "sm" or family:
        runs = same_family
    else:
        runs = target <= capability
    if not runs:
        return "not at all"
    return "as it is" if kind == "sm" else "translated"


class Judgement(NamedTuple):
    """What one check says: a state, what it found, and for problems and notes why and the cure."""

    state: str
    found: str
    why: str = ""
    cure: str = ""


ok = partial(Judgement, OK)  # all is well
problem = partial(Judgement, PROBLEM)  # something will fail
note = partial(Judgement, NOTE)  # something is unusual, and need not fail
not_here = partial(Judgement, NOT_HERE)  # the check does not apply to this machine


def versions(facts: Facts) -> dict[str, Version]:
    """The CUDA version of each part that writes programs for the driver, by its name."""
    parts = {
        "nvcc": facts.toolkits[0].release if facts.toolkits else None,
        "PyTorch": facts.torch.cuda if facts.torch else None,
        "Numba (NVRTC)": facts.nvrtc,
    }
    return {name: version for name, version in parts.items() if version}


# ---- Python


def python_version(f: Facts) -> Judgement:
    this = "Python " + ".".join(map(str, f.python))
    if OLDEST <= f.python[:2] <= NEWEST:
        return ok(this)
    return problem(
        this,
        f"The course and its packages are built for Python {dotted(OLDEST)} to {dotted(NEWEST)}.",
        f"Install one of them, then: make lab PYTHON=/path/to/python{dotted(NEWEST)}",
    )


def virtual_environment(f: Facts) -> Judgement:
    if f.missing:
        cure = "python -m pip install -e . (in the project's folder)"
        if f.colab:
            cure = "%pip install " + " ".join(f.missing)
        elif f.venv and _same(f.prefix, f.venv):
            cure = REMAKE
        missing = f"missing here: {', '.join(f.missing)}"
        return problem(missing, "The chapters import these packages.", cure)
    if f.colab or not f.venv or _same(f.prefix, f.venv):
        return ok("all packages are installed")
    return note(
        f"this is {_short(f.prefix)}, not the project's .venv",
        "Packages may differ in version from those that the course was tested with.",
        "Start with `make lab`, or pick .venv/bin/python as the notebook's kernel.",
    )


def notebook_kernel(f: Facts) -> Judgement:
    if f.colab or f.kernel is None:
        return not_here("Colab chooses it" if f.colab else "no Jupyter kernel found")
    if _same(Path(f.kernel).parent.parent, f.prefix):
        return ok("notebooks run in this environment")
    return problem(
        f"new notebooks would start {_short(f.kernel)}",
        "Another Python has other packages: imports fail, or find other versions.",
        "Remove that kernel: jupyter kernelspec remove python3, then make lab",
    )


def imported_early(f: Facts) -> Judgement:
    if not f.early:
        return ok("utils came first")
    return problem(
        f"{' and '.join(f.early)} came before utils",
        "Without a GPU utils puts Numba and Triton on the CPU engines, which only works before "
        "they are imported.",
        "Kernel > Restart, then run the set-up cell first.",
    )


def disk_space(f: Facts) -> Judgement:
    free = f"{f.free_disk / 1e9:,.0f} GB free"
    if f.caches:
        free += f", {f.caches / 1e9:.1f} GB of builds and data kept (`make doctor CLEAR=1`)"
    if f.free_disk >= LEAST_DISK:
        return ok(free)
    return problem(
        free,
        "Builds, caches and downloads stop in the middle when the disk is full.",
        "Make room: `pip cache purge` and `docker system prune` often give gigabytes; then df -h .",
    )


# ---- GPU and driver


def gpu(f: Facts) -> Judgement:
    if f.cards:
        return ok(
            "; ".join(
                f"{c.name}, CC {dotted(c.capability)}, {c.memory / 2**30:.0f} GiB" for c in f.cards
            )
        )
    if _has_gpu(f):
        return ok(f"{len(f.pci) or 'an'} NVIDIA GPU{'s' if len(f.pci) > 1 else ''} in this machine")
    return not_here("no NVIDIA GPU: the course runs on the CPU")


def cpu_forced(f: Facts) -> Judgement:
    if not f.forced_cpu or not _has_gpu(f):
        return not_here(
            "CUDA_COURSE_CPU is not set" if not f.forced_cpu else "there is no GPU to leave out"
        )
    return note(
        "CUDA_COURSE_CPU is set",
        "Kernels run on the CPU engines although there is a GPU, and nothing is timed.",
        "unset CUDA_COURSE_CPU, then start the notebook again.",
    )


def driver(f: Facts) -> Judgement:
    if f.wsl and not f.libcuda and not f.container and not f.forced_cpu:
        return note(
            "Windows provides no NVIDIA driver",
            "WSL2 gets the driver's library (libcuda) from Windows, in /usr/lib/wsl/lib.",
            "If this computer has an NVIDIA GPU: install the driver in Windows "
            f"({DRIVER_DOWNLOAD}), none in Linux; then wsl --update and wsl --shutdown",
        )
    if not _expects_gpu(f):
        return not_here("no NVIDIA GPU")
    if _needs_restart(f):
        return ok("installed")  # driver_restart says what is wrong with it
    if f.container and not f.libcuda:
        return problem(
            "libcuda.so.1 is not in this container",
            "The driver lives on the host; a container gets its library and "
            "device files only if it is started with them.",
            "docker run --gpus all … (the host needs the driver and the NVIDIA Container Toolkit)",
        )
    if not f.loaded and not f.wsl and not f.cards:
        if f.container and f.libcuda:
            return problem(
                "the host's NVIDIA kernel module is not loaded",
                "A container uses the driver of its host.",
                "On the host: nvidia-smi must work first.",
            )
        if f.libcuda:
            why = (
                "Linux loaded nouveau instead, which has no CUDA."
                if f.nouveau
                else "A new Linux kernel needs the module built for it (DKMS), and Secure Boot "
                "loads signed modules alone."
            )
            return problem(
                "the driver is installed, its kernel module is not loaded",
                why,
                "sudo apt install --reinstall linux-headers-$(uname -r) nvidia-dkms-580 (your "
                "driver's number), restart; with Secure Boot enrol the key that it asks for",
            )
        return problem(
            "no NVIDIA driver",
            "A GPU without its driver cannot run anything.",
            f"Ubuntu: sudo ubuntu-drivers install, then restart. Others: {DRIVER_DOWNLOAD} (580 "
            "or newer)",
        )
    if not f.libcuda:
        return problem(
            "the kernel module is loaded, libcuda.so.1 is missing",
            "Programs reach the driver through that library; headless packages leave it out.",
            "sudo apt install libnvidia-compute-580 (your driver's number)",
        )
    return ok(
        f"{f.driver or f.loaded or 'installed'}"
        + (f", runs CUDA up to {dotted(f.cuda)}" if f.cuda else "")
    )


def driver_restart(f: Facts) -> Judgement:
    if not _expects_gpu(f):
        return not_here("no NVIDIA GPU")
    if not _needs_restart(f):
        return ok("library and kernel module agree")
    loaded = f" (module {f.loaded})" if f.loaded else ""
    if f.container:
        return problem(
            f"the host's driver was updated under this container{loaded}",
            "Its library in the container and the module in the host's kernel must be the same "
            "version.",
            "Stop the container and start it again.",
        )
    return problem(
        f"the driver was updated, the old module is still loaded{loaded}",
        'Library and kernel module must be the same version: "Driver/library version mismatch".',
        "Restart the computer.",
    )


def device_files(f: Facts) -> Judgement:
    if not _expects_gpu(f) or not f.nodes:
        return not_here("no /dev/nvidia files")
    closed = [name for name, usable in f.nodes if not usable]
    if not closed:
        return ok("readable and writable")
    return problem(
        f"no permission for {', '.join(closed)}",
        "Programs reach the GPU through these files.",
        f"ls -l {closed[0]} shows the group; then sudo usermod -aG video $USER (or that group), "
        "log out and in",
    )


def wsl_driver(f: Facts) -> Judgement:
    if not f.wsl or f.container:
        return not_here("not WSL2")
    if not f.linux_libcuda:
        return ok("libcuda comes from Windows")
    return problem(
        f"a Linux driver was installed: {f.linux_libcuda}",
        "It hides the library that Windows provides, and there is no kernel module for it to talk "
        "to.",
        "sudo apt purge 'nvidia-*' 'libnvidia-*' (and install toolkits as "
        "cuda-toolkit-13-0, never as `cuda`, which brings a driver); then wsl --shutdown",
    )


def cuda_starts(f: Facts) -> Judgement:
    if (
        not f.libcuda
        or not _expects_gpu(f)
        or _needs_restart(f)
        or not (f.loaded or f.cards or f.wsl)
    ):
        return not_here("needs a driver first")
    if f.cuinit == 0:
        return ok("cuInit answers 0")
    if f.cuinit == 34 or "stubs" in Path(f.libcuda).parts:
        return not_here("see library path")
    if f.linux_libcuda or not all(usable for _, usable in f.nodes):
        return not_here("see WSL2 driver" if f.linux_libcuda else "see device files")
    if f.cuinit == 100 and f.visible is not None and f.cards:
        return not_here("see visible GPUs")
    name, why, cure = CUINIT.get(
        f.cuinit,
        (f"error {f.cuinit}", "The driver could not start.", f"Search for cuInit error {f.cuinit}"),
    )
    return problem(f"cuInit answers {name}", why, cure)


def visible_gpus(f: Facts) -> Judgement:
    if not f.cards or f.forced_cpu:
        return not_here("no GPU")
    if f.visible is None:
        return ok("all (CUDA_VISIBLE_DEVICES is not set)")
    chosen = _chosen(f)
    if chosen:
        return ok(f"CUDA_VISIBLE_DEVICES={f.visible} shows {', '.join(c.name for c in chosen)}")
    if f.visible.startswith("MIG-"):
        return problem(
            "CUDA_VISIBLE_DEVICES names a MIG instance",
            "The course looks for it among the whole GPUs, finds none, and takes the CPU engines.",
            "unset CUDA_VISIBLE_DEVICES: CUDA then uses the first instance. Start the notebook "
            "again.",
        )
    return problem(
        f"CUDA_VISIBLE_DEVICES={f.visible!r} hides every GPU",
        f"There are {len(f.cards)}, numbered from 0; an empty or wrong number hides them all.",
        "unset CUDA_VISIBLE_DEVICES (or =0), then start the notebook again.",
    )


def gpu_memory(f: Facts) -> Judgement:
    if not _chosen(f):
        return not_here("no GPU")
    card = _chosen(f)[0]
    free = f"{card.free / 2**30:.1f} of {card.memory / 2**30:.1f} GiB free"
    if card.free >= LEAST_MEMORY:
        return ok(free)
    who = (
        ", ".join(f"process {pid} ({size / 2**30:.1f} GiB)" for pid, size in card.processes)
        or "processes that are not shown here"
    )
    return problem(
        f"{free}, used by {who}",
        'Allocations fail with "out of memory"; another notebook\'s kernel keeps its memory until '
        "it ends.",
        "Shut down other notebooks' kernels; nvidia-smi lists the processes, `kill <pid>` ends "
        "your own",
    )


def gpu_shared(f: Facts) -> Judgement:
    if not _chosen(f):
        return not_here("no GPU")
    card = _chosen(f)[0]
    if card.compute_mode == 2:
        return problem(
            "compute mode is Prohibited",
            "No process may compute on this GPU.",
            "sudo nvidia-smi -c 0",
        )
    if card.compute_mode == 3 and card.processes:
        return problem(
            f"process {card.processes[0][0]} has this GPU for itself",
            "In exclusive mode one process at a time may "
            'compute: "CUDA-capable device(s) is/are busy or unavailable".',
            "End that process, or sudo nvidia-smi -c 0",
        )
    if card.processes and card.free >= LEAST_MEMORY:
        return note(
            f"{len(card.processes)} other process{'es' * (len(card.processes) > 1)} "
            f"compute{'s' * (len(card.processes) < 2)} on this GPU",
            "Times measured meanwhile are not this course's alone.",
            "Measure when the GPU is yours.",
        )
    return ok("see GPU memory" if card.processes else "nobody else computes on it")


# ---- versions that must match


def nvcc(f: Facts) -> Judgement:
    if f.toolkits:
        return ok(f"{dotted(f.toolkits[0].release)} ({_short(f.toolkits[0].nvcc)})")
    cuda = _ready(f)
    if not cuda:
        return not_here("CUDA C is built by the C++ compiler here")
    if cuda < (13, 0):
        return problem(
            "no nvcc",
            f"CUDA C programs (%nvcc) need it, and for driver {f.driver} (CUDA {dotted(cuda)}) "
            "pip has none.",
            "Update the driver to 580 or newer, then make install; or install the CUDA 12 toolkit",
        )
    return problem(
        "no nvcc",
        "CUDA C programs (%nvcc) need it.",
        f"{REMAKE}; or put a toolkit's bin folder on the PATH: export "
        'PATH="/usr/local/cuda/bin:$PATH"',
    )


def nvcc_driver(f: Facts) -> Judgement:
    cuda = _ready(f)
    if not cuda or not f.toolkits:
        return not_here("needs a driver and nvcc")
    release = f.toolkits[0].release
    if release is None:
        return not_here("this nvcc does not say its version")
    if fits(cuda, release) != "nothing":
        return ok(f"nvcc {dotted(release)}, driver {dotted(cuda)}")
    known = ((kit, kit.release) for kit in f.toolkits[1:] if kit.release)
    older = next((kit for kit, its in known if fits(cuda, its) != "nothing"), None)
    return problem(
        f"nvcc {dotted(release)}, driver only {dotted(cuda)}",
        'Programs of a newer major version do not start: "CUDA driver '
        'version is insufficient for CUDA runtime version".',
        (f"Put {_short(Path(older.nvcc).parent)} first on the PATH, or u" if older else "U")
        + "pdate the driver",
    )


def ptx_driver(f: Facts) -> Judgement:
    cuda = _ready(f)
    if not cuda:
        return not_here("needs a driver")
    newer = [
        f"{name} {dotted(version)}"
        for name, version in versions(f).items()
        if name != "PyTorch" and fits(cuda, version) == "machine code"
    ]
    if not newer:
        return ok("the driver reads all PTX written here")
    return note(
        f"{', '.join(newer)}, driver {dotted(f.cuda)}",
        'PTX of a newer toolkit is refused: "the provided PTX was compiled with '
        'an unsupported toolchain". Machine code for this GPU runs.',
        "Update the driver; or "
        + " and ".join(
            (
                [f"compile for this GPU (nvcc -arch=sm_{_number(f)}, as %nvcc does)"]
                if newer[0].startswith("nvcc")
                else []
            )
            + (
                [f"give Numba the compiler of this driver ({REMAKE})"]
                if newer[-1].startswith("Numba")
                else []
            )
        ),
    )


def nvcc_gpu(f: Facts) -> Judgement:
    if not _ready(f) or not f.toolkits or not f.toolkits[0].builds_for:
        return not_here("needs a GPU and nvcc")
    card = _chosen(f)[0]
    kit = f.toolkits[0]
    number = _number(f)
    if number in kit.builds_for:
        return ok(f"nvcc {dotted(kit.release)} builds for sm_{number}")
    if number < min(kit.builds_for):
        return problem(
            f"nvcc {dotted(kit.release)} no longer builds for sm_{number}",
            f"{card.name} is older than all that it knows.",
            "Install the CUDA 12 toolkit, the last for Maxwell, Pascal and Volta",
        )
    return problem(
        f"nvcc {dotted(kit.release)} does not know sm_{number}",
        f'{card.name} is newer than this toolkit: "Unsupported gpu architecture".',
        "Update the driver, if need be, then make install, which brings nvcc 13; or put a newer "
        "toolkit first on the PATH",
    )


def torch_build(f: Facts) -> Judgement:
    if f.torch is None:
        return not_here("see environment")
    if f.torch.error:
        return problem(
            f"import torch fails: {f.torch.error}", "Half the chapters use PyTorch.", REMAKE
        )
    if f.torch.cuda or not _ready(f):
        return ok(f"{f.torch.version}")
    return problem(
        f"{f.torch.version} is a CPU build",
        'It cannot use the GPU: "Torch not compiled with CUDA enabled".',
        REMAKE if not f.colab else "Runtime > Disconnect and delete runtime, then a GPU runtime",
    )


def torch_driver(f: Facts) -> Judgement:
    cuda = _ready(f)
    if not cuda or not f.torch or not f.torch.cuda:
        return not_here("needs a driver and a CUDA build of PyTorch")
    if fits(cuda, f.torch.cuda) != "nothing":
        return ok(f"PyTorch {dotted(f.torch.cuda)}, driver {dotted(cuda)}")
    return problem(
        f"PyTorch is for CUDA {dotted(f.torch.cuda)}, driver only {dotted(cuda)}",
        '"The NVIDIA driver on your system is too old": PyTorch then says that there is no GPU.',
        f"Update the driver; or {REMAKE}, which picks the build for this driver",
    )


def torch_gpu(f: Facts) -> Judgement:
    if not _ready(f) or not f.torch or not f.torch.built_for:
        return not_here("needs a GPU and a CUDA build of PyTorch")
    card = _chosen(f)[0]
    if any(loads(arch, card.capability) != "not at all" for arch in f.torch.built_for):
        return ok(f"PyTorch has code for CC {dotted(card.capability)}")
    return problem(
        f"PyTorch has no code for CC {dotted(card.capability)}",
        f'It holds {" ".join(f.torch.built_for)}: "no kernel image is available for execution on '
        'the device".',
        "A newer GPU: a newer PyTorch. An older one: the CUDA 12.6 build, "
        "https://pytorch.org/get-started/locally/",
    )


def numba_compiler(f: Facts) -> Judgement:
    cuda = _ready(f)
    if not cuda:
        return not_here("needs a driver")
    if f.nvrtc is None:
        return problem(
            "no NVRTC",
            "Numba's kernels and cuda_c.load are compiled with CUDA's compiler library.",
            REMAKE,
        )
    if fits(cuda, f.nvrtc) == "nothing":
        return problem(
            f"NVRTC {dotted(f.nvrtc)}, driver only {dotted(cuda)}",
            "Its code does not load on this driver.",
            f"{REMAKE}, which picks the version for this driver; or update the driver",
        )
    return ok(f"NVRTC {dotted(f.nvrtc)}")


def host_compiler(f: Facts) -> Judgement:
    if f.compiler is None:
        return problem(
            "no C++ compiler",
            "nvcc hands the host's half of a program to g++, and without a GPU it builds all of "
            "it.",
            "sudo apt install g++ (Debian, Ubuntu, WSL2), sudo dnf install gcc-c++ (Fedora), "
            "xcode-select --install (macOS)",
        )
    name, major = f.compiler
    kit = f.toolkits[0] if f.toolkits else None
    newest = kit and (kit.newest_clang if name == "clang" else kit.newest_gcc)
    if not kit or not newest:
        return ok(f"{name} {major}")
    if major <= newest:
        return ok(f"{name} {major} (nvcc {dotted(kit.release)} takes up to {newest})")
    state = PROBLEM if _ready(f) else NOTE  # without a GPU nvcc only shows listings
    return Judgement(
        state,
        f"{name} {major}, nvcc {dotted(kit.release)} takes up to {newest}",
        f'"unsupported GNU version! gcc versions later than {newest} are not supported!"',
        f"sudo apt install g++-{newest}; then export NVCC_CCBIN=g++-{newest}"
        if name == "g++"
        else f"export NVCC_CCBIN=clang++-{newest}",
    )


def one_toolkit(f: Facts) -> Judgement:
    releases = sorted({t.release for t in f.toolkits if t.release})
    if len(releases) < 2:
        return ok("one CUDA version") if releases else not_here("no toolkit")
    return note(
        f"several: CUDA {', '.join(map(dotted, releases))}; nvcc is "
        f"{dotted(f.toolkits[0].release)}",
        "The first on the PATH is used; another program may find the other one's libraries.",
        "Keep one on the PATH; %nvcc prints the line that it runs",
    )


def library_path(f: Facts) -> Judgement:
    stubs = [folder for folder, _ in f.library_path if "stubs" in Path(folder).parts]
    if f.cuinit == 34 or (f.libcuda and "stubs" in Path(f.libcuda).parts):
        return problem(
            f"programs find a stub of libcuda{f' in {_short(stubs[0])}' if stubs else ''}",
            "Stubs are for linking on a machine without a driver; here one hides the real libcuda: "
            '"CUDA driver is a stub library".',
            "Take the stubs folder off LD_LIBRARY_PATH (look in ~/.bashrc)",
        )
    wanted = f.torch.cuda if f.torch else None
    other = [
        (folder, major)
        for folder, major in f.library_path
        if major and wanted and major != wanted[0]
    ]
    if not other:
        return ok("no CUDA library of another version on LD_LIBRARY_PATH")
    return note(
        f"LD_LIBRARY_PATH has {_short(other[0][0])}, of CUDA {other[0][1]}",
        f"Libraries there come before those that PyTorch (CUDA {dotted(wanted)}) and Numba were "
        "installed with.",
        "Take that folder off LD_LIBRARY_PATH: pip's packages find their own libraries",
    )


CHECKS: dict[str, Callable[[Facts], Judgement]] = {
    "Python": python_version,
    "packages": virtual_environment,
    "notebook kernel": notebook_kernel,
    "import order": imported_early,
    "disk": disk_space,
    "GPU": gpu,
    "CPU asked for": cpu_forced,
    "driver": driver,
    "driver restart": driver_restart,
    "WSL2 driver": wsl_driver,
    "device files": device_files,
    "CUDA starts": cuda_starts,
    "visible GPUs": visible_gpus,
    "GPU memory": gpu_memory,
    "GPU shared": gpu_shared,
    "C++ compiler": host_compiler,
    "nvcc": nvcc,
    "nvcc and driver": nvcc_driver,
    "nvcc and GPU": nvcc_gpu,
    "PTX and driver": ptx_driver,
    "PyTorch": torch_build,
    "PyTorch and driver": torch_driver,
    "PyTorch and GPU": torch_gpu,
    "Numba's compiler": numba_compiler,
    "one toolkit": one_toolkit,
    "library path": library_path,
}


# ---- what several checks ask


def _has_gpu(f: Facts) -> bool:
    """Whether there is any sign of an NVIDIA GPU, usable or not."""
    in_wsl = f.wsl and (f.libcuda or f.linux_libcuda)
    return bool(f.cards or f.pci or f.loaded or in_wsl)


def _expects_gpu(f: Facts) -> bool:
    """Whether the course should find a GPU here."""
    return _has_gpu(f) and not f.forced_cpu


def _needs_restart(f: Facts) -> bool:
    return f.nvml == NVML_LIB_RM_VERSION_MISMATCH or f.cuinit == CUDA_SYSTEM_DRIVER_MISMATCH


def _chosen(f: Facts) -> tuple[Card, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, in order, up to the first unknown entry."""
    if f.forced_cpu:
        return ()
    if f.visible is None:
        return f.cards
    chosen = []
    for word in (w.strip() for w in f.visible.split(",")):
        by_number = f.cards[int(word)] if word.isdigit() and int(word) < len(f.cards) else None
        card = by_number or next(
            (c for c in f.cards if word and not word.isdigit() and c.uuid.startswith(word)), None
        )
        if card is None:
            break
        chosen.append(card)
    return tuple(chosen)


def _number(f: Facts) -> int:
    """The capability of the GPU in use as nvcc writes it: 89 for 8.9."""
    major, minor = _chosen(f)[0].capability
    return 10 * major + minor


def _ready(f: Facts) -> Version | None:
    """The newest CUDA version of the driver, where it and a GPU work: others compare with it."""
    return f.cuda if f.cuinit == 0 and _chosen(f) else None


def _same(one: str | Path, other: str | Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _short(path: str | Path) -> str:
    """A path without the project's and the user's own folders."""
    for folder, name in ((ROOT, "."), (Path.home(), "~")):
        if Path(path).is_relative_to(folder):
            return f"{name}/{Path(path).relative_to(folder)}".removesuffix("/.")
    return str(path)
