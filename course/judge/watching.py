"""Inside the candidate's process: what it reaches for, what it changes, what runs for it.

Python's audit hooks cannot be taken off again, functions are compared with what they were before
the candidate came, PyTorch's dispatcher tells of each operation, and the engines of each launch.
All of it is evidence, no wall: what decides whether a result is right is judged in another process.
"""

import atexit
import collections
import contextlib
import datetime
import functools
import gc
import operator
import os
import random
import signal
import sys
import sysconfig
import time
import timeit
from datetime import timedelta
from time import localtime as _localtime
from time import time as _now

import numpy as np

try:  # a file beside this one, in a process that knows no `course`
    import running
except ModuleNotFoundError:
    from course.judge import running

#: Modules whose functions a candidate has no business to change
GUARDED = (
    "atexit builtins ctypes functools gc io json linecache math operator os pickle random select"
    " socket statistics struct subprocess sys threading time timeit types weakref"
    " numpy numpy.linalg numpy.fft numpy.testing numpy.random"
    " torch torch.cuda torch.cuda.streams torch.nn.functional torch.linalg torch.fft torch.testing"
    " torch.autograd torch.profiler torch.utils.benchmark torch.utils._python_dispatch"
    " torch.autograd.profiler"
    " triton triton.testing triton.runtime.driver numba numba.cuda"
    " utils.timing utils.check utils.check.comparison utils.cuda_c __main__"
    " channel desk keeping running timed watching"
).split()
CLASSES = {
    "torch": ("Tensor",),
    "torch.cuda": ("Event", "Stream", "CUDAGraph"),
    "torch.nn": ("Module",),
}
#: Names that are set by whoever imports or runs something, not by a candidate
SET_BY_PYTHON = {
    "sys": {
        "last_type",
        "last_value",
        "last_traceback",
        "last_exc",
        "stdout",
        "stderr",
        "path",
        "modules",
        "path_importer_cache",
        "ps1",
        "ps2",
        "argv",
        "flags",
    },
    "builtins": {"_"},
    "__main__": {"now"},
}

STDLIB = sysconfig.get_paths()["stdlib"] + os.sep

#: Audit events -> the reason's key
EVENTS = {
    "gc.get_objects": "looks_around",
    "gc.get_referrers": "looks_around",
    "gc.get_referents": "looks_around",
    "sys._current_frames": "looks_around",
    "sys._current_exceptions": "looks_around",
    "sys._getframe": "looks_around",
    "sys._getframemodulename": "looks_around",
    "sys.settrace": "looks_around",
    "sys.setprofile": "looks_around",
    "sys.addaudithook": "looks_around",
    "cpython._PySys_ClearAuditHooks": "looks_around",
    "code.__new__": "hides_code",
    "marshal.loads": "hides_code",
    "compile": "hides_code",
    "exec": "hides_code",
    "os.system": "starts_processes",
    "os.exec": "starts_processes",
    "os.fork": "starts_processes",
    "os.forkpty": "starts_processes",
    "os.posix_spawn": "starts_processes",
    "os.spawn": "starts_processes",
    "os.startfile": "starts_processes",
    "pty.spawn": "starts_processes",
    "subprocess.Popen": "starts_processes",
    "os.kill": "starts_processes",
    "signal.pthread_kill": "starts_processes",
    "socket.__new__": "network",
    "socket.connect": "network",
    "socket.getaddrinfo": "network",
    "urllib.Request": "network",
    "os.putenv": "leaves_files",
    "os.unsetenv": "leaves_files",
    "os.remove": "leaves_files",
    "os.rename": "leaves_files",
    "os.mkdir": "leaves_files",
    "os.listdir": "reads_files",
    "os.scandir": "reads_files",
    "glob.glob": "reads_files",
    "shutil.copyfile": "leaves_files",
}
#: Beginnings of environment variables by which compilers are told what to do
FOR_COMPILERS = ("TORCH_", "CUDA_", "TRITON_", "MAX_JOBS", "CC", "CXX", "NVCC", "PYTORCH_")
#: Events that only what the candidate itself calls can tell: the standard library does so all day
DIRECT = {
    "object.__getattr__",
    "object.__setattr__",
    "sys._getframe",
    "sys._getframemodulename",
    "compile",
    "exec",
    "code.__new__",
    "marshal.loads",
}
#: Attributes of frames, tracebacks, generators and functions that lead to others' variables
INNER = {
    "tb_frame",
    "f_back",
    "f_code",
    "f_globals",
    "gi_frame",
    "cr_frame",
    "ag_frame",
    "__code__",
}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
#: Files and folders that anything may read: what libraries look up about the machine
HARMLESS = ("/sys/", "/dev/null", "/dev/urandom", "/etc/ld.so", "/usr/", "/lib")


