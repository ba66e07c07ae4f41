//! A disk that refuses a write: the exchange stops for good, and has published nothing that is
//! lost.

use crate::recovery::{GatewayEnd, SharedTape, Successor, World, load, turn};
use core::cell::Cell;
use journal::{Durability, FailingDisk};
use protocol::agent::Agent;
use protocol::wire::Order;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use system::clock::CrashClock;
use venue::ExchangeAgent;

/// An exchange on such a disk. All of its orders come through one session: the n-th is record n.
struct Bed {
    world: World,
    disk: Arc<FailingDisk>,
    gateway: GatewayEnd,
    agent: ExchangeAgent<SharedTape>,
    orders: Vec<Order>,
    folder: tempfile::TempDir,
}

impl Bed {
    fn new(takes: u64, durability: Durability) -> Self {
        let disk = Arc::new(FailingDisk::after(takes));
        let mut world = World::new();
        world.disk = disk.clone();
        let folder = tempfile::tempdir().unwrap();
        let agent = world.exchange(folder.path(), durability, Successor::Careful, None).unwrap();
        let orders = load().0.into_iter().filter(|order| order.id.strategy() == 0).collect();
        Self { gateway: GatewayEnd::new(&world), world, disk, agent, orders, folder }
    }

    /// Number of durable records.
    fn durable(&self) -> u64 {
        self.agent.watermark().unwrap().durable()
    }

    /// Sends another order, if at most `ahead` are not durable, and runs a duty cycle.
    fn turn(&mut self, sent: &mut usize, ahead: u64) {
        let may_send = (*sent as u64) < self.durable() + ahead;
        if self.orders.get(*sent).is_some_and(|order| may_send && self.gateway.try_send(order)) {
            *sent += 1;
        }
        let clock = CrashClock { reads: Rc::new(Cell::new(0)), crash_at: u64::MAX };
        turn(&self.world, &mut self.agent, clock, false);
        self.gateway.listen().unwrap();
    }

    /// Returns `true` if an order was reported that may not be durable.
    fn told_too_much(&self) -> bool {
        let durable = self.durable();
        self.gateway.heard.iter().any(|report| report.id.sequence() >= durable)
    }
}

#[test]
fn exchange_stops_at_first_failed_sync() {
    let group = Durability::GroupCommit { records: 2, within: Duration::from_micros(100) };
    for (durability, takes) in
        [(group, 0), (group, 1), (group, 7), (Durability::EveryRecord, 0), (Durability::EveryRecord, 9)]
    {
        let (mut bed, mut sent) = (Bed::new(takes, durability), 0);
        let failure = |bed: &Bed| Agent::<CrashClock>::failure(&bed.agent).map(str::to_owned);
        while failure(&bed).is_none() {
            bed.turn(&mut sent, 4);
            assert!(!bed.told_too_much(), "{durability:?} {takes}");
            assert!(bed.durable() < bed.orders.len() as u64, "{durability:?} {takes}: never stopped");
        }
        let why = failure(&bed).unwrap();
        for part in ["its journal fails", "fdatasync", "log-00000001"] {
            assert!(why.contains(part), "{why}");
        }
        let (heard, asked) = (bed.gateway.heard.clone(), bed.disk.attempts());
        (0..20).for_each(|_| bed.turn(&mut sent, 64));
        assert_eq!((&bed.gateway.heard, bed.disk.attempts()), (&heard, asked), "it goes on");
        assert_eq!(asked, takes + 1, "never tried again");
        // Durable inputs are there: the successor finds them.
        let durable = bed.durable();
        let Bed { agent, folder, .. } = bed;
        drop(agent);
        assert!(journal::recover(folder.path(), |_| {}).unwrap().last >= durable);
    }
}

/// An exchange whose reports do not await durability, on a disk that syncs occasionally.
#[test]
fn report_before_durability_is_detected() {
    let (mut bed, mut sent, mut found) = (Bed::new(u64::MAX, Durability::Process), 0, 0);
    while sent < bed.orders.len() {
        bed.turn(&mut sent, 64);
        found += u64::from(bed.told_too_much());
        if sent.is_multiple_of(8) {
            bed.agent.watermark().unwrap().sync().unwrap();
        }
    }
    assert!(found > 0);
}
