"""Only what has not passed yet is run: a plugin of pytest.

    make test AGAIN=--again     runs what the last `make test` saw fail, or never came to

A fault of the course fails again; a test that passes the second time depends on something else (the
machine, a seed, the tests before it), and its name stands in the output of both runs. A notebook is
run whole: its cells need each other.
"""

from pathlib import PurePath

import pytest

PASSED = "course/passed"  # where pytest's cache keeps the ids of what passed
FAILED = "course/failed"
FEW = 20  # with more failures than this the course is broken, and no second run tells more


def pytest_addoption(parser):
    """Called by pytest before it reads its options."""
    parser.addoption("--again", action="store_true", help="run only what has not passed yet")


def pytest_configure(config):
    """Called by pytest before it looks for tests; the processes that it starts keep no record."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Record(config), "record-of-what-passed")


class Record:
    """What passed, kept in pytest's cache at the end of the run."""

    def __init__(self, config):
        self.cache = config.cache
        again = config.getoption("--again")
        self.passed = set(_passed(config) if again else ())
        self.failed = set()
        if not again:  # a run that is killed leaves no record, and not an older one
            self.cache.set(PASSED, None)

    def pytest_report_header(self, config):
        """The line above the tests says what is run again."""
        failed = self.cache.get(FAILED, [])
        return ["again: " + ", ".join(failed)] if config.getoption("--again") and failed else []

    def pytest_runtest_logreport(self, report):
        """Called for a test's set-up, for itself and for what comes after; the last one decides."""
        if report.failed:
            self.failed.add(report.nodeid)
        elif report.when == "teardown":
            self.passed.add(report.nodeid)

    def pytest_sessionfinish(self):
        """Called at the end of the run, also of one that a worker's death has ended."""
        self.cache.set(PASSED, sorted(self.passed - self.failed))
        self.cache.set(FAILED, sorted(self.failed))


def _passed(config) -> list[str]:
    """The ids of what passed in the run before. pytest.UsageError where no second run can help."""
    passed = config.cache.get(PASSED, None)
    if passed is None:
        raise pytest.UsageError("--again goes on from a run of `make test`, and there was none")
    failed = config.cache.get(FAILED, [])
    if len(failed) > FEW:
        raise pytest.UsageError(f"--again is for a few failures, and there were {len(failed)}")
    return passed


def pytest_collection_modifyitems(config, items):
    """Called by pytest once it has found all tests: leaves those that have not passed."""
    if not config.getoption("--again"):
        return
    passed = set(_passed(config))
    files = {_file(item.nodeid) for item in items if item.nodeid not in passed}
    done = [item for item in items if not _wanted(item.nodeid, passed, files)]
    items[:] = [item for item in items if _wanted(item.nodeid, passed, files)]
    config.hook.pytest_deselected(items=done)


def _wanted(nodeid: str, passed: set[str], files: set[str]) -> bool:
    file = _file(nodeid)
    if PurePath(file).suffix == ".ipynb":
        return file in files
    return nodeid not in passed


def _file(nodeid: str) -> str:
    return nodeid.split("::")[0]
