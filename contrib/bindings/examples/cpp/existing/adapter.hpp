/* The program's exchange, through bulkhead: its orders go to venue 0 of a run, the run's reports and
 * tops of book come back as executions and quotes. Nothing else of the program includes bulkhead. */
#ifndef FIRM_ADAPTER_HPP
#define FIRM_ADAPTER_HPP

#include "bulkhead.hpp"
#include "types.hpp"

#include <algorithm>
#include <vector>

namespace firm {

class BulkheadExchange final : public Exchange {
public:
    /* Attaches the calling thread, and waits until the run begins: make everything else before. */
    BulkheadExchange() { client_ids_.reserve(line_.context().orders); }

    Answer submit(const MyOrder &mine) override {
        bh_order order{}; /* all zeros: a limit order to buy, good till cancelled */
        order.side = mine.side == Side::buy ? BH_BUY : BH_SELL;
        order.price = mine.price / ticks_per_cent;
        order.quantity = static_cast<std::uint64_t>(mine.lots) * parts_per_lot;
        order.time_in_force = mine.rests ? BH_GOOD_TILL_CANCEL : BH_IMMEDIATE_OR_CANCEL;
        order.self_trade = BH_CANCEL_NEWEST;
        order.trigger = mine.quote_id;
        return send(order, mine.client_id);
    }

    Answer cancel(std::uint64_t client_id) override {
        const auto found = std::find(client_ids_.rbegin(), client_ids_.rend(), client_id);
        if (found == client_ids_.rend()) return Answer::closed;
        bh_order order{};
        order.operation = BH_CANCEL;
        order.target = static_cast<std::uint64_t>(client_ids_.rend() - found) - 1;
        return send(order, no_client_id);
    }

    /* ANCHOR: page */
    bool poll(Nanos wait, Listener &listener) override {
        const auto wait_ns = static_cast<std::uint64_t>(wait.count());
        const auto pass = [&](const bh_report &report) { on_report(report, listener); };
        const bool is_open = line_.poll(pass, wait_ns); /* blocks for at most `wait_ns` */
        if (is_open && line_.context().market_data)
            while (const auto tick = line_.read()) on_tick(*tick, listener);
        return is_open;
    }

    void close() override { line_.finish(); }
    /* ANCHOR_END: page */

private:
    /* A cancel has a sequence and a report of its own, which are no news for the program. */
    static constexpr std::uint64_t no_client_id = 0;
    static constexpr Ticks ticks_per_cent = 100;
    static constexpr std::uint64_t parts_per_lot = 100'000; /* 1e-8 units */

    /* A run numbers the orders of an incarnation from 0: the sequence is the index. */
    Answer send(const bh_order &order, std::uint64_t client_id) {
        const bulkhead::sent sent = line_.send(order);
        if (sent) client_ids_.push_back(client_id);
        switch (sent.code) {
        case BH_OK: return Answer::sent;
        case BH_BUSY:
        case BH_TOO_MANY_OPEN: return Answer::later;
        default: return Answer::closed; /* all orders are sent, or the run is ending */
        }
    }

    void on_report(const bh_report &report, Listener &listener) const {
        const std::uint64_t client_id = client_ids_[report.sequence];
        if (client_id == no_client_id) return;
        Execution execution;
        execution.client_id = client_id;
        execution.filled = static_cast<Lots>(report.filled / parts_per_lot);
        execution.price = report.price * ticks_per_cent;
        execution.is_last = report.is_last == 1;
        execution.is_rejected = report.status == BH_REJECTED || report.status == BH_REFUSED;
        if (execution.filled > 0 || execution.is_last) listener.on_execution(execution);
    }

    void on_tick(const bh_tick &tick, Listener &listener) const {
        if (tick.venue != 0 || tick.instrument != 0) return;
        Quote quote;
        quote.id = tick.version;
        quote.bid = tick.bid_price * ticks_per_cent;
        quote.offer = tick.offer_price * ticks_per_cent;
        quote.bid_lots = static_cast<Lots>(tick.bid_quantity / parts_per_lot);
        quote.offer_lots = static_cast<Lots>(tick.offer_quantity / parts_per_lot);
        listener.on_quote(quote);
    }

    bulkhead::line line_;
    std::vector<std::uint64_t> client_ids_; /* by sequence */
};

} // namespace firm

#endif
