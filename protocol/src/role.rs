//! The roles of a run, a record each: what the rest of bulkhead has to know of a role is a field
//! here. How a role is built is in the launcher, beside the crates that implement the roles.

use crate::labels::{
    Counter, CounterLabel, ExchangeCounter, GatewayCounter, OrchestratorCounter, StrategyCounter,
};
use crate::record::Point;
use serde::{Deserialize, Serialize};
use system::names;
#[cfg(not(loom))]
use system::sandbox::{self, Profile};

names! {
    /// The kinds of roles.
    #[derive(Hash)]
    RoleKind {
        /// Sends orders and takes their reports.
        Strategy = "strategy",
        /// The central event loop.
        Orchestrator = "orchestrator",
        /// Trades with a venue, for one credential.
        Gateway = "gateway",
        /// Matches orders: what stands behind the gateways of a venue.
        Exchange = "exchange",
    }
}

/// One agent of a run: a kind, and which of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// The strategy with this index.
    Strategy(u16),
    /// The central event loop.
    Orchestrator,
    /// The gateway with this index: of a venue and a credential, see
    /// [`Trading::gateway`](crate::workload::Trading::gateway).
    Gateway(u16),
    /// The exchange that is the venue with this index.
    Exchange(u16),
}

impl Role {
    /// Its kind.
    pub const fn kind(self) -> RoleKind {
        match self {
            Role::Strategy(_) => RoleKind::Strategy,
            Role::Orchestrator => RoleKind::Orchestrator,
            Role::Gateway(_) => RoleKind::Gateway,
            Role::Exchange(_) => RoleKind::Exchange,
        }
    }

    /// Which of its kind, from 0.
    pub const fn index(self) -> u16 {
        match self {
            Role::Strategy(index) | Role::Gateway(index) | Role::Exchange(index) => index,
            Role::Orchestrator => 0,
        }
    }

    /// What there is to know of its kind.
    pub const fn record(self) -> &'static RoleInfo {
        self.kind().record()
    }
}

impl core::fmt::Display for Role {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.record().is_numbered {
            true => write!(f, "{}-{}", self.kind(), self.index()),
            false => f.pad(self.kind().name()),
        }
    }
}

/// What there is to know of a kind of role.
#[derive(Debug)]
pub struct RoleInfo {
    /// There may be several: the name carries the index.
    pub is_numbered: bool,
    /// The points that it stamps; nobody else stamps them.
    pub points: &'static [Point],
    /// The most records of one order with one report in its stamp log.
    pub records_an_order: u64,
    /// The records of each further report.
    pub records_a_report: u64,
    /// Whether the run can go on without it after its death, and it be started again.
    pub is_restartable: bool,
    /// What its process may do under isolation `sandbox`; its memory is limited at every level.
    /// `None`: it is the engine, which is trusted.
    #[cfg(not(loom))]
    pub sandbox: Option<&'static Profile>,
    /// What it counts.
    pub counters: &'static [CounterLabel],
}

impl RoleKind {
    /// The record of this kind.
    pub const fn record(self) -> &'static RoleInfo {
        match self {
            RoleKind::Strategy => &RoleInfo {
                is_numbered: true,
                points: &[Point::StrategySend, Point::StrategyRecv, Point::Due],
                records_an_order: 3,
                records_a_report: 1,
                is_restartable: true,
                #[cfg(not(loom))]
                sandbox: Some(&sandbox::STRATEGY),
                counters: StrategyCounter::LABELS,
            },
            RoleKind::Orchestrator => &RoleInfo {
                is_numbered: false,
                points: &[
                    Point::OrchRecvSubmit,
                    Point::OrchDispatch,
                    Point::OrchRecvCompletion,
                    Point::OrchReturn,
                    Point::Rejected,
                    Point::Position,
                    Point::KillSeen,
                    Point::KillDone,
                ],
                // One that is refused has t2, the reason and t7.
                records_an_order: 4,
                records_a_report: 2,
                is_restartable: false,
                #[cfg(not(loom))]
                sandbox: None,
                counters: OrchestratorCounter::LABELS,
            },
            RoleKind::Gateway => &RoleInfo {
                is_numbered: true,
                points: &[
                    Point::GatewayRecv,
                    Point::GatewayDone,
                    Point::Release,
                    Point::Cancelled,
                    Point::Instrument,
                    Point::FillQuantity,
                    Point::FillPrice,
                ],
                records_an_order: 7,
                records_a_report: 3,
                is_restartable: true,
                #[cfg(not(loom))]
                sandbox: Some(&sandbox::GATEWAY),
                counters: GatewayCounter::LABELS,
            },
            RoleKind::Exchange => &RoleInfo {
                is_numbered: true,
                points: &[Point::ExchangeRecv, Point::ExchangeDone, Point::Trigger, Point::Touch],
                records_an_order: 2,
                records_a_report: 1,
                is_restartable: false,
                #[cfg(not(loom))]
                sandbox: Some(&sandbox::GATEWAY),
                counters: ExchangeCounter::LABELS,
            },
        }
    }
}

impl RoleInfo {
    /// Its points, a bit each: the lowest for the point with code 1.
    pub const fn points_mask(&self) -> u64 {
        let (mut mask, mut index) = (0, 0);
        while index < self.points.len() {
            mask |= 1 << (self.points[index] as u64 - 1);
            index += 1;
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_stamped_by_one_kind_of_role() {
        for point in Point::ALL.into_iter().filter(|point| point.is_of_order()) {
            let by = RoleKind::ALL.iter().filter(|kind| kind.record().points.contains(&point)).count();
            // What is of no order, every role may write.
            let wanted = usize::from(point.is_of_order());
            assert_eq!(by, wanted, "{point:?}");
            let masks: u64 = RoleKind::ALL.iter().map(|kind| kind.record().points_mask()).sum();
            assert_eq!((masks >> (point as u64 - 1)) & 1, wanted as u64);
        }
    }

    #[test]
    fn names_carry_the_index_where_there_are_several() {
        assert_eq!(Role::Strategy(3).to_string(), "strategy-3");
        assert_eq!(Role::Orchestrator.to_string(), "orchestrator");
        assert_eq!(Role::Gateway(63).to_string(), "gateway-63");
        assert_eq!((Role::Gateway(63).kind(), Role::Gateway(63).index()), (RoleKind::Gateway, 63));
    }
}
