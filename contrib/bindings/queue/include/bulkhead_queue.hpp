/* bulkhead_queue: the queue for C++17, over bulkhead_queue.h.
 *
 * Queue<T>, Sender<T> and Receiver<T> are move-only and close what they own. T is trivially
 * copyable; every process uses the same layout of it. Failures are QueueError, with a code of
 * bulkhead_queue.h; a full and an empty queue are answers. An object is used by one thread at a
 * time. */

#ifndef BULKHEAD_QUEUE_HPP
#define BULKHEAD_QUEUE_HPP

#include "bulkhead_queue.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace bulkhead {

/* A failed call: its code and its text. */
class QueueError : public std::runtime_error {
public:
    explicit QueueError(std::int32_t code) : std::runtime_error(bhq_error_text(code)), code_(code) {}

    std::int32_t code() const noexcept { return code_; }

private:
    std::int32_t code_;
};

namespace detail {

[[noreturn]] inline void fail(std::int32_t code) { throw QueueError(code); }

inline std::int32_t checked(std::int32_t code) {
    if (code < 0) {
        fail(code);
    }
    return code;
}

struct Close {
    void operator()(bhq_queue *queue) const noexcept { bhq_close_queue(queue); }
    void operator()(bhq_sender *sender) const noexcept { bhq_close_sender(sender); }
    void operator()(bhq_receiver *receiver) const noexcept { bhq_close_receiver(receiver); }
};

template <typename H>
using Handle = std::unique_ptr<H, Close>;

/* Returns the nanoseconds of a wait; those of a negative one are 0. */
template <typename Rep, typename Period>
std::uint64_t wait_ns(std::chrono::duration<Rep, Period> timeout) {
    auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(timeout).count();
    return ns < 0 ? 0 : static_cast<std::uint64_t>(ns);
}

} // namespace detail

/* State of a producer, and the id of its process. */
struct Producer {
    std::int32_t state; /* BHQ_STATE_FREE, _ALIVE, _DEAD or _RETIRED */
    std::uint64_t pid;  /* 0: none */
};

/* The sending end. Its destructor frees its producer; what was pushed arrives. */
template <typename T>
class Sender {
public:
    explicit Sender(bhq_sender *sender) : sender_(sender) {
        detail::checked(bhq_open_fast_sender(sender, &fast_));
    }

    /* Puts a message into the queue, without a call. Returns false if the queue is full. Never
     * blocks. */
    [[nodiscard]] bool push(const T &message) {
        std::int32_t code = bhq_fast_push(fast_, &message, sizeof(T));
        if (code == BHQ_FULL) {
            return false;
        }
        detail::checked(code);
        return true;
    }

    /* Puts the first of some messages into the queue, up to as many as fit. Returns their number. */
    [[nodiscard]] std::uint32_t push_many(const T *messages, std::uint32_t count) {
        std::int32_t pushed = bhq_push_many(sender_.get(), messages, sizeof(T), count);
        return static_cast<std::uint32_t>(detail::checked(pushed));
    }

    /* Returns the index of the producer. */
    std::uint32_t index() const {
        return static_cast<std::uint32_t>(detail::checked(bhq_sender_index(sender_.get())));
    }

private:
    detail::Handle<bhq_sender> sender_;
    bhq_fast_sender *fast_ = nullptr;
};

/* A message that was taken, and keeps its slot until release(). Destroyed without it, the message
 * is taken again. It is destroyed before its receiver. */
template <typename T>
class Taken {
public:
    Taken(bhq_receiver *receiver, const T *message) noexcept : receiver_(receiver), message_(message) {}
    Taken(Taken &&other) noexcept
        : receiver_(std::exchange(other.receiver_, nullptr)), message_(other.message_) {}
    Taken &operator=(Taken &&) = delete;
    ~Taken() {
        if (receiver_ != nullptr) {
            bhq_put_back(receiver_);
        }
    }

    const T &operator*() const noexcept { return *message_; }
    const T *operator->() const noexcept { return message_; }

    /* Frees the message's slots: it has been used, and is not taken again. */
    void release() { detail::checked(bhq_release(std::exchange(receiver_, nullptr))); }

private:
    bhq_receiver *receiver_;
    const T *message_;
};

