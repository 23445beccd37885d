"""The course as a learner meets it: JupyterLab in a real browser, on the start page and in chapter
5.

Pictures of what was seen are kept in build/screenshots. The notebooks are copies without their
outputs: whatever shows, this run made. Progress is a file of the test's own.
"""

import contextlib
import re
import shutil
from types import SimpleNamespace

import nbformat
import pytest
from playwright.sync_api import TimeoutError, expect

from course.exercises import EXERCISES
from tests import hygiene
from tests.browser import ROOT, jupyterlab, keep

pytestmark = pytest.mark.nightly("by day both notebooks are run without a browser")
SECONDS = 1000  # Playwright counts in milliseconds

# How wide each picture is, once it is read; 0 for one that cannot be
WIDTHS = """all => Promise.all(all.map((each) =>
    each.decode().then(() => each.naturalWidth, () => 0)))"""
START, CHAPTER, GLOSSARY = (
    "course/index.ipynb",
    "chapters/05_first_kernels.ipynb",
    "course/glossary.md",
)


class Notebook:
    """A notebook open in JupyterLab: what a learner does with it."""

    def __init__(self, page, lab, path):
        self.page, self.lab, self.path = page, lab, path
        self.cells = nbformat.read(lab.folder / path, 4).cells
        if f"/{path}" not in page.url:  # no link has led there
            page.goto(
                lab.address.replace("/lab?", f"/lab/tree/{path}?reset&")
            )  # alone: JupyterLab remembers what was open
        self.panel = page.locator(".jp-NotebookPanel:visible")
        self.ready()

    def ready(self):
        """Wait until the status bar says that the kernel is there and has nothing to do."""
        self.page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()

    def menu(self, menu, command):
        """Click on the menu's entry for a command of JupyterLab."""
        self.page.locator(".lm-MenuBar-item", has_text=menu).click()
        self.page.locator(f".lm-Menu-item[data-command='{command}']").click()

    def cell(self, id):
        """The cell of this id, brought into view."""
        (index,) = (index for index, cell in enumerate(self.cells) if cell.id == id)
        found = self.panel.locator(f".jp-Notebook-cell[data-windowed-list-index='{index}']")
        found.scroll_into_view_if_needed()
        return found

    def keep(self, name, id):
        """Keep a screenshot that begins with this cell."""
        self.cell(id).evaluate("cell => cell.scrollIntoView()")
        keep(self.page, name)

    def output(self, id):
        return self.cell(id).locator(".jp-Cell-outputArea")

    def run_all(self):
        """Run > Run All Cells. Ends after the last cell; where an error stopped JupyterLab before
        it, after a while.
        """
        self.menu("Run", "runmenu:run-all")
        with contextlib.suppress(TimeoutError):
            self.ran(
                [cell.id for cell in self.cells if cell.cell_type == "code"][-1],
                timeout=600 * SECONDS,
            )
        self.ready()

    def save(self):
        """File > Save Notebook; the notebook as it then stands on the disk."""
        self.menu("File", "docmanager:save")
        self.page.locator(".lm-TabBar-tab.jp-mod-current:not(.jp-mod-dirty)").wait_for()
        return hygiene.read(self.lab.folder / self.path)

    def run(self, id):
        """Click into the cell and press Shift + Enter; waits until it has run."""
        prompt = self.cell(id).locator(".jp-InputPrompt")
        before = prompt.text_content()
        self.cell(id).locator(".cm-content").click()
        self.page.keyboard.press("Shift+Enter")
        self.ran(id, before)

    def ran(self, id, before="", timeout=None):
        """Wait until the cell's prompt shows a number, another than before."""
        self.page.wait_for_function(
            "([prompt, before]) => "
            "/^\\[\\d+\\]/.test(prompt.textContent) && prompt.textContent != before",
            arg=[self.cell(id).locator(".jp-InputPrompt").element_handle(), before],
            timeout=timeout,
            polling=100,  # milliseconds; else at every frame that a screen would show
        )

    def retype(self, id, line, text):
        """Replace the line of the cell that holds `line` by typing, key by key."""
        self.cell(id).locator(".cm-line", has_text=line).click()
        self.page.keyboard.press("End")
        self.page.keyboard.press("Shift+Home")  # to the indentation
        self.page.keyboard.type(text)
        expect(self.cell(id).locator(".cm-content")).to_contain_text(text)

    def restart(self):
        """Restart the kernel; the outputs are cleared, so that what shows afterwards is new."""
        self.menu("Kernel", "kernelmenu:restart-and-clear")
        self.page.locator(".jp-Dialog-button.jp-mod-accept").click()
        numbered = self.panel.locator(".jp-InputPrompt", has_text=re.compile(r"\d"))
        expect(numbered).to_have_count(0)
        self.ready()


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """JupyterLab on a copy of the course, with nothing solved."""
    folder = tmp_path_factory.mktemp("course")
    for path in (START, CHAPTER):
        notebook = nbformat.read(ROOT / path, 4)
        notebook.metadata.pop("widgets", None)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.update(outputs=[], execution_count=None)
        (folder / path).parent.mkdir()
        nbformat.write(notebook, folder / path)
    shutil.copy(ROOT / GLOSSARY, folder / GLOSSARY)
    with jupyterlab(
        folder, CUDA_COURSE_PROGRESS=str(folder / "progress.json"), CUDA_COURSE_CPU="1"
    ) as address:
        yield SimpleNamespace(folder=folder, address=address)


