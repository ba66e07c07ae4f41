"""Queues between processes that survive a crash of either side: bulkhead_queue.h through ctypes.

A message is a fixed number of bytes: any object with a buffer (bytes, bytearray, memoryview, array, NumPy) is pushed
without a copy in Python, and `pop_into` writes into one. An object is used by one thread at a time.

The shared library is libbulkhead_queue.so.1, or the file that BULKHEAD_QUEUE_LIBRARY names.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_int32, c_size_t, c_ssize_t, c_uint32, c_uint64, c_void_p
from typing import Any, Callable, Iterator, NamedTuple, Optional

VERSION = 0x0001_0002
FULL, FAULT, NOT_FOUND, INCOMPLETE, LIVING, NO_FREE_PRODUCER = -1, -2, -3, -4, -5, -6
SENDER_CRASHED, RECEIVER_CRASHED, ATTACHED, PRODUCER_ALIVE, RETIRED = -7, -8, -9, -10, -11
BAD_NAME, BAD_SIZE, BAD_CAPACITY, BAD_PRODUCERS, BAD_INDEX, BAD_DESCRIPTORS = -17, -18, -19, -20, -21, -22
TAKEN, NOT_TAKEN, NO_SPACE, SYSTEM, DEFECT, BAD_LAYOUT = -23, -24, -25, -26, -27, -28
#: States of a producer.
STATES = ("free", "alive", "dead", "retired")
#: Seconds: wait for the descriptor of `Receiver.fileno` at most for as long, then pop again.
MAX_WAIT = 0.1

_path = os.environ.get("BULKHEAD_QUEUE_LIBRARY", "libbulkhead_queue.so.1")
#: Calls that do not block keep the interpreter's lock; calls that wait, attach or create release it.
_short, _long = ctypes.PyDLL(_path), ctypes.CDLL(_path)


class QueueError(Exception):
    """A failed call: `code` is one of this module's constants."""

    def __init__(self, code: int) -> None:
        super().__init__(_error_text(code).decode())
        self.code = code


class Producer(NamedTuple):
    """State of a producer, one of `STATES`, and the id of its process; 0: none."""

    state: str
    pid: int


class _Buffer(ctypes.Structure):
    """Py_buffer of CPython."""

    _fields_ = [
        ("address", c_void_p),
        ("owner", ctypes.py_object),
        ("length", c_ssize_t),
        ("item_bytes", c_ssize_t),
        ("is_readonly", c_int),
        ("dimensions", c_int),
        ("format", c_char_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    ]


_WRITABLE = 1
_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, POINTER(_Buffer), c_int]
_get_buffer.restype = c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [POINTER(_Buffer)]
_release_buffer.restype = None


def _function(library: Any, name: str, *arguments: Any, result: Any = c_int32) -> Any:
    function = library[name]
    function.argtypes, function.restype = list(arguments), result
    return function


_place = POINTER(c_void_p)
_error_text = _function(_short, "bhq_error_text", c_int32, result=c_char_p)
_create = _function(_long, "bhq_create", c_char_p, c_uint32, c_uint32, c_size_t, _place)
_create_sealed = _function(_long, "bhq_create_sealed", c_uint32, c_uint32, c_size_t, _place)
_open = _function(_long, "bhq_open", c_char_p, c_size_t, _place)
_open_fds = _function(_long, "bhq_open_fds", c_int32, c_int32, c_size_t, _place)
_fds = _function(_short, "bhq_fds", c_void_p, POINTER(c_int32), POINTER(c_int32))
_message_bytes = _function(_short, "bhq_message_bytes", c_void_p, result=c_size_t)
_producers = _function(_short, "bhq_producers", c_void_p, result=c_uint32)
_producer_state = _function(_short, "bhq_producer_state", c_void_p, c_uint32, POINTER(c_uint64))
_has_receiver = _function(_short, "bhq_has_receiver", c_void_p)
_attach_sender = _function(_long, "bhq_attach_sender", c_void_p, _place)
_resume_sender = _function(_long, "bhq_resume_sender", c_void_p, c_uint32, _place)
_attach_receiver = _function(_long, "bhq_attach_receiver", c_void_p, _place)
_resume_receiver = _function(_long, "bhq_resume_receiver", c_void_p, _place)
_close_queue = _function(_long, "bhq_close_queue", c_void_p, result=None)
_close_sender = _function(_long, "bhq_close_sender", c_void_p, result=None)
_close_receiver = _function(_long, "bhq_close_receiver", c_void_p, result=None)
_remove = _function(_long, "bhq_remove", c_char_p)
_push = _function(_short, "bhq_push", c_void_p, c_void_p, c_size_t)
_push_many = _function(_short, "bhq_push_many", c_void_p, c_void_p, c_size_t, c_uint32)
_sender_index = _function(_short, "bhq_sender_index", c_void_p)
_pop = _function(_short, "bhq_pop", c_void_p, c_void_p, c_size_t)
_pop_timeout = _function(_long, "bhq_pop_timeout", c_void_p, c_void_p, c_size_t, c_uint64)
_Each = CFUNCTYPE(c_int32, c_void_p, c_void_p)
_pop_many = _function(_short, "bhq_pop_many", c_void_p, c_void_p, c_size_t, c_uint32)
_drain = _function(_short, "bhq_drain", c_void_p, c_uint32, _Each, c_void_p)
_take = _function(_long, "bhq_take", c_void_p, _place, c_uint64)
_release = _function(_short, "bhq_release", c_void_p)
_put_back = _function(_short, "bhq_put_back", c_void_p)
_last_producer = _function(_short, "bhq_last_producer", c_void_p)
_faulty_producer = _function(_short, "bhq_faulty_producer", c_void_p)
_wait_fd = _function(_short, "bhq_wait_fd", c_void_p)
_prepare_wait = _function(_short, "bhq_prepare_wait", c_void_p)
_retire = _function(_short, "bhq_retire", c_void_p, c_uint32)
_renew = _function(_short, "bhq_renew", c_void_p, c_uint32)

