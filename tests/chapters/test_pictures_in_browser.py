"""The saved pictures of every chapter can be read, on a light page and on a dark one."""

import nbformat
import pytest

from course.chapters import notebooks

LEAST_CONTRAST = 3  # https://www.w3.org/TR/WCAG22/#contrast-minimum, for large letters
PAGE = "<meta charset=utf-8><style></style>"
THEME = "body {{ background: {0}; color: {1}; --jp-layout-color0: {0}; }}"
THEMES = {"light": ("#fff", "#212121"), "dark": ("#111", "#fff")}

# The letters of a picture, each with its contrast to the shapes under its middle
CONTRASTS = """() => {
    const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const linear = (part) => part > 0.04045 ? ((part + 0.055) / 1.055) ** 2.4 : part / 12.92;
    const light = ([colour, opacity]) => {
        pen.globalAlpha = opacity;
        pen.fillStyle = colour;
        if (colour !== "none") pen.fillRect(0, 0, 1, 1);
        const [red, green, blue] = [...pen.getImageData(0, 0, 1, 1).data]
            .map((each) => linear(each / 255));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
    };
    return [...document.querySelectorAll(".course-picture text")].map((text) => {
        const cell = text.closest("section").id;
        const { x, y, width, height } = text.getBoundingClientRect();
        const there = document.elementsFromPoint(x + width / 2, y + height / 2);
        const below = there.slice(there.indexOf(text) + 1)
            .filter((each) => each.ownerSVGElement && !each.closest("text"));
        const unknown = !width || below.some((each) => each.matches("image"));
        if (unknown) return [cell, text.textContent, 21];
        light([getComputedStyle(document.body).backgroundColor, 1]);
        const fills = below.reverse().map((each) => getComputedStyle(each))
            .map((style) => [style.fill, style.opacity * style.fillOpacity]);
        const ground = [["none", 1], ...fills].map(light).at(-1);
        const ink = light([getComputedStyle(text).fill, 1]);
        return [cell, text.textContent, Math.max(ink, ground) / Math.min(ink, ground)];
    });
}"""


def pictures(path):
    """The HTML of a notebook's pictures, by their cells."""
    for cell in nbformat.read(path, 4).cells:
        for output in cell.get("outputs", ()):
            html = output.get("data", {}).get("text/html", "")
            if "course-picture" in html:
                yield cell.id, html


BY_DAY = "index", "first_kernels"
ANOTHER = pytest.mark.nightly("by day two chapters' pictures, by make chapter the chapter's own")
BOOKS = [
    pytest.param(path, marks=[] if path.stem.endswith(BY_DAY) else [ANOTHER])
    for path in notebooks()
]


@pytest.mark.parametrize("path", BOOKS)
def test_all_letters_can_be_read_in_both_themes(page, path):
    drawn = [f"<section id={cell}>{picture}</section>" for cell, picture in pictures(path)]
    page.set_viewport_size({"width": 900, "height": 3000})
    page.set_content(PAGE + "".join(drawn))
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": 900, "height": height + 3000})  # all of it can be pointed at
    pale = []
    for theme, colours in THEMES.items():
        style = page.locator("style").first
        style.evaluate("(style, text) => { style.textContent = text; }", THEME.format(*colours))
        contrasts = page.evaluate(CONTRASTS)
        pale += [(theme, *each) for each in contrasts if each[-1] < LEAST_CONTRAST]
    assert pale == []
