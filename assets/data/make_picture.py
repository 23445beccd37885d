"""Render `assets/data/picture.png`: spheres on a chequered floor under an evening sky.

    python assets/data/make_picture.py

A ray tracer in NumPy: every pixel's rays are traced at once. Smooth gradients (sky, shading), hard
edges (spheres, floor) and fine texture (far squares, bands) give image kernels something to show.
"""

from pathlib import Path

import numpy as np

PATH = Path(__file__).parent / "picture.png"
HEIGHT, WIDTH, SAMPLES = 384, 512, 3  # SAMPLES² rays a pixel
BOUNCES = 4

# centre x, y, z (y is up), radius, red, green, blue, share of light mirrored, strength of bands
SPHERES = np.array(
    [
        [-0.15, 1.00, 4.6, 1.00, 0.80, 0.035, 0.03, 0.16, 0.0],
        [-2.30, 0.75, 4.3, 0.75, 0.02, 0.14, 0.72, 0.14, 0.0],
        [1.95, 0.80, 4.1, 0.80, 0.92, 0.46, 0.03, 0.10, 0.0],
        [0.95, 0.38, 2.75, 0.38, 0.02, 0.46, 0.14, 0.12, 0.0],
        [-1.05, 0.34, 2.75, 0.34, 0.36, 0.05, 0.56, 0.16, 0.0],
        [3.60, 1.30, 7.6, 1.30, 0.90, 0.90, 0.92, 0.85, 0.0],
        [-3.70, 1.30, 7.8, 1.30, 0.80, 0.42, 0.20, 0.04, 0.6],
        [0.10, 0.20, 2.15, 0.20, 0.90, 0.86, 0.78, 0.20, 0.0],
    ]
)
SUN = np.array([-0.75, 0.62, -0.22]) / np.linalg.norm([-0.75, 0.62, -0.22])
EYE = np.array([0.0, 1.75, -1.7])


def sky(direction: np.ndarray) -> np.ndarray:
    """Colour of the sky: from a warm horizon to a deep blue, with soft bands of cloud."""
    up = np.clip(direction[:, 1], 0, 1)[:, None]
    warm, pale, blue = (
        np.array([1.0, 0.50, 0.20]),
        np.array([0.36, 0.55, 0.80]),
        np.array([0.02, 0.09, 0.34]),
    )
    low, high = np.clip(up / 0.17, 0, 1), np.clip((up - 0.08) / 0.45, 0, 1)
    colour = warm + (pale - warm) * (low * low * (3 - 2 * low))
    colour = colour + (blue - colour) * high
    x, z = direction[:, 0] / (direction[:, 1] + 0.12), direction[:, 2] / (direction[:, 1] + 0.12)
    wave = np.sin(0.9 * x + 1.3 * np.sin(0.6 * z)) + 0.5 * np.sin(2.1 * z + 1.7 * np.sin(0.8 * x))
    cloud = np.clip(0.9 * wave - 0.35, 0, 1)[:, None] * np.clip(up * 6, 0, 1) * 0.6
    return colour + (np.array([1.0, 0.74, 0.60]) - colour) * cloud


def hit(origin: np.ndarray, direction: np.ndarray):
    """Distance to the nearest thing on each ray (inf: the sky), and which: a sphere's number or -1,
    floor.
    """
    with np.errstate(divide="ignore"):
        floor = -origin[:, 1] / direction[:, 1]
    distance, what = np.where(floor > 1e-4, floor, np.inf), np.full(len(origin), -1)
    for i, sphere in enumerate(SPHERES):
        offset = origin - sphere[:3]
        b = np.einsum("ij,ij->i", offset, direction)
        root = b * b - np.einsum("ij,ij->i", offset, offset) + sphere[3] ** 2
        near = -b - np.sqrt(np.maximum(root, 0))
        closer = (root > 0) & (near > 1e-4) & (near < distance)
        distance[closer], what[closer] = near[closer], i
    return distance, what


def shadow(point: np.ndarray) -> np.ndarray:
    """Share of sunlight that reaches each point: soft, by how closely its ray to the sun passes a
    sphere.
    """
    light = np.ones(len(point))
    for sphere in SPHERES:
        offset = sphere[:3] - point
        along = offset @ SUN
        miss = np.sqrt(np.maximum(np.einsum("ij,ij->i", offset, offset) - along**2, 0)) - sphere[3]
        blur = 0.09 * np.maximum(along, 1e-3)
        covered = np.clip(0.5 - miss / blur, 0, 1)
        light *= 1 - np.where(along > 0, covered * covered * (3 - 2 * covered), 0)
    return light


