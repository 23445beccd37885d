"""The race: our training step beside PyTorch's, in every mode that its users would try.

    python -m course.kernels.mnist_cnn.race [--budget SECONDS]   everything, and the results into
                                                         assets/results (`make race`)
    python -m course.kernels.mnist_cnn.race step --batch 64      one part, printed only

The parts, in the order in which they run:

    prepare     all that compilers have to do, done beforehand, from
    build       nvcc's work, and
    warm        torch.compile's at one batch size
    gate        test accuracy of each precision, over several seeds
    step        the race at one batch size
    kernels     each of our kernels
    waterfall   our step with one optimization more each time
    ablation    our whole step with one optimization less, at 64 and at 4,096
    program     whole programs, from the command to 98.5 % of the test digits
    profile     PyTorch's kernels

Nothing is timed that was not verified: from the same weights and on the same batches, each rival
must have the losses of eager fp32, within what its precision rounds. No time of ours is recorded
unless its accuracy is PyTorch's in fp32.
"""

import argparse
import hashlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from course.kernels.mnist_cnn import fast
from utils import engine, hardware, results
from utils.files import ROOT
from utils.timing import median_and_spread

BATCHES = (64, 256, 1024, 4096)
STEPS = 100
REPEATS = 5
WARM_UP = 5
LR = 0.02
#: Our precisions, and what their accuracy is recorded as.
OURS = {
    "bf16": "ours",
    "tf32": "ours_tf32",
    "fp16": "ours_fp16",
}
#: How far the loss of each of the first steps may lie from eager fp32's, as a share of it.
TOLERANCE = {
    "fp32": 2e-3,
    "tf32": 2e-2,
    "bf16": 6e-2,
    "fp16": 2e-2,
}
CHECKED_STEPS = 10
#: The gate: so many seeds, epochs and digits a step, and how far from PyTorch the mean accuracy may
#: be (0.1 points).
SEEDS = 5
EPOCHS = 10
GATE_BATCH = 256
GATE_LR = 0.05
GATE = 1e-3


class Failed(Exception):
    """A rival that is not right, or a part that could not be done: which, and why."""


class Ours:
    """Our trainer, driven like the others. `switches` turn single optimizations off (see
    course.kernels.mnist_cnn.fast).
    """

    def __init__(self, weights, batch, lr, precision=None, **switches):
        precision = precision or fast.precisions()[0]
        self.trainer = fast.Trainer(weights, batch, lr, precision, **switches)
        self.name = f"ours/{precision}"
        self.precision = precision[:4]
        self.step, self.weights, self.close = (
            self.trainer.step,
            self.trainer.weights,
            self.trainer.close,
        )

    def losses(self, batches, steps):
        """The losses of the next steps."""
        for k in range(steps):
            self.step(*batches[k % len(batches)])
        return np.asarray(self.trainer.losses())[-steps:]

    def run(self, batches, steps):
        """Queue so many steps."""
        for k in range(steps):
            self.step(*batches[k % len(batches)])


class PyTorch:
    """PyTorch's step in one mode, driven like ours."""

    def __init__(self, weights, batch, lr, mode):
        from course.kernels.mnist_cnn import pytorch_modes

        self.mode = pytorch_modes.ALL_MODES[mode]
        self.trainer = pytorch_modes.Trainer(weights, batch, lr, self.mode)
        self.name, self.precision = f"pytorch/{mode}", self.mode.precision
        self.switches = pytorch_modes.precision
        self.weights = self.trainer.weights

    def losses(self, batches, steps):
        """The losses of the next steps."""
        with self.switches(self.mode):
            return np.array(
                [self.trainer.step(*batches[k % len(batches)]).item() for k in range(steps)]
            )

    def run(self, batches, steps):
        """Queue so many steps."""
        with self.switches(self.mode):
            for k in range(steps):
                self.trainer.step(*batches[k % len(batches)])

    def close(self):
        """Nothing to give back by hand."""


def pinned(images, labels):
    """A batch in pinned host memory, for both sides: ((tensors), (NumPy arrays of the same
    memory)).
    """
    import torch

    tensors = torch.from_numpy(images).pin_memory(), torch.from_numpy(labels).pin_memory()
    return tensors, tuple(t.numpy() for t in tensors)


