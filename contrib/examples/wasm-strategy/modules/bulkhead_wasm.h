/* The calls of bulkhead.h that a WebAssembly module imports from `bulkhead`. */
#ifndef BULKHEAD_WASM_H
#define BULKHEAD_WASM_H

#include "bulkhead.h"

#define BH_IMPORT(name) __attribute__((import_module("bulkhead"), import_name(#name)))

BH_IMPORT(bh_version) uint32_t bh_version(void);
BH_IMPORT(bh_get_context) int32_t bh_get_context(bh_context *context);
BH_IMPORT(bh_poll) int32_t bh_poll(bh_report *reports, uint32_t room, uint64_t wait_ns);
BH_IMPORT(bh_send) int32_t bh_send(const bh_order *order, uint64_t *sequence);
BH_IMPORT(bh_send_due) int32_t bh_send_due(const bh_order *order, uint64_t due_ns, uint64_t *sequence);
BH_IMPORT(bh_board_read) int32_t bh_board_read(bh_tick *tick);
BH_IMPORT(bh_now) int32_t bh_now(uint64_t *ns);
BH_IMPORT(bh_finish) int32_t bh_finish(void);

/* The function that is called in each duty cycle: define it. */
__attribute__((export_name("bh_cycle"))) void bh_cycle(void);

#endif
