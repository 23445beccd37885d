"""What a candidate's text says before anything of it runs.

A text proves less than a run, and what is written cleverly escapes it. But what a kernel has no use
for, such as other functions' frames, is named here with its line.
"""

import ast
import builtins
from dataclasses import dataclass, field

from course.judge.report import Reason
from course.judge.words import sentence

#: Names of `types` by which things are told apart, or kept
KINDS = set(
    "SimpleNamespace MappingProxyType BuiltinFunctionType BuiltinMethodType MethodType NoneType"
    " GeneratorType GenericAlias EllipsisType".split()
)
#: module -> (key, names of it that are harmless)
MODULES = {
    "gc": ("looks_around", {"collect", "freeze", "disable", "enable"}),
    "inspect": ("looks_around", {"signature", "getsource"}),
    "traceback": ("looks_around", {"print_exc", "format_exc"}),
    "ctypes": ("raw_memory", set()),
    "_ctypes": ("raw_memory", set()),
    "cffi": ("raw_memory", set()),
    "mmap": ("raw_memory", set()),
    "llvmlite": ("raw_memory", set()),
    "atexit": ("exit_hook", set()),
    "subprocess": ("starts_processes", set()),
    "multiprocessing": ("starts_processes", set()),
    "pty": ("starts_processes", set()),
    "socket": ("network", set()),
    "requests": ("network", set()),
    "urllib": ("network", set()),
    "http": ("network", set()),
    "threading": ("threads", {"Lock", "RLock", "local"}),
    "_thread": ("threads", set()),
    "concurrent": ("threads", set()),
    "asyncio": ("threads", set()),
    "signal": ("patched", set()),
    "importlib": ("hides_code", set()),
    "builtins": ("patched", set()),
    "marshal": ("hides_code", set()),
    "base64": ("hides_code", set()),
    "zlib": ("hides_code", set()),
    "codecs": ("hides_code", set()),
    "pickle": ("hides_code", set()),
    "dill": ("hides_code", set()),
    "cloudpickle": ("hides_code", set()),
    "runpy": ("hides_code", set()),
    "pkgutil": ("hides_code", set()),
    "unittest": ("patched", set()),
    "weakref": ("exit_hook", {"WeakKeyDictionary", "WeakValueDictionary", "WeakSet", "ref"}),
    "faulthandler": ("looks_around", set()),
    "shelve": ("leaves_files", set()),
    "sqlite3": ("leaves_files", set()),
    "secrets": ("knows_the_test", set()),
    "course": ("looks_around", set()),
    "kerneljudge": ("looks_around", set()),
    "watching": ("looks_around", set()),
    "keeping": ("looks_around", set()),
    "timed": ("looks_around", set()),
    "running": ("looks_around", set()),
    "desk": ("looks_around", set()),
    "__main__": ("looks_around", set()),
    "utils": ("looks_around", {"cuda_c", "has_gpu", "pick", "machine", "benchmark", "check"}),
    "resource": ("knows_the_test", set()),
    "psutil": ("knows_the_test", set()),
    "mock": ("patched", set()),
    "types": ("hides_code", KINDS),
    "_posixsubprocess": ("starts_processes", set()),
    "posix": ("knows_the_test", set()),
}
OF_SYS = {
    "_getframe": "looks_around",
    "_current_frames": "looks_around",
    "modules": "looks_around",
    "settrace": "looks_around",
    "setprofile": "looks_around",
    "gettrace": "knows_the_test",
    "getprofile": "knows_the_test",
    "argv": "knows_the_test",
    "addaudithook": "looks_around",
    "meta_path": "patched",
    "path_hooks": "patched",
    "exc_info": "looks_around",
    "getrefcount": "knows_the_test",
    "_getframemodulename": "looks_around",
}
OF_OS = {
    "environ": "knows_the_test",
    "getenv": "knows_the_test",
    "getppid": "looks_around",
    "getcwd": "knows_the_test",
    "uname": "knows_the_test",
    "getpid": "knows_the_test",
    "_exit": "forged",
    "write": "forged",
    "dup": "forged",
    "dup2": "forged",
    "fdopen": "forged",
    "fork": "starts_processes",
    "system": "starts_processes",
    "popen": "starts_processes",
    "kill": "starts_processes",
    "putenv": "leaves_files",
    "register_at_fork": "exit_hook",
    "urandom": "knows_the_test",
    "stat": "knows_the_test",
    "fstat": "knows_the_test",
    "getloadavg": "knows_the_test",
    "read": "looks_around",
    "pread": "looks_around",
    "pwrite": "forged",
    "sendfile": "forged",
    "close": "forged",
    "closerange": "forged",
    "setsid": "starts_processes",
    "posix_spawn": "starts_processes",
}
#: Questions about files, of which no audit hook hears
OF_PATHS = {f"os.path.{name}" for name in ("exists", "isfile", "isdir", "getsize", "getmtime")}
#: Doors from compiled code to any function of the process
FOREIGN = {"ExternalFunction", "load_library_permanently", "add_symbol", "address_of_symbol"}
#: What many write to find out what is installed
HARMLESS = {
    "importlib.util",
    "importlib.util.find_spec",
    "importlib.metadata",
    "importlib.metadata.version",
}
#: Beginnings of environment variables by which compilers are told what to do
FOR_COMPILERS = ("TORCH_", "CUDA_", "TRITON_", "MAX_JOBS", "CC", "CXX", "NVCC", "PYTORCH_")
#: What kernels are written in
LANGUAGES = ("triton", "numba", "math", "cutlass", "cuda", "tilelang")
#: Libraries of arrays
ARRAYS = ("numpy", "torch", "scipy", "cupy")
#: How PyTorch's dispatcher is switched off, or asked who listens
INSIDE_TORCH = (
    "torch._C",
    "torch.utils._python_dispatch",
    "torch._dispatch",
    "torch.overrides",
    "torch._ops",
    "torch._dynamo",
    "torch.utils._device",
)
#: Attributes that lead into the inside of other functions and modules
INNER = frozenset(
    "__globals__ __builtins__ __subclasses__ __closure__ __code__ __mro__ __bases__ f_back f_locals"
    " f_globals tb_frame tb_next gi_frame cr_frame __loader__ __spec__ __import__"
    " __traceback__ __getattribute__ __reduce__ __del__ __array_finalize__ __weakref__"
    " co_consts findCaller currentframe extract_stack walk_stack".split()
)
#: What tells the date without Python's clock
DATES = ("datetime.", "uuid.uuid1", "numpy.datetime64")
HIDING = {"exec", "eval", "compile", "__import__", "globals", "locals", "vars", "input"}
KEYS_OF_HIDING = {
    "input": "reads_files",
    "globals": "looks_around",
    "locals": "looks_around",
    "vars": "looks_around",
}
BROAD = {"Exception", "BaseException", "RuntimeError"}
#: The files of a text that is no Python are not read here
NOTHING = ast.parse("")