def pinned_batches(batch, count=16):
    """Batches of MNIST's training digits: {rival class: list of its batches}."""
    from course.kernels.mnist_cnn.loader import Loader
    from utils import data

    loader = Loader(*data.mnist(), batch, seed=0)
    pairs = [
        pinned(*arrays) for arrays, _ in zip(loader.host_batches(0), range(count), strict=False)
    ]
    return {
        PyTorch: [p[0] for p in pairs],
        Ours: [p[1] for p in pairs],
    }


def verify(rival, losses, reference) -> float:
    """How far the losses are off, as a share of the reference's. Raises Failed when that is more
    than rounding.
    """
    off = (
        float(np.max(np.abs(losses / reference - 1))) if np.isfinite(losses).all() else float("inf")
    )
    if not off <= TOLERANCE[rival.precision]:
        raise Failed(
            f"{rival.name} is not right: a loss of its first {len(losses)} steps is off by "
            f"{off:.2g} of its value, "
            f"and rounding explains {TOLERANCE[rival.precision]:g}. Not timed"
        )
    return off


def measure(
    rivals,
    batches,
    steps=STEPS,
    repeats=REPEATS,
) -> dict[str, list[float]]:
    """Microseconds a step of each rival, one for each repeat; the rivals take turns."""
    import torch

    times = {rival.name: [] for rival in rivals}
    for _ in range(repeats):
        for rival in rivals:
            rival.run(batches[type(rival)], WARM_UP)
            torch.cuda.synchronize()
            start = time.perf_counter()
            rival.run(batches[type(rival)], steps)
            torch.cuda.synchronize()
            times[rival.name].append((time.perf_counter() - start) / steps * 1e6)
    return times


def record(name, value, unit, spread=0.0, *, keep=True):
    """Print a result and, where a recording runs, hand it over. keep=False: a time of ours whose
    accuracy was not shown.
    """
    if keep:
        results.record(name, value, unit, spread)
    digits = 4 if unit == "1" else 1
    print(
        f"{name:58} {value:10,.{digits}f} ± {spread:.{digits}f} {unit if unit != '1' else ''}"
        + ("" if keep else "  (not recorded: its accuracy was not shown)"),
        flush=True,
    )


# ---- the parts


def built(make, *arguments, **switches):
    """A rival, or None with a line that says why it cannot run here; and the seconds that making it
    took.
    """
    start = time.perf_counter()
    try:
        rival = make(*arguments, **switches)
    except (
        Exception
    ) as error:  # whatever PyTorch, its compiler or CUDA raise: the others race without it
        print(
            f"LEFT OUT {make.__name__} {arguments[3]}: {type(error).__name__}: "
            f"{str(error).strip()[:400]}",
            flush=True,
        )
        return None
    print(f"  {rival.name}: ready in {time.perf_counter() - start:.1f} s", flush=True)
    return rival


def step(batch: int, gated=(), modes=None) -> None:
    """The race at one batch size. gated: the precisions in which our accuracy is known to be
    PyTorch's, so our time counts.
    """
    from course.kernels.mnist_cnn.pytorch import initial_weights

    weights = initial_weights(0)
    batches = pinned_batches(batch)
    rivals = [built(Ours, weights, batch, LR, precision) for precision in fast.precisions()]
    rivals += [built(PyTorch, weights, batch, LR, mode) for mode in modes or modes_here()]
    reference, right = (
        PyTorch(weights, batch, LR, "eager_fp32").losses(batches[PyTorch], CHECKED_STEPS),
        [],
    )
    for rival in filter(None, rivals):
        try:
            off = verify(rival, rival.losses(batches[type(rival)], CHECKED_STEPS), reference)
        except Failed as no:
            print("LEFT OUT", no, flush=True)
            continue
        print(f"  {rival.name}: losses off by {off:.1e} at most", flush=True)
        right.append(rival)
    times = {name: median_and_spread(samples) for name, samples in measure(right, batches).items()}
    for name, (time_us, spread) in times.items():
        record(
            f"mnist/step/{batch}/{name}",
            time_us,
            "µs",
            spread,
            keep=not name.startswith("ours/") or name[5:] in gated,
        )
    best = min(
        (name for name in times if name.startswith("pytorch/")),
        key=times.get,
        default=None,
    )
    fastest = fast.precisions()[0]
    if best and f"ours/{fastest}" in times:
        (rival, rivals_spread) = times[best]
        (ours, our_spread) = times[f"ours/{fastest}"]
        print("PyTorch's best:", best)
        record(
            f"mnist/step/{batch}/speedup_over_pytorch_best",
            rival / ours,
            "1",
            rival / ours * (rivals_spread / rival + our_spread / ours),
            keep=fastest in gated,
        )


