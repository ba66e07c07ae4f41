//! The gateway's duty cycle, for callgrind: `duty_cycle idle N` and `duty_cycle busy N`.
#![forbid(unsafe_code)]

use gateway::{DelayVenue, Gateway, InFull};
use protocol::agent::{Agent, Cycle};
use protocol::stamps::StampLog;
use protocol::status::LOG_OFFSET;
use protocol::wire::{MESSAGE_WORDS, Order, OrderId};
use shm::memory::Region;
use shm::ring::spsc;
use shm::ring::spsc_mux::SpscMuxProducer;
use system::clock::{Timebase, Tsc};

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let what = args.next().unwrap_or_else(|| "busy".into());
    let cycles: u64 = args.next().map_or(1000, |number| number.parse().expect("a number"));
    let (mut inbox, inbox_end) = spsc::heap_ring::<MESSAGE_WORDS>(64);
    let (completion, mut completion_end) = spsc::heap_ring::<MESSAGE_WORDS>(64);
    // The same for every N: what making it costs is in no difference of two runs.
    assert!(cycles <= 200_000, "at most 200000 cycles: the log has room for no more");
    let records = 800_000;
    let mut cycle = Cycle {
        clock: Tsc,
        now: 0,
        time: Timebase { start_ticks: 0, ns_per_tick: 1.0 },
        draining: false,
        log: StampLog::new(&Region::heap(LOG_OFFSET + 2 * records + 64).words()),
    };
    let mut gateway =
        Gateway::new(0, inbox_end, SpscMuxProducer(completion), None, DelayVenue::with_capacity(InFull, 64));
    // Some are always held, and none of these comes up.
    let mut order =
        Order { delay_ns: u64::MAX / 4, price: 100, quantity: 5, ..Order::new(OrderId::new(0, 0, 0), 0) };
    for sequence in 0..16 {
        order.id = OrderId::new(1, 0, sequence);
        inbox.try_push(&order.to_message()).expect("there is room");
    }
    gateway.duty_cycle(&mut cycle);
    let mut done = 0u64;
    for sequence in 0..cycles {
        if what == "busy" {
            order = Order { id: OrderId::new(0, 0, sequence), delay_ns: 1, ..order };
            inbox.try_push(&order.to_message()).expect("there is room");
        }
        cycle.now = u64::MAX / 8;
        done += gateway.duty_cycle(&mut cycle) as u64;
        while let Ok(Some(_)) = completion_end.try_pop() {
            done += 1;
        }
    }
    println!("{what}: {cycles} cycles, {done} done");
}
