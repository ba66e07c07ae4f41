// POSIX message queue: the receiver creates it, the others open it. The kernel holds the messages.
#include "role.hpp"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <gnu/libc-version.h>
#include <fstream>
#include <mqueue.h>

struct Queue {
    mqd_t queue;
    Queue(const std::string &place, Attach attach) {
        std::string name = "/" + name_of(place);
        mq_attr attributes{};
        // A system without settings allows 10.
        long limit = 10;
        std::ifstream("/proc/sys/fs/mqueue/msg_max") >> limit;
        attributes.mq_maxmsg = std::min<long>(limit, CAPACITY);
        attributes.mq_msgsize = sizeof(Message);
        int flags = O_RDWR | O_NONBLOCK | (attach == Attach::Create ? O_CREAT : 0);
        queue = mq_open(name.c_str(), flags, 0600, attach == Attach::Create ? &attributes : nullptr);
        if (queue == (mqd_t)-1) throw std::runtime_error(std::strerror(errno));
    }
    ~Queue() { mq_close(queue); }
    bool push(const Message &m) {
        if (mq_send(queue, reinterpret_cast<const char *>(m.data()), sizeof m, 0) == 0) return true;
        if (errno == EAGAIN) return false;
        throw std::runtime_error(std::strerror(errno));
    }
    bool pop(Message &m) {
        if (mq_receive(queue, reinterpret_cast<char *>(m.data()), sizeof m, nullptr) >= 0) return true;
        if (errno == EAGAIN) return false;
        throw std::runtime_error(std::strerror(errno));
    }
};
struct Sender : Queue { using Queue::Queue; };
struct Receiver : Queue { using Queue::Queue; };

int main(int count, char **words) {
    return run<Sender, Receiver>(count, words, std::string("glibc ") + gnu_get_libc_version(), [](const std::string &place) {
        mq_unlink(("/" + name_of(place)).c_str());
    });
}
