"""The model of time: what is put in comes out, and predictions stand beside measurements."""

import json

import pytest

from course.kernels.many_gpus import model


def points(algorithm, ranks, alpha, beta, exponents=range(10, 31, 2)):
    """What a line gives: {bytes: seconds}."""
    return {1 << k: alpha + model.sent(algorithm, 1 << k, ranks) / beta for k in exponents}


def test_fit_finds_what_was_put_in():
    line = model.fit(points("push", 2, 3e-6, 350e9), "push", 2)
    assert line.alpha == pytest.approx(3e-6)
    assert line.beta == pytest.approx(350e9)
    assert line.worst < 1e-9
    assert line.seconds(1 << 20) == pytest.approx(3e-6 + (1 << 20) / 350e9)


def test_more_ranks_cost_a_ring_trips_and_a_two_shot_none():
    ring, two_shot = (model.Line(name, 2, 5e-6, 350e9) for name in ("ring", "two_shot"))
    assert model.with_more(ring, 8, trip=1e-6).alpha == pytest.approx(5e-6 + 12e-6)
    assert model.with_more(two_shot, 8, trip=1e-6).alpha == pytest.approx(5e-6)


def test_two_fits_say_what_a_peer_adds():
    two, four = (model.Line("one_shot", n, a, 300e9) for n, a in ((2, 3e-6), (4, 4e-6)))
    assert model.for_a_peer(two, four) == pytest.approx(0.5e-6)
    eight = model.with_more(four, 8, fewer=two)
    assert eight.seconds(8) == pytest.approx(6e-6, rel=1e-3)
    assert eight.seconds(1 << 20) == pytest.approx(6e-6 + 2 * 7 * (1 << 20) / 300e9)


def test_predictions_are_written(tmp_path):
    entries = [
        {
            "name": f"many_gpus/all_reduce/{1 << k}/sweep/push/132x512u4",
            "value": 5e-6 + (1 << k) / 350e9,
            "unit": "s",
        }
        for k in range(20, 31, 2)
    ]
    for kind, value in (("alone", 630e-6), ("shared_statistics/bucket", 640e-6)):
        entries.append({"name": f"many_gpus/ddp/4096/step/{kind}", "value": value, "unit": "s"})
    path = tmp_path / "results.json"
    path.write_text(json.dumps(entries))
    model.add_to(path, 2)
    written = {e["name"]: e["value"] for e in json.loads(path.read_text())}
    expected = 5e-6 + 2 * 7 / 8 * (1 << 30) / 350e9
    assert written[f"many_gpus/8/all_reduce/{1 << 30}/predicted"] == pytest.approx(expected)
    assert 7 < written["many_gpus/8/ddp/4096/scaling/predicted"] < 8


def test_predictions_from_two_and_four_gpus_follow_both(tmp_path):
    entries = []
    for ranks, alpha in ((2, 5e-6), (4, 7e-6)):
        for bytes, seconds in points("push", ranks, alpha, 350e9, range(20, 31, 2)).items():
            name = f"many_gpus/{ranks}/all_reduce/{bytes}/sweep/push/132x512u4"
            entries.append({"name": name, "value": seconds, "unit": "s"})
        step = f"many_gpus/{ranks}/ddp/256/step"
        seconds = {"alone": 80e-6, "shared_statistics/bucket": 80e-6 + 5e-6 * ranks}
        entries += [{"name": f"{step}/{k}", "value": s, "unit": "s"} for k, s in seconds.items()]
    path = tmp_path / "results.json"
    path.write_text(json.dumps(entries))
    model.add_to(path, 4)
    written = {e["name"]: e["value"] for e in json.loads(path.read_text())}
    assert written["many_gpus/2/model/push/alpha"] == pytest.approx(5e-6)
    assert written["many_gpus/4/model/push/alpha"] == pytest.approx(7e-6)
    assert written["many_gpus/8/all_reduce/8/predicted"] == pytest.approx(11e-6, rel=1e-3)
    assert "many_gpus/4/all_reduce/8/predicted" not in written
    scaling = 8 * 80e-6 / (80e-6 + 8 * 5e-6)
    assert written["many_gpus/8/ddp/256/scaling/predicted"] == pytest.approx(scaling)
