"""A learner's server: under a Unix account of theirs, with limits, in their own copy of the course.

Of the Hub's spawners, systemd's is taken where systemd runs the machine; else the Hub's own for
local processes, with the account's name and the kernel's limits added.
"""

import os
import sys
from pathlib import Path

from course.hub import accounts, limits
from course.hub.settings import Settings

COPY = "cuda-course"  # the learner's own copy, in their home
CLASS_PAGE = "class.ipynb"  # how to join, in that copy


def command(settings: Settings) -> list[str]:
    """What a learner's account runs: first the copy is made or renewed, then the server starts.

    A renewal that fails keeps nobody from what is there.
    """
    python = sys.executable
    renew = f'{python} -m course.copies "$HOME/{COPY}"'
    page = f'{python} -m course.hub.page "$HOME/{COPY}/{CLASS_PAGE}"'
    serve = f'cd "$HOME/{COPY}" && exec {python} -m jupyterhub.singleuser "$@"'
    return ["/bin/sh", "-c", f"{renew}; {page}; {serve}", "sh"]


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
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
    }


def home(settings: Settings, account: str) -> Path:
    """The home of a learner's Unix account."""
    return settings.homes / account


def runtime_folder(home: str) -> str:
    """Where a learner's kernels have their sockets, whose paths must be short (108 characters)."""
    return f"{home}/.run"


def before(settings: Settings):
    """What the Hub does before a server starts: see to the account, whose code it will run."""

    def make_account(spawner):
        name = accounts.unix_name(spawner.user.name)
        account = accounts.ensure(name, home(settings, name))
        if spawner.has_trait("username_template"):  # systemd's
            spawner.username_template = name
        spawner.environment = {
            **spawner.environment,
            "HOME": account.pw_dir,
            "USER": name,
            "TMPDIR": f"{account.pw_dir}/.tmp",
            "JUPYTER_RUNTIME_DIR": runtime_folder(account.pw_dir),
        }
        for folder in (f"{account.pw_dir}/.tmp", runtime_folder(account.pw_dir)):
            _own_folder(folder, account)

    return make_account


def _own_folder(path, account):
    """Make a folder as the learner would: root must follow no link that they put there."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)
            os.makedirs(path, mode=0o700, exist_ok=True)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


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
                return env | {"JUPYTER_RUNTIME_DIR": runtime_folder(self.home_dir)}

        return TrustingSpawner

    class AccountSpawner(LocalProcessSpawner):
        def make_preexec_fn(self, name):
            give_up_root = super().make_preexec_fn(accounts.unix_name(name))

            def begin():
                limits.limit_this_process(settings)
                give_up_root()

            return begin

        def user_env(self, env):
            return env  # `before` has said it

    return AccountSpawner
