"""A square to draw a digit in, with the mouse or the keys, and what makes a drawing look like one
of MNIST's digits.
"""

import functools

import numpy as np

SIDE = 280  # pixels of the square on the screen; a digit has a tenth of that
PEN = 22

# What runs in the browser: strokes on a canvas; after each, its grey values in 28 × 28 go to
# Python.
_JAVASCRIPT = """
const KEYS = "Keys: arrows move the pen, the space bar puts it down and lifts it";

function render({ model, el }) {
  const side = model.get("side");
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = side;
  canvas.style.cssText =
    "border: 1px solid #888; cursor: crosshair; touch-action: none; background: black";
  canvas.setAttribute("aria-label", "Draw a digit here");
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-description", KEYS);
  canvas.tabIndex = 0;
  // JupyterLab leaves the keys to us
  canvas.setAttribute("data-lm-suppress-shortcuts", "true");
  const clear = document.createElement("button");
  clear.textContent = "Clear";
  clear.style.cssText = "display: block; margin-top: 4px";
  const answer = document.createElement("div");
  answer.style.cssText = "font-size: 16px; margin-top: 4px; min-height: 1.4em";
  const keys = document.createElement("small");
  keys.textContent = KEYS;
  keys.style.display = "block";
  el.append(canvas, keys, clear, answer);

  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const wipe = () => { pen.fillStyle = "black"; pen.fillRect(0, 0, side, side); };
  wipe();
  let drawing = false;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    const x = (event.clientX - box.left) * side / box.width;
    const y = (event.clientY - box.top) * side / box.height;
    return [x, y];
  };
  const send = () => {
    const small = document.createElement("canvas");
    small.width = small.height = 28;
    const shrink = small.getContext("2d");
    shrink.imageSmoothingQuality = "high";
    shrink.drawImage(canvas, 0, 0, 28, 28);
    const colours = shrink.getImageData(0, 0, 28, 28).data;
    model.set("pixels", Array.from({ length: 784 }, (_, i) => colours[4 * i]));
    model.save_changes();
  };
  const begin = (x, y) => {
    drawing = true;
    pen.strokeStyle = "white";
    pen.lineWidth = model.get("pen");
    pen.lineCap = pen.lineJoin = "round";
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x, y);
    pen.stroke();
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    begin(...place(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    if (drawing) { pen.lineTo(...place(event)); pen.stroke(); }
  });
  canvas.addEventListener("pointerup", () => { if (drawing) { drawing = false; send(); } });

  // With the keys: the line below the square says where the pen is
  const at = [side / 2, side / 2];
  const moves = {
    ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
  };
  canvas.addEventListener("keydown", (event) => {
    const move = moves[event.key];
    if (!move && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    if (move) {
      at.forEach((value, axis) => {
        at[axis] = Math.min(Math.max(value + move[axis] * side / 20, 0), side);
      });
      if (drawing) { pen.lineTo(...at); pen.stroke(); }
    } else if (drawing) {
      drawing = false;
      send();
    } else {
      begin(...at);
    }
    const share = at.map((value) => Math.round(100 * value / side));
    keys.textContent = `Pen ${drawing ? "down" : "up"} at ${share[0]} % across, ${share[1]} % down`;
  });
  clear.addEventListener("click", () => { wipe(); send(); });
  model.on("change:answer", () => { answer.textContent = model.get("answer"); });
  answer.textContent = model.get("answer");
}
export default { render };
"""


@functools.cache
def _widget_class():
    import anywidget  # only where somebody draws
    import traitlets

    class Square(anywidget.AnyWidget):
        _esm = _JAVASCRIPT
        side = traitlets.Int(SIDE).tag(sync=True)
        pen = traitlets.Int(PEN).tag(sync=True)
        pixels = traitlets.List(trait=traitlets.Int()).tag(sync=True)
        answer = traitlets.Unicode("Draw a digit: the answer comes when you lift the mouse.").tag(
            sync=True
        )

        def __repr__(self):  # what a page shows in its place
            return "A square to draw in; it needs a running notebook."

    return Square


def square(read):
    """A widget to draw in.

    After each stroke `read(image)`, with the drawing as uint8 [28, 28] in MNIST's manner, returns
    what stands below the square: a text. An empty square is not read.
    """
    widget = _widget_class()()

    def drawn(change):
        image = like_mnist(np.array(change["new"], np.uint8).reshape(28, 28))
        widget.answer = read(image) if image.any() else ""

    widget.observe(drawn, "pixels")
    return widget


def examples() -> list[np.ndarray]:
    """A seven and a zero, drawn with lines and brought into MNIST's manner."""
    seven = [(0.3, 0.25), (0.7, 0.25), (0.45, 0.8)]
    angles = np.arange(33) / 5
    zero = np.stack([0.5 + 0.2 * np.cos(angles), 0.5 + 0.3 * np.sin(angles)], axis=1)
    return [like_mnist(strokes([line])) for line in (seven, zero)]


def strokes(lines) -> np.ndarray:
    """A drawing without a mouse: uint8 [28, 28] of lines, each a list of (x, y) from 0 to 1, drawn
    with the widget's pen.
    """
    from PIL import Image, ImageDraw

    picture = Image.new("L", (SIDE, SIDE))
    pen = ImageDraw.Draw(picture)
    for line in lines:
        points = [(SIDE * x, SIDE * y) for x, y in line]
        pen.line(points, fill=255, width=PEN, joint="curve")
        for x, y in points:
            pen.ellipse((x - PEN / 2, y - PEN / 2, x + PEN / 2, y + PEN / 2), fill=255)
    return np.array(picture.resize((28, 28), Image.Resampling.BOX))


def like_mnist(drawing: np.ndarray) -> np.ndarray:
    """A drawing in MNIST's manner: fitted into 20 × 20 pixels, its centre of mass in the middle of
    the 28 × 28.

    drawing: uint8, 0 where nothing is. Method: as the digits of MNIST were made (LeCun et al.,
        1998).
    """
    from PIL import Image

    rows, columns = np.nonzero(drawing)
    if len(rows) == 0:
        return np.zeros((28, 28), np.uint8)
    ink = drawing[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    scale = 20 / max(ink.shape)
    height, width = (max(1, round(side * scale)) for side in ink.shape)
    ink = np.array(Image.fromarray(ink).resize((width, height), Image.Resampling.BILINEAR), float)
    mass = ink.sum()
    centre = [(ink.sum(1 - axis) @ np.arange(ink.shape[axis])) / mass for axis in (0, 1)]
    top, left = (
        int(np.clip(round(13.5 - c), 0, 28 - size))
        for c, size in zip(centre, ink.shape, strict=True)
    )
    result = np.zeros((28, 28), np.uint8)
    result[top : top + height, left : left + width] = np.rint(ink)
    return result
