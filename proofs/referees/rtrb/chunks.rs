// The contender of the bench chunks: an item of a chunk is one message of a byte, in batches.
    "bulkhead-1",
    |capacity| shm::ring::packed::heap_ring(1, capacity.next_power_of_two()),
    |p, s| &s[p.push_many(s)..],
    |c, s| {
        let popped = c.pop_many(s).unwrap();
        &s[..popped]
    },
    ::
