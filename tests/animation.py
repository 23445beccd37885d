"""README.md's moving picture and the website's social picture, from the real thing in a browser.

    python -m tests.animation          (writes assets/readme.gif and assets/social.png)

A slider, a check and a picture are cells of the chapter First kernels, run in JupyterLab on this
machine; the social picture is the course's name and its recorded result.
"""

import base64
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
SCREEN = {"width": 860, "height": 620}
PANEL = ".jp-Notebook"  # what is shown of JupyterLab: cells, without menus and bars
LOGO = ROOT / "course" / "publish" / "web" / "static" / "favicon.svg"
SOCIAL = {"width": 1280, "height": 640}
CARD = """
body { display: grid; grid-template-columns: 1fr 640px; gap: 50px; align-items: center;
  height: 640px; box-sizing: border-box; margin: 0; padding: 0 50px; color: #1f2328;
  font: 23px/1.4 system-ui, 'DejaVu Sans', sans-serif; border-top: 14px solid #0072b2; }
h1 { font-size: 47px; line-height: 1.12; margin: 0 0 22px; }
p { margin: 0; }
img { width: 84px; margin-bottom: 22px; }
"""
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
        shown = notebook.page.locator(PANEL).screenshot()
        return Image.open(io.BytesIO(shown)).convert("RGB"), milliseconds

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
    small = [picture.quantize(COLOURS, dither=Image.Dither.NONE) for picture, _ in pictures]
    times = [milliseconds for _, milliseconds in pictures]
    small[0].save(
        path, save_all=True, append_images=small[1:], duration=times, loop=0, optimize=True
    )


def social(browser):
    """The course's name and its result, as other sites show a link to it."""
    page = browser.new_page(viewport=SOCIAL)
    picture = front.race_picture()._repr_html_()
    logo = base64.b64encode(LOGO.read_bytes()).decode()
    words = f'<img src="data:image/svg+xml;base64,{logo}"><h1>{TITLE}</h1><p>{TAGLINE}</p>'
    page.set_content(f"<style>{CARD}</style><div>{words}</div><div>{picture}</div>")
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