@dataclass
class Facts:
    """What a text says.

    called: name of a function or method that is called -> its line. imported: module -> its line.
    used: dotted name -> its line. narrow: name of a narrow type -> its line.
    """

    reasons: list = field(default_factory=list)
    called: dict = field(default_factory=dict)
    imported: dict = field(default_factory=dict)
    used: dict = field(default_factory=dict)
    narrow: dict = field(default_factory=dict)

    def add(self, key, line, what):
        """A finding with its line."""
        says = f"{sentence(key)} Line {line}: {what}."
        self.reasons.append(Reason(key, says, {"line": line}))


#: Names of types with fewer digits than float32
NARROW = frozenset(
    "float16 half bfloat16 tf32 allow_tf32 float8_e4m3fn float8_e5m2 fp16 bf16".split()
)


def facts_of(source) -> Facts:
    """What a Python text says; nothing of what is no Python."""
    facts = Facts()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return facts
    Reader(facts).read(tree)
    return facts


class Reader(ast.NodeVisitor):
    """Goes through a text; remembers which names stand for which modules."""

    def __init__(self, facts):
        self.facts = facts
        self.modules = {}  # name here -> dotted name of the module or of what is in it
        self.defined = set()  # functions and classes of its own
        self.plain_imports = set()  # `importlib.import_module` with a name that everybody can read
        self.on_its_pipes = set()  # (line, name) of calls on ends of pipes that it made

    def read(self, tree):
        """Imports first, wherever they stand; then everything."""
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.defined.add(node.name)
            if isinstance(node, ast.Assign) and (name := imported_by(node)):
                self.facts.imported.setdefault(name.partition(".")[0], node.lineno)
                self.modules[node.targets[0].id] = name
                self.plain_imports.add(id(node.value.func))
            if isinstance(node, ast.Import):
                for one in node.names:
                    self.facts.imported.setdefault(one.name.partition(".")[0], node.lineno)
                    name = one.asname or one.name.partition(".")[0]
                    self.modules[name] = one.name if one.asname else name
            elif isinstance(node, ast.ImportFrom) and node.module:
                self.facts.imported.setdefault(node.module.partition(".")[0], node.lineno)
                for one in node.names:
                    self.modules[one.asname or one.name] = f"{node.module}.{one.name}"
                    if node.module.partition(".")[0] in ARRAYS:
                        self.facts.called.setdefault(one.name, node.lineno)
                    self.used(f"{node.module}.{one.name}", node.lineno)
        self.find_pipes(tree)
        self.visit(tree)
        self.by_the_date(tree)

    def find_pipes(self, tree):
        """Which calls write to, read from or close an end of a pipe of its own.

        A name that is ever set to anything else is no such end.
        """
        ends = set()
        for node in ast.walk(tree):
            is_pipe = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            if is_pipe and self.dotted(node.value.func) == "os.pipe":
                ends |= {id(one) for one in ast.walk(node.targets[0]) if isinstance(one, ast.Name)}
        made, other = set(), {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                (made if id(node) in ends else other).add(node.id)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name):
                name = self.dotted(node.func) or ""
                if name in ("os.read", "os.write", "os.close") and node.args[0].id in made - other:
                    self.on_its_pipes.add((node.lineno, name.removeprefix("os.")))

    def by_the_date(self, tree):
        """What is done depends on the date, of which no hook tells who asks."""

        def asks(node):
            return any(
                str(self.dotted(one)).startswith(DATES) or getattr(one, "id", None) in dates
                for one in ast.walk(node)
            )

        dates = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and asks(node.value):
                dates |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        for node in ast.walk(tree):
            if isinstance(node, ast.If | ast.IfExp | ast.While) and asks(node.test):
                self.facts.add("knows_the_test", node.lineno, "what is done depends on the date")

    def dotted(self, node):
        """The dotted name of an expression, with imports resolved; None for anything else."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self.dotted(node.value)
            return f"{base}.{node.attr}" if base else None
        return None

    def used(self, name, line):
        """Something of a module is used."""
        self.facts.used.setdefault(name, line)
        if name in HARMLESS:
            return
        if name.startswith(INSIDE_TORCH):
            self.facts.add("looks_around", line, f"`{name}`")
        module, _, rest = name.partition(".")
        first = rest.partition(".")[0]
        if module == "sys" and first in OF_SYS:
            self.facts.add(OF_SYS[first], line, f"`sys.{first}`")
        elif name in OF_PATHS:
            self.facts.add("knows_the_test", line, f"`{name}`")
        elif module in ("os", "posix") and first in OF_OS:
            if (line, first) not in self.on_its_pipes:
                self.facts.add(OF_OS[first], line, f"`os.{first}`")
        elif module in MODULES and rest:
            key, harmless = MODULES[module]
            if first not in harmless:
                self.facts.add(key, line, f"`{name}`")

    def visit_If(self, node):
        """What stands under `if __name__ == "__main__"` never runs here."""
        test = ast.unparse(node.test)
        if "__name__" in test and "__main__" in test:
            return
        self.generic_visit(node)

    def visit_Attribute(self, node):
        name = self.dotted(node)
        if name and id(node) not in self.plain_imports:
            self.used(name, node.lineno)
            if name.partition(".")[0] in ARRAYS:  # named is as good as called
                for part in name.split(".")[1:]:
                    self.facts.called.setdefault(part, node.lineno)
        if node.attr in INNER:
            self.facts.add("looks_around", node.lineno, f"`.{node.attr}`")
        if node.attr in FOREIGN:
            self.facts.add("raw_memory", node.lineno, f"`.{node.attr}`")
        if node.attr in NARROW:
            self.facts.narrow.setdefault(node.attr, node.lineno)
        self.generic_visit(node)

    def visit_Name(self, node):
        if node.id in NARROW:
            self.facts.narrow.setdefault(node.id, node.lineno)
        if node.id in ("__builtins__", "__loader__", "__spec__"):
            self.facts.add("looks_around", node.lineno, f"`{node.id}`")

    def visit_FunctionDef(self, node):
        if node.name == "__del__":
            self.facts.add("exit_hook", node.lineno, "`__del__` runs when an object goes")
        self.generic_visit(node)

    def visit_MatchClass(self, node):
        """A pattern such as `object(cumsum=f)` takes attributes, too."""
        for name in node.kwd_attrs:
            self.facts.called.setdefault(name, node.lineno)
            if name in INNER:
                self.facts.add("looks_around", node.lineno, f"`{name}` in a pattern")
        self.generic_visit(node)

    def visit_Compare(self, node):
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        for name in sorted(names & {"__name__", "__file__"}):
            self.facts.add("knows_the_test", node.lineno, f"`{name}` is compared")
        self.generic_visit(node)

    def visit_Constant(self, node):
        if isinstance(node.value, str) and INNER & set(node.value.split(".")):
            self.facts.add("looks_around", node.lineno, f"`{node.value:.40}`")
        if isinstance(node.value, str) and node.value in NARROW:
            self.facts.narrow.setdefault(node.value, node.lineno)

    def visit_Call(self, node):
        function = node.func
        if not are_written_out(node):
            self.calls(function, node.lineno)
        if self.dotted(function) == "triton.language.dot" and not IN_FULL & names_given(node):
            self.facts.narrow.setdefault("tl.dot without input_precision", node.lineno)
        if isinstance(function, ast.Name):
            if function.id in HIDING and function.id not in self.modules:
                key = KEYS_OF_HIDING.get(function.id, "hides_code")
                self.facts.add(key, node.lineno, f"`{function.id}(…)`")
            if function.id in ("getattr", "setattr", "delattr"):
                self.by_name(function.id, node)
            if self.dotted(function) in BY_NAME and not_constant(node.args):
                self.facts.add("hides_code", node.lineno, "a name that is put together")
        elif isinstance(function, ast.Attribute):
            if self.dotted(function) in BY_NAME and not_constant(node.args):
                self.facts.add("hides_code", node.lineno, "a name that is put together")
        self.generic_visit(node)

    def calls(self, function, line):
        """A call of a function or method by a name that is not the candidate's own.

        What kernels are written in computes no result in a library: `tl.dot`, `cuda.atomic.max`.
        """
        name = self.dotted(function)
        if name is not None:
            if name.partition(".")[0] not in LANGUAGES:
                self.facts.called.setdefault(name.rpartition(".")[2], line)
            return
        last = getattr(function, "id", getattr(function, "attr", None))
        is_pythons = isinstance(function, ast.Name) and hasattr(builtins, function.id)
        is_pythons &= last != "sorted"  # a whole algorithm, and no other function of Python is one
        if last and last not in self.defined and not is_pythons:
            self.facts.called.setdefault(last, line)

    def by_name(self, how, node):
        """getattr and setattr: of a module, or with a name that is put together."""
        if len(node.args) < 2:
            return
        base = self.dotted(node.args[0])
        if how == "setattr" and base:
            self.facts.add("patched", node.lineno, f"`setattr` of `{base}`")
        name = node.args[1]
        if not isinstance(name, ast.Constant):
            if base or not isinstance(name, ast.Name):
                self.facts.add("hides_code", node.lineno, f"`{how}` with a name put together")
        elif base:
            self.used(f"{base}.{name.value}", node.lineno)
            self.facts.called.setdefault(str(name.value), node.lineno)
        elif name.value in INNER:
            self.facts.add("looks_around", node.lineno, f"`{name.value}`")

    def visit_BinOp(self, node):
        if isinstance(node.op, ast.MatMult):
            self.facts.called.setdefault("@", node.lineno)
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        if isinstance(node.op, ast.MatMult):
            self.facts.called.setdefault("@", node.lineno)
        self.assigned(node.target)
        self.generic_visit(node)

    def visit_Assign(self, node):
        if all(self.is_for_compilers(target) for target in node.targets):
            return
        for target in node.targets:
            self.assigned(target)
        if isinstance(node.value, ast.Name | ast.Attribute) and self.dotted(node.value):
            for target in node.targets:  # a second name for a module or a function of it
                if isinstance(target, ast.Name):
                    self.modules[target.id] = self.dotted(node.value)
        self.generic_visit(node)

    def is_for_compilers(self, target):
        """Whether an assignment sets an environment variable that tells compilers what to do."""
        if not isinstance(target, ast.Subscript) or self.dotted(target.value) != "os.environ":
            return False
        key = getattr(target.slice, "value", None)
        return isinstance(key, str) and key.startswith(FOR_COMPILERS)

    def assigned(self, target):
        """An assignment to something of a module puts another function in its place."""
        if isinstance(target, ast.Tuple | ast.List):
            for one in target.elts:
                self.assigned(one)
            return
        if isinstance(target, ast.Starred):
            target = target.value
        into = target.value if isinstance(target, ast.Subscript) else target
        name = self.dotted(into) if isinstance(into, ast.Attribute) else None
        if name is None:
            return
        key = "narrower" if name.startswith(("torch.backends", "torch.set_")) else "patched"
        if name == "os.environ":
            key = "leaves_files"
        self.facts.add(key, target.lineno, f"`{name}` is set")

    def visit_Try(self, node):
        for handler in node.handlers:
            kinds = {ast.unparse(handler.type)} if handler.type is not None else BROAD
            if isinstance(handler.type, ast.Tuple):
                kinds = {ast.unparse(one) for one in handler.type.elts}
            if kinds & BROAD and computes(handler):
                says = "whatever goes wrong, something else answers in its place"
                self.facts.add("falls_back", handler.lineno, says)
        self.generic_visit(node)


#: Arguments of `tl.dot`, which multiplies float32 in TF32 unless one of them says something else
IN_FULL = {"input_precision", "allow_tf32"}


def names_given(call):
    """The names of a call's arguments that have one."""
    return {one.arg for one in call.keywords}


