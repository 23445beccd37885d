"""The fast trainer: the network's whole training step in hand-written CUDA C (kernels/), called
from Python.

    with fast.Trainer(weights, batch=256, lr=0.1) as trainer:
        for images, labels in batches:        # uint8, in pinned host memory
            trainer.step(images, labels)      # returns at once
        print(trainer.losses()[-1])

A step is the copy of the batch to the GPU, forward, backward and the update of all weights. What
can be switched off, to measure what it brings:

    graph=False       launch the kernels one by one instead of as one CUDA graph
    overlap=False     copy each batch when its step begins, not beside the step before
    branches=False    the two kernels of the convolutions' backward pass one after the other, not
                      side by side
    moments=False     the first batch norm's statistics by a pass over the convolution's outputs,
                      not from the patches' moments
    one_update=False  four kernels that update the weights instead of one
    early=False       each kernel begins when the one before it has ended, not while its last blocks
                      run
    splits=False      a sum stays with one block where a batch is too small for many, not shared out
                      among several
    one_pass=False    two kernels for the convolutions' backward pass, not one that forms each
                      image's gradient once
    middle=False      small batches, too, have a kernel each for fc1 forward, the head and fc1
                      backward

The last two are for bf16, where a block has shared memory enough (one_pass) and where there are
clusters (middle, compute capability 9.0). Without a GPU both are off, unless they are asked for.

Tensor cores multiply bf16, tf32, or, on compute capability 7.5, which has no other, fp16: there the
kernels keep within its 64 KiB of shared memory and scale the gradients, which fp16 would lose.

Without a GPU the same source runs on the CPU runtime: right, but slow (seconds for a batch of 4).
There "tf32" is float32.

Four of the kernels can be the learner's, one file each (kernels/sockets.cuh says what each takes):

    mine={"head": "build/head.cu"}
"""

import ctypes
import functools
import types
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from course.kernels.mnist_cnn import SHAPES, check_weights, sockets
from utils import occupancy
from utils.cpu.cuda_c import build as cpu_build
from utils.engine import gpu, has_gpu, run_arch
from utils.tools import nvcc, yours
from utils.tools.diagnostics import LearnerError

KERNELS = Path(__file__).parent / "kernels"
SOURCE = KERNELS / "trainer.cu"
PRECISIONS = {"bf16": [], "tf32": ["-DTF32"], "fp16": ["-DFP16"]}  # and what nvcc is told
AMPERE = 8, 0  # the compute capability that brought bf16, tf32 and cp.async
TURING = 7, 5  # tensor cores for fp16 only, and 64 KiB of shared memory
#: Bytes of shared memory that the largest block asks for: kernels/trainer.cu's MOST_SHARED.
SHARED = {"bf16": 91_536, "tf32": 183_072, "fp16": 55_296}
LOSSES = 1 << 16  # the losses of so many steps are kept
PIXELS = 28 * 28  # bytes of a digit

#: How kernels/network.cuh lays out the weights (struct Parameters).
LAYOUT = np.dtype(
    [
        ("conv1.weight", "f4", (32, 9)),
        ("bn1.weight", "f4", 32),
        ("bn1.bias", "f4", 32),
        ("conv2.weight", "f4", (64, 9, 32)),
        ("bn2.weight", "f4", 64),
        ("bn2.bias", "f4", 64),
        ("fc1.weight", "f4", (128, 49, 64)),
        ("fc1.bias", "f4", 128),
        ("fc2.weight", "f4", (10, 128)),
        ("fc2.bias", "f4", 10),
    ]
)

#: What can be switched off: the fields of kernels/trainer.cu's struct Options, in its order.
SWITCHES = (
    "graph",
    "overlap",
    "keep_gradients",
    "branches",
    "moments",
    "one_update",
    "early",
    "splits",
    "middle",
    "one_pass",
)


#: Kernels that take the place of several: without them there are the eight of chapter "Beating
#: PyTorch".
TOGETHER = ("middle", "one_pass")
EIGHT = dict.fromkeys(TOGETHER, False)  # switches: the step of eight kernels


class Options(ctypes.Structure):
    """As kernels/trainer.cu takes them. Everything is on but `keep_gradients`, `middle` and
    `one_pass`, unless said.
    """

    _fields_ = [(switch, ctypes.c_bool) for switch in SWITCHES]

    def __init__(self, **wanted: bool):
        unknown = wanted.keys() - SWITCHES
        if unknown:
            raise TypeError(f"no switch {', '.join(unknown)}: there are {', '.join(SWITCHES)}")
        off = dict.fromkeys(("keep_gradients", *TOGETHER), False)
        super().__init__(**(dict.fromkeys(SWITCHES, True) | off | wanted))


