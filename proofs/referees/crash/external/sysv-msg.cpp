// System V message queue: the key is made of the folder's name (`ftok` needs a file). The kernel holds
// the messages.
#include "role.hpp"
#include <cerrno>
#include <cstring>
#include <functional>
#include <gnu/libc-version.h>
#include <sys/ipc.h>
#include <sys/msg.h>

static key_t key(const std::string &place) {
    return static_cast<key_t>(std::hash<std::string>{}(name_of(place)) & 0x7fffffff) | 1;
}

struct Queue {
    int queue;
    struct Envelope {
        long type;
        Message message;
    };
    Queue(const std::string &place, Attach attach) {
        queue = msgget(key(place), 0600 | (attach == Attach::Create ? IPC_CREAT : 0));
        if (queue < 0) throw std::runtime_error(std::strerror(errno));
    }
    bool push(const Message &m) {
        Envelope envelope{1, m};
        if (msgsnd(queue, &envelope, sizeof m, IPC_NOWAIT) == 0) return true;
        if (errno == EAGAIN) return false;
        throw std::runtime_error(std::strerror(errno));
    }
    bool pop(Message &m) {
        Envelope envelope{};
        if (msgrcv(queue, &envelope, sizeof m, 0, IPC_NOWAIT) < 0) {
            if (errno == ENOMSG) return false;
            throw std::runtime_error(std::strerror(errno));
        }
        m = envelope.message;
        return true;
    }
};
struct Sender : Queue { using Queue::Queue; };
struct Receiver : Queue { using Queue::Queue; };

int main(int count, char **words) {
    return run<Sender, Receiver>(count, words, std::string("glibc ") + gnu_get_libc_version(), [](const std::string &place) {
        int queue = msgget(key(place), 0600);
        if (queue >= 0) msgctl(queue, IPC_RMID, nullptr);
    });
}
