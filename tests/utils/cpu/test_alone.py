"""The engines alone: what utils/cpu/pyproject.toml lists is all that kernelcpu needs, and enough.

By day the files are laid out as the wheel has them, in a Python in which `utils` and `course` are
not to be had; at night pip installs the package into a new environment.
"""

import ast
import json
import os
import re
import shutil
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

from tests.needs import cpp_compiler
from tests.processes import completed
from utils import kernelcpu
from utils.files import ROOT

PROJECT = ROOT / "utils" / "cpu" / "pyproject.toml"
USERS = Path(__file__).parent / "alone"
SETTINGS = tomllib.loads(PROJECT.read_text())
LISTED = SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
CHANGELOG = (PROJECT.parent / "CHANGELOG.md").read_text()
README = (PROJECT.parent / "README.md").read_text()
BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("utils", "course"):
            raise ModuleNotFoundError(f"{name} is not installed here", name=name)

sys.meta_path.insert(0, Blocked())
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A folder with the package's files, as the wheel has them."""
    folder = tmp_path_factory.mktemp("alone")
    for source, target in LISTED.items():
        path = PROJECT.parent / source
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, folder / target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(path, folder / target)
    (folder / "sitecustomize.py").write_text(BLOCKED)
    return folder


def modules(folder):
    """(module's name, whether it is a package, its syntax tree) of each file of the package."""
    for path in sorted((folder / "kernelcpu").rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        yield name, is_package, ast.parse(path.read_text(encoding="utf-8"))


def imported(name, is_package, tree):
    """What a module imports, at its head or inside a function: (full name, names or none)."""
    package = name.split(".") if is_package else name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*above, *filter(None, [node.module])])
            yield target, [alias.name for alias in node.names]


def test_every_import_is_of_the_package_or_declared(alone):
    ours = {name for name, *_ in modules(alone)}
    project = SETTINGS["project"]
    lines = [*project["dependencies"], *sum(project["optional-dependencies"].values(), [])]
    declared = {Requirement(line).name for line in lines}
    provides = {"cuda-core": "cuda", "nvidia-ml-py": "pynvml", "ipython": "IPython"}
    known = {provides.get(name, name) for name in declared} | set(sys.stdlib_module_names)
    strangers = []
    for name, is_package, tree in modules(alone):
        for target, names in imported(name, is_package, tree):
            if target.partition(".")[0] == "kernelcpu":
                if target not in ours:
                    strangers.append(f"{name} imports {target}")
                if target == "kernelcpu":  # its door is no one's way in from inside
                    strangers += [f"{name}: {n}" for n in names if f"{target}.{n}" not in ours]
            elif target.partition(".")[0] not in known:
                strangers.append(f"{name} imports {target}")
    assert len(ours) > 90
    assert strangers == []


def test_the_door_names_what_it_has():
    assert sorted(kernelcpu.__all__) == kernelcpu.__all__
    assert [name for name in kernelcpu.__all__ if not getattr(kernelcpu, name).__doc__] == []
    named = set(re.findall(r"kernelcpu\.(\w+)", README)) - {"__all__"}
    assert len(named) >= 10 and named <= {*kernelcpu.__all__}
    assert f"## {kernelcpu.__version__}\n" in CHANGELOG


def user(name, python=(sys.executable,), path="", folder=None):
    """What a program of tests/utils/cpu/alone prints as JSON."""
    environment = {**os.environ, "PYTHONPATH": str(path)}
    done = completed([*python, str(USERS / name)], env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def judge_numba(found):
    assert found["reversed"] and found["no race"] == [] and found["film"]
    (race,) = found["race"]
    assert race.startswith("RACE on tile[") and "tile[i] = a[i]" in race
    (beyond,) = found["beyond"]
    assert "OUT OF BOUNDS" in beyond and "reads a[64]" in beyond
    assert "index 64 is outside 'a'" in found["launched beyond"]
    # 64 floats in 8 sectors; every second of 128 touches 16, and uses 50 % of each
    assert found["sectors"] == [16, 8] and found["efficiency"] == 50
    assert found["of the course"] == []


def judge_triton(found):
    assert found["sum"] and "of 28 elements outside the tensor" in found["unguarded"]
    assert found["of the course"] == []


def judge_libraries(printed):
    a = (np.arange(64) * 37 % 64).reshape(8, 8).T.astype(float)  # cuBLAS counts down columns
    product = (a @ a)[0, 0]
    assert printed == f"{product:g} 1 {sum(range(32))} {sum(range(32, 64))}\n"


def test_numba_kernels_without_the_course(alone):
    judge_numba(user("numba_kernels.py", path=alone, folder=alone))


def test_triton_kernels_without_the_course(alone):
    pytest.importorskip("triton", reason="Triton exists for Linux only")
    judge_triton(user("triton_kernels.py", path=alone, folder=alone))


def command(folder, *words):
    """The command kernelcpu, in the Python without the course."""
    code = "import sys, kernelcpu; sys.exit(kernelcpu.main())"
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return completed([sys.executable, "-c", code, *words], env=environment, cwd=folder)


def test_a_program_in_cuda_c_and_its_race(alone):
    cpp_compiler()
    done = command(alone, "run", str(USERS / "racy.cu"), "--check")
    assert done.returncode == 1
    assert "racy.cu:5: error: two threads use the same global memory" in done.stderr


def test_a_command_that_cannot_be_done_says_why(alone):
    done = command(alone, "run", "missing.cu")
    assert done.returncode == 1 and "missing.cu: there is no such file" in done.stderr
    done = command(alone, "build", "missing.cu")
    assert done.returncode == 2 and "-o" in done.stderr
    assert command(alone, "--version").stdout == f"kernelcpu {kernelcpu.__version__}\n"
    assert "Cuda compiler driver" in command(alone, "nvcc", "--version").stdout


def test_what_comes_before_install_is_named(alone):
    code = "import triton, kernelcpu; kernelcpu.install()"
    pytest.importorskip("triton", reason="Triton exists for Linux only")
    environment = {**os.environ, "PYTHONPATH": str(alone)}
    done = completed([sys.executable, "-c", code], env=environment, cwd=alone)
    assert done.returncode == 0
    assert "triton was imported before kernelcpu.install()" in done.stderr


@pytest.mark.nightly("by day the same files are laid out without pip")
def test_pip_installs_it_alone(tmp_path):
    cpp_compiler()
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    done = completed([python, "-m", "pip", "install", "--quiet", str(PROJECT.parent)], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    judge_numba(user("numba_kernels.py", [python], folder=tmp_path))
    program = [tmp_path / "env" / "bin" / "kernelcpu", "run", str(USERS / "libraries.cu")]
    done = completed(program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    judge_libraries(done.stdout)
    # PyTorch and Triton are large: those of this environment serve, which has no `utils` there
    packages = sysconfig.get_path("purelib")
    judge_triton(user("triton_kernels.py", [python], path=packages, folder=tmp_path))
