"""The candidate's process, seen from the judge's side."""

import atexit
import contextlib
import fcntl
import inspect
import json
import os
import pickle
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import platformdirs

from course.judge.channel import HEAD
from course.judge.words import REASONS
from utils.engine import FORCE_CPU

WORKER = Path(__file__).with_name("worker.py")
#: The folder in which the engines for kernels without a GPU lie
ROOT = Path(__file__).resolve().parents[2]
STARTING = 120  # seconds, on a busy machine, until a nursery has imported PyTorch and Triton
#: As many times its CPU time a call may last by the clock
PATIENCE = 6
MOST_REPLY = 1 << 31
#: Variables that a candidate's process inherits; no secret of the judge's is among them
INHERITED = (
    "PATH",
    "LANG",
    "LC_",
    "CUDA_",
    "CXX",
    "CC",
    "LD_LIBRARY_PATH",
    "NUMBA_",
    "TRITON_",
    "OMP_",
    "XDG_CACHE_HOME",
)


class Lost(Exception):
    """The candidate's process ended, or did not answer. how: "ended" or "timeout"; status."""

    def __init__(self, how, status=0):
        super().__init__(how)
        self.how, self.status = how, status


class Forged(Exception):
    """What came is no reply of the harness."""


# ---- nurseries


_nurseries = {}


def import_path():
    """The folders of PYTHONPATH, from which this process imports before all others.

    What lies there may be a package that is nowhere else, or another version of one.
    """
    told = os.environ.get("PYTHONPATH")
    return tuple(map(os.path.abspath, told.split(os.pathsep))) if told else ()


def folders_of(*functions):
    """The folders of PYTHONPATH in which the modules of these functions lie."""
    modules = map(inspect.getmodule, functions)
    files = [os.path.abspath(getattr(one, "__file__", None) or "") for one in modules]
    return tuple(
        folder
        for folder in import_path()
        if folder != str(ROOT) and any(one.startswith(folder + os.sep) for one in files)
    )


class Nursery:
    """A process that has imported modules and waits to be copied; one for each set of modules.

    engines: kernels run on the engines for machines without a GPU there, whether there is one or
        not.
    """

    def __init__(self, modules, engines):
        ours, theirs = socket.socketpair()
        environment = {
            name: value for name, value in os.environ.items() if name.startswith(INHERITED)
        }
        environment |= {
            "MALLOC_PERTURB_": "165",  # memory that malloc gives holds 0x5A, never a former answer
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": os.pathsep.join(import_path()),
            # CUDA C that was built before need not be built again
            "CUDA_COURSE_CACHE": platformdirs.user_cache_dir("cuda-course"),
        }
        if engines:
            environment |= {FORCE_CPU: "1", "CUDA_VISIBLE_DEVICES": ""}
        command = [sys.executable, str(WORKER), str(theirs.fileno()), str(ROOT), *modules]
        self.process = subprocess.Popen(
            command,
            env=environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt is for whoever asked, not for the nursery
        )
        theirs.close()
        self.control = ours
        self.is_ready = False

    def wait(self):
        """Wait until it has imported its modules. Meanwhile others may be at work."""
        if not self.is_ready:
            self.control.settimeout(STARTING)
            if self.control.recv(64) != b"ready":
                raise BrokenPipeError("the process that loads candidates did not start")
            self.is_ready = True

    def copy(self, scratch):
        """(process id, socket) of a new copy that works in a folder."""
        self.wait()
        ours, theirs = socket.socketpair()
        socket.send_fds(self.control, [f"copy {scratch}".encode()], [theirs.fileno()])
        theirs.close()
        return int(self.control.recv(64)), ours

    def end(self, pid, lost=False):
        """End a copy: its exit status."""
        self.control.sendall(f"{'lost' if lost else 'end'} {pid}".encode())
        return int(self.control.recv(64))

    def close(self):
        self.control.close()
        self.process.kill()
        self.process.wait()


def nursery(modules, engines=False):
    """The nursery for these modules, started where it is not there."""
    which = modules, engines, import_path()
    found = _nurseries.get(which)
    if found is None or found.process.poll() is not None:
        remove_left_folders()
        found = _nurseries[which] = Nursery(modules, engines)
    return found


def close_all():
    """End all nurseries."""
    while _nurseries:
        _nurseries.popitem()[1].close()


atexit.register(close_all)


# ---- one candidate


