"""Inside the candidate's process: load it, call it, send back what it returned, as bytes.

Run as a program: first a *nursery*, which imports what candidates need and has never seen a
reference, a task or another candidate; for each candidate it makes a copy of itself. What the copy
sends is JSON and raw bytes: to unpickle what a candidate wrote would be to run it.
"""

import contextlib
import ctypes
import gc
import hashlib
import importlib
import json
import linecache
import os
import pickle
import resource
import signal
import socket
import struct
import sys
import tempfile
import time
import types

import numpy as np

#: Modules beside this file, which import nothing of the judge's either
BESIDE = ("keeping", "timed", "watching")
HEAD = struct.Struct("<QQ")
M_PERTURB = -6
ALIGNMENT = 256
DYING = 2  # seconds in which a process that hung up ends by itself
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
CPU_SECONDS = 300
MANY_CALLS = 1_000_000
MOST_BYTES = 4 << 30
MOST_FILE = 1 << 28
#: The name under which a submission's module is known in its process
MODULE = "submission"


class Unloadable(Exception):
    """The candidate cannot be loaded; the text says why."""


# ---- messages


def receive(channel):
    """The next message, or None where the other end is gone."""
    head = _exactly(channel, 8)
    return None if head is None else pickle.loads(_exactly(channel, int.from_bytes(head, "little")))


def _exactly(channel, count):
    data = bytearray()
    while len(data) < count:
        piece = channel.recv(min(count - len(data), 1 << 20))
        if not piece:
            return None
        data += piece
    return bytes(data)


def reply(channel, header, buffers=()):
    """Send a header, as JSON, and the bytes that it speaks of."""
    header["sizes"] = list(map(len, buffers))
    text = json.dumps(header).encode()
    channel.sendall(HEAD.pack(len(text), sum(map(len, buffers))) + text)
    for buffer in buffers:
        channel.sendall(buffer)


# ---- values, there and back


def argument_of(packed):
    """(value, its bytes' array) of what the judge packed: see `sandbox.pack`."""
    kind, value = packed[0], packed[1]
    if kind == "numpy":
        return aligned(value)
    if kind == "torch":
        import torch

        _, raw, dtype, shape, device = packed
        tensor = torch.empty(shape, dtype=getattr(torch, dtype))
        if raw.size:
            flat = tensor.view(-1) if tensor.dim() else tensor.reshape(1)
            flat.view(torch.uint8).copy_(torch.from_numpy(raw))
        return tensor.to(device)
    return value