class Watch:
    """What is noted of one candidate."""

    def __init__(self, message):
        self.mine = {message["filename"]}
        self.pickled = message["kind"] == "pickle"
        self.findings = []
        self.told = set()
        self.scratch = os.path.realpath(os.getcwd())
        self.libraries = libraries()
        running.poisoned_allocations()
        running.count_numpy()
        self.count_clocks()
        atexit.register = self.registering(atexit.register)
        self.functions, self.before = Functions(), settings()
        self.on = True
        self.calling = False
        self.busy = False
        self.asked, self.another_time, self.jumps = {}, False, 0
        sys.addaudithook(self.heard)

    # -- what it reaches for

    def heard(self, event, arguments):
        """The audit hook."""
        if not self.on or self.busy:
            return
        self.busy = True
        try:
            self.judge(event, arguments)
        finally:
            self.busy = False

    def judge(self, event, arguments):
        """Note an event, if it is the candidate's doing and means something."""
        key = EVENTS.get(event)
        if key is None:
            if event.startswith("ctypes."):
                key = "raw_memory"
            elif event == "open":
                key = self.of_open(*arguments)
            elif event == "object.__getattr__" and arguments[1] in INNER:
                key = "looks_around"
            elif event == "object.__setattr__" and arguments[1] in ("__code__", "__defaults__"):
                key = "patched"
            elif event == "import" and str(arguments[0]).partition(".")[0] in (
                "course",
                "watching",
                "kerneljudge",
            ):
                key = "looks_around"
        if key is None:
            return
        frame = self.frame_of(event)
        if frame is not None:
            self.note(key, self.place(frame), f"{event}{shown(arguments)}")

    def of_open(self, path, mode, flags):
        """The key for a file that is opened, or None."""
        if not isinstance(path, str | bytes):
            return None
        path = os.path.realpath(os.fsdecode(path))
        if (path + os.sep).startswith(self.scratch + os.sep) or path in self.mine:
            return None
        if isinstance(flags, int) and flags & WRITES:
            return "leaves_files"
        trusted = (STDLIB, sysconfig.get_paths()["purelib"] + os.sep, *self.libraries, *HARMLESS)
        return None if path.startswith(trusted) else "reads_files"

    def frame_of(self, event):
        """The candidate's frame that made an event, or None where a library did.

        What the standard library does for somebody is that one's doing; what Python does to import
        a module is nobody's. Code of an unknown text is that of whoever runs it.
        """
        frame = sys._getframe(3)
        while frame is not None:
            name = frame.f_code.co_filename
            if self.is_theirs(name):
                return frame
            if name.startswith("<frozen importlib"):
                return None
            is_text = name.startswith("<") and not name.startswith("<frozen")
            inner = name.startswith(("<frozen", STDLIB)) and "site-packages" not in name
            inner |= event == "open" and name.startswith(running.NUMPY)
            direct = event in DIRECT and not name.endswith(("inspect.py", "traceback.py"))
            if not is_text and (not inner or direct):
                return None
            frame = frame.f_back
        return None

    def is_theirs(self, name):
        """Whether a file is the candidate's: handed in, or written since."""
        return name in self.mine or name.startswith(self.scratch + os.sep)

    def place(self, frame):
        name = os.path.basename(frame.f_code.co_filename)
        return f"{name}, line {frame.f_lineno}"

    def note(self, key, where, what):
        """Keep a finding once."""
        if (key, where, what) not in self.told and len(self.findings) < 50:
            self.told.add((key, where, what))
            self.findings.append({"key": key, "where": where, "what": what})

    @contextlib.contextmanager
    def resting(self):
        """Within the `with` nothing is noted."""
        self.busy = True
        try:
            yield
        finally:
            self.busy = False

    def taken(self):
        """The findings since the last time."""
        with self.resting():
            taken, self.findings = self.findings, []
            return taken

    def count_clocks(self):
        """Let clocks and random numbers note who asks in a call; clocks may tell another time."""
        for module, names in ASKED.items():
            for name in names.split():
                original = getattr(module, name, None)
                if original is not None:
                    setattr(module, name, self.asking(original, f"{module.__name__}.{name}"))
        datetime.datetime = self.dated(datetime.datetime, ("now", "utcnow", "today"))
        datetime.date = self.dated(datetime.date, ("today",))

    def asking(self, original, name):
        """The same function, which notes who asks in a call."""

        is_clock = name.startswith(CLOCKS)
        place = CALENDAR.get(name)

        def asked(*arguments, **named):
            frame = self.asker(sys._getframe(1), is_clock)
            is_told = place is not None and arguments[place:] not in ((), (None,))
            if frame is None or is_told:  # a time that it is given is no clock's
                return original(*arguments, **named)
            if name == "time.sleep":
                self.note("sleeps", self.place(frame), name)
            elif name.startswith("os.") and name not in CLOCKS:
                self.note("knows_the_test", self.place(frame), name)
            else:
                self.asked[f"`{name}` ({self.place(frame)})"] = True
            if place is not None and self.another_time:
                then = _now() + self.jump()
                by_struct = name in ("time.strftime", "time.asctime")
                return original(*arguments[:place], _localtime(then) if by_struct else then)
            told = original(*arguments, **named)
            return self.later(told) if self.another_time and is_clock else told

        no_method = functools.partial(asked)  # which a class may hold as it may hold a built-in one
        no_method.__wrapped__ = original
        return no_method

    def asker(self, frame, through=False):
        """The candidate's frame that asks for something in a call, None where another does.

        through: what the standard library asks for somebody, that one asks.
        """
        if not self.calling:
            return None
        while frame is not None and not self.is_theirs(frame.f_code.co_filename):
            name = frame.f_code.co_filename
            if not through or not name.startswith(STDLIB) or "site-packages" in name:
                return None
            frame = frame.f_back
        return frame

    def jump(self):
        """Seconds to another time: years, and longer each time."""
        self.jumps += 1
        return YEARS + JUMP * self.jumps

    def dated(self, original, names):
        """A class of `datetime` whose ways to ask what time it is note who asks."""

        def asking(name):
            def asked(cls, *arguments, **named):
                told = getattr(original, name)(*arguments, **named)
                frame = self.asker(sys._getframe(1), through=True)
                if frame is None:
                    return told
                self.asked[f"`datetime.{name}` ({self.place(frame)})"] = True
                return told + timedelta(seconds=self.jump()) if self.another_time else told

            return classmethod(asked)

        class Kind(type):
            def __instancecheck__(cls, one):
                return isinstance(one, original)

            def __subclasscheck__(cls, other):
                return issubclass(other, original)

        held = {name: asking(name) for name in names} | {"__module__": original.__module__}
        return Kind(original.__name__, (original,), held)

    def later(self, told):
        """A time long after what a clock tells, and longer each time."""
        if told is None:
            return None
        seconds = self.jump()
        if isinstance(told, os.times_result):
            return os.times_result([one + seconds for one in told])
        return told + (seconds * 10**9 if isinstance(told, int) else float(seconds))

    def registering(self, original):
        """atexit.register, which notes who asks."""

        def register(function, *arguments, **named):
            frame = sys._getframe(1)
            if frame.f_code.co_filename in self.mine:
                self.note("exit_hook", self.place(frame), "atexit.register")
            return original(function, *arguments, **named)

        return register

    # -- what it changes

    @contextlib.contextmanager
    def loading(self):
        """While the candidate is loaded: its own `exec` is the worker's."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(running.dispatched(collections.Counter(), False))
            running.cuda_c_watched(stack)
            yield

    def loaded(self, candidate, whole):
        """Which files and functions are the candidate's."""
        for value in (
            candidate,
            getattr(candidate, "py_func", None),
            getattr(candidate, "forward", None),
        ):
            code = getattr(value, "__code__", None)
            if code is not None and self.pickled:
                self.mine.add(code.co_filename)
        with self.resting():  # to make a model draws weights
            self.before |= {what: one for what, one in settings().items() if what[0] == "counter"}
        self.changed()

    def changed(self):
        """Note what is no more as it was before the candidate came."""
        with self.resting():
            before, now = self.before, settings()
            if not self.functions.are_the_same():
                before = before | self.functions.before
                now = now | self.functions.identities()
            for what, old in before.items():
                new = now.get(what)
                if new != old:
                    key, words = difference(what, old, new)
                    self.note(key, "", words)

    # -- what runs for it

    @contextlib.contextmanager
    def during(self, message, notes):
        """One call: operations, launches, lines and threads go into `notes`."""
        operations = collections.Counter()
        running.COUNTS.clear()
        threads = set(sys._current_frames())
        launches = running.Launches(message)
        lines = running.Lines(self.mine) if message["lines"] else None
        with running.dispatched(operations, message["poison"]), launches:
            self.asked, self.another_time = {}, message["another_time"]
            self.calling = True
            if not message["leftover"]:
                running.LEFT.clear()
            if lines:
                lines.start()
            try:
                yield
            finally:
                self.calling = False
                if lines:
                    lines.stop()
                left = set(sys._current_frames()) - threads
        notes["operations"] = dict(operations)
        notes["numpy"] = dict(running.COUNTS)
        notes["launches"] = launches.names
        notes["problems"] = launches.problems
        notes["asked"] = list(self.asked)[:20]
        notes["lines"] = lines.count if lines else None
        notes["swallowed"] = lines.swallowed if lines else []
        if left:
            self.note("threads", "", f"{len(left)} thread(s) of Python more than before the call")
        self.changed()

    def left(self):
        """What is left at the end."""
        files = []
        for folder, _, names in os.walk(self.scratch):
            files += [os.path.relpath(os.path.join(folder, name), self.scratch) for name in names]
        self.changed()
        return {"files": sorted(files)[:50]}