def short(
    mine=None, batch: int = 64, modes=None, steps: int = 50, repeats: int = 3
) -> dict[str, tuple]:
    """A race of a few minutes on this GPU: {rival: (microseconds a step, spread)}, "yours" among
    them where `mine` has kernels for the fast trainer's sockets. {} without a GPU.

    Each is verified against eager fp32 first, as in the whole race. PyTorch's modes, unless named,
    are the plain one, one graph, and compiled as one graph in 16 bits (without autotuning, which
    takes longer than all else).
    """
    from course.kernels.mnist_cnn.pytorch import initial_weights

    if engine.gpu() is None:
        return {}
    kind, weights = fast.precisions()[0], initial_weights(0)
    batches = pinned_batches(batch)
    rivals = [built(Ours, weights, batch, LR, kind)]
    if mine:
        yours = built(Ours, weights, batch, LR, kind, mine=mine)
        if yours:
            yours.name = "yours"
        rivals.append(yours)
    few = "eager_fp32", "graph_fp32", f"graph_compile_{kind}_channels_last"
    for mode in few if modes is None else modes:
        rivals.append(built(PyTorch, weights, batch, LR, mode))
    reference = PyTorch(weights, batch, LR, "eager_fp32").losses(batches[PyTorch], CHECKED_STEPS)
    right = []
    for rival in filter(None, rivals):
        try:
            verify(rival, rival.losses(batches[type(rival)], CHECKED_STEPS), reference)
            right.append(rival)
        except Failed as no:
            print("LEFT OUT", no, flush=True)
    times = measure(right, batches, steps, repeats)
    return {name: median_and_spread(samples) for name, samples in times.items()}


def modes_here() -> list[str]:
    """PyTorch's modes in the precisions that this GPU's tensor cores have."""
    from course.kernels.mnist_cnn.pytorch_modes import modes_for

    return modes_for(fast.tensor_types())


def warm(batch: int, modes=None) -> None:
    """Let torch.compile do its work beforehand: it keeps what it compiled, and another process
    finds it ready.
    """
    from course.kernels.mnist_cnn.pytorch import initial_weights
    from course.kernels.mnist_cnn.pytorch_modes import ALL_MODES

    for name in modes or modes_here():
        if ALL_MODES[name].compile:
            built(PyTorch, initial_weights(0), batch, LR, name)


def prepare(timeout: float) -> None:
    """All that compilers have to do, several side by side; what takes longest first."""
    from concurrent.futures import ThreadPoolExecutor

    from course.kernels.mnist_cnn.pytorch_modes import ALL_MODES

    end = time.monotonic() + timeout
    env = {
        **os.environ,
        "TORCHINDUCTOR_COMPILE_THREADS": "2",
    }  # autotuning compiles its candidates one after the other

    def one(part):
        try:  # what does not get ready in time, the race itself waits for
            subprocess.run(
                [sys.executable, "-m", __spec__.name, *part],
                cwd=ROOT,
                env=env,
                capture_output=True,
                timeout=max(1, end - time.monotonic()),
            )
        except subprocess.TimeoutExpired:
            print(f"  not ready in time: {' '.join(part)}", flush=True)

    compiled = sorted(
        (ALL_MODES[name] for name in modes_here() if ALL_MODES[name].compile),
        key=lambda mode: not mode.compile.startswith("max"),
    )
    parts = [
        ["build"],
        *(["warm", "--batch", str(b), "--modes", mode.name] for mode in compiled for b in BATCHES),
    ]
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 4) // 2)) as pool:
        list(pool.map(one, parts))


