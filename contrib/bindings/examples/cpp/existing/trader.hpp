/* The trading of the program: buys at the offer while it holds nothing, then sells what it holds at
 * the bid. Every eighth order rests until a timer cancels it. */
#ifndef FIRM_TRADER_HPP
#define FIRM_TRADER_HPP

#include "types.hpp"

#include <cinttypes>
#include <cstdio>

namespace firm {

class Trader final : public Listener {
public:
    void on_quote(const Quote &quote) override { quote_ = quote; }

    void on_execution(const Execution &execution) override {
        if (execution.client_id != open_) {
            odd_++;
            return;
        }
        if (execution.filled > 0) {
            fills_++;
            traded_ += execution.filled;
            net_ += side_ == Side::buy ? execution.filled : -execution.filled;
        }
        if (!execution.is_last) return;
        rejected_ += execution.is_rejected;
        answered_++;
        open_ = 0;
    }

    /* Timer: sends the next order, once the one before it has ended. */
    void trade(Exchange &exchange) {
        if (open_ != 0) return;
        MyOrder order;
        order.client_id = sent_ + 1;
        order.rests = sent_ % rests_every == 0;
        order.side = net_ <= 0 ? Side::buy : Side::sell;
        order.lots = net_ <= 0 ? lot : net_;
        const Ticks bid = quote_.bid > 0 ? quote_.bid : fair - tick;
        const Ticks offer = quote_.offer > 0 ? quote_.offer : fair + tick;
        order.price = (order.side == Side::buy) != order.rests ? offer : bid;
        order.quote_id = quote_.id;
        side_ = order.side;
        if (exchange.submit(order) != Exchange::Answer::sent) return;
        sent_++;
        open_ = order.client_id;
        rests_ = order.rests;
    }

    /* Timer: cancels an order that rests. */
    void expire(Exchange &exchange) {
        if (open_ == 0 || !rests_) return;
        rests_ = exchange.cancel(open_) == Exchange::Answer::later;
    }

    void print() const {
        std::printf("orders %" PRIu64 " ended %" PRIu64 " rejected %" PRIu64 " odd %" PRIu64, sent_, answered_, rejected_, odd_);
        std::printf(" fills %" PRIu64 " traded %" PRId64 " net %" PRId64 "\n", fills_, traded_, net_);
        std::fflush(stdout);
    }

private:
    static constexpr std::uint64_t rests_every = 8;
    static constexpr Lots lot = 10;       /* 0.01 units */
    static constexpr Ticks tick = 100;    /* a cent */
    static constexpr Ticks fair = 4130000; /* 413 dollars, while nobody quotes */

    Quote quote_;
    std::uint64_t open_ = 0; /* client id of the open order; 0: none */
    Side side_ = Side::buy;  /* of the open order */
    bool rests_ = false;
    std::uint64_t sent_ = 0, answered_ = 0, rejected_ = 0, odd_ = 0, fills_ = 0;
    Lots traded_ = 0, net_ = 0;
};

} // namespace firm

#endif
