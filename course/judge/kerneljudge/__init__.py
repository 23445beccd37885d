"""kerneljudge, installed without the course around it: `from kerneljudge import judge, Demands`."""

from course.judge import *  # noqa: F403
from course.judge import __all__  # noqa: F401
from course.judge.__main__ import main  # noqa: F401
