/* A strategy in C: one order at a time on the exchange of venue 0, inside or at the touch, and a bid or an offer that rests for a moment
 * now and then. It buys while it holds nothing, then sells what it holds, and keeps its own account of what it was told. With a number as
 * its argument an order is due every so many nanoseconds, and none rests. The same strategy stands beside it in other languages.
 *
 *   cc -std=c11 -O2 strategy.c -I contrib/bindings/include -L target/release -lbulkhead -o strategy
 *   launcher run --strategy player,exec:./strategy --strategies 2 --venue book --venues 1
 *
 * What it prints in the end is in strategy-N.stderr in the run's folder.
 */
#include "bulkhead.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BATCH = 16,
    LOT = 1000000,      /* 0.01 units, in 1e-8 units */
    PRICE = 41300,      /* what it thinks a unit is worth while the touch shows nobody, in cents */
    RESTS_EVERY = 8,    /* every so many orders one rests, unless they are due at times */
    RESTS_NS = 200000,  /* for so long */
    LONGEST_WAIT_NS = 1000000
};

typedef struct {
    bh_context run;
    bh_tick touch; /* of venue 0 and instrument 0 */
    uint64_t every_ns, due_ns; /* an order is due every so many nanoseconds; 0: as soon as the one before is answered */
    uint64_t sent, answered, rejected, fills, open;
    int64_t net;       /* bought less sold, in 1e-8 units */
    uint8_t *expected; /* the number of the next report of each order */
    uint64_t odd;      /* reports that came out of order */
    uint64_t resting, since_ns;
    int rests;
} strategy;

static int give_up(const char *what, int32_t code) {
    fprintf(stderr, "%s: %s\n", what, bh_error_text(code));
    return 1;
}

/* 1: sent; 0: not now, or never again; below: a mistake. */
static int32_t submit(strategy *self, const bh_order *order, const uint64_t *due_ns, uint64_t *sequence) {
    int32_t code = due_ns != NULL ? bh_send_due(order, *due_ns, sequence) : bh_send(order, sequence);
    if (code == BH_OK) {
        self->sent++;
        self->open++;
        return 1;
    }
    return code > BH_NOT_ATTACHED ? 0 : code;
}

static void take(strategy *self, const bh_report *report) {
    if (report->sequence >= self->sent || report->number != self->expected[report->sequence]) {
        self->odd++;
        return;
    }
    self->expected[report->sequence]++;
    if (report->filled > 0) {
        self->fills++;
        self->net += report->side == BH_BUY ? (int64_t)report->filled : -(int64_t)report->filled;
    }
    if (report->is_last) {
        self->answered++;
        self->open--;
        self->rejected += report->status == BH_REJECTED;
        if (self->rests && report->sequence == self->resting) self->rests = 0;
    }
}

/* One order, if none is open and it is due; a cancel, if one has rested for long enough. */
static int32_t trade(strategy *self) {
    uint64_t now = 0;
    int32_t code = bh_now(&now);
    if (code < 0) return code;
    if (self->rests && self->open == 1 && now - self->since_ns > RESTS_NS) {
        bh_order cancel = {.operation = BH_CANCEL, .target = self->resting};
        code = submit(self, &cancel, NULL, NULL);
        /* Refused: all orders of the plan are sent. What rests expires with the run. */
        return code;
    }
    int paced = self->every_ns > 0;
    if (self->open > 0 || (paced && now < self->due_ns)) return 0;
    int buys = self->net <= 0;
    const bh_tick *touch = &self->touch;
    int64_t bid = touch->bid_price > 0 ? touch->bid_price : PRICE - 1;
    int64_t offer = touch->offer_price > 0 ? touch->offer_price : PRICE + 1;
    bh_order order = {.side = buys ? BH_BUY : BH_SELL, .self_trade = BH_CANCEL_NEWEST};
    order.quantity = buys ? LOT : (uint64_t)self->net;
    if (!paced && self->sent % RESTS_EVERY == 0) {
        order.price = buys ? bid : offer;
        code = submit(self, &order, NULL, &self->resting);
        self->rests = code == 1;
        self->since_ns = now;
        return code;
    }
    order.price = buys ? offer : bid;
    order.time_in_force = BH_IMMEDIATE_OR_CANCEL;
    order.trigger = touch->version;
    code = submit(self, &order, paced ? &self->due_ns : NULL, NULL);
    if (code == 1) self->due_ns += self->every_ns;
    return code;
}

int main(int count, char **arguments) {
    strategy self = {0};
    if (count > 1) self.every_ns = self.due_ns = strtoull(arguments[1], NULL, 10);
    bh_report reports[BATCH];
    int32_t code = bh_attach(BH_VERSION);
    if (code == BH_OVER) return 0;
    if (code < 0) return give_up("bh_attach", code);
    code = bh_get_context(&self.run);
    if (code < 0) return give_up("bh_get_context", code);
    self.expected = calloc(self.run.orders + 1, 1);
    if (self.expected == NULL) return give_up("no memory", BH_OK);
    for (;;) {
        int32_t taken = bh_poll(reports, BATCH, LONGEST_WAIT_NS);
        if (taken == BH_OVER) break;
        if (taken < 0) return give_up("bh_poll", taken);
        for (int32_t i = 0; i < taken; i++) take(&self, &reports[i]);
        bh_tick tick;
        while (self.run.market_data && (code = bh_board_read(&tick)) > 0)
            if (tick.venue == 0 && tick.instrument == 0) self.touch = tick;
        if (code < 0) return give_up("bh_board_read", code);
        if ((code = trade(&self)) < 0) return give_up("bh_send", code);
    }
    printf("sent %" PRIu64 " answered %" PRIu64 " rejected %" PRIu64 " odd %" PRIu64 " fills %" PRIu64 " net %" PRId64 "\n",
           self.sent, self.answered, self.rejected, self.odd, self.fills, self.net);
    free(self.expected);
    code = bh_finish();
    return code < 0 ? give_up("bh_finish", code) : 0;
}
