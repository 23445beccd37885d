"""Films hold what the tracer recorded: of kernels of the course, right ones and ones that race."""

import json

import numpy as np
import pytest
from numba import cuda

from course.checking.numba_kernels import traced_probe
from course.checking.trials import probes
from course.exercises import EXERCISES
from utils.cpu import numba_cuda
from utils.tracer import TraceError, play, trace
from utils.tracer.film import Film
from utils.tracer.film_data import packed, unpacked
from utils.tracer.film_order import BARRIERS, STUCK
from utils.tracer.film_words import shortened
from utils.tracer.player import refreshed
from utils.tracer.record import ACCESSES, LINE

ALL = 10**9  # steps
RIGHT = (
    "first_kernels.scale_guard",
    "first_kernels.grid_stride",
    "memory.rotate_tile",
    "synchronization.rotate_left",
    "synchronization.count",
    "synchronization.privatized",
    "synchronization.at_most",
    "reductions.scan",
    "reductions.look_back",
    "matmul.tile",
    "fourier.exchange",
)
RACING = (
    "memory.rotate_tile",
    "synchronization.rotate_left",
    "synchronization.privatized",
    "reductions.scan",
    "matmul.tile",
)


def traced(name, kernel):
    """The trace of an answer to an exercise."""
    exercise = EXERCISES[name]
    return traced_probe(kernel, exercise, probes(exercise)[0])


def racing(name):
    """A trace of a known wrong answer that races, its threads in a drawn order."""
    wrong = next(wrong for wrong in EXERCISES[name].wrong if wrong.reason == "race")
    with numba_cuda.schedule(1):
        return traced(name, wrong.answer)


BY_DAY = "first_kernels.grid_stride", "synchronization.count", "reductions.scan"
BY_DAY += "synchronization.privatized racing", "reductions.scan racing"
OTHERS = pytest.mark.nightly("by day right and racing kernels, with and without barriers")
TRACED = [
    pytest.param(name, marks=[] if name in BY_DAY else [OTHERS])
    for name in (*RIGHT, *(f"{name} racing" for name in RACING))
]


@pytest.fixture(scope="module", params=TRACED)
def one(request):
    """A trace of a kernel of the course."""
    name, _, races = request.param.partition(" ")
    return racing(name) if races else traced(name, EXERCISES[name].solution)


def test_each_access_is_in_one_step_and_each_thread_in_its_own_order(one):
    film = Film(one, range(one.blocks), ALL)
    seen = [i for step in film.all_steps if step.kind != STUCK for i in step.events]
    assert len(seen) == len(set(seen))
    assert set(one.events.accesses("global", "shared").tolist()) <= set(seen)
    for thread in np.unique(one.events.thread):
        own = [i for i in seen if one.events.thread[i] == thread]
        assert own == sorted(own)


def test_no_step_passes_a_barrier_before_its_block_is_there(one):
    film = Film(one, range(one.blocks), ALL)
    events = one.events
    now = {}
    for step in film.all_steps:
        block = int(events.block[step.events[0]])
        epoch = int(events.epoch[step.events[0]])
        assert epoch >= now.get(block, 0)
        now[block] = epoch
    opened = [step for step in film.all_steps if step.opens]
    assert all(step.kind in BARRIERS for step in opened)


def test_the_data_of_each_step_are_the_record(one):
    film = Film(one, range(one.blocks), ALL)
    events = one.events
    data = json.loads(json.dumps(film.data, allow_nan=False))
    assert len(data["steps"]) == len(film.all_steps)
    for step, row in zip(film.all_steps, data["steps"], strict=True):
        own = list(step.events)
        lanes = [lane for lane in range(32) if row["m"] >> lane & 1]
        assert lanes == events.lane[own].tolist()
        assert film.warps[row["w"]] == step.warp == events.warp[own[0]]
        site = events.site_of(own[0])
        assert data["source"][row["r"]][0] == site.line
        if step.kind not in ACCESSES:
            continue
        unit = data["arrays"][row["a"]]["unit"]
        offsets = [unit * offset for offset in unpacked(row["p"], len(own))]
        assert offsets == events.offset[own].tolist()
        memory = events.memory_of(own[0])
        assert data["arrays"][row["a"]]["name"] == memory.name
        assert data["arrays"][row["a"]]["shape"] == list(memory.shape)
        if "v" in row:
            values = [shortened(value) for value in events.value[own].tolist()]
            assert unpacked(row["v"], len(own)) == values


def test_the_counters_end_where_the_report_does(one):
    film = Film(one, range(one.blocks), ALL)
    _, sectors, fewest, passes, smooth = film.data["steps"][-1]["c"]
    if film.race is None:  # else a thread that runs ahead moves sectors of its own
        assert sectors == sum(row.sectors for row in one.coalescing)
        assert fewest == sum(row.fewest for row in one.coalescing)
        assert passes == sum(row.wavefronts for row in one.banks)
        assert smooth == sum(row.fewest for row in one.banks)


@pytest.mark.parametrize("name", RACING)
def test_a_race_comes_in_the_order_of_the_run_and_the_film_says_so(name):
    film = Film(racing(name))
    first, second = film.race
    place = {i: n for n, step in enumerate(film.all_steps) for i in step.events}
    assert place[first] <= place[second]
    assert "RACE: thread" in film.describe(film.data["stop"])
    assert film.data["wrong"]["who"]


# ---- kernels of our own


@cuda.jit
def shift(a):
    i = cuda.threadIdx.x
    if i < a.size - 1:
        a[i] = a[i + 1]


@cuda.jit
def too_early(out, a):
    tile = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    tile[t] = a[t]
    out[t] = tile[63 - t]


