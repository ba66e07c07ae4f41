/* The cost of a push and a pop through bulkhead_queue.hpp: see contrib/bindings/queue/cost.sh and cost.c. */
#include <bulkhead_queue.hpp>

#include <cstdio>
#include <cstdlib>
#include <thread>

#if BYTES == 4
using Word = std::uint32_t;
#else
using Word = std::uint64_t;
#endif

struct Message {
    std::array<Word, BYTES / sizeof(Word)> words;
};

using Sender = bulkhead::Sender<Message>;
using Receiver = bulkhead::Receiver<Message>;
using Clock = std::chrono::steady_clock;

static constexpr std::uint64_t behind = 512;

static void print_ns(Clock::time_point start, std::uint64_t count) {
    std::printf("%.2f ", std::chrono::duration<double, std::nano>(Clock::now() - start).count() / static_cast<double>(count));
}

static inline void used(void *memory) { __asm__ volatile("" : : "r"(memory) : "memory"); }

static void check(const Message &received, std::uint64_t number) {
    if (received.words[0] != static_cast<Word>(number)) {
        std::exit(1);
    }
}

static void push_next(Sender &sender, Message &sent, std::uint64_t number) {
    sent.words[0] = static_cast<Word>(number);
    used(&sent);
    while (!sender.push(sent)) {
    }
}

static void pop_next(Receiver &receiver, Message &received) {
    while (!receiver.pop(received)) {
    }
}

__attribute__((noinline)) static void push_and_pop(Sender &sender, Receiver &receiver, std::uint64_t count) {
    Message sent{}, received;
    for (std::uint64_t number = 0; number < count; number++) {
        push_next(sender, sent, number);
        pop_next(receiver, received);
        check(received, number);
    }
}

__attribute__((noinline)) static void push_then_pop(Sender &sender, Receiver &receiver, std::uint64_t count) {
    Message sent{}, received;
    for (std::uint64_t first = 0; first < count; first += behind) {
        for (std::uint64_t number = first; number < first + behind; number++) {
            push_next(sender, sent, number);
        }
        for (std::uint64_t number = first; number < first + behind; number++) {
            pop_next(receiver, received);
            check(received, number);
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
    print_ns(start, count);
    start = Clock::now();
    push_then_pop(sender, receiver, count);
    print_ns(start, (count + behind - 1) / behind * behind);
    if (argc > 2) { /* one thread only */
        std::putchar('\n');
        return 0;
    }
    Message sent{}, received;
    start = Clock::now();
    std::thread pushing([&] {
        Message own{};
        for (std::uint64_t number = 0; number < count; number++) {
            push_next(sender, own, number);
        }
    });
    for (std::uint64_t number = 0; number < count; number++) {
        pop_next(receiver, received);
        check(received, number);
    }
    print_ns(start, count);
    pushing.join();
    auto back = bulkhead::Queue<Message>::create_sealed(1024);
    auto answer = back.sender();
    auto answered = back.receiver();
    std::uint64_t echoes = count / 8;
    start = Clock::now();
    std::thread echoing([&] {
        Message own;
        for (std::uint64_t number = 0; number < echoes; number++) {
            pop_next(receiver, own);
            while (!answer.push(own)) {
            }
        }
    });
    for (std::uint64_t number = 0; number < echoes; number++) {
        push_next(sender, sent, number);
        pop_next(answered, received);
        check(received, number);
    }
    print_ns(start, echoes);
    echoing.join();
    std::putchar('\n');
    return 0;
}