_found = _function(_short, "bhq_version", result=c_uint32)()
if _found >> 16 != VERSION >> 16 or _found < VERSION:
    raise ImportError(f"{_path} has version {_found:#x} of the interface, and this module needs {VERSION:#x}")


def _checked(code: int) -> int:
    if code < 0:
        raise QueueError(code)
    return code


def _nanoseconds(seconds: float) -> int:
    return min(max(0, int(seconds * 1e9)), 2**64 - 1)


class _Handle:
    """An open handle, closed by `close`, `with` or the end of the object."""

    _close: Any = None

    def __init__(self, handle: Optional[int]) -> None:
        self._handle = handle

    def close(self) -> None:
        handle, self._handle = self._handle, None
        if handle:
            self._close(handle)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()


class Queue(_Handle):
    """A handle of a queue, from which its ends are attached. The creator's removes the name."""

    _close = staticmethod(_close_queue)

    @classmethod
    def create(cls, name: str, *, producers: int = 1, capacity: int, message_bytes: int) -> Queue:
        """Creates a queue under a name. `capacity`: messages of each producer, at least.

        Order as in C. By keyword only: numbers in the order of earlier versions are a TypeError.
        """
        place = c_void_p()
        _checked(_create(name.encode(), producers, capacity, message_bytes, byref(place)))
        return cls(place.value)

    @classmethod
    def create_sealed(cls, *, producers: int = 1, capacity: int, message_bytes: int) -> Queue:
        """Creates a queue without a name: see `fds`."""
        place = c_void_p()
        _checked(_create_sealed(producers, capacity, message_bytes, byref(place)))
        return cls(place.value)

    @classmethod
    def open(cls, name: str, message_bytes: int = 0) -> Queue:
        """Opens a queue by its name. `message_bytes`: the size that is expected; 0: any."""
        place = c_void_p()
        _checked(_open(name.encode(), message_bytes, byref(place)))
        return cls(place.value)

    @classmethod
    def open_fds(cls, memory: int, pipe: int, message_bytes: int = 0) -> Queue:
        """Opens a sealed queue. The descriptors remain the caller's."""
        place = c_void_p()
        _checked(_open_fds(memory, pipe, message_bytes, byref(place)))
        return cls(place.value)

    @property
    def fds(self) -> tuple[int, int]:
        """The descriptors of a sealed queue, memory and pipe. They remain the queue's."""
        memory, pipe = c_int32(), c_int32()
        _checked(_fds(self._handle, byref(memory), byref(pipe)))
        return memory.value, pipe.value

    @property
    def message_bytes(self) -> int:
        return int(_message_bytes(self._handle))

    def producers(self) -> list[Producer]:
        """The states of all producers, in the order of their indices."""
        states = []
        for index in range(_producers(self._handle)):
            pid = c_uint64()
            state = _checked(_producer_state(self._handle, index, byref(pid)))
            states.append(Producer(STATES[state], pid.value))
        return states

    def has_receiver(self) -> bool:
        return _checked(_has_receiver(self._handle)) == 1

    def sender(self) -> Sender:
        place = c_void_p()
        _checked(_attach_sender(self._handle, byref(place)))
        return Sender(place.value, self.message_bytes)

    def resume_sender(self, index: int) -> Sender:
        """Attaches a sender in place of a crashed producer."""
        place = c_void_p()
        _checked(_resume_sender(self._handle, index, byref(place)))
        return Sender(place.value, self.message_bytes)

    def receiver(self) -> Receiver:
        place = c_void_p()
        _checked(_attach_receiver(self._handle, byref(place)))
        return Receiver(place.value, self.message_bytes)

    def resume_receiver(self) -> Receiver:
        """Attaches the receiver in place of a crashed one."""
        place = c_void_p()
        _checked(_resume_receiver(self._handle, byref(place)))
        return Receiver(place.value, self.message_bytes)


