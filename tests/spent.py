"""Where a test run's time goes: CPU seconds, by folder and file. A plugin of pytest.

    .venv/bin/python -m pytest -p tests.spent tests/course

Seconds of a processor say the same on a busy machine, a clock does not. What a test starts and
waits for counts, too; a browser or a notebook's kernel counts with the test that ends it.
"""

import resource
from collections import Counter
from pathlib import PurePosixPath

import pytest

SPENT = "cpu seconds"
FILES = 40  # so many files are listed


def pytest_configure(config):
    """Called by pytest before it looks for tests."""
    config.pluginmanager.register(Spent(), "spent")


def cpu_seconds() -> float:
    """What this process and the children that it has waited for have used so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


class Spent:
    """Measures in the process that runs a test, adds up in the one that reports."""

    def __init__(self):
        self.last = cpu_seconds()
        self.files = Counter()
        self.tests = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item):
        """Called after a test's set-up, the test itself and its end; the report travels."""
        report = yield
        if report.when == "teardown":  # the last of a test's reports, so that it has all of it
            now = cpu_seconds()
            report.user_properties.append((SPENT, now - self.last))
            self.last = now
        return report

    def pytest_runtest_logreport(self, report):
        """Called where the results come together."""
        file = report.nodeid.split("::")[0]
        self.tests[file] += report.when == "call"
        own = [value for name, value in report.user_properties if name == SPENT]
        self.files[file] += (
            own[-1] if own else 0
        )  # an item's reports share one list, the last is its own

    def pytest_terminal_summary(self, terminalreporter):
        """Two tables at the end of the run."""
        folders, counts = Counter(), Counter()
        for file, seconds in self.files.items():
            folder = "/".join(PurePosixPath(file).parts[:3][: file.count("/")])
            folders[folder] += seconds
            counts[folder] += self.tests[file]
        line = terminalreporter.write_line
        line(f"CPU seconds: {sum(self.files.values()):.0f}, tests: {sum(self.tests.values())}")
        for folder, seconds in folders.most_common():
            line(f"{seconds:8.1f}  {counts[folder]:5}  {folder}")
        line("by file:")
        for file, seconds in self.files.most_common(FILES):
            line(f"{seconds:8.1f}  {self.tests[file]:5}  {file}")
