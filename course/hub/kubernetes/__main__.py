"""``python -m course.hub.kubernetes``: print the values of a class for Zero to JupyterHub.

python -m course.hub.kubernetes --image REGISTRY/cuda-course:TAG --host hub.example.org \
    --email you@example.org > values.yaml

README.md in this folder says what to do with them.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from string import Template

from course.hub import spawning
from course.hub.accounts import PASSWORD_LENGTH
from course.hub.settings import INSTRUCTOR, NAME, Settings

HERE = Path(__file__).parent
#: Where the Dockerfile puts the course
PYTHON = "/srv/cuda-course/.venv/bin/python"
GPU = "nvidia.com/gpu"
GIB = 1 << 30


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    options = parser().parse_args(arguments)
    wrong = [name for name in options.instructor if not re.fullmatch(INSTRUCTOR, name)]
    if wrong:
        print(f"error: {wrong[0]!r} is no account's name", file=sys.stderr)
        return 1
    print(values(options), end="")
    return 0


def parser() -> argparse.ArgumentParser:
    """What can be said on the command line."""
    default = Settings()
    made = argparse.ArgumentParser(prog="python -m course.hub.kubernetes")
    say = made.add_argument
    say("--image", type=_image, required=True, metavar="NAME:TAG", help="made by the Dockerfile")
    say("--host", required=True, help="the Hub's name in the DNS, for which TLS is had")
    say("--email", required=True, help="whom Let's Encrypt tells when a certificate ends")
    say("--instructor", action="append", metavar="NAME", help="who teaches; again for another one")
    say("--open", action="store_true", help="let in at once whoever signs up")
    say("--gpu", default=GPU, metavar="RESOURCE", help="such as nvidia.com/mig-1g.10gb, or none")
    say("--pods-per-gpu", type=_count, default=1, help="into how many the cluster divides a GPU")
    say("--memory", type=float, default=4, metavar="GIB", help="for each learner")
    say("--cpus", type=float, default=default.cpus, help="cores' worth for each learner")
    say("--disk", type=int, default=5, metavar="GIB", help="for each learner's files")
    say("--idle", type=int, default=default.idle, help="seconds until an idle server is ended")
    made.set_defaults(instructor=[])
    return made


def _image(text: str) -> tuple[str, str]:
    """("registry/name", "tag") of an image that is named with its tag."""
    name, _, tag = text.rpartition(":")
    if not name or not tag or "/" in tag:
        raise argparse.ArgumentTypeError(f"{text!r} names no tag: REGISTRY/cuda-course:TAG")
    return name, tag


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of pods")
    return int(text)


def values(options) -> str:
    """The values of a class, as YAML. What is filled in is JSON, which YAML contains."""
    name, tag = options.image
    filled = {
        "image": f"{name}:{tag}",
        "image_name": name,
        "image_tag": tag,
        "host": options.host,
        "email": options.email,
        "instructors": options.instructor or list(Settings.instructors),
        "open": options.open,
        "pods_per_gpu": options.pods_per_gpu if options.gpu != "none" else 1,
        "name": NAME,
        "password_length": PASSWORD_LENGTH,
        "python": PYTHON,
        "command": spawning.command(Settings(), PYTHON),
        "page": f"/lab/tree/{spawning.CLASS_PAGE}",
        "threads": str(max(1, int(options.cpus))),
        "memory": int(options.memory * GIB),
        "cpus": options.cpus,
        "disk": f"{options.disk}Gi",
        "idle": options.idle,
        "profiles": profiles(options.gpu, options.pods_per_gpu),
    }
    text = Template((HERE / "values.yaml").read_text(encoding="utf-8"))
    lines = (HERE / "extra_config.py").read_text(encoding="utf-8").splitlines()
    indented = "\n".join(f"      {line}" if line else "" for line in lines)
    return text.substitute(
        {key: json.dumps(value) for key, value in filled.items()} | {"extra_config": indented}
    )


def profiles(gpu: str, pods_per_gpu: int) -> list[dict]:
    """What a learner can choose between when a server starts; nothing where there is no GPU."""
    if gpu == "none":
        return []
    whose = "A share of a GPU" if pods_per_gpu > 1 else "A GPU of your own"
    without = "Everything runs, checks included; recorded times stand in for measured ones."
    return [
        {"display_name": "No GPU", "slug": "cpu", "default": True, "description": without},
        {
            "display_name": whose,
            "slug": "gpu",
            "description": "Yours for as long as your server runs: stop it when you are done.",
            "kubespawner_override": {
                "extra_resource_limits": {gpu: "1"},
                "tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}],
            },
        },
    ]


if __name__ == "__main__":
    sys.exit(main())
