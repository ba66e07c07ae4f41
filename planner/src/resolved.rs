//! Resolved settings and the plan that they give: the result of [`super::resolve()`].

use crate::config::{Arrivals, Choice, Priority, Settings, Switch};
use protocol::plan::{
    ExchangePlacement, Journaling, MemorySettings, OnDeath, OrderSequence, Plan, Threading, Trading,
};
use record::units::{Bytes, Count, Nanos};
use std::path::PathBuf;

/// The source of a run's orders: drawn from an arrival process, or a recorded file.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Orders that are drawn at random before the run.
    Drawn {
        /// Arrival process of the orders.
        arrivals: Arrivals,
        /// Number of orders of all strategies together: 1 to 10^9.
        orders: u64,
        /// Time over which the orders are due, in nanoseconds; means nothing for
        /// [`Arrivals::Stress`].
        window_ns: u64,
    },
    /// Orders of a recorded flow, which has its own number of orders and times.
    Recorded {
        /// Path of the recorded file.
        path: PathBuf,
        /// Factor by which the flow is played faster (above 1) or slower (below 1); above 0.
        speed: f64,
        /// Time over which the flow's orders are due at its speed, in nanoseconds; `None`: the file
        /// was not read yet.
        span_ns: Option<u64>,
    },
}

impl Input {
    /// Reads the source of the orders from the settings, or their defaults.
    pub(super) fn from_settings(settings: &Settings) -> Self {
        match &settings.schedule {
            Some(path) => Self::Recorded { path: path.clone(), speed: settings.speed().0, span_ns: None },
            None => Self::Drawn {
                arrivals: settings.arrivals(),
                orders: settings.orders().0,
                window_ns: settings.window().0,
            },
        }
    }

    /// Returns the time over which drawn orders are due, in nanoseconds. 0 if they have no due
    /// times, or only a file has them.
    pub(super) fn window_ns(&self) -> u64 {
        match self {
            Self::Drawn { arrivals, window_ns, .. } if *arrivals != Arrivals::Stress => *window_ns,
            _ => 0,
        }
    }
}

/// The settings of a run, all with concrete values. What a process of the run needs is in the plan,
/// and only there; the rest is in the settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The settings in effect: resolving these settings again on the same machine changes nothing.
    pub settings: Settings,
    /// The plan without the parts that depend on the machine and the schedule: [`super::layout()`]
    /// adds those.
    pub plan: Plan,
    /// Source of the run's orders.
    pub input: Input,
    /// CPU cores that the run may use, ascending. Empty only if the machine shows none.
    pub cores: Vec<u32>,
}

impl Resolved {
    /// Creates the resolved settings and the plan of a run from validated settings. Unset values
    /// take the defaults of the table.
    pub fn new(settings: Settings, cores: Vec<u32>) -> Self {
        let count = |Count(count): Count| count as u32;
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let trading = Trading {
            strategy_kinds: settings.strategy().0,
            venue_kinds: settings.venue().0,
            credentials: settings.credentials().0 as u16,
            exchange: exchange_of(&settings),
            journal: settings.journal(),
            // The exchange's process may have another folder for its own.
            opening_book: settings.book.as_ref().map(|path| absolute(path).display().to_string()),
            sequence: sequence_of(&settings),
            market_data: has_market_data(&settings),
            capacity: count(settings.capacity()),
            max_open: count(settings.max_open()),
            venue_timeout_ns: settings.venue_timeout.map_or(0, |Nanos(ns)| ns),
            work_ns: settings.work().0,
            limits: settings.limits().0,
            memory: memory_of(&settings),
            resources: super::resources::of_strategies(&settings),
            core_dumps: settings.core_dumps().0,
            speculation: settings.speculation(),
            crossover_ns: settings.crossover.map_or(0, |Nanos(ns)| ns),
            spare_strategies: settings.spare_strategies().0 as u16,
            ..Trading::new(settings.all_strategies().0 as u16, settings.venues().0 as u16)
        };
        let plan = Plan {
            technique: settings.technique(),
            isolation: settings.isolation(),
            threading: match settings.threading() {
                Choice::Fixed(threading) => threading,
                Choice::Auto => Threading::Shared,
            },
            placement: settings.process(),
            stamps: settings.stamps(),
            priority: settings.priority.map(Priority::fifo),
            on_death: settings.on_death(),
            liveness_ns: settings.liveness().0,
            ..Plan::for_trading(trading)
        };
        Self { input: Input::from_settings(&settings), settings, plan, cores }
    }

    /// Returns a copy of the settings with the duration of a recorded order flow set to `window_ns`
    /// nanoseconds, once its file is read.
    #[must_use]
    pub fn spanning(&self, window_ns: u64) -> Self {
        let mut all = self.clone();
        if let Input::Recorded { span_ns, .. } = &mut all.input {
            *span_ns = Some(window_ns);
        }
        all
    }

    /// Returns `true` if all strategies are built-in ones that send at the times of their schedule.
    pub fn is_on_schedule(&self) -> bool {
        let kinds = &self.plan.trading().strategy_kinds;
        kinds.iter().all(|kind| Trading::ON_SCHEDULE.contains(&kind.as_str()))
    }

    /// Returns a copy of the settings and their plan with another random seed.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> Self {
        let mut all = self.clone();
        all.settings.seed = Some(Count(seed));
        all.plan.trading_mut().memory = memory_of(&all.settings);
        all
    }
}

fn memory_of(settings: &Settings) -> MemorySettings {
    let Bytes(working_set_bytes) = settings.working_set();
    MemorySettings {
        working_set_bytes,
        seed: if working_set_bytes > 0 { settings.seed().0 } else { 0 },
        binary: settings.binary(),
        huge_pages: settings.huge_pages() == Switch::On,
        lock_memory: settings.lock_memory() == Switch::On,
    }
}

/// Returns `true` if every strategy sends its orders of a schedule unchanged.
pub(super) fn plays_all(settings: &Settings) -> bool {
    settings.strategy().0.iter().all(|kind| kind == Trading::PLAYER)
}

/// Returns `true` if some venue in the settings is an exchange.
pub(super) fn has_book(settings: &Settings) -> bool {
    settings.venue().0.iter().any(|kind| kind == Trading::BOOK)
}

/// Returns where exchanges run. Restartable exchanges need a process that can be killed alone.
fn exchange_of(settings: &Settings) -> ExchangePlacement {
    let comes_back = settings.journal() != Journaling::None
        && settings.on_death() == OnDeath::Restart
        && !settings.isolation().has_threads();
    settings.exchange.unwrap_or(match comes_back {
        true => ExchangePlacement::Process,
        false => ExchangePlacement::Gateway,
    })
}

/// Returns the order in which exchanges apply orders: that of the recording if players send all of
/// it and nothing else.
fn sequence_of(settings: &Settings) -> OrderSequence {
    let is_recorded = settings.schedule.is_some() && settings.book.is_some() && plays_all(settings);
    settings.sequence.unwrap_or(if is_recorded { OrderSequence::Recorded } else { OrderSequence::Arrival })
}

/// Returns `true` if exchanges publish market data to a board: if some strategy may read it, unless
/// the user sets it.
fn has_market_data(settings: &Settings) -> bool {
    let is_read = has_book(settings) && !plays_all(settings);
    settings.market_data.map_or(is_read, |switch| switch == Switch::On)
}
