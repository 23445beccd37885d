"""The two commands of the README: what they install, what they say when they cannot, what makes
them fail.
"""

import ast
import errno
import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
import types
from pathlib import Path
from unittest.mock import Mock

import nbformat.v4
import psutil
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.processes import completed
from utils.files import ROOT
from utils.setup.lock import with_versions_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def pins(name):
    """{package: version} of a constraints file."""
    lines = [line.split("#")[0].strip() for line in (ROOT / name).read_text().splitlines()]
    requirements = [Requirement(line) for line in lines if line]
    assert all(re.fullmatch(r"==[^*,]+", str(each.specifier)) for each in requirements), (
        "every pin is exact"
    )
    names = [canonicalize_name(each.name) for each in requirements]
    assert len(names) == len(set(names)), "no package is pinned twice"
    return {name: str(each.specifier)[2:] for name, each in zip(names, requirements, strict=True)}


@pytest.fixture
def install():
    """A fresh copy of the installer's module."""
    spec = importlib.util.spec_from_file_location(
        "install_under_test", ROOT / "utils" / "setup" / "install.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(install, tmp_path, monkeypatch):
    """The installer, at work in a copy of the project that has nothing but what the installer
    reads.
    """
    for name in ("pyproject.toml", "constraints.txt", "constraints-cuda12.txt"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "locks", tmp_path / "locks")
    (tmp_path / "utils" / "setup").mkdir(parents=True)
    shutil.copy(ROOT / "utils" / "setup" / "install.py", tmp_path / "utils" / "setup")
    monkeypatch.setattr(install, "ROOT", tmp_path)
    for name in ("VENV", "VENV_PYTHON", "STAMP", "LOG", "SCRATCH"):
        monkeypatch.setattr(install, name, tmp_path / getattr(install, name).relative_to(ROOT))
    monkeypatch.setattr(install, "nvidia_driver", lambda: None)
    return install


# ---- one set of versions


@pytest.mark.parametrize(
    "extra, constraints",
    [
        ("cuda13", "constraints.txt"),
        ("libraries", "constraints.txt"),
        ("cuda12", "constraints-cuda12.txt"),
    ],
)
def test_every_dependency_is_pinned_to_a_version_that_it_allows(extra, constraints):
    pinned = pins(constraints)
    optional = PROJECT["optional-dependencies"]
    for line in PROJECT["dependencies"] + optional["test"] + optional["site"] + optional[extra]:
        requirement = Requirement(line)
        assert pinned[canonicalize_name(requirement.name)] in requirement.specifier, line


def test_both_sets_differ_only_in_what_is_built_for_cuda():
    default, cuda12 = pins("constraints.txt"), pins("constraints-cuda12.txt")
    differ = {
        name for name in default.keys() | cuda12.keys() if default.get(name) != cuda12.get(name)
    }
    others = {name for name in differ if not name.startswith(("nvidia-", "cuda-"))}
    # the extra `libraries` needs CUDA 13
    libraries = {"apache-tvm-ffi", "cupy-cuda13x", "nvmath-python", "protobuf"}
    # appnope: macOS alone, which has no CUDA
    by_right = {"appnope", "torch", "triton"} | libraries
    assert others == by_right, (
        f"not alike in both files, run `make lock`: {sorted(others ^ by_right)}"
    )
    assert (default["torch"], cuda12["torch"]) == ("2.13.0", "2.10.0")


def test_make_lock_takes_versions_over_but_not_cudas():
    default = "# 13\nrich==2.0\ntorch==2.13.0\ncuda-toolkit==13.0\nappnope==1\n"
    other = "# 12\nrich==1.0\ntorch==2.10.0\ncuda-toolkit==12.8  # why\nodd==3\n"
    assert with_versions_of(default, other) == other.replace("rich==1.0", "rich==2.0")
    ours = [(ROOT / name).read_text() for name in ("constraints.txt", "constraints-cuda12.txt")]
    assert with_versions_of(*ours) == ours[1]


def test_no_compiler_is_newer_than_the_oldest_driver_of_its_major_version():
    """PTX newer than the driver does not load: all that writes PTX is of one release, PyTorch's
    own.
    """
    default, cuda12 = pins("constraints.txt"), pins("constraints-cuda12.txt")
    for name in ("nvidia-cuda-nvcc", "nvidia-cuda-nvrtc", "nvidia-nvvm", "nvidia-nvjitlink"):
        assert default[name].startswith("13.0."), name
    for name in ("nvidia-cuda-nvcc-cu12", "nvidia-cuda-nvrtc-cu12", "nvidia-nvjitlink-cu12"):
        assert cuda12[name].startswith("12.8."), name


def test_the_installed_packages_are_the_pinned_ones():
    """All of them: also what the dependencies themselves need."""
    torch = importlib.metadata.version("torch").split("+")[0]
    pinned = next(
        each
        for each in map(pins, ("constraints.txt", "constraints-cuda12.txt"))
        if each["torch"] == torch
    )
    lines = (
        PROJECT["dependencies"]
        + PROJECT["optional-dependencies"]["test"]
        + PROJECT["optional-dependencies"]["site"]
    )
    wrong, seen = [], set()
    waiting = [(Requirement(line), "") for line in lines]
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        if not wanted or (name, extra) in seen:
            continue
        seen.add((name, extra))
        version = importlib.metadata.version(name).split("+")[0]
        if pinned.get(name) != version:
            wrong.append(f"{name}: {version} is installed, {pinned.get(name)} is pinned")
        for line in importlib.metadata.requires(name) or []:
            waiting += [(Requirement(line), each) for each in requirement.extras or {""}]
    assert wrong == [], "`make install` brings them in step"


@pytest.mark.parametrize("kind", ["cpu", "cuda12", "cuda13"])
def test_every_pin_has_its_files(install, kind):
    """`make lock` was run after the last change of the pins: same versions, all with SHA-256."""
    listed = lock(kind)
    pinned = pins(install.CONSTRAINTS[kind])
    systems = ["linux", "darwin"] if kind == "cpu" else ["linux"]  # CUDA has no macOS
    for name, (requirement, hashes) in listed.items():
        places = [{"sys_platform": system, "os_name": "posix"} for system in systems]
        if requirement.marker and not any(map(requirement.marker.evaluate, places)):
            continue  # of Windows
        assert str(requirement.specifier) == f"=={pinned.get(name)}", f"{name}: run `make lock`"
        assert hashes and all(re.fullmatch(r"[0-9a-f]{64}", each) for each in hashes), name


@pytest.mark.parametrize("kind", ["cpu", "cuda12", "cuda13"])
def test_the_files_are_of_all_that_is_asked_for(kind):
    """What pyproject.toml names stands in the list, and what builds the course itself."""
    listed = lock(kind)
    optional = PROJECT["optional-dependencies"]
    lines = PROJECT["dependencies"] + optional["test"] + optional["site"] + optional.get(kind, [])
    wanted = {canonicalize_name(Requirement(line).name) for line in lines}
    assert wanted | {"setuptools"} <= listed.keys(), "run `make lock`"


def lock(kind):
    """{package: (its line, its files' digests)} of a list of files."""
    text = (ROOT / "locks" / f"{kind}.txt").read_text().replace("\\\n", " ")
    found = {}
    for line in filter(lambda line: line and line[0] != "#", text.splitlines()):
        wanted, *hashes = line.split("--hash=sha256:")
        requirement = Requirement(wanted)
        found[canonicalize_name(requirement.name)] = requirement, [each.strip() for each in hashes]
    return found


def test_conda_users_get_the_same():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = [each for each in environment["dependencies"] if isinstance(each, str)]
    pip = next(each["pip"] for each in environment["dependencies"] if isinstance(each, dict))
    assert pip == [
        "-c constraints.txt",
        "-e .[test,site]",
    ]  # the very line that `make lab` gives to pip
    python = next(each for each in conda if each.startswith("python="))
    assert SpecifierSet(PROJECT["requires-python"]).contains(python.removeprefix("python="))
    named = {canonicalize_name(re.split("[=<>]", each)[0]) for each in conda}
    assert not named & pins("constraints.txt").keys(), (
        "a package has one source, and its version one place"
    )


def test_the_installer_knows_which_python_is_needed(install):
    allowed = SpecifierSet(PROJECT["requires-python"])
    (major, oldest), (_, newest) = install.OLDEST, install.NEWEST
    inside = {minor for minor in range(30) if allowed.contains(f"{major}.{minor}.0")}
    assert inside == set(range(oldest, newest + 1))


def test_an_old_python_can_read_the_installer():
    """Else it would end with a syntax error instead of saying which Python is needed."""
    tree = ast.parse((ROOT / "utils" / "setup" / "install.py").read_text(), feature_version=(3, 6))
    first = tree.body[1]
    assert isinstance(first, ast.ImportFrom) and first.module == "__future__", "for Python 2"
    newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Nonlocal, ast.AsyncFunctionDef)
    assert not [node for node in ast.walk(tree) if isinstance(node, newer)]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.arg) and node.annotation]


