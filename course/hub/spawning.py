"""A learner's server: under a Unix account of theirs, with limits, in their own copy of the course.

Of the Hub's spawners, systemd's is taken where systemd runs the machine; else the Hub's own for
local processes, with the account's name and the kernel's limits added.
"""

import os
import sys
from pathlib import Path

from course.hub import accounts, limits
from course.hub.settings import Settings
from utils.gpu_queue import FOLDER, sharing

COPY = "cuda-course"  # the learner's own copy, in their home
RUN = "/run/cuda-course"  # root's
CLASS_PAGE = "class.ipynb"  # how to join, in that copy
LOG = ".cuda-course.log"  # in their home: what their server says, where nothing else keeps it


def command(settings: Settings, python: str = sys.executable, log: str = "") -> list[str]:
    """What a learner's account runs: first the copy is made or renewed, then the server starts.

    A renewal that fails keeps nobody from what is there. log: a file in their home for all that is
    said meanwhile; else it is said where the Hub's own process speaks.
    """
    keep = f'exec >"$HOME/{log}" 2>&1; ' if log else ""
    # Their own temporary folder: in /tmp others see the names of their files
    ready = 'umask 077; mkdir -p "$HOME/.tmp"; export TMPDIR="$HOME/.tmp"'
    renew = f'{python} -m course.copies "$HOME/{COPY}"'
    page = f'{python} -m course.hub.page "$HOME/{COPY}/{CLASS_PAGE}"'
    serve = f'cd "$HOME/{COPY}" && exec {python} -m jupyterhub.singleuser "$@"'
    return ["/bin/sh", "-c", f"{keep}{ready}; {renew}; {page}; {serve}", "sh"]


def arguments() -> list[str]:
    """More words for the server. By TCP, which is the default, every account of the machine could
    read along what a kernel prints; a socket file is its owner's.
    """
    return [
        "--KernelManager.transport=ipc",
        "--LanguageServerManager.autodetect=False",
        "--log-level=WARN",
    ]


def environment(settings: Settings) -> dict[str, str]:
    """Variables of a learner's server and its kernels."""
    threads = str(max(1, int(settings.cpus)))
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin:/usr/bin:/bin"]),
        "CUDA_COURSE_BOARD": f"http://127.0.0.1:{settings.board_port}/services/board/",
        FOLDER: settings.queue,
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
    }


def home(settings: Settings, account: str) -> Path:
    """The home of a learner's Unix account."""
    return settings.homes / account


def runtime_folder(settings: Settings, account: str) -> Path:
    """Where a learner's kernels have their sockets; a socket's path has 107 characters at most."""
    return Path(f"/tmp/cuda-course-{os.getuid()}" if settings.trusting else RUN) / account


def before(settings: Settings):
    """What the Hub does before a server starts: see to the account, whose code it will run."""

    def make_account(spawner):
        name = accounts.unix_name(spawner.user.name, settings.prefix)
        account = accounts.ensure(name, home(settings, name))
        if spawner.has_trait("username_template"):  # systemd's
            spawner.username_template = name
        spawner.environment = {
            **spawner.environment,
            **sharing.environment(spawner.user.id, settings.learners, settings.queue),
            "HOME": account.pw_dir,
            "USER": name,
            "JUPYTER_RUNTIME_DIR": str(runtime_folder(settings, name)),
        }
        _give_runtime_folder(runtime_folder(settings, name), account)

    return make_account


def _give_runtime_folder(folder, account):
    """Make a folder that is the learner's alone, in one where only root makes any."""
    folder.parent.mkdir(mode=0o755, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    os.chown(folder, account.pw_uid, account.pw_gid)


def local_spawner(settings: Settings):
    """The Hub's LocalProcessSpawner with accounts of the class's and the kernel's limits."""
    from jupyterhub.spawner import LocalProcessSpawner, SimpleLocalProcessSpawner

    if settings.trusting:

        class TrustingSpawner(SimpleLocalProcessSpawner):
            home_dir_template = f"{settings.homes}/{{username}}"

            def make_preexec_fn(self, name):
                go_home = super().make_preexec_fn(name)

                def begin():
                    limits.limit_this_process(settings)
                    go_home()

                return begin

            def user_env(self, env):
                env = super().user_env(env)
                return env | {"JUPYTER_RUNTIME_DIR": str(runtime_folder(settings, self.user.name))}

        return TrustingSpawner

    class AccountSpawner(LocalProcessSpawner):
        def make_preexec_fn(self, name):
            give_up_root = super().make_preexec_fn(accounts.unix_name(name, settings.prefix))

            def begin():
                limits.limit_this_process(settings)
                give_up_root()

            return begin

        def user_env(self, env):
            return env  # `before` has said it

    return AccountSpawner
