"""Google Colab: bring the course to a machine that has Python packages of its own.

A notebook's set-up cell clones the course there; `import utils` then calls `set_up`, once a
session. Colab's own torch, Triton, NumPy and notebook packages are never touched. What compiles
kernels for the GPU comes at the tested versions, built for the CUDA major version that both the
driver and Colab's torch have: PTX of a newer one does not load.

Colab as looked up on 2026-11-20, for whoever keeps this working:
- Python 3.13 since 2026-08-25 (https://github.com/googlecolab/colabtools/issues/6081). "Change
  runtime version" still offers images with 3.12.
- A T4's driver was 580.82.07, CUDA 13.0, with torch 2.11.0+cu130, in October 2026. It was
  550.54.15, CUDA 12.4, beside a 12.5 toolkit when Numba's kernels failed with "Unsupported .version
  8.5" (https://github.com/googlecolab/colabtools/issues/5081).
- Packages, by date: https://github.com/googlecolab/backend-info (pip-freeze.gpu.txt,
  apt-list-gpu.txt). In June 2026 torch 2.11.0+cu128, NumPy 2.0.2, numba 0.60.0, numba-cuda 0.22.2,
  cuda-core 0.3.2, IPython 7.34.0, ipywidgets 7.7.1, nvcc 12.8.
- The kernel has `google.colab` imported before the first cell, starts in /content, and its machine
  is thrown away in the end.
"""

import importlib.metadata as metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from utils.engine import forced_cpu
from utils.setup import install
from utils.tools.diagnostics import LearnerError

ROOT = install.ROOT
OWN = {
    "torch",
    "triton",
    "numpy",
    "ipython",
    "ipykernel",
    "ipywidgets",
}  # Colab's: left as they are
# no older than the tested ones
KERNELS = (
    "llvmlite",
    "numba",
    "numba-cuda",
    "cuda-bindings",
    "cuda-core",
    "cuda-pathfinder",
)
NO_GPU = (
    "This Colab machine has no GPU, so kernels run on its CPU. For a GPU: Runtime > Change "
    "runtime type > T4 GPU, then run this cell again."
)


#: (newest CUDA version of the driver, oldest compute capability), as install.nvidia_driver says
Driver = tuple[tuple[int, int], tuple[int, int]] | None


def set_up() -> None:
    """Install what is missing, find nvcc, go to the chapters. Quick where nothing is missing.

    Raises LearnerError, with what to do, if pip cannot install something or a package was already
    in use at its old version.
    """
    os.chdir(ROOT / "chapters")
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    )
    driver = None if forced_cpu() else install.nvidia_driver()
    kind = cuda_kind(driver, version("torch"))
    if driver is None and not forced_cpu():
        print(NO_GPU)
    elif driver:
        prefer_nvcc(driver[0][0])
    if missing := unmet(requirements(kind, has_nvcc=bool(shutil.which("nvcc")))):
        pip_install(missing, kind)


def cuda_kind(driver: Driver, torch: str | None) -> str:
    """Which packages fit: "cpu", "cuda12" or "cuda13".

    driver: what `install.nvidia_driver` says. torch: Colab's version, such as "2.11.0+cu130"; None
        if it has none.
    """
    kind: str = install.choose(driver)[0]
    built = re.search(r"\+cu(\d\d)", torch or "")
    if kind == "cuda13" and built and built[1] == "12":
        return "cuda12"  # two majors in one process: two NVRTCs, two cudarts, and no end of riddles
    return kind


def prefer_nvcc(major: int, folder: Path = Path("/usr/local")) -> None:
    """Put the newest nvcc that the driver's CUDA major version allows first on the PATH."""
    fitting = [path for path in folder.glob("cuda-*/bin/nvcc") if release(path) < (major + 1,)]
    if fitting:
        os.environ["PATH"] = f"{max(fitting, key=release).parent}{os.pathsep}{os.environ['PATH']}"


def release(nvcc: Path) -> tuple[int, ...]:
    """(12, 8) for /usr/local/cuda-12.8/bin/nvcc."""
    return tuple(int(number) for number in re.findall(r"\d+", nvcc.parent.parent.name))


