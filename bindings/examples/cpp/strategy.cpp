/* A strategy in C++: takes what the touch of venue 0 shows, a lot at a time, and sells it again. Keeps its own account.
 *
 *   c++ -std=c++17 -O2 strategy.cpp -I bindings/include -L target/release -lbulkhead -o strategy
 *   launcher run --strategy player,exec:./strategy --strategies 2 --venue book --venues 1
 */
#include "bulkhead.hpp"

#include <cinttypes>
#include <cstdio>
#include <vector>

namespace {

constexpr std::uint64_t lot = 1'000'000;     /* 0.01 units, in 1e-8 units */
constexpr std::int64_t price = 41'300;       /* what it pays while the touch shows nobody, in cents */
constexpr std::uint64_t longest_wait = 1'000'000; /* nanoseconds */

class taker {
public:
    explicit taker(bulkhead::line &line) : line_(line), expected_(line.context().orders) {}

    void run() {
        while (line_.poll([this](const bh_report &report) { take(report); }, longest_wait)) {
            if (line_.context().market_data)
                while (auto tick = line_.read())
                    if (tick->venue == 0 && tick->instrument == 0) touch_ = *tick;
            if (sent_ == answered_) trade();
        }
    }

    void print() const {
        std::printf("sent %" PRIu64 " answered %" PRIu64 " rejected %" PRIu64 " odd %" PRIu64 " fills %" PRIu64 " net %" PRId64 "\n",
                    sent_, answered_, rejected_, odd_, fills_, net_);
    }

private:
    void take(const bh_report &report) {
        if (report.sequence >= sent_ || report.number != expected_[report.sequence]++) odd_++;
        if (report.filled > 0) {
            fills_++;
            const auto filled = static_cast<std::int64_t>(report.filled);
            net_ += report.side == BH_BUY ? filled : -filled;
        }
        answered_ += report.is_last;
        rejected_ += report.is_last && report.status == BH_REJECTED;
    }

    void trade() {
        const bool buys = net_ <= 0;
        const auto best = buys ? touch_.offer_price : touch_.bid_price;
        bh_order order{};
        order.side = buys ? BH_BUY : BH_SELL;
        order.quantity = buys ? lot : static_cast<std::uint64_t>(net_);
        order.price = best > 0 ? best : price;
        order.time_in_force = BH_IMMEDIATE_OR_CANCEL;
        order.trigger = touch_.version;
        if (line_.send(order)) sent_++;
    }

    bulkhead::line &line_;
    bh_tick touch_{};
    std::vector<std::uint8_t> expected_;
    std::uint64_t sent_ = 0, answered_ = 0, rejected_ = 0, odd_ = 0, fills_ = 0;
    std::int64_t net_ = 0;
};

} // namespace

int main() {
    try {
        bulkhead::line line;
        taker taker(line);
        taker.run();
        taker.print();
        std::fflush(stdout);
        line.finish();
        return 0;
    } catch (const bulkhead::error &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
