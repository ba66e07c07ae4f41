/* bulkhead for C++17: the functions of bulkhead.h as an object that attaches and finishes, and mistakes as exceptions.
 *
 * Header only: link the C library. Refusals (busy, too many open, ending, spent) are answers and not thrown. One line a thread. */
#ifndef BULKHEAD_HPP
#define BULKHEAD_HPP

#include "bulkhead.h"

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace bulkhead {

/* A mistake: what a code from -16 down says. */
class error : public std::runtime_error {
public:
    explicit error(std::int32_t code, const char *what) : std::runtime_error(std::string(what) + ": " + bh_error_text(code)), code_(code) {}
    std::int32_t code() const noexcept { return code_; }

private:
    std::int32_t code_;
};

/* Throws where a code is a mistake, else returns it. */
inline std::int32_t checked(std::int32_t code, const char *what) {
    if (code <= BH_NOT_ATTACHED) throw error(code, what);
    return code;
}

/* What came of an order: its sequence, or why it could not be sent now. */
struct sent {
    std::int32_t code;
    std::uint64_t sequence;
    explicit operator bool() const noexcept { return code == BH_OK; }
};

/* A position: bought minus sold in 1e-8 units, and its average price in cents. */
struct position {
    std::int64_t net;
    std::int64_t average_price;
};

/* This thread's line to its run, from the open barrier on. It is finished when it is destroyed, which waits for what is open. */
class line {
public:
    line() : over_(checked(bh_attach(BH_VERSION), "bh_attach") == BH_OVER), attached_(!over_) {
        if (attached_) checked(bh_get_context(&context_), "bh_get_context");
    }
    line(const line &) = delete;
    line &operator=(const line &) = delete;
    ~line() {
        if (attached_) bh_finish();
    }

    const bh_context &context() const noexcept { return context_; }

    /* The position in an instrument that the strategy inherits from its predecessors; zeros in epoch 0. */
    position inherited(std::uint16_t instrument) {
        position result{0, 0};
        checked(bh_position(instrument, &result.net, &result.average_price), "bh_position");
        return result;
    }

    /* One duty cycle: hands each report to `take`. False: none will come any more. */
    template <typename Take> bool poll(Take &&take, std::uint64_t wait_ns = 0) {
        if (over_) return false;
        const std::int32_t taken = checked(bh_poll(reports_.data(), static_cast<std::uint32_t>(reports_.size()), wait_ns), "bh_poll");
        over_ = taken == BH_OVER;
        for (std::int32_t place = 0; place < taken; ++place) take(static_cast<const bh_report &>(reports_[static_cast<std::size_t>(place)]));
        return !over_;
    }

    sent send(const bh_order &order) {
        sent result{BH_OK, 0};
        result.code = checked(bh_send(&order, &result.sequence), "bh_send");
        return result;
    }

    /* The same of an order that was due at a time, in nanoseconds since the start of the run. */
    sent send(const bh_order &order, std::uint64_t due_ns) {
        sent result{BH_OK, 0};
        result.code = checked(bh_send_due(&order, due_ns, &result.sequence), "bh_send_due");
        return result;
    }

    /* The next touch that was not read yet. */
    std::optional<bh_tick> read() {
        bh_tick tick;
        if (checked(bh_board_read(&tick), "bh_board_read") > 0) return tick;
        return std::nullopt;
    }

    /* Nanoseconds since the start of the run. */
    std::uint64_t now() {
        std::uint64_t ns = 0;
        checked(bh_now(&ns), "bh_now");
        return ns;
    }

    void heartbeat() { checked(bh_heartbeat(), "bh_heartbeat"); }

    /* Sends no more, waits for what is open, and says that the strategy is done. */
    void finish() {
        if (!attached_) return;
        attached_ = false;
        over_ = true;
        checked(bh_finish(), "bh_finish");
    }

private:
    bool over_;
    bool attached_;
    bh_context context_{};
    std::array<bh_report, 16> reports_{};
};

} // namespace bulkhead

#endif
