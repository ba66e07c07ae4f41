/* A sender that is killed, and its successor, through the header for C++.
 *
 *   g++ -std=c++17 crash_and_successor.cpp $(pkg-config --cflags --libs bulkhead-queue) -o crash
 *   ./crash 10
 *
 * The receiver checks that no message is lost, doubled or torn, as does the example in C, which also
 * counts the pushes that had returned. A second word plants an error: lost, doubled or torn. */
#include <bulkhead_queue.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <random>
#include <spawn.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Trade {
    std::uint64_t number;
    double price;
    std::array<char, 16> symbol;

    explicit Trade(std::uint64_t n = 0) : number(n), price(static_cast<double>(n) / 8), symbol{} {
        for (std::size_t at = 0; at < symbol.size(); at++) {
            symbol[at] = static_cast<char>('A' + (n + at) % 26);
        }
    }

    bool is_whole() const {
        Trade expected(number);
        return price == expected.price && symbol == expected.symbol;
    }
};

using Trades = bulkhead::Queue<Trade>;

[[noreturn]] void send_until_killed(const std::string &name, std::uint64_t number, const std::string &planted) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Trades queue = Trades::open(name);
    bool is_successor = queue.producer(0).state == BHQ_STATE_DEAD;
    auto sender = is_successor ? queue.resume_sender(0) : queue.sender();
    if (is_successor && planted == "lost") {
        number++;
    } else if (is_successor && planted == "doubled") {
        number--;
    }
    for (;; number++) {
        Trade trade(number);
        if (number % 100 == 99 && planted == "torn") {
            trade.price++;
        }
        while (!sender.push(trade)) {
            std::this_thread::yield();
        }
    }
}

void check(const Trade &found, std::uint64_t expected) {
    if (found.is_whole() && found.number == expected) {
        return;
    }
    const char *what = !found.is_whole() ? "torn" : found.number < expected ? "doubled" : "lost";
    throw std::runtime_error(std::string(what) + ": trade " + std::to_string(found.number) + " instead of " +
                             std::to_string(expected));
}

/* Takes at most `max` trades. Returns the number of the next one. */
std::uint64_t receive(bulkhead::Receiver<Trade> &receiver, std::uint64_t next, std::uint64_t max) {
    for (std::uint64_t count = 0; count < max; count++, next++) {
        if (next % 2 == 0) {
            auto trade = receiver.pop_for(1ms);
            if (!trade) {
                break;
            }
            check(*trade, next);
        } else {
            auto trade = receiver.take(1ms);
            if (!trade) {
                break;
            }
            check(**trade, next);
            trade->release();
        }
    }
    return next;
}

pid_t start(const std::string &name, std::uint64_t number, const std::string &planted) {
    std::string arguments[] = {"sender", name, std::to_string(number), planted};
    char *words[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), arguments[3].data(), nullptr};
    pid_t child = 0;
    if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, words, environ) != 0) {
        throw std::runtime_error("the sender cannot be started");
    }
    return child;
}

void run(int rounds, const std::string &planted) {
    std::string name = "cpp-crash-" + std::to_string(getpid());
    std::mt19937 random(static_cast<unsigned>(getpid()));
    Trades queue = Trades::create(name, 256);
    auto receiver = queue.receiver();
    std::uint64_t next = 0;
    for (int round = 0; round < rounds; round++) {
        pid_t child = start(name, next, planted);
        auto deadline = Clock::now() + 60s;
        for (std::uint64_t enough = next + 200; next < enough;) {
            next = receive(receiver, next, 100);
            if (Clock::now() > deadline) {
                throw std::runtime_error("no trades for a minute");
            }
        }
        auto end = Clock::now() + std::chrono::microseconds(random() % 5000);
        while (Clock::now() < end) {
            next = receive(receiver, next, 100);
        }
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        if (queue.producer(0).state != BHQ_STATE_DEAD) {
            throw std::runtime_error("the killed sender is not seen to be dead");
        }
        next = receive(receiver, next, UINT64_MAX);
    }
    std::printf("%d senders killed, %llu trades: none lost, doubled or torn\n", rounds,
                static_cast<unsigned long long>(next));
}

} // namespace

int main(int argc, char **argv) {
    try {
        if (argc == 4) {
            send_until_killed(argv[1], std::stoull(argv[2]), argv[3]);
        }
        run(argc > 1 ? std::stoi(argv[1]) : 10, argc > 2 ? argv[2] : "nothing");
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
