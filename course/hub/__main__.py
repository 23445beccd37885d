"""``make hub``: a JupyterHub for a class, on this machine.

make hub                                       for this machine alone
make hub FLAGS="--ip 0.0.0.0 --cert FILE --key FILE"     for the network, by TLS
make hub FLAGS=--open                          whoever signs up is let in at once
python -m course.hub stop                      end all learners' servers, after the Hub
python -m course.hub forget                    delete what the board keeps of the class
python -m course.hub forget --everything       and all accounts with their homes, too

What deletes asks before it does; --yes answers for who is not there to be asked.
"""

import argparse
import contextlib
import os
import shutil
import sys
from datetime import datetime
from pathlib import Path

import psutil

from course.hub import accounts, provide, ready, settings, spawning
from course.hub.settings import Settings, Unsafe
from utils.gpu_queue.tickets import make_folder

MEANT = "forget"  # what somebody types who means it
MOST_HOMES = 10  # that are named before they are deleted


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status, unless it becomes the Hub."""
    os.umask(0o022)
    options = parser().parse_args(arguments)
    try:
        {"start": start, "stop": stop, "forget": forget}[options.verb](options)
    except (Unsafe, accounts.Strange, provide.NotInstalled) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """What can be said on the command line."""
    default = Settings()
    made = argparse.ArgumentParser(prog="python -m course.hub", description="A Hub for a class.")
    made.add_argument("verb", nargs="?", choices=("start", "stop", "forget"), default="start")
    say = made.add_argument
    say("--ip", default=default.ip, help="where it listens; other than loopback needs TLS")
    say("--port", type=int, default=default.port)
    say("--cert", default="", metavar="FILE", help="a TLS certificate with its chain (PEM)")
    say("--key", default="", metavar="FILE", help="the certificate's key (PEM)")
    say("--instructor", action="append", metavar="NAME", help="who teaches; again for another one")
    say("--open", action="store_true", help="let in at once whoever signs up")
    say("--trusting", action="store_true", help="without root: all learners are one account")
    size = settings.bytes_of
    say("--memory", type=size, default=default.memory, metavar="2G", help="for each learner")
    say("--cpus", type=float, default=default.cpus, help="cores' worth for each learner")
    say("--processes", type=int, default=default.processes, help="for each learner, with threads")
    say(
        "--file",
        type=size,
        default=default.file,
        metavar="4G",
        help="the largest file of a learner",
    )
    say("--learners", type=int, default=default.learners, help="who share the GPUs' memory")
    say(
        "--idle", type=int, default=default.idle, help="seconds after which an idle server is ended"
    )
    say("--place", type=Path, help="where accounts and homes are kept")
    say("--everything", action="store_true", help="with forget: accounts and homes, too")
    say("--yes", action="store_true", help="with forget: delete without a question")
    return made


def chosen(options) -> Settings:
    """The settings that somebody chose."""
    place = options.place
    if place is None:
        place = settings.ROOT / "my" / "hub" if options.trusting else settings.PLACE
    return Settings(
        ip=options.ip,
        port=options.port,
        cert=str(Path(options.cert).resolve()) if options.cert else "",
        key=str(Path(options.key).resolve()) if options.key else "",
        instructors=tuple(options.instructor or Settings.instructors),
        open=options.open,
        trusting=options.trusting,
        memory=options.memory,
        cpus=options.cpus,
        processes=options.processes,
        file=options.file,
        idle=options.idle,
        learners=options.learners,
        queue=str(place / "gpu_queue") if options.trusting else Settings.queue,
        place=str(place.resolve()),
    )


def start(options) -> None:
    """Become the Hub."""
    hub = chosen(options)
    settings.refuse_unsafe(hub, root=os.geteuid() == 0)
    refuse_a_second(hub)
    if not hub.trusting:
        settings.refuse_closed()
    provide.provide()
    prepare(hub)
    print("Starting the Hub: its address comes below, once it answers there", flush=True)
    become(hub)


def prepare(hub: Settings) -> None:
    """Make the Hub's folders and the board's account."""
    hub.secret.mkdir(parents=True, exist_ok=True, mode=0o700)
    hub.secret.chmod(0o700)
    hub.homes.mkdir(exist_ok=True)
    if not hub.own.exists():
        from course.hub.config import OWN

        hub.own.write_text(OWN)
        hub.own.chmod(0o600)
    make_folder(Path(hub.queue))
    if hub.trusting:
        hub.board.mkdir(exist_ok=True, mode=0o700)
    else:
        accounts.ensure(hub.board_account, hub.board)
        settings.refuse_closed(hub.board_account)


def become(hub: Settings) -> None:
    """Replace this process by JupyterHub."""
    os.environ[settings.SETTINGS] = str(hub.write())
    # Of no effect on accounts that are there
    os.environ["CUDA_COURSE_FIRST_PASSWORD"] = accounts.new_password()
    os.environ[ready.SAY] = "yes"
    os.chdir(hub.secret)
    file = Path(__file__).with_name("jupyterhub_config.py")
    words = ["-m", "jupyterhub", "-f", str(file), "--log-level=WARN"]
    os.execv(sys.executable, [sys.executable, *words])


def stop(options) -> None:
    """End all servers of learners, once the Hub has ended."""
    hub = chosen(options)
    if is_running(hub):
        raise Unsafe("the Hub still runs: end it first (Ctrl-C)")
    end_proxy(hub)
    ended = accounts.end_all(accounts.of_class(hub.homes))
    print(f"ended: {', '.join(ended) or 'nobody had a server'}")


def forget(options) -> None:
    """Delete what the board keeps; with --everything accounts, homes and the Hub itself, too."""
    hub = chosen(options)
    if options.everything and is_running(hub):
        raise Unsafe("the Hub still runs: end it first (Ctrl-C)")
    if not (options.yes or agreed(what_goes(hub, options.everything))):
        raise Unsafe("nothing was deleted")
    from course.hub.board.store import Store

    file = hub.board / "class.sqlite"
    if file.exists():
        store = Store(file)
        store.forget()
        store.close()
        print("The board has forgotten the class")
    if not options.everything:
        return
    end_proxy(hub)
    gone = accounts.remove(hub.homes, hub.board_account)
    for folder in (hub.secret, hub.board, hub.homes):
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(gone)} learners' accounts with their homes, and the Hub's own, are deleted")
    print(what_is_left(hub))


def what_is_left(hub: Settings) -> str:
    """Delete what nobody has written to or uses; one line on what stays and how that goes."""
    from course.hub.config import OWN

    with contextlib.suppress(OSError):
        if hub.own.read_text() == OWN:
            hub.own.unlink()
    for folder in (Path(hub.place), Path(spawning.RUN), Path(hub.queue)):
        with contextlib.suppress(OSError):
            folder.rmdir()  # none that holds anything
    if hub.own.exists():
        return f"Your own settings stay: {hub.own}. So does the course with its packages."
    return "What stays is the course with its packages: delete its folder, if you want."


def what_goes(hub: Settings, everything: bool) -> str:
    """What would be deleted, in a line for each."""
    from course.hub.board.store import Store

    lines = []
    file = hub.board / "class.sqlite"
    if file.exists():
        store = Store(file)
        joined, told = len(store.learners()), len(store.events())
        store.close()
        lines.append(f"what the board keeps: {joined} who joined, {told} answers and places")
    if everything:
        homes = [each.pw_dir for each in accounts.of_class(hub.homes)]
        lines.append(f"{len(homes)} homes below {hub.homes}, with all notebooks in them:")
        lines += [f"  {home}" for home in homes[:MOST_HOMES]]
        lines += [f"  and {len(homes) - MOST_HOMES} more"] if len(homes) > MOST_HOMES else []
        lines.append(f"all accounts, and the Hub's own files in {hub.place} (not what you wrote)")
    return "\n".join(lines)


def agreed(goes: str) -> bool:
    """Whether whoever sits there means it, after they were told what would be deleted."""
    if not goes:
        return True
    print(f"This deletes for good:\n{goes}")
    if not sys.stdin.isatty():
        print("Nobody is there to be asked: say --yes")
        return False
    return input(f"Type {MEANT!r} to go on: ").strip() == MEANT


def end_proxy(hub: Settings) -> None:
    """End the proxy that a killed Hub has left; the next Hub does that itself."""
    with contextlib.suppress(TypeError, psutil.Error):
        proxy = psutil.Process(_proxy_of(hub))
        if any("configurable-http-proxy" in word for word in proxy.cmdline()):
            proxy.terminate()


def is_running(hub: Settings) -> bool:
    """Whether the Hub that these settings name runs."""
    return running(hub) is not None


def running(hub: Settings) -> psutil.Process | None:
    """The process of the Hub that these settings name; None where it does not run."""
    with contextlib.suppress(OSError, ValueError, psutil.Error):
        process = psutil.Process(int((hub.secret / "hub.pid").read_text()))
        if "jupyterhub" in process.cmdline():  # which a dead one that nobody waited for lacks
            return process
    return None


def refuse_a_second(hub: Settings) -> None:
    """Raise Unsafe, with who runs where, before anything of a running Hub is disturbed."""
    process = running(hub)
    if process is not None:
        where = settings.read(hub.secret / "settings.json").told
        since = datetime.fromtimestamp(process.create_time()).strftime("%H:%M on %d %B")
        raise Unsafe(
            f"a Hub of this class runs already: {where}, process {process.pid} of "
            f"{process.username()}, since {since}. End it (Ctrl-C, or kill {process.pid}) before "
            "you start another"
        )
    own = _proxy_of(hub)
    for port in (hub.port, hub.hub_port, hub.proxy_port, hub.board_port):
        holder = listening(port)
        if holder is not None and own != holder.pid:
            raise Unsafe(
                f"port {port} is taken by process {holder.pid} of {holder.username()} "
                f"({' '.join(holder.cmdline())[:80]}): end that, or choose another --port"
            )


def listening(port: int) -> psutil.Process | None:
    """The process that listens on a port of this machine, as far as we may see it."""
    with contextlib.suppress(psutil.Error):
        for each in psutil.net_connections("tcp"):
            if each.status == psutil.CONN_LISTEN and each.laddr.port == port and each.pid:
                return psutil.Process(each.pid)
    return None


def _proxy_of(hub: Settings) -> int | None:
    """The number of the proxy that a killed Hub has left: the next Hub ends it itself."""
    with contextlib.suppress(OSError, ValueError):
        return int((hub.secret / "proxy.pid").read_text())
    return None


if __name__ == "__main__":
    sys.exit(main())
