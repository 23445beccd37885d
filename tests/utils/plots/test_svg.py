"""Pictures follow the theme, say what they show, and stay safe HTML."""

import base64
import re
from xml.etree import ElementTree

from utils.plots import picture, svg


def drawing():
    sheet = svg.Drawing(100, 50, alt='two "boxes" & an arrow')
    sheet.box(1, 2, 3.14159, 4, fill=svg.FAINT, line=svg.INK)
    sheet.text(5, 6, "a < b")
    sheet.arrow(0, 0, 10, 0)
    return sheet


def test_a_drawing_is_well_formed_and_rounded():
    root = ElementTree.fromstring(drawing().svg())
    box, text, line, head = root
    assert box.get("width") == "3.14" and box.get("stroke") == "currentColor"
    assert text.text == "a < b"
    assert line.tag.endswith("line") and head.tag.endswith("polygon")


def test_both_forms_are_described():
    page = drawing()._repr_html_()
    assert 'aria-label="two &quot;boxes&quot; &amp; an arrow"' in page
    assert 'alt="two &quot;boxes&quot; &amp; an arrow"' in page


def test_the_image_for_pages_without_svg_is_the_same_picture():
    page = drawing()._repr_html_()
    data = re.search(r"data:image/svg\+xml;base64,([^\"]+)", page)[1]
    still = base64.b64decode(data).decode()
    assert "a &lt; b" in still and "background:#fff" in still
    ElementTree.fromstring(still)


def test_a_page_that_takes_no_svg_shows_the_image_alone():
    """Words within an SVG are left over when it is taken out: they must not be shown."""
    page = drawing()._repr_html_()
    left = re.sub(r"<style>.*?</style>|</?svg[^>]*>| hidden", "", page)
    assert '<div class="course-picture" style="display:none">' in left and "a &lt; b" in left
    rules = re.search(r"<style>(.*)</style>", page)[1]
    hides = [rule for rule in rules.split("}") if "display:none" in rule]
    assert len(hides) == 1 and ".course-picture[hidden]+img" in hides[0]


def test_a_page_that_takes_svg_needs_no_image():
    page = svg.inline_only(f"<p>{drawing()._repr_html_()}</p>")
    assert "<img" not in page and page.count("<svg") == 1 and page.endswith("</div></p>")


def shown(fig):
    return picture.themed(fig)


def test_ink_ground_and_faint_shades_are_the_pages():
    fig = picture.figure(3, 2, alt="a line")
    axes = fig.add_subplot()
    axes.plot([0, 1], color="#0072B2")
    axes.bar([0], [1], color=picture.IDLE)
    axes.set_title("words", color=picture.INK)
    text = shown(fig)
    assert "#000000" not in text and "#222222" not in text and "#eeeeee" not in text
    assert f"stroke:{svg.strong('#0072b2')}" in text
    assert "fill:currentColor" in text and f"fill:{svg.FAINT}" in text
    assert "<style" not in text and 'id="axes' not in text


def test_coordinates_are_short_and_words_are_whole():
    fig = picture.figure(3, 2, alt="a number")
    fig.text(0.123456, 0.5, "0.030612 ms")
    text = shown(fig)
    assert ">0.030612 ms<" in text
    coordinates = "".join(re.findall(r"<[^>]*>", text))
    assert not re.search(r"\d\.\d{3}", coordinates)


def test_letters_on_a_colour_stay_dark_and_others_follow_the_page():
    from matplotlib.patches import Rectangle

    fig = picture.figure(3, 2, alt="a box")
    axes = fig.add_subplot()
    axes.add_patch(Rectangle((0, 0), 0.5, 1, facecolor="#F0C36D"))
    axes.text(0.25, 0.5, "on", color=picture.INK)
    axes.text(0.75, 0.5, "beside", color=picture.INK)
    text = shown(fig)
    assert re.search(rf"fill:{svg.ON_COLOUR}[^>]*>on<", text)
    assert re.search(r"fill:currentColor[^>]*>beside<", text)


def test_letters_that_begin_where_a_bar_ends_follow_the_page():
    fig, axes = picture.chart(3, 2, alt="a bar")
    axes.barh(0, 0.5, color="#F0C36D")
    axes.text(0.5, 0, "beside", color=picture.INK, va="center")
    assert re.search(r"fill:currentColor[^>]*>beside<", shown(fig))


def test_a_picture_of_too_many_shapes_is_an_image(monkeypatch):
    monkeypatch.setattr(picture, "LARGEST", 10)
    fig = picture.figure(2, 2, alt="much")
    page = fig._repr_mimebundle_()["text/html"]
    assert "<svg" not in page and 'alt="much"' in page and "image/png;base64" in page


def test_no_png_stands_beside_it_where_matplotlib_shows_figures_inline():
    from IPython.core.formatters import DisplayFormatter
    from matplotlib.figure import Figure

    formatter = DisplayFormatter()
    formatter.active_types = ["text/plain", "text/html", "image/png"]
    formatter.formatters["image/png"].for_type(Figure, lambda figure: b"\x89PNG")  # as inline does
    fig = picture.figure(2, 2, alt="a picture")
    assert "image/png" in formatter.format(fig)[0]
    picture.show_no_png(type(fig), formatter)
    data, _ = formatter.format(fig)
    assert "image/png" not in data and "<svg" in data["text/html"]


def test_luminance_is_that_of_the_guidelines():
    assert picture.luminance("white") == 1 and picture.luminance("black") == 0
    assert abs(picture.luminance("#777777") - 0.184) < 0.001
