"""python -m course.judge SUBMISSION --task TASK: is what was handed in right, fast and honest?

Prints the report; exit status 0 for "accepted", 1 for "refused", 2 for "undecided".
"""

import argparse
import sys
from pathlib import Path

from course.judge import tasks
from course.judge.handed_in import NotAKernel
from course.judge.judging import judge

STATUS = {"accepted": 0, "refused": 1, "undecided": 2}


def main(arguments=None) -> int:
    """Judge one submission, as the command line says."""
    parser = argparse.ArgumentParser(prog="kerneljudge", description=__doc__.splitlines()[0])
    parser.add_argument("submission", type=Path, help="a .py or .cu file that was handed in")
    parser.add_argument("--task", type=Path, required=True, help="`reference`, `inputs`, `demands`")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there, too")
    parser.add_argument("--seed", type=int, help="draw the inputs of an earlier report again")
    parser.add_argument("--library", action="store_true", help="libraries may compute, too")
    parser.add_argument("--most", type=int, help="largest size, for a task in KernelBench's form")
    given = parser.parse_args(arguments)
    try:
        task = tasks.read(given.task, given.most)
    except (OSError, SyntaxError, tasks.NoTask) as error:
        parser.error(f"--task: {error}")
    if given.library:
        task = tasks.without_library(task)
    try:
        report = judge(given.submission, task.reference, task.inputs, task.demands, seed=given.seed)
    except (OSError, NotAKernel) as error:
        parser.error(str(error))
    print(report)
    if given.json:
        given.json.write_text(report.to_json() + "\n", encoding="utf-8")
    return STATUS[report.verdict]


if __name__ == "__main__":
    sys.exit(main())