#: How the names of candidates' folders begin; nothing in it tells of a judge
PREFIX = "cuda-work-"


def locked(folder):
    """A folder that stays locked as long as this process lives, or until what is returned closes.

    Returns None where another process has locked it.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def new_folder():
    """(an empty folder that is locked, what to close to unlock it)."""
    while True:
        folder = tempfile.mkdtemp(prefix=PREFIX)
        with contextlib.suppress(FileNotFoundError):  # it was taken for one that was left
            handle = locked(folder)
            if handle is not None and os.path.isdir(folder):
                return folder, handle


def remove_left_folders():
    """Remove the folders of judges that were ended before they could: nobody has locked these."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            handle = locked(folder)
            if handle is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(handle)


class Sandbox:
    """One candidate in a process of its own. copies: what makes it; a nursery unless given."""

    def __init__(self, modules, seconds, engines=False, copies=None):
        self.seconds = seconds
        self.findings = []
        self.fits = True  # whether what was loaded has a place for the reference's weights
        self.nursery = copies or nursery(tuple(modules), engines)
        self.scratch, self.lock = new_folder()
        try:
            self.start(tuple(modules), engines)
        except BaseException:
            self.remove()
            raise

    def start(self, modules, engines):
        """Have a copy of the nursery made."""
        try:
            self.pid, self.channel = self.nursery.copy(self.scratch)
        except (ConnectionError, ValueError):  # it is gone: perhaps the candidate before ended it
            self.nursery.close()
            self.nursery = nursery(modules, engines)
            self.pid, self.channel = self.nursery.copy(self.scratch)

    def remove(self):
        """Remove the candidate's folder with all that it left there."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        os.close(self.lock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()
        with contextlib.suppress(OSError, ValueError):
            if self.pid:
                self.nursery.end(self.pid)
        self.remove()

    def queued(self):
        """Milliseconds that the process has stood in line for a core, as the kernel knows it."""
        try:
            told = Path(f"/proc/{self.pid}/schedstat").read_text().split()
        except OSError:
            return 0.0
        return 1e-6 * int(told[1])

    def ask(self, do, patience=None, **message):
        """(header, buffers) of the reply to a message. Raises Lost, Forged."""
        nonce = secrets.token_hex(8)
        data = pickle.dumps({"do": do, "nonce": nonce, **message})
        last = time.monotonic() + (patience or PATIENCE * self.seconds)
        try:
            self.channel.sendall(len(data).to_bytes(8, "little") + data)
            head = self._received(HEAD.size, last)
            text, size = HEAD.unpack(head)
            if text > 1 << 26 or size > MOST_REPLY:
                raise Forged("a reply of impossible length")
            header = json.loads(self._received(text, last))
            data = self._received(size, last)
        except (BrokenPipeError, ConnectionResetError):
            raise self._lost() from None
        except (ValueError, RecursionError):
            raise Forged("a reply that cannot be read") from None
        if not isinstance(header, dict) or header.get("nonce") != nonce:
            raise Forged("a reply to another question")
        self.findings += findings_of(header)
        return header, pieces(data, header.get("sizes"))

    def _received(self, count, last):
        data = bytearray()
        while len(data) < count:
            ready, _, _ = select.select([self.channel], [], [], max(0, last - time.monotonic()))
            if not ready:
                raise Lost("timeout")
            piece = self.channel.recv(min(count - len(data), 1 << 20))
            if not piece:
                raise self._lost()
            data += piece
        return bytes(data)

    def _lost(self):
        try:
            status, self.pid = self.nursery.end(self.pid, lost=True), None
        except (OSError, ValueError):  # the nursery is gone, too
            status, self.pid = -signal.SIGKILL, None
        return Lost("timeout" if status == -signal.SIGXCPU else "ended", status)


def pieces(data, sizes):
    """The bytes of a reply, cut as its header says."""
    whole = isinstance(sizes, list) and all(isinstance(one, int) and one >= 0 for one in sizes)
    if not whole or sum(sizes) != len(data):
        raise Forged("a reply whose parts do not fit")
    cut, at = [], 0
    for size in sizes:
        cut.append(data[at : at + size])
        at += size
    return cut


#: What a reply says of a call: name -> (its type, the types of what is in it)
NOTES = {
    "operations": (dict, int),
    "numpy": (dict, int),
    "launches": (list, str),
    "problems": (list, str),
    "asked": (list, str),
    "swallowed": (list, list),
    "classes": (list, str),
    "changed": (list, int),
    "aliases": (list, int),
    "outside": (list, int),
}
FINDING = ("key", "where", "what")


def notes_of(header):
    """What a reply says of a call. Raises Forged where it has not the harness's form."""
    notes = header.get("notes")
    if not isinstance(notes, dict):
        raise Forged("a reply without notes")
    for name, (kind, inner) in NOTES.items():
        value = notes.setdefault(name, kind())
        values = value.values() if isinstance(value, dict) else value
        if not isinstance(value, kind) or not all(isinstance(one, inner) for one in values):
            raise Forged(f"notes of another form ({name})")
    if not all(isinstance(notes.setdefault(name, ""), str) for name in ("counts", "copy", "grown")):
        raise Forged("notes of another form (counts)")
    for name in ("lines", "accesses", "heap"):
        if not isinstance(notes.setdefault(name, None), int | None):
            raise Forged(f"notes of another form ({name})")
    if not all(
        len(one) == 3 and all(isinstance(x, str) for x in one) for one in notes["swallowed"]
    ):
        raise Forged("notes of another form (swallowed)")
    return notes


