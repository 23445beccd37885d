"""PyTorch's DistributedDataParallel training the same network, in its best modes: the rival.

A mode is one of `mnist_cnn.pytorch_modes` with DDP around the model: eager, compiled, as a CUDA
graph of the whole step. The gradients are NCCL's all-reduces, in DDP's buckets, started while the
backward pass still runs.
"""

import time

import numpy as np

from course.kernels.many_gpus.recording import Recording, median_and_spread

#: From the least to the most that a user would try; what compiles longest comes last.
MODES = (
    "eager_bf16",
    "graph_bf16_channels_last",
    "graph_compile_bf16_channels_last",
    "graph_max_autotune_bf16_channels_last",
)
LR, STEPS, REPEATS, WARM_UP = 0.02, 30, 5, 5
WARM_UP_ROUNDS = 8  # of both slots, before a graph is captured: DDP's own notes ask for 11 steps


def trainer(weights, batch: int, mode_name: str):
    """A course.kernels.mnist_cnn.pytorch_modes.Trainer whose model stands in DDP."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    from course.kernels.mnist_cnn import pytorch_modes
    from course.kernels.mnist_cnn.pytorch_modes import MODES as ALONE
    from course.kernels.mnist_cnn.pytorch_modes import Mode

    modes = {
        **ALONE,
        "graph_bf16_channels_last": Mode("graph_bf16_channels_last", "bf16", True, None, True),
    }

    class Trainer(pytorch_modes.Trainer):
        """The same steps with the gradients' mean over the ranks."""

        parallel = None

        def _loss(self, images, labels):
            with torch.autocast("cuda", torch.bfloat16, enabled=self.mode.precision == "bf16"):
                logits = self.parallel(images)
            return torch.nn.functional.cross_entropy(logits.float(), labels.long())

        def _prepare(self):
            current = torch.cuda.current_stream()
            stream = torch.cuda.Stream() if self.mode.graph else current
            stream.wait_stream(current)
            with torch.cuda.stream(stream):  # a graph's warm-up must not run on the default stream
                self.parallel = DistributedDataParallel(
                    self.model,
                    device_ids=[torch.cuda.current_device()],
                    gradient_as_bucket_view=True,
                    broadcast_buffers=False,
                    static_graph=self.mode.compile is None,
                )
                for slot in self.slots * WARM_UP_ROUNDS:
                    self._train(slot)
            torch.cuda.current_stream().wait_stream(stream)
            torch.cuda.synchronize()
            super()._prepare()

    return Trainer(weights, batch, LR, modes[mode_name])


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
        return np.array([rival.step(*batches[k % len(batches)]).item() for k in range(steps)])


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
    communicator, recording: Recording, clock, batch: int = 4096, modes=MODES, precision="bf16"
) -> None:
    """Ours (own statistics, as DDP has) and PyTorch's modes in turn; their losses are checked."""
    import traceback

    import torch

    from course.kernels.many_gpus import training
    from course.kernels.many_gpus.trainer import ParallelTrainer
    from course.kernels.mnist_cnn.pytorch import initial_weights

    group, weights = communicator.group, initial_weights(0)
    arrays = training.digits(batch, 8, group.rank, group.size)
    tensors = [tuple(torch.from_numpy(a) for a in pair) for pair in arrays]
    ours = ParallelTrainer(communicator, weights, batch, LR, precision, statistics=False)
    for k in range(4):
        ours.step(*arrays[k])
    reference = ours.losses()[:4]  # the mean over the ranks
    rivals = {}
    for mode in modes:
        if clock.agreed(group) < 8:
            recording.note(
                f"many_gpus/ddp/{batch}/pytorch/{mode}", "left out: the time was used up"
            )
            continue
        error = ""
        try:
            rival = trainer(weights, batch, mode)
            losses = _losses(rival, tensors, 4)
        except (
            Exception
        ):  # whatever PyTorch, its compiler or CUDA raise: the others race without it
            error = traceback.format_exc()
        if any(group.all_gather(error)):
            recording.note(f"many_gpus/ddp/{batch}/pytorch/{mode}", "failed: " + error[-500:])
            continue
        mean = np.mean(group.all_gather(losses), axis=0)
        off = float(np.max(np.abs(mean / reference - 1)))
        if not off <= 6e-2:
            recording.note(
                f"many_gpus/ddp/{batch}/pytorch/{mode}", f"WRONG: losses off by {off:.2g}"
            )
            continue
        rivals[mode] = rival
    samples = {"ours": [], **{mode: [] for mode in rivals}}
    for _ in range(REPEATS):
        samples["ours"].append(training.time_of_steps(ours, arrays, group))
        for mode, rival in rivals.items():
            samples[mode].append(_time(rival, tensors, group))
    communicator.check()
    everyone = group.all_gather(samples)
    medians = {}
    for name in samples:
        slowest = [max(t) for t in zip(*(other[name] for other in everyone), strict=True)]
        medians[name], spread = median_and_spread(slowest)
        path = "ours" if name == "ours" else f"pytorch/{name}"
        recording.add(f"many_gpus/ddp/{batch}/race/{path}", medians[name], "s", spread)
    if rivals:
        best = min(rivals, key=medians.get)
        speedup = medians[best] / medians["ours"]
        recording.add(f"many_gpus/ddp/{batch}/speedup_over_pytorch_ddp", speedup, "1", best=best)
    group.barrier()
    ours.close()
