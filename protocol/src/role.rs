//! The roles of a run, with the static information about each kind.

use crate::index::{GatewayIndex, StrategyIndex, VenueIndex};
use crate::labels::{
    ConsumerCounter, Counter, CounterLabel, ExchangeCounter, GatewayCounter, OrchestratorCounter,
    ProducerCounter, ReaderCounter, StrategyCounter, WriterCounter,
};
use crate::record::Point;
use serde::{Deserialize, Serialize};
use system::named_enum;
#[cfg(not(loom))]
use system::sandbox::{self, SandboxProfile};

named_enum! {
    /// A kind of role.
    #[derive(Hash)]
    RoleKind {
        /// Sends orders and receives their reports.
        Strategy = "strategy",
        /// The central event loop of the engine.
        Orchestrator = "orchestrator",
        /// Trades with a venue, for one credential.
        Gateway = "gateway",
        /// Matches orders: the venue's side of the sessions with gateways.
        Exchange = "exchange",
        /// Pushes events into the queues of a queue benchmark.
        Producer = "producer",
        /// Takes the events of one queue of a queue benchmark.
        Consumer = "consumer",
        /// Writes the board of a board benchmark.
        Writer = "writer",
        /// Reads the board of a board benchmark.
        Reader = "reader",
    }
}

/// The role of an agent in a run: its kind and its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// The strategy with this index.
    Strategy(StrategyIndex),
    /// The central event loop of the engine.
    Orchestrator,
    /// The gateway with this index, of a venue and a credential.
    Gateway(GatewayIndex),
    /// The exchange that is the venue with this index.
    Exchange(VenueIndex),
    /// The producer with this index, of a queue benchmark.
    Producer(u16),
    /// The consumer with this index, of a queue benchmark.
    Consumer(u16),
    /// The writer of a board benchmark.
    Writer,
    /// The reader with this index, of a board benchmark.
    Reader(u16),
}

impl Role {
    /// Returns the kind of the role, such as strategy or gateway.
    pub const fn kind(self) -> RoleKind {
        match self {
            Role::Strategy(_) => RoleKind::Strategy,
            Role::Orchestrator => RoleKind::Orchestrator,
            Role::Gateway(_) => RoleKind::Gateway,
            Role::Exchange(_) => RoleKind::Exchange,
            Role::Producer(_) => RoleKind::Producer,
            Role::Consumer(_) => RoleKind::Consumer,
            Role::Writer => RoleKind::Writer,
            Role::Reader(_) => RoleKind::Reader,
        }
    }

    /// Returns the index of the role among those of its kind, from 0.
    pub const fn index(self) -> u16 {
        match self {
            Role::Strategy(StrategyIndex(index))
            | Role::Gateway(GatewayIndex(index))
            | Role::Exchange(VenueIndex(index)) => index,
            Role::Producer(index) | Role::Consumer(index) | Role::Reader(index) => index,
            Role::Orchestrator | Role::Writer => 0,
        }
    }

    /// Returns `true` if the run's isolation level applies to the role: a strategy or one end of a
    /// benchmark.
    pub const fn is_isolated(self) -> bool {
        matches!(self, Role::Strategy(_)) || self.is_measured()
    }

    /// Returns `true` if the role is one end of a benchmark, with a measured loop of its own.
    pub const fn is_measured(self) -> bool {
        matches!(self, Role::Producer(_) | Role::Consumer(_) | Role::Writer | Role::Reader(_))
    }

    /// Returns `true` if the role is a producer or a writer of a benchmark, not a consumer or a
    /// reader.
    pub const fn is_source(self) -> bool {
        matches!(self, Role::Producer(_) | Role::Writer)
    }

    /// Returns the static information about the role's kind.
    pub const fn info(self) -> &'static RoleInfo {
        self.kind().info()
    }
}

impl core::fmt::Display for Role {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.info().is_numbered {
            true => write!(f, "{}-{}", self.kind(), self.index()),
            false => f.pad(self.kind().name()),
        }
    }
}

/// Stamp points, counters, sandbox and restartability of a kind of role.
#[derive(Debug)]
pub struct RoleInfo {
    /// `true` if a run may have several roles of this kind, whose names have an index.
    pub is_numbered: bool,
    /// The stamp points that only roles of this kind stamp.
    pub points: &'static [Point],
    /// Maximum number of stamp records of one order with one report.
    pub records_per_order: u64,
    /// Maximum number of stamp records of each further report.
    pub records_per_report: u64,
    /// `true` if the run can continue after the role's death, and the role can be restarted.
    pub is_restartable: bool,
    /// The sandbox profile of the role's process, if sandboxed; `None` for the engine, which is
    /// trusted.
    #[cfg(not(loom))]
    pub sandbox: Option<&'static SandboxProfile>,
    /// The labels of the counters that a role of this kind has.
    pub counters: &'static [CounterLabel],
}

impl RoleKind {
    /// Returns stamp points, counters, sandbox and restartability of this kind of role.
    pub const fn info(self) -> &'static RoleInfo {
        match self {
            RoleKind::Strategy => &RoleInfo {
                is_numbered: true,
                points: &[Point::StrategySend, Point::StrategyRecv, Point::Due],
                records_per_order: 3,
                records_per_report: 1,
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
                // A rejected order has t2, the reason and t7.
                records_per_order: 4,
                records_per_report: 2,
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
                records_per_order: 7,
                records_per_report: 3,
                is_restartable: true,
                #[cfg(not(loom))]
                sandbox: Some(&sandbox::GATEWAY),
                counters: GatewayCounter::LABELS,
            },
            RoleKind::Exchange => &RoleInfo {
                is_numbered: true,
                points: &[Point::ExchangeRecv, Point::ExchangeDone, Point::Trigger, Point::TopOfBook],
                records_per_order: 2,
                records_per_report: 1,
                is_restartable: false,
                #[cfg(not(loom))]
                sandbox: Some(&sandbox::GATEWAY),
                counters: ExchangeCounter::LABELS,
            },
            RoleKind::Producer => &RoleInfo { counters: ProducerCounter::LABELS, ..MEASURED },
            RoleKind::Consumer => &RoleInfo { counters: ConsumerCounter::LABELS, ..MEASURED },
            RoleKind::Writer => &RoleInfo { is_numbered: false, counters: WriterCounter::LABELS, ..MEASURED },
            RoleKind::Reader => &RoleInfo { counters: ReaderCounter::LABELS, ..MEASURED },
        }
    }
}

/// The ends of benchmarks stamp nothing: their loops measure themselves.
const MEASURED: RoleInfo = RoleInfo {
    is_numbered: true,
    points: &[],
    records_per_order: 0,
    records_per_report: 0,
    is_restartable: false,
    #[cfg(not(loom))]
    sandbox: Some(&sandbox::STRATEGY),
    counters: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_stamped_by_one_kind_of_role() {
        for point in Point::ALL.into_iter().filter(|point| point.is_of_order()) {
            let by = RoleKind::ALL.iter().filter(|kind| kind.info().points.contains(&point)).count();
            assert_eq!(by, 1, "{point:?}");
        }
    }

    #[test]
    fn names_carry_the_index_where_there_are_several() {
        assert_eq!(Role::Strategy(StrategyIndex(3)).to_string(), "strategy-3");
        assert_eq!(Role::Orchestrator.to_string(), "orchestrator");
        assert_eq!(Role::Gateway(GatewayIndex(63)).to_string(), "gateway-63");
        assert_eq!(
            (Role::Gateway(GatewayIndex(63)).kind(), Role::Gateway(GatewayIndex(63)).index()),
            (RoleKind::Gateway, 63)
        );
    }
}
