"""multiprocessing.connection: the receiver listens at a Unix socket, senders connect. The kernel holds
the messages of each connection."""

import os
import platform
from multiprocessing.connection import Client, Listener, wait

import role


def path(place):
    return os.path.join(place, "socket")


class Sender:
    def __init__(self, place, attach):
        self.connection = Client(path(place), "AF_UNIX")

    def push(self, message):
        self.connection.send_bytes(message)
        return True

    def close(self):
        self.connection.close()


class Receiver:
    def __init__(self, place, attach):
        if os.path.exists(path(place)):
            os.unlink(path(place))
        self.listener = Listener(path(place), "AF_UNIX", backlog=8)
        self.connections = []

    def pop(self):
        # The documentation has `accept` block; the socket tells whether it would.
        socket = self.listener._listener._socket
        while wait([socket], 0):
            self.connections.append(self.listener.accept())
        for connection in wait(self.connections, 0):
            try:
                return connection.recv_bytes()
            except (EOFError, OSError):
                self.connections.remove(connection)
        return None

    def close(self):
        for connection in self.connections:
            connection.close()
        self.listener.close()


def clean(place):
    if os.path.exists(path(place)):
        os.unlink(path(place))


role.run(platform.python_version(), Sender, Receiver, clean)
