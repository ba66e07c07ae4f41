//! The memory that an exchange allocates: all of it, at its creation.

use super::super::harness::subject::{Counts, Figure, Group, Subject, Unit};
use exchange::{Capacity, Exchange, Instrument};

const REMARK: &str = "all heap memory of an exchange, reserved at its creation: orders, index of ids, expiry, and \
                      nodes for as many prices as orders can have anywhere up to 2^40, most of which are never \
                      touched; theirs is its arena of orders alone. An order's node has 64 bytes in both";

pub fn groups() -> Vec<Group> {
    let group = |name, theirs, unit, orders| Group {
        figures: vec![Figure::new(name, theirs, unit, REMARK)],
        subject: Box::new(Footprint { orders, unit }),
    };
    vec![
        group("memory: arena of 1,024 orders", 64.0, Unit::Kibibytes, 1 << 10),
        group("memory: arena of 1M orders", 64.0, Unit::Mebibytes, 1 << 20),
    ]
}

struct Footprint {
    orders: usize,
    unit: Unit,
}

impl Footprint {
    fn bytes(&self) -> u64 {
        let before = system::alloc::allocated_bytes();
        let exchange = Exchange::new(&[Instrument::default()], Capacity::for_orders(self.orders));
        drop(exchange.expect("a valid configuration"));
        system::alloc::allocated_bytes() - before
    }
}

impl Subject for Footprint {
    fn sample(&mut self) -> Vec<f64> {
        let unit = if self.unit == Unit::Kibibytes { 1 << 10 } else { 1 << 20 };
        vec![self.bytes() as f64 / f64::from(unit)]
    }

    fn count(&mut self) -> Counts {
        Counts::from([("bytes", self.bytes())])
    }
}
