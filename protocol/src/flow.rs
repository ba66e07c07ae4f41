//! The stages of an order's path as data, each from one stamped point to the next. Measurements,
//! tables, charts and checks all use this list.
//!
//! ```text
//! of the order:       t1 ─ submit ─ t2 ─ pre-dispatch ─ t3 ─ dispatch ─ t4 ─ venue service ─ t5
//! of each report:     t5 ─ completion ─ t6 ─ post-process ─ t7 ─ return ─ t8
//! ```
//!
//! If the venue is an exchange, the time there is split further ([`ExchangeStage`]):
//!
//! ```text
//!  t4 ─ session out ─ exchange-recv ─ match ─ exchange-done ─ session back ─ t5
//! ```
//!
//! A venue may answer an order with several reports. The order's path runs to the first one; each
//! further report has the stages of [`StageScope::Report`] again.

use crate::stamps::Point;

/// Whether a stage of an order's path (interval between stamps) occurs once per order or per
/// report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageScope {
    /// The stage occurs once for each order.
    Order,
    /// The stage occurs once for each report of an order.
    Report,
}

/// The part of the system in which an order spends a stage's time (interval between stamps):
/// hand-off, engine or venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageLocation {
    /// The time is spent in a hand-off between two threads.
    HandOff,
    /// The time is spent within one thread of the engine.
    Engine,
    /// The time is spent at the venue and is not part of the engine's time.
    Venue,
}

/// Name, scope, start point and end point of a stage of an order's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageInfo {
    /// The name of the stage in summaries, tables and charts.
    pub name: &'static str,
    /// The point at which the stage begins.
    pub from: Point,
    /// The point at which the stage ends.
    pub to: Point,
    /// Whether the stage occurs per order or per report.
    pub scope: StageScope,
    /// Where the time of the stage is spent.
    pub location: StageLocation,
    /// A short description for people.
    pub meaning: &'static str,
}

macro_rules! stages {
    (
        $(#[$of:meta])* $list:ident
        $($stage:ident = $name:literal: $from:ident to $to:ident, $scope:ident, $location:ident, $meaning:literal;)+
    ) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(usize)]
        pub enum $list { $(#[doc = $meaning] $stage,)+ }

        impl $list {
            /// All stages, in the order of an order's path.
            pub const ALL: [$list; [$($list::$stage),+].len()] = [$($list::$stage),+];

            /// Returns name, scope, start point and end point of the stage.
            pub const fn info(self) -> &'static StageInfo {
                match self {
                    $($list::$stage => &StageInfo {
                        name: $name,
                        from: Point::$from,
                        to: Point::$to,
                        scope: StageScope::$scope,
                        location: StageLocation::$location,
                        meaning: $meaning,
                    },)+
                }
            }

            /// Returns the stage's name in summaries, tables and charts.
            pub const fn name(self) -> &'static str {
                self.info().name
            }
        }
    };
}

stages! {
    /// A stage of an order's path through the run.
    Stage
    Submit = "submit": StrategySend to OrchRecvSubmit, Order, HandOff, "strategy → orchestrator";
    OrchPreDispatch = "orch_pre_dispatch": OrchRecvSubmit to OrchDispatch, Order, Engine, "risk checks and work";
    Dispatch = "dispatch": OrchDispatch to GatewayRecv, Order, HandOff, "orchestrator → gateway";
    VenueService = "venue_service": GatewayRecv to GatewayDone, Order, Venue, "at the venue";
    Completion = "completion": GatewayDone to OrchRecvCompletion, Report, HandOff, "gateway → orchestrator";
    OrchPostProcess = "orch_post_process": OrchRecvCompletion to OrchReturn, Report, Engine, "positions";
    Return = "return": OrchReturn to StrategyRecv, Report, HandOff, "orchestrator → strategy";
}

stages! {
    /// A part of the time at an exchange; they sum up to [`Stage::VenueService`], to the tick.
    ExchangeStage
    SessionOut = "session_out": GatewayRecv to ExchangeRecv, Order, Venue, "gateway → exchange";
    Match = "match": ExchangeRecv to ExchangeDone, Order, Venue, "the matching engine";
    SessionBack = "session_back": ExchangeDone to GatewayDone, Order, Venue, "exchange → gateway";
}

/// Number of points of the whole path.
const POINTS: usize = Stage::ALL.len() + 1;

/// All stamped points of an order's path, in order.
pub const PATH: [Point; POINTS] = {
    let mut path = [Stage::ALL[0].info().from; POINTS];
    let mut index = 0;
    while index < Stage::ALL.len() {
        let stage = Stage::ALL[index].info();
        assert!(stage.from as u8 == path[index] as u8, "each stage begins where the one before it ends");
        path[index + 1] = stage.to;
        // A row of the merge keeps the points in this order, with those of each report at the end.
        assert!((stage.from as u8) < (stage.to as u8));
        assert!(
            index == 0
                || matches!(stage.scope, StageScope::Report)
                || matches!(Stage::ALL[index - 1].info().scope, StageScope::Order)
        );
        index += 1;
    }
    path
};

/// Returns a 64-bit mask in which bit `code - 1` is set for each of the given stamp points, where
/// `code` is the point's code.
pub const fn points_mask(points: &[Point]) -> u64 {
    let (mut mask, mut index) = (0, 0);
    while index < points.len() {
        mask |= 1 << (points[index] as u64 - 1);
        index += 1;
    }
    mask
}

/// Index in [`PATH`] of the first point that is stamped for each report.
const REPORT_AT: usize = {
    let mut index = 0;
    while matches!(Stage::ALL[index].info().scope, StageScope::Order) {
        index += 1;
    }
    index
};

/// The points that are stamped for each report, in their order.
pub const REPORT_PATH: &[Point] = PATH.split_at(REPORT_AT).1;

impl Stage {
    /// Returns the stage of an order's path (interval between two stamps) that ends with this
    /// point.
    pub fn ending_with(point: Point) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.info().to == point)
    }

    /// Returns the stage of an order's path with this name, such as `submit`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_form_one_contiguous_path() {
        assert_eq!(PATH.map(Point::name), ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"]);
        assert_eq!(REPORT_PATH, &PATH[4..]);
        assert_eq!((points_mask(&PATH), points_mask(REPORT_PATH)), (0xFF, 0xF0));
        assert_eq!(Stage::ending_with(Point::GatewayRecv), Some(Stage::Dispatch));
        assert_eq!(Stage::ending_with(Point::StrategySend), None);
        for stage in Stage::ALL {
            assert_eq!(Stage::from_name(stage.name()), Some(stage));
        }
    }

    #[test]
    fn exchange_stages_cover_the_venue_service_stage() {
        let [first, .., last] = ExchangeStage::ALL.map(ExchangeStage::info);
        let whole = Stage::VenueService.info();
        assert_eq!((first.from, last.to), (whole.from, whole.to));
        assert!(ExchangeStage::ALL.windows(2).all(|pair| pair[0].info().to == pair[1].info().from));
    }
}
