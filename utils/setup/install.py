"""Make .venv and install the pinned packages: the first step of `make lab` and `make test`.

A fresh machine has only Python, so this uses the standard library alone, and its syntax stays
readable to every Python from 2.7 on, so that an old one is told what is wrong. When nothing changed
since the last time it ends at once.

Which packages: all machines get the same, pinned in constraints.txt. A machine with an NVIDIA GPU
also gets the CUDA compilers, of the major version that its driver can load (the extras in
pyproject.toml).

From where: files whose SHA-256 is listed in locks/ (`make lock` writes it), and no others. Only
where pip has been told of further places (find-links, an extra index), which may hold other builds,
the pins alone count. `uv` installs where it is on the PATH, pip otherwise.
"""

from __future__ import print_function

import sys

if sys.version_info < (3, 6):
    sys.exit(
        "error: Python 3.11 to 3.13 is needed and this is %d.%d: install one of them, then "
        "`make lab PYTHON=/path/to/that/python3`" % sys.version_info[:2]
    )
if sys.platform == "win32":
    sys.exit("error: the course needs Linux or macOS; on Windows use WSL2 (`wsl --install`)")

import contextlib
import csv
import ctypes
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path

OLDEST = (3, 11)
NEWEST = (3, 13)
ROOT = Path(__file__).resolve().parent.parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "installed.txt"
LOG = VENV / "install.log"
# Where pip and uv unpack; what a killed installation leaves there is removed by the next one
SCRATCH = ROOT / "build" / "installing"
PR_SET_PDEATHSIG = 1  # as <sys/prctl.h> numbers it
HELD = []  # the descriptor of the lock, while we have it
UNPACKED_IN = []  # SCRATCH or our own folder in it, while there is one
# CU_DEVICE_ATTRIBUTE_..., as cuda.h numbers them
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76

# Free space to begin with. PyTorch for Linux brings CUDA's libraries to machines without a GPU, too
GIGABYTES = {"cpu": 6 if sys.platform == "linux" else 3, "cuda12": 12, "cuda13": 12}
CONSTRAINTS = {
    "cpu": "constraints.txt",
    "cuda13": "constraints.txt",
    "cuda12": "constraints-cuda12.txt",
}
LOCKS = {kind: "locks/%s.txt" % kind for kind in CONSTRAINTS}
# What a chapter's first cell and `make lab` need: can all of it be imported?
NEEDED = "IPython, ipywidgets, jupyterlab, matplotlib, nbformat, numba, numpy, torch, utils"
# pip's settings that send packages elsewhere than .venv, and those that name more places to look in
ELSEWHERE = ("prefix", "root", "target", "user", "home")
MORE_PLACES = ("find-links", "extra-index-url", "no-index")

# What we add to JupyterLab, laid out as Jupyter's data folder is
LAB_ADDITIONS = Path(__file__).resolve().parent / "jupyter"
LAB_SETTINGS = {
    # No question on the very first page, whether to fetch JupyterLab's news and look for its
    # updates
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    # The glossary opens as text to read
    "@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}},
    # Names of chapters are whole in the list of files: nobody asks when they were fetched
    "@jupyterlab/filebrowser-extension:browser": {"showLastModifiedColumn": False},
    # A line of 100 columns does not end at the right edge of a small screen
    "@jupyterlab/notebook-extension:tracker": {"codeCellConfig": {"lineWrap": True}},
    # A notebook that is opened again shows its sliders as they were saved
    "@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": True},
    # Slides that are longer than the screen scroll when a chapter is presented
    "jupyterlab-rise:plugin": {
        "center": False,
        "scroll": True,
        "slideNumber": "c/t",
        "transition": "none",
    },
}

# What pip's complaints mean, first match first
REASONS = [
    (
        r"No space left on device|Errno 28|Disk quota exceeded",
        "the disk is full: make room in {root} and in your home, where pip keeps downloads, then "
        "run it again",
    ),
    (
        r"Failed to establish a new connection|Name or service not known"
        r"|Temporary failure in name resolution|NameResolutionError|NewConnectionError"
        r"|[Rr]ead timed out|ConnectTimeout|ProxyError|Connection refused"
        r"|Connection reset|Network is unreachable|IncompleteRead|CERTIFICATE_VERIFY_FAILED"
        # the first ones asked for, which every index has, for every machine
        r"|No matching distribution found for (setuptools|accessible-pygments)",
        "packages cannot be downloaded: check the network (or proxy), then run it again",
    ),
    (
        r"No matching distribution found for (?P<what>[^\s;]+)",
        "there is no build of {what} for this computer and Python {python}",
    ),
    (
        r"(?s)DO NOT MATCH THE HASHES.*?\n\s+(?P<what>\S+) from",
        "{what} is another file than the one that the course was tested with: it was not installed",
    ),
    (
        r"Permission denied|Errno 13",
        ".venv belongs to somebody else: clone the course into a folder of your own",
    ),
]
# Lines that end pip's complaint without saying what it is
CLOSING_WORDS = re.compile(r"(note|hint|WARNING|\[notice\]|╰─>|\[end of output\])", re.IGNORECASE)


