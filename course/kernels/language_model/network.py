"""The model with the course's own kernels, forward and backward: what training runs, in float32.

The kernels are `kernels/train_*.cu`. PyTorch gives the memory, and nothing is computed by it.
"""

from pathlib import Path

import torch

from course.kernels.language_model.problem import Config
from course.kernels.language_model.reference import STACKED
from utils import cuda_c
from utils.engine import has_gpu
from utils.occupancy import ceil_div
from utils.tools import yours

KERNELS = Path(__file__).parent / "kernels"
TILE = 64  # of a product, rows and columns
BLOCK = 128  # threads, where one has a row or a number
DEPTH = 512  # of a sum over rows: more are cut into slices


class Network:
    """A model and what its training keeps.

    weights: name -> tensor of `config.shapes`, float32, changed in place by `step`. batch, length:
    of the texts that it is trained on. gradients: name -> tensor, after `backward`.
    """

    def __init__(self, config: Config, weights: dict, batch: int, length: int):
        self.config, self.weights = config, weights
        self.batch, self.length, self.rows = batch, length, batch * length
        self.device = weights["norm"].device
        self.gradients = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        self.means = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        self.squares = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        self.steps = 0
        kernels = compiled(config.head)
        self.product, self.layers, self.attention = kernels
        self.kept = [self._kept() for _ in range(config.layers)]
        self.x = self._rows(config.width)  # after the last layer
        self.y, self.root = self._rows(config.width), self._rows(1)
        self.logits, self.losses = self._rows(config.vocabulary), self._rows(1)

    def _rows(self, width: int) -> torch.Tensor:
        return torch.empty(self.rows, width, device=self.device)

    def _kept(self) -> dict[str, torch.Tensor]:
        """What a layer keeps of its way forward for its way back."""
        config = self.config
        queries = config.heads * config.head
        both = queries + 2 * config.kv_heads * config.head
        widths = {
            **dict.fromkeys(("x", "y_1", "middle", "y_2"), config.width),
            **dict.fromkeys(("root_1", "root_2"), 1),
            **{"qkv": both, "mixed": queries, "lse": config.heads},
            **{"gate_up": 2 * config.hidden, "gated": config.hidden},
        }
        return {name: self._rows(width) for name, width in widths.items()}

    # ---- the kernels, launched

    def linear(self, out, x, weight, *, adds=False):
        """out = x weightᵀ, or out += that."""
        (rows, depth), cols = x.shape, len(weight)
        self._product(out, x, weight, (rows, cols, depth), (depth, 1, 1, depth), adds)

    def linear_backward_input(self, out, d, weight):
        """out = d weight: the gradient of the input."""
        (rows, depth), cols = d.shape, weight.shape[1]
        self._product(out, d, weight, (rows, cols, depth), (depth, 1, cols, 1), False)

    def linear_backward_weight(self, out, d, x):
        """out += dᵀ x: the gradient of the weight."""
        (depth, rows), cols = d.shape, x.shape[1]
        slices = ceil_div(depth, DEPTH)
        self._product(out, d, x, (rows, cols, depth), (1, rows, cols, 1), True, slices)

    def _product(self, out, a, b, sizes, strides, adds, slices=1):
        rows, cols, _ = sizes
        grid = ceil_div(cols, TILE), ceil_div(rows, TILE), slices
        self.product.product[grid, TILE](flat(out), flat(a), flat(b), *sizes, *strides, int(adds))

    def per_number(self, name: str, threads: int, *arguments):
        """Launch a kernel of train_layers.cu with a thread for each of so many rows or numbers."""
        grid = ceil_div(threads, BLOCK)
        getattr(self.layers, name)[grid, BLOCK](*map(flat, arguments))

    def norm(self, y, root, x, weight):
        """y = RMS norm of x."""
        eps = self.config.eps
        self.per_number("rms_norm", self.rows, y, root, x, weight, self.rows, x.shape[1], eps)

    def norm_backward(self, dx, d_weight, dy, x, root, weight):
        """Add to dx, and to the weight's gradient."""
        width = x.shape[1]
        self.per_number("rms_norm_backward", self.rows, dx, dy, x, root, weight, self.rows, width)
        grid = ceil_div(width, 32), ceil_div(self.rows, 64)
        arguments = map(flat, (d_weight, dy, x, root))
        self.layers.rms_norm_weight_backward[grid, 32](*arguments, self.rows, width)

    def turn(self, qkv, way: float):
        """RoPE of queries and keys, in place; way -1: of their gradients."""
        config = self.config
        turned = config.heads + config.kv_heads
        sizes = self.rows, self.length, turned, turned + config.kv_heads, config.head
        threads = self.rows * turned * config.head // 2
        self.per_number("turn", threads, qkv, *sizes, config.theta, way)

    def attend(self, name: str, heads: int, *arguments):
        """Launch a kernel of train_attention.cu."""
        config = self.config
        block = min(BLOCK, self.length)
        grid = ceil_div(self.length, block), heads, self.batch
        sizes = self.batch, self.length, config.heads, config.kv_heads
        getattr(self.attention, name)[grid, block](*map(flat, arguments), *sizes)

    # ---- a step

    def forward(self, tokens) -> None:
        """Logits [batch length, vocabulary] of tokens [batch, length], int32."""
        config, weights = self.config, self.weights
        self.tokens = tokens.contiguous()
        x = self.kept[0]["x"]
        count = x.numel()
        embedding = weights["embedding"]
        self.per_number("embed", count, x, embedding, self.tokens, self.rows, config.width)
        for layer, kept in enumerate(self.kept):
            own = {name: weights[name][layer] for name in STACKED}
            self.norm(kept["y_1"], kept["root_1"], kept["x"], own["norm_1"])
            self.linear(kept["qkv"], kept["y_1"], own["qkv"])
            self.turn(kept["qkv"], 1.0)
            self.attend("attend", config.heads, kept["mixed"], kept["lse"], kept["qkv"])
            kept["middle"].copy_(kept["x"])
            self.linear(kept["middle"], kept["mixed"], own["out"], adds=True)
            self.norm(kept["y_2"], kept["root_2"], kept["middle"], own["norm_2"])
            self.linear(kept["gate_up"], kept["y_2"], own["gate_up"])
            count = kept["gated"].numel()
            both = kept["gated"], kept["gate_up"]
            self.per_number("gate", count, *both, self.rows, config.hidden)
            after = self.kept[layer + 1]["x"] if layer + 1 < config.layers else self.x
            after.copy_(kept["middle"])
            self.linear(after, kept["gated"], own["down"], adds=True)
        self.norm(self.y, self.root, self.x, weights["norm"])
        self.linear(self.logits, self.y, embedding)

    def loss(self, following) -> torch.Tensor:
        """Cross-entropy of each token that follows [batch, length], in nats: [batch length, 1].

        The logits' gradients, of the mean, take the logits' place.
        """
        arguments = self.losses, self.logits, following.contiguous()
        self.per_number("loss", self.rows, *arguments, self.rows, self.config.vocabulary)
        return self.losses

    def backward(self) -> None:
        """All gradients of the mean loss, from what `forward` and `loss` have left."""
        config, weights, gradients = self.config, self.weights, self.gradients
        for gradient in gradients.values():
            gradient.zero_()
        dx, dy = torch.zeros_like(self.x), self._rows(config.width)
        self.linear_backward_weight(gradients["embedding"], self.logits, self.y)
        self.linear_backward_input(dy, self.logits, weights["embedding"])
        self.norm_backward(dx, gradients["norm"], dy, self.x, self.root, weights["norm"])
        for layer in reversed(range(config.layers)):
            kept = self.kept[layer]
            own = {name: weights[name][layer] for name in STACKED}
            grown = {name: gradients[name][layer] for name in STACKED}
            d_gated = torch.empty_like(kept["gated"])
            self.linear_backward_weight(grown["down"], dx, kept["gated"])
            self.linear_backward_input(d_gated, dx, own["down"])
            count = d_gated.numel()
            both = kept["gate_up"], d_gated
            self.per_number("gate_backward", count, *both, self.rows, config.hidden)
            self.linear_backward_weight(grown["gate_up"], kept["gate_up"], kept["y_2"])
            self.linear_backward_input(dy, kept["gate_up"], own["gate_up"])
            place = kept["middle"], kept["root_2"], own["norm_2"]
            self.norm_backward(dx, grown["norm_2"], dy, *place)

            d_mixed = torch.empty_like(kept["mixed"])
            self.linear_backward_weight(grown["out"], dx, kept["mixed"])
            self.linear_backward_input(d_mixed, dx, own["out"])
            d_qkv = torch.empty_like(kept["qkv"])
            dots = torch.empty_like(kept["lse"])
            saved = d_mixed, kept["mixed"], kept["lse"], kept["qkv"]
            self.attend("attend_backward_q", config.heads, d_qkv, dots, *saved)
            saved = d_mixed, kept["lse"], kept["qkv"]
            self.attend("attend_backward_kv", config.kv_heads, d_qkv, dots, *saved)
            self.turn(d_qkv, -1.0)
            self.linear_backward_weight(grown["qkv"], d_qkv, kept["y_1"])
            self.linear_backward_input(dy, d_qkv, own["qkv"])
            self.norm_backward(dx, grown["norm_1"], dy, kept["x"], kept["root_1"], own["norm_1"])
        count = dx.numel()
        embedding = gradients["embedding"]
        self.per_number("embed_backward", count, embedding, dx, self.tokens, *dx.shape)

    def step(self, rate: float, decay: float = 0.1) -> None:
        """AdamW, with no decay of norms."""
        self.steps += 1
        fixes = 1 - 0.9**self.steps, 1 - 0.95**self.steps
        for name, weight in self.weights.items():
            moments = self.means[name], self.squares[name], self.gradients[name]
            own = 0.0 if name.startswith("norm") else decay
            count = weight.numel()
            self.per_number("adamw", count, weight, *moments, count, rate, own, *fixes)


def flat(value):
    """A tensor as one row of numbers; anything else as it is."""
    return value.reshape(-1) if isinstance(value, torch.Tensor) else value


@yours.cache
def compiled(head: int) -> tuple:
    """The three files' kernels, for heads of so many numbers."""
    flags = () if has_gpu() else ("-O3",)  # on a CPU the compiler is asked to try harder
    return (
        cuda_c.load(KERNELS / "train_product.cu", flags=flags),
        cuda_c.load(KERNELS / "train_layers.cu", flags=flags),
        cuda_c.load(KERNELS / "train_attention.cu", flags=(*flags, f"-DHEAD={head}")),
    )
