"""Is it honest? What was found in the candidate's process and in its text."""

from course.judge.report import Reason
from course.judge.words import sentence


def reasons(given, box, trials):
    """The reasons of all findings."""
    return [of_finding(finding) for finding in box.findings]


def of_finding(finding):
    """A Reason of what the watch noted."""
    where = f" ({finding['where']})" if finding["where"] else ""
    return Reason(finding["key"], f"{sentence(finding['key'])} {finding['what']}{where}")
