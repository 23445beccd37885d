"""What the chart's Hub is told besides its values: `hub.extraConfig.course`.

It runs inside of the chart's own configuration, in the Hub's image, where the course is not: `c` is
JupyterHub's configuration, and `get_config` reads the chart's values.
"""

import os
from pathlib import Path

#: Of the first learner's processes; 20,000 and more are no account's of a node
FIRST_UID = 20_000
#: The queue's folder, on the node, and the same one in each of its pods
QUEUE = "/run/cuda-course-gpu"


def _people(c, instructors):
    """Who teaches; and their accounts, where accounts are the class's own."""
    c.Authenticator.admin_users = set(instructors)
    c.JupyterHub.load_groups = {"instructors": {"users": list(instructors)}}
    c.JupyterHub.default_url = _first_page
    kind = c.JupyterHub.authenticator_class
    if kind == "native":
        import nativeauthenticator

        c.JupyterHub.authenticator_class = _authenticator(instructors)
        templates = Path(nativeauthenticator.__file__).with_name("templates")
        c.JupyterHub.template_paths = [str(templates)]
    elif "instructor" in instructors:
        raise ValueError(
            f"whoever is called `instructor` by {kind} would teach: set custom.instructors"
        )


def _first_page(handler):
    """Where somebody comes who asks for no page: who teaches to the board; "" is one's server."""
    user = handler.current_user
    teaches = user is not None and any(group.name == "instructors" for group in user.groups)
    return "/services/board/" if teaches else ""


def _authenticator(instructors):
    """A class of NativeAuthenticator whose instructors' accounts exist from the beginning: else
    whoever signs up first under such a name would teach.
    """
    import bcrypt
    from nativeauthenticator import NativeAuthenticator
    from nativeauthenticator.orm import UserInfo

    class ClassAuthenticator(NativeAuthenticator):
        def add_new_table(self):
            super().add_new_table()
            for name in instructors:
                if not self.user_exists(name):
                    password = os.environ["CLASS_FIRST_PASSWORD"].encode()
                    hashed = bcrypt.hashpw(password, bcrypt.gensalt())
                    self.db.add(UserInfo(username=name, password=hashed, is_authorized=True))
            self.db.commit()

    return ClassAuthenticator


def _pods(c):
    """Learners' processes have no rights, and a number of their own on the node, as accounts of one
    machine have: the queue knows by it whose a place is.
    """
    c.KubeSpawner.uid = lambda spawner: FIRST_UID + spawner.user.id
    c.KubeSpawner.container_security_context = {
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    c.Spawner.args = ["--LanguageServerManager.autodetect=False", "--log-level=WARN"]


def _queue(c, pods_per_gpu):
    """Where pods of one node share its GPUs: the queue, and a share of the memory for each."""
    mounted = {"name": "gpu-queue", "mountPath": QUEUE}
    on_node = {"path": QUEUE, "type": "DirectoryOrCreate"}
    c.KubeSpawner.volumes["gpu-queue"] = {"name": "gpu-queue", "hostPath": on_node}
    c.KubeSpawner.volume_mounts["gpu-queue"] = mounted
    as_root = {
        "runAsUser": 0,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    # The node's root owns the folder, so that no learner removes another's place
    c.KubeSpawner.init_containers.append(
        {
            "name": "make-gpu-queue",
            "image": c.KubeSpawner.image,
            "command": ["chmod", "1777", QUEUE],
            "securityContext": as_root,
            "volumeMounts": [mounted],
        }
    )
    share = 0.9 / pods_per_gpu  # the rest is what each process takes before it allocates anything
    c.KubeSpawner.environment |= {
        "CUDA_COURSE_GPU_QUEUE": QUEUE,
        "PYTORCH_ALLOC_CONF": f"per_process_memory_fraction:{share:.3f}",
        "CUPY_GPU_MEMORY_LIMIT": f"{share:.1%}",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }


if "get_config" in globals():  # else a test has only imported it
    _people(c, get_config("custom.instructors"))  # noqa: F821
    _pods(c)  # noqa: F821
    if get_config("custom.podsPerGpu", 1) > 1:  # noqa: F821
        _queue(c, get_config("custom.podsPerGpu"))  # noqa: F821
