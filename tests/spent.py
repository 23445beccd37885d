"""Where a test run's time goes: CPU seconds, by folder and file. A plugin of pytest.

    .venv/bin/python -m pytest -p tests.spent tests/course

Seconds of a processor say the same on a busy machine, a clock does not. What a test starts counts
with the test that runs while it works, and so does what stays to serve later ones: a kernel, a
browser, the process whose copies launch an answer's kernels.
"""

import os
import resource
from collections import Counter
from pathlib import Path, PurePosixPath

import pytest

SPENT = "cpu seconds"
FINDING = "cpu seconds to find the tests"
FILES = 20  # so many files are listed
TICK = 1 / os.sysconf("SC_CLK_TCK")
TIMES = slice(11, 15)  # in /proc/PID/stat behind the name: user, system, and those of the ended


def pytest_configure(config):
    """Called by pytest before it looks for tests."""
    config.pluginmanager.register(Spent(), "spent")


def cpu_seconds() -> float:
    """What this process, those that it has started, and theirs have used so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own = sum(usage.ru_utime + usage.ru_stime for usage in used)
    return own + sum(map(seconds_of, living(os.getpid())))


def living(pid: int | str) -> list[str]:
    """The processes below a process that have not ended, where the system tells: on Linux."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            below = task.read_text().split()
        except OSError:  # it has just ended
            continue
        found += below
        for child in below:
            found += living(child)
    return found


def seconds_of(pid: str) -> float:
    """What a process has used, with those of its own that have ended and were waited for."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    return TICK * sum(map(int, text.rpartition(")")[2].split()[TIMES]))


class Spent:
    """Measures in the process that runs a test, adds up in the one that reports."""

    def __init__(self):
        self.last = 0.0
        self.finding = []
        self.is_last = True
        self.files = Counter()
        self.tests = Counter()
        self.found = 0.0

    def pytest_collection_finish(self):
        """Called once the tests are found, and what they need is imported; in each worker."""
        self.last = cpu_seconds()
        self.finding = [(FINDING, self.last)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        """Called before a test. To look at all processes takes a millisecond: once a file will do,
        behind its last test.
        """
        self.is_last = nextitem is None or nextitem.path != item.path

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item):
        """Called after a test's set-up, the test itself and its end; the report travels."""
        report = yield
        if report.when == "teardown" and self.is_last:  # the last of a file's reports has all of it
            now = cpu_seconds()
            # less than before where a process has ended that nobody waited for
            own = (SPENT, max(0.0, now - self.last))
            report.user_properties += [*self.finding, own]
            self.last, self.finding = now, []
        return report

    def pytest_runtest_logreport(self, report):
        """Called where the results come together."""
        file = report.nodeid.split("::")[0]
        self.tests[file] += report.when == "call"
        if report.when == "teardown":  # a test's reports share one list
            seconds = dict(report.user_properties)
            self.files[file] += seconds.get(SPENT, 0)
            self.found += seconds.get(FINDING, 0)

    def pytest_terminal_summary(self, terminalreporter):
        """Two tables at the end of the run."""
        folders, counts = Counter(), Counter()
        for file, seconds in self.files.items():
            folder = "/".join(PurePosixPath(file).parts[:3][: file.count("/")])
            folders[folder] += seconds
            counts[folder] += self.tests[file]
        line = terminalreporter.write_line
        whole = sum(self.files.values())
        tests = sum(self.tests.values())
        line(f"CPU seconds: {whole:.0f} for {tests} tests, {self.found:.0f} to find them")
        for folder, seconds in folders.most_common():
            line(f"{seconds:8.1f}  {counts[folder]:5}  {folder}")
        line("the dearest files:")
        for file, seconds in self.files.most_common(FILES):
            line(f"{seconds:8.1f}  {self.tests[file]:5}  {file}")
