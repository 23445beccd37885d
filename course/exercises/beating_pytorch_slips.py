"""What natural mistakes in the exercises of the chapter Beating PyTorch compute, in float64.

A check that sees the same numbers can say which mistake it was.
"""

import numpy as np

from course.kernels.mnist_cnn.sockets import BORDER, HEAD_ROWS, MIDDLE, head_of, pooled_of

THREADS = 256  # of a socket's blocks

# ---- bn_relu_pool


def windows_of(z):
    """The four values of each pooling window: [rows / 2, width / 2, 4, channels]."""
    rows, width, channels = z.shape
    windows = z.reshape(rows // 2, 2, width // 2, 2, channels).transpose(0, 2, 1, 3, 4)
    return windows.reshape(rows // 2, width // 2, 4, channels)


def normalized(y, scale, shift, lowest=0):
    """Batch norm, raised to `lowest` at least."""
    return np.maximum(y.astype(np.float64) * scale + shift, lowest)


def pooled(out, y, scale, shift, rows, width, channels, lowest=0):
    """Normalized, raised to `lowest` at least, the largest of each 2×2 window: what is right."""
    return windows_of(normalized(y, scale, shift, lowest)).max(2)


def pooled_then_normalized(out, y, scale, shift, rows, width, channels):
    """With pooling in front of batch norm."""
    return normalized(windows_of(y).max(2), scale, shift)


def windows_side_by_side(out, y, scale, shift, rows, width, channels):
    """With windows that begin one pixel apart, in two lines as they should."""
    lines = normalized(y, scale, shift).reshape(rows // 2, 2, width, channels).max(1)
    half = width // 2
    return np.maximum(lines[:, :half], lines[:, 1 : half + 1])


def windows_below_one_another(out, y, scale, shift, rows, width, channels):
    """With windows that begin one line apart, and two pixels as they should."""
    columns = normalized(y, scale, shift).reshape(rows, width // 2, 2, channels).max(2)
    half = rows // 2
    return np.maximum(columns[:half], columns[1 : half + 1])


def of_each_window(taken):
    """With what `taken` makes of the four values of each window, [..., 4, channels]."""

    def changed(out, y, scale, shift, rows, width, channels):
        return taken(windows_of(normalized(y, scale, shift)))

    return changed


def channel_slowest(out, y, scale, shift, rows, width, channels):
    """With output i taken apart as if it lay as whole pictures, one for each channel."""
    right = pooled(out, y, scale, shift, rows, width, channels)
    return right.transpose(2, 0, 1).reshape(right.shape)


def pixels_side_by_side(out, y, scale, shift, rows, width, channels):
    """With pixel p's channel c at p + c."""
    row, x, k, c = np.ogrid[: rows // 2, : width // 2, :4, :channels]
    place = (2 * row + k // 2) * width + 2 * x + k % 2 + c
    return normalized(y.ravel()[place], scale, shift).max(2)


def in_places(offset):
    """With the value k of a window at offset(k, width, channels) from its first."""

    def changed(out, y, scale, shift, rows, width, channels):
        row, x, k, c = np.ogrid[: rows // 2, : width // 2, :4, :channels]
        first = (2 * row * width + 2 * x) * channels + c
        place = first + offset(k, width, channels)
        return normalized(y.ravel()[place], scale, shift).max(2)

    return changed


# ---- patch_moments


def moments_in_other_windows(images, border=BORDER, apart=2, before=1, less=MIDDLE, behind=None):
    """The moments with another border, of windows that lie closer together or begin with another
    number of pixels before the image and end with another behind it, or of bytes from which
    something else is taken.
    """
    q = windows_in(images, border, apart, before, less, behind)
    return np.vstack([q.T @ q, q.sum(0)])


def windows_in(images, border=BORDER, apart=2, before=1, less=MIDDLE, behind=None):
    """The 16 pixels of each window, of all images."""
    around = before, 2 - before if behind is None else behind
    bordered = np.pad(
        images.astype(np.float64) - less, ((0, 0), around, around), constant_values=border
    )
    view = np.lib.stride_tricks.sliding_window_view(bordered, (4, 4), axis=(1, 2))
    return view[:, ::apart, ::apart].reshape(-1, 16)


def plain_byte_first(moments, images, batch):
    """The moments with products of a plain byte and a pixel; a border has no byte, and counts the
    same in both.
    """
    q = windows_in(images)
    plain = windows_in(images, less=0)
    return np.vstack([plain.T @ q, q.sum(0)])


def added_after_each_digit(moments, images, batch, blocks):
    """The moments of blocks that add to the array after each digit what they have so far."""
    of_digits = [moments_in_other_windows(images[n : n + 1]) for n in range(batch)]
    of_blocks = (np.cumsum(of_digits[block::blocks], axis=0) for block in range(blocks))
    return sum(sums.sum(0) for sums in of_blocks if len(sums))


def singles_times(factor):
    """The moments with row 16 as many times as large."""

    def changed(moments, images, batch):
        return moments_in_other_windows(images) * np.where(np.arange(17) < 16, 1, factor)[:, None]

    return changed


# ---- conv1_pool


def pooled_by(norm):
    """conv1_pool with another pair (scale, shift), made by `norm` of these."""

    def changed(pooled, images, weights, scale, shift, batch):
        return pooled_of(pooled, images, weights, *norm(scale, shift), batch)

    return changed


def pooled_with(other):
    """conv1_pool with weights that `other` makes of these."""

    def changed(pooled, images, weights, scale, shift, batch):
        of_them = np.ascontiguousarray(other(weights)).reshape(weights.shape)
        return pooled_of(pooled, images, of_them, scale, shift, batch)

    return changed


def eight_taps(weights):
    """The weights of all channels, the last tap of each being 0."""
    return weights.reshape(32, 9) * (np.arange(9) < 8)


def first_channel_alone(weights):
    """The weights of channel 0, for every channel."""
    return np.repeat(weights.reshape(32, 9)[:1], 32, axis=0)


def without_relu(pooled, images, weights, scale, shift, batch):
    """Convolution, batch norm and pooling; what is negative stays so."""
    high = shift.astype(np.float64) + 1e6
    return pooled_of(pooled, images, weights, scale, high, batch) - 1e6


def sums_of(images, weights, up=1, left=1, border=BORDER, less=MIDDLE):
    """The convolution's sums, [batch, 28, 28, 32] in float64.

    up, left: pixels that the taps reach up and to the left. border: what a pixel outside of the
    image counts. less: what is taken from each byte.
    """
    bordered = np.pad(
        images.astype(np.float64) - less,
        ((0, 0), (up, 2 - up), (left, 2 - left)),
        constant_values=border,
    )
    nine = np.lib.stride_tricks.sliding_window_view(bordered, (3, 3), axis=(1, 2))
    return np.einsum("nyxrc,krc->nyxk", nine, weights.astype(np.float64).reshape(32, 3, 3))


def fours(sums):
    """The four outputs of each pooling window in their order: [batch, 14, 14, 4, 32]."""
    batch, side, _, channels = sums.shape
    windows = sums.reshape(batch, side // 2, 2, side // 2, 2, channels)
    return windows.transpose(0, 1, 3, 2, 4, 5).reshape(batch, side // 2, side // 2, 4, channels)


def behind_norm(four, scale, shift):
    """Batch norm and ReLU."""
    return np.maximum(four * scale.astype(np.float64) + shift, 0)


def of_sums(**how):
    """conv1_pool with other sums: see sums_of."""

    def changed(pooled, images, weights, scale, shift, batch):
        return behind_norm(fours(sums_of(images, weights, **how)), scale, shift).max(3)

    return changed


def of_fours(made):
    """conv1_pool with what `made` makes of the sums of each window, [..., 4, channels]."""

    def changed(pooled, images, weights, scale, shift, batch):
        return behind_norm(made(fours(sums_of(images, weights))), scale, shift).max(3)

    return changed


def mean_of_outputs(pooled, images, weights, scale, shift, batch):
    """With the mean of each window's four outputs."""
    return behind_norm(fours(sums_of(images, weights)), scale, shift).mean(3)


def windows_one_apart(down, right):
    """With windows that begin one line apart, one pixel apart, or both."""

    def changed(pooled, images, weights, scale, shift, batch):
        sums = sums_of(images, weights)
        y, x, k = np.ogrid[:14, :14, :4]
        line = y * (1 if down else 2) + k // 2
        column = x * (1 if right else 2) + k % 2
        return behind_norm(sums[:, line, column], scale, shift).max(3)

    return changed


def pooled_before_norm(pooled, images, weights, scale, shift, batch):
    """With pooling in front of batch norm."""
    largest = pooled_of(pooled, images, weights, np.ones(32), np.full(32, 1e9), batch) - 1e9
    return np.maximum(largest * scale.astype(np.float64) + shift, 0)


# ---- head


def in_float64(*arrays):
    """These arrays, in float64."""
    return [array.astype(np.float64) for array in arrays]


def softmax_of(logits):
    """The softmax of each line."""
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def with_gradient(gradient, out, hidden, w, bias, labels, batch):
    """The end of the network with another gradient of the logits; the loss is right."""
    hidden, w = in_float64(hidden, w)
    result = head_of(out, hidden, w, bias, labels, batch)
    behind = np.where(hidden > 0, gradient @ w, 0)
    result[:10], result[10], result[11, :10] = gradient.T @ hidden, behind.sum(0), gradient.sum(0)
    result[HEAD_ROWS:] = behind
    return result


def loss_made(change, out, hidden, w, bias, labels, batch):
    """The end of the network with another loss: change(it, the digits' largest logits, batch)."""
    logits = hidden.astype(np.float64) @ w.T.astype(np.float64) + bias
    result = head_of(out, hidden, w, bias, labels, batch)
    result[11, 10] = change(result[11, 10], logits.max(1).sum(), batch)
    return result


def without_labels(out, hidden, w, bias, labels, batch):
    """With softmax alone as the logits' gradient."""
    h, weights = in_float64(hidden, w)
    gradient = softmax_of(h @ weights.T + bias) / batch
    return with_gradient(gradient, out, hidden, w, bias, labels, batch)


def not_normalized(out, hidden, w, bias, labels, batch):
    """With the exponentials alone in the place of softmax."""
    h, weights = in_float64(hidden, w)
    logits = h @ weights.T + bias
    powers = np.exp(logits - logits.max(1, keepdims=True))
    gradient = (powers - (np.arange(10) == labels[:, None])) / batch
    return with_gradient(gradient, out, hidden, w, bias, labels, batch)


def logarithm_of_softmax(out, hidden, w, bias, labels, batch):
    """With a loss that is the logarithm of float32's softmax, which may be 0."""
    h, weights = in_float64(hidden, w)
    logits = h @ weights.T + bias
    powers = np.exp((logits - logits.max(1, keepdims=True)).astype(np.float32))
    with np.errstate(divide="ignore"):
        losses = -np.log((powers / powers.sum(1, keepdims=True))[np.arange(batch), labels])
    result = head_of(out, hidden, w, bias, labels, batch)
    result[11, 10] = losses.astype(np.float64).mean()
    return result


def nothing_subtracted(out, hidden, w, bias, labels, batch):
    """With float32's exponentials of the logits as they are, where one of them is infinite.

    Where all are 0, it is as if what is subtracted began at 0: that has a guess of its own.
    """
    h, weights = in_float64(hidden, w)
    logits = h @ weights.T + bias
    if (logits.max(1) < 0).all():
        return head_of(out, hidden, w, bias, labels, batch)
    return less(np.zeros((len(logits), 1)), out, hidden, w, bias, labels, batch)


def subtracted_from_0_on(out, hidden, w, bias, labels, batch):
    """With the largest logit sought from 0 on."""
    h, weights = in_float64(hidden, w)
    largest = (h @ weights.T + bias).max(1, keepdims=True)
    return less(np.maximum(largest, 0), out, hidden, w, bias, labels, batch)


def less(subtracted, out, hidden, w, bias, labels, batch):
    """With float32's exponentials of the logits less what is `subtracted`, for each digit."""
    h, weights = in_float64(hidden, w)
    logits = h @ weights.T + bias - subtracted
    with np.errstate(all="ignore"):
        powers = np.exp(logits.astype(np.float32))
        total = powers.sum(1, keepdims=True)
        gradient = (powers / total - (np.arange(10) == labels[:, None])) / batch
        losses = np.log(total[:, 0]) - logits[np.arange(batch), labels]
        result = with_gradient(gradient, out, hidden, w, bias, labels, batch)
    result[11, 10] = losses.sum() / batch
    return result


def label_not_divided(out, hidden, w, bias, labels, batch):
    """With the 1 at the label subtracted after the division by the batch."""
    h, weights = in_float64(hidden, w)
    gradient = softmax_of(h @ weights.T + bias) / batch - (np.arange(10) == labels[:, None])
    return with_gradient(gradient, out, hidden, w, bias, labels, batch)


def gradients_times(factor, out, hidden, w, bias, labels, batch):
    """With gradients as many times as large; the loss is right."""
    result = head_of(out, hidden, w, bias, labels, batch)
    loss = result[11, 10]
    result *= factor(batch)
    result[11, 10] = loss
    return result


def in_lane_0_alone(out, hidden, w, bias, labels, batch, loss_too=True):
    """What is added where the other lanes hold zeros. loss_too: as their loss, too."""
    result = head_of(out, hidden, w, bias, labels, batch)
    loss = result[11, 10]
    result[:, np.arange(128) % 32 > 0] = 0
    result[11, 1:] = 0
    result[11, 10] = 0 if loss_too else loss
    return result


def each_lane_alone(out, hidden, w, bias, labels, batch):
    """With the logits of each lane's own four values."""
    result = np.zeros(out.shape)
    for lane in range(32):
        own = np.arange(128) % 32 == lane
        of_lane = head_of(out, hidden * own, w, bias, labels, batch)
        result[:, own] = of_lane[:, own]
        if lane < 11:
            result[11, lane] = of_lane[11, lane]
    return result


def each_32_times(out, hidden, w, bias, labels, batch):
    """With each product in the logits 32 times."""
    result = head_of(out, 32 * hidden, w, bias, labels, batch)
    result[:10] /= 32  # the gradient of a weight has the hidden value once
    return result


def one_of_four(out, hidden, w, bias, labels, batch):
    """With logits of the first 32 hidden values."""
    first = hidden * (np.arange(128) < 32)
    h, weights = in_float64(first, w)
    gradient = softmax_of(h @ weights.T + bias)
    gradient = (gradient - (np.arange(10) == labels[:, None])) / batch
    result = with_gradient(gradient, out, hidden, w, bias, labels, batch)
    result[11, 10] = head_of(out, first, w, bias, labels, batch)[11, 10]
    return result


# ---- update


def update_of(parts_of=lambda parts: parts.sum(0), sign=1):
    """A step with another gradient of the parts, or uphill."""

    def changed(weights, parts, count, splits, rate):
        return weights.astype(np.float64) - sign * rate * parts_of(parts.astype(np.float64))

    return changed


def gradient_goes_on(weights, parts, count, splits, rate, blocks):
    """With a gradient that is not put back to 0 between the weights of a thread."""
    gradient = parts.astype(np.float64).sum(0)
    threads = blocks * THREADS
    for first in range(threads, count, threads):
        part = slice(first, first + threads)
        gradient[part] += gradient[first - threads : first][: len(gradient[part])]
    return weights.astype(np.float64) - rate * gradient


def without_rate(weights, parts, count, splits, rate):
    """A step as large as the gradient."""
    return weights.astype(np.float64) - parts.astype(np.float64).sum(0)


# ---- split_sums


def summed(out, x, w, inputs, splits):
    """Each digit's sums over all inputs: what is right."""
    values, weights = in_float64(x, w)
    return values @ weights


def summed_without_rest(out, x, w, inputs, splits):
    """Without the inputs behind the last full share."""
    full = inputs // splits * splits
    return summed(out, x[:, :full], w[:full], full, splits)


def first_part_alone(out, x, w, inputs, splits):
    """Every `splits`-th input, from the first on."""
    return summed(out, x[:, ::splits], w[::splits], inputs, splits)


def to_the_end(out, x, w, inputs, splits):
    """With parts that begin where they should, and all go on to the last input."""
    share = -(-inputs // splits)
    times_there = np.minimum(np.arange(inputs) // share + 1, splits)
    return summed(out, x * times_there, w, inputs, splits)


def sixty_four_each(out, x, w, inputs, splits):
    """With 64 inputs for each part."""
    return summed(out, x[:, : 64 * splits], w[: 64 * splits], inputs, splits)


def overlapping(out, x, w, inputs, splits):
    """With parts that take the first product of the next one, too."""
    share = -(-inputs // splits)
    again = np.arange(inputs) % share == 0
    again[0] = False
    return summed(out, x * (1 + again), w, inputs, splits)
