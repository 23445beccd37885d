"""The GPUs of a class: turns for what is timed, and each learner's part of their memory.

`utils.gpu_queue` says how both work.
"""

import os
import sys
from pathlib import Path

from course.hub.settings import Settings
from utils.gpu_queue import FOLDER, sharing
from utils.gpu_queue.tickets import make_folder

LEARNERS = 30  # at most at one time, by which memory is divided


def queue(settings: Settings) -> Path:
    """Where the places in the queue are: a folder of this machine, gone when it starts again."""
    if settings.trusting:
        return Path(f"/tmp/cuda-course-gpu-{os.getuid()}")
    return Path("/run/cuda-course-gpu")


def variables(settings: Settings, number: int) -> dict[str, str]:
    """What a learner's server is told of the GPUs; the queue's folder is made where it is missing.

    number: any that is the learner's own: by it learners are dealt out to GPUs, or their slices.
    """
    folder = str(make_folder(queue(settings)))
    try:
        return sharing.environment(number, LEARNERS, folder)
    except ValueError as error:
        print(f"the GPUs are not shared out: {error}", file=sys.stderr)
        return {FOLDER: folder}
