"""How the judge and the candidate's process speak: a length, then a message.

There go pickles, which the judge wrote; back come a header, as JSON, and the raw bytes that it
speaks of. Both ends use this file, so it imports nothing of the judge's.
"""

import json
import pickle
import struct

#: Lengths of a reply's header and of its bytes
HEAD = struct.Struct("<QQ")


def receive(channel):
    """The next message, or None where the other end is gone."""
    head = _exactly(channel, 8)
    return None if head is None else pickle.loads(_exactly(channel, int.from_bytes(head, "little")))


def _exactly(channel, count):
    data = bytearray()
    while len(data) < count:
        piece = channel.recv(min(count - len(data), 1 << 20))
        if not piece:
            return None
        data += piece
    return bytes(data)


def reply(channel, header, buffers=()):
    """Send a header, as JSON, and the bytes that it speaks of."""
    header["sizes"] = list(map(len, buffers))
    text = json.dumps(header).encode()
    channel.sendall(HEAD.pack(len(text), sum(map(len, buffers))) + text)
    for buffer in buffers:
        channel.sendall(buffer)