class Sender(_Handle):
    """The sending end of a queue."""

    _close = staticmethod(_close_sender)

    def __init__(self, handle: Optional[int], message_bytes: int) -> None:
        super().__init__(handle)
        self._message_bytes = message_bytes

    def push(self, message: Any) -> bool:
        """Pushes a message: bytes, or any object with a contiguous buffer. False: the queue is full."""
        if type(message) is bytes:
            code = _push(self._handle, message, len(message))
        else:
            view = _Buffer()
            _get_buffer(message, byref(view), 0)
            try:
                code = _push(self._handle, view.address, view.length)
            finally:
                _release_buffer(byref(view))
        return code == 0 or _checked(0 if code == FULL else code) != 0

    def push_many(self, messages: Any) -> int:
        """Pushes the first of some messages, next to each other in one buffer, up to as many as fit. Their number."""
        view = _Buffer()
        _get_buffer(messages, byref(view), 0)
        try:
            if view.length % self._message_bytes:
                raise ValueError(f"{view.length} bytes are not whole messages of {self._message_bytes}")
            count = min(view.length // self._message_bytes, 2**31 - 1)
            return _checked(_push_many(self._handle, view.address, self._message_bytes, count))
        finally:
            _release_buffer(byref(view))

    @property
    def index(self) -> int:
        return _checked(_sender_index(self._handle))


class Receiver(_Handle):
    """The receiving end of a queue. Register it with selectors: see `prepare_wait`."""

    _close = staticmethod(_close_receiver)

    def __init__(self, handle: Optional[int], message_bytes: int) -> None:
        super().__init__(handle)
        self._message_bytes = message_bytes

    def pop(self, timeout: float = 0) -> Optional[bytearray]:
        """The next message, or None. Waits at most for `timeout` seconds. At most once."""
        message = bytearray(self._message_bytes)
        return message if self.pop_into(message, timeout) else None

    def pop_into(self, buffer: Any, timeout: float = 0) -> bool:
        """Pops the next message into a writable buffer of its size. False: there is none."""
        view = _Buffer()
        _get_buffer(buffer, byref(view), _WRITABLE)
        try:
            if timeout > 0:
                wait_ns = _nanoseconds(timeout)
                return _checked(_pop_timeout(self._handle, view.address, view.length, wait_ns)) == 1
            return _checked(_pop(self._handle, view.address, view.length)) == 1
        finally:
            _release_buffer(byref(view))

    def pop_many(self, buffer: Any) -> int:
        """Pops up to as many messages of one producer as a writable buffer has room for. Their number. At most once."""
        view = _Buffer()
        _get_buffer(buffer, byref(view), _WRITABLE)
        try:
            count = min(view.length // self._message_bytes, 2**31 - 1)
            return _checked(_pop_many(self._handle, view.address, self._message_bytes, count))
        finally:
            _release_buffer(byref(view))

    def drain(self, max_messages: int, each: Callable[[memoryview], Any]) -> int:
        """Passes up to that many messages of one producer to `each`, as read-only views that are invalid afterwards, and then
        frees them together. Their number. At least once: an exception of `each` is raised, and its message stays."""
        thrown: list[BaseException] = []

        def call(address: Optional[int], _: Optional[int]) -> int:
            whole = memoryview((ctypes.c_ubyte * self._message_bytes).from_address(address or 0))
            view = whole.cast("B").toreadonly()
            try:
                each(view)
            except BaseException as error:
                thrown.append(error)
                return 1
            finally:
                view.release()
            return 0

        drained = _drain(self._handle, min(max_messages, 2**31 - 1), _Each(call), None)
        if thrown:
            raise thrown[0]
        return _checked(drained)

    @contextmanager
    def take(self, timeout: float = 0) -> Iterator[Optional[memoryview]]:
        """The next message as a read-only view without a copy, or None. At least once: the end of the block releases the
        message, and an exception puts it back. The view is invalid after the block."""
        place = c_void_p()
        if _checked(_take(self._handle, byref(place), _nanoseconds(timeout))) == 0:
            yield None
            return
        whole = memoryview((ctypes.c_ubyte * self._message_bytes).from_address(place.value or 0))
        view = whole.cast("B").toreadonly()
        try:
            yield view
        except BaseException:
            _checked(_put_back(self._handle))
            raise
        else:
            _checked(_release(self._handle))
        finally:
            view.release()

    def prepare_wait(self) -> bool:
        """Arms the descriptor. True: the queue is empty; wait at most for `MAX_WAIT`, then pop until None."""
        return _checked(_prepare_wait(self._handle)) == 1

    def fileno(self) -> int:
        return _checked(_wait_fd(self._handle))

    @property
    def last_producer(self) -> int:
        return _checked(_last_producer(self._handle))

    @property
    def faulty_producer(self) -> Optional[int]:
        """The producer of the last FAULT."""
        index = _faulty_producer(self._handle)
        return None if index < 0 else index

    def retire(self, index: int) -> bool:
        """Stops polling a dead producer. False: it has messages to pop."""
        return _checked(_retire(self._handle, index)) == 1

    def renew(self, index: int) -> bool:
        """Resets the ring of a dead producer for a new sender. False: it has messages to pop."""
        return _checked(_renew(self._handle, index)) == 1


def remove(name: str) -> int:
    """Removes the files of a queue whose creator was killed. Returns their number."""
    return _checked(_remove(name.encode()))
