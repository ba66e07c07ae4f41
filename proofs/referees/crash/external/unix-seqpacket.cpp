// Unix socket of packets (SOCK_SEQPACKET): the receiver listens at a path, senders connect. The kernel
// holds the messages of each connection.
#include "role.hpp"
#include <cerrno>
#include <cstring>
#include <gnu/libc-version.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <vector>

static sockaddr_un address(const std::string &place) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", place.c_str());
    return address;
}

static int checked(int result) {
    if (result < 0) throw std::runtime_error(std::strerror(errno));
    return result;
}

struct Sender {
    int fd;
    Sender(const std::string &place, Attach) : fd(checked(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0))) {
        sockaddr_un to = address(place);
        checked(connect(fd, reinterpret_cast<sockaddr *>(&to), sizeof to));
    }
    ~Sender() { close(fd); }
    bool push(const Message &m) {
        if (send(fd, m.data(), sizeof m, MSG_NOSIGNAL) >= 0) return true;
        if (errno == EAGAIN) return false;
        throw std::runtime_error(std::strerror(errno));
    }
};

struct Receiver {
    int fd;
    std::vector<int> connections;
    Receiver(const std::string &place, Attach) : fd(checked(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0))) {
        sockaddr_un at = address(place);
        // The usual way: the path of a dead listener has to be removed.
        unlink(at.sun_path);
        checked(bind(fd, reinterpret_cast<sockaddr *>(&at), sizeof at));
        checked(listen(fd, 8));
    }
    ~Receiver() {
        for (int connection : connections) close(connection);
        close(fd);
    }
    bool pop(Message &m) {
        for (int next; (next = accept4(fd, nullptr, nullptr, SOCK_NONBLOCK)) >= 0;) connections.push_back(next);
        for (int connection : connections)
            if (recv(connection, m.data(), sizeof m, 0) == sizeof m) return true;
        return false;
    }
};

int main(int count, char **words) {
    return run<Sender, Receiver>(count, words, std::string("glibc ") + gnu_get_libc_version(), [](const std::string &place) {
        unlink((place + "/socket").c_str());
    });
}
