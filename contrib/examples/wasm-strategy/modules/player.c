/* The strategy of player.wat in C: one order at a time, each at the next venue, buys and sales in turn.
 *
 *   clang --target=wasm32 -O2 -ffreestanding -nostdlib -I modules -I ../../bindings/include \
 *       -Wl,--no-entry -o player.wasm modules/player.c
 *   WASM_MODULE=player.wasm wasm-strategy run --strategy wasm
 */
#include "bulkhead_wasm.h"

enum { BATCH = 16, LOT = 1000000, PRICE = 41300, LONGEST_WAIT_NS = 1000000 };

static bh_context run;
static bh_report reports[BATCH];
static bh_order order;
static int is_ready, is_open;

void bh_cycle(void) {
    if (!is_ready) {
        bh_get_context(&run);
        order.price = PRICE;
        order.quantity = LOT;
        order.venue = run.strategy % run.venues;
        is_ready = 1;
    }
    int32_t taken = bh_poll(reports, BATCH, LONGEST_WAIT_NS);
    for (int32_t i = 0; i < taken; i++)
        if (reports[i].is_last) is_open = 0;
    uint64_t sequence;
    if (is_open || bh_send(&order, &sequence) != BH_OK) return;
    is_open = 1;
    order.venue = (order.venue + 1) % run.venues;
    order.side = order.side == BH_BUY ? BH_SELL : BH_BUY;
}
