// The contenders of the bench push_pop: create, push and pop of a one-byte item.
    "bulkhead-8",
    |capacity| shm::ring::spsc::heap_ring::<1>(capacity.next_power_of_two()),
    |p, i| p.try_push(&[i.into(); 1]).is_ok(),
    |c| c.try_pop().unwrap().map(|[i]| i as u8),
    ::
    "bulkhead-56",
    |capacity| shm::ring::spsc::heap_ring::<7>(capacity.next_power_of_two()),
    |p, i| p.try_push(&[i.into(); 7]).is_ok(),
    |c| c.try_pop().unwrap().map(|[i, ..]| i as u8),
    ::