# ---- which machine gets what


@pytest.mark.parametrize(
    "driver, kind, said",
    [
        (None, "cpu", "no NVIDIA GPU"),
        (((13, 0), (9, 0)), "cuda13", "CUDA 13 with nvcc"),  # driver 580
        (((13, 2), (12, 0)), "cuda13", "CUDA 13 with nvcc"),
        (((13, 0), (7, 5)), "cuda13", "CUDA 13 with nvcc"),
        (((13, 0), (7, 0)), "cuda12", "the last for this GPU"),  # Volta under a new driver
        (((13, 0), (6, 1)), "cuda12", "PyTorch has no kernels for this GPU"),  # Pascal
        (((12, 9), (8, 9)), "cuda12", "from 580 on"),  # driver 575
        (((12, 0), (8, 9)), "cuda12", "from 580 on"),  # driver 525
        (((11, 8), (8, 6)), "cpu", "update the driver to 580"),  # driver 520
    ],
)
def test_the_driver_decides(install, driver, kind, said):
    chosen, about = install.choose(driver)
    assert chosen == kind and said in about


FAKE_DRIVER = """
int cuInit(unsigned flags) { return RESULT; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDeviceGetCount(int *count) { *count = DEVICES; return 0; }
int cuDeviceGetAttribute(int *value, int what, int device) {
    int capability = device ? 75 : 89;
    *value = what == 75 ? capability / 10 : capability % 10;
    return 0;
}
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("gcc"), reason="builds a libcuda with gcc"
)
@pytest.mark.parametrize(
    "result, devices, answer",
    [
        (0, 2, "((12, 4), (7, 5))"),
        (0, 0, "None"),
        (100, 1, "None"),  # CUDA_ERROR_NO_DEVICE
    ],
)
def test_the_driver_is_asked(tmp_path, result, devices, answer):
    """A driver for CUDA 12.4 with GPUs of capability 8.9 and 7.5, one without a GPU, one that
    fails.
    """
    (tmp_path / "fake.c").write_text(FAKE_DRIVER)
    subprocess.run(
        [
            "gcc",
            "-shared",
            "-fPIC",
            f"-DRESULT={result}",
            f"-DDEVICES={devices}",
            "fake.c",
            "-o",
            "libcuda.so.1",
        ],
        cwd=tmp_path,
        check=True,
    )
    code = (
        "import runpy; "
        f"print(runpy.run_path({str(ROOT / 'utils/setup/install.py')!r})['nvidia_driver']())"
    )
    run = completed(
        [sys.executable, "-c", code], env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    )
    assert run.stdout.strip() == answer, run.stderr


# ---- what goes wrong on a fresh machine


def message(install):
    """What the installer says when it gives up: one line."""
    with pytest.raises(SystemExit) as stopped:
        install.main()
    text = stopped.value.code
    assert text.startswith("error: ") and "\n" not in text
    return text


@pytest.mark.parametrize("version", [(3, 8, 18), (3, 10, 13), (3, 14, 0)])
def test_a_python_too_old_or_too_new_is_named(project, monkeypatch, version):
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setenv("PATH", "")
    said = message(project)
    assert "Python 3.11 to 3.13 is needed" in said and f"this is 3.{version[1]}" in said


def test_a_right_python_beside_a_wrong_one_is_used(project, monkeypatch, tmp_path):
    other = tmp_path / f"python3.{sys.version_info[1]}"
    other.symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "version_info", (3, 9, 0))
    assert project.right_python() == str(other)


def test_no_venv_module(project, monkeypatch, tmp_path):
    bare = tmp_path / "python3"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    monkeypatch.setattr(project, "right_python", lambda: str(bare))
    assert "no venv module" in (said := message(project)) and "apt install python3-venv" in said


def test_an_environment_of_another_folder_is_not_emptied(project, tmp_path):
    """`.venv` may be a link to somebody's: to make that anew would empty it."""
    theirs = tmp_path / "theirs" / "kept"
    theirs.mkdir(parents=True)
    project.VENV.symlink_to(theirs.parent)
    assert "remove the link" in message(project)
    assert theirs.exists()


