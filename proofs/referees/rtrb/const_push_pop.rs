// The contenders of the bench const_push_pop: the capacity is a constant.
    "bulkhead-8",
    { ($N:expr) => {
        shm::ring::spsc::heap_ring::<1>($N)
    }},
    |p, i| p.try_push(&[i.into(); 1]).is_ok(),
    |c| c.try_pop().unwrap().map(|[i]| i as u8),
    ::
    "bulkhead-56",
    { ($N:expr) => {
        shm::ring::spsc::heap_ring::<7>($N)
    }},
    |p, i| p.try_push(&[i.into(); 7]).is_ok(),
    |c| c.try_pop().unwrap().map(|[i, ..]| i as u8),
    ::
