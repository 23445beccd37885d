"""The picture that opens each chapter on the website is one that the chapter shows."""

import pytest

from course.chapters import WRITTEN
from course.publish.covers import COVERS
from course.publish.sections import sections
from tests import hygiene


@pytest.mark.parametrize("chapter", WRITTEN)
def test_every_chapter_has_an_opening_picture_in_one_of_its_sections(chapter):
    cover = COVERS.get(chapter.key)
    assert cover, (
        f'course/publish/covers.py has to name a cell of {chapter.name}: "{chapter.key}": "CELL"'
    )
    _, *parts = sections(hygiene.read(chapter.path))
    shown = [cell for part in parts for cell in part.cells if cell.id == cover]
    assert shown, f"no section of {chapter.name} has a cell {cover}"
    pictures = [
        each
        for each in shown[0].outputs
        if {"text/html", "image/png"} & each.get("data", {}).keys()
    ]
    assert pictures, f"cell {cover} of {chapter.name} shows no picture"


def test_no_cover_is_of_a_chapter_that_is_not_there():
    assert set(COVERS) <= {chapter.key for chapter in WRITTEN}
