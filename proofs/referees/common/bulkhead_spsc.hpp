// bulkhead's queue with the calls of boost::lockfree::spsc_queue, which the C++ referees know: one
// sender, one receiver, in sealed shared memory, through the C interface bulkhead_queue.h without a
// call for each message.
#pragma once

#include <bulkhead_queue.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace bulkhead {

/// A queue of `T`, which is copied as bytes. Each end is used by one thread.
template <class T, std::size_t Capacity = 1024>
class SpscQueue {
public:
    using value_type = T;

    /// Creates a queue of at least `capacity` messages. Uses each place once, as a vector's constructor
    /// writes each element: the benchmarks measure queues, not page faults.
    explicit SpscQueue(std::size_t capacity = Capacity) {
        check(bhq_create_sealed(1, static_cast<std::uint32_t>(capacity), sizeof(T), &queue_));
        check(bhq_attach_sender(queue_, &sender_));
        check(bhq_attach_receiver(queue_, &receiver_));
        check(bhq_open_fast_sender(sender_, &fast_sender_));
        check(bhq_open_fast_receiver(receiver_, &fast_receiver_));
        T message{};
        for (std::size_t n = 0; n < 2 * capacity && push(message) && pop(message); ++n) {
        }
    }

    SpscQueue(SpscQueue const&) = delete;
    SpscQueue& operator=(SpscQueue const&) = delete;

    ~SpscQueue() {
        bhq_close_sender(sender_);
        bhq_close_receiver(receiver_);
        bhq_close_queue(queue_);
    }

    /// Returns false if the queue is full.
    bool push(T const& message) { return bhq_fast_push(fast_sender_, &message, sizeof(T)) == BHQ_OK; }

    /// Returns false if the queue is empty.
    bool pop(T& message) { return bhq_fast_pop(fast_receiver_, &message, sizeof(T)) == 1; }

    /// Pops up to one message and returns the number popped.
    std::size_t pop(T* message, std::size_t) { return pop(*message); }

private:
    static void check(std::int32_t code) {
        if (code < 0) throw std::runtime_error(bhq_error_text(code));
    }

    // Sender and receiver belong to two threads, which read these pointers only.
    bhq_queue* queue_ = nullptr;
    bhq_sender* sender_ = nullptr;
    bhq_receiver* receiver_ = nullptr;
    bhq_fast_sender* fast_sender_ = nullptr;
    bhq_fast_receiver* fast_receiver_ = nullptr;
};

/// A queue whose ends wait without a PAUSE instruction, as the `Optimist` queues of atomic_queue do.
template <class T, std::size_t Capacity = 1024>
class BusySpscQueue : SpscQueue<T, Capacity> {
public:
    using value_type = T;

    void push(T message) {
        while (!SpscQueue<T, Capacity>::push(message)) {
        }
    }

    T pop() {
        T message;
        while (!SpscQueue<T, Capacity>::pop(message)) {
        }
        return message;
    }
};

}  // namespace bulkhead
