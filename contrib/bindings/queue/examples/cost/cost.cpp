/* The cost of a push and a pop through bulkhead_queue.hpp: see contrib/bindings/queue/cost.sh and cost.c. */
#include <bulkhead_queue.hpp>

#include <cstdio>
#include <cstdlib>
#include <thread>

struct Message {
    std::array<std::uint64_t, WORDS> words;
};

using Clock = std::chrono::steady_clock;

static double ns_since(Clock::time_point start) {
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

static inline void used(void *memory) { __asm__ volatile("" : : "r"(memory) : "memory"); }

__attribute__((noinline)) static void push_and_pop(bulkhead::Sender<Message> &sender,
                                                   bulkhead::Receiver<Message> &receiver, std::uint64_t count) {
    Message sent{}, received;
    for (std::uint64_t number = 0; number < count; number++) {
        sent.words[0] = number;
        used(&sent);
        if (!sender.push(sent) || !receiver.pop(received) || received.words[0] != number) {
            std::exit(1);
        }
    }
}

int main(int argc, char **argv) {
    std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000000;
    auto queue = bulkhead::Queue<Message>::create_sealed(1024);
    auto sender = queue.sender();
    auto receiver = queue.receiver();
    auto start = Clock::now();
    push_and_pop(sender, receiver, count);
    std::printf("%.2f", ns_since(start) / static_cast<double>(count));
    if (argc > 2) { /* one thread only */
        std::putchar('\n');
        return 0;
    }
    start = Clock::now();
    std::thread thread([&] {
        Message sent{};
        for (std::uint64_t number = 0; number < count; number++) {
            sent.words[0] = number;
            used(&sent);
            while (!sender.push(sent)) {
            }
        }
    });
    Message received;
    for (std::uint64_t number = 0; number < count; number++) {
        while (!receiver.pop(received)) {
        }
        if (received.words[0] != number) {
            std::exit(1);
        }
    }
    std::printf(" %.2f\n", ns_since(start) / static_cast<double>(count));
    thread.join();
    return 0;
}