class TrainerError(LearnerError):
    """The trainer cannot be built or started here, or a CUDA call failed."""


class Trainer:
    """Trains the network on batches of one size.

    weights: float32 arrays by PyTorch's names and shapes. lr: the learning rate of plain SGD.
    precision: what tensor cores multiply, "bf16", "tf32" or "fp16"; the first of `precisions()`
    unless said. Sums and the weights themselves are float32 in all. gradients=True keeps each
    step's gradients for `gradients()`. mine: files of the learner's kernels by socket. switches:
    what is switched off, as in ``graph=False``.

    Raises ValueError for wrong weights or sizes, TrainerError when the GPU is too old, its memory
    too small, or nvcc fails; sockets.SocketError for a kernel of the learner's that is not right.
    """

    mine: Mapping[str, Path] = types.MappingProxyType({})

    def __init__(
        self,
        weights: dict[str, np.ndarray],
        batch: int,
        lr: float,
        precision: str | None = None,
        *,
        gradients: bool = False,
        mine: Mapping[str, str | Path] | None = None,
        **switches: bool,
    ):
        self._trainer = None
        precision = precision or precisions()[0]
        if precision not in PRECISIONS:
            raise ValueError(
                f"the kernels multiply in {' or '.join(PRECISIONS)}, not in {precision!r}"
            )
        if not 1 <= batch <= 1 << 24:
            raise ValueError(
                f"the batch size must be at least 1 and at most {1 << 24:,}, not {batch}"
            )
        if not np.isfinite(lr):
            raise ValueError(f"the learning rate must be a number, not {lr}")
        check_weights(weights)
        self.batch = batch
        self.lr = lr
        self.precision = precision
        self.steps = 0
        self._gradients = gradients
        if mine and "update" in mine and gradients:
            raise ValueError("gradients are kept by our update: leave yours out to look at them")
        self.mine = sockets.checked(mine or {})
        self._library = _library(build(precision, self.mine), SHARED[precision[:4]])
        self._in_use = [None, None]
        switches["branches"] = switches.get("branches", True) and has_gpu()
        switches = dict.fromkeys(TOGETHER, has_gpu()) | switches
        options = Options(keep_gradients=gradients, **switches)
        packed = pack(weights)
        theirs = self._library.cnn_mine() if self.mine else None
        self._trainer = self._library.cnn_create(
            batch, lr, ctypes.byref(options), packed.ctypes.data, theirs
        )
        if not self._trainer:
            raise TrainerError(self._error())

    def step(self, images, labels) -> None:
        """Start one training step and return at once.

        images: uint8 [batch, 28, 28], labels: uint8 [batch], NumPy arrays or torch tensors in host
            memory. In pinned memory they are copied beside the step before; leave them unchanged
            for two more steps, or until `synchronize`.
        """
        pixels = _address(images, self.batch * PIXELS)
        answers = _address(labels, self.batch)
        self._call("cnn_step", pixels, answers)
        self._in_use[self.steps % 2] = images, labels  # not freed before they are copied
        self.steps += 1

    def launches(self) -> int:
        """What a step launches: kernels, and memory that is set; counted in its graph. ValueError
        for a trainer that launches them one by one.
        """
        count = self._library.cnn_launches(self._trainer)
        if not count:
            raise ValueError("launches are counted in the graph: leave graph=False out")
        return count

    def losses(self) -> np.ndarray:
        """The loss of every step so far (of the last 65,536), float32. Waits for the steps."""
        ring = np.empty(LOSSES, np.float32)
        self._call("cnn_losses", ring.ctypes.data)
        if self.steps <= LOSSES:
            return ring[: self.steps]
        oldest = self.steps % LOSSES
        return np.roll(ring, -oldest)

    def weights(self) -> dict[str, np.ndarray]:
        """The weights as they are now, by PyTorch's names and shapes. Waits for the steps."""
        return self._parameters("cnn_weights")

    def gradients(self) -> dict[str, np.ndarray]:
        """The last step's gradients by name. Raises ValueError for a trainer that does not keep
        them.
        """
        if not self._gradients:
            raise ValueError(
                "this trainer keeps no gradients: make it with Trainer(..., gradients=True)"
            )
        return self._parameters("cnn_gradients")

    def step_logits(self) -> np.ndarray:
        """The last step's logits [batch, 10]. Waits for the step. Not with a head of the learner's,
        which hands on none.
        """
        if "head" in self.mine:
            raise ValueError("your head hands on no logits: `logits` computes them anew")
        logits = np.empty((self.batch, 10), np.float32)
        self._call("cnn_logits", logits.ctypes.data)
        return logits

    def logits(self, images) -> np.ndarray:
        """Logits [n, 10] of uint8 images [n, 28, 28], with these images' own batch statistics, as
        the network is defined.
        """
        count = len(images)
        if count == 0:
            raise ValueError("there are no images")
        if count > self.batch:  # a trainer's memory is made for its batch
            with Trainer(self.weights(), count, 0.0, self.precision, graph=False) as larger:
                return larger.logits(images)
        logits = np.empty((count, 10), np.float32)
        pixels = _address(images, count * PIXELS)
        self._call("cnn_infer", pixels, count, logits.ctypes.data)
        return logits

    def synchronize(self) -> None:
        """Wait until all steps are done. Raises TrainerError if one failed."""
        self._call("cnn_synchronize")

    def close(self) -> None:
        """Free the trainer's memory on the GPU."""
        if self._trainer:
            self._library.cnn_destroy(self._trainer)
        self._trainer = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()

    def _parameters(self, function):
        packed = np.empty((), LAYOUT)
        self._call(function, packed.ctypes.data)
        return unpack(packed)

    def _call(self, function, *arguments):
        if not self._trainer:
            raise TrainerError("this trainer has been closed")
        if not getattr(self._library, function)(self._trainer, *arguments):
            raise TrainerError(self._error())

    def _error(self):
        text = self._library.cnn_error().decode()
        if "out of memory" in text:
            kilobytes = 80 if self.precision == "tf32" else 40  # a digit
            megabytes = self.batch * kilobytes / 1024
            needs = f"A batch of {self.batch:,} needs about {megabytes:,.0f} MB on the GPU"
            text += f". {needs}: take a smaller one"
        return text