@cuda.jit
def in_a_branch(a):
    i = cuda.threadIdx.x
    if i < a.size:
        value = a[min(i + 1, a.size - 1)]
        cuda.syncthreads()
        a[i] = value


@cuda.jit
def beyond(a):
    a[cuda.threadIdx.x] = 1


@cuda.jit
def sides(out):
    i = cuda.threadIdx.x
    if i % 2:
        out[i] = 1
    else:
        out[i] = 2
    out[i] += 3


before = np.arange(64, dtype=np.float32)


def test_the_film_stops_at_the_read_of_what_is_not_written_yet():
    film = trace(too_early, 1, 64, np.zeros(64, np.float32), before).play(wrong=True)
    one = film.films[0]
    assert film.start == one.data["stop"]
    assert "has not written yet" in one.describe(film.start)
    assert "It goes wrong at step" in film.words


def test_the_film_of_a_barrier_that_not_all_reach_ends_at_it():
    film = Film(trace(in_a_branch, 1, 64, before[:50]))
    assert film.describe(len(film) - 1) == (
        f"The barrier in line {film.data['source'][4][0]} never opens: 50 threads wait there, 14 "
        "never come."
    )
    assert film.data["steps"][-1]["k"] == STUCK


def test_the_film_stops_where_a_thread_leaves_its_array():
    film = Film(trace(beyond, 1, 64, before[:50]))
    assert "OUTSIDE: thread 50 leaves a, which has the shape (50)." in film.describe(film.stop)


def test_a_race_shows_the_value_that_its_order_gives():
    with numba_cuda.schedule(1):
        film = Film(trace(shift, 1, 64, before))
    first, second = film.race
    index = int(film.events.offset[second]) // 4
    assert film.events.value[second] == film.events.value[first] == index + 1
    assert f"and gets {index + 1}" in film.describe(film.stop)


def test_what_follows_a_branch_comes_after_both_of_its_sides():
    film = Film(trace(sides, 1, 32, np.zeros(32, np.int32)))
    lines = [film.row_of(step) for step in film.all_steps]
    assert lines == sorted(lines)
    assert "part: true for 16, false for 16" in "".join(map(film.describe, range(len(film))))


def test_statements_are_counted_once():
    film = Film(trace(sides, 1, 32, np.zeros(32, np.int32)))
    events = film.events
    groups = {(events.site[i], events.lane[i] % 2) for i in np.flatnonzero(events.kind == LINE)}
    sides_of_branch = {site for site, _ in groups}
    assert film.data["steps"][-1]["c"][0] == len(sides_of_branch)


def test_a_long_film_leaves_steps_out_and_says_so():
    t = trace(in_a_branch, 1, 64, before)
    film = Film(t, most=5)
    assert len(film) == 5 < len(film.all_steps)
    assert film.left_out.startswith(f"Shown: 5 of {len(film.all_steps)} steps: the first 3, then")
    assert film.data["steps"][-1]["n"] == len(film.all_steps) - 1
    assert film.data["steps"][-1]["c"] == Film(t).data["steps"][-1]["c"]


def test_some_blocks_of_many_are_shown_and_it_says_which():
    long = np.zeros(640, np.float32)

    @cuda.jit
    def add(a):
        a[cuda.grid(1)] += 1

    t = trace(add, 10, 64, long)
    assert Film(t).left_out == "Shown: blocks 0, 1 of 10."
    assert Film(t, 7).left_out == "Shown: block 7 of 10."
    with pytest.raises(TraceError, match="there are 10 blocks, from 0; not 10"):
        Film(t, 10)


def test_a_film_of_2000_steps_is_at_most_a_megabyte(tmp_path):
    @cuda.jit
    def scatter(a, where):
        i = cuda.grid(1)
        for n in range(where.shape[0]):
            a[where[n, i]] += a[i] * 0.3

    where = np.random.default_rng(0).integers(0, 64, (700, 64)).astype(np.int32)
    player = trace(scatter, 1, 64, np.full(64, 1 / 3), where).play()
    assert len(player.films[0]) == 2_000
    assert player.share(tmp_path / "film.html").stat().st_size <= 1_000_000


def test_a_shared_film_is_one_file_that_asks_for_nothing(tmp_path):
    path = trace(shift, 1, 64, before).share(tmp_path / "film.html")
    text = path.read_text()
    assert "http" not in text and "import(" not in text
    assert "Film of shift[1, 64]" in text  # for whoever runs no scripts


def test_nothing_of_a_kernel_can_end_the_script():
    @cuda.jit
    def ends(a):
        a[0] = len("</script>")

    page = trace(ends, 1, 1, np.zeros(1)).play().html
    assert page.count("</script>") == 1


def test_two_films_keep_their_names():
    t = trace(shift, 1, 32, before[:32])
    player = play(t, t, names=("race", "cure"))
    assert [film.data["name"] for film in player.films if player.html] == ["race", "cure"]
    assert "race and cure" in player.html


def test_numbers_are_packed_where_they_go_up_evenly():
    for numbers in ([4, 8, 12], [7, 7, 7], [3, 1, 2], [9], [0.5, 1.0], [8, 4, 0], [1, 2, None]):
        assert unpacked(packed(numbers), len(numbers)) == numbers
    assert packed([4, 8, 12, 16]) == {"from": 4, "by": 4}


def test_a_saved_film_gets_the_player_of_today():
    page = trace(shift, 1, 64, before).play().html
    older = page.replace('"use strict";', "old;").replace("display: grid", "display: none")
    assert older != page == refreshed(older)
    assert refreshed("<p>no film</p>") == "<p>no film</p>"