/* The receiving end. Its destructor leaves the other messages to the next receiver. */
template <typename T>
class Receiver {
public:
    explicit Receiver(bhq_receiver *receiver) : receiver_(receiver) {
        detail::checked(bhq_open_fast_receiver(receiver, &fast_));
    }

    /* Takes the next message into `message`, without a call from the queue of one producer. Returns
     * false if there is none now. Never blocks. */
    [[nodiscard]] bool pop(T &message) {
        return detail::checked(bhq_fast_pop(fast_, &message, sizeof(T))) == 1;
    }

    /* Takes up to `max` messages of one producer into `messages`. Returns their number. At most
     * once. */
    [[nodiscard]] std::uint32_t pop_many(T *messages, std::uint32_t max) {
        std::int32_t popped = bhq_pop_many(receiver_.get(), messages, sizeof(T), max);
        return static_cast<std::uint32_t>(detail::checked(popped));
    }

    /* Passes up to `max` messages of one producer to `each`, and then frees them together. Returns
     * their number. At least once: an exception of `each` is thrown again; its message and those
     * after it stay. */
    template <typename F>
    std::uint32_t drain(std::uint32_t max, F &&each) {
        static_assert(alignof(T) <= 8, "a message that is drained is aligned to 8 bytes: use pop");
        using Each = std::remove_reference_t<F>;
        struct Context {
            Each *each;
            std::exception_ptr thrown;
        } context{std::addressof(each), nullptr};
        auto call = [](const void *message, void *place) noexcept -> std::int32_t {
            auto *own = static_cast<Context *>(place);
            try {
                (*own->each)(*static_cast<const T *>(message));
                return 0;
            } catch (...) {
                own->thrown = std::current_exception();
                return 1;
            }
        };
        std::int32_t drained = bhq_drain(receiver_.get(), max, call, &context);
        if (context.thrown) {
            std::rethrow_exception(context.thrown);
        }
        return static_cast<std::uint32_t>(detail::checked(drained));
    }

    /* Takes the next message, if there is one now. */
    [[nodiscard]] std::optional<T> pop() {
        std::optional<T> message(std::in_place);
        if (!pop(*message)) {
            message.reset();
        }
        return message;
    }

    /* Takes the next message, sleeping at most for `timeout` until there is one. */
    template <typename Rep, typename Period>
    [[nodiscard]] std::optional<T> pop_for(std::chrono::duration<Rep, Period> timeout) {
        std::optional<T> message(std::in_place);
        std::uint64_t ns = detail::wait_ns(timeout);
        if (detail::checked(bhq_pop_timeout(receiver_.get(), &*message, sizeof(T), ns)) == 0) {
            message.reset();
        }
        return message;
    }

    /* Takes the next message and keeps its slot: at least once. See bhq_take. */
    template <typename Rep = std::int64_t, typename Period = std::nano>
    [[nodiscard]] std::optional<Taken<T>> take(std::chrono::duration<Rep, Period> timeout = {}) {
        static_assert(alignof(T) <= 8, "a message that is taken is aligned to 8 bytes: use pop");
        const void *message = nullptr;
        if (detail::checked(bhq_take(receiver_.get(), &message, detail::wait_ns(timeout))) == 0) {
            return std::nullopt;
        }
        return std::optional<Taken<T>>(std::in_place, receiver_.get(), static_cast<const T *>(message));
    }

    /* Returns the descriptor for poll and epoll: see bhq_prepare_wait. It remains the receiver's. */
    int wait_fd() const { return detail::checked(bhq_wait_fd(receiver_.get())); }

    /* Arms the descriptor. Returns true if the queue is empty: wait, at most for BHQ_MAX_WAIT_NS. */
    [[nodiscard]] bool prepare_wait() { return detail::checked(bhq_prepare_wait(receiver_.get())) == 1; }

    /* Returns the producer of the last message. */
    std::uint32_t last_producer() const {
        return static_cast<std::uint32_t>(detail::checked(bhq_last_producer(receiver_.get())));
    }

    /* Returns the producer of the last BHQ_FAULT, if there was one. */
    std::optional<std::uint32_t> faulty_producer() const {
        std::int32_t index = bhq_faulty_producer(receiver_.get());
        return index < 0 ? std::nullopt : std::optional<std::uint32_t>(static_cast<std::uint32_t>(index));
    }

