/* The strategy of examples/c/strategy.c in C++: one order at a time at the touch of venue 0, some of which rest for a moment. Keeps its own
 * account. With a number as its argument an order is due every so many nanoseconds, and none rests.
 *
 *   c++ -std=c++17 -O2 strategy.cpp -I contrib/bindings/include -L target/release -lbulkhead -o strategy
 *   launcher run --strategy player,exec:./strategy --strategies 2 --venue book --venues 1
 */
#include "bulkhead.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

namespace {

constexpr std::uint64_t lot = 1'000'000;          /* 0.01 units, in 1e-8 units */
constexpr std::int64_t price = 41'300;            /* what a unit is worth while the touch shows nobody, in cents */
constexpr std::uint64_t rests_every = 8;          /* every so many orders one rests, unless they are due at times */
constexpr std::uint64_t rests_ns = 200'000;       /* for so long */
constexpr std::uint64_t longest_wait = 1'000'000; /* nanoseconds */

class strategy {
public:
    strategy(bulkhead::line &line, std::uint64_t every_ns)
        : line_(line), every_ns_(every_ns), due_ns_(every_ns), expected_(line.context().orders) {}

    void run() {
        while (line_.poll([this](const bh_report &report) { take(report); }, longest_wait)) {
            if (line_.context().market_data)
                while (auto tick = line_.read())
                    if (tick->venue == 0 && tick->instrument == 0) touch_ = *tick;
            trade();
        }
    }

    void print() const {
        std::printf("sent %" PRIu64 " answered %" PRIu64 " rejected %" PRIu64 " odd %" PRIu64 " fills %" PRIu64 " net %" PRId64 "\n",
                    sent_, answered_, rejected_, odd_, fills_, net_);
    }

private:
    void take(const bh_report &report) {
        if (report.sequence >= sent_ || report.number != expected_[report.sequence]) {
            odd_++;
            return;
        }
        expected_[report.sequence]++;
        if (report.filled > 0) {
            fills_++;
            const auto filled = static_cast<std::int64_t>(report.filled);
            net_ += report.side == BH_BUY ? filled : -filled;
        }
        if (!report.is_last) return;
        answered_++;
        rejected_ += report.status == BH_REJECTED;
        if (resting_ == report.sequence) resting_.reset();
    }

    /* Its sequence; nothing: not now, or never again. */
    std::optional<std::uint64_t> submit(const bh_order &order) { return counted(line_.send(order)); }
    std::optional<std::uint64_t> submit(const bh_order &order, std::uint64_t due_ns) { return counted(line_.send(order, due_ns)); }
    std::optional<std::uint64_t> counted(bulkhead::sent sent) {
        if (!sent) return std::nullopt;
        sent_++;
        return sent.sequence;
    }

    /* One order, if none is open and it is due; a cancel, if one has rested for long enough. */
    void trade() {
        const auto now = line_.now();
        const auto open = sent_ - answered_;
        if (resting_ && open == 1 && now - since_ns_ > rests_ns) {
            bh_order cancel{};
            cancel.operation = BH_CANCEL;
            cancel.target = *resting_;
            submit(cancel); /* refused: all orders of the plan are sent. What rests expires with the run. */
            return;
        }
        const bool paced = every_ns_ > 0;
        if (open > 0 || (paced && now < due_ns_)) return;
        const bool buys = net_ <= 0;
        const auto bid = touch_.bid_price > 0 ? touch_.bid_price : price - 1;
        const auto offer = touch_.offer_price > 0 ? touch_.offer_price : price + 1;
        bh_order order{};
        order.side = buys ? BH_BUY : BH_SELL;
        order.quantity = buys ? lot : static_cast<std::uint64_t>(net_);
        order.self_trade = BH_CANCEL_NEWEST;
        if (!paced && sent_ % rests_every == 0) {
            order.price = buys ? bid : offer;
            resting_ = submit(order);
            since_ns_ = now;
            return;
        }
        order.price = buys ? offer : bid;
        order.time_in_force = BH_IMMEDIATE_OR_CANCEL;
        order.trigger = touch_.version;
        if (paced ? submit(order, due_ns_) : submit(order)) due_ns_ += every_ns_;
    }

    bulkhead::line &line_;
    bh_tick touch_{};
    std::uint64_t every_ns_, due_ns_;
    std::vector<std::uint8_t> expected_;
    std::uint64_t sent_ = 0, answered_ = 0, rejected_ = 0, odd_ = 0, fills_ = 0, since_ns_ = 0;
    std::optional<std::uint64_t> resting_;
    std::int64_t net_ = 0;
};

} // namespace

int main(int count, char **arguments) {
    try {
        bulkhead::line line;
        strategy strategy(line, count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 0);
        strategy.run();
        strategy.print();
        std::fflush(stdout);
        line.finish();
        return 0;
    } catch (const bulkhead::error &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
