"""What JupyterHub reads first; `python -m course.hub` starts it with this file.

The settings are in the file that the variable CUDA_COURSE_HUB names.
"""

import os


def _configure():
    from urllib.parse import urlsplit

    from course.hub import config, ready, settings

    chosen = settings.read()
    password = os.environ.pop("CUDA_COURSE_FIRST_PASSWORD", "")
    config.configure(c, chosen, password)  # noqa: F821
    if chosen.own.is_file():
        load_subconfig(str(chosen.own))  # noqa: F821
    try:
        config.refuse_unknown_teachers(c, chosen)  # noqa: F821
    except settings.Unsafe as no:
        raise SystemExit(f"error: {no}") from None
    if ready.is_wanted():
        host = urlsplit(str(c.JupyterHub.get("subdomain_host", ""))).netloc  # noqa: F821
        ready.say_when_ready(chosen, password, host)


if "get_config" in globals():  # else a test has only imported it
    c = get_config()  # noqa: F821
    _configure()