def error_of(header):
    """The error that a reply tells. Raises Forged where it has not the harness's form."""
    error = header["error"]
    if not isinstance(error, dict) or not {"type", "says", "line"} <= error.keys():
        raise Forged("an error of another form")
    return {"kind": None} | {name: value and str(value) for name, value in error.items()}


def findings_of(header):
    """What the watch found, as a reply tells it. Raises Forged."""
    findings = header.pop("findings", [])
    good = isinstance(findings, list) and all(
        isinstance(one, dict) and all(isinstance(one.get(name), str) for name in FINDING)
        for one in findings
    )
    if not good or any(one["key"] not in REASONS for one in findings):
        raise Forged("findings of another form")
    return findings


def only(result):
    """The one result of a call with one output. Raises Forged."""
    if not isinstance(result, tuple) or len(result) != 1:
        raise Forged("more results than outputs")
    return result[0]


# ---- values, there and back


def pack(value):
    """A value as the worker's `argument_of` takes it."""
    if isinstance(value, np.ndarray):
        return ("numpy", np.ascontiguousarray(value).reshape(value.shape).copy())
    if is_tensor(value):
        import torch

        whole = value.detach().cpu().contiguous()
        flat = whole.reshape(-1) if whole.dim() else whole.reshape(1)
        raw = flat.view(torch.uint8).numpy().copy() if flat.numel() else np.empty(0, np.uint8)
        name = str(value.dtype).removeprefix("torch.")
        return ("torch", raw, name, tuple(value.shape), value.device.type)
    return ("plain", value)


def is_tensor(value):
    """Whether a value is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


class Opaque:
    """Something in a result that is no array and no number."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"something of type {self.name}"


class Array:
    """An array of a result: values (NumPy; bfloat16 as float32) and the type's name it had."""

    def __init__(self, values, dtype, is_tensor=False):
        self.values, self.dtype, self.is_tensor = values, dtype, is_tensor


def unpacked(tree, buffers):
    """The result that a header describes. Raises Forged."""
    if not isinstance(tree, dict) or len(tree) == 0:
        raise Forged("a result without a form")
    if "many" in tree:
        return tuple(unpacked(one, buffers) for one in tree["many"])
    if "plain" in tree:
        return tree["plain"]
    if "other" in tree:
        return Opaque(str(tree["other"]))
    try:
        number = tree.get("array", tree.get("tensor"))
        data = buffers[number]
        if "array" in tree:
            dtype = np.dtype(tree["dtype"])
            name = dtype.name if dtype.isnative else f"{dtype.name} of another byte order"
            return Array(np.frombuffer(data, dtype).reshape(tree["shape"]), name)
        return Array(of_tensor(data, tree["dtype"], tree["shape"]), tree["dtype"], True)
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise Forged(f"a result that does not fit its form: {error}") from None


def of_tensor(data, dtype, shape):
    """Values of a tensor's bytes."""
    if dtype == "bfloat16":
        half = np.frombuffer(data, np.uint16).astype(np.uint32) << 16
        return half.view(np.float32).reshape(shape)
    if dtype.startswith("float8"):
        import torch

        flat = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(getattr(torch, dtype))
        return flat.float().numpy().reshape(shape)
    return np.frombuffer(data, np.dtype(dtype)).reshape(shape)
