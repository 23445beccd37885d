"""What a client asks for: read, checked, and refused in plain words.

The shape is that of OpenAI's completions, which serving engines and their clients share:
https://platform.openai.com/docs/api-reference/completions
"""

import json
from dataclasses import dataclass

from course.kernels.language_model.serving.sampling import Sampling
from course.kernels.language_model.serving.text import Tokens


class Refused(Exception):
    """A request is refused. status: HTTP's number; field: the part of the request that is wrong."""

    def __init__(self, status: int, message: str, field: str | None = None):
        super().__init__(message)
        self.status, self.message, self.field = status, message, field

    def as_json(self) -> dict:
        """The error in the usual shape."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        if self.status == 429:
            kind = "rate_limit_error"
        error = {"message": self.message, "type": kind, "param": self.field, "code": self.status}
        return {"error": error}


@dataclass(frozen=True)
class Limits:
    """What a server takes at most. body: bytes; queue: sequences that wait; stop: letters."""

    body: int = 1 << 20
    prompt: int = 2048
    most: int = 512
    choices: int = 8
    stops: int = 4
    stop: int = 64
    queue: int = 64


@dataclass(frozen=True)
class Asked:
    """A request that can be served. counts: whether the last piece of a stream says its usage."""

    prompt: list[int]
    most: int
    sampling: Sampling
    choices: int
    stops: tuple[str, ...]
    stream: bool
    counts: bool
    seed: int | None


KNOWN = (
    *("model", "prompt", "max_tokens", "temperature", "top_p", "top_k", "n", "stop"),
    *("stream", "stream_options", "seed", "user"),
)
HOTTEST = 2.0
LARGEST_SEED = 1 << 63


def asked(body: bytes, limits: Limits, tokens: Tokens, model: str) -> Asked:
    """A body of JSON as a request. Raises Refused with what is wrong, the first thing that is."""
    told = _object(body)
    unknown = next((name for name in told if name not in KNOWN), None)
    if unknown is not None:
        raise Refused(400, f"{unknown!r:.60} is not supported; known: {', '.join(KNOWN)}", unknown)
    if told.get("model") not in (None, model):
        raise Refused(404, f"there is no model {told['model']!r:.60}; there is {model!r}", "model")
    options = told.get("stream_options")
    if not isinstance(options, dict | None):
        raise Refused(400, "stream_options must be an object", "stream_options")
    return Asked(
        prompt=_prompt(told.get("prompt"), limits, tokens),
        most=_whole(told, "max_tokens", 16, 1, limits.most),
        sampling=Sampling(
            _number(told, "temperature", 1.0, 0, HOTTEST),
            _whole(told, "top_k", 0, 0, len(tokens.pieces)),
            _number(told, "top_p", 1.0, 0, 1),
        ),
        choices=_whole(told, "n", 1, 1, limits.choices),
        stops=_stops(told.get("stop"), limits),
        stream=_truth(told, "stream"),
        counts=_truth(options or {}, "include_usage"),
        seed=_whole(told, "seed", None, -LARGEST_SEED, LARGEST_SEED - 1),
    )


def _object(body: bytes) -> dict:
    def no_number(name):
        raise ValueError(f"{name} is not JSON")

    try:
        told = json.loads(body, parse_constant=no_number)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise Refused(400, f"the body is not JSON: {why}") from None
    if not isinstance(told, dict):
        raise Refused(400, 'the body must be a JSON object, such as {"prompt": "Once"}')
    return told


def _prompt(prompt, limits: Limits, tokens: Tokens) -> list[int]:
    if isinstance(prompt, str):
        try:
            found = tokens.encode(prompt)
        except UnicodeEncodeError:  # half of a pair of surrogates, which JSON can say
            raise Refused(400, "prompt has letters that are no Unicode text", "prompt") from None
    elif isinstance(prompt, list) and all(type(token) is int for token in prompt):
        found = prompt
        if not all(0 <= token < len(tokens.pieces) for token in found):
            most = len(tokens.pieces) - 1
            raise Refused(400, f"prompt has tokens that are not from 0 to {most}", "prompt")
    else:
        raise Refused(400, "prompt must be a text, or a list of tokens", "prompt")
    if not found:
        raise Refused(400, "prompt must have a token at least", "prompt")
    if len(found) > limits.prompt:
        told = f"prompt has {len(found):,} tokens; at most {limits.prompt:,} are taken"
        raise Refused(400, told, "prompt")
    return found


def _stops(stops, limits: Limits) -> tuple[str, ...]:
    if stops is None:
        return ()
    stops = [stops] if isinstance(stops, str) else stops
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise Refused(400, "stop must be a text, or a list of texts", "stop")
    if len(stops) > limits.stops or not all(0 < len(stop) <= limits.stop for stop in stops):
        told = f"stop takes at most {limits.stops} texts of 1 to {limits.stop} letters"
        raise Refused(400, told, "stop")
    return tuple(stops)


def _whole(told: dict, name: str, otherwise, least: int, most: int):
    value = told.get(name)
    if value is None:
        return otherwise
    if type(value) is not int or not least <= value <= most:
        raise Refused(400, f"{name} must be a whole number from {least} to {most:,}", name)
    return value


def _number(told: dict, name: str, otherwise: float, least: float, most: float) -> float:
    value = told.get(name)
    if value is None:
        return otherwise
    if type(value) not in (int, float) or not least <= value <= most:
        raise Refused(400, f"{name} must be a number from {least} to {most}", name)
    return float(value)


def _truth(told: dict, name: str) -> bool:
    value = told.get(name)
    if not isinstance(value, bool | None):
        raise Refused(400, f"{name} must be true or false", name)
    return bool(value)