def aligned(array):
    """A copy that begins where an allocation on a device could."""
    raw = np.zeros(array.nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    place = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    place[...] = array
    return place


def is_tensor(value):
    """Whether a value is a torch tensor, of whichever class."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def bytes_of(value):
    """The bytes of an array or tensor, in order; None for what is neither."""
    if is_tensor(value):
        import torch

        whole = torch.Tensor.contiguous(torch.Tensor.cpu(torch.Tensor.detach(value)))
        flat = whole.reshape(-1) if whole.dim() else whole.reshape(1)
        return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    if isinstance(value, np.ndarray):
        return np.ndarray.tobytes(value)
    return None


def digest(value):
    """A digest of an array's bytes, by which the judge sees whether it was changed."""
    data = bytes_of(value)
    return None if data is None else hashlib.blake2b(data, digest_size=16).hexdigest()


def packed(value, buffers, depth=0):
    """A result as JSON that names buffers, which are added to the list."""
    if is_tensor(value):
        buffers.append(bytes_of(value))
        name = str(value.dtype).removeprefix("torch.")
        return {"tensor": len(buffers) - 1, "dtype": name, "shape": list(value.shape)}
    if type(value) in device_arrays():
        value = value.copy_to_host()
    if isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value)
        if value.dtype.kind not in "biufc":
            return {"other": f"array of {value.dtype}"}
        buffers.append(np.ndarray.tobytes(value))
        return {"array": len(buffers) - 1, "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, bool | int | float | str | type(None)):
        return {"plain": value if type(value) in (bool, str, type(None)) else _number(value)}
    if isinstance(value, tuple | list) and depth < 4 and len(value) < 100_000:
        return {"many": [packed(one, buffers, depth + 1) for one in value]}
    return {"other": type(value).__name__}


def _number(value):
    return int(value) if isinstance(value, int) else float(value)


# ---- the candidate


def load(message):
    """The candidate's callable, as `calling` calls it."""
    kind, entry = message["kind"], message["entry"]
    if kind == "pickle":
        value = pickle.loads(message["blob"])
        return value, value
    if kind == "cuda_c":
        from utils import cuda_c

        path = os.path.join(os.getcwd(), "submission.cu")
        with open(path, "w") as file:
            file.write(message["source"])
        module = cuda_c.load(path, check=message["check"] and message["watched"])
        names = list(module.signatures)
        name = entry or names[0]
        if name.partition("<")[0] not in names:
            raise Unloadable(f"it has no kernel {name!r}; it has {', '.join(names)}")
        return module[name], module
    module = types.ModuleType(MODULE)
    module.__file__ = message["filename"]
    sys.modules[MODULE] = module
    source = message["source"]
    lines = source.splitlines(keepends=True)
    linecache.cache[message["filename"]] = (len(source), None, lines, message["filename"])
    exec(compile(source, message["filename"], "exec"), module.__dict__)
    return entry_of(module, entry, message["entries"], message["init"]), module


def roots_of(candidate, whole):
    """(name, thing) from which all that a candidate keeps is reached."""
    found = [("it", candidate)]
    for name in ("py_func", "fn"):
        if hasattr(candidate, name):
            found.append(("it", getattr(candidate, name)))
    if type(whole).__module__ == "utils.cuda_c":
        return found + [("device variables", whole)]
    if isinstance(whole, types.ModuleType):
        return found + [(n, v) for n, v in vars(whole).items() if not n.startswith("__")]
    code = getattr(candidate, "__code__", None)
    names = code.co_names if code else ()
    known = getattr(candidate, "__globals__", {})
    return found + [(name, known[name]) for name in names if name in known]


def further(candidate, whole, path):
    """Let a counter of the candidate's be as if many calls had been made; whether it is."""
    if not path:
        return False
    keeping = importlib.import_module("keeping")
    held = vars(whole) if isinstance(whole, types.ModuleType) else None
    held = held or getattr(candidate, "__globals__", {})
    return keeping.advance(roots_of(candidate, whole), held, path, MANY_CALLS)


def entry_of(module, entry, entries, init):
    """The function that a submission offers: the one that is named, or the first known name."""
    names = [entry] if entry else list(entries)
    for name in names:
        if hasattr(module, name):
            found = getattr(module, name)
            return instance_of(found, init) if isinstance(found, type) else found
    own = [
        value
        for value in vars(module).values()
        if isinstance(value, types.FunctionType) and value.__module__ == MODULE
    ]
    if not entry and len(own) == 1:
        return own[0]
    raise Unloadable(f"there is no {' or '.join(names)} in it")


def instance_of(cls, init):
    """A model with its first arguments, made under the seed under which the judge made its own."""
    import torch

    torch.manual_seed(init["seed"])
    values = [argument_of(one) for one in init["arguments"]]
    made = cls(*values)
    if init.get("state") and hasattr(made, "load_state_dict"):
        state = {name: argument_of(one) for name, one in init["state"].items()}
        with contextlib.suppress(RuntimeError):
            made.load_state_dict(state)
    if isinstance(made, torch.nn.Module):
        made = made.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    return made


# ---- one call


class Desk:
    """The arrays that a candidate is given, in places that stay where the judge says so."""

    def __init__(self):
        self.slots = {}
        self.earlier = []  # results of earlier calls, with their digests
        self.last, self.numbers = [], {}

    def kept(self, roots):
        """What the candidate keeps: what counts, and a copy of the last result."""
        keeping = importlib.import_module("keeping")
        before, self.numbers = self.numbers, keeping.numbers(roots)
        return {
            "counts": keeping.changed(before, self.numbers),
            "grown": keeping.grown(before, self.numbers),
            "copy": next((path for path, *_ in keeping.copies(roots, self.last, overlap)), ""),
        }

    def arguments(self, given, slot, strided):
        """Arguments at fresh addresses, or, with a slot, at those of its last ones."""
        values = [argument_of(one) for one in given]
        if strided:
            return [with_gaps(one) for one in values]
        if slot is None:
            return values
        kept = self.slots.get(slot)
        if kept is None or any(not alike(a, b) for a, b in zip(kept, values, strict=True)):
            self.slots[slot] = values
            return values
        for old, new in zip(kept, values, strict=True):
            if is_tensor(old):
                old.copy_(new)
            elif isinstance(old, np.ndarray):
                old[...] = new
        return [old if is_array(old) else new for old, new in zip(kept, values, strict=True)]


def is_array(value):
    """Whether a value is an array or a tensor."""
    return isinstance(value, np.ndarray) or is_tensor(value)


def alike(a, b):
    """Whether one array's values fit into the other's place."""
    if is_array(a) and is_array(b):
        return type(a) is type(b) and a.shape == b.shape and a.dtype == b.dtype
    return not is_array(a) and not is_array(b)


def with_gaps(value):
    """The same values in a view with gaps: each row is part of a longer one."""
    if is_tensor(value) and value.dim() > 1 and value.numel():
        wide = value.new_zeros((*value.shape[:-1], 2 * value.shape[-1] + 1))
        view = wide[..., 1::2]
        view.copy_(value)
        return view
    if isinstance(value, np.ndarray) and value.ndim > 1 and value.size:
        wide = np.zeros((*value.shape[:-1], 2 * value.shape[-1] + 1), value.dtype)
        view = wide[..., 1::2]
        view[...] = value
        return view
    return value


def memory_of(value):
    """(first address, one past the last) of an array's elements; None for what is no array."""
    if is_tensor(value):
        import torch

        storage = torch.Tensor.untyped_storage(value)
        return (
            (storage.data_ptr(), storage.data_ptr() + storage.nbytes())
            if storage.nbytes()
            else None
        )
    if isinstance(value, np.ndarray) and value.size:
        first, last = np.lib.array_utils.byte_bounds(value)
        return first, last
    return None


def overlap(a, b):
    """Whether two arrays share memory."""
    one, other = memory_of(a), memory_of(b)
    return bool(one and other and one[0] < other[1] and other[0] < one[1])


def parts(value):
    """The arrays in a result, flat."""
    if isinstance(value, tuple | list):
        return [part for one in value for part in parts(one)]
    return [value]


def call(candidate, message, desk, watch):
    """(header, buffers) of one call."""
    arguments = desk.arguments(message["arguments"], message["slot"], message["strided"])
    places = message["outputs"]
    launch = message["launch"]
    called = arguments
    if message["device_arrays"]:
        from numba import cuda

        called = [cuda.to_device(one) if isinstance(one, np.ndarray) else one for one in arguments]
    work = launched(candidate, launch, called) if launch else candidate
    before = [digest(one) for one in arguments]
    notes = {}
    with watch.during(message, notes):
        returned = work() if launch else work(*called)
    synchronize()
    if message["device_arrays"]:
        for host, device in zip(arguments, called, strict=True):
            if isinstance(host, np.ndarray):
                device.copy_to_host(host)
    result = [arguments[place] for place in places] if places else returned
    notes["classes"] = sorted({class_of(one) for one in parts(result)})
    notes["changed"] = [
        number
        for number, (one, old) in enumerate(zip(arguments, before, strict=True))
        if old is not None and number not in places and digest(one) != old
    ]
    if not places:
        notes["aliases"] = [
            number
            for number, one in enumerate(arguments)
            if any(overlap(one, part) for part in parts(result) if is_array(part))
        ]
        notes["overwritten"] = any(digest(one) != old for one, old in desk.earlier)
        notes["same_memory"] = any(
            overlap(one, part)
            for one, _ in desk.earlier
            for part in parts(result)
            if is_array(part)
        )
    keeping = importlib.import_module("keeping")
    desk.last = [(one, keeping.data_of(one)) for one in parts(result) if is_array(one)]
    results = [one for one in parts(result) if type(one) is np.ndarray]
    if results and "watching" in sys.modules:
        sys.modules["watching"].LEFT["result"] = results[0].copy()
    buffers = []
    tree = packed(result, buffers)
    if not places:
        mine = [one for one in parts(result) if is_array(one)][:4]
        desk.earlier = [(one, digest(one)) for one in mine]
        if message["spoil"]:
            spoil(mine, arguments)
            desk.earlier = []
    return {"result": tree, "notes": notes}, buffers


def times(candidate, message, clock):
    """Milliseconds of calls with fresh arrays."""
    timed = importlib.import_module("timed")
    sets = [lambda one=one: [argument_of(value) for value in one] for one in message["sets"]]
    launch = message["launch"]
    work = (lambda *given: launched(candidate, launch, given)()) if launch else candidate
    own, whole = timed.samples(work, clock, sets, message["rounds"])
    return {"own": own, "whole": whole}


def class_of(value):
    """The name of a value's class; of an array's or tensor's own class just "array"."""
    torch = sys.modules.get("torch")
    plain = (np.ndarray, int, float, bool, str, type(None), tuple, list)
    if torch is not None:
        plain = (*plain, torch.Tensor, torch.nn.Parameter)
    if type(value) in plain or isinstance(value, np.generic):
        return "array"
    if type(value) in device_arrays():
        return "array"
    return f"{type(value).__module__}.{type(value).__qualname__}"


def device_arrays():
    """Classes of arrays on a device that are none of the candidate's."""
    found = []
    for module in ("utils.cpu.numba_cuda.device_arrays", "numba.cuda.cudadrv.devicearray"):
        cls = getattr(sys.modules.get(module), "DeviceNDArray", None)
        found += [cls] if cls else []
    return found


def spoil(results, arguments):
    """Overwrite what was returned: an answer that is kept and returned again is wrong then."""
    for one in results:
        if any(overlap(one, argument) for argument in arguments):
            continue
        with contextlib.suppress(Exception):
            if is_tensor(one):
                one.detach().fill_(93)
            elif one.flags.writeable:
                one.fill(93)


def launched(kernel, launch, arguments):
    """A function that launches a bare kernel."""
    grid, *rest = launch
    if rest and isinstance(rest[0], dict):  # Triton
        return lambda: kernel[tuple(grid)](*arguments, **rest[0])
    configured = kernel[(grid, *rest)] if len(rest) < 2 else kernel[(grid, rest[0], 0, rest[1])]
    if type(kernel).__module__ == "utils.cuda_c":
        configured = kernel[(grid, *rest)]
    return lambda: configured(*arguments)


def synchronize():
    """Wait for all work on a GPU, if this process uses one."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


# ---- the process


def serve(channel, scratch):
    """Answer the judge until it hangs up."""
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.makedirs(scratch, exist_ok=True)
    os.chdir(scratch)
    os.environ.update(HOME=scratch, TMPDIR=scratch)
    tempfile.tempdir = None  # where to put files was perhaps asked for before
    limit()
    out = os.open(os.devnull, os.O_WRONLY)  # a file would tell by its size how often it was called
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(out)
    _, timed, watching = (importlib.import_module(name) for name in BESIDE)
    watch, desk, candidate, whole = None, Desk(), None, None
    clock = timed.clock()
    while (message := next_message(channel, watch)) is not None:
        nonce = message["nonce"]
        try:
            if message["do"] == "load":
                watch = watching.Watch(message) if message["watched"] else watching.Blind()
                if not message["watched"]:
                    ctypes.CDLL(None).mallopt(M_PERTURB, 0)  # memory as it is elsewhere
                with watch.loading():
                    candidate, whole = load(message)
                watch.loaded(candidate, whole)
                header, buffers = {}, ()
            elif message["do"] == "call":
                counted = further(candidate, whole, message["advance"])
                if message["overwrite"]:
                    roots = roots_of(candidate, whole)
                    importlib.import_module("keeping").overwrite(roots, desk.last, overlap)
                header, buffers = call(candidate, message, desk, watch)
                header["notes"]["advanced"] = counted
                if message["keeping"]:
                    header["notes"] |= desk.kept(roots_of(candidate, whole))
            elif message["do"] == "time":
                header, buffers = times(candidate, message, clock), ()
            else:
                header, buffers = {"left": watch.left()}, ()
        except BaseException as error:
            header, buffers = {"error": told(error)}, ()
        header["findings"] = watch.taken() if watch else []
        header["nonce"] = nonce
        reply(channel, header, buffers)


def next_message(channel, watch):
    """The next message. What is imported to read it is none of the candidate's doing."""
    if watch is None:
        return receive(channel)
    with watch.resting():
        return receive(channel)


def told(error):
    """An error in words, with the innermost line of the submission, if it went through one."""
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") in (MODULE, "__main__"):
            name = os.path.basename(trace.tb_frame.f_code.co_filename)
            line = f"{name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    try:
        text = str(error).strip()[:500]
    except Exception:
        text = ""
    kind = getattr(error, "kind", None) if type(error).__module__.startswith("utils.") else None
    return {"type": type(error).__name__, "says": text, "line": line, "kind": kind}


def limit():
    """Limit CPU time, memory and the size of files; no candidate can lift them."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limits = {
        resource.RLIMIT_CPU: int(used.ru_utime + used.ru_stime) + CPU_SECONDS,
        resource.RLIMIT_FSIZE: MOST_FILE,
        resource.RLIMIT_CORE: 0,
    }
    if not os.path.exists("/dev/nvidiactl"):  # CUDA reserves far more than it uses
        limits[resource.RLIMIT_DATA] = MOST_BYTES
    for what, most in limits.items():
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def nursery(control, modules):
    """Import what candidates need, then make a copy for each: see the module's docstring."""
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    for name in modules:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in BESIDE:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    control.sendall(b"ready")
    while True:
        data, handles, _, _ = socket.recv_fds(control, 4096, 1)
        if not data:
            return
        order, _, text = data.decode().partition(" ")
        if order in ("end", "lost"):
            control.sendall(str(ended(int(text), order == "lost")).encode())
            continue
        pid = os.fork()
        if pid == 0:
            control.close()
            try:
                serve(socket.socket(fileno=handles[0]), text)
            finally:
                os._exit(0)
        os.close(handles[0])
        control.sendall(str(pid).encode())


def ended(pid, lost):
    """End a copy with all that it started; its exit status, or minus the signal that ended it.

    lost: it has hung up, so it is about to end by itself.
    """
    last = time.monotonic() + (DYING if lost else 0)
    done, status = os.waitpid(pid, os.WNOHANG)
    while not done and time.monotonic() < last:
        time.sleep(0.005)
        done, status = os.waitpid(pid, os.WNOHANG)
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    if not done:
        _, status = os.waitpid(pid, 0)
        return 0  # it was alive until it was ended
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), sys.argv[2]]
    nursery(socket.socket(fileno=int(sys.argv[1])), sys.argv[3:])