#: Clocks, and random numbers
ASKED = {
    time: "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time"
    " process_time_ns thread_time thread_time_ns sleep localtime gmtime ctime asctime strftime",
    random: "random randint randrange choice uniform getrandbits shuffle",
    np.random: "rand randn randint random uniform normal choice default_rng",
    timeit: "default_timer",
    os: "getpid getppid times getloadavg urandom",
}
CLOCKS = ("time.", "timeit.", "os.times")
#: Which argument is a time: where it is left out, a clock is read
CALENDAR = {
    "time.localtime": 0,
    "time.gmtime": 0,
    "time.ctime": 0,
    "time.asctime": 0,
    "time.strftime": 1,
}
#: Seconds to another time, and those that pass there from one look at a clock to the next
YEARS, JUMP = 10 * 365 * 86_400, 12_347


IMPORTED = ("numpy", "torch", "triton", "numba")


def libraries():
    """The folders in which NumPy and its like lie: not all are where this Python's packages are."""
    files = [getattr(sys.modules.get(name), "__file__", None) for name in IMPORTED]
    folders = {os.path.dirname(os.path.dirname(os.path.realpath(one))) for one in files if one}
    return [folder + os.sep for folder in folders]


def shown(arguments):
    """Arguments of an event in a few characters; nothing of the candidate's own is called."""
    known = [one for one in arguments if type(one) in (str, int, bytes)]
    return f"({', '.join(map(repr, known))[:120]})"


