"""Serve a model over HTTP.

    python -m course.kernels.language_model.serving --port 8000

It listens to this computer alone unless --host says otherwise: it asks nobody for a password.
"""

import argparse
import asyncio
import contextlib
import sys

from course.kernels.language_model.serving import server
from course.kernels.language_model.serving.asking import Limits
from course.kernels.language_model.serving.engine import Engine
from course.kernels.language_model.serving.models import MODELS
from course.kernels.language_model.serving.scheduler import Scheduler


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m course.kernels.language_model.serving",
        description=__doc__.partition("\n")[0],
    )
    add = parser.add_argument
    limits = Limits()
    add("--port", type=int, default=8000, help="0: any that is free")
    add("--host", default="127.0.0.1", help="0.0.0.0: for other computers, too")
    add("--model", choices=MODELS, default="trained")
    add("--blocks", type=int, default=512, help="of the cache, 16 tokens each")
    add("--budget", type=int, default=64, help="tokens of a step")
    add("--places", type=int, default=16, help="sequences that run at once")
    add("--queue", type=int, default=limits.queue, help="sequences that wait at most")
    return parser.parse_args()


async def serve(options: argparse.Namespace) -> None:
    """Say where, and serve until somebody ends it."""
    runner, tokens = MODELS[options.model](options.blocks)
    scheduler = Scheduler(options.blocks, options.budget, options.places)
    running = server.Server(
        Engine(runner, scheduler),
        tokens,
        host=options.host,
        port=options.port,
        limits=Limits(queue=options.queue),
        name=options.model,
    )
    print(f"{options.model} is served at {running.url}; Ctrl+C ends it", flush=True)
    await server.until_signal(running)
    print("all requests have ended", flush=True)


def main() -> None:
    """Serve, or say in a line why not."""
    options = arguments()
    with contextlib.suppress(asyncio.CancelledError):
        try:
            asyncio.run(serve(options))
        except (server.ServerError, ValueError) as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
