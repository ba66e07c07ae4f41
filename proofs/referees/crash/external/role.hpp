// A process with one end of a transport, as src/role.rs: README.md has the protocol.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

constexpr std::size_t CAPACITY = 64;
using Message = std::array<std::uint64_t, 7>;
enum class Attach { Create, Join, Resume };

inline void trap() { __asm__ volatile("int3" ::: "memory"); }

inline Message message(std::uint64_t sender, std::uint64_t number) {
    Message m{sender, number};
    for (unsigned word = 2; word < m.size(); word++) {
        std::uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15u;
        m[word] = ((mixed << word) | (mixed >> (64 - word))) ^ sender;
    }
    return m;
}

inline std::string decode(const Message &found) {
    bool known = found[0] < 16 && found == message(found[0], found[1]);
    return known ? std::to_string(found[0]) + ":" + std::to_string(found[1]) : "?";
}

inline void print(const std::string &line) { std::cout << line << std::endl; }

// Reads a line without a buffer: nothing of the next one is taken.
inline bool read_line(std::string &line) {
    line.clear();
    for (char c; ::read(0, &c, 1) == 1;) {
        if (c == '\n') return true;
        line += c;
    }
    return false;
}

// A Sender has `bool push(const Message &)`, a Receiver `bool pop(Message &)`; both are made from a
// folder and an Attach, and throw if they are refused.
template <class Sender> std::string command(Sender &end, const std::string &word, std::uint64_t number,
                                            std::uint64_t id, std::uint64_t &next) {
    if (word == "step") {
        Message m = message(id, next);
        trap();
        end.push(m);
        trap();
        return "stepped";
    }
    std::uint64_t first = next, count = word == "fill" ? 4 * CAPACITY : number;
    try {
        while (next < first + count && end.push(message(id, next))) next++;
    } catch (const std::exception &error) {
        return "pushed " + std::to_string(next - first) + " " + error.what();
    }
    return "pushed " + std::to_string(next - first);
}

template <class Receiver> std::string command(Receiver &end, const std::string &word, std::uint64_t number) {
    Message m{};
    if (word == "step") {
        trap();
        end.pop(m);
        trap();
        return "stepped";
    }
    using clock = std::chrono::steady_clock;
    auto until = clock::now() + std::chrono::milliseconds(word == "poll" ? number : 0);
    std::size_t limit = word == "take" ? number : 16 * CAPACITY, taken = 0, looks = 0;
    std::string line = "popped";
    try {
        while (taken < limit && (looks < 3 || (word == "poll" && clock::now() < until))) {
            if (end.pop(m)) {
                taken++;
                line += " " + decode(m);
            } else {
                looks++;
                std::this_thread::sleep_for(std::chrono::microseconds(50));
            }
        }
    } catch (const std::exception &error) {
        return line + " " + error.what();
    }
    return line;
}

template <class End> int serve(const std::string &place, Attach attach, auto &&run) {
    print("gate");
    std::unique_ptr<End> end;
    for (std::string line; read_line(line);) {
        bool marked = line.rfind("marked ", 0) == 0;
        if (marked) line = line.substr(7);
        auto space = line.find(' ');
        std::string word = line.substr(0, space);
        std::uint64_t number = space == std::string::npos ? 0 : std::stoull(line.substr(space + 1));
        if (word == "go") {
            std::string error;
            if (marked) trap();
            try {
                end = std::make_unique<End>(place, attach);
            } catch (const std::exception &refusal) {
                error = refusal.what();
            }
            if (marked) trap();
            print(end ? "ready" : "refused " + error);
            if (!end) return 0;
        } else if (word == "exit") {
            break;
        } else if (word == "drop") {
            if (marked) trap();
            end.reset();
            if (marked) trap();
            print("dropped");
        } else {
            print(end ? run(*end, word, number) : "not attached");
        }
    }
    end.reset();
    print("bye");
    return 0;
}

// The last component of a folder, which is also a name for the transport.
inline std::string name_of(const std::string &place) { return place.substr(place.rfind('/') + 1); }

template <class Sender, class Receiver>
int run(int count, char **words, const std::string &version, void (*clean)(const std::string &)) {
    if (count == 2 && std::string(words[1]) == "version") {
        print(version);
        return 0;
    }
    if (count == 4 && std::string(words[2]) == "clean") {
        clean(words[3]);
        return 0;
    }
    if (count != 6) return 2;
    std::string end = words[2], place = words[3], how = words[4];
    Attach attach = how == "create" ? Attach::Create : how == "join" ? Attach::Join : Attach::Resume;
    std::uint64_t id = std::strtoull(words[5], nullptr, 10), next = 0;
    if (end == "sender") {
        return serve<Sender>(place, attach, [&](Sender &sender, const std::string &word, std::uint64_t number) {
            return command(sender, word, number, id, next);
        });
    }
    return serve<Receiver>(place, attach, [](Receiver &receiver, const std::string &word, std::uint64_t number) {
        return command(receiver, word, number);
    });
}
