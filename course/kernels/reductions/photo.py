"""A photograph from a space probe, whose pixels arrive in the wrong order.

received()          the packets as they arrived, one for each pixel
checksum()          the sum of all brightnesses, each plus one, as the probe sent it
brightness(packets) their pixels, as they stand

A packet is one int32: its last 8 bits are the pixel's brightness, those before it the time at which
it was sent, in ticks of a clock that does not tick once per pixel.
"""

import numpy as np

SIDE = 64  # pixels: the photograph is a square
BRIGHTNESS_BITS = 8
SEED = 1977
FINER = 4  # times, each way: the planet is drawn so fine, and averaged


def taken(side: int = SIDE) -> np.ndarray:
    """The photograph, uint8 [side, side]: a planet with a ring, lit from the left, before stars."""
    fine = _planet(FINER * side).reshape(side, FINER, side, FINER)
    planet = fine.mean(axis=(1, 3))
    light = np.where(planet > 0, planet, _stars(side))
    return np.round(255 * light).astype(np.uint8)


def _planet(side):
    """The planet and its ring alone: light from 0 to 1."""
    row, column = (np.mgrid[0:side, 0:side] + 0.5) / side - 0.5
    along, across = _turned(row, column, np.radians(-20))
    distance = np.hypot(along, across / 0.28)  # from the middle, in the plane of the ring
    ring = (distance > 0.31) & (distance < 0.47)
    gap = (distance > 0.385) & (distance < 0.405)
    of_ring = np.where(gap, 0.08, 0.75 - 0.5 * (distance - 0.31))

    height = 0.22**2 - along**2 - across**2  # squared, of the planet's surface towards us
    lit = (0.35 * np.sqrt(np.maximum(height, 0)) - 0.75 * column - 0.3 * row) / 0.22
    bands = 0.85 + 0.15 * np.cos(60 * across)
    of_ball = np.clip(lit * bands, 0.04, 1)
    in_front = ring & (across > 0)
    light = np.where(ring, of_ring, 0)
    return np.where((height > 0) & ~in_front, of_ball, light)


def _turned(row, column, angle):
    """The same places in axes that are turned by an angle: (along the ring, across it)."""
    along = column * np.cos(angle) + row * np.sin(angle)
    across = row * np.cos(angle) - column * np.sin(angle)
    return along, across


def _stars(side):
    """A dark sky with a star for each hundred pixels or so."""
    rng = np.random.default_rng(SEED)
    return np.where(rng.random((side, side)) < 0.012, rng.uniform(0.3, 1, (side, side)), 0)


def sent(side: int = SIDE) -> np.ndarray:
    """The packets in the order of their times: the photograph, row after row."""
    pixels = side * side
    rng = np.random.default_rng(SEED)
    times = np.sort(rng.choice(2 * pixels, pixels, replace=False))
    return (times << BRIGHTNESS_BITS | taken(side).ravel()).astype(np.int32)


def received(side: int = SIDE) -> np.ndarray:
    """The packets in the order in which they arrived."""
    return np.random.default_rng(SEED).permutation(sent(side))


def checksum(side: int = SIDE) -> int:
    """The sum of all brightnesses, each plus one: a black pixel that is lost shows, too."""
    return int((taken(side) + np.int64(1)).sum())


def brightness(packets: np.ndarray) -> np.ndarray:
    """The pixels of a square photograph as the packets stand: uint8 [side, side]."""
    side = int(np.sqrt(packets.size))
    return (packets & (1 << BRIGHTNESS_BITS) - 1).astype(np.uint8).reshape(side, side)