def tensor_types() -> tuple[str, ...]:
    """What this GPU's tensor cores are for, the fastest first; all but fp16 without a GPU."""
    if has_gpu() and gpu().compute_capability < AMPERE:
        return ("fp16",)
    return "bf16", "tf32"


def precisions() -> tuple[str, ...]:
    """Those of them in which our kernels fit: TF32 takes more shared memory than a block has on
    compute capability 8 and 12.
    """
    if not has_gpu():
        return tensor_types()
    room = _shared_of_a_block(gpu().compute_capability)
    return tuple(name for name in tensor_types() if SHARED[name] <= room)


def _shared_of_a_block(capability: tuple[int, int]) -> int:
    """Bytes; of a GPU newer than the table what the newest of its family before it has."""
    known = [listed for listed in occupancy.TABLE if listed <= capability]
    return occupancy.TABLE[max(known)].shared_block


def flag() -> str:
    """What nvcc is told to compile the kernels' headers for this GPU: "-DFP16", or nothing."""
    return " ".join(PRECISIONS[precisions()[0]])


def pack(weights: dict[str, np.ndarray]) -> np.ndarray:
    """Weights by PyTorch's names and shapes in the kernels' order: channels last.

    That concerns conv2's weights and fc1's features.
    """
    packed = np.empty((), LAYOUT)
    for name in SHAPES:
        value = np.asarray(weights[name], np.float32)
        if name == "conv2.weight":
            value = value.transpose(0, 2, 3, 1)
        elif name == "fc1.weight":
            value = value.reshape(128, 64, 49).transpose(0, 2, 1)
        packed[name] = value.reshape(LAYOUT[name].shape)
    return packed


def unpack(packed: np.ndarray) -> dict[str, np.ndarray]:
    """The inverse of `pack`."""
    weights = {name: packed[name].copy() for name in SHAPES}
    conv2 = weights["conv2.weight"].reshape(64, 3, 3, 32)
    weights["conv2.weight"] = conv2.transpose(0, 3, 1, 2)
    weights["fc1.weight"] = weights["fc1.weight"].transpose(0, 2, 1)
    for name, shape in SHAPES.items():
        weights[name] = np.ascontiguousarray(weights[name].reshape(shape))
    return weights