def gate(modes=None) -> None:
    """Accuracy on the test digits after the same epochs, over seeds. modes: of PyTorch, only these;
    without graph_fp32 there is nothing to compare with.
    """
    import torch

    from course.kernels.mnist_cnn.loader import Loader
    from course.kernels.mnist_cnn.program import gather, pinned_tensors
    from course.kernels.mnist_cnn.pytorch import accuracy, initial_weights, model_from
    from utils import data

    train = data.mnist()
    test = data.mnist("test")
    ours = fast.precisions()
    contestants = {
        "pytorch": (PyTorch, "graph_fp32"),
        f"pytorch_{ours[0]}": (PyTorch, f"graph_compile_{ours[0]}_channels_last"),
        **{OURS[precision]: (Ours, precision) for precision in ours},
    }
    images, labels = pinned_tensors(len(train[0]))
    if modes:
        contestants = {
            name: (kind, what)
            for name, (kind, what) in contestants.items()
            if kind is Ours or what in modes
        }
    accuracies = {name: [] for name in contestants}
    for seed in range(SEEDS):
        loader = Loader(*train, GATE_BATCH, seed=seed)
        weights = initial_weights(seed)
        rivals = {
            name: built(kind, weights, GATE_BATCH, GATE_LR, what)
            for name, (kind, what) in contestants.items()
        }
        for epoch in range(EPOCHS):
            batches, arrays = [], []
            for k, chosen in enumerate(loader.order(epoch)):
                place = slice(k * GATE_BATCH, (k + 1) * GATE_BATCH)
                batches.append((images[place], labels[place]))
                arrays.append((images[place].numpy(), labels[place].numpy()))
                gather(train, chosen, *arrays[-1])
            for rival in filter(None, rivals.values()):
                rival.run(arrays if isinstance(rival, Ours) else batches, len(batches))
            torch.cuda.synchronize()  # the pinned memory is free for the next epoch
        for name, rival in rivals.items():
            if rival:
                try:
                    model = model_from(rival.weights(), "cuda")
                    accuracies[name].append(accuracy(model, *test))
                except ValueError as error:  # weights that are not finite
                    print(f"LEFT OUT {name}, seed {seed}: {error}", flush=True)
                rival.close()
    for name, of_seeds in accuracies.items():
        if len(of_seeds) == SEEDS:
            print(f"  {name}: " + " ".join(f"{a:.2%}" for a in of_seeds), flush=True)
            mean = statistics.mean(of_seeds)
            spread = statistics.stdev(of_seeds)
            record(f"mnist/accuracy/{name}", mean, "1", spread)


def kernel_times(
    rival,
    batches,
    steps=20,
) -> dict[str, tuple[float, float]]:
    """{kernel as the profiler names it: (microseconds a step, launches a step)}, from
    torch.profiler.
    """
    import torch

    rival.run(batches[type(rival)], WARM_UP)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        rival.run(batches[type(rival)], steps)
        torch.cuda.synchronize()
    return {
        event.key: (event.self_device_time_total / steps, event.count / steps)
        for event in profiler.key_averages()
        if event.self_device_time_total and "#" not in event.key
    }  # not PyTorch's ranges, such as Optimizer.step#SGD.step


def short_name(kernel: str) -> str:
    """A kernel's name without its return type, namespaces, template arguments and parameters, as
    results take it.
    """
    plain = kernel.replace("Memcpy HtoD", "copy_of_the_batch ")
    while (shorter := re.sub(r"<[^<>]*>|\([^()]*\)", "", plain)) != plain:
        plain = shorter
    return re.sub(r"[^a-z0-9_.-]+", "_", plain.split("::")[-1].split()[-1].lower())


def kernels(batches=(64, 4096)) -> None:
    """Microseconds of each of our kernels in a step."""
    from course.kernels.mnist_cnn.pytorch import initial_weights

    for batch in batches:
        rival = Ours(
            initial_weights(0), batch, LR, **_ONE_BY_ONE
        )  # so that each has the GPU for itself
        total = {}
        for name, (time_us, _) in kernel_times(rival, pinned_batches(batch)).items():
            total[short_name(name)] = total.get(short_name(name), 0) + time_us
        for name, time_us in sorted(total.items(), key=lambda item: -item[1]):
            record(f"mnist/kernel/{batch}/{name}", time_us, "µs")
        rival.close()


