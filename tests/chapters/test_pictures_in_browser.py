"""The saved pictures of every chapter can be read, on a light page and on a dark one."""

import nbformat
import pytest

from course.chapters import notebooks

LEAST_CONTRAST = 3  # https://www.w3.org/TR/WCAG22/#contrast-minimum, for large letters
PAGE = """<meta charset=utf-8><style>
body {{ background: {ground}; color: {ink}; --jp-layout-color0: {ground}; }}</style>{picture}"""
THEMES = {"light": ("#fff", "#212121"), "dark": ("#111", "#fff")}

# The letters of a picture, each with its contrast to the shapes under its middle
CONTRASTS = """() => {
    const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const linear = (part) => part > 0.04045 ? ((part + 0.055) / 1.055) ** 2.4 : part / 12.92;
    const light = (colour) => {
        pen.fillStyle = colour;
        if (colour !== "none") pen.fillRect(0, 0, 1, 1);
        const [red, green, blue] = [...pen.getImageData(0, 0, 1, 1).data]
            .map((each) => linear(each / 255));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
    };
    return [...document.querySelectorAll(".course-picture text")].map((text) => {
        const { x, y, width, height } = text.getBoundingClientRect();
        const there = document.elementsFromPoint(x + width / 2, y + height / 2);
        const below = there.slice(there.indexOf(text) + 1)
            .filter((each) => each.ownerSVGElement && !each.closest("text"));
        if (!width || below.some((each) => each.matches("image"))) return [text.textContent, 21];
        light(getComputedStyle(document.body).backgroundColor);
        const fills = below.reverse().map((each) => getComputedStyle(each).fill);
        const ground = ["none", ...fills].map(light).at(-1);
        const ink = light(getComputedStyle(text).fill);
        return [text.textContent, Math.max(ink, ground) / Math.min(ink, ground)];
    });
}"""


def pictures(path):
    """The HTML of a notebook's pictures, by their cells."""
    for cell in nbformat.read(path, 4).cells:
        for output in cell.get("outputs", ()):
            html = output.get("data", {}).get("text/html", "")
            if "course-picture" in html:
                yield cell.id, html


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_all_letters_can_be_read_in_both_themes(page, path):
    page.set_viewport_size({"width": 900, "height": 3000})
    pale = []
    for cell, picture in pictures(path):
        for theme, (ground, ink) in THEMES.items():
            page.set_content(PAGE.format(ground=ground, ink=ink, picture=picture))
            contrasts = page.evaluate(CONTRASTS)
            pale += [(cell, theme, *each) for each in contrasts if each[1] < LEAST_CONTRAST]
    assert pale == []
