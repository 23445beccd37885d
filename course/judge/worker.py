"""Inside the candidate's process: load it, call it, send back what it returned, as bytes.

Run as a program: first a *nursery*, which imports what candidates need and has never seen a
reference, a task or another candidate; for each candidate it makes a copy of itself. What the copy
sends is JSON and raw bytes: to unpickle what a candidate wrote would be to run it.
"""

import contextlib
import ctypes
import gc
import importlib
import linecache
import os
import pickle
import resource
import signal
import socket
import sys
import tempfile
import time
import types

import numpy as np

try:  # files beside this one, in a process that knows no `course`
    import channel as messages
    import desk as arrays
    import keeping
    import running
    import timed
    import watching
except ModuleNotFoundError:
    from course.judge import channel as messages
    from course.judge import desk as arrays
    from course.judge import keeping, running, timed, watching

M_PERTURB = -6
DYING = 2  # seconds in which a process that hung up ends by itself
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
CPU_SECONDS = 300
MANY_CALLS = 1_000_000
MOST_BYTES = 4 << 30
MOST_FILE = 1 << 28
#: What is there only with an NVIDIA driver
A_GPU = "/dev/nvidiactl"
#: The name under which a submission's module is known in its process
MODULE = "submission"


#: Whether the candidate has a place for the reference's weights
FITS = {"state": True}


class Unloadable(Exception):
    """The candidate cannot be loaded; the text says why."""


# ---- the candidate


def load(message):
    """The candidate's callable, as `calling` calls it."""
    kind, entry = message["kind"], message["entry"]
    sys.path[:] = [one for one in sys.path if one not in message["hidden"]]
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
    values = [arrays.argument_of(one) for one in init["arguments"]]
    made = cls(*values)
    if init.get("state") and hasattr(made, "load_state_dict"):
        state = {name: arrays.argument_of(one) for name, one in init["state"].items()}
        weights = fitting(made, state)
        made.load_state_dict(weights or {}, strict=False)
        FITS["state"] = weights is not None
    if isinstance(made, torch.nn.Module):
        made = made.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    return made


def fitting(made, state):
    """Of the reference's weights those that a model has: by name, or, with other names, in order.

    None where it keeps them in a form of its own.
    """
    own = made.state_dict()
    shapes = {name: tuple(value.shape) for name, value in own.items()}
    theirs = [tuple(value.shape) for value in state.values()]
    if all(name in state and tuple(state[name].shape) == shapes[name] for name in shapes):
        return {name: state[name] for name in shapes}
    if list(shapes.values()) == theirs:
        return dict(zip(shapes, state.values(), strict=True))
    return None


# ---- one call


def call(candidate, message, desk, watch):
    """(header, buffers) of one call."""
    how = {name: message[name] for name in ("slot", "strided", "same")}
    arguments = desk.arguments(message["arguments"], **how)
    places = message["outputs"]
    launch = message["launch"]
    called = arguments
    if message["device_arrays"]:
        called = arrays.on_device(arguments)
    work = launched(candidate, launch, called) if launch else candidate
    before = [arrays.digest(one) for one in arguments]
    notes = {}
    if message["late"]:
        arrays.come_late(called)
    with watch.during(message, notes):
        returned = work() if launch else work(*called)
    synchronize()
    if message["device_arrays"]:
        for host, device in zip(arguments, called, strict=True):
            if isinstance(host, np.ndarray):
                device.copy_to_host(host)
    result = [arguments[place] for place in places] if places else returned
    notes["classes"] = sorted({arrays.class_of(one) for one in arrays.parts(result)})
    notes["changed"] = [
        number
        for number, (one, old) in enumerate(zip(arguments, before, strict=True))
        if old is not None and number not in places and arrays.digest(one) != old
    ]
    notes["outside"] = [number for number, one in enumerate(arguments) if arrays.is_overrun(one)]
    if message["slot"] is None or not places:  # else the judge's own arrays lie there again
        notes["overwritten"] = any(arrays.digest(one) != old for one, old in desk.earlier)
    if not places:
        notes["aliases"] = [
            number
            for number, one in enumerate(arguments)
            if any(
                arrays.overlap(one, part) for part in arrays.parts(result) if arrays.is_array(part)
            )
        ]
        notes["same_memory"] = any(
            arrays.overlap(one, part)
            for one, _ in desk.earlier
            for part in arrays.parts(result)
            if arrays.is_array(part)
        )
    desk.last = [
        (one, keeping.data_of(one)) for one in arrays.parts(result) if arrays.is_array(one)
    ]
    results = [one for one in arrays.parts(result) if type(one) is np.ndarray]
    if results:
        running.LEFT["result"] = results[0].copy()
    buffers = []
    tree = arrays.packed(result, buffers)
    if message["slot"] is None or not places:
        mine = [one for one in arrays.parts(result) if arrays.is_array(one)][:4]
        desk.remember(mine, message["spoil"] and not places, arguments)
    return {"result": tree, "notes": notes}, buffers


