//! Kills strategies in a made-up run: its logs become what supervisor, engine and gateways would have left.

use super::fixture::{Fixture, NS_PER_TICK, START, sort_by_event};
use analysis::record::Incident;
use protocol::plan::OnDeath;
use protocol::stamps::{Point, Record};
use protocol::status::{Field, ThreadState};
use protocol::supervision::Misconduct;
use protocol::wire::OrderId;
use std::collections::HashMap;

/// From the death to its detection, to the fence, to the repair; to the cancels at the venues. In ticks.
pub const DETECTED: u64 = 200;
pub const FENCED: u64 = 300;
pub const REPAIRED: u64 = 1_600;
const CANCELLED: u64 = 1_100;

/// The code of a refusal of an order whose sender is dead.
pub const GONE: u64 = 6;

/// How a strategy dies.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    pub strategy: u16,
    /// When, in ticks since the start.
    pub at: u64,
    /// Whether its last order was stamped and not pushed.
    pub unfinished: bool,
    /// How much later the next incarnation begins, in ticks; none: never.
    pub restart: Option<u64>,
    /// It was quarantined for this.
    pub quarantined: Option<Misconduct>,
}

impl Death {
    /// A kill between two orders, without a restart.
    pub fn of(strategy: u16, at: u64) -> Self {
        Self { strategy, at, unfinished: false, restart: None, quarantined: None }
    }
}

/// Nanoseconds since the start.
fn ns(ticks: u64) -> u64 {
    (ticks as f64 * NS_PER_TICK) as u64
}

impl Fixture {
    /// Kills the newest incarnation of a strategy. Deaths of one strategy come in the order of time.
    pub fn kill(&mut self, death: Death) {
        let Death { strategy, at, .. } = death;
        let epoch = self.record.incidents.iter().filter(|other| other.strategy == strategy).count() as u16;
        let mut stamps: HashMap<OrderId, [u64; 12]> = HashMap::new();
        for record in self.logs.iter().flatten() {
            if (record.id.strategy(), record.id.epoch()) == (strategy, epoch) {
                stamps.entry(record.id).or_default()[record.point as usize - 1] = record.value;
            }
        }
        let died = START + at;
        let sent = |id: &OrderId| stamps[id][0] <= died;
        let last = stamps.keys().filter(|id| sent(id)).max().copied();
        let reborn = death.restart.map(|later| died + later);
        let first =
            stamps.keys().filter(|id| reborn.is_some_and(|reborn| stamps[*id][0] >= reborn)).min().copied();
        for log in &mut self.logs {
            let mut changed = Vec::with_capacity(log.len());
            for record in log.iter() {
                let Some(stamps) = stamps.get(&record.id) else {
                    changed.push(*record);
                    continue;
                };
                if stamps[0] > died {
                    let Some(first) = first.filter(|first| record.id >= *first) else { continue };
                    let sequence = record.id.sequence() - first.sequence();
                    changed.push(Record { id: OrderId::new(strategy, epoch + 1, sequence), ..*record });
                } else {
                    let is_unpushed = death.unfinished && last == Some(record.id) && stamps[1] > died;
                    changed.extend(after_death(*record, stamps, died, is_unpushed));
                }
            }
            *log = changed;
            sort_by_event(log);
        }
        self.record.plan.on_death =
            if death.restart.is_some() { OnDeath::Restart } else { OnDeath::Continue };
        self.record.incidents.push(Incident {
            strategy,
            epoch,
            pid: 4_000 + u32::from(strategy),
            cause: death.quarantined.map_or("signal 9 (SIGKILL)".into(), |why| format!("quarantined: {why}")),
            quarantined: death.quarantined,
            fault_ns: death.quarantined.is_none().then_some(ns(at)),
            detected_ns: ns(at + DETECTED),
            fenced_ns: ns(at + FENCED),
            repaired_ns: Some(ns(at + REPAIRED)),
            restarted_ns: death.restart.map(|later| ns(at + later)),
            stayed_down: None,
        });
        let name = format!("strategy-{strategy}");
        let of_next =
            |record: &&Record| record.point == Point::StrategySend && record.id.epoch() == epoch + 1;
        let sent = self.logs[self.thread(&name)].iter().filter(of_next).count() as u64;
        if death.restart.is_some() {
            self.counter(&name, "sent", sent);
        } else {
            self.status(&name, Field::State, ThreadState::Running as u64);
            let exit = self.record.exits.iter_mut().find(|exit| exit.process == name).unwrap();
            exit.how = "signal 9 (SIGKILL)".into();
        }
    }
}

/// What becomes of a stamp of an order that was sent before its strategy died.
fn after_death(record: Record, stamps: &[u64; 12], died: u64, is_unpushed: bool) -> Vec<Record> {
    let fenced = died + FENCED;
    let [_, t2, _, _, t5, t6, ..] = *stamps;
    let is_refused = t2 > fenced;
    let cancelled_at = died + CANCELLED;
    let is_cancelled = !is_refused && t5 > cancelled_at;
    let refusal = || vec![Record { point: Point::Rejected, detail: 0, value: GONE, ..record }];
    let kept = |is_kept: bool| if is_kept { vec![record] } else { Vec::new() };
    match record.point {
        Point::Due | Point::StrategySend => kept(true),
        _ if is_unpushed => Vec::new(),
        Point::StrategyRecv => kept(record.value <= died),
        Point::OrchRecvSubmit => kept(true),
        // The place of the refusal is that of the dispatch.
        Point::OrchDispatch | Point::Rejected if is_refused => refusal(),
        _ if is_refused => Vec::new(),
        Point::OrchReturn => kept(t6.max(t2) <= fenced),
        Point::GatewayDone if is_cancelled => {
            let done = Record { value: cancelled_at, ..record };
            vec![Record { point: Point::Cancelled, ..done }, done]
        }
        Point::OrchRecvCompletion if is_cancelled => {
            vec![Record { value: cancelled_at + (t6 - t5), ..record }]
        }
        _ => kept(true),
    }
}
