"""Tests of the module in one process: `python3 -m unittest` in this folder."""

import array
import inspect
import os
import select
import unittest
from typing import Any

import bulkhead_queue
from bulkhead_queue import Queue, QueueError


class Messages(unittest.TestCase):
    def test_every_kind_of_buffer_is_pushed(self) -> None:
        for size in (1, 8, 56, 57, 1000, 65536):
            queue = Queue.create_sealed(capacity=8, message_bytes=size)
            sender, receiver = queue.sender(), queue.receiver()
            content = bytes((7 * at) % 256 for at in range(size))
            for message in (content, bytearray(content), memoryview(content), array.array("B", content)):
                self.assertTrue(sender.push(message))
                self.assertEqual(receiver.pop(), content)
            self.assertIsNone(receiver.pop())
            pushed = sum(sender.push(content) for _ in range(100))
            self.assertTrue(8 <= pushed <= 16, pushed)

    def test_message_is_popped_into_part_of_a_buffer(self) -> None:
        queue = Queue.create_sealed(capacity=8, message_bytes=8)
        sender, receiver = queue.sender(), queue.receiver()
        sender.push(memoryview(b"..12345678..")[2:10])
        own = bytearray(b"-" * 12)
        self.assertTrue(receiver.pop_into(memoryview(own)[2:10]))
        self.assertEqual(own, b"--12345678--")
        with self.assertRaises(BufferError):
            receiver.pop_into(bytes(8))

    def test_batches_arrive_in_order(self) -> None:
        queue = Queue.create_sealed(capacity=8, message_bytes=4)
        sender, receiver = queue.sender(), queue.receiver()
        numbers = array.array("I", range(20))
        self.assertEqual(sender.push_many(numbers), 8)
        own = array.array("I", [0] * 3)
        self.assertEqual((receiver.pop_many(own), list(own)), (3, [0, 1, 2]))
        found: list[int] = []
        self.assertEqual(receiver.drain(3, lambda view: found.append(int.from_bytes(view, "little"))), 3)
        self.assertEqual(sender.push_many(numbers[8:]), 6)
        self.assertEqual(receiver.drain(100, lambda view: found.append(int.from_bytes(view, "little"))), 8)
        self.assertEqual(found, list(range(3, 14)))
        self.assertEqual((receiver.drain(100, found.append), receiver.pop_many(own)), (0, 0))
        with self.assertRaises(ValueError):
            sender.push_many(b"12345")

    def test_drained_message_stays_if_its_user_raises(self) -> None:
        queue = Queue.create_sealed(capacity=8, message_bytes=1)
        sender, receiver = queue.sender(), queue.receiver()
        self.assertEqual(sender.push_many(b"abc"), 3)

        def fail_at_b(view: memoryview) -> None:
            if view == b"b":
                raise KeyError

        with self.assertRaises(KeyError):
            receiver.drain(3, fail_at_b)
        self.assertEqual([receiver.pop(), receiver.pop(), receiver.pop()], [b"b", b"c", None])

    def test_taken_message_is_put_back_by_an_exception(self) -> None:
        queue = Queue.create_sealed(capacity=8, message_bytes=100)
        sender, receiver = queue.sender(), queue.receiver()
        sender.push(b"a" * 100)
        with self.assertRaises(KeyError), receiver.take() as message:
            self.assertEqual(message, b"a" * 100)
            with self.assertRaises(QueueError) as refused:
                receiver.pop()
            self.assertEqual(refused.exception.code, bulkhead_queue.TAKEN)
            raise KeyError
        with self.assertRaises(ValueError):
            message[0]
        with receiver.take() as message:
            self.assertEqual(message, b"a" * 100)
        with receiver.take(timeout=0.001) as message:
            self.assertIsNone(message)


class Errors(unittest.TestCase):
    def test_failed_calls_have_codes_and_texts(self) -> None:
        name = f"python-errors-{os.getpid()}"
        with Queue.create(name, capacity=8, message_bytes=24) as queue:
            wrong = (
                (bulkhead_queue.LIVING, lambda: Queue.create(name, capacity=8, message_bytes=24)),
                (bulkhead_queue.BAD_SIZE, lambda: Queue.open(name, 25)),
                (bulkhead_queue.BAD_SIZE, lambda: Queue.create_sealed(capacity=8, message_bytes=0)),
                (bulkhead_queue.BAD_SIZE, lambda: queue.sender().push(b"short")),
                (bulkhead_queue.BAD_INDEX, lambda: queue.resume_sender(1)),
                (bulkhead_queue.BAD_DESCRIPTORS, lambda: queue.fds),
                (bulkhead_queue.BAD_NAME, lambda: Queue.open("a/b")),
            )
            for code, call in wrong:
                with self.assertRaises(QueueError) as refused:
                    call()
                self.assertEqual(refused.exception.code, code)
            self.assertEqual(queue.message_bytes, 24)
        with self.assertRaises(QueueError) as refused:
            Queue.open(name)
        self.assertEqual(refused.exception.code, bulkhead_queue.NOT_FOUND)
        self.assertIn(name, str(refused.exception))
        self.assertEqual(bulkhead_queue.remove(name), 0)

    def test_arguments_by_position_are_refused(self) -> None:
        create: Any = Queue.create
        sealed: Any = Queue.create_sealed
        for call in (lambda: create("name", 24, 8), lambda: create("name", 24, 8, 2), lambda: sealed(24, 8, 2)):
            with self.assertRaises(TypeError):
                call()
        self.assertEqual(inspect.getfullargspec(create).kwonlyargs, ["producers", "capacity", "message_bytes"])

    def test_closed_handle_is_refused(self) -> None:
        sender = Queue.create_sealed(capacity=8, message_bytes=8).sender()
        sender.close()
        with self.assertRaises(QueueError):
            sender.push(bytes(8))


class Ends(unittest.TestCase):
    def test_sealed_queue_is_opened_by_its_descriptors(self) -> None:
        queue = Queue.create_sealed(producers=2, capacity=8, message_bytes=8)
        opened = Queue.open_fds(*queue.fds)
        senders, receiver = [queue.sender(), opened.sender()], queue.receiver()
        self.assertEqual([sender.index for sender in senders], [0, 1])
        self.assertEqual(queue.producers()[1], bulkhead_queue.Producer("alive", os.getpid()))
        self.assertTrue(opened.has_receiver())
        self.assertTrue(receiver.prepare_wait())
        self.assertEqual(select.select([receiver], [], [], 0)[0], [])
        senders[1].push(b"12345678")
        self.assertEqual(select.select([receiver], [], [], 10)[0], [receiver])
        self.assertEqual((receiver.pop(), receiver.last_producer), (b"12345678", 1))
        senders[1].close()
        self.assertTrue(receiver.retire(1) and receiver.renew(1))
        self.assertIsNone(receiver.faulty_producer)
        self.assertEqual([producer.state for producer in queue.producers()], ["alive", "free"])


if __name__ == "__main__":
    unittest.main()
