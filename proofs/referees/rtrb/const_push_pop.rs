// The contenders of the bench const_push_pop: the capacity is a constant.
    "bulkhead-1",
    { ($N:expr) => {
        shm::ring::packed::heap_ring(1, $N)
    }},
    |p, i| p.push(&[i]).is_ok(),
    |c| {
        let mut item = [0];
        c.pop(&mut item).unwrap().then_some(item[0])
    },
    ::
    "bulkhead-64",
    { ($N:expr) => {
        shm::ring::packed::heap_ring(64, $N)
    }},
    |p, i| p.push(&[i; 64]).is_ok(),
    |c| {
        let mut item = [0; 64];
        c.pop(&mut item).unwrap().then_some(item[0])
    },
    ::
