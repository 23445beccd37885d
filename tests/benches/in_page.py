"""How long a chapter that runs in its page takes:  python -m tests.benches.in_page [--megabits 20]

In Chromium without a window, from a server on this machine that sends files compressed, and no
faster than the line that is named. Seconds by the clock, so the machine has to be quiet: until
Python is ready, and until the first result of a cell whose *Run* is pressed at once, with nothing
kept (cold) and with all that the first visit keeps (warm). Then every exercise of all chapters that
run in a page is checked there, its solution and its first wrong answer. Nothing is asserted.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from course.chapters import WRITTEN
from course.publish import site
from course.publish.here import cells, runtime
from tests.browser import installed_chromium, playwright
from tests.served import served

CHAPTER = "05_first_kernels"
CELL = "hello"  # the chapter's first kernel
RAN = ".here-bar[aria-busy=false]"
MEGABYTE = 1e6
PATIENCE = 600_000  # milliseconds for whatever is waited for
KEPT = """caches.open("cuda-course:here").then((cache) => cache.keys()).then((keys) =>
    keys.some(({ url }) => url.endsWith("/compiled.zip")))"""
CHECKS = """import json
import time
import pyodide_js
from course import exercises
from course.exercises import EXERCISES

took = {{}}
for key in {}:
    for exercise in EXERCISES.of(key):
        if exercise.in_file:
            continue
        for kind, answer in ("right", exercise.solution), ("wrong", exercise.wrong[0].answer):
            begin = time.perf_counter()
            outcome = exercises.check(exercise.id, answer)
            outcome._repr_html_()
            took[f"{{exercise.id}} {{kind}}"] = time.perf_counter() - begin
            assert outcome.solved == (kind == "right"), exercise.id
print(json.dumps([took, pyodide_js._module.HEAP8.length]))
"""


def built(folder):
    """Build the site of one chapter, with the page in which it runs."""
    with tempfile.TemporaryDirectory() as files, pytest.MonkeyPatch.context() as patch:
        runtime.gather(Path(files))
        patch.setattr(site, "CHAPTERS", [each for each in WRITTEN if each.name == CHAPTER])
        site.build(folder, here=Path(files))


def ran(page, cell):
    """What a cell of the page shows once it has run; pressed as soon as there is a button."""
    place = page.locator(f".tag_here-{cell}")
    place.get_by_role("button", name="Run").click()
    page.wait_for_selector(RAN)
    return place.locator(".here-output").inner_text()


def ready(page):
    """Wait until Python is there."""
    page.wait_for_selector(RAN)


def first_result(page):
    """Wait until the first kernel has run."""
    if "block 1 thread 2" not in (shown := ran(page, CELL)):
        raise RuntimeError(shown)


def visits(browser, address, what, wait):
    """Visit the page twice, print how long each time it takes; the page of the second visit."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    for state in "cold", "warm":
        page = context.new_page()
        begin = time.perf_counter()
        page.goto(address)
        wait(page)
        seconds = time.perf_counter() - begin
        print(f"{what}, {state}: {seconds:.1f} s, load {os.getloadavg()[0]:.1f}", flush=True)
        if state == "cold":
            while not page.evaluate(KEPT):
                page.wait_for_timeout(1000)
            page.close()
    return page


def process_megabytes():
    """The memory of the largest of the browser's processes, what it shares counted in part."""
    sizes = [0]
    for process in psutil.Process().children(recursive=True):
        try:
            sizes.append(process.memory_full_info().pss)
        except psutil.Error:
            continue
    return max(sizes) / MEGABYTE


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.benches.in_page", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--megabits", type=float, default=20, help="per second, of the line")
    rate = parser.parse_args().megabits * MEGABYTE / 8
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before", flush=True)
    with tempfile.TemporaryDirectory() as folder, playwright() as driver:
        built(Path(folder))
        browser = driver.chromium.launch(
            executable_path=installed_chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        with served(folder, rate) as host:
            address = f"{host}/here/{CHAPTER}.html"
            visits(browser, address, "Python is ready", ready)
            report(visits(browser, address, "first result", first_result))
        browser.close()


def report(page):
    """Check all exercises in the page, and print how long that took and how large it is."""
    page.locator(".tag_here-ceil textarea").fill(CHECKS.format(cells.CHAPTERS))
    took, heap = json.loads(ran(page, "ceil"))
    by_length = sorted(took, key=took.get)
    print(f"{len(took)} checks: median {statistics.median(took.values()):.1f} s")
    for name in by_length[-5:]:
        print(f"  {took[name]:6.1f} s  {name}")
    print(f"Python's memory: {heap / MEGABYTE:.0f} MB; the process: {process_megabytes():.0f} MB")


if __name__ == "__main__":
    main()
