/* The exchange that the program tests with: fills every order at its price in the next turn. */
#ifndef FIRM_PAPER_HPP
#define FIRM_PAPER_HPP

#include "types.hpp"

#include <thread>

namespace firm {

class PaperExchange final : public Exchange {
public:
    explicit PaperExchange(std::uint64_t orders) : left_(orders) {}

    Answer submit(const MyOrder &order) override {
        if (left_ == 0) return Answer::closed;
        if (has_order_) return Answer::later;
        left_--;
        order_ = order;
        has_order_ = true;
        return Answer::sent;
    }

    Answer cancel(std::uint64_t) override { return Answer::sent; }

    bool poll(Nanos wait, Listener &listener) override {
        if (!has_order_) {
            std::this_thread::sleep_for(wait);
            return left_ > 0;
        }
        has_order_ = false;
        listener.on_execution({order_.client_id, order_.lots, order_.price, true, false});
        return true;
    }

    void close() override {}

private:
    std::uint64_t left_;
    MyOrder order_;
    bool has_order_ = false;
};

} // namespace firm

#endif
