"""A process with one end of a transport, as src/role.rs: README.md has the protocol."""

import ctypes
import mmap
import os
import struct
import sys
import time

CAPACITY = 64
WORDS = 7
BYTES = 8 * WORDS
MASK = (1 << 64) - 1

# A function of two instructions, int3 and ret, at which the tracer stops this process.
_code = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
_code.write(b"\xcc\xc3")
_trap = ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(_code)))


def message(sender, number):
    def word(at):
        mixed = (number + 1) * 0x9E3779B97F4A7C15 & MASK
        return (mixed << at | mixed >> (64 - at)) & MASK ^ sender

    return struct.pack("<7Q", sender, number, *(word(at) for at in range(2, WORDS)))


def decode(found):
    sender, number = struct.unpack_from("<2Q", found) if len(found) == BYTES else (99, 0)
    return f"{sender}:{number}" if sender < 16 and found == message(sender, number) else "?"


def _print(line):
    os.write(1, (line.replace("\n", " ") + "\n").encode())


def _lines():
    line = b""
    while byte := os.read(0, 1):
        if byte == b"\n":
            yield line.decode()
            line = b""
        else:
            line += byte


def _marked(is_marked, action):
    if is_marked:
        _trap()
    try:
        return action()
    finally:
        if is_marked:
            _trap()


def _send(end, word, number, state):
    if word == "step":
        packed = message(state["id"], state["next"])
        _marked(True, lambda: end.push(packed))
        return "stepped"
    first = state["next"]
    count = 4 * CAPACITY if word == "fill" else number
    try:
        while state["next"] < first + count and end.push(message(state["id"], state["next"])):
            state["next"] += 1
    except Exception as error:
        return f"pushed {state['next'] - first} {error!r}"
    return f"pushed {state['next'] - first}"


def _receive(end, word, number, _):
    if word == "step":
        _marked(True, end.pop)
        return "stepped"
    until = time.monotonic() + (number / 1000 if word == "poll" else 0)
    limit = number if word == "take" else 16 * CAPACITY
    line, taken, looks = "popped", 0, 0
    try:
        while taken < limit and (looks < 3 or (word == "poll" and time.monotonic() < until)):
            found = end.pop()
            if found is None:
                looks += 1
                time.sleep(50e-6)
            else:
                taken += 1
                line += " " + decode(found)
    except Exception as error:
        return f"{line} {error!r}"
    return line


def run(version, sender, receiver, clean):
    """`sender` and `receiver` make an end of a folder and `create`, `join` or `resume`. A sender has
    `push(bytes) -> bool`, a receiver `pop() -> bytes or None`, both `close()`."""
    words = sys.argv[1:]
    if words == ["version"]:
        return _print(version)
    if words[1:2] == ["clean"]:
        return clean(words[2])
    _, kind, place, attach, number = words
    make, command = (sender, _send) if kind == "sender" else (receiver, _receive)
    state = {"id": int(number), "next": 0}
    end = None
    _print("gate")
    for line in _lines():
        is_marked = line.startswith("marked ")
        word, _, number = line.removeprefix("marked ").partition(" ")
        if word == "go":
            try:
                end = _marked(is_marked, lambda: make(place, attach))
            except Exception as error:
                return _print(f"refused {error!r}")
            _print("ready")
        elif word == "exit":
            break
        elif word == "drop":
            _marked(is_marked, end.close)
            end = None
            _print("dropped")
        else:
            _print(command(end, word, int(number or 0), state) if end else "not attached")
    if end:
        end.close()
    _print("bye")
