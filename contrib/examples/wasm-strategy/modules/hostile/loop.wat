;; Never returns.
(func $misbehave (loop $forever (br $forever)))
