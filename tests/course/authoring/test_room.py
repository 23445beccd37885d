"""How much room a chapter has, and what folding a section would gain."""

from types import SimpleNamespace

from nbformat.v4 import new_code_cell, new_markdown_cell

from course.authoring import room
from course.publish.folded import FOLDED
from course.publish.minutes import WHOLE, WORDS

CHAPTER = SimpleNamespace(key="a_chapter")


def text(title, minutes, id):
    return new_markdown_cell(f"{title}\n\n{'word ' * (minutes * WORDS)}", id=id)


def code(source, id, *tags):
    return new_code_cell(source, id=id, metadata={"tags": list(tags)})


def full(minutes=WHOLE - 20):
    """A chapter of about `minutes` + 19 minutes."""
    return [
        text("# A chapter", minutes, "title"),
        text("### Needed", 9, "needed"),
        code("def kernel(): ...", "makes"),
        text("### Not needed", 5, "free"),
        code("kernel()", "uses"),
        text("### To solve", 4, "solve"),
        code("def answer(): ...", "start", "exercise"),
        text("### Short", 0, "short"),
    ]


def test_where_there_is_room_that_is_all_that_is_said():
    (said,) = room.of(CHAPTER, full(20), 5)
    assert said.startswith("a_chapter takes ") and said.endswith("there is room.")


def test_where_there_is_none_sections_are_offered_the_best_first():
    said = room.of(CHAPTER, full(), 5)
    assert said[0].endswith("too many.") and "about 5 more" in said[0]
    assert [line.split(": ")[1].split(" (")[0] for line in said[2:]] == ["Not needed", "Needed"]
    assert "what follows needs kernel" in said[3] and "needs" not in said[2]


def test_a_file_that_later_cells_name_is_needed():
    made = code("%%writefile build/a.cu\nint x;", "file")
    assert room.needed([made], [code("%nvcc build/a.cu", "run")]) == ("build/a.cu",)
    assert room.needed([made], [code("%nvcc build/b.cu", "run")]) == ()


def test_what_is_folded_already_is_not_offered():
    cells = full()
    cells[3].metadata[FOLDED] = True
    assert [part.title for part in room.foldable(cells)] == ["Needed"]


def test_a_total_that_rounding_would_hide_is_named_and_so_is_a_long_stretch():
    assert room.problems(CHAPTER, [text("# A", 9, "a"), code("1", "b", "exercise")]) == []
    total, stretch = room.problems(CHAPTER, full(WHOLE))
    assert total.startswith("a_chapter takes 13") and f"of {WHOLE} minutes" in total
    assert "minutes pass between two things to write" in stretch
