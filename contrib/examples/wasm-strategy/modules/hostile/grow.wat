;; Takes all memory that it can have, and goes on.
(func $misbehave
  (loop $forever
    (drop (memory.grow (i32.const 16)))
    (br $forever)))
