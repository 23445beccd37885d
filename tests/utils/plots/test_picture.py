"""matplotlib's figures in the page's colours: what is drawn of their axes."""

from matplotlib.backends.backend_agg import FigureCanvasAgg

from utils.plots import picture


def log_chart(low, high):
    """A chart with a logarithmic axis, as it is drawn."""
    fig = picture.figure(alt="a chart")
    axes = fig.subplots()
    axes.plot([low, high], [1, 2])
    axes.set(xscale="log", xlim=(low, high))
    return fig, picture.themed(fig)


def test_powers_are_plain_letters():
    fig, drawn = log_chart(1e-3, 1e6)
    assert "10⁻²" in drawn and "10⁰" in drawn
    assert len(fig.axes[0].xaxis.get_minorticklocs()) == 0


def test_an_axis_of_less_than_a_power_keeps_its_names():
    fig, drawn = log_chart(2, 9)
    assert len(fig.axes[0].xaxis.get_minorticklocs()) > 3
    assert ">6<" in drawn and "10^" not in drawn and "×" not in drawn


def test_a_picture_is_laid_out_then_drawn_once():
    fig, axes = picture.chart(alt="a chart")
    drawn = []
    axes.plot([1, 2])[0].draw = drawn.append
    around = axes.get_position().bounds
    picture.themed(fig)
    assert len(drawn) == 1 and axes.get_position().bounds != around


def test_a_picture_that_is_not_saved_is_drawn_whole():
    fig, axes = picture.chart(alt="a chart")
    drawn = []
    axes.plot([1, 2])[0].draw = drawn.append
    FigureCanvasAgg(fig).draw()
    assert drawn