def test_a_disk_too_small_is_noticed_before_anything_is_written(project, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: types.SimpleNamespace(free=10**9))
    needed = project.GIGABYTES["cpu"]
    assert f"not enough disk space: {needed} GB are needed, 1.0 GB free" in message(project)
    assert not project.VENV.exists()


def stand_in_for_pip(install, monkeypatch, script, settings=""):
    """Let .venv's Python be a shell script, so that `pip install` does what a test needs.

    settings: what `pip config list` prints. Whatever is imported works.
    """
    install.VENV_PYTHON.parent.mkdir(parents=True)
    answers = f"""\
case "$*" in
    *"pip config list") echo {shlex.quote(settings)}; exit 0;;
    "-c import"*) exit 0;;
esac
"""
    install.VENV_PYTHON.write_text("#!/bin/sh\n" + answers + script)
    install.VENV_PYTHON.chmod(0o755)
    monkeypatch.setattr(install, "make_venv", lambda kind: None)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # without a uv


UNREACHABLE = """WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError:
Failed to establish a new connection: [Errno -3] Temporary failure in name resolution'
ERROR: No matching distribution found for numpy==2.4.6"""


@pytest.mark.parametrize(
    "complaint, said",
    [
        ("ERROR: Could not install packages: [Errno 28] No space left on device", "disk is full"),
        (UNREACHABLE, "check the network"),
        ("ERROR: No matching distribution found for setuptools>=77", "check the network"),
        ("ERROR: No matching distribution found for torch==2.13.0", "no build of torch==2.13.0"),
        ("ERROR: something new", "ERROR: something new (all of it: "),
        ("ERROR: new\n\nnote: This error originates from a subprocess", "ERROR: new (all of it: "),
        ("ERROR: DO NOT MATCH THE HASHES ...\n    x==1 from https://...", "x==1 is another file"),
        ("ERROR: [Errno 13] Permission denied: 'bin'", "belongs to somebody else"),
    ],
    ids=[
        "disk full",
        "no network",
        "no index",
        "no build",
        "unknown",
        "closing note",
        "tampered",
        "not ours",
    ],
)
def test_pips_complaint_becomes_one_line(project, monkeypatch, complaint, said):
    stand_in_for_pip(project, monkeypatch, f"echo {shlex.quote(complaint)} >&2; exit 1\n")
    assert said in message(project)
    assert not project.STAMP.exists()
    assert project.LOG.read_text().strip() == complaint