# ---- the state of the process


class Functions:
    """The functions that a candidate must leave alone, as they were when this was made."""

    def __init__(self):
        self.places = []  # (module, class or None, what takes the functions out of it, these)
        self.before = self.identities()
        for place in dict.fromkeys(place for place, _ in self.before):
            names = [name for one, name in self.before if one == place]
            # with one name alone an itemgetter would give no tuple
            taken = operator.itemgetter(*names, names[0])
            self.places.append((place, taken, taken(holder_of(place))))
        every = [one for *_, values in self.places for one in values]
        self.inner = []  # (what takes a part out of each function, functions, these parts)
        for name in ("__code__", "__defaults__"):
            having = [one for one in every if hasattr(one, name)]
            taken = operator.attrgetter(name)
            self.inner.append((taken, having, list(map(taken, having))))

    def identities(self):
        """(place, name) -> what tells that a function is the same, and does the same."""
        engines = [name for name in sys.modules if name.startswith("utils.")]
        of_classes = [f"{name}.{one}" for name, classes in CLASSES.items() for one in classes]
        found = {}
        for place in (*GUARDED, *engines, *of_classes):
            skipped = SET_BY_PYTHON.get(place, ())
            for name, value in list(holder_of(place).items()):
                # of a class the operators count, too
                hidden = "__slots" if place in of_classes else "__"
                if callable(value) and name not in skipped and not name.startswith(hidden):
                    found[place, name] = identity(value)
        return found

    def are_the_same(self, every=all, over=map, same=operator.is_):
        """Whether nothing has changed: thousands are compared after each call, so without a loop,
        and by what no candidate has replaced.
        """
        try:
            return every(
                every(over(same, taken(holder_of(place)), values))
                for place, taken, values in self.places
            ) and every(
                every(over(same, over(taken, having), values))
                for taken, having, values in self.inner
            )
        except (KeyError, AttributeError):
            return False


