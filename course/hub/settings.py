"""What may be set of a Hub, where its files are, and what is refused because it would be unsafe.

`make hub` runs this file first, by any Python 3 and before it installs anything: gigabytes that
learners could not read would be for nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import getpass
import ipaddress
import json
import os
import pwd
import re
import socket
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path

SETTINGS = "CUDA_COURSE_HUB"  # names the file in which JupyterHub's own process finds them
PLACE = Path("/var/lib/cuda-course")
ROOT = Path(__file__).resolve().parents[2]  # the course's folder
NAME = r"[a-z][a-z0-9_-]{0,23}"  # an account of the class: with a prefix, a Unix account's name
INSTRUCTOR = r"[a-z0-9][a-z0-9_.@-]{0,63}"  # who teaches: perhaps an institution's name for them

WITHOUT_TLS = """\
{ip} can be reached from other machines, and without TLS everybody in the network could read
passwords and take over notebooks. Three ways to TLS:
- a certificate of your institution, or one of Let's Encrypt's for a machine with a name in the DNS
  (`sudo apt install certbot`, then `sudo certbot certonly --standalone -d hub.example.org`):
  make hub FLAGS="--ip {ip} --cert FULLCHAIN.pem --key PRIVKEY.pem"
- a proxy on this machine that ends TLS, such as Caddy (`caddy reverse-proxy --from hub.example.org
  --to 127.0.0.1:{port}`) or nginx: then leave --ip out, the Hub listens to this machine alone
- no TLS at all, and this machine alone: leave --ip out, and let the others in by SSH
  (`ssh -L {port}:127.0.0.1:{port} THIS_MACHINE`)"""
NOT_ROOT = """\
the Hub gives each learner a Unix account, and only root can do that: `sudo make hub`. To try it
alone, or with people who may read each other's files, all as {user}: make hub FLAGS=--trusting"""


class Unsafe(ValueError):
    """A Hub that must not be started so."""


@dataclass(frozen=True)
class Settings:
    """A Hub as it is to be started.

    memory: bytes for a learner; cpus: cores' worth; processes: processes and threads; file: bytes
    of one file; idle: seconds after which a server that nobody uses is ended. learners: among how
    many a GPU's memory is divided; queue: the folder of the queue for what is timed there.
    trusting: all learners are one Unix account; prefix: how the accounts of the others begin.
    """

    ip: str = "127.0.0.1"
    port: int = 8000
    cert: str = ""
    key: str = ""
    instructors: tuple = ("instructor",)
    open: bool = False
    trusting: bool = False
    memory: int = 2 << 30
    cpus: float = 2.0
    processes: int = 512
    file: int = 4 << 30
    idle: int = 3600
    learners: int = 30
    prefix: str = "class-"
    queue: str = "/run/cuda-course-gpu"
    place: str = str(PLACE)
    hub_port: int = 8081
    proxy_port: int = 8001
    board_port: int = 8002

    @property
    def secret(self) -> Path:
        """The Hub's own folder: accounts, cookies, tokens. For nobody else to read."""
        return Path(self.place) / "hub"

    @property
    def board(self) -> Path:
        """The board's folder."""
        return Path(self.place) / "board"

    @property
    def board_account(self) -> str:
        """The board's Unix account. No learner's name begins with a -."""
        return f"{self.prefix}-board"

    @property
    def homes(self) -> Path:
        """Where the learners' homes are."""
        return Path(self.place) / "homes"

    @property
    def own(self) -> Path:
        """What whoever runs the Hub may add to JupyterHub's configuration, and the last word."""
        return Path(self.place) / "hub_config.py"

    @property
    def address(self) -> str:
        """Where the Hub listens."""
        return self._url(self.ip)

    @property
    def told(self) -> str:
        """The address to tell people: where it listens everywhere, by this machine's name."""
        return self._url(socket.getfqdn() if self.ip in ("0.0.0.0", "::") else self.ip)

    def _url(self, host):
        host = f"[{host}]" if ":" in host else host
        return f"{'https' if self.cert else 'http'}://{host}:{self.port}"

    def write(self) -> Path:
        """Write them where JupyterHub's process will look; that file's path."""
        path = self.secret / "settings.json"
        path.write_text(json.dumps(dataclasses.asdict(self)))
        return path


def read(path: str | Path | None = None) -> Settings:
    """The settings that were written; of the Hub that this process belongs to, unless named."""
    found = json.loads(Path(path or os.environ[SETTINGS]).read_text())
    return Settings(**{**found, "instructors": tuple(found["instructors"])})


def refuse_unsafe(settings: Settings, *, root: bool) -> None:
    """Raise Unsafe for what must not run so, with the way out. root: whether root starts it."""
    if not is_loopback(settings.ip) and not (settings.cert and settings.key):
        raise Unsafe(WITHOUT_TLS.format(ip=settings.ip, port=settings.port))
    if bool(settings.cert) != bool(settings.key):
        raise Unsafe("a certificate needs its key, and a key its certificate: --cert and --key")
    if settings.cert:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.cert, settings.key)
        except (OSError, ssl.SSLError) as error:
            raise Unsafe(f"{settings.cert} with {settings.key} is no TLS: {error}") from None
    if not root and not settings.trusting:
        raise Unsafe(NOT_ROOT.format(user=getpass.getuser()))
    if root and settings.trusting:
        raise Unsafe("--trusting would run everybody's code as root: start it as somebody else")
    if settings.trusting and settings.open and not is_loopback(settings.ip):
        raise Unsafe("--trusting with --open would run anybody's code as you")
    wrong = [name for name in settings.instructors if not re.fullmatch(INSTRUCTOR, name)]
    if wrong:
        raise Unsafe(f"{wrong[0]!r} is no account's name: small letters, digits, - _ . @")


def is_loopback(ip: str) -> bool:
    """Whether only this machine reaches an address. Names are not looked up, but for localhost."""
    if ip == "localhost":
        return True
    try:
        return ipaddress.ip_address(ip).is_loopback
    except ValueError:
        return False


def refuse_unreadable(folder: Path, account: str) -> None:
    """Raise Unsafe where an account could not read the course, or could change it."""
    who = pwd.getpwnam(account)
    for path in [folder, *folder.parents]:
        facts = path.stat()
        mine = facts.st_mode & (0o7 if facts.st_uid != who.pw_uid else 0o700)
        if not mine & 0o5:
            raise Unsafe(
                f"learners cannot use {folder}: {path} is closed to them. The course has to lie "
                "where all can read, such as in /srv/cuda-course, and its Python, too. The "
                "system's does: `rm -rf .venv && make hub PYTHON=/usr/bin/python3`"
            )
        if facts.st_mode & 0o002 and not facts.st_mode & 0o1000:
            raise Unsafe(f"anybody can write to {path}: `chmod o-w {path}`")


def refuse_closed(account: str = "nobody") -> None:
    """Raise Unsafe where an account could not read the course or its Python, or could change it."""
    for folder in (ROOT, Path(sys.prefix), Path(sys.base_prefix)):
        refuse_unreadable(folder, account)


def bytes_of(text: str) -> int:
    """2147483648 of "2G"."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", text.strip().upper())
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: 2G, 512M")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2] or " "))


if __name__ == "__main__" and os.geteuid() == 0:
    try:
        refuse_closed()
    except Unsafe as no:
        sys.exit(f"error: {no}")