def prepared(candidate, message):
    """(what is timed, functions that give it fresh arguments)."""
    place = arrays.on_device if message["device_arrays"] else list
    given = [place(list(map(arrays.argument_of, one))) for one in message["sets"]]
    sets = [lambda one=one: list(map(arrays.elsewhere, one)) for one in given]
    launch = message["launch"]
    return (lambda *given: launched(candidate, launch, given)()) if launch else candidate, sets


def times(work, sets, message, clock):
    """Milliseconds of rounds with fresh arrays, and how much of the cache is set aside."""
    how = {name: message[name] for name in ("rounds", "calls", "warm_up")}
    own, whole = timed.samples(work, clock, sets, **how)
    return {"own": own, "whole": whole, "held": clock.held()}


def launched(kernel, launch, arguments):
    """A function that launches a bare kernel."""
    grid, *rest = launch
    if rest and isinstance(rest[0], dict):  # Triton
        allocate_for_descriptors()
        return lambda: kernel[tuple(grid)](*arguments, **rest[0])
    configured = kernel[(grid, *rest)] if len(rest) < 2 else kernel[(grid, rest[0], 0, rest[1])]
    if type(kernel).__module__ == "utils.cuda_c":
        configured = kernel[(grid, *rest)]
    return lambda: configured(*arguments)


def allocate_for_descriptors():
    """Give Triton memory for tensor descriptors that a kernel makes: whoever launches one must."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():

        def allocate(size, alignment, stream):
            return torch.empty(size, dtype=torch.int8, device="cuda")

        sys.modules["triton"].set_allocator(allocate)


def synchronize():
    """Wait for all work on a GPU, if this process uses one, by whichever library."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    elif os.path.exists(A_GPU):
        with contextlib.suppress(OSError):
            ctypes.CDLL("libcuda.so.1").cuCtxSynchronize()


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
    watch, desk, candidate, whole, clock = None, arrays.Desk(), None, None, None
    while (message := next_message(channel, watch)) is not None:
        nonce = message["nonce"]
        try:
            if message["do"] == "load":
                clock = timed.clock() if message["timed"] else timed.context()
                watch = watching.Watch(message) if message["watched"] else watching.Blind()
                sys.dont_write_bytecode = message["watched"]
                if not message["watched"]:
                    ctypes.CDLL(None).mallopt(M_PERTURB, 0)  # memory as it is elsewhere
                if message["order"] is not None:
                    os.putenv("CUDA_CPU_SEED", str(message["order"]))  # Python's own are as before
                with watch.loading():
                    candidate, whole = load(message)
                watch.loaded(candidate, whole)
                header, buffers = {"fits": FITS["state"]}, ()
            elif message["do"] == "call":
                counted = further(candidate, whole, message["advance"])
                if message["overwrite"]:
                    roots = roots_of(candidate, whole)
                    keeping.overwrite(roots, desk.last, arrays.overlap)
                header, buffers = call(candidate, message, desk, watch)
                header["notes"]["advanced"] = counted
                if message["keeping"]:
                    header["notes"] |= desk.kept(roots_of(candidate, whole))
            elif message["do"] == "prepare":
                bench = prepared(candidate, message)
                header, buffers = {}, ()
            elif message["do"] == "time":
                header, buffers = times(*bench, message, clock), ()
            else:
                header, buffers = {"left": watch.left()}, ()
        except BaseException as error:
            header, buffers = {"error": told(error)}, ()
        header["findings"] = watch.taken() if watch else []
        header["nonce"] = nonce
        messages.reply(channel, header, buffers)


def next_message(channel, watch):
    """The next message. What is imported to read it is none of the candidate's doing."""
    if watch is None:
        return messages.receive(channel)
    with watch.resting():
        return messages.receive(channel)


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
    if not os.path.exists(A_GPU):  # CUDA reserves far more than it uses
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
    sys.path.insert(1, sys.argv[2])
    nursery(socket.socket(fileno=int(sys.argv[1])), sys.argv[3:])