@pytest.mark.nightly("by day what pip says without a network becomes the same line")
def test_no_network_for_real(tmp_path, project):
    """The whole installer, with a package index at a port where nobody answers."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        index = f"http://127.0.0.1:{closed.getsockname()[1]}/simple"
        env = {
            **os.environ,
            "PIP_INDEX_URL": index,
            "PIP_EXTRA_INDEX_URL": "",
            "PIP_FIND_LINKS": "",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_RETRIES": "0",
            "PIP_NO_CACHE_DIR": "1",
        }
        run = completed(
            [sys.executable, "-E", "-s", "utils/setup/install.py"], cwd=tmp_path, env=env
        )
    assert run.returncode == 1
    assert run.stderr.splitlines() == [
        "error: packages cannot be downloaded: check the network (or proxy), then run it again"
    ]


def test_only_what_changed_is_installed_again(project, monkeypatch, tmp_path, capsys):
    stand_in_for_pip(project, monkeypatch, 'echo "$@" >> pip.txt\n')

    def installs():
        return (tmp_path / "pip.txt").read_text().count("-e .")

    project.main()
    said = (tmp_path / "pip.txt").read_text()
    assert "--no-deps --require-hashes -r locks/cpu.txt" in said
    assert "--no-deps --no-build-isolation -e ." in said
    project.main()
    assert installs() == 1, "nothing changed"
    with open(tmp_path / "constraints.txt", "a") as file:
        file.write("# another pin\n")
    project.main()
    assert installs() == 2, "the pins changed"
    monkeypatch.setattr(project, "nvidia_driver", lambda: ((13, 0), (9, 0)))
    project.main()
    assert installs() == 3, "a GPU came"
    assert "-r locks/cuda13.txt" in (tmp_path / "pip.txt").read_text()
    project.STAMP.unlink()
    project.main()
    assert installs() == 4, "an interrupted installation is taken up again"


@pytest.mark.parametrize(
    "setting", [":env:.find-links='/wheels'", "global.extra-index-url='https://example.org/simple'"]
)
def test_places_of_ones_own_may_hold_other_builds(project, monkeypatch, tmp_path, setting, capsys):
    stand_in_for_pip(project, monkeypatch, 'echo "$@" >> pip.txt\n', setting)
    project.main()
    assert "-c constraints.txt -e .[test,site]" in (tmp_path / "pip.txt").read_text()
    assert "versions are checked, files are not" in capsys.readouterr().out


def test_uv_is_used_where_it_is(project, monkeypatch, tmp_path):
    stand_in_for_pip(project, monkeypatch, 'echo "$@" >> pip.txt\n')
    uv = tmp_path / "uv"
    uv.write_text('#!/bin/sh\necho "$@" >> uv.txt\n')
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    project.main()
    said = (tmp_path / "uv.txt").read_text()
    assert f"--python {project.VENV_PYTHON} --no-deps --require-hashes -r locks/cpu.txt" in said
    assert not (tmp_path / "pip.txt").exists()
    uv.write_text("#!/bin/sh\nexit 2\n")
    project.STAMP.unlink()
    project.main()
    assert "-r locks/cpu.txt" in (tmp_path / "pip.txt").read_text(), "what uv cannot, pip tries"


def test_settings_that_send_packages_elsewhere_do_not_reach_pip(project, monkeypatch, tmp_path):
    stand_in_for_pip(project, monkeypatch, "env >> env.txt\n")
    for name in ("PIP_PREFIX", "PIP_TARGET", "PIP_ROOT"):
        monkeypatch.setenv(name, "/elsewhere")
    project.main()
    assert "/elsewhere" not in (tmp_path / "env.txt").read_text()


@pytest.mark.parametrize(
    "settings, said",
    [
        ("global.prefix='/elsewhere'", "because its settings say so (prefix)"),
        ("", "do not work: ModuleNotFoundError: No module named 'torch'"),
    ],
)
def test_installed_is_said_when_it_is_so(project, monkeypatch, settings, said):
    """pip ended well, and the packages cannot be imported."""
    stand_in_for_pip(project, monkeypatch, "exit 0\n", settings)
    missing = "echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1"
    program = project.VENV_PYTHON.read_text()
    works = '"-c import"*) exit 0'
    project.VENV_PYTHON.write_text(program.replace(works, works.replace("exit 0", missing)))
    assert said in message(project)
    assert not project.STAMP.exists()


def test_what_is_unpacked_on_the_way_is_gone_at_the_end(project, monkeypatch, tmp_path):
    """Also what a killed installation left; and the next one does not find it."""
    (project.SCRATCH / "pip-unpack-1").mkdir(parents=True)
    unpack = 'ls "$TMPDIR" >> before.txt; echo torch > "$TMPDIR/torch.whl"; exit $FAILS\n'
    stand_in_for_pip(project, monkeypatch, unpack)
    monkeypatch.setenv("FAILS", "1")
    message(project)
    assert not project.SCRATCH.exists()
    monkeypatch.setenv("FAILS", "0")
    project.main()
    assert not project.SCRATCH.exists()
    assert (tmp_path / "before.txt").read_text().split() == ["torch.whl"], "one run, two steps"


def package(folder, name, record, *others):
    """A package's folder of facts, beside a module of three bytes."""
    facts = folder / f"{name}-1.dist-info"
    facts.mkdir(parents=True)
    (folder / f"{name}.py").write_text("a=1")
    for other in others:
        (facts / other).write_text("")
    if record is not None:
        (facts / "RECORD").write_text(record.format(name=name))
    return facts


