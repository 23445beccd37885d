"""Pictures of the chapter PyTorch extensions."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import torch

from course.extensions.micrograd import Value, in_order
from course.extensions.streams import Model
from course.pictures import pytorch_extensions as pictures


def test_a_graph_tells_values_and_gradients():
    w, x = (Value(torch.tensor([number]), name=name) for number, name in ((3.0, "w"), (5.0, "x")))
    product = w * x
    product.backward()
    alt = pictures.graph(in_order(product)).alt
    assert "w = 3, gradient 5" in alt
    assert "x = 5, gradient 3" in alt


def test_the_dispatcher_tells_what_is_registered():
    @torch.library.custom_op("pictures::same", mutates_args=())
    def same(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    assert "autocast no" in pictures.dispatcher("pictures::same").alt
    torch.library.register_autocast("pictures::same", "cpu", torch.float32)
    assert "autocast yes" in pictures.dispatcher("pictures::same").alt


def test_streams_tell_the_order():
    gpu = Model("oldest first")
    x = gpu.full(2.0)
    with gpu.stream(gpu.Stream()):
        x * x
    gpu.synchronize()
    assert pictures.streams(gpu).alt == "In turn: stream 0 fill → 2, stream 1 multiply → 4."
