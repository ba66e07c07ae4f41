"""A sender that is killed at a random moment, and its successor: `python3 crash_and_successor.py 5`.

The receiver checks that no message is lost, doubled or torn. A sender stores the number of its pushes that have returned
in a file: all of these must arrive. A second word plants an error that the receiver must find: lost, doubled or torn.
"""

import array
import mmap
import os
import random
import subprocess
import sys
import tempfile
import time

from bulkhead_queue import Queue, Receiver

WORDS = 20
MESSAGE_BYTES = 8 * WORDS


def message_of(number: int) -> array.array:
    return array.array("Q", [number * (2 * word + 1) for word in range(WORDS)])


def send_until_killed(name: str, number: int, path: str, planted: str) -> None:
    with open(path, "r+b") as file:
        returned = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
    queue, parent = Queue.open(name, MESSAGE_BYTES), os.getppid()
    is_successor = queue.producers()[0].state == "dead"
    sender = queue.resume_sender(0) if is_successor else queue.sender()
    if is_successor:
        number += {"lost": 1, "doubled": -1}.get(planted, 0)
    while os.getppid() == parent:
        message = message_of(number)
        if planted == "torn" and number % 100 == 99:
            message[WORDS - 1] += 1
        while not sender.push(message):
            time.sleep(0)
        number += 1
        returned[0] = number


def check(found: memoryview, expected: int) -> None:
    words = found.cast("Q")
    if words == memoryview(message_of(expected)):
        return
    number = words[0]
    kind = "torn" if words != memoryview(message_of(number)) else "doubled" if number < expected else "lost"
    sys.exit(f"{kind}: message {number} instead of {expected}")


def receive(receiver: Receiver, expected: int, max_count: int) -> int:
    """Takes at most `max_count` messages. Returns the number of the next one."""
    own = memoryview(bytearray(MESSAGE_BYTES))
    for _ in range(max_count):
        if expected % 2 == 0:
            if not receiver.pop_into(own, timeout=0.001):
                break
            check(own, expected)
        else:
            with receiver.take(timeout=0.001) as message:
                if message is None:
                    break
                check(message, expected)
        expected += 1
    return expected


def receive_for_a_while(receiver: Receiver, expected: int, child: subprocess.Popen) -> int:
    """Receives at least 200 messages, and then for a random time of up to 20 ms."""
    enough, deadline = expected + 200, time.monotonic() + 60
    while expected < enough:
        expected = receive(receiver, expected, 100)
        if time.monotonic() > deadline or child.poll() is not None:
            sys.exit("no messages from the sender")
    end = time.monotonic() + random.random() / 50
    while time.monotonic() < end:
        expected = receive(receiver, expected, 100)
    return expected


def run(rounds: int, planted: str) -> None:
    name, expected = f"python-crash-{os.getpid()}", 0
    with (
        tempfile.NamedTemporaryFile() as file,
        Queue.create(name, capacity=256, message_bytes=MESSAGE_BYTES) as queue,
        queue.receiver() as receiver,
    ):
        file.write(bytes(8))
        file.flush()
        returned = memoryview(mmap.mmap(file.fileno(), 8)).cast("Q")
        for _ in range(rounds):
            words = [sys.executable, __file__, name, str(expected), file.name, planted]
            with subprocess.Popen(words) as child:
                try:
                    expected = receive_for_a_while(receiver, expected, child)
                finally:
                    child.kill()
            if queue.producers()[0].state != "dead":
                sys.exit("the killed sender is not seen to be dead")
            expected = receive(receiver, expected, sys.maxsize)
            # One more: its push was complete, and had not returned.
            if expected - returned[0] not in (0, 1):
                sys.exit(f"lost: {returned[0]} pushes returned, {expected} messages arrived")
    print(f"{rounds} senders killed, {expected} messages: none lost, doubled or torn")


if __name__ == "__main__":
    if len(sys.argv) == 5:
        send_until_killed(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
    else:
        run(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2] if len(sys.argv) > 2 else "nothing")
