"""The load test: hundreds by day, ten thousand at night; and it would notice what is wrong."""

import pytest

from course.kernels.language_model.serving import load


def test_many_clients():
    found = load.run("checksum", 90, 1, "--blocks", "60", "--queue", "20")
    assert not found.wrong, str(found)
    assert sum(found.kinds.values()) == 90


@pytest.mark.nightly("by day some dozens, and no model, but tokens that tell all before them")
@pytest.mark.parametrize("model", ["checksum", "toy"])
def test_ten_thousand_clients(model, pytestconfig):
    seed = pytestconfig.getoption("seed", 0) or 0
    found = load.run(model, 10_000, seed, "--blocks", "60", "--queue", "20")
    assert not found.wrong, str(found)
    assert len(found.kinds) == 9
    assert {200, 400, 404, 413, 429} <= set(found.statuses)


@pytest.mark.nightly("by day the test is run, and not with what it must notice")
def test_another_text_is_noticed(monkeypatch):
    monkeypatch.setattr(load, "alone", lambda model: lambda prompt, most: "another text")
    found = load.run("checksum", 20)
    assert any("asks: AssertionError" in wrong for wrong in found.wrong)