_ONE_BY_ONE = {
    **fast.EIGHT,
    "graph": False,
    "overlap": False,
    "branches": False,
    "early": False,
}
_UNSPLIT = {**_ONE_BY_ONE, "splits": False}
_PLAIN = {
    **_UNSPLIT,
    "moments": False,
    "one_update": False,
}
#: Our step with one more of its optimizations each time: what the row is called, the precision,
#: what our kernels are built
#: without (see without.cuh), and what is switched off.
WATERFALL = (
    ("ordinary_units_fp32", "tf32", ("NO_TENSOR_CORES", "PLAIN_COPIES"), _PLAIN),
    ("tensor_cores_tf32", "tf32", ("PLAIN_COPIES",), _PLAIN),
    ("bf16", "bf16", ("PLAIN_COPIES",), _PLAIN),
    ("asynchronous_copies", "bf16", (), _PLAIN),
    (
        "moments_of_patches",
        "bf16",
        (),
        {
            **_UNSPLIT,
            "one_update": False,
        },
    ),
    ("one_update", "bf16", (), _UNSPLIT),
    ("split_sums", "bf16", (), _ONE_BY_ONE),
    (
        "batch_copied_beside",
        "bf16",
        (),
        {
            **fast.EIGHT,
            "graph": False,
            "branches": False,
            "early": False,
        },
    ),
    (
        "one_graph",
        "bf16",
        (),
        {
            **fast.EIGHT,
            "branches": False,
            "early": False,
        },
    ),
    ("two_branches", "bf16", (), {**fast.EIGHT, "early": False}),
    ("early_starts", "bf16", (), fast.EIGHT),
    ("one_pass", "bf16", (), {"middle": False}),
    ("one_middle", "bf16", (), {}),
)
#: The step of eight kernels with one of its optimizations less: its name, the precision, and as
#: above.
ABLATION = (
    ("nothing", "bf16", (), {}),
    ("tensor_cores", "bf16", ("NO_TENSOR_CORES",), {}),
    ("bf16", "tf32", (), {}),
    ("asynchronous_copies", "bf16", ("PLAIN_COPIES",), {}),
    ("moments_of_patches", "bf16", (), {"moments": False}),
    ("one_update", "bf16", (), {"one_update": False}),
    ("split_sums", "bf16", (), {"splits": False}),
    ("batch_copied_beside", "bf16", (), {"overlap": False}),
    ("one_graph", "bf16", (), {"graph": False}),
    ("two_branches", "bf16", (), {"branches": False}),
    ("early_starts", "bf16", (), {"early": False}),
)
ABLATED_AT = (64, 4096)  # batches: where a step waits, and where it works


def without(precision: str, what) -> str:
    """A build of our kernels without some of their optimizations, as a precision that fast.Trainer
    takes.
    """
    if not what:
        return precision
    header = Path(__file__).with_name("without.cuh")
    # what was built from an older header is not used again
    version = hashlib.sha256(header.read_bytes()).hexdigest()[:8]
    name = " without ".join([precision, *what])
    fast.PRECISIONS[name] = [
        *fast.PRECISIONS[precision],
        "-include",
        str(header),
        f"-DWITHOUT=0x{version}",
        *(f"-D{macro}" for macro in what),
    ]
    return name


def build() -> None:
    """Let nvcc do its work beforehand."""
    from concurrent.futures import ThreadPoolExecutor

    wanted = set(fast.precisions())
    for _, precision, what, _ in (*WATERFALL, *ABLATION):
        if precision in fast.precisions():
            wanted.add(without(precision, what))
    with ThreadPoolExecutor() as pool:
        list(pool.map(fast.build, wanted))


def waterfall(batch: int = 64) -> None:
    """Microseconds of our step, one optimization more each time, in turn, each verified."""
    rows = [(f"{number}_{name}", *row) for number, (name, *row) in enumerate(WATERFALL)]
    race_variants("mnist/waterfall", rows, batch)


def ablation() -> None:
    """Microseconds of our whole step with one optimization less, in turn, each verified."""
    for batch in ABLATED_AT:
        rows = [(*row, {**fast.EIGHT, **off}) for *row, off in ABLATION]
        race_variants(f"mnist/ablation/{batch}", rows, batch)


