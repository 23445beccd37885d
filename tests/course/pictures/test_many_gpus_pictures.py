"""The pictures of the chapter on many GPUs say what the schedules do, and what is recorded."""

import json

import pytest

from course.kernels.many_gpus.schedule import SCHEDULES, ring
from course.pictures import many_gpus as pictures
from utils import results

#: Two stages, two micro-batches: (stage, what, micro-batch, turn).
GPIPE = [
    *((0, "forward", 0, 0), (0, "forward", 1, 1), (1, "forward", 0, 1), (1, "forward", 1, 2)),
    *((1, "back", 1, 3), (1, "back", 0, 4), (0, "back", 1, 4), (0, "back", 0, 5)),
]


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("ranks", [2, 4, 5])
def test_a_schedule_ends_with_every_part_complete(name, ranks):
    states = pictures.contributions(SCHEDULES[name](ranks))
    assert (states[0] == 1).all()
    assert (states[-1] == ranks).all()


def test_a_ring_completes_its_first_parts_after_n_minus_1_steps():
    states = pictures.contributions(ring(4))
    assert [int((state == 4).sum()) for state in states] == [0, 0, 0, 4, 8, 12, 16]


@pytest.mark.parametrize("name", SCHEDULES)
def test_at_the_table_every_way_ends_with_the_sums(name):
    way = SCHEDULES[name](4)
    assert all(list(slip) == [60, 64, 68, 72] for slip in pictures.slips(way, len(way.steps)))
    assert list(pictures.slips(way, 0)[2]) == [20, 21, 22, 23]
    end = pictures.table(way, 99).alt
    assert f"step {len(way.steps)} of {len(way.steps)}" in end and end.count("60 64 68 72") == 4


def test_the_table_draws_who_hands_what_to_whom():
    drawn = pictures.table(ring(4), 2, "ring").svg()
    assert drawn.count("<polygon") == 4  # an arrow from each rank
    assert drawn.count('stroke-width="3"') == 4  # the number that has come to each
    for sent in (36, 10, 32, 54):  # each rank has added its own number in step 1
        assert f">{sent}</text>" in drawn
    assert "handled: 0.5" in drawn


def test_the_pipelines_turns_are_those_of_gpipe():
    assert sorted(pictures.turns(2, 2)) == sorted(GPIPE)
    assert pictures.bubble(pictures.turns(4, 12)) == pytest.approx(3 / 15)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: pictures.learned([[0, 0], [1, 3]], [[0, 0], [2, 2]]),
        lambda: pictures.model_curves(8),
        lambda: pictures.pipeline(GPIPE),
        lambda: pictures.overlap([{"bytes": 4096, "ready": 0.1, "done": 0.3}], 0.2),
        pictures.scaling,
        pictures.fits,
        pictures.matrix,
        pictures.joined,
        lambda: pictures.tensor_cut(4),
    ],
)
def test_pictures_are_drawn_and_described(draw):
    picture = draw()
    assert picture.alt
    assert as_html(picture)


def as_html(picture):
    """What a notebook shows of a chart or a drawing."""
    if hasattr(picture, "_repr_mimebundle_"):
        return picture._repr_mimebundle_()["text/html"]
    return picture._repr_html_()


def test_every_rank_has_its_parts_of_both_layers():
    drawn = pictures.tensor_cut(3)
    assert "for 3 ranks" in drawn.alt
    for rank in range(3):  # columns of the first layer, of the hidden one, rows, a partial sum
        assert drawn.svg().count(f">{rank}</text>") == 4


def test_a_switch_has_a_wire_for_every_gpu():
    drawn = pictures.joined(6).svg()
    assert drawn.count(">GPU 5</text>") == 3
    assert drawn.count("<line") == 6 + 5 + 6  # PCIe, NVLink from one to the next, NVSwitch


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
    assert "nothing is recorded" in pictures.fits()
    assert "nothing is recorded" in pictures.matrix()
    assert "assumed" in pictures.link()[3]


def test_the_bubble_is_that_of_the_formula():
    stages, batches = 2, 2
    assert pictures.bubble(GPIPE) == pytest.approx((stages - 1) / (batches + stages - 1))
    assert "33%" in pictures.pipeline(GPIPE).axes[0].get_title()


