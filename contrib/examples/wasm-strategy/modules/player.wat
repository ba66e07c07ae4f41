;; A strategy: one order at a time, each at the next venue, buys and sales in turn.
;;
;; bh_cycle is called in each duty cycle, on the strategy's thread. The calls are those of
;; contrib/bindings/include/bulkhead.h, whose structures lie in this module's memory:
;;
;;    64  bh_context   venues at 28, strategy at 24, epoch at 32
;;   128  bh_order     price at 0, quantity at 8, venue at 48, side at 53
;;   192  the sequence of the last order
;;   256  16 bh_report of 56 bytes each, is_last at 48
(module
  (import "bulkhead" "bh_get_context" (func $bh_get_context (param i32) (result i32)))
  (import "bulkhead" "bh_poll" (func $bh_poll (param i32 i32 i64) (result i32)))
  (import "bulkhead" "bh_send" (func $bh_send (param i32 i32) (result i32)))

  (memory (export "memory") 1)
  (global $is_ready (mut i32) (i32.const 0))
  (global $is_open (mut i32) (i32.const 0))
  (global $sent (mut i32) (i32.const 0))

  ;; Replaced in the hostile modules, which call it after their hundredth order.
  (func $misbehave)

  (func $prepare
    (drop (call $bh_get_context (i32.const 64)))
    (i64.store (i32.const 128) (i64.const 41300))
    (i64.store offset=8 (i32.const 128) (i64.const 1000000))
    (i32.store16 offset=48 (i32.const 128)
      (i32.rem_u (i32.load16_u offset=24 (i32.const 64)) (i32.load16_u offset=28 (i32.const 64))))
    (global.set $is_ready (i32.const 1)))

  (func (export "bh_cycle")
    (local $left i32)
    (local $report i32)
    (if (i32.eqz (global.get $is_ready)) (then (call $prepare)))
    ;; Without a report this is called again within a millisecond.
    (local.set $left (call $bh_poll (i32.const 256) (i32.const 16) (i64.const 1000000)))
    (local.set $report (i32.const 256))
    (block $taken
      (loop $next
        (br_if $taken (i32.le_s (local.get $left) (i32.const 0)))
        (if (i32.load8_u offset=48 (local.get $report)) (then (global.set $is_open (i32.const 0))))
        (local.set $report (i32.add (local.get $report) (i32.const 56)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br $next)))
    (if (global.get $is_open) (then (return)))
    ;; Refused: the next cycle tries again.
    (if (call $bh_send (i32.const 128) (i32.const 192)) (then (return)))
    (global.set $is_open (i32.const 1))
    (global.set $sent (i32.add (global.get $sent) (i32.const 1)))
    (i32.store16 offset=48 (i32.const 128)
      (i32.rem_u
        (i32.add (i32.load16_u offset=48 (i32.const 128)) (i32.const 1))
        (i32.load16_u offset=28 (i32.const 64))))
    (i32.store8 offset=53 (i32.const 128)
      (i32.xor (i32.load8_u offset=53 (i32.const 128)) (i32.const 1)))
    ;; In the first incarnation only: its successor trades to the end.
    (if (i32.and
          (i32.eq (global.get $sent) (i32.const 100))
          (i32.eqz (i32.load16_u offset=32 (i32.const 64))))
      (then (call $misbehave)))))
