"""The six doors tell right, wrong and refused apart, and two neurons find the circle."""

import utils  # noqa: F401  first: it puts Numba on this machine's engine

# isort: split
import torch

from course.extensions import circle, doors


def formula(x):
    return x * x + 1


def in_a_row(x):
    """A kernel's way with x: it reads memory as it lies, and autograd knows nothing of it."""
    y = torch.empty_like(x)
    places = (x.numel(),), (1,)
    with torch.no_grad():
        y.as_strided(*places).copy_(formula(x.detach().as_strided(*places)))
    return y


def test_a_formula_gets_through_all_doors():
    assert set(doors.tried(formula, formula).values()) == {doors.RIGHT}


def test_memory_as_it_lies_is_wrong_for_a_view_and_nobody_says_so():
    assert doors.outcome("a call", in_a_row, formula) == doors.RIGHT
    assert doors.outcome("backward()", in_a_row, formula) == doors.ERROR
    assert doors.outcome("a view", in_a_row, formula) == doors.WRONG
    assert doors.outcome("its layout", in_a_row, formula) == doors.RIGHT


def test_a_copy_in_the_usual_order_loses_the_layout_alone():
    def usual(x):
        return formula(x.contiguous())

    assert doors.outcome("a view", usual, formula) == doors.RIGHT
    assert doors.outcome("its layout", usual, formula) == doors.WRONG


class Kept(torch.autograd.Function):
    """The formula, whose input backward is given."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return formula(x)


def test_a_wrong_gradient_is_seen_on_plain_tensors_and_on_views():
    class Off(Kept):
        @staticmethod
        def backward(ctx, dy):
            return dy * ctx.saved_tensors[0]

    assert doors.outcome("a call", Off.apply, formula) == doors.RIGHT
    assert doors.outcome("backward()", Off.apply, formula) == doors.WRONG
    assert doors.outcome("a view", Off.apply, formula) == doors.WRONG


def test_what_cannot_be_traced_is_refused():
    def by_memory(x):
        assert x.data_ptr()
        return formula(x)

    def by_value(x):
        return formula(x) if x.sum().item() > -1e9 else x

    assert doors.outcome("torch.export", by_memory, formula) == doors.ERROR
    assert doors.outcome("torch.compile", by_value, formula) == doors.ERROR


def test_two_neurons_find_the_circle_by_a_parabola_alone():
    by_parabola = circle.trained(lambda x: (0.5 * x - 1) * x + 2)
    by_relu = circle.trained(torch.relu)
    by_line = circle.trained(lambda x: 2 - x)
    assert by_parabola.right() >= 0.97 * circle.POINTS
    assert by_relu.right() < 0.9 * circle.POINTS
    assert by_line.right() < 0.8 * circle.POINTS
    rows = by_parabola.in_letters().splitlines()
    assert {len(row) for row in rows} == {2 * circle.ROWS + 1}
    assert rows[circle.ROWS // 2][circle.ROWS] == "#"  # the middle
    assert not {"#"} & set(rows[0] + rows[-1])


def test_a_gradient_in_another_order_than_x_is_seen_by_its_layout_alone():
    class RowByRow(Kept):
        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return (2 * dy * x).contiguous()

    assert doors.outcome("backward()", RowByRow.apply, formula) == doors.RIGHT
    assert doors.outcome("a view", RowByRow.apply, formula) == doors.RIGHT
    assert doors.outcome("its layout", RowByRow.apply, formula) == doors.WRONG