def test_packages_that_were_left_half_way_come_again(project):
    """What pip and uv would take for installed, because its folder of facts is there."""
    folder = project.VENV / "lib/python3.11/site-packages"
    whole = package(folder, "whole", "{name}.py,,3\n{name}-1.dist-info/RECORD,,\n", "INSTALLER")
    torn = [
        package(folder, "unlisted", None, "METADATA", "INSTALLER"),
        package(folder, "no_programs_yet", "{name}.py,,3\n", "METADATA"),
        package(folder, "missing", "{name}.py,,3\nnot_there.py,,5\n", "INSTALLER"),
        package(folder, "cut", "{name}.py,,4\n", "INSTALLER"),
        package(folder, "~umpy", None, "METADATA"),
    ]
    project.forget_torn()
    assert whole.is_dir() and [each for each in torn if each.exists()] == []


def test_an_environment_that_was_moved_is_made_anew(project, monkeypatch):
    """Its programs (pip, jupyter) name the folder that they were made in."""
    made = []
    monkeypatch.setattr(project, "works", lambda *command: True)
    monkeypatch.setattr(
        project.subprocess,
        "run",
        lambda command, **_: made.append(command) or types.SimpleNamespace(returncode=0),
    )
    pip = project.VENV / "bin" / "pip"
    pip.parent.mkdir(parents=True)
    pip.write_text(f"#!{project.VENV_PYTHON}")
    project.make_venv("cpu")
    assert made == [], "the same folder"
    pip.write_text("#!/before/the/move/.venv/bin/python")
    project.make_venv("cpu")
    assert made[0][1:] == ["-m", "venv", "--clear", str(project.VENV)]


