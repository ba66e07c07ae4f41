;; Overflows its stack.
(func $misbehave (call $misbehave))
