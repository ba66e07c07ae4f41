;; What a compiler makes of abort() and of a failed assertion.
(func $misbehave (unreachable))
