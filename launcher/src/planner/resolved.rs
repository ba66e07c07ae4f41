//! Settings with nothing left open: what [`super::resolve`] makes.

use crate::config::{
    Arrivals, Choice, CoreList, DelayRange, Factor, FaultSpec, Faults, Kinds, Limits, Priority, Settings,
    SpillRoom, StrategyName, Switch, VenueLimit, VenueName,
};
use analysis::units::{Count, Nanos};
use protocol::limits::LimitSetting;
use protocol::plan::{
    ExchangePlacement, Idle, Isolation, Journalling, OnDeath, Placement, Sequence, Stamps, Technique,
    Threading, Trading,
};
use std::path::PathBuf;

/// How long a thread may go without a duty cycle unless the user says so.
pub(super) const DEFAULT_LIVENESS_NS: u64 = 10_000_000_000;

/// Where the orders come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Drawn at random before the run.
    Drawn {
        /// How they arrive.
        arrivals: Arrivals,
        /// How many there are, of all strategies together: 1 to 10^9.
        orders: u64,
        /// The time over which they are due, in nanoseconds; means nothing for [`Arrivals::Stress`].
        window_ns: u64,
    },
    /// A recorded flow, which says itself how many and when.
    Recorded {
        /// The file.
        path: PathBuf,
        /// How many times as fast it is played.
        speed: f64,
        /// Over which time its orders are due, played at that speed, in nanoseconds; `None`: the file was not read yet.
        span_ns: Option<u64>,
    },
}

/// Settings with nothing left open.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// What carries submit and completion.
    pub technique: Technique,
    /// What stands between strategies and engine.
    pub isolation: Isolation,
    /// How the engine's agents share threads.
    pub threading: Threading,
    /// Which processes the engine's roles are in.
    pub placement: Placement,
    /// What every thread does when idle, or a choice for each by whether it has its core to itself.
    pub idle: Choice<Idle>,
    /// The priority of every thread; `None`: they are ordinary ones.
    pub priority: Option<Priority>,
    /// The cores that may be used: allowed ones, ascending. Empty only where the machine tells none.
    pub cores: Vec<u32>,
    /// Whether the user named them.
    pub cores_named: bool,
    /// Strategies, 1 to 256.
    pub strategies: u16,
    /// Venues, 1 to 64.
    pub venues: u16,
    /// What the strategies are.
    pub strategy: Kinds<StrategyName>,
    /// What the venues are.
    pub venue: Kinds<VenueName>,
    /// Credentials, at least one.
    pub credentials: u16,
    /// Where exchanges run.
    pub exchange: ExchangePlacement,
    /// What exchanges write down.
    pub journal: Journalling,
    /// The orders that rest in the books at the start.
    pub book: Option<PathBuf>,
    /// In which order exchanges carry orders out.
    pub sequence: Sequence,
    /// Whether exchanges write touches to a board.
    pub market_data: bool,
    /// Slots of every ring, a power of two from 2 to 2^20.
    pub capacity: u32,
    /// The most open orders of a strategy, 1 to 2^20.
    pub max_open: u32,
    /// The most orders that wait for one gateway, 1 to 2^20; `None`: all that may be open.
    pub max_waiting: Option<u32>,
    /// How long a venue may say nothing about an order, in nanoseconds; 0: the longest delay and a second more.
    pub venue_timeout_ns: u64,
    /// The messages a second that a venue takes; `None`: any number.
    pub venue_limit: Option<VenueLimit>,
    /// Where the orders come from.
    pub input: Input,
    /// The venues' delay.
    pub delay: DelayRange,
    /// Extra work of the orchestrator, in nanoseconds an order.
    pub work_ns: u64,
    /// Which points are stamped.
    pub stamps: Stamps,
    /// The seed of everything that is drawn.
    pub seed: u64,
    /// What happens when a strategy dies.
    pub on_death: OnDeath,
    /// A thread that has not begun a duty cycle for so many nanoseconds hangs.
    pub liveness_ns: u64,
    /// The file of what is traded.
    pub instruments: Option<PathBuf>,
    /// Limits, in the order in which they apply.
    pub limits: Vec<LimitSetting>,
    /// The faults on purpose, as they were asked for.
    pub faults: Vec<FaultSpec>,
    /// How often the drawn schedule is played.
    pub laps: u32,
    /// Whether logs are spilled, and through how much room.
    pub spill: SpillRoom,
    /// Runs, one after the other.
    pub repeats: u32,
    /// The folder for the runs' folders.
    pub out: PathBuf,
}

