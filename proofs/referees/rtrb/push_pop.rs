// The contenders of the bench push_pop: create, push and pop of a one-byte item.
    "bulkhead-1",
    |capacity| shm::ring::packed::heap_ring(1, capacity.next_power_of_two()),
    |p, i| p.push(&[i]).is_ok(),
    |c| {
        let mut item = [0];
        c.pop(&mut item).unwrap().then_some(item[0])
    },
    ::
    "bulkhead-64",
    |capacity| shm::ring::packed::heap_ring(64, capacity.next_power_of_two()),
    |p, i| p.push(&[i; 64]).is_ok(),
    |c| {
        let mut item = [0; 64];
        c.pop(&mut item).unwrap().then_some(item[0])
    },
    ::
