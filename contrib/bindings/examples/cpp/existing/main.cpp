/* A program that existed before it met bulkhead: types, event loop and trading are its own, and
 * `adapter.hpp` is all that was added. Started by hand it trades on paper, started by a launcher
 * (`--strategy exec:…`) in the launcher's run. docs/src/adding/existing.md has the commands. */
#include "adapter.hpp"
#include "loop.hpp"
#include "paper.hpp"
#include "trader.hpp"

#include <cstdlib>
#include <exception>
#include <memory>

namespace {

/* Attaching comes last: from then on the thread is pinned, memory limited and time counted. */
std::unique_ptr<firm::Exchange> open_exchange() {
    if (std::getenv("BULKHEAD_RUN") == nullptr) return std::make_unique<firm::PaperExchange>(1000);
    return std::make_unique<firm::BulkheadExchange>();
}

} // namespace

int main() {
    try {
        firm::Loop loop;
        firm::Trader trader;
        firm::Exchange *exchange = nullptr;
        loop.every(std::chrono::microseconds(50), [&] { trader.trade(*exchange); });
        loop.every(std::chrono::microseconds(500), [&] { trader.expire(*exchange); });
        const auto opened = open_exchange();
        exchange = opened.get();
        loop.run(*exchange, trader);
        trader.print();
        exchange->close();
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