def race_variants(prefix: str, rows, batch: int) -> None:
    """Record a step's time of variants of ours, in turn, each verified.

    rows: of WATERFALL's form; their names follow the prefix.
    """
    from course.kernels.mnist_cnn.pytorch import initial_weights

    weights = initial_weights(0)
    batches = pinned_batches(batch)
    reference = PyTorch(weights, batch, LR, "eager_fp32").losses(batches[PyTorch], CHECKED_STEPS)
    rivals = []
    for name, precision, what, off in rows:
        if precision not in fast.precisions():
            continue
        rival = Ours(weights, batch, LR, without(precision, what), **off)
        rival.name = name
        rivals.append(rival)
        verify(rival, rival.losses(batches[Ours], CHECKED_STEPS), reference)
    for name, samples in measure(rivals, batches).items():
        time_us, spread = median_and_spread(samples)
        record(f"{prefix}/{name}", time_us, "µs", spread)
    for rival in rivals:
        rival.close()


#: What a kernel of PyTorch's does, from its name; the first line that fits counts.
GROUPS = (
    ("copies", r"memcpy|memset"),
    ("fused_by_compiler", r"^triton_"),
    ("layout", r"nchwtonhwc|nhwctonchw|convert_?tensor|transform_kernel"),
    ("batch_norm", r"batch_?norm|bn_[fb]w"),
    ("convolution", r"conv|xmma|fprop|dgrad|wgrad|implicit|cudnn|winograd|fft"),
    ("matmul", r"gemm|gemv|cutlass|nvjet|splitk|cublas"),
    ("update", r"multi_tensor|foreach|sgd"),
    ("pooling", r"max_?pool"),
    ("softmax_loss", r"softmax|nll_loss"),
    ("elementwise", r"elementwise|reduce|copy|fill|cat"),
)


def profile(
    batch: int = 64, modes=("eager_fp32", "eager_tf32", "graph_compile_bf16_channels_last")
) -> None:
    """Where PyTorch's time goes: kernels a step, and microseconds a step by what they do."""
    from course.kernels.mnist_cnn.pytorch import initial_weights

    batches = pinned_batches(batch)
    for mode in set(modes) & set(modes_here()):
        rival = PyTorch(initial_weights(0), batch, LR, mode)
        kernels = kernel_times(rival, batches)
        groups = {}
        for name, (time_us, _) in kernels.items():
            group = _group_of(name)
            groups[group] = groups.get(group, 0) + time_us
        launches = sum(count for _, count in kernels.values())
        record(f"mnist/profile/{batch}/{mode}/launches", launches, "1")
        for group, time_us in sorted(groups.items(), key=lambda item: -item[1]):
            record(f"mnist/profile/{batch}/{mode}/{group}", time_us, "µs")


def _group_of(kernel: str) -> str:
    """What a kernel of PyTorch's does, by its name."""
    for group, pattern in GROUPS:
        if re.search(pattern, kernel.lower()):
            return group
    return "other"


#: Whole programs, and how often each is run.
PROGRAMS = ("ours", "eager_tf32", "graph_tf32", "graph_compile_bf16_channels_last")
TURNS = 3


def program() -> None:
    """Seconds from command to prompt of whole programs that train to 98.5 %, taken in turn.

    A first turn is not counted: in it compilers do what they have not done before, and the digits
        come into memory.
    """
    programs = [trainer for trainer in PROGRAMS if trainer in ("ours", *modes_here())]
    seconds = {trainer: [] for trainer in programs}
    for turn in range(1 + TURNS):
        for trainer in programs:
            command = [sys.executable, "-m", "course.kernels.mnist_cnn.program", trainer]
            start = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
            took = time.perf_counter() - start
            if done.returncode:
                print(
                    f"LEFT OUT program {trainer}: {(done.stderr or done.stdout).strip()[-400:]}",
                    flush=True,
                )
                continue
            print(
                f"  {trainer}: {took:.2f} s, {done.stdout.strip()}"
                + (" (not counted)" if not turn else ""),
                flush=True,
            )
            if turn:
                seconds[trainer].append(took)
    for trainer, samples in seconds.items():
        if samples:
            name = "ours" if trainer == "ours" else f"pytorch/{trainer}"
            record(
                f"mnist/time_to_98.5/{name}",
                statistics.median(samples),
                "s",
                (max(samples) - min(samples)) / 2,
            )