def requirements(kind: str, has_nvcc: bool) -> list[str]:
    """What the course needs on Colab, as pip writes it: dependencies but for Colab's own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [
        line
        for line in project["dependencies"]
        if name_in(line) not in OWN or not version(name_in(line))
    ]
    lines = [
        line for line in lines if not name_in(line).startswith("jupyterlab")
    ]  # Colab is the notebook here
    lines += [
        line
        for line in project["optional-dependencies"].get(kind, ())
        if not (has_nvcc and name_in(line) == "cuda-toolkit")
    ]
    tested = pins(kind)
    return lines + [f"{name}>={tested[name]}" for name in KERNELS]


def pins(kind: str) -> dict[str, str]:
    """{package: tested version} for this kind of machine."""
    lines = (ROOT / install.CONSTRAINTS[kind]).read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def unmet(lines: list[str]) -> list[str]:
    """Those of the requirements that are missing or too old here, or need something that is."""
    from packaging.requirements import Requirement

    def met(requirement: Requirement, extra: str = "", done: tuple[str, ...] = ()) -> bool:
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            return True
        installed = version(requirement.name)
        if not installed or not requirement.specifier.contains(installed, prereleases=True):
            return False
        return all(
            met(Requirement(line), each, (*done, requirement.name))
            for each in requirement.extras
            if requirement.name not in done
            for line in metadata.requires(requirement.name) or ()
        )

    return [line for line in lines if not met(Requirement(line))]


def pip_install(lines: list[str], kind: str) -> None:
    """Install these with pip: tested versions of what is missing, Colab's own as they are."""
    from packaging.version import Version

    limits = []
    for name, tested in pins(kind).items():
        installed = version(name)
        if not installed or name in KERNELS and Version(installed) < Version(tested):
            limits.append(f"{name}=={tested}")
    limits += [f"{name}=={version(name)}" for name in sorted(OWN) if version(name)]
    used = in_use()
    names = ", ".join(sorted({name_in(line) for line in lines}))
    print(f"Installing {names} (once for this Colab machine; about a minute)", flush=True)
    options = ["--quiet", "--no-input", "--disable-pip-version-check"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("\n".join(limits))
        constraints.flush()
        command = [sys.executable, "-m", "pip", "install", *options, "-c", constraints.name]
        pip = subprocess.run([*command, *lines], capture_output=True, text=True)
    if pip.returncode:
        raise LearnerError(install.reason(pip.stderr, "pip could not install the packages: %s"))
    importlib.invalidate_caches()
    if importlib.util.find_spec("_numba_cuda_redirector"):
        # as a new Python does: numba.cuda is numba-cuda's
        importlib.import_module("_numba_cuda_redirector")
    if used:
        raise LearnerError(
            f"{', '.join(used)} was in use before the course renewed it: "
            "Runtime > Restart session, then run this cell again"
        )


def in_use() -> list[str]:
    """What this kernel has imported already of the packages that compile kernels."""
    return sorted({"numba", "llvmlite", "cuda.bindings", "cuda.core"} & set(sys.modules))


def version(name: str) -> str | None:
    """The version of an installed package, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def name_in(line: str) -> str:
    """ "numba-cuda" of "numba-cuda[cu13]; sys_platform == 'linux'"."""
    name = re.match(r"[\w.-]+", line)
    if name is None:
        raise ValueError(f"{line!r} names no package")
    return name[0].lower()


def repository() -> str:
    """The course's public address, the one place where it stands."""
    address: str = _project()["urls"]["Repository"]
    return address


def tag() -> str:
    """The tag of this version of the course. Colab runs what it names, and nothing newer."""
    return f"v{_project()['version']}"


def notebook_address(path: str | Path) -> str:
    """Where Colab opens a notebook of the course; `path` is its path in the repository."""
    return (
        repository().replace("https://github.com/", "https://colab.research.google.com/github/")
        + f"/blob/{tag()}/{path}"
    )


def _project() -> dict:
    """What pyproject.toml says of the project."""
    project: dict = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project
