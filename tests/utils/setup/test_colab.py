"""Google Colab, without Colab: a Python that has torch, NumPy and a notebook kernel of its own, and
no checkout.

The set-up cell must bring chapters to run there: it clones the course, installs what is missing or
too old, and leaves the rest alone.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import nbformat.v4
import pytest
from packaging.requirements import Requirement

from course.record import client_for
from tests import hygiene
from tests.browser import on_ci
from tests.processes import completed
from utils.files import ROOT
from utils.setup import colab, install
from utils.tools.diagnostics import LearnerError

CHAPTER, SECOND = (
    ROOT / "chapters" / name for name in ("05_first_kernels.ipynb", "06_memory.ipynb")
)
# Of what the course needs, not in this Colab
MISSING = {"cuda-core", "greenlet", "hypothesis", "nvidia-ml-py"}
BROUGHT = {"sortedcontainers"}  # by what is missing
TOO_OLD = {"numba-cuda": "0.22.2"}
pytestmark = pytest.mark.timeout(1800)  # ten megabytes come from the network, which may be slow
PARTS_BY_DAY = pytest.mark.nightly("the set-up's parts have tests of their own by day, see below")


# ---- a machine like Colab's


def preinstalled():
    """The packages of this Colab: what the course and a notebook kernel need, less what is missing
    there.
    """
    seen, waiting = (
        set(),
        [
            "torch",
            "numpy",
            "triton",
            "ipykernel",
            "ipywidgets",
            "matplotlib",
            "packaging",
            "pip",
            *(colab.name_in(line) for line in colab.requirements("cpu", has_nvcc=False)),
        ],
    )
    while waiting:
        name = waiting.pop().lower()
        if name in seen | MISSING | BROUGHT or not colab.version(name):
            continue
        seen.add(name)
        waiting += [
            Requirement(line).name
            for line in metadata.requires(name) or ()
            if not Requirement(line).marker or Requirement(line).marker.evaluate({"extra": ""})
        ]
    return seen - TOO_OLD.keys()


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """A Python outside .venv, with Colab's own packages in a folder beside it, where pip cannot
    change them.

    Yields its folder, which stands for /content, and a function that runs a notebook there.
    """
    content = tmp_path_factory.mktemp("content")
    own, venv = tmp_path_factory.mktemp("own"), tmp_path_factory.mktemp("python") / "venv"
    here = Path(sysconfig.get_paths()["purelib"])
    tops = {file.parts[0] for name in preinstalled() for file in metadata.files(name)}
    for top in tops - {"..", "__pycache__"}:
        if (here / top).exists():
            (own / top).symlink_to(here / top)
    for name, version in TOO_OLD.items():
        folder = own / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
    (own / "google" / "colab").mkdir(parents=True)
    (own / "google" / "colab" / "__init__.py").touch()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (site,) = venv.glob("lib/python3*/site-packages")
    (site / "colab.pth").write_text(
        f"{own}\nimport google.colab\n"
    )  # a Colab kernel has it imported
    kernel = content / "jupyter" / "kernels" / "colab"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(
        json.dumps(
            {
                "display_name": "Colab",
                "language": "python",
                "argv": [
                    str(venv / "bin" / "python"),
                    "-m",
                    "ipykernel_launcher",
                    "-f",
                    "{connection_file}",
                ],
            }
        )
    )
    published = publish(tmp_path_factory.mktemp("published"))
    environment = {
        "JUPYTER_PATH": str(kernel.parent.parent),
        "PATH": os.environ["PATH"].replace(f"{ROOT}/.venv/bin:", ""),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{published}.insteadOf",
        "GIT_CONFIG_VALUE_0": colab.repository(),
        "CUDA_COURSE_CPU": "",
        "PYTHONPATH": "",
    }

    def run(path, setup_only=False):
        """Execute the notebook, or its set-up cells, twice; returns it."""
        notebook = hygiene.read(path)
        if setup_only:
            cells = [
                cell
                for cell in notebook.cells
                if {"colab", "setup"} & set(cell.metadata.get("tags", []))
            ]
            assert len(cells) == 2
            again = [nbformat.v4.new_code_cell(cell.source) for cell in cells]
            where = nbformat.v4.new_code_cell("import os; os.getcwd()")
            notebook.cells = [*cells, *again, where]
        for cell in notebook.cells:
            cell.source = cell.source.replace("/content", str(content))
        notebook.metadata.pop("widgets", None)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            client_for(notebook, content, kernel_name="colab", timeout=1500).execute()
        return notebook

    return SimpleNamespace(content=content, own=own, site=site, run=run)


def publish(folder):
    """A repository with the course as it is now in the working tree; its path."""
    names = completed(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT
    )
    if names.returncode:
        pytest.skip("not a git checkout, so there is nothing to clone")
    for name in filter(None, names.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org"]
    for command in (
        ["init", "--quiet"],
        ["config", "pack.window", "0"],  # a clone looks for no likeness among the files
        ["add", "."],
        ["commit", "--quiet", "--message", "the course"],
        ["tag", colab.tag()],
    ):
        subprocess.run([*git, *command], cwd=folder, check=True)
    return folder


def said(notebook):
    """What the set-up cell printed and showed."""
    (cell,) = [cell for cell in notebook.cells if "setup" in cell.metadata.get("tags", [])]
    return "".join(hygiene.output_text(output) for output in cell.outputs)


@pytest.fixture(scope="module")
def first(machine):
    """The first chapter that a learner opens there."""
    try:
        return machine.run(CHAPTER)
    except Exception as error:
        if "packages cannot be downloaded" in str(error) and not on_ci():
            pytest.skip("no network: the packages that Colab lacks cannot be downloaded")
        raise


@PARTS_BY_DAY
def test_the_setup_cell_brings_a_chapter_to_run(machine, first):
    assert hygiene.honest_outputs(first) == []
    assert all(cell.execution_count for cell in first.cells if cell.cell_type == "code")
    assert (machine.content / "cuda-course" / "chapters" / "build" / "vector_add.cu").is_file()


@PARTS_BY_DAY
def test_only_what_is_missing_or_too_old_is_installed(machine, first):
    assert f"Installing {', '.join(sorted(MISSING | TOO_OLD.keys()))} " in said(first)
    installed = {
        dist.metadata["Name"].lower() for dist in metadata.distributions(path=[str(machine.site)])
    }
    assert installed - {"pip", "setuptools"} == MISSING | BROUGHT | TOO_OLD.keys()


@PARTS_BY_DAY
def test_a_machine_without_gpu_is_told_what_to_click(first):
    if install.nvidia_driver():
        pytest.skip("this machine has a GPU")
    assert "Runtime > Change runtime type > T4 GPU" in said(first)


@PARTS_BY_DAY
def test_a_second_chapter_is_set_up_without_installing(machine, first):
    second = machine.run(SECOND, setup_only=True)
    assert "Installing" not in said(second)
    assert str(machine.content / "cuda-course" / "chapters") in hygiene.output_text(
        second.cells[-1].outputs[0]
    )


# ---- which packages, and which nvcc


@pytest.mark.parametrize(
    "driver, torch, kind",
    [
        (((13, 0), (7, 5)), "2.11.0+cu130", "cuda13"),  # a T4 in October 2026
        (
            ((13, 0), (7, 5)),
            "2.11.0+cu128",
            "cuda12",
        ),  # in June 2026: the driver could, torch's libraries could not
        (((12, 4), (7, 5)), "2.10.0+cu128", "cuda12"),  # in January 2026
        (
            ((12, 4), (7, 5)),
            "2.11.0+cu130",
            "cuda12",
        ),  # a toolkit newer than the driver: what it compiles would not load
        (((13, 0), (7, 5)), None, "cuda13"),
        (((13, 0), (6, 0)), "2.11.0+cu130", "cuda12"),  # a P100, unknown to CUDA 13
        (None, "2.11.0+cpu", "cpu"),
    ],
)
def test_the_cuda_packages_fit_both_driver_and_torch(driver, torch, kind):
    assert colab.cuda_kind(driver, torch) == kind


@pytest.mark.parametrize("kind", ["cpu", "cuda12", "cuda13"])
def test_colabs_own_packages_are_not_asked_for(kind):
    """What is asked for: everything else that the project needs, the kernel compilers no older than
    tested.
    """
    lines = colab.requirements(kind, has_nvcc=True)
    names = {colab.name_in(line) for line in lines}
    assert not names & {
        "torch",
        "numpy",
        "ipython",
        "ipywidgets",
        "jupyterlab",
        "jupyterlab-rise",
        "cuda-toolkit",
    }
    assert {"numba-cuda", "cuda-core", "nvidia-ml-py", "matplotlib"} <= names
    assert f"numba-cuda>={colab.pins(kind)['numba-cuda']}" in lines
    extra = [line for line in lines if line.startswith(f"numba-cuda[{kind.replace('cuda', 'cu')}]")]
    assert len(extra) == (kind != "cpu")


def test_nvcc_comes_from_pip_only_where_there_is_none():
    assert any("nvcc" in line for line in colab.requirements("cuda13", has_nvcc=False))


def test_what_is_there_at_the_tested_version_is_not_unmet():
    here = [f"{name}=={colab.version(name)}" for name in ("numpy", "numba-cuda", "cuda-core")]
    assert colab.unmet(here) == []
    assert colab.unmet(
        ["numpy", "numpy<1", "no-such-package", "no-such-package; sys_platform == 'win32'"]
    ) == ["numpy<1", "no-such-package"]
    assert colab.unmet(["cuda-core[cu12]"]) == ["cuda-core[cu12]"], (
        "its extra needs what is not here"
    )


def test_the_newest_nvcc_that_the_driver_allows_comes_first(tmp_path, monkeypatch):
    for version in ("12.5", "12.8", "13.0"):
        (tmp_path / f"cuda-{version}" / "bin").mkdir(parents=True)
        (tmp_path / f"cuda-{version}" / "bin" / "nvcc").touch()
    monkeypatch.setenv("PATH", "/bin")
    colab.prefer_nvcc(12, tmp_path)
    assert os.environ["PATH"] == f"{tmp_path}/cuda-12.8/bin:/bin"
    colab.prefer_nvcc(11, tmp_path)
    assert os.environ["PATH"] == f"{tmp_path}/cuda-12.8/bin:/bin", "none fits: nothing is changed"
    colab.prefer_nvcc(13, tmp_path)
    assert os.environ["PATH"].startswith(f"{tmp_path}/cuda-13.0/bin:")


def pip_with(monkeypatch, script):
    """Let pip be a shell script; returns where it keeps constraints and what it was asked for."""
    run = subprocess.run
    calls = []

    def stand_in(command, **options):
        calls.append((Path(command[command.index("-c") + 1]).read_text().split("\n"), command))
        return run(["sh", "-c", script], **options)

    monkeypatch.setattr(colab.subprocess, "run", stand_in)
    return calls


def test_pip_may_not_change_what_is_colabs(monkeypatch):
    monkeypatch.setattr(
        colab,
        "version",
        {
            "torch": "2.11.0+cu128",
            "numpy": "2.0.2",
            "numba-cuda": "0.22.2",
            "cuda-core": "9.9",
            "requests": "2.0",
        }.get,
    )
    monkeypatch.setattr(colab, "in_use", list)
    calls = pip_with(monkeypatch, "exit 0")
    colab.pip_install(["numba-cuda>=0.30"], "cuda12")
    ((limits, command),) = calls
    assert {"torch==2.11.0+cu128", "numpy==2.0.2"} <= set(limits)
    tested = colab.pins("cuda12")
    assert f"numba-cuda=={tested['numba-cuda']}" in limits and f"rich=={tested['rich']}" in limits
    assert not [line for line in limits if line.startswith(("cuda-core==", "requests=="))], (
        "newer, or Colab's: left alone"
    )
    assert "numba-cuda>=0.30" in command


@pytest.mark.parametrize(
    "script, said",
    [
        ("echo NewConnectionError >&2; exit 1", "check the network"),
        ("exit 0", "numba.* was in use .* Runtime > Restart session"),
    ],
    ids=["no network", "already imported"],
)
def test_what_goes_wrong_is_said(monkeypatch, script, said):
    import numba  # noqa: F401    in use, as in a session that began with other cells

    pip_with(monkeypatch, script)
    with pytest.raises(LearnerError, match=said):
        colab.pip_install(["numba-cuda"], "cpu")


def test_the_map_leads_to_notebooks_in_colab(monkeypatch):
    from course.pictures.chapter_map import chapter_map

    monkeypatch.setitem(sys.modules, "google.colab", object())
    links = chapter_map()._repr_html_()
    assert f"href='{colab.notebook_address('chapters/05_first_kernels.ipynb')}'" in links
