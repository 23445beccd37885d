"""All-reduces side by side: ours in every variant, and NCCL's through torch.distributed."""

import itertools
import time

from course.kernels.many_gpus.choices import VECTOR, Choice, choose, label
from course.kernels.many_gpus.communicator import CommunicatorError
from course.kernels.many_gpus.recording import Recording, slowest
from utils.timing import median_and_spread

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
#: What is measured first if the time is short: each kind of message once.
KEY_SIZES = (8, 256 * KIB, GIB, 64 * MIB, 16 * KIB, MIB)
SIZES = (
    *KEY_SIZES,
    *(64, 512, 4 * KIB, 64 * KIB, 128 * KIB, 512 * KIB),
    *(2 * MIB, 4 * MIB, 16 * MIB, 256 * MIB),
)
#: Threads of a block, and at most so many blocks, of one shot.
SHORT = (
    (128, 128),
    (256, 64),
    (256, 128),
    (512, 32),
    (512, 64),
    (512, 128),
)
SCALE = 1e-20  # of the numbers: they double with each sum in place, and must stay finite
IN_GRAPH = 20  # all-reduces in a CUDA graph


def variants(bytes: int, ranks: int) -> list[Choice]:
    """What is tried for a message of so many bytes."""
    tried = []
    if bytes <= 2 * MIB:
        tried += _short(bytes)
    if 16 * KIB <= bytes <= 4 * MIB:
        launches = itertools.product((8, 16, 32, 64, 132), (1, 2))
        tried += [Choice("two_shot", blocks, 512, unroll) for blocks, unroll in launches]
    if bytes >= 2 * MIB:
        tried += _long(ranks)
    return [choice for choice in dict.fromkeys(tried) if choice.fits(bytes)]