def test_an_interpreter_that_may_not_be_looked_at(project, monkeypatch):
    """.venv's Python lies in another user's home: no traceback, but an environment of one's own."""

    def refused(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refused)
    assert project.text_of(project.STAMP) == ""
    assert project.up_to_date("cpu 0\n") is False


def test_a_second_installation_waits_for_the_first(project, tmp_path):
    """In two processes: the second one's beginning comes after the first one's end, which does not
    come before the second waits.
    """
    log = tmp_path / "log"
    code = (
        "import importlib.util, pathlib, sys, time\n"
        f"path = {str(ROOT / 'utils/setup/install.py')!r}\n"
        "spec = importlib.util.spec_from_file_location('install', path)\n"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)\n"
        f"module.ROOT = {str(tmp_path)!r}\n"
        "with module.alone():\n"
        "    print('begin', flush=True)\n"
        f"    while 'waiting' not in pathlib.Path({str(log)!r}).read_text(): time.sleep(0.01)\n"
        "    print('end', flush=True)\n"
    )
    with open(log, "a") as out:
        running = [subprocess.Popen([sys.executable, "-c", code], stdout=out) for _ in range(2)]
        assert [each.wait() for each in running] == [0, 0]
    lines = log.read_text().splitlines()
    assert [line for line in lines if line in ("begin", "end")] == ["begin", "end"] * 2
    assert sum("waiting for its end" in line for line in lines) == 1


KILLED = """
import importlib.util
spec = importlib.util.spec_from_file_location("install", {path!r})
module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)
module.ROOT = {root!r}
if not {dies!r}:
    module.end_with_parent = lambda: None
with module.alone():
    module.supervised(["sh", "-c", {pip!r}])
"""
LOADS = """
import importlib.util, pathlib
spec = importlib.util.spec_from_file_location("install", {path!r})
module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)
module.SCRATCH = pathlib.Path({scratch!r})
"""
# Ends when it is told to
PIP = "echo $$; echo begin >> log; while [ ! -e go ]; do sleep 0.01; done; echo end >> log"


@pytest.mark.parametrize("dies", [sys.platform == "linux", False], ids=["as here", "as on macOS"])
def test_a_killed_installation_leaves_no_pip_that_another_meets(
    project, tmp_path, dies, monkeypatch
):
    """Its pip ends with it, or the next installation waits until it has ended."""
    path = str(ROOT / "utils/setup/install.py")
    code = KILLED.format(path=path, root=str(tmp_path), dies=dies, pip=PIP)
    said = []

    def go_on(words, **_):
        said.append(words)
        (tmp_path / "go").touch()

    if not dies:
        monkeypatch.setattr(project, "print", go_on, raising=False)
    first = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE)
    pip = int(first.stdout.readline())
    log = tmp_path / "log"
    while not log.exists():
        time.sleep(0.01)
    first.kill()
    first.wait()
    with project.alone():
        assert dies or log.read_text().split() == ["begin", "end"]
    while dies and psutil.pid_exists(pip):  # who never ends is stopped by the test's time limit
        time.sleep(0.01)
    first.stdout.close()
    assert log.read_text().split() == (["begin"] if dies else ["begin", "end"])
    assert dies or "waiting for its end" in said[0]


