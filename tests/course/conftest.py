"""What the tests of the course share."""

import zlib

import pytest

from course.checking import apart, checker, cpp, engines, loaded


@pytest.fixture(autouse=True)
def seeded(request, monkeypatch):
    """Each test checks answers on its own inputs, the same ones in every run: failures repeat.

    At night they are others, by the seed that the run's first lines say (--seed=N).
    """
    night = request.config.getoption("--seed", 0)
    seed = zlib.crc32(f"{request.node.nodeid}{night or ''}".encode()) >> 1
    monkeypatch.setattr(checker, "fresh_seed", lambda: seed)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Answers are limited by their CPU time alone: by the clock a busy machine may take long."""
    monkeypatch.setattr(engines, "CHILD_SECONDS", 900)
    for module in (apart, cpp, loaded):
        monkeypatch.setattr(module, "PATIENCE", 900)
