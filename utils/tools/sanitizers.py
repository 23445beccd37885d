"""Run a program that the compiler's sanitizers watch, and keep of their report what is about it."""

import os
import subprocess
from pathlib import Path

#: Words of the lines that say what was done, and where
TELLING = ("ERROR", "READ", "WRITE", "is located", "freed by", "allocated by")
OPTIONS = "detect_stack_use_after_return=1:detect_leaks=0"


def caught(program: str | Path, finds: str) -> str:
    """Run a program built with `-fsanitize=address`; the lines of the report about its own code.

    finds: the mistake that is expected, such as "heap-use-after-free". Where another one is found,
    the lines say so as well; where none is, they say that.
    """
    env = {**os.environ, "ASAN_OPTIONS": OPTIONS}
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, env=env)
    report = done.stderr
    if "ERROR" not in report:
        return f"no mistake was found: no {finds}\n{done.stdout}".rstrip()
    words = (*TELLING, Path(program).name + ".cpp")
    lines = report.replace(os.getcwd() + "/", "").splitlines()
    telling = [line for line in lines if any(w in line for w in words) and "SUMMARY" not in line]
    another = [] if finds in report else [f"this is no {finds}:"]
    return "\n".join([*another, *(line.split(" at pc ")[0] for line in telling)])
