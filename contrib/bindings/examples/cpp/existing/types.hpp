/* The types of a trading program that existed before it met bulkhead: orders, quotes, executions,
 * and the interface through which it trades. */
#ifndef FIRM_TYPES_HPP
#define FIRM_TYPES_HPP

#include <chrono>
#include <cstdint>

namespace firm {

using Ticks = std::int64_t; /* a price in 1e-4 dollars */
using Lots = std::int64_t;  /* a quantity in 1e-3 units */
using Nanos = std::chrono::nanoseconds;

enum class Side : char { buy = 'B', sell = 'S' };

struct MyOrder {
    std::uint64_t client_id = 0; /* from 1, ascending */
    Side side = Side::buy;
    Ticks price = 0;
    Lots lots = 0;
    bool rests = false;         /* false: immediate or cancel */
    std::uint64_t quote_id = 0; /* of the quote that the order reacts to; 0: none */
};

/* The best prices of the program's instrument. A side without an order has a price of 0. */
struct Quote {
    std::uint64_t id = 0;
    Ticks bid = 0, offer = 0;
    Lots bid_lots = 0, offer_lots = 0;
};

struct Execution {
    std::uint64_t client_id = 0;
    Lots filled = 0;
    Ticks price = 0;
    bool is_last = false;     /* nothing of the order follows */
    bool is_rejected = false; /* refused by a risk check or by the venue */
};

class Listener {
public:
    virtual ~Listener() = default;
    virtual void on_quote(const Quote &quote) = 0;
    virtual void on_execution(const Execution &execution) = 0;
};

class Exchange {
public:
    enum class Answer { sent, later, closed };

    virtual ~Exchange() = default;
    virtual Answer submit(const MyOrder &order) = 0;
    virtual Answer cancel(std::uint64_t client_id) = 0;
    /* Passes news to the listener, after waiting for it no longer than `wait`. Returns `false`
     * once no news will come. */
    virtual bool poll(Nanos wait, Listener &listener) = 0;
    /* Ends the session once every order has its last execution. */
    virtual void close() = 0;
};

} // namespace firm

#endif
