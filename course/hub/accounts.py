"""Unix accounts of a class, and the accounts by which people log in to the Hub."""

import contextlib
import hashlib
import os
import pwd
import re
import secrets
import shutil
import subprocess
import time
from pathlib import Path

import psutil

from course.hub.settings import NAME, Settings

PASSWORD_LENGTH = 8
STILL_USED = 8  # userdel's status while a process of the account is there


class Strange(RuntimeError):
    """An account is there that is none of this class's."""


def unix_name(name: str, prefix: str) -> str:
    """The Unix account of a Hub's account: with a prefix, so that nobody becomes root, or the
    board, by a name. Of one with a longer or stranger name, such as an
    address for mail, what can stand in a Unix name and a hash of all of it.
    """
    if re.fullmatch(NAME, name):
        return prefix + name
    kept = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:12]
    return f"{prefix}{kept}--{hashlib.sha256(name.encode()).hexdigest()[:10]}"


def ensure(account: str, home: Path) -> pwd.struct_passwd:
    """Make a Unix account with a home that nobody else can read, unless it is there. Needs root.

    Strange where an account of that name has another home: it is somebody else's.
    """
    try:
        found = pwd.getpwnam(account)
    except KeyError:
        home.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        subprocess.run(
            ["useradd", "--create-home", "--home-dir", str(home), "--shell", "/bin/bash"]
            + ["--user-group", "--skel", "/dev/null", account],
            check=True,
            capture_output=True,
            text=True,
        )
        found = pwd.getpwnam(account)
        home.chmod(0o700)
    if Path(found.pw_dir) != home:
        raise Strange(f"the Unix account {account} is not this class's: its home is {found.pw_dir}")
    return found


def of_class(homes: Path) -> list[pwd.struct_passwd]:
    """All Unix accounts whose home is in `homes`."""
    return [each for each in pwd.getpwall() if Path(each.pw_dir).parent == homes]


def end_all(found: list[pwd.struct_passwd]) -> list[str]:
    """End all processes of some accounts; the names of those who had some."""
    names = {each.pw_uid: each.pw_name for each in found}
    ended = {}
    for process in psutil.process_iter(["uids", "status"]):
        uids, status = process.info["uids"], process.info["status"]
        # A dead one that nobody has waited for is no process any more, and may stay for long
        if uids and uids.real in names and status != psutil.STATUS_ZOMBIE:
            with contextlib.suppress(psutil.Error):
                process.kill()
                ended[process] = names[uids.real]
    psutil.wait_procs(list(ended), timeout=3)
    return sorted(set(ended.values()))


def remove(homes: Path, board: str) -> list[str]:
    """Delete the class's Unix accounts with their homes, and the board's; the learners' names."""
    learners = of_class(homes)
    gone = [*learners, *(each for each in pwd.getpwall() if each.pw_name == board)]
    end_all(gone)
    for each in gone:
        _delete(each.pw_name)
        shutil.rmtree(f"/run/cuda-course/{each.pw_name}", ignore_errors=True)
    return [each.pw_name for each in learners]


def _delete(account):
    """Delete an account with its home; a process of its that is just ending may hold it up."""
    for _ in range(50):
        done = subprocess.run(["userdel", "--remove", account], capture_output=True, text=True)
        if done.returncode != STILL_USED:
            break
        time.sleep(0.2)
    if done.returncode:
        raise Strange(f"the Unix account {account} cannot be deleted: {done.stderr.strip()}")


def new_password() -> str:
    """A password to read aloud: no letters that look alike."""
    return "".join(secrets.choice("abcdefghjkmnpqrstuvwxyz23456789") for _ in range(12))


def keep_first(settings: Settings, names: list[str], password: str) -> None:
    """Note the first password of new accounts, for root to read: what is printed scrolls away."""
    if names:
        with open(settings.first_passwords, "a", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            file.writelines(f"{name} {password}\n" for name in names)


def authenticator(settings: Settings, first_password: str):
    """A class of NativeAuthenticator whose instructors' accounts exist from the beginning.

    Else whoever signs up first under an instructor's name would teach. first_password: what they
    log in with the first time; of no effect on an account that is there.
    """
    import bcrypt
    from nativeauthenticator import NativeAuthenticator
    from nativeauthenticator.orm import UserInfo

    class ClassAuthenticator(NativeAuthenticator):
        def add_new_table(self):
            super().add_new_table()
            new = [name for name in settings.instructors if not self.user_exists(name)]
            if new and not first_password:
                raise Strange(f"no first password for {', '.join(new)}")
            for name in new:
                hashed = bcrypt.hashpw(first_password.encode(), bcrypt.gensalt())
                self.db.add(UserInfo(username=name, password=hashed, is_authorized=True))
            self.db.commit()
            keep_first(settings, new, first_password)

        def validate_username(self, username):
            return bool(re.fullmatch(NAME, username)) and super().validate_username(username)

    return ClassAuthenticator