def expect_solved(notebook, number):
    """The map on the start page, asked anew, says that so many exercises are solved."""
    notebook.run("map")
    says = re.compile(rf"\b{number} of {len(EXERCISES)} exercises solved")
    expect(notebook.output("map")).to_contain_text(says)


def all_ran(notebook):
    """Whether every code cell has run, and just those failed that are meant to."""
    assert [
        cell.id for cell in notebook.cells if cell.cell_type == "code" and not cell.execution_count
    ] == []
    assert hygiene.honest_outputs(notebook) == []
    return True


def test_start_page(page, lab):
    """Run all, solve the first exercise by typing, see it on the map, also after the kernel was
    restarted.
    """
    start = Notebook(page, lab, START)
    start.run_all()
    assert all_ran(start.save())
    expect(start.output("setup")).to_contain_text("kernels run on the CPU engines")
    expect_solved(start, 0)
    start.keep("start_page", "title")

    assert "✓" not in start.output("check").text_content()
    start.retype("starter", "change this line", "out[i] = i")
    start.run("starter")
    start.run("check")
    expect(start.output("check")).to_contain_text("✓")
    expect_solved(start, 1)
    start.keep("start_page_solved", "map-text")

    start.restart()
    start.run("setup")
    expect_solved(start, 1)
    start.keep("start_page_restarted", "map-text")

    start.cell("open-in-colab").get_by_role("link", name="Glossary").click()
    page.locator(".jp-MarkdownViewer h1", has_text="Glossary").wait_for()  # as text to read
    keep(page, "glossary")


def test_first_kernels(page, lab):
    """Run all of First kernels, move a slider, solve an exercise by typing; the start page's map
    shows it too.
    """
    (lab.folder / "progress.json").unlink(missing_ok=True)  # another test's
    chapter = Notebook(page, lab, CHAPTER)
    chapter.run_all()
    assert all_ran(chapter.save())
    loaded = chapter.panel.locator(".jp-OutputArea img").evaluate_all(WIDTHS)
    assert len(loaded) > 5 and min(loaded) > 0, "every picture of the outputs has loaded"

    picture = chapter.output("widget").locator(".course-picture svg")
    slider = chapter.output("widget").get_by_role("slider").first
    before = picture.get_attribute("aria-label")
    chapter.keep("chapter_slider_before", "widget")
    assert float(slider.get_attribute("aria-valuenow")) == 5
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(picture).not_to_have_attribute("aria-label", before)
    expect(slider).to_have_attribute("aria-valuenow", re.compile(r"^6\b"))
    chapter.keep("chapter_slider_after", "widget")

    chapter.retype("start-scale-guard", "change this line", "if i < out.size:")
    chapter.run("start-scale-guard")
    chapter.run("check-scale-guard")
    expect(chapter.output("check-scale-guard")).to_contain_text("✓")
    chapter.keep("chapter_solved", "ex1")

    start = Notebook(page, lab, START)
    start.run("setup")
    expect_solved(start, 1)
    start.keep("start_page_after_chapter", "map-text")