def are_written_out(call):
    """Whether a call is given numbers or texts alone, which are no data: `sorted({1, 16, 4})`."""
    given = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    literal = ast.Constant | ast.Set | ast.List | ast.Tuple | ast.Load | ast.keyword
    values = [*call.args, *call.keywords]
    whole = all(isinstance(one, literal) for value in values for one in ast.walk(value))
    return bool(call.args) and whole and not given


def imported_by(node):
    """The module of `NAME = importlib.import_module("module")`, or None."""
    call, names = node.value, node.targets
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "importlib.import_module":
        return None
    name = getattr(call.args[0], "value", None) if len(call.args) == 1 else None
    one = len(names) == 1 and isinstance(names[0], ast.Name)
    return name if one and isinstance(name, str) and not name.startswith(".") else None


#: Functions that take an attribute's name
BY_NAME = ("operator.attrgetter", "operator.methodcaller", "inspect.getattr_static")


def not_constant(arguments):
    """Whether any argument is not written out."""
    return any(not isinstance(one, ast.Constant) for one in arguments)


def computes(handler):
    """Whether an `except` gives a result: returns something that is computed, or keeps it."""
    if any(isinstance(one, ast.Raise) for one in ast.walk(handler)):
        return False
    values = [one.value for one in ast.walk(handler) if isinstance(one, ast.Return | ast.Assign)]
    parts = [part for value in values if value is not None for part in ast.walk(value)]
    return any(isinstance(part, ast.Call | ast.BinOp) for part in parts)
