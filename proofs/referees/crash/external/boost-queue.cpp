// Boost.Interprocess message_queue: the receiver creates it, after `remove` as in the documentation's
// example; the others open it.
#include "role.hpp"
#include <boost/interprocess/ipc/message_queue.hpp>
#include <boost/version.hpp>

namespace ipc = boost::interprocess;

static std::unique_ptr<ipc::message_queue> open(const std::string &place, Attach attach) {
    std::string name = name_of(place) + ".queue";
    if (attach == Attach::Create) {
        ipc::message_queue::remove(name.c_str());
        return std::make_unique<ipc::message_queue>(ipc::create_only, name.c_str(), CAPACITY, sizeof(Message));
    }
    return std::make_unique<ipc::message_queue>(ipc::open_only, name.c_str());
}

struct Sender {
    std::unique_ptr<ipc::message_queue> queue;
    Sender(const std::string &place, Attach attach) : queue(open(place, attach)) {}
    bool push(const Message &m) { return queue->try_send(m.data(), sizeof m, 0); }
};

struct Receiver {
    std::unique_ptr<ipc::message_queue> queue;
    Receiver(const std::string &place, Attach attach) : queue(open(place, attach)) {}
    bool pop(Message &m) {
        ipc::message_queue::size_type size;
        unsigned priority;
        return queue->try_receive(m.data(), sizeof m, size, priority);
    }
};

int main(int count, char **words) {
    std::string version = std::to_string(BOOST_VERSION / 100000) + "." + std::to_string(BOOST_VERSION / 100 % 1000);
    return run<Sender, Receiver>(count, words, version, [](const std::string &place) {
        ipc::message_queue::remove((name_of(place) + ".queue").c_str());
    });
}