    Producer producer(std::uint32_t index) const {
        Producer found{};
        found.state = detail::checked(bhq_receiver_producer_state(receiver_.get(), index, &found.pid));
        return found;
    }

    /* Stops polling a dead producer. Returns false while it has messages to pop. */
    [[nodiscard]] bool retire(std::uint32_t index) {
        return detail::checked(bhq_retire(receiver_.get(), index)) == 1;
    }

    /* Resets the ring of a dead producer, free for a new sender. False while it has messages. */
    [[nodiscard]] bool renew(std::uint32_t index) {
        return detail::checked(bhq_renew(receiver_.get(), index)) == 1;
    }

private:
    detail::Handle<bhq_receiver> receiver_;
    bhq_fast_receiver *fast_ = nullptr;
};

/* A handle of a queue, from which its ends are attached; they outlive it. The creator's removes the
 * name. */
template <typename T>
class Queue {
    static_assert(std::is_trivially_copyable_v<T>, "a message is copied byte by byte");
    static_assert(sizeof(T) <= BHQ_MAX_MESSAGE_BYTES, "a message has at most 65,536 bytes");

public:
    /* Creates a queue under a name: SPSC with one producer, MPSC with up to 1,024. `capacity` is the
     * number of messages of each producer, at least. */
    static Queue create(const std::string &name, std::uint32_t capacity, std::uint32_t producers = 1) {
        bhq_queue *queue = nullptr;
        detail::checked(bhq_create(name.c_str(), producers, capacity, sizeof(T), &queue));
        return Queue(queue);
    }

    /* Creates a queue without a name: see fds. */
    static Queue create_sealed(std::uint32_t capacity, std::uint32_t producers = 1) {
        bhq_queue *queue = nullptr;
        detail::checked(bhq_create_sealed(producers, capacity, sizeof(T), &queue));
        return Queue(queue);
    }

    static Queue open(const std::string &name) {
        bhq_queue *queue = nullptr;
        detail::checked(bhq_open(name.c_str(), sizeof(T), &queue));
        return Queue(queue);
    }

    /* Opens a sealed queue. The descriptors remain the caller's. */
    static Queue open(std::array<int, 2> fds) {
        bhq_queue *queue = nullptr;
        detail::checked(bhq_open_fds(fds[0], fds[1], sizeof(T), &queue));
        return Queue(queue);
    }

    /* Returns the descriptors of a sealed queue, memory and pipe, which remain the queue's. */
    std::array<int, 2> fds() const {
        std::array<std::int32_t, 2> fds{};
        detail::checked(bhq_fds(queue_.get(), &fds[0], &fds[1]));
        return fds;
    }

    Sender<T> sender() {
        bhq_sender *sender = nullptr;
        detail::checked(bhq_attach_sender(queue_.get(), &sender));
        return Sender<T>(sender);
    }

    /* Continues in place of a crashed producer. */
    Sender<T> resume_sender(std::uint32_t index) {
        bhq_sender *sender = nullptr;
        detail::checked(bhq_resume_sender(queue_.get(), index, &sender));
        return Sender<T>(sender);
    }

    Receiver<T> receiver() {
        bhq_receiver *receiver = nullptr;
        detail::checked(bhq_attach_receiver(queue_.get(), &receiver));
        return Receiver<T>(receiver);
    }

    /* Continues in place of a crashed receiver. */
    Receiver<T> resume_receiver() {
        bhq_receiver *receiver = nullptr;
        detail::checked(bhq_resume_receiver(queue_.get(), &receiver));
        return Receiver<T>(receiver);
    }

    std::uint32_t producers() const noexcept { return bhq_producers(queue_.get()); }

    Producer producer(std::uint32_t index) const {
        Producer found{};
        found.state = detail::checked(bhq_producer_state(queue_.get(), index, &found.pid));
        return found;
    }

    bool has_receiver() const { return detail::checked(bhq_has_receiver(queue_.get())) == 1; }

private:
    explicit Queue(bhq_queue *queue) noexcept : queue_(queue) {}

    detail::Handle<bhq_queue> queue_;
};

} // namespace bulkhead

#endif
