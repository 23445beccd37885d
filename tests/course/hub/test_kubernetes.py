"""A class beyond one machine: its values, by the chart's own schema, its Hub and KubeSpawner."""

import asyncio
import copy
import importlib.util
import json
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import jsonschema
import pytest
import yaml
from traitlets.config import Config

from course.hub import config, spawning
from course.hub.config import PROXY
from course.hub.kubernetes import __main__ as command
from course.hub.settings import Settings
from course.hub.simulated import Visitor, follow
from tests.course.hub import chart
from utils.files import ROOT
from utils.setup import install

FOLDER = ROOT / "course" / "hub" / "kubernetes"
CLASSES = {
    "cpu": ["--gpu", "none"],
    "whole": [],
    "shared": ["--pods-per-gpu", "8", "--instructor", "ann"],
    "slices": ["--gpu", "nvidia.com/mig-1g.10gb", "--open"],
}
MISSING = [name for name in ("jupyterhub", "kubespawner") if not importlib.util.find_spec(name)]
needs_spawner = pytest.mark.skipif(
    bool(MISSING), reason="pip install jupyterhub jupyterhub-kubespawner"
)


@pytest.fixture(scope="module")
def checker():
    return jsonschema.Draft7Validator(chart.schema())


@pytest.mark.parametrize("words", CLASSES.values(), ids=CLASSES)
def test_the_charts_own_schema_accepts_the_values(words, checker):
    found = chart.values(*words)
    assert [each.message for each in checker.iter_errors(chart.merged(found))] == []


@pytest.mark.parametrize(
    "path, wrong",
    [
        ("singleuser.memori", 1),
        ("singleuser.memory.limit", [1]),
        ("hub.service.extraPorts", "8002"),
        ("proxy.https.type", "none"),
        ("cull.timeout", "an hour"),
    ],
)
def test_the_schema_refuses_what_is_wrong(path, wrong, checker):
    """So that what it accepts means something."""
    own = copy.deepcopy(chart.values())
    *folders, name = path.split(".")
    inner = own
    for folder in folders:
        inner = inner[folder]
    inner[name] = wrong
    assert list(checker.iter_errors(chart.merged(own)))


def test_nothing_is_left_to_be_filled_in_and_one_image_serves_all():
    text = command.values(command.parser().parse_args(chart.ASKED))
    assert "$" not in re.sub(r'"?\$(HOME|@|TMPDIR)', "", text)
    found = yaml.safe_load(text)
    image = found["singleuser"]["image"]
    (board,) = found["hub"]["extraContainers"]
    assert board["image"] == f"{image['name']}:{image['tag']}" == chart.ASKED[1]
    assert found["hub"]["extraConfig"]["course"].strip() == (
        (FOLDER / "extra_config.py").read_text().strip()
    )


@pytest.mark.parametrize("image", ["cuda-course", "registry:5000/cuda-course", ":1", "x:"])
def test_an_image_without_a_tag_is_refused(image, capsys):
    with pytest.raises(SystemExit):
        command.main(["--image", image, *chart.ASKED[2:]])
    assert "names no tag" in capsys.readouterr().err


def test_the_board_has_the_rights_that_it_has_on_one_machine():
    c = Config()
    config._services(c, Settings())
    here = {role["name"]: role for role in c.JupyterHub.load_roles}
    there = chart.values()["hub"]["loadRoles"]
    for name, role in there.items():
        assert sorted(role["scopes"]) == sorted(here[name]["scopes"]), name
        assert role.get("groups") == here[name].get("groups")
    board, _ = c.JupyterHub.services
    service = chart.values()["hub"]["services"]["board"]
    allowed = "oauth_client_allowed_scopes"
    assert service[allowed] == board[allowed]
    (container,) = chart.values()["hub"]["extraContainers"]
    told = {each["name"]: each.get("value") for each in container["env"]}
    assert json.loads(told["JUPYTERHUB_OAUTH_SCOPES"]) == board[allowed]


def test_learners_reach_the_hub_the_board_and_the_dns_alone():
    found = chart.merged(chart.values())
    rules = found["singleuser"]["networkPolicy"]["egressAllowRules"]
    assert {name for name, allowed in rules.items() if allowed} == {
        "dnsPortsCloudMetadataServer",
        "dnsPortsKubeSystemNamespace",
        "dnsPortsPrivateIPs",
    }
    (more,) = found["singleuser"]["networkPolicy"]["egress"]
    assert more["ports"] == [{"port": 8002}]
    (port,) = found["hub"]["service"]["extraPorts"]
    (board,) = found["hub"]["extraContainers"]
    assert port["port"] == 8002 and port["targetPort"] == board["ports"][0]["name"]
    assert found["singleuser"]["extraEnv"]["CUDA_COURSE_BOARD"].startswith("http://hub:8002/")


