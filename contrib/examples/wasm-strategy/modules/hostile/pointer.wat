;; An order that would begin in the last bytes that a pointer can name.
(func $misbehave (drop (call $bh_send (i32.const 0xfffffff0) (i32.const 192))))