def bands(normal: np.ndarray, strength: np.ndarray) -> np.ndarray:
    """Brightness of a sphere's surface: bands around its axis, bent like those of a gas planet."""
    around = np.arctan2(normal[:, 2], normal[:, 0])
    height = (
        normal[:, 1] + 0.04 * np.sin(5 * around + 9 * normal[:, 1]) + 0.02 * np.sin(13 * around)
    )
    return 1 + strength * (0.5 * np.sin(14 * height) + 0.3 * np.sin(37 * height + 1) - 0.2)


def trace(origin: np.ndarray, direction: np.ndarray, bounces: int) -> np.ndarray:
    """Colour seen along each ray, linear light."""
    colour = sky(direction)
    distance, what = hit(origin, direction)
    seen = np.flatnonzero(np.isfinite(distance) & (distance < 60))
    if not seen.size:
        return colour
    origin, direction, distance, what = origin[seen], direction[seen], distance[seen], what[seen]
    point = origin + direction * distance[:, None]
    floor = what < 0
    sphere = SPHERES[what]  # for rays that hit the floor it is any, and not used
    normal = np.where(floor[:, None], [0.0, 1.0, 0.0], (point - sphere[:, :3]) / sphere[:, 3:4])
    squares = (np.floor(point[:, 0] + 0.5) + np.floor(point[:, 2])) % 2
    grain = 0.04 * np.sin(9 * point[:, 0] + 3 * np.sin(4 * point[:, 2]))
    tiles = np.where(squares[:, None] > 0, [0.74, 0.68, 0.58], [0.055, 0.075, 0.12]) * (
        1 + grain[:, None]
    )
    base = np.where(floor[:, None], tiles, sphere[:, 4:7] * bands(normal, sphere[:, 8])[:, None])
    mirror = np.where(floor, 0.06, sphere[:, 7])
    facing = np.clip(-np.einsum("ij,ij->i", normal, direction), 0, 1)
    mirror = (
        mirror + (1 - mirror) * 0.6 * (1 - facing) ** 5
    )  # Schlick: more is mirrored at a grazing angle

    start = point + normal * 1e-3
    sunlight = np.clip(normal @ SUN, 0, 1) * shadow(start)
    ambient = np.array([0.15, 0.18, 0.27]) * (0.55 + 0.45 * normal[:, 1:2])
    contact = np.ones(len(point))
    for centre_x, _, centre_z, radius in SPHERES[:, :4]:  # the floor is darker right under a sphere
        d2 = ((point[:, 0] - centre_x) ** 2 + (point[:, 2] - centre_z) ** 2) / radius**2
        contact *= np.where(floor, 1 - 0.75 * np.exp(-2.2 * d2), 1)
    lit = base * (ambient * contact[:, None] + sunlight[:, None] * np.array([1.55, 1.18, 0.82]))

    reflected = direction - 2 * np.einsum("ij,ij->i", normal, direction)[:, None] * normal
    if bounces:
        lit = lit + (trace(start, reflected, bounces - 1) - lit) * mirror[:, None]
    shine = np.clip(reflected @ SUN, 0, 1) ** 220 * shadow(start) * ~floor
    lit = lit + 1.6 * shine[:, None] * np.array([1.0, 0.95, 0.85])
    haze = (1 - np.exp(-((distance / 26) ** 2)))[:, None]
    horizon = direction.copy()
    horizon[:, 1] = 0.01
    colour[seen] = lit + (sky(horizon) - lit) * haze
    return colour


def render(height: int = HEIGHT, width: int = WIDTH, samples: int = SAMPLES) -> np.ndarray:
    """The picture: uint8 [height, width, 3], RGB. The same on every run."""
    total = np.zeros((height * width, 3))
    for i in range(samples):
        for j in range(samples):
            y, x = np.mgrid[:height, :width].astype(float)
            x, y = (x + (i + 0.5) / samples) / width, (y + (j + 0.5) / samples) / height
            right, up = (
                (x - 0.5) * 1.35,
                (0.5 - y) * 1.35 * height / width - 0.19,
            )  # looks down a little
            ray = np.stack([right, up, np.ones_like(x)], axis=-1).reshape(-1, 3)
            ray /= np.linalg.norm(ray, axis=-1, keepdims=True)
            total += trace(np.broadcast_to(EYE, ray.shape), ray, BOUNCES)
    light = total / samples**2
    light = (
        light * (1 + light / 9) / (1 + light / 2)
    )  # Reinhard: bright light is compressed, not clipped
    return (
        (255 * np.clip(light, 0, 1) ** (1 / 2.2) + 0.5).astype(np.uint8).reshape(height, width, 3)
    )


def main() -> None:
    from PIL import Image

    Image.fromarray(render()).save(PATH, optimize=True)
    print(f"{PATH.name}: {WIDTH} × {HEIGHT}, {PATH.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
