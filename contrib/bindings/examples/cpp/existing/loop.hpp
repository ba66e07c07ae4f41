/* The event loop of the program: one thread, one exchange, periodic timers. */
#ifndef FIRM_LOOP_HPP
#define FIRM_LOOP_HPP

#include "types.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace firm {

class Loop {
public:
    /* Calls `action` every `period`, from the first turn on. */
    void every(Nanos period, std::function<void()> action) {
        timers_.push_back({period, Clock::time_point::min(), std::move(action)});
    }

    /* Returns once the exchange has no more news. */
    void run(Exchange &exchange, Listener &listener) {
        while (exchange.poll(time_to_next_timer(), listener)) run_due_timers();
    }

private:
    using Clock = std::chrono::steady_clock;

    struct Timer {
        Nanos period;
        Clock::time_point due;
        std::function<void()> action;
    };

    Nanos time_to_next_timer() const {
        const auto now = Clock::now();
        Nanos wait = longest_wait;
        for (const Timer &timer : timers_) wait = std::min<Nanos>(wait, std::max(timer.due, now) - now);
        return wait;
    }

    void run_due_timers() {
        const auto now = Clock::now();
        for (Timer &timer : timers_) {
            if (timer.due > now) continue;
            timer.due = now + timer.period;
            timer.action();
        }
    }

    static constexpr Nanos longest_wait = std::chrono::milliseconds(1);
    std::vector<Timer> timers_;
};

} // namespace firm

#endif
