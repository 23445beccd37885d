"""A number plate at night, and the camera that shook while its shutter was open.

photograph(word), first()       what a camera took: a plate that nobody can read, and a street lamp
around_lamp(photo)              the part of a photograph in which there is nothing but the lamp
exposed(word, moments)          a word as it is on film after some of the shake's moments

While the shutter is open the camera looks along a path. In each moment the same scene falls on the
film at another place, and light adds up: the photograph is the mean of shifted scenes.
"""

import numpy as np

SIZE = 72, 184  # pixels: height, width
PLATE = slice(28, 66), slice(10, 174)
PAPER, PAINT = 0.9, 0.1  # how bright the plate and its letters are; the night is 0
LETTERS = 26  # points at 72 dots per inch, so pixels
ALONE = 40  # pixels: the picture of a single letter
LAMP = 9, 150  # the pixel with the street lamp
BRIGHTNESS = 25  # of the lamp, which is a single pixel
SIDE = 17  # pixels: the square in which the shake's path lies
PATH = ((2, 1), (8, 6), (1, 12), (6, 15), (11, 12), (8, 8), (15, 5))  # row, column: its corners
MOMENTS = 100  # of the shake, evenly along the path
STEPS = 255  # of a photograph, from black to white
FIRST, SECOND = "GPU 4 YOU", "WELL DONE"


def moments() -> np.ndarray:
    """[MOMENTS, 2] row and column, in 0 .. SIDE - 1, to which the camera has moved the scene."""
    corners = np.array(PATH, float)
    lengths = np.hypot(*np.diff(corners, axis=0).T)
    along = np.append(0, lengths.cumsum())
    at = np.linspace(0, along[-1], MOMENTS)
    places = [np.interp(at, along, corners[:, axis]) for axis in (0, 1)]
    return np.rint(places).astype(int).T


def shaken(scene, count: int = MOMENTS) -> np.ndarray:
    """The mean of a scene [h, w] as the first `count` moments moved it; around it is night."""
    h, w = scene.shape
    middle = SIDE // 2
    around = np.pad(scene, middle)
    total = np.zeros_like(scene)
    for row, column in moments()[:count]:
        down, right = SIDE - 1 - row, SIDE - 1 - column  # what was there moves to the middle
        total += around[down : down + h, right : right + w]
    return total / count


def written(word: str, h: int, w: int, size: float = LETTERS) -> np.ndarray:
    """[h, w] a word in the middle of a picture: 1 where there is paint, 0 where there is none."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((w / 72, h / 72), dpi=72)
    canvas = FigureCanvasAgg(figure)
    look = {"ha": "center", "va": "center", "family": "DejaVu Sans Mono", "weight": "bold"}
    figure.text(0.5, 0.47, word, size=size, **look)
    canvas.draw()
    return 1 - np.asarray(canvas.buffer_rgba())[..., 0] / STEPS


def exposed(word: str, count: int) -> np.ndarray:
    """Light letters in the night, after the first `count` moments of the shake."""
    return shaken(written(word, ALONE, ALONE), count)


def photograph(word: str) -> np.ndarray:
    """[SIZE] float32 in 0 .. 1: the photograph of a plate with this word, and of the lamp."""
    scene = np.zeros(SIZE)
    h, w = (part.stop - part.start for part in PLATE)
    scene[PLATE] = PAPER + (PAINT - PAPER) * written(word, h, w)
    scene[LAMP] = BRIGHTNESS
    steps = np.rint(shaken(scene).clip(0, 1) * STEPS)
    return (steps / STEPS).astype(np.float32)


def first() -> np.ndarray:
    """The photograph of the car that drove away: what its plate says, the reader finds out."""
    return photograph(FIRST)


def second() -> np.ndarray:
    """The photograph of a second car, taken by the same hand."""
    return photograph(SECOND)


def around_lamp(photo) -> np.ndarray:
    """[SIDE, SIDE] the square of a photograph whose middle is the lamp's place."""
    half = SIDE // 2
    row, column = LAMP
    return photo[row - half : row + half + 1, column - half : column + half + 1]
