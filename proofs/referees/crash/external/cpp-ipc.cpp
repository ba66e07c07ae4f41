// cpp-ipc: its `channel`, of many senders and receivers. Ends connect by name; a prefix keeps the files
// of one trial apart. A message goes to the receivers that are connected when it is sent.
#include "role.hpp"
#include "libipc/ipc.h"
#include <algorithm>
#include <sys/mman.h>

using Channel = ipc::channel;

// The wait of `send` for a slow receiver before it sends by force, in milliseconds.
constexpr std::uint64_t WAIT = 10;

static std::unique_ptr<Channel> connect(const std::string &place, unsigned mode) {
    std::string name = name_of(place);
    auto channel = std::make_unique<Channel>();
    if (!channel->connect(ipc::prefix{(name + "-").c_str()}, "channel", mode)) throw std::runtime_error("not connected");
    return channel;
}

struct Sender {
    std::unique_ptr<Channel> channel;
    Sender(const std::string &place, Attach) : channel(connect(place, ipc::sender)) {}
    bool push(const Message &m) { return channel->send(m.data(), sizeof m, WAIT); }
};

struct Receiver {
    std::unique_ptr<Channel> channel;
    Receiver(const std::string &place, Attach) : channel(connect(place, ipc::receiver)) {}
    bool pop(Message &m) {
        ipc::buff_t found = channel->try_recv();
        if (found.empty()) return false;
        m.fill(~0ull);
        std::copy_n(static_cast<const char *>(found.data()), std::min(found.size(), sizeof m),
                    reinterpret_cast<char *>(m.data()));
        return true;
    }
};

int main(int count, char **words) {
    return run<Sender, Receiver>(count, words, CPP_IPC_VERSION, [](const std::string &place) {
        std::string prefix = name_of(place) + "-";
        Channel::clear_storage(ipc::prefix{prefix.c_str()}, "channel");
        // A counter of connections, one for each prefix, is not a leak: usually all share one.
        shm_unlink(("/" + prefix + "__IPC_SHM__CA_CONN__").c_str());
    });
}
