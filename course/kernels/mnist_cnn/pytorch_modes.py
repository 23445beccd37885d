"""The training step in PyTorch, in every mode that its users would try: the race's rivals.

A mode is a precision, a memory format, and who launches the kernels: Python (eager), torch.compile,
a CUDA graph of the whole step, or both. Every mode trains the same network on the same batches from
the same weights, with PyTorch's fused SGD kernel, and copies the next batch on a stream of its own
while the batch before it trains.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.nn import functional

from course.kernels.mnist_cnn.pytorch import model_from, weights_of


@dataclass(frozen=True)
class Mode:
    """One way to run the step. compile: a mode of torch.compile or None. graph: the whole step as
    one CUDA graph.
    """

    name: str
    # or "tf32", or "bf16", "fp16" (autocast: operands of 16 bits, fp32 weights; see LOSS_SCALE)
    precision: str = "fp32"
    channels_last: bool = False
    compile: str | None = None
    graph: bool = False


#: autocast of each precision that has one
SIXTEEN_BITS = {"bf16": torch.bfloat16, "fp16": torch.float16}
#: What the loss is multiplied by where gradients are fp16. The learning rate is divided by it: no
#: kernel more, where a GradScaler would look at every gradient. (Autocast keeps the gradients of
#: weights in fp16, too: 65,536, where GradScaler begins, is too much for them.)
LOSS_SCALE = 1024

MODES = {
    mode.name: mode
    for mode in (
        Mode("eager_fp32"),
        Mode("eager_tf32", "tf32"),
        Mode("eager_tf32_channels_last", "tf32", channels_last=True),
        Mode("eager_bf16", "bf16"),
        Mode("compile_tf32", "tf32", compile="default"),
        Mode("compile_max_autotune_tf32", "tf32", compile="max-autotune"),
        Mode("graph_fp32", graph=True),
        Mode("graph_tf32", "tf32", graph=True),
        Mode("graph_compile_tf32", "tf32", compile="default", graph=True),
        Mode("graph_compile_bf16", "bf16", compile="default", graph=True),
        Mode(
            "graph_compile_bf16_channels_last",
            "bf16",
            channels_last=True,
            compile="default",
            graph=True,
        ),
        # Not one of the usual eleven, but whoever tried those would try this too.
        Mode(
            "graph_max_autotune_bf16_channels_last",
            "bf16",
            channels_last=True,
            compile="max-autotune-no-cudagraphs",
            graph=True,
        ),
    )
}

#: For compute capability 7.5, whose tensor cores have no other type
FP16_MODES = {
    mode.name: mode
    for mode in (
        Mode("eager_fp16", "fp16"),
        Mode("graph_compile_fp16", "fp16", compile="default", graph=True),
        Mode(
            "graph_compile_fp16_channels_last",
            "fp16",
            channels_last=True,
            compile="default",
            graph=True,
        ),
    )
}


ALL_MODES = MODES | FP16_MODES


def modes_for(precisions) -> list[str]:
    """The modes in fp32 and in these precisions: what a GPU's tensor cores can be raced in."""
    return [name for name, mode in ALL_MODES.items() if mode.precision in ("fp32", *precisions)]


@contextlib.contextmanager
def precision(mode: Mode):
    """PyTorch's global switches as a mode wants them, for building it and for every one of its
    steps.
    """
    switches = (
        torch.backends.cuda.matmul.allow_tf32,
        torch.backends.cudnn.allow_tf32,
        torch.backends.cudnn.benchmark,
    )
    allow = mode.precision != "fp32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allow
    torch.backends.cudnn.benchmark = (
        True  # cuDNN tries its algorithms for these sizes and keeps the fastest
    )
    try:
        yield
    finally:
        (
            torch.backends.cuda.matmul.allow_tf32,
            torch.backends.cudnn.allow_tf32,
            torch.backends.cudnn.benchmark,
        ) = switches


@dataclass
class _Slot:
    """Where one batch lies on the GPU. `full`: the copy has arrived; `free`: the step that read it
    is done.
    """

    images: torch.Tensor
    labels: torch.Tensor
    full: torch.cuda.Event = field(default_factory=torch.cuda.Event)
    free: torch.cuda.Event = field(default_factory=torch.cuda.Event)
    graph: torch.cuda.CUDAGraph | None = None
    loss: torch.Tensor | None = None