# ---- everything


PARTS = {
    "prepare": prepare,
    "build": build,
    "warm": warm,
    "gate": gate,
    "step": step,
    "kernels": kernels,
    "waterfall": waterfall,
    "ablation": ablation,
    "program": program,
    "profile": profile,
}


def passed_gate(entries) -> list[str]:
    """Our precisions whose mean accuracy lies within the gate of PyTorch's in fp32."""
    mean = {}
    for entry in entries:
        name = entry["name"].removesuffix(results.level_suffix())
        mean[name.removeprefix("mnist/accuracy/")] = entry["value"]
    return [
        precision
        for precision, name in OURS.items()
        if abs(mean.get(name, -1) - mean.get("pytorch", 1)) <= GATE
    ]


def everything(budget: float) -> int:
    """All parts, each in a process of its own, so that one that fails costs the others nothing;
    then the results file.
    """
    started = time.monotonic()
    written = None
    failed = []
    gated = []
    parts = [
        ["gate"],
        *(["step", "--batch", str(batch)] for batch in BATCHES),
        ["kernels"],
        ["waterfall"],
        ["ablation"],
        ["program"],
        ["profile"],
    ]
    print("== nvcc and torch.compile", flush=True)
    prepare(budget / 3)
    print(f"== {time.monotonic() - started:.0f} s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate(parts):
            left = budget - (time.monotonic() - started)
            if left < 10:
                failed.append(f"{' '.join(part)}: left out, the {budget:g} s were used up")
                continue
            lines = Path(folder) / f"{number}.jsonl"
            lines.touch()
            command = [
                sys.executable,
                "-m",
                __spec__.name,
                *part,
                *(["--gated", *gated] if part[0] == "step" else []),
            ]
            print(f"== {' '.join(part)}", flush=True)
            begun = time.monotonic()
            try:
                done = subprocess.run(
                    command,
                    cwd=ROOT,
                    env={
                        **os.environ,
                        results.RECORD: str(lines),
                    },
                    timeout=left,
                )
                reason = f"exit status {done.returncode}" if done.returncode else None
            except subprocess.TimeoutExpired:
                reason = f"stopped, the {budget:g} s were used up"
            print(f"== {time.monotonic() - begun:.0f} s", flush=True)
            if reason:
                failed.append(f"{' '.join(part)}: {reason}")
                continue
            entries = results.read_lines(lines)
            if entries:  # written at once: whoever stops the race keeps what was measured
                written = results.add(entries, hardware.this_gpu())
            if part == ["gate"]:
                gated = passed_gate(entries)
                print(
                    "== gate",
                    f"passed by {' '.join(gated) or 'nobody'}; other times of ours are not "
                    "recorded",
                    flush=True,
                )
    if written:
        print("wrote", written.relative_to(ROOT))
    for line in failed:
        print("FAILED", line, file=sys.stderr)
    return 1 if failed else 0


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course.kernels.mnist_cnn.race", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "part",
        nargs="?",
        choices=PARTS,
        help="only this part (default: all, each in a process of its own)",
    )
    parser.add_argument("--batch", type=int, default=64, help="of the parts that take one")
    parser.add_argument("--modes", nargs="+", help="only these modes of PyTorch")
    parser.add_argument(
        "--gated", nargs="*", default=(), choices=OURS, help="our precisions that passed the gate"
    )
    parser.add_argument(
        "--budget",
        type=float,
        default=1200,
        help="seconds for everything; what does not fit is named",
    )
    options = parser.parse_args(arguments)
    if engine.gpu() is None:
        print("the race needs an NVIDIA GPU, and there is none here", file=sys.stderr)
        return 1
    if options.part is None:
        return everything(options.budget)
    if options.part == "step":
        step(options.batch, options.gated, options.modes)
    elif options.part == "gate":
        gate(options.modes)
    elif options.part == "prepare":
        prepare(options.budget)
    elif options.part == "warm":
        warm(options.batch, options.modes)
    else:
        PARTS[options.part]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
