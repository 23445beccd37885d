"""README.md's moving picture and the website's social picture, from the real thing in a browser.

    python -m tests.animation          (writes assets/readme.gif and assets/social.png)

A slider, a check and a picture are cells of the chapter First kernels, run in JupyterLab on this
machine; the social picture is the course's name and its recorded result.
"""

import io
import tempfile
from pathlib import Path
from types import SimpleNamespace

import nbformat
from PIL import Image

from course.chapters import TITLE
from course.pictures import front
from course.publish.landing import TAGLINE
from tests.browser import ROOT, installed_chromium, jupyterlab, playwright
from tests.chapters.test_in_browser import Notebook

CHAPTER = "chapters/05_first_kernels.ipynb"
SETUP = ("setup", "exercises-import", "map-1d")
SLIDER, STARTER, CHECK = "widget", "start-scale-guard", "check-scale-guard"
SCREEN = {"width": 1000, "height": 560}
SOCIAL = {"width": 1280, "height": 640}
CARD = """
body { font: 20px/1.35 system-ui, 'DejaVu Sans', sans-serif; margin: 36px 60px; color: #1f2328; }
h1 { font-size: 44px; line-height: 1.1; margin: 0 0 14px; }
p { margin: 0 0 20px; }
"""
GIF_WIDTH = 800  # pixels
COLOURS = 64
BLOCKS = 3  # presses of a key, a block fewer each


def chapter_of_cells(folder):
    """Write a notebook of the cells to show, without outputs; its path in the folder."""
    notebook = nbformat.read(ROOT / CHAPTER, 4)
    notebook.metadata.pop("widgets", None)
    shown = {*SETUP, SLIDER, STARTER, CHECK}
    notebook.cells = [cell for cell in notebook.cells if cell.id in shown]
    for cell in notebook.cells:
        cell.update(outputs=[], execution_count=None)
    path = folder / CHAPTER
    path.parent.mkdir()
    nbformat.write(notebook, path)
    return CHAPTER


def frames(notebook):
    """(picture, milliseconds) of what a learner does."""

    def shot(milliseconds):
        picture = Image.open(io.BytesIO(notebook.page.screenshot())).convert("RGB")
        return picture, milliseconds

    notebook.run_all()
    notebook.page.keyboard.press("Control+b")  # no side bar
    slider = notebook.output(SLIDER).locator("[role=slider], input[type=range]").first
    notebook.output(SLIDER).evaluate("output => output.scrollIntoView({block: 'end'})")
    notebook.page.wait_for_timeout(500)
    yield shot(1500)
    slider.focus()
    for _ in range(BLOCKS):
        notebook.page.keyboard.press("ArrowLeft")
        notebook.page.wait_for_timeout(3000)
        yield shot(900)
    top(notebook, STARTER)
    yield shot(3000)
    notebook.retype(STARTER, "i <= out.size", "if i < out.size:")
    yield shot(1500)
    notebook.run(STARTER)
    notebook.run(CHECK)
    top(notebook, STARTER)
    yield shot(3500)


def top(notebook, id):
    """Scroll so that a cell is the first that is seen."""
    notebook.cell(id).evaluate("cell => cell.scrollIntoView()")
    notebook.page.wait_for_timeout(500)


def write_gif(pictures, path):
    """Write the pictures as an animation of few colours, which keeps the file small."""
    height = GIF_WIDTH * SCREEN["height"] // SCREEN["width"]
    images = [picture.resize((GIF_WIDTH, height)) for picture, _ in pictures]
    small = [image.quantize(COLOURS, dither=Image.Dither.NONE) for image in images]
    times = [milliseconds for _, milliseconds in pictures]
    small[0].save(
        path, save_all=True, append_images=small[1:], duration=times, loop=0, optimize=True
    )


def social(browser):
    """The course's name and its result, as other sites show a link to it."""
    page = browser.new_page(viewport=SOCIAL)
    picture = front.race_picture()._repr_html_()
    page.set_content(f"<style>{CARD}</style><h1>{TITLE}</h1><p>{TAGLINE}</p><div>{picture}</div>")
    return page.screenshot()


def main():
    with tempfile.TemporaryDirectory() as scratch, playwright() as driver:
        folder = Path(scratch)
        browser = driver.chromium.launch(
            executable_path=installed_chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        path = chapter_of_cells(folder)
        progress = str(folder / "progress.json")
        with jupyterlab(folder, CUDA_COURSE_PROGRESS=progress, CUDA_COURSE_CPU="1") as address:
            lab = SimpleNamespace(folder=folder, address=address)
            page = browser.new_page(viewport=SCREEN, reduced_motion="reduce")
            write_gif(list(frames(Notebook(page, lab, path))), ROOT / "assets" / "readme.gif")
        (ROOT / "assets" / "social.png").write_bytes(social(browser))
        browser.close()


if __name__ == "__main__":
    main()
