"""The README says what is there: its chapter table, its links, its commands."""

import re

from course.chapters import CHAPTERS
from utils.files import ROOT

README = (ROOT / "README.md").read_text()


def chapter_rows():
    """The table as it must stand between the two markers."""
    for chapter in CHAPTERS:
        title = (
            f"[{chapter.title}](chapters/{chapter.name}.ipynb)"
            if chapter.written
            else chapter.title
        )
        yield f"| {chapter.number} | {title} | {chapter.brings} | {chapter.minutes} | {'' if chapter.written else 'to come'} |"


def test_chapter_table_is_true():
    table = re.search(r"<!-- chapters.*?-->\n(.*?)<!-- /chapters -->", README, re.S).group(1)
    assert table.splitlines()[2:] == list(chapter_rows()), (
        "in README.md the table should read:\n" + "\n".join(chapter_rows())
    )


def test_links_and_pictures_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (ROOT / target).exists(), target


def test_commands_are_verbs_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    for verb in set(re.findall(r"make (lab|test|record)", README)):
        assert re.search(rf"^{verb}:", makefile, re.M), verb


def test_folders_are_there():
    block = re.search(r"## How it is made\n\n```\n(.*?)```", README, re.S).group(1)
    for folder in re.findall(r"^(\w+)/", block, re.M):
        assert (ROOT / folder).is_dir(), folder
