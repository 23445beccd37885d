"""PyTorch's DistributedDataParallel training the same network, in its best modes: the rival.

A mode is one of `mnist_cnn.pytorch_modes` with DDP around the model: eager, compiled, as a CUDA
graph of the whole step. The gradients are NCCL's all-reduces, in DDP's buckets, started while the
backward pass still runs.
"""

import time
import traceback

import numpy as np

from course.kernels.many_gpus.recording import Recording, slowest
from utils.timing import median_and_spread

#: From the least to the most that a user would try; what compiles longest comes last.
MODES = (
    "eager_bf16",
    "graph_bf16_channels_last",
    "graph_compile_bf16_channels_last",
    "graph_max_autotune_bf16_channels_last",
)
LR, STEPS, REPEATS, WARM_UP = 0.02, 30, 5, 5
CHECKED = 4  # losses
MOST_OFF = 6e-2  # of a loss, beside ours
LEAST = 8  # seconds in which a mode can be made and checked
WARM_UP_ROUNDS = 8  # of both slots, before a graph is captured: DDP's own notes ask for 11 steps


def trainer(weights, batch: int, mode_name: str):
    """A course.kernels.mnist_cnn.pytorch_modes.Trainer whose model stands in DDP."""
    from course.kernels.mnist_cnn import pytorch_modes

    mode = pytorch_modes.MODES.get(mode_name) or _graph_mode(mode_name)

    class Trainer(pytorch_modes.Trainer):
        """The same steps with the gradients' mean over the ranks."""

        parallel = None

        def _loss(self, images, labels):
            return _loss(self, images, labels)

        def _prepare(self):
            _put_into_ddp(self)
            super()._prepare()

    return Trainer(weights, batch, LR, mode)


def _graph_mode(name):
    """The one mode that the race on one GPU does not have: a graph, and nothing compiled."""
    from course.kernels.mnist_cnn.pytorch_modes import Mode

    if name != "graph_bf16_channels_last":
        raise ValueError(f"there is no mode {name}")
    return Mode(name, "bf16", True, None, True)


def _loss(trainer, images, labels):
    """The loss of the model in DDP."""
    import torch

    in_bf16 = trainer.mode.precision == "bf16"
    with torch.autocast(
        "cuda",
        torch.bfloat16,
        enabled=in_bf16,
    ):
        logits = trainer.parallel(images)
    return torch.nn.functional.cross_entropy(logits.float(), labels.long())