@pytest.mark.parametrize("kind", install.LOCKS)
def test_the_image_is_made_from_the_projects_lock_files(kind):
    recipe = (FOLDER / "Dockerfile").read_text()
    lines = recipe.replace("\\\n", " ").replace("${KIND}", kind).splitlines()
    words = [
        line.split("pip install --no-cache-dir ")[1].split(" && ")[0].split()
        for part in lines
        if "pip install" in part
        for line in part.split(" && ")
        if "pip install" in line
    ]
    assert [w for w in words if "locks/hub.txt" not in w] == install.steps(kind, locked=True)
    assert sum("locks/hub.txt" in w and "--require-hashes" in w for w in words) == 1
    for name in re.findall(r"locks/[\w.]+txt", " ".join(lines)):
        assert (ROOT / name).is_file()
    (workdir,) = re.findall(r"^WORKDIR (\S+)", recipe, re.MULTILINE)
    assert f"{workdir}/.venv/bin/python" == command.PYTHON
    (user,) = re.findall(r"^USER (\S+)", recipe, re.MULTILINE)
    assert user.isdigit() and int(user) > 0, "KubeSpawner cannot tell that a name is not root's"


def test_a_learners_server_starts_as_on_one_machine():
    here = spawning.command(Settings())
    there = chart.values()["singleuser"]["cmd"]
    assert [word.replace(command.PYTHON, sys.executable) for word in there] == here


# ---- in the chart's Hub, with KubeSpawner; at night


def configuration(own, folder, monkeypatch):
    """`c` as the chart's Hub has it once it has run everything."""
    file = chart.mount(own, folder / "jupyterhub")
    for name, value in chart.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.syspath_prepend(str(file.parent))
    monkeypatch.delitem(sys.modules, "z2jh", raising=False)
    c = Config()
    names = {"get_config": lambda: c, "__file__": str(file)}
    exec(compile(file.read_text(), str(file), "exec"), names)
    return c


def pod(c, profile, number=7):
    """The pod that KubeSpawner would ask for, as JSON."""
    from jupyterhub.objects import Hub, Server
    from kubespawner import KubeSpawner

    user = SimpleNamespace(
        name="ann", id=number, url="/user/ann/", server=Server(), escaped_name="ann", groups=[]
    )

    async def made():
        spawner = KubeSpawner(_mock=True, config=c, user=user, hub=Hub())
        spawner.api_token = spawner.oauth_client_id = "x"
        if profile:
            spawner.user_options = {"profile": profile}
        await spawner.load_user_options()
        found = await spawner.get_pod_manifest()
        return spawner.api.api_client.sanitize_for_serialization(found)

    with pytest.MonkeyPatch.context() as patched:  # there is no cluster to speak to
        patched.setattr("kubespawner.spawner.load_config", lambda **_: None)
        return asyncio.run(made())


@needs_spawner
@pytest.mark.nightly("what the values say is held by day; here KubeSpawner says it")
@pytest.mark.parametrize("kind", CLASSES)
def test_a_learners_pod_has_limits_a_home_and_no_rights(kind, tmp_path, monkeypatch):
    c = configuration(chart.values(*CLASSES[kind]), tmp_path, monkeypatch)
    made = pod(c, "" if kind == "cpu" else "cpu")
    (container,) = made["spec"]["containers"]
    limits = container["resources"]["limits"]
    assert limits["memory"] == 4 << 30 and float(limits["cpu"]) == 2.0
    assert limits["ephemeral-storage"] == "4Gi"
    assert not any("nvidia" in name for name in limits)
    security = container["securityContext"]
    assert security["allowPrivilegeEscalation"] is False
    assert security["runAsUser"] == 20_007
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert made["spec"]["automountServiceAccountToken"] is False
    (home,) = (each for each in container["volumeMounts"] if each["mountPath"] == "/home/learner")
    (volume,) = (each for each in made["spec"]["volumes"] if each["name"] == home["name"])
    assert "ann" in volume["persistentVolumeClaim"]["claimName"]
    told = {each["name"]: each.get("value") for each in container["env"]}
    assert told["HOME"] == "/home/learner" and told["USER"] == "ann"
    assert container["args"][:2] == ["/bin/sh", "-c"]
    assert ("hostPath" in json.dumps(made)) == (kind == "shared")


@needs_spawner
@pytest.mark.nightly("what the values say is held by day; here KubeSpawner says it")
def test_pods_that_share_a_gpu_share_the_nodes_queue(tmp_path, monkeypatch):
    c = configuration(chart.values(*CLASSES["shared"]), tmp_path, monkeypatch)
    made = [pod(c, "gpu", number) for number in (7, 8)]
    for each in made:
        (container,) = each["spec"]["containers"]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
        (volume,) = (v for v in each["spec"]["volumes"] if "hostPath" in v)
        (mounted,) = (m for m in container["volumeMounts"] if m["name"] == volume["name"])
        told = {e["name"]: e.get("value") for e in container["env"]}
        assert told["CUDA_COURSE_GPU_QUEUE"] == mounted["mountPath"] == volume["hostPath"]["path"]
        assert 0 < float(told["PYTORCH_ALLOC_CONF"].partition(":")[2]) <= 1 / 8
        names = [first["name"] for first in each["spec"]["initContainers"]]
        assert names == ["block-cloud-metadata", "make-gpu-queue"]
        assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in each[
            "spec"
        ]["tolerations"]
    owners = {each["spec"]["containers"][0]["securityContext"]["runAsUser"] for each in made}
    assert len(owners) == 2, "the queue tells learners apart by their number"


