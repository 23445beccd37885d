"""A real class: a Hub with its proxy, Unix accounts, servers and kernels. At night, as root.

It needs what `make hub` installs, and root, because learners are Unix accounts.
"""

import importlib.util
import os
import tempfile
from pathlib import Path

import pytest

from course.hub import rehearsal
from course.hub.config import PROXY
from course.hub.simulated import Failed, Learner

MISSING = None
if importlib.util.find_spec("jupyterhub") is None or not PROXY.exists():
    MISSING = "the Hub is not installed here: `sudo make hub` once, or course.hub.provide"
elif os.geteuid() != 0:
    MISSING = "a class needs root: each learner is a Unix account"
pytestmark = [
    pytest.mark.nightly("starts a Hub, servers and kernels: minutes"),
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]
#: What a learner tries in their own notebook; each line must fail.
ATTACKS = """
open("{home}/cuda-course/mine.txt").read()
open("{home}/cuda-course/chapters/05_first_kernels.ipynb", "a")
os.listdir("{home}")
os.listdir("{sockets}")
os.kill({server}, 0)
os.kill({server}, 9)
open("/proc/{server}/environ").read()
open("/proc/{server}/mem", "rb").read(1)
os.listdir("{place}/hub")
open("{place}/hub/jupyterhub.sqlite", "rb").read()
open("{place}/hub/cookie_secret").read()
open("{place}/hub_config.py").read()
os.listdir("{place}/board")
open("{place}/board/class.sqlite", "rb").read()
open("/proc/{hub}/environ").read()
os.kill({hub}, 9)
open("{course}/exercises/first_kernels.py", "a")
os.sched_setscheduler({server}, os.SCHED_IDLE, os.sched_param(0))
os.setpriority(os.PRIO_PROCESS, {server}, 19)
os.setpriority(os.PRIO_PROCESS, 0, -5)
get("http://127.0.0.1:{proxy_port}/api/routes")
get("{hub_api}/users")
get("{hub_api}/users/{victim}")
get("{hub_api}/proxy")
post("{hub_api}/users/{victim}/tokens")
get("{address}/user/{victim}/api/contents")
get("{board}api/board")
get("{board}api/wall")
post("{board}api/heard")
"""
PRELUDE = """
import os, urllib.request

def request(address, data=None):
    headers = {"Authorization": "token " + os.environ["JUPYTERHUB_API_TOKEN"]}
    return urllib.request.urlopen(urllib.request.Request(address, data, headers), timeout=20)

def get(address):
    return request(address).read()

def post(address):
    return request(address, b"{}").read()

def fails(line):
    try:
        exec(line, globals())
    except (OSError, urllib.error.URLError):
        return True
    return False
"""
FLOOD = {
    "forks": """
import subprocess, time
children = []
try:
    for _ in range(2000):
        children.append(subprocess.Popen(["sleep", "30"]))
    print("unlimited")
except (BlockingIOError, OSError) as error:
    print("stopped:", type(error).__name__)
for each in children:
    each.kill()
""",
    "memory": """
hoard = []
try:
    for _ in range(64):
        hoard.append(bytearray(256 << 20))
    print("unlimited")
except MemoryError:
    print("stopped: MemoryError")
del hoard
""",
    "disk": """
import os
try:
    with open("flood", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 64 << 30)
    print("unlimited")
except OSError as error:
    print("stopped:", type(error).__name__)
os.remove("flood")
""",
}


@pytest.fixture(scope="module")
def room():
    """(a Hub, two learners with servers and kernels: ann, who is attacked, and eve)."""
    # Not pytest's own folder, which is closed to all accounts but root
    with tempfile.TemporaryDirectory(prefix="cuda-course-class-") as folder:
        Path(folder).chmod(0o755)
        yield from people(rehearsal.Hub(Path(folder)))


def people(hub):
    """Start a Hub and two learners; end all of it."""
    try:
        hub.start()
        learners = []
        for name in ("ann", "eve"):
            learner = Learner(hub.settings.address, name, "of-no-use-elsewhere-7")
            learner.sign_up()
            learner.log_in()
            learner.start()
            learner.open()
            learners.append(learner)
        yield hub, *learners
    finally:
        hub.end()


def test_a_learner_reaches_nothing_of_another_nor_of_the_hub(room):
    hub, ann, eve = room
    home = hub.home("ann")
    ann.run(f"open('{home}/cuda-course/mine.txt', 'w').write('mine'); import os")
    facts = {
        "home": home,
        "victim": "ann",
        "sockets": f"/run/cuda-course/{home.name}",
        "server": ann.run("print(os.getppid())").strip(),
        "hub": hub.process.pid,
        "place": hub.settings.place,
        "course": rehearsal.catalogue.FOLDER.parent / "course",
        "proxy_port": hub.settings.proxy_port,
        "hub_api": f"http://127.0.0.1:{hub.settings.hub_port}/hub/api",
        "address": hub.settings.address,
        "board": f"http://127.0.0.1:{hub.settings.board_port}/services/board/",
    }
    lines = [line.format(**facts) for line in ATTACKS.strip().splitlines()]
    eve.run(PRELUDE)
    worked = eve.run(f"print([line for line in {lines!r} if not fails(line)])").strip()
    assert worked == "[]"
    own = f"open('{hub.home('eve')}/cuda-course/chapters/05_first_kernels.ipynb', 'a').close()"
    assert eve.run(f"print(fails({own!r}), fails('get(\"{facts['hub_api']}/user\")'))").split() == [
        "False",
        "False",
    ], "what is hers she reaches: the attacks fail for the right reason"
    assert ann.run(f"print(open('{home}/cuda-course/mine.txt').read())").strip() == "mine"


def test_nobody_else_can_read_along_what_a_kernel_prints(room):
    """A kernel whose messages go by TCP tells every account of the machine, without a key."""
    hub, ann, _ = room
    code = "import json; from ipykernel.connect import get_connection_info as told\n"
    told = ann.run(code + "print(json.loads(told())['transport'], json.loads(told())['ip'])")
    transport, path = told.split()
    assert transport == "ipc"
    assert Path(path).parent.stat().st_mode & 0o077 == 0
    assert Path(path).parent.owner() == hub.home("ann").name


@pytest.mark.parametrize("kind", FLOOD)
def test_a_flood_harms_its_owner_alone(room, kind):
    hub, ann, eve = room
    ann.run("before = 7")
    assert eve.run(FLOOD[kind]).strip().startswith("stopped:")
    assert ann.run("print(before)").strip() == "7"
    assert ann.get("/hub/api/user").status_code in (200, 403)
    assert hub.process.poll() is None


def test_an_accounts_name_is_nobodys_but_who_signed_up_first(room):
    hub, _, _ = room
    for name in ("ann", rehearsal.TEACHER, "root/x", "x y", "../ann"):
        thief = Learner(hub.settings.address, name, "another-password-9")
        thief.sign_up()
        with pytest.raises(Failed):
            thief.log_in()