impl Resolved {
    /// Strategies, gateways and the orchestrator.
    pub fn roles(&self) -> usize {
        usize::from(self.strategies) + usize::from(self.venues) * usize::from(self.credentials) + 1
    }

    /// The effective settings: resolving them again on the same machine gives the same again.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings {
            technique: Some(self.technique),
            isolation: Some(self.isolation),
            threading: Some(Choice::Fixed(self.threading)),
            process: (self.placement != Placement::Engine).then_some(self.placement),
            idle: Some(self.idle),
            priority: self.priority,
            cores: self.cores_named.then(|| CoreList(self.cores.clone())),
            strategies: Some(Count(self.strategies.into())),
            venues: Some(Count(self.venues.into())),
            strategy: (self.strategy != Kinds::default()).then(|| self.strategy.clone()),
            venue: (self.venue != Kinds::default()).then(|| self.venue.clone()),
            credentials: (self.credentials != 1).then_some(Count(self.credentials.into())),
            exchange: (self.exchange != ExchangePlacement::Gateway).then_some(self.exchange),
            journal: (self.journal != Journalling::None).then_some(self.journal),
            book: self.book.clone(),
            sequence: (self.sequence != default_sequence(self.book.is_some(), &self.input, &self.strategy))
                .then_some(self.sequence),
            market_data: (self.market_data != default_market_data(&self.venue, &self.strategy))
                .then_some(if self.market_data { Switch::On } else { Switch::Off }),
            capacity: Some(Count(self.capacity.into())),
            max_open: Some(Count(self.max_open.into())),
            max_waiting: self.max_waiting.map(|orders| Count(orders.into())),
            venue_timeout: (self.venue_timeout_ns > 0).then_some(Nanos(self.venue_timeout_ns)),
            venue_limit: self.venue_limit,
            delay: Some(self.delay),
            work: Some(Nanos(self.work_ns)),
            seed: Some(Count(self.seed)),
            // Only where they are not what they always were: settings that were saved before stay the same.
            stamps: (self.stamps != Stamps::All).then_some(self.stamps),
            on_death: (self.on_death != OnDeath::Stop).then_some(self.on_death),
            liveness: (self.liveness_ns != DEFAULT_LIVENESS_NS).then_some(Nanos(self.liveness_ns)),
            fault: (!self.faults.is_empty()).then(|| Faults(self.faults.clone())),
            instruments: self.instruments.clone(),
            limits: (!self.limits.is_empty()).then(|| Limits(self.limits.clone())),
            laps: (self.laps != 1).then_some(Count(self.laps.into())),
            spill: (self.spill != SpillRoom::Off).then_some(self.spill),
            repeats: Some(Count(self.repeats.into())),
            out: Some(self.out.clone()),
            ..Settings::default()
        };
        match &self.input {
            Input::Drawn { arrivals, orders, window_ns } => {
                settings.arrivals = Some(*arrivals);
                settings.orders = Some(Count(*orders));
                settings.window = Some(Nanos(*window_ns));
            }
            Input::Recorded { path, speed, .. } => {
                settings.schedule = Some(path.clone());
                settings.speed = Some(Factor(*speed));
            }
        }
        settings
    }
}

impl Resolved {
    /// The same, with the time that the schedule takes: a recorded flow says so itself, once it is read.
    #[must_use]
    pub fn spanning(&self, window_ns: u64) -> Self {
        let mut all = self.clone();
        if let Input::Recorded { span_ns, .. } = &mut all.input {
            *span_ns = Some(window_ns);
        }
        all
    }
}

/// In which order exchanges carry orders out unless something else is asked for: that of a recording where players send all of it,
/// and nothing else.
pub(super) fn default_sequence(has_book: bool, input: &Input, strategies: &Kinds<StrategyName>) -> Sequence {
    match input {
        Input::Recorded { .. } if has_book && plays_all(strategies) => Sequence::Recorded,
        _ => Sequence::Arrival,
    }
}

/// Whether exchanges write touches to a board unless something else is asked for: where some strategy may read them.
pub(super) fn default_market_data(venues: &Kinds<VenueName>, strategies: &Kinds<StrategyName>) -> bool {
    venues.0.iter().any(|kind| kind.name() == Trading::BOOK) && !plays_all(strategies)
}

/// Whether every strategy sends its part of a schedule as it is.
pub(super) fn plays_all(strategies: &Kinds<StrategyName>) -> bool {
    strategies.0.iter().all(|kind| *kind == StrategyName::default())
}
