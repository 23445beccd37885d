"""A new exercise, or a new question: an entry in the chapter's module, cells in its notebook, and
for an exercise a place for right answers that are not the solution.
"""

import re
from pathlib import Path

from course.authoring import book, code
from course.authoring.blanks import ANSWERS
from course.chapters import Chapter
from utils.files import ROOT, write_whole

QUESTION_MINUTES = 1
MINUTES = {"numba": 5, "cuda_c": 10, "function": 5}  # of a skeleton, by kind
FOLDER = ROOT / "course" / "exercises"
EMPTY = '"""The exercises of the chapter {title}."""\n\nEXERCISES = ()\n\nQUIZZES = ()\n'
TASK = "TODO: the task, in whole sentences; what stands here stands above the starter, too"
TITLE = "TODO: a title"
#: What tests/course/exercises/test_more_answers.py asks for besides the solution
RIGHT = ("one", "two", "three")
ANSWER = """\
### {id} {name}
# TODO: a right answer by another algorithm, order or means; in place of "{name}" a word for it
"""
HINTS = """
    hints=(
        "TODO: a question that leads to the idea",
        "TODO: nearly the answer",
    ),
"""

NUMBA_STARTER = """
@cuda.jit
def {name}(out, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = 0  # your code
"""
NUMBA = """
# ---- {name}: TODO: what it practises, in a few words


@cuda.jit
def {name}(out, a):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i]  # TODO: the solution


{constant} = Exercise(
    id="{id}",
    title="{title}",
    minutes={minutes},
    task="{task}",
    starter=\"\"\"{starter}\"\"\",
    solution={name},
    inputs=lambda rng, n: {{"out": Out(n), "a": uniform(rng, *n)}},  # TODO: the kernel's arguments
    reference=lambda out, a: a.astype(np.float64),  # TODO: what must be in out, by NumPy
    large=(66_000,),
    shapes=lengths(0, 1, 2, 31, 32, 33, 64, 97),
    fresh=some_length,
    extents=a_thread_each,
    other_block=(96, 1, 1),{hints}    wrong=(
        # TODO: one more at least, a mistake that people make in this very task: (old, new, a key of
        # REASONS in course/checking/model.py)
        ("i < out.size", "i <= out.size", "off_by_one"),
        ("cuda.grid(1)", "cuda.threadIdx.x", "first_block_only"),
    ),
)
"""

CUDA_C_STARTER = """
%%writefile build/{name}.cu
// TODO: what the kernel does, and how its arrays are laid out
__global__ void {name}(float* out, const float* a, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    // your code
}}
"""
CUDA_C = """
# ---- {name}: TODO: what it practises, in a few words

{constant}_CU = \"\"\"
// TODO: what the kernel does, and how its arrays are laid out
__global__ void {name}(float* out, const float* a, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i];  // TODO: the solution
}}
\"\"\"

{constant} = Exercise(
    id="{id}",
    title="{title}",
    minutes={minutes},
    kind="cuda_c",
    kernel_name="{name}",
    path="build/{name}.cu",
    task="{task}",
    starter=\"\"\"{starter}\"\"\",
    solution={constant}_CU,
    # TODO: the kernel's arguments
    inputs=lambda rng, n: {{"out": Out(n), "a": uniform(rng, *n), "n": n[0]}},
    reference=lambda out, a, n: a.astype(np.float64),  # TODO: what must be in out, by NumPy
    large=(66_000,),
    shapes=lengths(1, 2, 31, 32, 33, 64, 97),
    fresh=some_length,
    extents=a_thread_each,
    other_block=(96, 1, 1),{hints}    wrong=(
        # TODO: one more at least, a mistake that people make in this very task: (old, new, a key of
        # REASONS in course/checking/model.py)
        ("i < n", "i <= n", "off_by_one"),
        ("if (i < n)\\n        ", "", "missing_guard"),
    ),
)
"""

FUNCTION_STARTER = """
def {name}(n): ...  # return TODO: what it returns
"""
FUNCTION = """
# ---- {name}: TODO: what it practises, in a few words


def {name}(n):
    return n  # TODO: the solution


{constant} = Exercise(
    id="{id}",
    title="{title}",
    minutes={minutes},
    kind="function",
    task="{task}",
    starter=\"\"\"{starter}\"\"\",
    solution={name},
    inputs=arguments_of({name}),
    reference=lambda n: n,  # TODO: the same by another way
    shapes=((1,), (2,), (1000,)),
    fresh=some_numbers((1, 5000)),{hints}    wrong=(
        # TODO: three or more: the mistakes that people make, as (old, new, reason)
    ),
)
"""

KINDS = {
    "numba": (NUMBA, NUMBA_STARTER),
    "cuda_c": (CUDA_C, CUDA_C_STARTER),
    "function": (FUNCTION, FUNCTION_STARTER),
}
IMPORTS = {
    "numba": """
import numpy as np
from numba import cuda
from course.checking.inputs import a_thread_each, lengths, some_length, uniform
from course.checking.model import Exercise, Out
""",
    "cuda_c": """
import numpy as np
from course.checking.inputs import a_thread_each, lengths, some_length, uniform
from course.checking.model import Exercise, Out
""",
    "function": """
from course.checking.inputs import arguments_of, some_numbers
from course.checking.model import Exercise
""",
}
QUESTION = """one_of(
    "{id}",
    "TODO: the question",
    ("TODO: a choice that is wrong", "TODO: why it is wrong"),
    ("TODO: the right one", "TODO: why it is right"),
    ("TODO: another wrong one", "TODO: why it is wrong"),
    answer="b",
)"""


