// bulkhead's queue from C++, which pushes and pops with the inline functions of
// bulkhead_queue_inline.h. BYTES is the size of a message: 4, 8, or whole words from 56 bytes on.
#include "role.hpp"
#include <bulkhead_queue.hpp>
#include <optional>
#include <type_traits>

// As src/messages.rs: words that depend on sender and number, or both in half of a short message and
// a check in the other half.
using Long = std::array<std::uint64_t, BYTES / 8>;
using Form = std::conditional_t<BYTES == 4, std::uint32_t, std::conditional_t<BYTES == 8, std::uint64_t, Long>>;
constexpr unsigned NUMBER_BITS = 12;
constexpr std::uint64_t NUMBERS = (1u << NUMBER_BITS) - 1;

template <class F> void encode(const Message &m, F &form) {
    if constexpr (std::is_integral_v<F>) {
        constexpr unsigned half = 4 * sizeof(F);
        std::uint64_t key = m[0] << NUMBER_BITS | (m[1] & NUMBERS);
        std::uint64_t check = (key + 1) * 0x9e3779b97f4a7c15u >> (64 - half);
        form = static_cast<F>(key | check << half);
    } else {
        for (unsigned word = 0; word < form.size(); word++) {
            std::uint64_t mixed = (m[1] + 1) * 0x9e3779b97f4a7c15u;
            unsigned by = word % 64;
            form[word] = word < 2 ? m[word] : ((mixed << by) | (mixed >> ((64 - by) % 64))) ^ m[0];
        }
    }
}

// Returns the message that is carried, or one that no sender makes.
template <class F> Message decode_form(const F &form) {
    Message carried;
    if constexpr (std::is_integral_v<F>) {
        constexpr unsigned half = 4 * sizeof(F);
        std::uint64_t key = form & ((std::uint64_t{1} << half) - 1);
        carried = message(key >> NUMBER_BITS, key & NUMBERS);
    } else {
        carried = message(form[0], form[1]);
    }
    F again;
    encode(carried, again);
    if (again != form) carried.fill(~0ull);
    return carried;
}

struct Sender {
    std::optional<bulkhead::Sender<Form>> end;
    Sender(const std::string &place, Attach attach) {
        auto queue = bulkhead::Queue<Form>::open(name_of(place));
        // One that was killed before it had attached left its place free.
        bool is_dead = queue.producer(0).state == BHQ_STATE_DEAD;
        end.emplace(attach == Attach::Resume && is_dead ? queue.resume_sender(0) : queue.sender());
    }
    bool push(const Message &m) {
        Form form;
        encode(m, form);
        return end->push(form);
    }
};

// Its queue's handle removes the name when it is destroyed, last.
struct Receiver {
    bulkhead::Queue<Form> queue;
    std::optional<bulkhead::Receiver<Form>> end;
    Receiver(const std::string &place, Attach attach)
        : queue(attach == Attach::Create ? bulkhead::Queue<Form>::create(name_of(place), CAPACITY)
                                         : bulkhead::Queue<Form>::open(name_of(place))) {
        end.emplace(attach == Attach::Resume ? queue.resume_receiver() : queue.receiver());
    }
    bool pop(Message &m) {
        Form form;
        if (!end->pop(form)) return false;
        m = decode_form(form);
        return true;
    }
};

int main(int count, char **words) {
    return run<Sender, Receiver>(count, words, BULKHEAD_VERSION, [](const std::string &place) {
        bhq_remove(name_of(place).c_str());
    });
}
