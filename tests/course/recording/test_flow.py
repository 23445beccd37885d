"""What a cell depends on is seen: a change marks what it reaches, and nothing else."""

import pytest
from nbformat.v4 import new_code_cell

from course.recording import cells
from course.recording.versions import Version

KERNEL = "@cuda.jit\ndef add(out, a):\n    i = cuda.grid(1)\n    out[i] = a[i] + step\n"
C_FILE = "%%writefile build/add.cu\n__global__ void add(float* out) { out[0] = 1; }"
C_MAIN = '%%writefile build/main.cu\n#include "add.cu"\nint main() { return 0; }'
NOTEBOOK = {
    "imports": "from utils import cuda, np",
    "step": "step = 1",
    "kernel": KERNEL,
    "data": "a = np.ones(8)\nout = np.zeros(8)",
    "run": "add[1, 8](out, a)",
    "show": "print(out)",
    "inputs": "print(a)",
    "indirect": "launch = lambda: add[1, 8](out, a)",
    "later": "launch()",
    "twice": "[step * n for n in range(3)]",
    "file": C_FILE,
    "main": C_MAIN,
    "nvcc": "%nvcc build/main.cu --run",
    "other": "other = 5",
    "again": "other = other + 1",
    "end": "print(other)",
    "broken": "def (:",
}


def marks(sources):
    book = [new_code_cell(source, id=id) for id, source in sources.items()]
    return cells.marks(book, Version(None, set()))


def touched(**changes):
    """The cells whose marks differ after these cells have another source, or None: are gone."""
    changed = {id: changes.get(id, source) for id, source in NOTEBOOK.items()}
    after = marks({id: source for id, source in changed.items() if source is not None})
    before = marks(NOTEBOOK)
    return {id for id in after if after[id] != before[id]}


@pytest.mark.parametrize(
    "id, source, reached",
    [
        ("imports", "from utils import check, cuda, np", "imports"),
        ("step", "step = 2", "step run show later twice"),
        ("kernel", KERNEL.replace("+", "-"), "kernel run show later"),
        ("data", "a = np.ones(8)\nout = np.ones(8)", "data run show later"),
        ("run", "add[2, 8](out, a)", "run show later"),
        ("show", "print(out, 1)", "show"),
        ("indirect", "launch = lambda: None", "indirect later"),
        ("file", C_FILE.replace("1;", "2;"), "file nvcc"),
        ("main", C_MAIN.replace("0;", "1;"), "main nvcc"),
        ("nvcc", "%nvcc build/main.cu", "nvcc"),
        ("other", "other = 6", "other again end"),
        ("again", "other = 7", "again end"),
        ("broken", "def [:", "broken"),
    ],
)
def test_a_change_reaches_what_depends_on_it(id, source, reached):
    assert touched(**{id: source}) == set(reached.split())


def test_comments_spaces_and_docstrings_are_no_change():
    spaced = KERNEL.replace("add(out, a):", "add(out,   a):  # one each")
    told = KERNEL.replace(":\n", ':\n    """Adds a step."""\n', 1)
    assert touched(kernel=spaced) == touched(kernel=told) == set()


def test_a_cell_that_is_gone_changes_those_that_used_it():
    assert touched(again=None) == {"end"}
    assert touched(run=None) == {"show", "later"}


def test_a_new_cell_changes_what_it_redefines_until_that_is_set_anew():
    at = list(NOTEBOOK)

    def with_cell(source, before):
        place = at.index(before)
        order = [*at[:place], "new", *at[place:]]
        after = marks({id: NOTEBOOK.get(id, source) for id in order})
        plain = marks(NOTEBOOK)
        return {id for id in plain if after[id] != plain[id]}

    assert with_cell("fresh = step + 1\nprint(fresh, a, other)", "end") == set()
    assert with_cell("step = 3", "twice") == {"twice"}
    assert with_cell("out[0] = 3", "show") == {"show", "later"}
    assert with_cell("other = 1", "other") == set()  # the next cell sets it


def test_a_launch_changes_only_what_the_kernel_stores_into():
    assert "inputs" not in touched(run="add[2, 8](out, a)")
    unknown = {**NOTEBOOK, "kernel": "add = load('add')"}
    other = {**unknown, "run": "add[2, 8](out, a)"}
    assert marks(unknown)["inputs"] != marks(other)["inputs"]  # which is not known


def test_a_value_in_a_magic_counts():
    shell = {"name": "name = 'add'", "shell": "!build/{name}"}
    assert marks(shell)["shell"] != marks({**shell, "name": "name = 'sub'"})["shell"]


def test_files_that_cells_write_are_known():
    book = [new_code_cell(C_FILE), new_code_cell("%nvcc build/add.cu -o build/run -lineinfo")]
    assert cells.files_written(book) == {"build/add.cu", "build/run"}


def test_a_changed_kernel_file_marks_those_that_name_it(tmp_path):
    name = "course/kernels/matmul/kernels/tile.cu"
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text("int a;")
    version = Version(None, {name}, tmp_path)
    assert version.data('ladder.climb("tile")') and version.data("load(FOLDER / 'tile.cu')")
    assert not version.data("tile = tiles[tile]") and not version.data('"tile_2d"')


def test_parts_of_a_file_count_wherever_it_is_used():
    book = {
        "one": "%%cuda matmul/wmma.cu multiply\nint one;",
        "two": "%%cuda matmul/wmma.cu add\nint two;",
        "load": 'cuda_c.load(KERNELS / "wmma.cu")',
    }
    before = marks(book)
    for id in ("one", "two"):
        after = marks({**book, id: book[id].replace("int", "long")})
        assert {each for each in after if after[each] != before[each]} >= {id, "load"}
