"""A token in PyTorch, in every mode that its users would try: the race's rivals.

The model is told of everything that helps: one matrix for queries, keys and values, one for gate
and up; a cache whose length is known, so that attention needs no mask; angles computed before.
"""

from collections.abc import Callable

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from course.kernels.bench.report import Report
from course.kernels.language_model import reference
from course.kernels.language_model.problem import Config
from course.kernels.mnist_cnn.pytorch_modes import as_graph

#: A group's heads may stand as queries of one head: the same without a mask, keys are read once
ATTENTION = {
    "flash": (SDPBackend.FLASH_ATTENTION, False),
    "flash folded": (SDPBackend.FLASH_ATTENTION, True),
    "cudnn": (SDPBackend.CUDNN_ATTENTION, False),
    "cudnn folded": (SDPBackend.CUDNN_ATTENTION, True),
    "efficient folded": (SDPBackend.EFFICIENT_ATTENTION, True),
    "math folded": (SDPBackend.MATH, True),
}
COMPILE = {"dynamic": False, "fullgraph": True}
#: Ways of torch.compile. Only with coordinate descent does inductor write a product with one row as
#: a sum of its own, which gpt-fast found to be the fastest for a token
MODES = {
    "default": {"mode": "default"},
    "coordinate-descent": {"options": {"coordinate_descent_tuning": True}},
    "max-autotune-no-cudagraphs": {"mode": "max-autotune-no-cudagraphs"},
    "max-autotune": {"mode": "max-autotune"},
}


class Token:
    """One token of each sequence at one position, greedily; keys of earlier ones are random.

    weights: of bfloat16. attention: a name of ATTENTION.
    """

    def __init__(self, config: Config, weights: dict, batch: int, position: int, attention: str):
        self.config, self.weights = config, weights
        self.position = position
        self.backend, self.folded = ATTENTION[attention]
        device, dtype = weights["qkv"].device, weights["qkv"].dtype
        shape = batch, config.kv_heads, position + 1, config.head
        # A tensor for each: a compiled write into a part of one tensor may copy the whole
        self.cache = [
            [torch.randn(shape, dtype=dtype, device=device) for _ in range(2)]
            for _ in range(config.layers)
        ]
        angle = reference.angles(config, torch.tensor([position], device=device))
        self.cos, self.sin = torch.cos(angle).to(dtype), torch.sin(angle).to(dtype)
        self.token = torch.zeros(batch, dtype=torch.int64, device=device)

    def turned(self, x) -> torch.Tensor:
        """x [batch, heads, head], turned by the position's angles."""
        left, right = x.chunk(2, -1)
        cos, sin = self.cos, self.sin
        return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)

    def attend(self, q, k, v) -> torch.Tensor:
        """q [batch, heads, head] against k, v [batch, kv_heads, keys, head]."""
        batch, heads, head = q.shape
        shape = (batch, k.shape[1], -1, head) if self.folded else (batch, heads, 1, head)
        out = functional.scaled_dot_product_attention(
            q.reshape(shape), k, v, enable_gqa=not self.folded
        )
        return out.reshape(batch, heads * head)

    def layer(self, x, number: int) -> torch.Tensor:
        """x [batch, width] through a layer."""
        config = self.config
        own = {name: self.weights[name][number] for name in reference.STACKED}
        y = functional.rms_norm(x, x.shape[-1:], own["norm_1"], config.eps)
        rows = functional.linear(y, own["qkv"]).unflatten(-1, (-1, config.head))
        counts = config.heads, config.kv_heads, config.kv_heads
        q, k, v = rows.split(counts, 1)
        keys, values = self.cache[number]
        keys[:, :, self.position] = self.turned(k)
        values[:, :, self.position] = v
        mixed = self.attend(self.turned(q), keys, values)
        x = x + functional.linear(mixed, own["out"])
        y = functional.rms_norm(x, x.shape[-1:], own["norm_2"], config.eps)
        gate, up = functional.linear(y, own["gate_up"]).chunk(2, -1)
        return x + functional.linear(functional.silu(gate) * up, own["down"])

    def logits(self, token) -> torch.Tensor:
        """[batch, vocabulary], after the token [batch]."""
        x = self.weights["embedding"][token]
        for number in range(self.config.layers):
            x = self.layer(x, number)
        y = functional.rms_norm(x, x.shape[-1:], self.weights["norm"], self.config.eps)
        return functional.linear(y, self.weights["embedding"])

    def next(self, token) -> torch.Tensor:
        """The most likely token [batch]."""
        return self.logits(token).argmax(-1)

    def runs(self, compile: str | None = None) -> Callable:
        """What computes a token. compile: a name of MODES."""
        function = self.next
        if compile:
            function = torch.compile(self.next, **MODES[compile], **COMPILE)

        @torch.inference_mode()
        def run():
            with sdpa_kernel(self.backend):
                return function(self.token)

        return run


def rivals(
    report: Report,
    name: str,
    config: Config,
    weights: dict,
    batch: int,
    position: int,
    attentions=tuple(ATTENTION),
    modes=tuple(MODES),
) -> dict:
    """PyTorch's modes that run here: eager in all ways of attention, compiled in the fastest.

    Returns label -> function. A mode that fails is told in the report. modes: names of MODES;
    those without graphs of their own are captured in one by hand.
    """
    runs = {}

    def put(label, make):
        def made():
            run = make()
            run()
            torch.cuda.synchronize()
            return run

        run = report.attempt(f"{name} {label}", made)
        if run is not None:
            runs[label] = run

    def token(attention):
        return Token(config, weights, batch, position, attention)

    put("eager", lambda: token(attentions[0]).runs())
    for attention in attentions:
        put(f"graph, {attention}", lambda attention=attention: captured(token(attention)))
    best = fastest_attention(runs)
    for mode in modes:
        if mode == "max-autotune":
            put(f"max-autotune, {best}", lambda: token(best).runs("max-autotune"))
        else:
            label = f"{mode.removesuffix('-no-cudagraphs')} and graph, {best}"
            put(label, lambda mode=mode: captured(token(best), mode))
    return runs


def captured(token: Token, compile: str | None = None) -> Callable:
    """A token as one CUDA graph, with the token, whose memory the graph reads."""
    replay = as_graph(token.runs(compile))
    return lambda: (token, replay())[1]


def fastest_attention(runs: dict) -> str:
    """Of those whose run is a graph of eager kernels."""
    graphs = [label for label in runs if label.startswith("graph")]
    return min(graphs, key=lambda label: milliseconds(runs[label])).removeprefix("graph, ")


def milliseconds(run: Callable, repeats: int = 20) -> float:
    """Of one call, roughly: to choose by, never to record."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    run()
    start.record()
    for _ in range(repeats):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / repeats
