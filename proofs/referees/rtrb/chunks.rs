// The contender of the bench chunks: an item of a chunk is one message, pushed and drained in batches.
    "bulkhead-8",
    |capacity| shm::ring::spsc::heap_ring::<1>(capacity.next_power_of_two()),
    |p, s| &s[p.try_push_iter(s.iter().map(|&i| [i.into()]))..],
    |c, s| {
        let len = s.len();
        let mut free = s.iter_mut();
        while let Ok(1..) = c.drain(free.len(), |[i]| *free.next().unwrap() = i as u8) {}
        let popped = len - free.len();
        &s[..popped]
    },
    ::
