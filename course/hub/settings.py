"""What may be set of a Hub, where its files are, and what is refused because it would be unsafe.

`make hub` runs this file first, by any Python 3 and before it installs anything: gigabytes that
learners could not read would be for nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import getpass
import ipaddress
import itertools
import json
import os
import pwd
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SETTINGS = "CUDA_COURSE_HUB"  # names the file in which JupyterHub's own process finds them
PLACE = Path("/var/lib/cuda-course")
ROOT = Path(__file__).resolve().parents[2]  # the course's folder
VENV = ROOT / ".venv"
MINORS = 13, 12, 11  # of the Python 3 that the course runs on, as `utils.setup.install` has them
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
CLOSED = """\
learners cannot use {folder}: {path} is closed to them. {way_out}"""
ELSEWHERE = """\
The course has to lie where all can read. This makes a copy for the class there, and starts it:
  {sudo}git clone {root} {copy} && cd {copy} && {make}"""
NEW = """\
The environment has to be made with a Python that all can use. This starts the Hub with one:
  {make}"""
ANOTHER = """\
The environment here was made with it. This puts it aside, and makes one that all can use:
  {sudo}mv {venv} {aside} && {make}"""
NO_PYTHON = """\
No Python that all can use and that can make environments was found: install one
(`sudo apt install python3 python3-venv`), and run it again."""
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
    def first_passwords(self) -> Path:
        """Names and first passwords of the instructors' accounts, as they were made."""
        return self.secret / "first_passwords"

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
    path = closed_at(folder, account)
    if path is not None:
        raise Unsafe(CLOSED.format(folder=folder, path=path, way_out=way_out(folder)))
    for path in [folder, *folder.parents]:
        mode = path.stat().st_mode
        if mode & 0o002 and not mode & 0o1000:
            raise Unsafe(f"anybody can write to {path}: `chmod o-w {path}`")


def closed_at(folder: Path, account: str) -> Path | None:
    """The folder on the way to another at which an account comes no further; None: it gets in."""
    uid = pwd.getpwnam(account).pw_uid
    for path in [folder, *folder.parents]:
        facts = path.stat()
        if not facts.st_mode & (0o500 if facts.st_uid == uid else 0o005):
            return path
    return None


def refuse_closed(account: str = "nobody") -> None:
    """Raise Unsafe where an account could not read the course or its Python, or could change it."""
    for folder in (ROOT, *folders_of_python()):
        refuse_unreadable(folder, account)


def folders_of_python() -> tuple[Path, ...]:
    """The folders of the Python that the Hub and learners use: the environment's where one is."""
    running = Path(sys.prefix), Path(sys.base_prefix)
    if VENV in running:
        return running
    base = _said(VENV / "bin" / "python", "import sys; print(sys.base_prefix)")
    return (VENV, Path(base)) if base else running  # else one will be made with this Python


def way_out(folder: Path) -> str:
    """What to do where a folder is closed to learners: one command."""
    python = usable_python()
    if python is None:
        return NO_PYTHON
    sudo = "sudo " if os.environ.get("SUDO_USER") else ""
    make = f"{sudo}make hub PYTHON={python}"
    if folder in (ROOT, VENV):
        copy = next(free_names(Path("/srv/cuda-course")))
        return ELSEWHERE.format(sudo=sudo, root=shlex.quote(str(ROOT)), copy=copy, make=make)
    if not VENV.exists():
        return NEW.format(make=make)
    aside = next(free_names(VENV.with_name(".venv_aside")))
    return ANOTHER.format(sudo=sudo, venv=VENV.name, aside=aside.name, make=make)


def free_names(path: Path) -> Iterator[Path]:
    """Paths where nothing is yet: this one, then numbered ones."""
    more = (path.with_name(f"{path.name}_{number}") for number in itertools.count(2))
    return (each for each in itertools.chain([path], more) if not os.path.lexists(each))


def usable_python(account: str = "nobody") -> str | None:
    """A Python of the system that an account can use, and that can make an environment."""
    asked = "import ensurepip, sys, venv; print(sys.version_info[1], sys.base_prefix)"
    for name in ("python3", *(f"python3.{minor}" for minor in MINORS)):
        path = shutil.which(name, path="/usr/bin:/usr/local/bin")
        said = _said(path, asked) if path else ""
        minor, _, base = said.partition(" ")
        if base and int(minor) in MINORS:
            folders = Path(base), Path(path).resolve().parent
            if not any(closed_at(each, account) for each in folders):
                return path
    return None


def _said(python, code):
    """What a Python prints when it runs some code; "" where it does not run."""
    words = [str(python), "-E", "-s", "-c", code]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


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
