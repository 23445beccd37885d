"""The pictures of the chapter on many GPUs say what the schedules do, and what is recorded."""

import json

import numpy as np
import pytest

from course.kernels.many_gpus.schedule import SCHEDULES, ring
from course.pictures import many_gpus as pictures
from utils import results


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("ranks", [2, 4, 5])
def test_a_schedule_ends_with_every_part_complete(name, ranks):
    states = pictures.contributions(SCHEDULES[name](ranks))
    assert (states[0] == 1).all()
    assert (states[-1] == ranks).all()


def test_a_ring_completes_its_first_parts_after_n_minus_1_steps():
    states = pictures.contributions(ring(4))
    assert [int((state == 4).sum()) for state in states] == [0, 0, 0, 4, 8, 12, 16]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: pictures.steps(ring(3), "ring"),
        lambda: pictures.model_curves(8, 3e-6, 350e9),
        lambda: pictures.pipeline(4, 6),
        pictures.scaling,
    ],
)
def test_pictures_are_drawn_and_described(draw):
    picture = draw()
    assert picture.alt
    assert picture._repr_mimebundle_()["text/html"]


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A folder with a GPU's recorded results, to which entries are added."""

    def add(entries):
        original = json.loads((results.FOLDER / "nvidia-h200.json").read_text())
        like = original["results"][0]
        original["results"] = [{**like, "unit": "s", **entry} for entry in entries]
        (tmp_path / "nvidia-h200.json").write_text(json.dumps(original))
        monkeypatch.setattr(results, "FOLDER", tmp_path)

    return add


def test_the_race_is_drawn_from_what_is_recorded(recorded):
    times = {"ours": 1e-6, "nccl": 3e-6}
    recorded(
        {"name": f"many_gpus/all_reduce/{bytes}/{who}/call", "value": seconds * bytes}
        for bytes in (8, 1024)
        for who, seconds in times.items()
    )
    assert pictures.recorded("ours/call") == pytest.approx({8: 8e-6, 1024: 1024e-6})
    assert pictures.times_table().count("3.00×") == 2
    assert "ours and NCCL" in pictures.race().alt


def test_nothing_recorded_is_said(recorded):
    recorded([{"name": "something/else", "value": 1.0}])
    assert "nothing is recorded" in pictures.race()
    assert "nothing is recorded" in pictures.times_table()
    assert "assumed" in pictures.link()[2]


def test_the_bubble_is_that_of_the_formula():
    share = 1 - 6 / (6 + 4 - 1)
    assert f"{share:.0%}" in pictures.pipeline(4, 6).axes[0].get_title()
    assert np.isclose(share, 3 / 9)
