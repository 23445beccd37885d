"""The model of time: what is put in comes out, and predictions stand beside measurements."""

import json

import pytest

from course.kernels.many_gpus import model


def test_fit_finds_what_was_put_in():
    points = [(1 << k, 3e-6 + model.sent("push", 1 << k, 2) / 350e9) for k in range(10, 31, 2)]
    alpha, beta, worst = model.fit(points, "push", 2)
    assert alpha == pytest.approx(3e-6)
    assert beta == pytest.approx(350e9)
    assert worst < 1e-9


def test_more_ranks_cost_a_ring_trips_and_a_two_shot_none():
    arguments = dict(bytes=8, alpha=5e-6, beta=350e9, fitted_ranks=2, trip=1e-6)
    assert model.predict("ring", ranks=8, **arguments) == pytest.approx(5e-6 + 12e-6, rel=1e-3)
    assert model.predict("two_shot", ranks=8, **arguments) == pytest.approx(5e-6, rel=1e-3)


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