class Trainer:
    """The network with its weights on the GPU, and a step in one mode.

    weights: float32 arrays by name. batch: digits a step. Compiling and capturing happen here, on
        random digits; the
    weights are then put back. Raises what PyTorch raises where a mode does not work on this
    machine.
    """

    def __init__(
        self,
        weights: dict[str, np.ndarray],
        batch: int,
        lr: float,
        mode: Mode,
    ):
        self.mode = mode
        self.count = 0
        self.model = model_from(weights, "cuda")
        if mode.channels_last:
            self.model.to(memory_format=torch.channels_last)
        self.scale = LOSS_SCALE if mode.precision == "fp16" else 1
        self.optimizer = torch.optim.SGD(
            self.model.parameters(),
            lr=lr / self.scale,
            fused=True,
        )
        self.copies = torch.cuda.Stream()
        self.slots = [
            _Slot(
                torch.randint(0, 256, (batch, 28, 28), dtype=torch.uint8, device="cuda"),
                torch.randint(0, 10, (batch,), dtype=torch.uint8, device="cuda"),
            )
            for _ in range(2)
        ]
        self.loss_of = self._loss
        if mode.compile:
            # Dynamo keeps what it compiled by function, and by default gives up after eight modes
            # and batch sizes.
            torch._dynamo.config.recompile_limit = 256
            self.loss_of = torch.compile(
                self._loss,
                mode=mode.compile,
                dynamic=False,
            )
        with precision(mode):
            self._prepare()
        self.load(weights)

    def _loss(self, images, labels):
        sixteen = self.mode.precision in SIXTEEN_BITS
        dtype = SIXTEEN_BITS.get(self.mode.precision, torch.bfloat16)
        with torch.autocast("cuda", dtype, enabled=sixteen):
            logits = self.model(images)
        return functional.cross_entropy(logits.float(), labels.long())

    def _train(self, slot):
        """Forward, backward, update, on the current stream."""
        if (
            self.mode.compile == "max-autotune"
        ):  # the graphs inside compiled code reuse the memory of the step before
            torch.compiler.cudagraph_mark_step_begin()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss_of(slot.images, slot.labels)
        scaled = loss if self.scale == 1 else loss * self.scale
        scaled.backward()
        self.optimizer.step()
        return loss.detach()

    def _prepare(self):
        warm = torch.cuda.Stream()
        warm.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(warm if self.mode.graph else torch.cuda.current_stream()):
            for slot in self.slots * 3:
                self._train(slot)
        torch.cuda.current_stream().wait_stream(warm)
        torch.cuda.synchronize()
        if not self.mode.graph:
            return
        for slot in self.slots:  # one graph for each place that a batch can lie in
            slot.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(slot.graph):
                slot.loss = self._train(slot)

    @torch.no_grad()
    def load(self, weights: dict[str, np.ndarray]) -> None:
        """Set the weights, in place: graphs and compiled code know their addresses."""
        for name, value in weights.items():
            self.model.get_parameter(name).copy_(torch.from_numpy(np.array(value)))
        torch.cuda.synchronize()

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """One step on a batch in pinned host memory, images uint8 [B, 28, 28] and labels uint8 [B].

        Nothing waits for the GPU. Returns the loss on the GPU; the next but one step may overwrite
        it.
        """
        slot = self.slots[self.count % 2]
        self.count += 1
        with torch.cuda.stream(self.copies):
            self.copies.wait_event(slot.free)
            slot.images.copy_(images, non_blocking=True)
            slot.labels.copy_(labels, non_blocking=True)
            slot.full.record(self.copies)
        torch.cuda.current_stream().wait_event(slot.full)
        if slot.graph:
            slot.graph.replay()
            loss = slot.loss
        else:
            loss = self._train(slot)
        slot.free.record()
        return loss

    def weights(self) -> dict[str, np.ndarray]:
        """The weights by name, as NumPy arrays."""
        return weights_of(self.model)


def as_graph(function: Callable):
    """A function of PyTorch's as one CUDA graph: a call launches all of its kernels at once.

    Returns what replays it, into the same results each time.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # first runs outside of the graph: libraries make their handles
        for _ in range(3):
            function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = function()

    def replay():
        graph.replay()
        return results

    return replay
