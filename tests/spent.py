"""Where a test run's time goes: CPU seconds, by folder and file, and waits. A plugin of pytest.

    .venv/bin/python -m pytest -p tests.spent tests/course

Seconds of a processor say the same on a busy machine, a clock does not. What a test starts counts
with the test that runs while it works, and so does what stays to serve later ones: a kernel, a
browser, the process whose copies launch an answer's kernels.

A file waited for its seconds by the clock less those of a processor: for a process, a time limit,
or, with more workers than cores, for its turn. What a run loses shows in the seconds in which cores
of the whole machine had nothing to do: how many, in which tenth of the run, beside which files.
"""

import os
import resource
import time
from collections import Counter
from pathlib import Path, PurePosixPath

import pytest

SPENT = "cpu seconds"
FINDING = "cpu seconds to find the tests"
CLOCK = "seconds by the clock"
FILES = 20  # so many files are listed
LOOK = 2  # seconds between two looks at the cores
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


def idle_seconds() -> float:
    """For how long cores of this machine have had nothing to do so far, added up; on Linux."""
    try:
        first = Path("/proc/stat").read_text().split(maxsplit=6)
    except OSError:
        return 0.0
    return TICK * (int(first[4]) + int(first[5]))  # idle, and waiting for a disk


class Cores:
    """When cores had nothing to do, and which files the workers were at. For who reports."""

    def __init__(self):
        self.begun = self.seen = time.monotonic()
        self.idle = idle_seconds()
        self.spans = []  # (seconds since the beginning, of these so many idle)
        self.at = {}  # worker -> the file that it is at
        self.ended = {}  # worker -> when its last report came
        self.beside = Counter()  # file -> idle seconds, a worker's share each

    def look(self, worker, file):
        """A worker has a report about a test of this file."""
        now = time.monotonic()
        if now - self.seen > LOOK:
            self.add(now)
        self.at[worker], self.ended[worker] = file, now

    def add(self, now):
        idle = idle_seconds()
        self.spans.append((now - self.begun, idle - self.idle))
        for file in self.at.values():
            self.beside[file] += (idle - self.idle) / len(self.at)
        self.seen, self.idle = now, idle

    def tenths(self):
        """Idle seconds in each tenth of the run."""
        tenths = [0.0] * 10
        for until, idle in self.spans:
            tenths[min(9, int(10 * until / self.spans[-1][0]))] += idle
        return tenths

    def lines(self):
        self.add(time.monotonic())
        by_tenths = " ".join(f"{idle:.0f}" for idle in self.tenths())
        whole = self.seen - self.begun
        idle = sum(idle for _, idle in self.spans)
        own = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
        yield f"{os.cpu_count()} cores for {whole:.0f} s, {own:.0f} CPU seconds in this process"
        yield f"without work: {idle:.0f} s of a core, in tenths of the run {by_tenths}"
        last = max(self.ended.values(), default=0)
        left = " ".join(f"{last - end:.0f}" for end in sorted(self.ended.values()))
        yield f"workers were done {left} s before the last of them"
        beside = [(file, idle) for file, idle in self.beside.most_common(FILES) if idle >= 1]
        yield from ["seconds of a core without work beside:"] if beside else []
        for file, idle in beside:
            yield f"{idle:8.1f}  {file}"


class Spent:
    """Measures in the process that runs a test, adds up in the one that reports."""

    def __init__(self):
        self.last = 0.0
        self.begun = 0.0
        self.finding = []
        self.is_last = True
        self.cores = Cores()
        self.clock = Counter()
        self.files = Counter()
        self.tests = Counter()
        self.found = 0.0

    def pytest_collection_finish(self):
        """Called once the tests are found, and what they need is imported; in each worker."""
        self.last, self.begun = cpu_seconds(), time.monotonic()
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
            clock = (CLOCK, time.monotonic() - self.begun)
            report.user_properties += [*self.finding, own, clock]
            self.last, self.finding, self.begun = now, [], time.monotonic()
        return report

    def pytest_runtest_logreport(self, report):
        """Called where the results come together."""
        file = report.nodeid.split("::")[0]
        self.tests[file] += report.when == "call"
        self.cores.look(getattr(report, "worker_id", ""), file)  # xdist's
        if report.when == "teardown":  # a test's reports share one list
            seconds = dict(report.user_properties)
            self.files[file] += seconds.get(SPENT, 0)
            self.found += seconds.get(FINDING, 0)
            self.clock[file] += seconds.get(CLOCK, 0)

    def pytest_terminal_summary(self, terminalreporter):
        """Tables at the end of the run."""
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
        line("files that waited longest:")
        waited = Counter({file: self.clock[file] - self.files[file] for file in self.files})
        for file, seconds in waited.most_common(FILES):
            line(f"{seconds:8.1f}  {self.tests[file]:5}  {file}")
        for text in self.cores.lines():
            line(text)
