// Buys a unit again and again, each when the one before it is answered. The program of docs/src/languages.md.
#include "bulkhead.hpp"

int main() {
    bulkhead::line line; // attaches, and waits until the run begins
    unsigned open = 0;
    const auto take = [&open](const bh_report &report) { open -= report.is_last; };
    while (line.poll(take, 1'000'000)) { // false: no report will come any more
        if (open > 0) continue;
        bh_order order{};
        order.side = BH_BUY;
        order.price = 41'300;         // cents
        order.quantity = 100'000'000; // 1e-8 units
        order.time_in_force = BH_IMMEDIATE_OR_CANCEL;
        if (line.send(order)) open = 1;
    }
    line.finish();
}