def _put_into_ddp(trainer):
    """Make trainer.parallel, and warm it up: for a graph's capture not on the default stream."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    current = torch.cuda.current_stream()
    stream = torch.cuda.Stream() if trainer.mode.graph else current
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        trainer.parallel = DistributedDataParallel(
            trainer.model,
            device_ids=[torch.cuda.current_device()],
            gradient_as_bucket_view=True,
            broadcast_buffers=False,
            static_graph=trainer.mode.compile is None,
        )
        for slot in trainer.slots * WARM_UP_ROUNDS:
            trainer._train(slot)
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()


def prepare(batch: int, modes, group) -> None:
    """Let compilers do their work: other processes find on disk what they compiled."""
    from course.kernels.many_gpus.rivals import join_nccl
    from course.kernels.mnist_cnn.pytorch import initial_weights

    join_nccl(group)
    for mode in modes:
        start = time.perf_counter()
        try:
            trainer(initial_weights(0), batch, mode)
            result = "ready"
        except Exception as error:  # the race itself will say why
            result = f"{type(error).__name__}: {str(error).strip()[-200:]}"
        if group.rank == 0:
            print(f"  {mode}: {result}, {time.perf_counter() - start:.1f} s", flush=True)


def _losses(rival, batches, steps):
    from course.kernels.mnist_cnn.pytorch_modes import precision

    with precision(rival.mode):
        losses = [rival.step(*batches[k]).item() for k in range(steps)]
        return np.array(losses)


def _time(rival, batches, group) -> float:
    """Seconds a step of steps queued one behind the other."""
    import torch

    from course.kernels.mnist_cnn.pytorch_modes import precision

    with precision(rival.mode):
        for k in range(WARM_UP):
            rival.step(*batches[k % len(batches)])
        torch.cuda.synchronize()
        group.barrier()
        start = time.perf_counter()
        for k in range(STEPS):
            rival.step(*batches[k % len(batches)])
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / STEPS


def race(
    communicator,
    recording: Recording,
    clock,
    batch: int = 4096,
    modes=MODES,
    precision="bf16",
) -> None:
    """Ours (own statistics, as DDP has) and PyTorch's modes in turn; their losses are checked."""
    import torch

    from course.kernels.many_gpus import training
    from course.kernels.many_gpus.trainer import ParallelTrainer
    from course.kernels.mnist_cnn.pytorch import initial_weights

    group, weights = communicator.group, initial_weights(0)
    arrays = training.digits(batch, 8, group.rank, group.size)
    tensors = [tuple(map(torch.from_numpy, pair)) for pair in arrays]
    ours = ParallelTrainer(communicator, weights, batch, LR, precision, statistics=False)
    for k in range(CHECKED):
        ours.step(*arrays[k])
    reference = ours.losses()[:CHECKED]  # the mean over the ranks
    name, rivals = f"many_gpus/ddp/{batch}", {}
    for mode in modes:
        rival, why = None, "left out: the time was used up"
        if clock.agreed(group) >= LEAST:
            rival, why = _rival(group, batch, mode, tensors, reference)
        if why:
            recording.note(f"{name}/pytorch/{mode}", why)
        else:
            rivals[mode] = rival
    samples = _in_turn(ours, arrays, rivals, tensors, group)
    communicator.check()
    _keep(recording, name, group.all_gather(samples))
    group.barrier()
    ours.close()


def _rival(group, batch, mode, tensors, reference):
    """(a trainer in a mode of PyTorch's, "") or (None, why not): the same on all ranks."""
    from course.kernels.mnist_cnn.pytorch import initial_weights

    error, losses = "", None
    try:
        rival = trainer(initial_weights(0), batch, mode)
        losses = _losses(rival, tensors, CHECKED)
    except Exception:  # whatever PyTorch, its compiler or CUDA raise: the others race without it
        error = traceback.format_exc()
    errors = [each for each in group.all_gather(error) if each]
    if errors:
        return None, "failed: " + errors[0][-500:]
    mean = np.mean(group.all_gather(losses), axis=0)
    off = float(np.max(np.abs(mean / reference - 1)))
    if not off <= MOST_OFF:
        return None, f"WRONG: losses off by {off:.2g}"
    return rival, ""


def _in_turn(
    ours,
    arrays,
    rivals,
    tensors,
    group,
) -> dict[str, list[float]]:
    """Seconds a step on this rank, of ours and of each mode."""
    from course.kernels.many_gpus import training

    samples = {name: [] for name in ("ours", *rivals)}
    for _ in range(REPEATS):
        seconds = training.time_of_steps(ours, arrays, group)
        samples["ours"].append(seconds)
        for mode, rival in rivals.items():
            samples[mode].append(_time(rival, tensors, group))
    return samples


def _keep(recording, name, everyone):
    """Record the medians, and how many times the best mode takes. everyone: each rank's samples."""
    medians = {}
    for who in everyone[0]:
        medians[who], spread = median_and_spread(slowest(everyone, who))
        path = "ours" if who == "ours" else f"pytorch/{who}"
        recording.add(f"{name}/race/{path}", medians[who], "s", spread)
    ours = medians.pop("ours")
    if medians:
        best = min(medians, key=medians.get)
        speedup = medians[best] / ours
        recording.add(
            f"{name}/speedup_over_pytorch_ddp",
            speedup,
            "1",
            best=best,
        )