def test_where_there_are_no_locks_nobody_is_sure_to_be_alone(project, tmp_path, monkeypatch):
    monkeypatch.setattr(project, "ROOT", tmp_path)
    with project.alone() as is_alone:
        assert is_alone
    monkeypatch.setattr(project.fcntl, "flock", Mock(side_effect=OSError(errno.ENOLCK, "no locks")))
    with project.alone() as is_alone:
        assert not is_alone


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_an_installation_does_not_end_itself(project):
    code = LOADS + "module.end_orphans(); print('here')"
    path, mark = str(ROOT / "utils/setup/install.py"), {"TMPDIR": str(project.SCRATCH)}
    command = [sys.executable, "-c", code.format(path=path, scratch=str(project.SCRATCH))]
    done = completed(command, env={**os.environ, **mark})
    assert (done.returncode, done.stdout) == (0, "here\n"), done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_what_a_killed_pip_had_started_ends_before_the_next_one(project):
    """A grandchild: the kernel ends only what the installer itself started."""
    project.SCRATCH.mkdir(parents=True)
    command = ["sh", "-c", "echo; read -r _"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    orphan = subprocess.Popen(command, env={"TMPDIR": str(project.SCRATCH)}, **pipes)
    other = subprocess.Popen(command, env={"TMPDIR": str(project.SCRATCH) + "2"}, **pipes)
    for process in (orphan, other):
        process.stdout.readline()  # it runs, with its environment
    (project.SCRATCH / "unpacked").touch()
    with project.scratch(is_alone=False):
        pass
    assert orphan.poll() is None and (project.SCRATCH / "unpacked").exists()
    with project.scratch(is_alone=True):
        assert orphan.wait() == -signal.SIGKILL
    assert other.poll() is None and not project.SCRATCH.exists()
    other.communicate(b"\n")
    orphan.communicate()


def test_who_may_not_be_alone_unpacks_apart_and_leaves_nothing(project):
    with project.scratch(is_alone=False):
        own = Path(project.environment()["TMPDIR"])
        assert own.is_dir() and own.parent == project.SCRATCH
        (own / "unpacked").touch()
        (project.SCRATCH / "another's").touch()
    assert [path.name for path in project.SCRATCH.iterdir()] == ["another's"]
    (project.SCRATCH / "another's").unlink()
    with project.scratch(is_alone=False):
        pass
    assert not project.SCRATCH.exists()
    assert project.environment().get("TMPDIR") == os.environ.get("TMPDIR")


def test_jupyterlab_does_not_open_with_a_question(project):
    project.settle_lab()
    written = json.loads((project.VENV / "share/jupyter/lab/settings/overrides.json").read_text())
    jupyter = Path(sys.prefix) / "share/jupyter"
    for plugin, settings in written.items():
        package, name = plugin.split(":")
        core, added = (
            folder / "schemas" / package / f"{name}.json"
            for folder in (jupyter / "lab", jupyter / "labextensions" / package)
        )
        known = json.loads((core if core.exists() else added).read_text())["properties"]
        assert settings.keys() <= known.keys(), "JupyterLab has a setting of this name"


def test_jupyterlab_gets_the_course_s_extension_and_its_changes(project):
    project.settle_lab()
    extension = project.VENV / "share/jupyter/labextensions/cuda-course"
    build = json.loads((extension / "package.json").read_text())["jupyterlab"]["_build"]
    assert "window._JUPYTERLAB" in (extension / build["load"]).read_text()
    (extension / build["load"]).write_text("of an older version of the course")
    project.settle_lab()
    assert "window._JUPYTERLAB" in (extension / build["load"]).read_text()


@pytest.mark.nightly("by day environments of all states are judged, and none is made")
def test_a_broken_environment_is_made_anew(project, monkeypatch):
    project.VENV_PYTHON.parent.mkdir(parents=True)
    project.VENV_PYTHON.symlink_to("/nowhere/python3")  # as after an upgrade of the system's Python
    project.make_venv("cpu")
    assert project.works(str(project.VENV_PYTHON), "-m", "pip", "--version")
    (project.VENV / "kept").touch()
    project.make_venv("cpu")
    assert (project.VENV / "kept").exists(), "one that works is kept"
    project.STAMP.write_text("cuda13 0\n")
    supervised = Mock(return_value=Mock(returncode=0))  # the real one takes seconds, see above
    monkeypatch.setattr(project, "supervised", supervised)
    project.make_venv("cpu")
    assert "--clear" in supervised.call_args[0][0], "PyTorch for a GPU that is gone is not"


# ---- make test


def recipe(target, tool):
    """The line of a Makefile target that runs the tool, in words, with this Python for .venv's."""
    dry = completed(["make", "-n", target], cwd=ROOT, check=True)
    path, python, *words = shlex.split(
        next(line for line in dry.stdout.splitlines() if f"-m {tool}" in line)
    )
    assert path.startswith(f"PATH={ROOT}/.venv/bin:") and python == ".venv/bin/python"
    return [sys.executable, *words]


def outer_environment():
    """The environment without the marks of the pytest that runs this."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "COV_"))
    }


def notebook(path, *cells):
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    cells = [nbformat.v4.new_code_cell(each) for each in cells]
    made = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    path.write_text(nbformat.v4.writes(made))


@pytest.mark.nightly("pytest, nbval and xdist notice it, with flags that no day changes")
def test_notebooks_that_fail_die_or_hang_fail_the_run(tmp_path):
    """With the very flags of `make test`, but for a cell's time-out, and one worker."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    notebook(tmp_path / "good.ipynb", "x = 1", "assert x == 1")
    notebook(tmp_path / "wrong.ipynb", "x = 1", "assert x == 2", "y = 3")
    notebook(tmp_path / "dead.ipynb", "x = 1", "import os; os._exit(1)")
    notebook(tmp_path / "hang.ipynb", "x = 1", "import time; time.sleep(600)")
    command = [
        word for word in recipe("test", "pytest") if word not in ("tests", "course", "chapters")
    ]
    assert "--nbval-cell-timeout" in " ".join(command), "make test sets a time-out for cells"
    failed = {("good", "0")}
    seconds = 4
    wanted = {("wrong", "1"), ("dead", "1"), ("hang", "1")}
    while failed - wanted:  # on a busy machine `x = 1` may take longer
        flags = [re.sub(r"(--nbval-cell-timeout=)\d+", rf"\g<1>{seconds}", w) for w in command]
        flags = [re.sub(r"(--maxprocesses=)\d+", r"\g<1>1", word) for word in flags]
        run = subprocess.run(
            [*flags, str(tmp_path)],
            cwd=tmp_path,
            env={**outer_environment(), "PYTHONPATH": str(ROOT)},  # for the flag -p tests.again
            capture_output=True,
            text=True,
        )
        assert run.returncode == 1
        found = re.findall(r"^FAILED .*?(\w+)\.ipynb::Cell (\d)", run.stdout, re.MULTILINE)
        failed = set(found)
        seconds *= 4
    assert failed == wanted, run.stdout
    assert re.search(r"3 failed, 6 passed", run.stdout.splitlines()[-1]), "pytest has the last word"


def test_the_notebooks_of_a_file_stay_together():
    command = recipe("test", "pytest")
    assert "--nbval-lax" in command
    assert command[command.index("--dist") + 1] in ("loadfile", "loadscope")
    assert command[-3:] == ["tests", "course", "chapters"]


def test_ci_runs_the_readmes_command_and_once_more_what_failed():
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    lines = [line for line in lines if not line.startswith("#")]
    assert lines == [
        "set -euo pipefail",
        'cd "$(dirname "$0")/.."',
        "bash .ci/browser",
        "export CI=true",
        "make test || make test AGAIN=--again",
    ]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_make_alone_lists_the_verbs():
    listed = completed(["make"], cwd=ROOT, check=True).stdout
    verbs = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    assert set(re.findall(r"^  make ([\w-]+) +\w", listed, re.MULTILINE)) == set(verbs)
