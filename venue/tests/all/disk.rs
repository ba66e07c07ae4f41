//! A disk that refuses to take what was written: the exchange stops for good, says why, and has
//! told nothing that the disk may not have.

use crate::comebacks::{Gateways, SharedTape, Successor, World, load, turn};
use core::cell::Cell;
use journal::{Durability, FailingDisk};
use protocol::agent::Agent;
use protocol::wire::Order;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use system::clock::Deadly;
use venue::ExchangeAgent;

/// An exchange on such a disk. All of its orders come through one session: the n-th is record n.
struct Bed {
    world: World,
    disk: Arc<FailingDisk>,
    gateways: Gateways,
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
        Self { gateways: Gateways::new(&world), world, disk, agent, orders, folder }
    }

    /// How many records the disk has.
    fn durable(&self) -> u64 {
        self.agent.watermark().unwrap().durable()
    }

    /// Sends another order, if at most so many are not on the disk, and lets it have a turn.
    fn turn(&mut self, sent: &mut usize, ahead: u64) {
        let may_send = (*sent as u64) < self.durable() + ahead;
        if self.orders.get(*sent).is_some_and(|order| may_send && self.gateways.send(order)) {
            *sent += 1;
        }
        let clock = Deadly { looks: Rc::new(Cell::new(0)), dies_at: u64::MAX };
        turn(&self.world, &mut self.agent, clock, false);
        self.gateways.listen().unwrap();
    }

    /// Whether somebody was told of an order that the disk may not have.
    fn told_too_much(&self) -> bool {
        let durable = self.durable();
        self.gateways.heard.iter().flatten().any(|report| report.id.sequence() >= durable)
    }
}

#[test]
fn an_exchange_stops_for_good_with_the_first_refused_sync() {
    let group = Durability::GroupCommit { records: 2, within: Duration::from_micros(100) };
    for (durability, takes) in
        [(group, 0), (group, 1), (group, 7), (Durability::EveryRecord, 0), (Durability::EveryRecord, 9)]
    {
        let (mut bed, mut sent) = (Bed::new(takes, durability), 0);
        let failure = |bed: &Bed| Agent::<Deadly>::failure(&bed.agent).map(str::to_owned);
        while failure(&bed).is_none() {
            bed.turn(&mut sent, 4);
            assert!(!bed.told_too_much(), "{durability:?} {takes}");
            assert!(bed.durable() < bed.orders.len() as u64, "{durability:?} {takes}: never stopped");
        }
        let why = failure(&bed).unwrap();
        for part in ["its journal fails", "fdatasync", "log-00000001"] {
            assert!(why.contains(part), "{why}");
        }
        let (heard, asked) = (bed.gateways.heard.clone(), bed.disk.attempts());
        (0..20).for_each(|_| bed.turn(&mut sent, 64));
        assert_eq!((&bed.gateways.heard, bed.disk.attempts()), (&heard, asked), "it goes on");
        assert_eq!(asked, takes + 1, "never tried again");
        // What it was told of is there: the successor finds it.
        let durable = bed.durable();
        let Bed { agent, folder, .. } = bed;
        drop(agent);
        assert!(journal::recover(folder.path(), |_| {}).unwrap().last >= durable);
    }
}

/// One whose reports do not wait, on a disk that takes something now and then.
#[test]
fn one_that_tells_before_the_disk_has_it_is_found() {
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