def module_of(chapter: Chapter) -> Path:
    """The chapter's module of exercises, made where there is none yet."""
    path = FOLDER / f"{chapter.key}.py"
    if not path.is_file():
        write_whole(path, EMPTY.format(title=chapter.title))
    return path


def new_exercise(chapter: Chapter, name: str, kind: str = "numba", after: str | None = None):
    """Write the skeleton of an exercise, `chapter.key`.`name`; the files, each with what it got.

    after: the id of a cell; the exercise goes to the end of the section that the cell is in.
    """
    path = module_of(chapter)
    text = path.read_text(encoding="utf-8")
    id = f"{chapter.key}.{name}"
    if f'"{id}"' in text:
        raise ValueError(f"there is an exercise {id} already")
    taken = code.names_in(text)
    function = name if name not in taken else f"{name}_answer"
    constant = name.upper() if name.upper() not in taken else f"{name.upper()}_EXERCISE"
    entry, starter = KINDS[kind]
    starter = starter.format(name=function)
    blanks = {"title": TITLE, "task": TASK, "hints": HINTS, "starter": starter}
    blanks["minutes"] = MINUTES[kind]
    part = entry.format(id=id, name=function, constant=constant, **blanks)
    notebook = book.read(chapter.path)
    cells = cells_of(chapter, name, function, kind, starter)
    above = book.insert(notebook, cells, book.behind_section(notebook, after) if after else None)
    text = code.with_item(text, "EXERCISES", constant)
    text = code.before(text, "EXERCISES", part)
    write_whole(path, code.with_imports(text, IMPORTS[kind]))
    code.tidied(path)
    book.write(notebook, chapter.path)
    answers = ANSWERS.read_text(encoding="utf-8")
    write_whole(ANSWERS, with_answers(answers, chapter, id))
    return {
        path: f"the entry {constant}",
        chapter.path: in_words(cells, above),
        ANSWERS: f"a place for {len(RIGHT)} right answers",
    }


def with_answers(text: str, chapter: Chapter, id: str) -> str:
    """The file of right answers with blanks for an exercise, behind the last of its chapter."""
    heads = list(re.finditer(r"^### ([a-z]\w*)\.", text, re.MULTILINE))
    places = [place for place, head in enumerate(heads) if head[1] == chapter.key]
    behind = places[-1] + 1 if places else len(heads)
    end = heads[behind].start() if behind < len(heads) else len(text)
    blanks = "".join(ANSWER.format(id=id, name=name) for name in RIGHT)
    return f"{text[:end]}{blanks}{text[end:]}"


def in_words(cells, above: str) -> str:
    """The cells by their ids, and the one above them."""
    ids = ", ".join(cell.id for cell in cells)
    return f"the cell{'s' if len(cells) > 1 else ''} {ids}, behind {above}"


def cells_of(chapter: Chapter, name: str, function: str, kind: str, starter: str) -> list:
    """An exercise's cells: the task, the starter, its check, hints to take."""
    id, tail = f"{chapter.key}.{name}", name.replace("_", "-")
    answer = f'"build/{function}.cu"' if kind == "cuda_c" else function
    hint = f'# exercises.hint("{id}")   # a hint; again for the next; then\n'
    return [
        book.text_cell(f"ex-{tail}", f"### Exercise · {TITLE} ({MINUTES[kind]} min)\n\n{TASK}"),
        book.code_cell(f"start-{tail}", starter.strip(), "exercise"),
        book.code_cell(f"check-{tail}", f'exercises.check("{id}", {answer})'),
        book.code_cell(f"hint-{tail}", f'{hint}# exercises.solution("{id}")'),
    ]


def is_skeleton(source: str) -> bool:
    """Whether a cell holds a starter as a skeleton has it, or nothing."""
    names = re.findall(r"(?:def|void) (\w+)\(", source) or [""]
    starters = {starter.format(name=names[0]).strip() for _, starter in KINDS.values()}
    return source.strip() in starters | {""}


def new_question(chapter: Chapter, name: str, after: str | None = None):
    """Write the skeleton of a recall question; the files, each with what it got."""
    path = module_of(chapter)
    text = path.read_text(encoding="utf-8")
    id = f"{chapter.key}.{name}"
    if f'"{id}"' in text:
        raise ValueError(f"there is a question {id} already")
    notebook = book.read(chapter.path)
    cell = book.code_cell(name.replace("_", "-"), f'exercises.quiz("{id}")')
    asked = [each.id for each in notebook.cells if each.source.startswith("exercises.quiz(")]
    last = book.RECAP if any(each.id == book.RECAP for each in notebook.cells) else None
    above = book.insert(notebook, [cell], after or (asked[-1] if asked else last))
    text = code.with_item(text, "QUIZZES", QUESTION.format(id=id))
    write_whole(path, code.with_imports(text, "from course.checking.quiz import one_of"))
    code.tidied(path)
    book.write(notebook, chapter.path)
    return {path: "an entry in QUIZZES", chapter.path: in_words([cell], above)}
