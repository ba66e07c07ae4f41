"""multiprocessing.shared_memory: a ring of one sender in a SharedMemory, which the receiver creates.

The ring is the caller's part: positions are stored after the message, and the magic word last. The
segment's life is the library's part. From Python 3.13 an end that only attaches is not tracked."""

import os
import platform
import struct
import sys
from multiprocessing.shared_memory import SharedMemory

import role

MAGIC, HEAD, TAIL, SLOTS = 0, 64, 128, 192
UNTRACKED = {"track": False} if sys.version_info >= (3, 13) else {}


class Ring:
    def __init__(self, place, attach):
        name = os.path.basename(place) + ".ring"
        self.is_creator = attach == "create"
        size = SLOTS + role.CAPACITY * role.BYTES
        if self.is_creator:
            try:
                old = SharedMemory(name, **UNTRACKED)
                old.unlink()
                old.close()
            except (FileNotFoundError, ValueError):
                pass
            self.memory = SharedMemory(name, create=True, size=size)
            self.store(MAGIC, 1)
        else:
            self.memory = SharedMemory(name, **UNTRACKED)
            if self.memory.size < size or self.load(MAGIC) != 1:
                self.memory.close()
                raise ValueError("not complete")

    def load(self, at):
        return struct.unpack_from("=Q", self.memory.buf, at)[0]

    def store(self, at, value):
        struct.pack_into("=Q", self.memory.buf, at, value)

    def slot(self, position):
        start = SLOTS + position % role.CAPACITY * role.BYTES
        return slice(start, start + role.BYTES)

    def push(self, message):
        head = self.load(HEAD)
        if head - self.load(TAIL) >= role.CAPACITY:
            return False
        self.memory.buf[self.slot(head)] = message
        self.store(HEAD, head + 1)
        return True

    def pop(self):
        tail = self.load(TAIL)
        if tail == self.load(HEAD):
            return None
        message = bytes(self.memory.buf[self.slot(tail)])
        self.store(TAIL, tail + 1)
        return message

    def close(self):
        self.memory.close()
        if self.is_creator:
            self.memory.unlink()


def clean(place):
    try:
        memory = SharedMemory(os.path.basename(place) + ".ring", **UNTRACKED)
        memory.unlink()
        memory.close()
    except (FileNotFoundError, ValueError):
        pass


role.run(platform.python_version(), Ring, Ring, clean)
