"""Orders of calls of the queue's C library that hypothesis invents, compared with a model.

Several handles of one queue, several senders, one receiver: attached, used, closed and resumed in any order, also in wrong
ones, and with wrong sizes and indices. Needs BULKHEAD_QUEUE_LIBRARY and the module bulkhead_queue on PYTHONPATH.

EXAMPLES: number of examples (10,000). BROKEN: a broken variant of the library's module, which must be found.
"""

import itertools
import os

import bulkhead_queue as bhq
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

NULL = -16
BROKEN = os.environ.get("BROKEN", "")
numbers = itertools.count()


def code_of(call):
    """Returns the code of the error that a call raises; 0 for none."""
    try:
        call()
    except bhq.QueueError as error:
        return error.code
    return 0


class Ring:
    """The model of one producer: its state, and its messages that were not released."""

    def __init__(self):
        self.state, self.messages = "free", []


class QueueMachine(RuleBasedStateMachine):
    @initialize(
        size=st.sampled_from([1, 8, 56, 57, 96, 200]),
        capacity=st.integers(1, 6),
        producers=st.integers(1, 3),
        has_ends=st.booleans(),
    )
    def create(self, size, capacity, producers, has_ends):
        self.name = f"hypothesis-{os.getpid()}-{next(numbers)}"
        slots = 2
        while slots < capacity:
            slots *= 2
        self.size, self.limit, self.pushed = size, slots, 0
        self.handles = [bhq.Queue.create(self.name, producers=producers, capacity=capacity, message_bytes=size)]
        self.rings = [Ring() for _ in range(producers)]
        self.senders, self.receiver, self.taken = {}, None, None
        self.is_named = True
        if has_ends:
            self.senders[0], self.rings[0].state = self.handles[0].sender(), "alive"
            self.receiver = self.handles[0].receiver()

    # Handles.

    @rule(size=st.sampled_from([0, 1, 8, 56, 57, 96, 200]))
    def open(self, size):
        expected = 0 if size in (0, self.size) else bhq.BAD_SIZE
        expected = expected if self.is_named else bhq.NOT_FOUND

        def call():
            self.handles.append(bhq.Queue.open(self.name, size))

        assert code_of(call) == expected

    @precondition(lambda self: len(self.handles) > 1)
    @rule(data=st.data(), is_creator=st.integers(0, 19))
    def close_handle(self, data, is_creator):
        # Rarely the creator's: the queue's files go with it.
        index = 0 if is_creator == 19 else data.draw(st.integers(1, len(self.handles) - 1))
        if index == 0:
            self.is_named = False
        self.handles.pop(index).close()

    def handle(self, data):
        return data.draw(st.sampled_from(self.handles))

    def removed(self, attach):
        """Returns True if the creator has removed the queue's files: then nothing can be attached, with any handle."""
        if not self.is_named:
            assert code_of(attach) < 0
        return not self.is_named

    @rule(data=st.data())
    def look(self, data):
        handle = self.handle(data)
        assert [producer.state for producer in handle.producers()] == [ring.state for ring in self.rings]
        assert handle.has_receiver() == (self.receiver is not None)
        assert handle.message_bytes == self.size

    @rule()
    def create_again(self):
        if self.is_named:
            assert code_of(lambda: bhq.Queue.create(self.name, capacity=2, message_bytes=8)) == bhq.LIVING
            assert code_of(lambda: bhq.remove(self.name)) == bhq.LIVING

    # Senders.

    @rule(data=st.data())
    def attach_sender(self, data):
        handle = self.handle(data)
        if self.removed(handle.sender):
            return
        free = [index for index, ring in enumerate(self.rings) if ring.state == "free"]
        if not free:
            assert code_of(handle.sender) == bhq.NO_FREE_PRODUCER
            return
        sender = handle.sender()
        assert sender.index == free[0]
        self.senders[free[0]], self.rings[free[0]].state = sender, "alive"

    @rule(data=st.data(), index=st.integers(0, 4))
    def resume_sender(self, data, index):
        handle = self.handle(data)
        if self.removed(lambda: handle.resume_sender(index)):
            return
        state = self.rings[index].state if index < len(self.rings) else None
        expected = {None: bhq.BAD_INDEX, "alive": bhq.PRODUCER_ALIVE, "retired": bhq.RETIRED}.get(state)
        if expected is not None:
            assert code_of(lambda: handle.resume_sender(index)) == expected
            return
        self.senders[index], self.rings[index].state = handle.resume_sender(index), "alive"

    @precondition(lambda self: self.senders)
    @rule(data=st.data(), wrong=st.sampled_from([0, 0, 0, 0, 0, -1, 1, 50]))
    def push(self, data, wrong):
        index = data.draw(st.sampled_from(sorted(self.senders)))
        ring, sender = self.rings[index], self.senders[index]
        if wrong:
            assert code_of(lambda: sender.push(bytes(max(0, self.size + wrong)))) == bhq.BAD_SIZE
            return
        self.pushed += 1
        message = self.pushed.to_bytes(8, "little") * (self.size // 8 + 1)
        message = message[: self.size]
        is_pushed = sender.push(message)
        assert is_pushed == (len(ring.messages) < self.limit)
        if is_pushed:
            ring.messages.append(message)

    @precondition(lambda self: self.senders)
    @rule(data=st.data())
    def close_sender(self, data):
        index = data.draw(st.sampled_from(sorted(self.senders)))
        sender = self.senders.pop(index)
        sender.close()
        self.rings[index].state = "free"
        assert code_of(lambda: sender.push(bytes(self.size))) == NULL

    # The receiver.

    @rule(data=st.data(), resumes=st.booleans())
    def attach_receiver(self, data, resumes):
        handle = self.handle(data)
        attach = handle.resume_receiver if resumes else handle.receiver
        if self.removed(attach):
            return
        if self.receiver is not None:
            assert code_of(attach) == bhq.ATTACHED
        else:
            self.receiver, self.taken = attach(), None

    @precondition(lambda self: self.receiver is not None)
    @rule()
    def close_receiver(self):
        self.receiver.close()
        assert code_of(self.receiver.pop) == NULL
        # What was taken and not released is the next receiver's.
        self.receiver, self.taken = None, None

    def readable(self):
        return [ring for ring in self.rings if ring.messages and ring.state != "retired"]

    def check_first(self, message):
        """Returns the ring whose first message was returned, or None if all are empty."""
        if message is None:
            assert not self.readable()
            return None
        ring = self.rings[self.receiver.last_producer]
        assert ring in self.readable() and ring.messages[0] == bytes(message)
        return ring

    @precondition(lambda self: self.receiver is not None)
    @rule(wrong=st.sampled_from([0, 0, 0, -1, 3]))
    def pop(self, wrong):
        if self.taken is not None:
            assert code_of(self.receiver.pop) == bhq.TAKEN
        elif wrong:
            assert code_of(lambda: self.receiver.pop_into(bytearray(max(0, self.size + wrong)))) == bhq.BAD_SIZE
        else:
            message = self.receiver.pop()
            if BROKEN == "changes" and message is not None and message[0] % 2 == 0:
                message = bytearray(self.size)
            ring = self.check_first(message)
            if ring is not None:
                ring.messages.pop(0)

    @precondition(lambda self: self.receiver is not None)
    @rule()
    def take(self):
        place = bhq.c_void_p()
        if self.taken is not None:
            assert bhq._take(self.receiver._handle, bhq.byref(place), 0) == bhq.TAKEN
            return
        found = bhq._take(self.receiver._handle, bhq.byref(place), 0)
        assert found in (0, 1)
        self.taken = self.check_first(bhq.ctypes.string_at(place.value, self.size) if found else None)

    @precondition(lambda self: self.receiver is not None)
    @rule(is_released=st.booleans())
    def end_take(self, is_released):
        end = bhq._release if is_released else bhq._put_back
        code = end(self.receiver._handle)
        assert code == (0 if self.taken is not None else bhq.NOT_TAKEN)
        if self.taken is not None and is_released and BROKEN != "keeps":
            self.taken.messages.pop(0)
        self.taken = None

    @precondition(lambda self: self.receiver is not None and self.is_named)
    @rule(index=st.integers(0, 4), renews=st.booleans())
    def retire_or_renew(self, index, renews):
        call = self.receiver.renew if renews else self.receiver.retire
        if index >= len(self.rings):
            assert code_of(lambda: call(index)) == bhq.BAD_INDEX
            return
        ring = self.rings[index]
        if ring.state == "alive":
            assert code_of(lambda: call(index)) == bhq.PRODUCER_ALIVE
            return
        is_done = call(index)
        assert is_done == (not ring.messages)
        if is_done:
            ring.state = "free" if renews else "retired"

    def teardown(self):
        if not hasattr(self, "handles"):
            return
        for end in [*self.senders.values(), *self.handles, *([self.receiver] if self.receiver else [])]:
            end.close()
        left = [file for file in os.listdir("/dev/shm") if file.startswith(f"bulkhead-queue.{self.name}.")]
        assert not left, left


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(
    max_examples=int(os.environ.get("EXAMPLES", "10000")),
    stateful_step_count=40,
    deadline=None,
    database=None,
    # A broken variant is only to be found, and not to be made small.
    phases=[Phase.generate] if BROKEN else tuple(Phase),
    suppress_health_check=list(HealthCheck),
)