def _short(bytes) -> list[Choice]:
    """One trip, or two and fewer bytes: as many threads as the message keeps busy."""
    tried = []
    for threads, most in SHORT:
        blocks = max(1, min(most, -(-bytes // 8 // threads)))
        tried.append(Choice("one_shot", blocks, threads))
    for threads in (128, 256, 512):
        blocks = max(1, -(-bytes // VECTOR // threads))
        if blocks <= 128:
            tried.append(Choice("pull", blocks, threads))
    return tried


def _long(ranks) -> list[Choice]:
    """The least bytes: by loads, by stores, and to one neighbour only."""
    launches = list(itertools.product((66, 132, 256), (2, 4, 8)))
    tried = [Choice("two_shot", blocks, 512, unroll) for blocks, unroll in launches]
    launches = list(itertools.product((66, 132, 256), (1, 2, 4)))
    for blocks, unroll in launches:
        if unroll < 4 or blocks <= 132:
            tried.append(Choice("push", blocks, 512, unroll))
    if ranks == 2:
        return [*tried, Choice("ring", 132, 512, 4)]  # two ranks' ring is a push
    return tried + [Choice("ring", blocks, 512, unroll) for blocks, unroll in launches]


class Case:
    """A message of one size and type, the same numbers for every rival."""

    def __init__(self, communicator, bytes: int, dtype):
        import torch

        self.communicator, self.bytes, self.group = communicator, bytes, communicator.group
        self.count = bytes // dtype.itemsize
        sources = []
        for rank in range(communicator.size):
            generator = torch.Generator("cuda").manual_seed(1000 * rank + self.count % 997)
            numbers = torch.randn(self.count, generator=generator, device="cuda") * SCALE
            sources.append(numbers.to(dtype))
        self.source = sources[communicator.rank]
        total = sources[0].float().clone()
        for other in sources[1:]:
            total += other.float()
        self.expected = total.to(dtype)
        self.size_of_terms = sum(s.abs().max().item() for s in sources)
        self.mark = communicator.mark()
        self.mine = communicator.empty(self.count, dtype)  # where our kernels can reach it
        self.plain = torch.empty_like(self.source)

    def close(self):
        self.communicator.release(self.mark)

    def repeats(self) -> int:
        """Calls in one sample."""
        fitting = 256 * MIB // max(self.bytes, 1)
        return max(3, min(100, fitting))

    def _warm_up(self, tensor, call) -> None:
        """One call on fresh numbers, which brings the ranks together, on the GPUs' side, too."""
        import torch

        tensor.copy_(self.source)
        torch.cuda.synchronize()
        self.group.barrier()
        call()
        torch.cuda.synchronize()

    def right(self, tensor, call) -> str:
        """Run one call on fresh numbers; "" or what is wrong with the sum, on any rank."""
        import torch

        self._warm_up(tensor, call)
        difference = tensor.float() - self.expected.float()
        off = difference.abs().max().item()
        rounding = 2.0 ** (-23 if tensor.dtype == torch.float32 else -8)
        exact = self.communicator.size == 2 and tensor.dtype == torch.float32
        limit = 0 if exact else rounding * self.communicator.size * self.size_of_terms
        wrong = "" if off <= limit else f"off by {off:.3g}, and {limit:.3g} is allowed"
        return "; ".join(filter(None, self.group.all_gather(wrong)))

    def sample(self, tensor, call, repeats: int) -> float:
        """Seconds a call of the slowest rank, for calls one behind the other."""
        import torch

        self._warm_up(tensor, call)
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / repeats

    def sample_waiting(self, tensor, call, repeats: int) -> float:
        """Seconds of a call for a user who waits for its end, median."""
        import torch

        self._warm_up(tensor, call)
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            call()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        return median_and_spread(times)[0]


def captured(call, times: int):
    """A function that replays so many calls as one CUDA graph."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):  # torch.cuda.graph would also collect garbage, each time
        graph.capture_begin(capture_error_mode="thread_local")
        for _ in range(times):
            call()
        graph.capture_end()
    return graph.replay


def join_nccl(group) -> None:
    """Make torch.distributed's process group. NVLink multicast stays off, as it is found."""
    import os
    from pathlib import Path

    import torch
    import torch.distributed as dist

    os.environ["NCCL_NVLS_ENABLE"] = "0"
    os.environ.setdefault("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1")
    os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "0"  # its thread would disturb graphs' captures
    path = Path(group.folder) / "store"
    store = dist.FileStore(str(path), group.size)
    device = torch.device("cuda", torch.cuda.current_device())
    dist.init_process_group(
        "nccl", store=store, rank=group.rank, world_size=group.size, device_id=device
    )
    dist.all_reduce(torch.ones(1, device="cuda"))
    torch.cuda.synchronize()


class Window:
    """Memory that NCCL knows on all ranks (a symmetric window): its fastest kernels need it."""

    def __init__(self):
        import torch
        import torch.distributed as dist

        self.backend = dist.group.WORLD._get_backend(torch.device("cuda"))
        self.pool = torch.cuda.MemPool(self.backend.mem_allocator)
        with torch.cuda.use_mem_pool(self.pool):
            self.raw = torch.empty(
                GIB,
                dtype=torch.uint8,
                device="cuda",
            )
        self.backend.register_mem_pool(self.pool, symm=True)

    def tensor(self, count, dtype):
        """A tensor at the beginning of the window."""
        return self.raw[: count * dtype.itemsize].view(dtype)


def _agree(group, make):
    """make() on all ranks: its result, or None and the reason when it failed on one."""
    import traceback

    result, error = None, ""
    try:
        result = make()
    except Exception:  # whatever NCCL, torch or CUDA raise: the others race without it
        error = traceback.format_exc()
    errors = [e for e in group.all_gather(error) if e]
    return (None, errors[0]) if errors else (result, "")


def sweep(
    case: Case,
    name: str,
    recording: Recording,
) -> Choice | None:
    """Verify and time all our variants for a case; the best one."""
    times = {}
    for choice in variants(case.bytes, case.communicator.size):
        seconds, wrong = _time_of(case, choice)
        if wrong:
            recording.note(f"{name}/{label(choice)}", wrong)
        else:
            times[choice] = seconds
    case.communicator.check()
    if not times:
        return None
    for choice, seconds in times.items():
        recording.add(
            f"{name}/sweep/{label(choice)}",
            seconds,
            "s",
            quiet=True,
        )
    ranked = sorted(times, key=times.get)
    best = {}
    for choice in ranked:
        best.setdefault(choice.algorithm, choice)
    words = [f"{label(choice)} {times[choice] * 1e6:.1f}" for choice in best.values()]
    recording.note(f"{name}/best_us", "  ".join(words))
    return ranked[0]


def _time_of(case: Case, choice: Choice) -> tuple[float, str]:
    """Seconds of a variant, the slowest rank's, and "" or what is wrong with it."""

    def call():
        case.communicator.all_reduce(case.mine, choice)

    try:
        wrong = case.right(case.mine, call)
    except CommunicatorError as error:  # refused, on all ranks alike
        return 0.0, str(error)
    if wrong:
        case.communicator.check()
        return 0.0, f"WRONG {wrong}"
    repeats, rounds, each = case.repeats(), 2, 1
    if case.bytes <= 4 * MIB:
        call, repeats, rounds, each = captured(call, IN_GRAPH), 5, 3, IN_GRAPH
    seconds = [case.sample(case.mine, call, repeats) / each for _ in range(rounds)]
    everyone = case.group.all_gather(seconds)
    return min(map(max, zip(*everyone, strict=True))), ""


def race(
    case: Case,
    choice: Choice,
    name: str,
    recording: Recording,
    window,
    rounds=7,
) -> None:
    """Our best variant and NCCL's modes in turn: one call behind the other, waiting, in a graph."""
    tensors, calls = _rivals(case, choice, window)
    work = _work(case, tensors, calls, name, recording)
    samples = {key: [] for key in work}
    for _ in range(rounds):
        for key, (sample, call, repeats, each) in work.items():
            samples[key].append(sample(tensors[key[0]], call, repeats) / each)
    everyone = case.group.all_gather(samples)
    case.communicator.check()
    size, medians = case.group.size, {}
    for key in work:
        medians[key], spread = median_and_spread(slowest(everyone, key))
        bandwidth = case.bytes * 2 * (size - 1) / size / medians[key]
        recording.add(
            f"{name}/{key[0]}/{key[1]}", medians[key], "s", spread, bus_bandwidth=bandwidth
        )
    for mode in ("call", "wait", "graph"):
        theirs = [medians[key] for key in work if key[0] != "ours" and key[1] == mode]
        if ("ours", mode) in medians and theirs:
            speedup = min(theirs) / medians["ours", mode]
            ending = "" if mode == "call" else f"/{mode}"
            recording.add(
                f"{name}/speedup_over_nccl{ending}",
                speedup,
                "1",
                choice=label(choice),
            )


def _rivals(case, choice, window) -> tuple[dict, dict]:
    """Each rival's tensor, and its call."""
    import torch.distributed as dist

    tensors = {
        "ours": case.mine,
        "nccl": case.plain,
    }
    calls = {
        "ours": lambda: case.communicator.all_reduce(case.mine, choice),
        "nccl": lambda: dist.all_reduce(case.plain),
    }
    if window:
        registered = window.tensor(case.count, case.source.dtype)
        tensors["nccl_window"] = registered
        calls["nccl_window"] = lambda: dist.all_reduce(registered)
    return tensors, calls


def _work(case, tensors, calls, name, recording) -> dict:
    """What is timed: {(rival, mode): (how to sample, call, repeats, all-reduces in a call)}.

    Only of rivals whose sums are right.
    """
    group, work = case.group, {}
    for rival, call in calls.items():
        wrong, error = _agree(
            group, lambda rival=rival, call=call: case.right(tensors[rival], call)
        )
        if error or wrong:
            recording.note(f"{name}/{rival}", f"WRONG {wrong} {error[-400:]}")
            continue
        repeats = case.repeats()
        work[rival, "call"] = (case.sample, call, repeats, 1)
        if case.bytes <= 4 * MIB:
            work[rival, "wait"] = (case.sample_waiting, call, 30, 1)
        in_graph = IN_GRAPH if case.bytes <= 16 * MIB else 3
        replay, error = _agree(group, lambda call=call, n=in_graph: captured(call, n))
        if error:
            recording.note(f"{name}/{rival}/graph", error[-400:])
        else:
            work[rival, "graph"] = (case.sample, replay, max(1, repeats // in_graph), in_graph)
    return work


def measure(
    communicator,
    recording: Recording,
    clock,
    sizes=SIZES,
    dtype=None,
    rounds=7,
) -> None:
    """Sweep and race for every size, in their order, while the clock allows."""
    import torch

    dtype = dtype or torch.float32
    kind = "" if dtype == torch.float32 else "bf16/"
    for bytes in sizes:
        name = f"many_gpus/all_reduce/{kind}{bytes}"
        if clock.agreed(communicator.group) < 3:
            recording.note(name, "left out: the time was used up")
            continue
        case = Case(communicator, bytes, dtype)
        choice = sweep(case, name, recording)
        if choice:
            race(case, choice, name, recording, None, rounds)
        case.close()


def measure_window(
    communicator,
    recording: Recording,
    clock,
    sizes=SIZES,
    rounds=5,
) -> None:
    """The same races with the variants that `choose` takes, and NCCL with its memory registered."""
    import torch

    window, error = _agree(communicator.group, Window)
    if error:
        recording.note("many_gpus/all_reduce/window", error[-600:])
    for bytes in sizes:
        if clock.agreed(communicator.group) < 2:
            break
        case = Case(communicator, bytes, torch.float32)
        choice = choose(bytes, communicator.size)
        race(case, choice, f"many_gpus/all_reduce/window/{bytes}", recording, window, rounds)
        case.close()
