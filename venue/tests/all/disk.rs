//! A disk that fails a write: the exchange stops for good, and has published no report that is
//! lost.

use crate::recovery::{GatewayEnds, SharedTape, Successor, SurvivingMemory, load, run_cycle};
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
struct ExchangeBench {
    memory: SurvivingMemory,
    disk: Arc<FailingDisk>,
    gateways: GatewayEnds,
    agent: ExchangeAgent<SharedTape>,
    orders: Vec<Order>,
    folder: tempfile::TempDir,
}

impl ExchangeBench {
    fn new(successful_syncs: u64, durability: Durability) -> Self {
        let disk = Arc::new(FailingDisk::after(successful_syncs));
        let mut memory = SurvivingMemory::new();
        memory.disk = disk.clone();
        let folder = tempfile::tempdir().unwrap();
        let agent = memory.exchange(folder.path(), durability, Successor::Correct, None).unwrap();
        let orders = load().0.into_iter().filter(|order| order.id.strategy().0 == 0).collect();
        Self { gateways: GatewayEnds::new(&memory), memory, disk, agent, orders, folder }
    }

    /// Number of durable records.
    fn durable(&self) -> u64 {
        self.agent.watermark().unwrap().durable()
    }

    /// Sends another order, if at most `max_undurable` are not durable, and runs a duty cycle.
    fn run_cycle(&mut self, sent: &mut usize, max_undurable: u64) {
        let may_send = (*sent as u64) < self.durable() + max_undurable;
        if self.orders.get(*sent).is_some_and(|order| may_send && self.gateways.try_send(order)) {
            *sent += 1;
        }
        let clock = CrashClock { reads: Rc::new(Cell::new(0)), crash_at: u64::MAX };
        run_cycle(&self.memory, &mut self.agent, clock, false);
        self.gateways.receive_reports().unwrap();
    }

    /// Returns `true` if an order was reported that may not be durable.
    fn has_reported_undurable_order(&self) -> bool {
        let durable = self.durable();
        self.gateways.received.iter().flatten().any(|report| report.id.sequence() >= durable)
    }
}

#[test]
fn exchange_stops_at_first_failed_sync() {
    let group = Durability::GroupCommit { records: 2, within: Duration::from_micros(100) };
    for (durability, successful_syncs) in
        [(group, 0), (group, 1), (group, 7), (Durability::EveryRecord, 0), (Durability::EveryRecord, 9)]
    {
        let (mut bench, mut sent) = (ExchangeBench::new(successful_syncs, durability), 0);
        let failure = |bench: &ExchangeBench| Agent::<CrashClock>::failure(&bench.agent).map(str::to_owned);
        while failure(&bench).is_none() {
            bench.run_cycle(&mut sent, 4);
            assert!(!bench.has_reported_undurable_order(), "{durability:?} {successful_syncs}");
            assert!(
                bench.durable() < bench.orders.len() as u64,
                "{durability:?} {successful_syncs}: never stopped"
            );
        }
        let failure_text = failure(&bench).unwrap();
        for part in ["its journal fails", "fdatasync", "log-00000001"] {
            assert!(failure_text.contains(part), "{failure_text}");
        }
        let (received, sync_attempts) = (bench.gateways.received.clone(), bench.disk.attempts());
        (0..20).for_each(|_| bench.run_cycle(&mut sent, 64));
        assert_eq!(
            (&bench.gateways.received, bench.disk.attempts()),
            (&received, sync_attempts),
            "it continues"
        );
        assert_eq!(sync_attempts, successful_syncs + 1, "the sync is not retried");
        // Durable inputs are in the journal for the successor.
        let durable = bench.durable();
        let ExchangeBench { agent, folder, .. } = bench;
        drop(agent);
        assert!(journal::recover(folder.path(), |_| {}).unwrap().last >= durable);
    }
}

/// An exchange whose reports do not await durability, on a disk that syncs occasionally.
#[test]
fn report_before_durability_is_detected() {
    let (mut bench, mut sent, mut early_reports) = (ExchangeBench::new(u64::MAX, Durability::Process), 0, 0);
    while sent < bench.orders.len() {
        bench.run_cycle(&mut sent, 64);
        early_reports += u64::from(bench.has_reported_undurable_order());
        if sent.is_multiple_of(8) {
            bench.agent.watermark().unwrap().sync().unwrap();
        }
    }
    assert!(early_reports > 0);
}
