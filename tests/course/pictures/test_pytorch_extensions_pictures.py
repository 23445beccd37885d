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
    first = pictures.graph(in_order(product), walked=0)
    assert "w = 3, gradient ?" in first.alt and first.svg().count("gradient ?") >= 2
    assert (
        pictures.graph(in_order(product), walked=2).svg() == pictures.graph(in_order(product)).svg()
    )


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
    steps = "stream 0 fill → 2 (writes A), stream 1 multiply → 4 (reads A, writes B)"
    assert pictures.streams(gpu).alt == f"In turn: {steps}."


def test_streams_show_whose_memory_was_handed_out_again():
    gpu = Model("oldest first")
    x = gpu.full(2.0)
    del x
    gpu.full(3.0).item()
    assert "fill → 2 (writes A), stream 0 fill → 3 (writes A)" in pictures.streams(gpu).alt


def test_what_is_learnt_is_asked_of_the_network():
    points = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, -2.0], [9.0, 9.0]])
    inside = torch.tensor([[1.0], [0.0], [0.0], [0.0]])
    drawn = pictures.learnt(points, inside, lambda at: (at[:, :1] > -1).float())
    assert drawn.alt == "The network is right about 1 of 4 points."
    assert "<circle" not in drawn.svg()
    assert "<circle" in pictures.learnt(points, inside, lambda at: at[:, :1], radius=1.0).svg()
    assert len(pictures._corners_of_yes(points, lambda at: torch.ones(len(at), 1))) == 40 * 40
    assert pictures._corners_of_yes(points, lambda at: torch.zeros(len(at), 1)) == []
    assert len(pictures._on_the_sheet(points)) == 3  # one point lies beyond the edge


def test_the_first_thread_has_its_own_blocks_rows():
    drawn = pictures.columns(rows=6, threads=3, chunk=8, parts=2)
    assert "6 rows of 24 columns, shared out among 2 blocks" in drawn.alt
    assert drawn.svg().count('stroke-width="3"') == 3 + 1  # three rows of six, and a sum


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(x, factor):
        return factor * x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx, dy):
        x, _ = ctx.saved_tensors
        return 2 * ctx.factor * x * dy, None


def test_a_function_is_drawn_as_it_ran():
    sheet = pictures.there_and_back(Doubled, torch.tensor([1.0, 3.0]), 2.0)
    assert "x = 1, 3 goes into forward, y = 2, 18 comes out" in sheet.alt
    assert "ctx keeps x, y, factor" in sheet.alt
    assert "dy = 1, 1 goes into backward, dx = 4, 12 comes out" in sheet.alt


def test_doors_tell_what_is_wrong_from_what_is_refused():
    drawn = pictures.doors({"a call": "right", "a view": "wrong, silently", "export": "an error"})
    assert drawn.alt == "a call: right; a view: wrong, silently; export: an error."
    assert drawn.svg().count("✗") == 2
    assert drawn.svg().count(pictures.GREEN) == 1


def test_a_kernel_that_knows_no_strides_reads_numbers_as_they_lie():
    memory = torch.arange(16.0).reshape(4, 4)
    cut = pictures.as_it_lies(memory, memory[:, ::2]).alt
    assert cut.startswith(
        "The view means 0, 2, 4, 6, 8, 10, 12, 14; out come 0, 1, 2, 3, 4, 5, 6, 7"
    )
    assert pictures.as_it_lies(memory, memory[:, ::2], copied=True).alt.endswith("as it should.")
    assert pictures.as_it_lies(memory, memory.t()).alt.endswith("as it should.")
    assert pictures.as_it_lies(memory, memory[1:3]).alt.endswith("as it should.")
    turned_and_cut = memory.t()[:, ::2]
    for copied in (False, True):
        drawn = pictures.as_it_lies(memory, turned_and_cut, copied)
        assert drawn.alt.endswith("which is not the same.")