def holder_of(place):
    """Name -> value, of a module or of a class in one; nothing for what is not there."""
    module, name = sys.modules.get(place), ""
    if module is None:
        outer, _, name = place.rpartition(".")
        module = sys.modules.get(outer)
    held = {} if module is None else vars(module)  # which imports nothing, as an attribute may
    return vars(held[name]) if name in held else {} if name else held


def settings():
    """(group, name) -> all else that a candidate must leave alone: of the process, of libraries."""
    found = {}
    found["process", "signal handlers"] = tuple(
        id(signal.getsignal(number)) for number in range(1, 32)
    )
    found["process", "environment"] = tuple(
        pair for pair in sorted(os.environ.items()) if not pair[0].startswith(FOR_COMPILERS)
    )
    found["process", "folder"] = os.getcwd()
    found["process", "cores"] = tuple(sorted(os.sched_getaffinity(0)))
    found["process", "import hooks"] = tuple(map(id, (*sys.meta_path, *sys.path_hooks)))
    found["process", "collector's hooks"] = tuple(map(id, gc.callbacks))
    found["counter", "NumPy's random numbers"] = digest_of(np.random.get_state()[1:3])
    found["counter", "Python's random numbers"] = hash(random.getstate())
    found["counter", "Python's collector of garbage"] = gc.isenabled()
    found["counter", "NumPy's way to print"] = str(np.get_printoptions())
    found["counter", "NumPy's way with errors"] = str(np.geterr())
    found["counter", "limits of the interpreter"] = (
        sys.getrecursionlimit(),
        sys.getswitchinterval(),
        gc.get_threshold(),
    )
    found["precision", "the smallest numbers"] = str(SMALLEST * ONE)
    torch = sys.modules.get("torch")
    if torch is not None:
        found["counter", "PyTorch's random numbers"] = torch.get_rng_state().sum().item()
        found["counter", "PyTorch's gradients"] = torch.is_grad_enabled()
        found["counter", "PyTorch's threads"] = torch.get_num_threads()
        found["precision", TYPE] = str(torch.get_default_dtype())
        found["precision", "precision of float32 products"] = torch.get_float32_matmul_precision()
        found["precision", "TF32 in matrix products"] = torch.backends.cuda.matmul.allow_tf32
        found["precision", "fp16 sums in matrix products"] = (
            torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
        )
    return found


TYPE = "PyTorch's default type"
#: A product of these is zero where a process takes such small numbers for zero
SMALLEST, ONE = np.float32(1e-40), np.float32(1)


def digest_of(parts):
    """A number that tells that arrays and numbers are the same."""
    return hash(tuple(bytes(np.asarray(one).tobytes()) for one in parts))


def identity(value):
    """What tells that a function is the same, and does the same."""
    code = getattr(value, "__code__", None)
    return id(value), id(code), id(getattr(value, "__defaults__", None))


def difference(what, old, new):
    """(key, words) for what has changed."""
    group, name = what
    if group == "process":
        key = "leaves_files" if name == "environment" else "patched"
        return key, f"the process's {name} are others than before"
    if group == "counter":
        return "counts_calls", f"{name} are others than before"
    if name == TYPE and new == "torch.float64":
        return "patched", f"{name}: {new}, and it was {old}"
    if group == "precision":
        return "narrower", f"{name}: {new}, and it was {old}"
    return "patched", f"{group}.{name} is another than before"


class Blind:
    """A Watch that leaves the process as it is: nothing in it tells that a judge is there."""

    @contextlib.contextmanager
    def loading(self):
        yield

    @contextlib.contextmanager
    def resting(self):
        yield

    def loaded(self, candidate, whole):
        pass

    @contextlib.contextmanager
    def during(self, message, notes):
        yield
        notes.update(operations={}, numpy={}, launches=[], problems=[], lines=None, swallowed=[])

    def taken(self):
        return []

    def left(self):
        return {}