@needs_spawner
@pytest.mark.nightly("the Hub of one machine is tried by test_settings")
def test_an_institutions_accounts_need_to_know_who_teaches(tmp_path, monkeypatch):
    for number, (words, refused) in enumerate([([], True), (["--instructor", "ann"], False)]):
        own = chart.values(*words)
        own["hub"]["config"]["JupyterHub"]["authenticator_class"] = "github"
        own["hub"]["config"]["OAuthenticator"] = {"allowed_users": ["bob"]}
        if refused:
            with pytest.raises(ValueError, match="custom.instructors"):
                configuration(own, tmp_path / str(number), monkeypatch)
            continue
        c = configuration(own, tmp_path / str(number), monkeypatch)
        from oauthenticator.github import GitHubOAuthenticator

        made = GitHubOAuthenticator(config=c)
        assert not made.allow_all and made.admin_users == {"ann"}
        assert made.allowed_users == {"ann", "bob"} or made.allowed_users == {"bob"}


LOOPBACK = """
# What differs without a cluster: addresses, the proxy, and no pods
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = c.JupyterHub.hub_connect_url = "http://127.0.0.1:{hub}"
c.ConfigurableHTTPProxy.should_start = True
c.ConfigurableHTTPProxy.command = {proxy!r}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.JupyterHub.spawner_class = "simple"
for service in c.JupyterHub.services:
    if service["name"] == "board":
        service["url"] = "http://127.0.0.1:{board}"
    else:
        service["command"] = [{python!r}, "-c", "import time; time.sleep(3600)"]
"""


@needs_spawner
@pytest.mark.skipif(not PROXY.exists(), reason="the Hub's proxy: course.hub.provide")
@pytest.mark.nightly("starts a Hub: seconds")
def test_the_board_is_a_service_of_the_charts_hub(tmp_path):
    """A real Hub with the chart's configuration, and the board beside it with what its container is
    told; a learner joins by a token, an instructor sees it, another learner does not.
    """
    from course.hub.rehearsal import free_port

    own = chart.values("--open", "--instructor", "teacher")
    ports = {name: free_port() for name in ("port", "hub", "api", "board")}
    file = chart.mount(own, tmp_path / "jupyterhub")
    file.write_text(
        file.read_text()
        + LOOPBACK.format(proxy=[config._node(), str(PROXY)], python=sys.executable, **ports)
    )
    (container,) = own["hub"]["extraContainers"]
    told = {each["name"]: each.get("value", "token-of-board") for each in container["env"]}
    told["JUPYTERHUB_SERVICE_URL"] = f"http://127.0.0.1:{ports['board']}"
    told["JUPYTERHUB_API_URL"] = f"http://127.0.0.1:{ports['hub']}/hub/api"
    kept = tmp_path / "board" / "class.sqlite"
    words = [sys.executable, *container["command"][1:-1], str(kept)]
    running = []
    try:
        with open(tmp_path / "log", "wb") as log:
            for line, more in (
                (words, told),
                ([sys.executable, "-m", "jupyterhub", "-f", str(file)], {}),
            ):
                env = chart.environment(
                    PYTHONPATH=str(ROOT), CONFIGPROXY_AUTH_TOKEN="of-no-use", **more
                )
                running.append(
                    subprocess.Popen(line, env=env, cwd=tmp_path, stdout=log, stderr=log)
                )
        address = f"http://127.0.0.1:{ports['port']}"
        ann, bob = (Visitor(address, name, "of-no-use-7") for name in ("ann", "bob"))
        teacher = Visitor(address, "teacher", "first-password-1")
        wait_for(ann, running, tmp_path / "log")
        for visitor in (ann, bob):
            visitor.sign_up()
            visitor.log_in()
        teacher.log_in()
        teacher.get("/services/board/")
        ann.get("/hub/token")
        reply = ann.post(
            "/hub/api/users/ann/tokens",
            {
                "scopes": [
                    "access:services!service=board",
                    "read:users:name!user",
                    "read:users!user",
                ]
            },
        )
        assert reply.ok, reply.text
        headers = {"Authorization": f"token {reply.json()['token']}"}
        joined = ann.web.post(
            f"http://127.0.0.1:{ports['board']}/services/board/api/join",
            json={"named": True},
            headers=headers,
            timeout=30,
        )
        assert joined.status_code == 200, joined.text
        boards = []
        follow(teacher, "/services/board/api/board", lambda _, data: boards.append(data))
        assert [each["label"] for each in boards[0]["people"]] == ["ann"]
        assert bob.get("/services/board/").status_code == 403
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()


def wait_for(visitor, running, log):
    """Until Hub and board answer."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert all(process.poll() is None for process in running), log.read_text()[-3000:]
        try:
            if (
                visitor.get("/hub/login").status_code == 200
                and visitor.get("/services/board/api/board").status_code == 403
            ):
                return
        except OSError:
            pass
        time.sleep(0.3)
    raise AssertionError(log.read_text()[-3000:])