def test_the_largest_recording_is_shown_with_its_predictions(recorded):
    name = "many_gpus/8/all_reduce/8"
    recorded(
        [
            {"name": f"{name}/ours/call", "value": 2e-6},
            {"name": f"{name}/nccl/call", "value": 4e-6},
            {"name": f"{name}/ours/graph", "value": 3e-6},
            {"name": f"{name}/predicted", "value": 2e-6},
            {"name": "many_gpus/4/all_reduce/8/predicted", "value": 2e-6},
            {"name": "many_gpus/8/peer_copy/kernel_push/0_1", "value": 3e11},
        ]
    )
    assert pictures.largest() == 8
    assert "2.00×" in pictures.times_table()
    assert "of 8 GPUs" in pictures.race().alt and "of 8 GPUs" in pictures.matrix().alt
    assert "1.50×" in pictures.predictions(8)
    assert "not yet" in pictures.predictions(4)


def test_what_a_peer_adds_is_found_in_one_machines_results(recorded):
    times = {"many_gpus": 3e-6, "many_gpus/2": 4e-6, "many_gpus/4": 5e-6}
    recorded(
        {
            "name": f"{machine}/all_reduce/{bytes}/{what}",
            "value": alpha + 2 * (3 if machine.endswith("4") else 1) * bytes / 1e9,
        }
        for machine, alpha in times.items()
        for bytes in (8, 1 << 12, 1 << 16)
        for what in ("best/one_shot", "ours/call", "ours/graph")
    )
    row = pictures.alphas().splitlines()[1].replace(" µs", "").split()
    assert row[0] == "one_shot"
    assert [float(value) for value in row[1:]] == [3.0, 4.0, 5.0, 0.5]
    assert "furthest off: 0%" in pictures.refitted()


def test_the_least_of_all_comparisons_is_found(recorded):
    recorded(
        [
            {"name": "many_gpus/all_reduce/8/speedup_over_nccl", "value": 3.0},
            {"name": "many_gpus/all_reduce/bf16/4096/speedup_over_nccl/wait", "value": 1.25},
            {"name": "many_gpus/4/all_reduce/8/speedup_over_nccl", "value": 0.5},
        ]
    )
    assert pictures.least(2) == "2 comparisons on 2 GPUs, the least 1.25× (4,096 bytes, wait, bf16)"
    assert "0.50×" in pictures.least(4)
    assert "nothing is recorded" in pictures.least(8)


def test_copies_and_training_are_those_of_the_largest_recording(recorded):
    recorded(
        [
            {"name": "many_gpus/4/all_reduce/8/ours/call", "value": 1e-6},
            {"name": "many_gpus/4/peer_copy/push/0_1", "value": 3e11},
            {"name": "many_gpus/peer_copy/push/0_1", "value": 1e11},
            {"name": "many_gpus/4/ddp/4096/scaling", "value": 3.5},
            {"name": "many_gpus/accuracy/pytorch", "value": 0.99},
        ]
    )
    assert "copy engine:  300 GB/s" in pictures.copies()
    said = pictures.training()
    assert "4 GPUs beside one, 4,096 digits each: 3.50×" in said
    assert "DistributedDataParallel: nothing recorded yet" in said
    assert "pytorch: 99.00%" in said


def test_a_race_says_whether_pytorch_had_its_best_mode(recorded):
    recorded(
        [
            {"name": "many_gpus/4/all_reduce/8/ours/call", "value": 1e-6},
            {"name": "many_gpus/ddp/4096/race/ours", "value": 6e-4},
            {"name": f"many_gpus/ddp/4096/race/pytorch/{pictures.BEST_MODE}", "value": 3e-3},
            {"name": "many_gpus/ddp/4096/speedup_over_pytorch_ddp", "value": 5.0},
            {"name": "many_gpus/4/ddp/4096/race/ours", "value": 6e-4},
            {"name": "many_gpus/4/ddp/4096/speedup_over_pytorch_ddp", "value": 6.0},
        ]
    )
    said = pictures.training()
    assert "2 GPUs, in its best mode: 5.00×" in said
    assert "4 GPUs, without its best mode, max-autotune: 6.00×" in said


def test_the_first_call_that_differs_is_named():
    same = pictures.calls({"rank 0": ["reduce", "barrier"], "rank 1": ["reduce", "barrier"]})
    assert "all 2 meet" in same.alt and "waits" not in same.svg()
    other = pictures.calls({"rank 0": ["reduce", "barrier"], "rank 1": ["reduce"]})
    assert "call 2 differs: barrier, None" in other.alt
    assert other.svg().count("waits for ever") == 1


def test_the_share_of_numbers_is_that_of_their_bytes():
    alt = pictures.words(numbers=6, flag=2, tile=98).alt
    assert "75% of it numbers" in alt and "98.00% of it numbers" in alt


def test_the_switch_adds_what_all_gpus_have():
    sheet = pictures.multicast([1, 2, 3, 5])
    assert "1 + 2 + 3 + 5 = 11, formed in the switch" in sheet.alt
    assert "sum: 11" in sheet.svg() and sheet.svg().count("<polygon") == 2 * (4 + 1)
