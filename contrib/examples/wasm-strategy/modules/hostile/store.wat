;; Writes outside of its memory.
(func $misbehave (i32.store (i32.const 0x7fffff00) (i32.const 1)))