def fail(message):
    """End with one line that says what is wrong."""
    sys.exit("error: " + message)


def right_python():
    """The interpreter for .venv: this one, or one from PATH when this is too old or new."""
    this = sys.version_info[:2]
    if OLDEST <= this <= NEWEST:
        return getattr(sys, "_base_executable", None) or sys.executable
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        path = shutil.which("python3.%d" % minor)
        if path and works(
            path, "-c", "import sys; sys.exit(sys.version_info[:2] != (3, %d))" % minor
        ):
            return path
    fail(
        "Python 3.%d to 3.%d is needed and this is %d.%d: install one of them, then "
        "`make lab PYTHON=/path/to/that/python3`" % (OLDEST[1], NEWEST[1], this[0], this[1])
    )


def works(*command):
    """True if the command ends with 0. Its output is thrown away."""
    try:
        return subprocess.call(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def nvidia_driver():
    """(newest CUDA version of the driver, oldest compute capability), each (major, minor).

    None without an NVIDIA driver or GPU. Asks the driver itself (libcuda), since containers often
    lack nvidia-smi; WSL2 keeps the library in a folder of its own.
    """
    for name in ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"):
        try:
            cuda = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        return None
    number = ctypes.c_int()
    major = ctypes.c_int()
    minor = ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDriverGetVersion(ctypes.byref(number)):
        return None
    version = number.value // 1000, number.value % 1000 // 10
    if cuda.cuDeviceGetCount(ctypes.byref(number)) or number.value == 0:
        return None
    capabilities = []
    for device in range(number.value):
        cuda.cuDeviceGetAttribute(ctypes.byref(major), COMPUTE_CAPABILITY_MAJOR, device)
        cuda.cuDeviceGetAttribute(ctypes.byref(minor), COMPUTE_CAPABILITY_MINOR, device)
        capabilities.append((major.value, minor.value))
    return version, min(capabilities)


def choose(driver):
    """Which set to install, and what to tell the learner about it."""
    if driver is None:
        return "cpu", "no NVIDIA GPU found: the course runs on the CPU"
    version, capability = driver
    text = "NVIDIA GPU of compute capability %d.%d, driver for CUDA %d.%d" % (capability + version)
    if version < (12, 0):
        return (
            "cpu",
            text + ": too old, so the course runs on the CPU (update the driver to 580 or newer)",
        )
    if capability < (7, 0):
        return (
            "cuda12",
            text + ": installing CUDA 12, whose PyTorch has no kernels for this GPU: "
            "CUDA_COURSE_CPU=1 make lab runs the chapters that need it on the CPU",
        )
    if capability < (7, 5):
        return "cuda12", text + ": installing CUDA 12, the last for this GPU"
    if version < (13, 0):
        return (
            "cuda12",
            text + ": installing CUDA 12 (with a driver from 580 on, pip brings nvcc too)",
        )
    return "cuda13", text + ": installing CUDA 13 with nvcc"


def fingerprint(kind):
    """Text that changes when .venv must be brought up to date: pins, GPU, folder."""
    digest = hashlib.sha256(str(ROOT).encode())
    for name in ("pyproject.toml", CONSTRAINTS[kind], LOCKS[kind]):
        digest.update((ROOT / name).read_bytes())
    return "%s %s\n" % (kind, digest.hexdigest())


def make_venv(kind):
    """Make .venv, or keep the one there if it works, here, and is of the same kind of machine."""
    made_for = text_of(STAMP).split()[:1] or [kind]
    if made_for == [kind] and is_at_home() and works(str(VENV_PYTHON), "-m", "pip", "--version"):
        return
    if os.path.islink(str(VENV)):  # to make it anew would empty the folder of whoever owns it
        fail("%s is a link to %s: remove the link, then run it again" % (VENV, VENV.resolve()))
    free = shutil.disk_usage(str(ROOT)).free / 1e9
    if free < GIGABYTES[kind]:
        fail(
            "not enough disk space: %d GB are needed, %.1f GB free in %s"
            % (GIGABYTES[kind], free, ROOT)
        )
    python = right_python()
    if not works(python, "-c", "import ensurepip, venv"):
        fail(
            "%s has no venv module: on Debian and Ubuntu `sudo apt install python3-venv`, then "
            "run it again" % python
        )
    print("Making .venv with %s" % python, flush=True)
    made = supervised(
        [python, "-m", "venv", "--clear", str(VENV)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if made.returncode:
        fail(reason(made.stdout.decode(errors="replace"), "cannot make %s: %%s" % VENV))


def is_at_home():
    """Whether .venv was made in this very folder: its programs name the Python they were made for.

    After a move they would start one that is gone.
    """
    return str(VENV) in text_of(VENV / "bin" / "pip")


def text_of(path):
    """A file's text; "" where it is not, or is not ours to read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def reason(log, otherwise):
    """One line for what went wrong; `otherwise` frames the log's own words if no reason matches."""
    for pattern, meaning in REASONS:
        match = re.search(pattern, log)
        if match:
            python = "%d.%d" % sys.version_info[:2]
            words = dict(match.groupdict(), python=python, root=ROOT)
            return meaning.format(**words)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    telling = [line for line in lines if not CLOSING_WORDS.match(line)]
    errors = [line for line in telling if re.match(r"error\b", line, re.IGNORECASE)]
    return otherwise % (errors or telling or lines or ["no message"])[-1]


def settings():
    """pip's settings here, from its files and from the environment: {name: value}."""
    command = [str(VENV_PYTHON), "-m", "pip", "config", "list"]
    listed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    lines = re.findall(r"^[\w:-]+\.([\w-]+)='(.*)'$", listed.stdout.decode(), re.MULTILINE)
    return {name: value for name, value in lines if value}


def environment():
    """The environment for pip: without what would send packages elsewhere than .venv."""
    names = ["PIP_" + name.upper() for name in ELSEWHERE]
    kept = {name: value for name, value in os.environ.items() if name not in names}
    for folder in UNPACKED_IN:
        if folder.is_dir():
            kept["TMPDIR"] = str(folder)
    return dict(kept, PIP_USER="0")  # a user-wide `user = true` cannot work in .venv


def steps(kind, locked):
    """What pip is told, in turn: words after `pip install`."""
    extras = "test,site" if kind == "cpu" else "test,site," + kind
    if not locked:
        return [["-c", CONSTRAINTS[kind], "-e", ".[%s]" % extras]]
    return [
        ["--no-deps", "--require-hashes", "-r", LOCKS[kind]],
        ["--no-deps", "--no-build-isolation", "-e", "."],
    ]


def install(kind):
    """Run uv or pip, its progress on the screen, its complaints in a log."""
    print("Installing the pinned packages; the first time takes a few minutes", flush=True)
    found = settings()
    locked = not any(name in found for name in MORE_PLACES)
    if locked and install_with_uv(kind):
        return
    if not locked:
        print("pip looks in places of its own here: versions are checked, files are not")
    pip = [str(VENV_PYTHON), "-I", "-m", "pip", "install"]
    for step in steps(kind, locked):
        done = supervised(
            pip + ["--disable-pip-version-check", "--no-input"] + step,
            cwd=str(ROOT),
            env=environment(),
            stderr=subprocess.PIPE,
        )
        if done.returncode:
            complain(done.stderr.decode(errors="replace"))


def install_with_uv(kind):
    """Let uv install, if it is on the PATH: whether it did. What it cannot do, pip tries again."""
    uv = shutil.which("uv")
    if not uv:
        return False
    command = [uv, "pip", "install", "--python", str(VENV_PYTHON)]
    return all(
        supervised(command + step, cwd=str(ROOT), env=environment()).returncode == 0
        for step in steps(kind, locked=True)
    )


def supervised(command, **options):
    """Run what writes into .venv. It does not outlive this process (Linux); where it might, it
    holds our lock as well, so that the next installation waits for its end.
    """
    return subprocess.run(command, pass_fds=HELD, preexec_fn=end_with_parent, **options)


def end_with_parent():
    """Have the kernel end this process as soon as its parent is gone, however it went (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def scratch(is_alone):
    """A folder in which all that is started here unpacks, gone at the end, and empty at first.

    Where another installation may be at work, which may unpack there, too, it is one of our own.
    """
    if is_alone:
        end_orphans()
        shutil.rmtree(str(SCRATCH), ignore_errors=True)
    own = SCRATCH if is_alone else SCRATCH / uuid.uuid4().hex
    with contextlib.suppress(OSError):  # not ours to write: what comes next says so
        own.mkdir(parents=True)
    UNPACKED_IN.append(own)
    try:
        yield
    finally:
        UNPACKED_IN.remove(own)
        shutil.rmtree(str(own), ignore_errors=True)
        with contextlib.suppress(OSError):  # gone already, or another installation's, too
            SCRATCH.rmdir()


def end_orphans():
    """End what a killed installation's pip or venv had started: it still writes into .venv (Linux).

    It is known by its folder for temporary files, which nobody else has but, perhaps, whoever
    started this one.
    """
    ours = (os.getpid(), os.getppid())
    mark = b"TMPDIR=" + os.fsencode(str(SCRATCH)) + b"\0"
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # another user's, or gone
            pid = int(path.parent.name)
            if pid not in ours and mark in path.read_bytes():
                os.kill(pid, signal.SIGKILL)


def forget_torn():
    """Let packages that a killed installation left half-way be installed again.

    pip and uv take for installed what has a folder of facts, and pip leaves packages that it was
    just removing under names with a ~.
    """
    for folder in VENV.glob("lib/python*/site-packages"):
        torn = [each for each in folder.glob("*.dist-info") if not is_whole(each)]
        for each in torn + list(folder.glob("~*")):
            shutil.rmtree(str(each), ignore_errors=True)


def is_whole(facts):
    """Whether all files are there that a package lists in its folder of facts.

    INSTALLER and then the list, RECORD, are what pip and uv write last.
    """
    if not (facts / "INSTALLER").is_file():
        return False
    try:
        with open(str(facts / "RECORD"), newline="") as record:
            for name, _, size in csv.reader(record):
                found = os.stat(str(facts.parent / name)).st_size
                if size and int(size) != found:
                    return False
    except (OSError, ValueError, csv.Error):
        return False
    return True


def complain(log):
    """End with the line of pip's log that says what is wrong; all of it is kept where possible."""
    where = " (all of it: %s)" % LOG
    try:
        LOG.write_text(log)
    except OSError:
        where = ""  # the disk is full, or .venv is somebody else's
    fail(reason(log, "pip could not install the packages: %s" + where.replace("%", "%%")))


def prove():
    """See that what was installed is there: settings of pip's can have sent it elsewhere."""
    tried = subprocess.run(
        [str(VENV_PYTHON), "-c", "import " + NEEDED],
        cwd=str(ROOT),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    if tried.returncode == 0:
        return
    astray = [name for name in settings() if name in ELSEWHERE]
    if astray:
        fail(
            "pip put the packages elsewhere, because its settings say so (%s): see `pip config "
            "list`, then run it with PIP_CONFIG_FILE=/dev/null" % ", ".join(astray)
        )
    said = tried.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
    fail("the packages are installed and do not work: %s" % said[-1])


@contextlib.contextmanager
def alone():
    """One installation at a time in this folder; a second waits for the first.

    Yields whether that is sure: some file systems know no locks.
    """
    folder = os.open(str(ROOT), os.O_RDONLY)
    HELD.append(folder)
    is_alone = False
    try:
        with contextlib.suppress(OSError):
            lock(folder)
            is_alone = True
        yield is_alone
    finally:
        HELD.remove(folder)
        os.close(folder)


def lock(folder):
    """Lock an open folder; who has to wait is told why."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("Another installation is at work in this folder: waiting for its end", flush=True)
        fcntl.flock(folder, fcntl.LOCK_EX)


def settle_lab():
    """Give JupyterLab the course's settings, which a learner's own go before, and its extension."""
    share = VENV / "share" / "jupyter"
    settings = share / "lab" / "settings"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "overrides.json").write_text(json.dumps(LAB_SETTINGS))
    for source in LAB_ADDITIONS.rglob("*"):
        if source.is_file():
            copy = share / source.relative_to(LAB_ADDITIONS)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(str(source), str(copy))


def main():
    if sys.platform == "darwin" and platform.machine() == "x86_64":
        fail(
            "PyTorch has no builds for Intel Macs; on Apple silicon use an arm64 Python, not "
            "Rosetta"
        )
    kind, about = choose(nvidia_driver())
    wanted = fingerprint(kind)
    if not up_to_date(wanted):
        with alone() as is_alone:
            if not up_to_date(wanted):  # by who was first
                renew(kind, about, wanted, is_alone)
    with contextlib.suppress(OSError):  # somebody else's .venv, which we may use
        settle_lab()  # which costs nothing, and may have changed with the course


def renew(kind, about, wanted, is_alone):
    """Make .venv what it should be, and note it when all of it is there."""
    start = time.time()
    print(about, flush=True)
    with scratch(is_alone):
        make_venv(kind)
        forget_torn()
        install(kind)
    prove()
    STAMP.write_text(wanted)
    print("Installed in %.0f s" % (time.time() - start), flush=True)


def up_to_date(wanted):
    """Whether all of it is there, for the pins and the machine of today."""
    return text_of(STAMP) == wanted and os.path.exists(str(VENV_PYTHON))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        fail("stopped; run it again to go on")