def _address(array, count) -> int:
    """Where `count` uint8 numbers begin in host memory. Raises ValueError for anything else."""
    numpy = isinstance(array, np.ndarray)
    if numpy:
        right = array.dtype == np.uint8 and array.size == count and array.flags.c_contiguous
    else:
        on_host = array.element_size() == 1 and not array.is_cuda
        right = on_host and array.numel() == count and array.is_contiguous()
    if not right:
        where = "" if numpy else " in host memory"
        given = f"{array.dtype} {list(array.shape)}"
        raise ValueError(f"expected {count:,} contiguous uint8 numbers{where}, got {given}")
    if numpy:
        return array.__array_interface__["data"][0]
    return array.data_ptr()


_POINTER = ctypes.c_void_p
_NUMBER = ctypes.c_int

#: The functions of kernels/trainer.cu: what they give and take.
_FUNCTIONS = {
    "cnn_error": (ctypes.c_char_p, []),
    "cnn_parameter_bytes": (ctypes.c_size_t, []),
    "cnn_option_bytes": (ctypes.c_size_t, []),
    "cnn_shared_bytes": (ctypes.c_size_t, []),
    "cnn_create": (_POINTER, [_NUMBER, ctypes.c_float, _POINTER, _POINTER, _POINTER]),
    "cnn_destroy": (None, [_POINTER]),
    "cnn_step": (_NUMBER, [_POINTER, _POINTER, _POINTER]),
    "cnn_launches": (_NUMBER, [_POINTER]),
    "cnn_synchronize": (_NUMBER, [_POINTER]),
    "cnn_infer": (_NUMBER, [_POINTER, _POINTER, _NUMBER, _POINTER]),
    "cnn_weights": (_NUMBER, [_POINTER, _POINTER]),
    "cnn_gradients": (_NUMBER, [_POINTER, _POINTER]),
    "cnn_losses": (_NUMBER, [_POINTER, _POINTER]),
    "cnn_logits": (_NUMBER, [_POINTER, _POINTER]),
}


@functools.cache
def _library(path, shared):
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    if hasattr(library, "cnn_mine"):
        library.cnn_mine.restype = _POINTER
    theirs = library.cnn_parameter_bytes(), library.cnn_option_bytes()
    if theirs != (LAYOUT.itemsize, ctypes.sizeof(Options)):
        raise TrainerError(f"{SOURCE.name} and fast.py disagree on how a struct is laid out")
    if library.cnn_shared_bytes() != shared:
        raise TrainerError(f"{SOURCE.name} and fast.py disagree on how much shared memory it takes")
    return library


def build(precision: str = "bf16", mine: Mapping[str, Path] = Trainer.mine) -> Path:
    """The trainer's shared library, compiled once for each content.

    For this GPU, or for the CPU where there is none. mine: the learner's files, as
    `sockets.checked` gives them. Raises utils.tools.nvcc.NvccError with the lines that do not
    compile, TrainerError for a GPU that is too old.
    """
    flags = PRECISIONS[precision]
    source = yours.current(SOURCE)
    if source != SOURCE:
        print(f"[{yours.note(SOURCE)}]")
    sources = [source]
    if mine:
        sources.append(sockets.written(mine))
        folders = dict.fromkeys(path.parent for path in mine.values())
        flags = [*flags, "-DMINE", f"-I{source.parent}", *(f"-I{folder}" for folder in folders)]
    if not has_gpu():
        try:
            return cpu_build.build(
                [str(source) for source in sources],
                flags,
                check=False,
                shared=True,
            )[0]
        except cpu_build.BuildError as error:
            raise nvcc.compile_error(source, error.log) from None
    needed = TURING if precision == "fp16" else AMPERE
    if gpu().compute_capability < needed:
        raise TrainerError(
            f"{gpu().name} has no tensor cores for {precision}: that needs compute capability "
            "{}.{} or newer".format(*needed)
        )
    shared = ["-O3", "-shared", "-Xcompiler", "-fPIC", *flags]
    files = [file for file in source.parent.iterdir() if file.is_file()]
    if not mine:
        return nvcc.build_once(nvcc.Request(source, shared), "trainer.so", files)
    return _with_mine(sources, shared, files, mine)


def _with_mine(sources, shared, files, mine):
    """Ours is compiled once, and linked with each version of the learner's."""
    ours = [flag for flag in shared if flag != "-shared" and not flag.startswith("-I")]
    request = nvcc.Request(sources[0], ["-c", f"-arch={run_arch()}", *ours])
    trainer = nvcc.build_once(request, "trainer.o", files)
    request = nvcc.Request(sources[1], [f"-arch={run_arch()}", *shared, str(trainer)])
    return nvcc.build_once(request, "mine.so", [sources[1], trainer, *mine.values()])
