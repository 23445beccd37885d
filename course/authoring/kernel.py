"""A kernel of course/kernels in a cell that the learner can change."""

import difflib

from course.authoring import book
from course.authoring.exercise import in_words
from course.chapters import Chapter
from course.publish import cells
from utils.files import ROOT
from utils.tools import yours

KERNELS = ROOT / "course" / "kernels"
LONGEST = 30  # lines of a cell: what fits on a slide


def new_kernel(chapter: Chapter, words: list[str], after: str):
    """Put a kernel's cell into the chapter, behind the cell `after`; {file: what it got}.

    words: the file, relative to course/kernels, then a name in it, and of CUDA C, where the whole
    would be too long, the text of the first line to show and how many lines.
    """
    notebook = book.read(chapter.path)
    cell = numba_cell(words) if words[0].endswith(".py") else cuda_cell(words)
    lines = len(cell.source.splitlines())
    if lines > LONGEST:
        raise ValueError(
            f"{' '.join(words)} makes a cell of {lines} lines, {LONGEST} at most: name a function "
            'of it, or some lines, as in matmul/wmma.cu matmul "Sum sum" 14'
        )
    above = book.insert(notebook, [cell], book.behind_answer(notebook, after))
    book.write(notebook, chapter.path)
    return {chapter.path: in_words([cell], above)}


def cuda_cell(words: list[str]):
    """A cell `%%cuda`. ValueError where the file, or the name in it, is not there."""
    there([path for ending in yours.SOURCES for path in KERNELS.rglob(f"*{ending}")], words[0])
    quoted = [words[0], *words[1:2], *(f'"{text}"' for text in words[2:3]), *words[3:]]
    region = yours.region_of(" ".join(quoted))
    return book.code_cell(id_of(words), yours.cell_text(region))


def numba_cell(words: list[str]):
    """A cell with a Python function, and in its metadata where that function is from."""
    if len(words) != 2:
        raise ValueError(f"of {words[0]} one function is shown: FILE FUNCTION")
    there(KERNELS.rglob("*.py"), words[0])
    named = ":".join(words)
    cell = book.code_cell(id_of(words), cells.function_of(named))
    cell.metadata[cells.SOURCE] = named
    return cell


def there(paths, name: str) -> None:
    """ValueError with the nearest names where no kernel's file is called so."""
    names = [path.relative_to(KERNELS).as_posix() for path in paths]
    short = {f"{each.partition('/')[0]}/{each.rpartition('/')[2]}" for each in names}
    if name in short | set(names):
        return
    near = difflib.get_close_matches(name, sorted(short | set(names)), n=3)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    raise ValueError(f"course/kernels has no file {name}.{meant}")


def id_of(words: list[str]) -> str:
    """The cell's id: the function's name, or the file's."""
    name = words[1] if len(words) > 1 else words[0].rpartition("/")[2].partition(".")[0]
    return f"{name.replace('_', '-')}-kernel"
