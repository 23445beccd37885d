"""Zero to JupyterHub without a cluster: its schema, its defaults, and what its Hub runs.

The files are the chart's own; see tests/assets/zero-to-jupyterhub.
"""

import functools
import json
import os
from pathlib import Path

import yaml

from course.hub.kubernetes import __main__ as command
from utils.files import ROOT

FILES = ROOT / "tests" / "assets" / "zero-to-jupyterhub"
PLACE = "/usr/local/etc/jupyterhub"  # where the chart mounts things in the Hub's pod
NAMES = "hub", "proxy-api", "user-scheduler", "image-pull-secret", "priority", "singleuser"
ASKED = ["--image", "registry.example.org:5000/cuda-course:7", "--host", "hub.example.org"]
ASKED += ["--email", "ann@example.org"]


def values(*words: str) -> dict:
    """What the command writes for some words more on its command line."""
    return yaml.safe_load(command.values(command.parser().parse_args([*ASKED, *words])))


def schema() -> dict:
    """The chart's schema for its values."""
    return json.loads((FILES / "values.schema.json").read_text(encoding="utf-8"))


def merged(own: dict) -> dict:
    """Values over the chart's defaults, as helm merges them."""
    return _over(_defaults(), own)


@functools.cache
def _defaults():
    return yaml.safe_load((FILES / "values.yaml").read_text(encoding="utf-8"))


def _over(below, above):
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    both = {key: _over(below[key], above[key]) for key in below.keys() & above.keys()}
    return below | above | both


def mount(own: dict, place: Path) -> Path:
    """Lay out what the chart mounts into the Hub's pod; the file that JupyterHub reads there."""
    for folder in ("config", "secret"):
        (place / folder).mkdir(parents=True)
    (place / "secret" / "values.yaml").write_text(json.dumps(merged(own)))
    for name in NAMES:
        (place / "config" / name).write_text(name)
    secrets = {f"hub.services.{key}.apiToken": f"token-of-{key}" for key in own["hub"]["services"]}
    secrets |= {"hub.config.JupyterHub.cookie_secret": "ab" * 32}
    secrets |= {"hub.config.CryptKeeper.keys": "cd" * 32}
    for name, secret in secrets.items():
        (place / "secret" / name).write_text(secret)
    for name in ("z2jh.py", "jupyterhub_config.py"):
        text = (FILES / f"{name}.txt").read_text(encoding="utf-8").replace(PLACE, str(place))
        # pycurl is in the chart's image alone
        text = text.replace("tornado.curl_httpclient.Curl", "tornado.simple_httpclient.Simple")
        (place / name).write_text(text)
    return place / "jupyterhub_config.py"


def environment(**more: str) -> dict[str, str]:
    """What the Hub's pod has besides: the services' ports, as Kubernetes tells them."""
    ports = {"HUB_SERVICE_PORT": "8081", "PROXY_API_SERVICE_PORT": "8001"}
    return os.environ | ports | {"CLASS_FIRST_PASSWORD": "first-password-1"} | more
