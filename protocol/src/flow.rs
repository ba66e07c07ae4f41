//! The flow of an order as data: the stages of its way, each from one point to the next. What is
//! measured of an order, drawn, tabled and checked goes by this list.
//!
//! ```text
//!  t1 ─ submit ─ t2 ─ pre-dispatch ─ t3 ─ dispatch ─ t4 ─ venue service ─ t5 ─ completion ─ t6 ─ post-process ─ t7 ─ return ─ t8
//! │                                of the order                          │                  of each report                  │
//! ```
//!
//! Where the venue is an exchange, the time at it has parts of its own ([`ExchangeStage`]):
//!
//! ```text
//!  t4 ─ session out ─ exchange-recv ─ match ─ exchange-done ─ session back ─ t5
//! ```
//!
//! A venue may answer an order with several reports. The order's way runs to its first; each
//! further one has the stages of [`StageScope::Report`] once more.

use crate::stamps::Point;

/// What a stage happens once for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageScope {
    /// Each order.
    Order,
    /// Each report of an order.
    Report,
}

/// Where a stage's time goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StagePlace {
    /// A hand-off between two threads.
    HandOff,
    /// Within one thread of the engine.
    Engine,
    /// At the venue: not the engine's.
    Venue,
}

/// What there is to know of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageInfo {
    /// Its name in summaries, tables and charts.
    pub name: &'static str,
    /// The point that it begins with.
    pub from: Point,
    /// The point that it ends with.
    pub to: Point,
    /// What it happens once for.
    pub scope: StageScope,
    /// Where its time goes.
    pub place: StagePlace,
    /// What happens in it, in a few words.
    pub meaning: &'static str,
}

macro_rules! stages {
    (
        $(#[$of:meta])* $list:ident
        $($(#[$doc:meta])* $stage:ident = $name:literal: $from:ident to $to:ident, $scope:ident, $place:ident, $meaning:literal;)+
    ) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(usize)]
        pub enum $list { $($(#[$doc])* $stage,)+ }

        impl $list {
            /// Every one, in the order of an order's way.
            pub const ALL: [$list; [$($list::$stage),+].len()] = [$($list::$stage),+];

            /// What there is to know of it.
            pub const fn record(self) -> &'static StageInfo {
                match self {
                    $($list::$stage => &StageInfo {
                        name: $name,
                        from: Point::$from,
                        to: Point::$to,
                        scope: StageScope::$scope,
                        place: StagePlace::$place,
                        meaning: $meaning,
                    },)+
                }
            }

            /// Its name in summaries, tables and charts.
            pub const fn name(self) -> &'static str {
                self.record().name
            }
        }
    };
}

stages! {
    /// A stage of the flow, in the order of an order's way.
    Stage
    /// Through the submit hand-off.
    Submit = "submit": StrategySend to OrchRecvSubmit, Order, HandOff, "strategy → orchestrator";
    /// Risk checks and work.
    OrchPreDispatch = "orch_pre_dispatch": OrchRecvSubmit to OrchDispatch, Order, Engine, "risk checks and work";
    /// Through the gateway's inbox.
    Dispatch = "dispatch": OrchDispatch to GatewayRecv, Order, HandOff, "orchestrator → gateway";
    /// At the venue.
    VenueService = "venue_service": GatewayRecv to GatewayDone, Order, Venue, "at the venue";
    /// Through the completion hand-off.
    Completion = "completion": GatewayDone to OrchRecvCompletion, Report, HandOff, "gateway → orchestrator";
    /// Positions.
    OrchPostProcess = "orch_post_process": OrchRecvCompletion to OrchReturn, Report, Engine, "positions";
    /// Through the return ring.
    Return = "return": OrchReturn to StrategyRecv, Report, HandOff, "orchestrator → strategy";
}

stages! {
    /// A part of the time at a venue that is an exchange: the parts of an order sum to its
    /// [`Stage::VenueService`], to the tick.
    ExchangeStage
    /// Through the session to the exchange.
    SessionOut = "session_out": GatewayRecv to ExchangeRecv, Order, Venue, "gateway → exchange";
    /// In the matching engine, up to the order's first report.
    Match = "match": ExchangeRecv to ExchangeDone, Order, Venue, "the matching engine";
    /// Through the session back.
    SessionBack = "session_back": ExchangeDone to GatewayDone, Order, Venue, "exchange → gateway";
}

/// How many points the whole way has.
const POINTS: usize = Stage::ALL.len() + 1;

/// The points of the whole way, from the first stage's beginning to the last one's end.
pub const PATH: [Point; POINTS] = {
    let mut path = [Stage::ALL[0].record().from; POINTS];
    let mut place = 0;
    while place < Stage::ALL.len() {
        let stage = Stage::ALL[place].record();
        assert!(stage.from as u8 == path[place] as u8, "each stage begins where the one before it ends");
        path[place + 1] = stage.to;
        // A row of the merge keeps them in this order, and what is once for each report comes last.
        assert!((stage.from as u8) < (stage.to as u8));
        assert!(
            place == 0
                || matches!(stage.scope, StageScope::Report)
                || matches!(Stage::ALL[place - 1].record().scope, StageScope::Order)
        );
        place += 1;
    }
    path
};

/// The bits of these points: `1 << (code - 1)` each.
pub const fn mask(points: &[Point]) -> u64 {
    let (mut mask, mut place) = (0, 0);
    while place < points.len() {
        mask |= 1 << (points[place] as u64 - 1);
        place += 1;
    }
    mask
}

/// Where the stages of a report begin in [`PATH`]: its first point is stamped for each report.
const REPORT_AT: usize = {
    let mut place = 0;
    while matches!(Stage::ALL[place].record().scope, StageScope::Order) {
        place += 1;
    }
    place
};

/// The points that each report has, in their order.
pub const REPORT_PATH: &[Point] = PATH.split_at(REPORT_AT).1;

impl Stage {
    /// The stage that ends with this point.
    pub fn ending_with(point: Point) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.record().to == point)
    }

    /// The stage of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_is_whole() {
        assert_eq!(PATH.map(Point::name), ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"]);
        assert_eq!(REPORT_PATH, &PATH[4..]);
        assert_eq!((mask(&PATH), mask(REPORT_PATH)), (0xFF, 0xF0));
        assert_eq!(Stage::ending_with(Point::GatewayRecv), Some(Stage::Dispatch));
        assert_eq!(Stage::ending_with(Point::StrategySend), None);
        for stage in Stage::ALL {
            assert_eq!(Stage::from_name(stage.name()), Some(stage));
        }
    }

    #[test]
    fn the_parts_of_an_exchange_are_the_whole_time_at_the_venue() {
        let [first, .., last] = ExchangeStage::ALL.map(ExchangeStage::record);
        let whole = Stage::VenueService.record();
        assert_eq!((first.from, last.to), (whole.from, whole.to));
        assert!(ExchangeStage::ALL.windows(2).all(|pair| pair[0].record().to == pair[1].record().from));
    }
}
