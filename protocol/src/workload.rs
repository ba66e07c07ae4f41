//! Workloads: the part of a plan that depends on what a run is for. Each workload has a variant
//! with what only it knows; what every run has is in [`Plan`](crate::plan::Plan).

use crate::instrument::Instrument;
use crate::limits::LimitSetting;
use crate::wire::MAX_REPORTS;
use serde::{Deserialize, Serialize};
use system::names;

names! {
    /// Where an exchange runs.
    ExchangePlacement {
        /// On the thread of its venue's first gateway.
        Gateway = "gateway",
        /// On a thread of its own, in the process of its venue's first gateway.
        Thread = "thread",
        /// In a process of its own.
        Process = "process",
    }
}

names! {
    /// What exchanges write down before they act on it, and what that survives.
    #[derive(Default)]
    Journalling {
        /// Nothing: an exchange that dies is gone.
        #[default]
        None = "none",
        /// Every instruction, into the page cache: it survives the process, not the machine.
        Process = "process",
        /// The same, and reports wait until it is on the disk; a group is synced together.
        Group = "group",
        /// The same, and each instruction is synced by itself.
        Each = "each",
    }
}

names! {
    /// In which order an exchange carries out the orders that have come.
    Sequence {
        /// As they come.
        Arrival = "arrival",
        /// As a recording has them, whichever strategy sends them and however late: see
        /// [`Turn`](crate::topology::Turn).
        Recorded = "recorded",
    }
}

names! {
    /// How a strategy paces its orders.
    Pacing {
        /// Each order has a time at which it is due (open loop).
        Scheduled = "scheduled",
        /// As fast as the rings take them (closed loop): a due time means nothing.
        Closed = "closed",
    }
}

/// What a run is for: it says which roles and links there must be, and what they need to know. Each
/// workload has its own module, which arranges its topology and checks its demands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Strategies send orders through an orchestrator to gateways and get reports:
    /// [`crate::trading`].
    Trading(Trading),
}

/// What only trading knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trading {
    /// Strategies, 1 to [`MAX_STRATEGIES`](crate::wire::MAX_STRATEGIES).
    pub strategies: u16,
    /// Venues, 1 to [`MAX_VENUES`](crate::wire::MAX_VENUES).
    pub venues: u16,
    /// The kinds of strategies, by name, at least one: strategy i is of the kind i modulo their
    /// number. [`Trading::ON_SCHEDULE`], what the program has added, or [`Trading::PROGRAM`] and a
    /// command.
    pub strategy_kinds: Vec<String>,
    /// The same of venues: [`Trading::DELAY_VENUE`], [`Trading::BOOK`], or what the program has
    /// added.
    pub venue_kinds: Vec<String>,
    /// Credentials, at least one: strategy i trades with credential i modulo their number, and each
    /// venue has a gateway for each credential. At most [`MAX_GATEWAYS`](crate::wire::MAX_GATEWAYS)
    /// gateways in all.
    pub credentials: u16,
    /// Where exchanges run: the venues of kind [`Trading::BOOK`].
    pub exchange: ExchangePlacement,
    /// What exchanges write down before they act.
    #[serde(default)]
    pub journal: Journalling,
    /// The file with the orders that rest in the books of every exchange when the run begins, an
    /// absolute path; `None`: the books are empty.
    pub opening_book: Option<String>,
    /// How many orders that file has.
    pub house_orders: u64,
    /// In which order exchanges carry orders out.
    pub sequence: Sequence,
    /// Each exchange writes the touch of its instruments to a board that every strategy reads:
    /// [`crate::market`].
    #[serde(default)]
    pub market_data: bool,
    /// Slots of each of its links, a power of two from 2 to 2^20.
    pub capacity: u32,
    /// The most orders that a strategy may have open; the engine keeps room for the reports of so
    /// many.
    pub max_open: u32,
    /// The most orders that may be open at one gateway; a new one beyond that is rejected. `None`:
    /// no limit but that of the strategies.
    #[serde(default)]
    pub max_waiting: Option<u32>,
    /// The most orders that a gateway holds at once; past that it takes no more from its inbox.
    pub max_held: u32,
    /// How long a venue may say nothing about an order before its gateway closes it, in
    /// nanoseconds, where there is a session; 0: the longest delay and a second more.
    #[serde(default)]
    pub venue_timeout_ns: u64,
    /// The messages a second that a venue takes; 0: any number.
    #[serde(default)]
    pub venue_limit: u32,
    /// Orders beyond that are rejected. Else they wait.
    #[serde(default)]
    pub venue_limit_rejects: bool,
    /// How the players of the schedule pace their orders; other strategies have times of their own.
    pub pacing: Pacing,
    /// The orders scheduled for each strategy, in all laps together.
    pub orders: Vec<u64>,
    /// How often the schedule is played, at least once: its segment has the orders of one lap.
    #[serde(default = "once")]
    pub laps: u32,
    /// How much later each lap is due than the one before it, in nanoseconds.
    #[serde(default)]
    pub lap_ns: u64,
    /// How many of those go to each venue: a strategy's venues side by side, strategy after
    /// strategy. One order more to a venue is refused, since the stamp log of a gateway with a
    /// thread of its own has no room for it. Empty: an order may go to any venue, and each
    /// gateway's log has room for all.
    pub venue_orders: Vec<u64>,
    /// How many reports of each order logs and return paths have room for, on average, 1 to
    /// [`MAX_REPORTS`].
    pub reports_an_order: u8,
    /// Each venue says of every order when its first report is due.
    pub tells_release: bool,
    /// The longest venue delay in the schedule, in nanoseconds.
    pub max_delay_ns: u64,
    /// The orchestrator's extra work for each order, in nanoseconds, as the user asked for it. What
    /// it took is in the orchestrator's counters.
    pub work_ns: u64,
    /// What is traded; orders name an instrument by its place here. Empty: everything is, at any
    /// price.
    #[serde(default)]
    pub instruments: Vec<Instrument>,
    /// Limits, in the order in which they apply: a later one overrides an earlier one. Those of
    /// commands come behind them.
    #[serde(default)]
    pub limits: Vec<LimitSetting>,
}

const fn once() -> u32 {
    1
}

const _: () = assert!(MAX_REPORTS <= u8::MAX as usize);

impl Trading {
    /// The strategy that plays its schedule.
    pub const PLAYER: &'static str = "player";
    /// The strategies that follow the times of their schedule: the player, the market maker and the
    /// taker.
    pub const ON_SCHEDULE: [&'static str; 3] = [Self::PLAYER, "maker", "taker"];
    /// The venue that executes every order in full after the order's own delay.
    pub const DELAY_VENUE: &'static str = "delay";
    /// The venue that is an exchange: it matches orders.
    pub const BOOK: &'static str = "book";

    /// What begins the kind of a strategy that is a program of somebody else's: its command
    /// follows.
    pub const PROGRAM: &'static str = "exec:";

    /// Maximum number of orders that the orchestrator allocates queue memory for, all gateways
    /// together.
    pub const MOST_WAITING: u32 = 1 << 20;

    /// So many strategies and venues with the smallest of everything.
    pub fn new(strategies: u16, venues: u16) -> Self {
        Self {
            strategies,
            venues,
            strategy_kinds: vec![Self::PLAYER.into()],
            venue_kinds: vec![Self::DELAY_VENUE.into()],
            credentials: 1,
            exchange: ExchangePlacement::Gateway,
            journal: Journalling::None,
            opening_book: None,
            house_orders: 0,
            sequence: Sequence::Arrival,
            market_data: false,
            capacity: 64,
            max_open: 64,
            max_waiting: None,
            venue_timeout_ns: 0,
            venue_limit: 0,
            venue_limit_rejects: false,
            max_held: 64,
            pacing: Pacing::Scheduled,
            orders: vec![0; strategies.into()],
            laps: 1,
            lap_ns: 0,
            venue_orders: Vec::new(),
            reports_an_order: 1,
            tells_release: true,
            max_delay_ns: 0,
            work_ns: 0,
            instruments: Vec::new(),
            limits: Vec::new(),
        }
    }

    /// The kind of a strategy.
    pub fn strategy_kind(&self, index: u16) -> &str {
        of_kind(&self.strategy_kinds, index)
    }

    /// The command of a kind that is a program, in its words; `None`: it is none.
    pub fn command_of(kind: &str) -> Option<&str> {
        kind.strip_prefix(Self::PROGRAM)
    }

    /// The command of a strategy that is a program of somebody else's.
    pub fn program_of(&self, strategy: u16) -> Option<&str> {
        Self::command_of(self.strategy_kind(strategy))
    }

    /// Whether its strategies are of several kinds, or programs of somebody else's: then reports
    /// tell them apart.
    pub fn has_several_kinds(&self) -> bool {
        self.strategy_kinds.len() > 1
            || self.strategy_kinds.iter().any(|kind| Self::command_of(kind).is_some())
    }

    /// How a strategy paces its orders: the plan knows when they are due only of those that follow
    /// a schedule.
    pub fn pacing_of(&self, strategy: u16) -> Pacing {
        if Self::ON_SCHEDULE.contains(&self.strategy_kind(strategy)) { self.pacing } else { Pacing::Closed }
    }

    /// How all strategies pace their orders: closed, unless each of them has times at which they
    /// are due.
    pub fn overall_pacing(&self) -> Pacing {
        let is_scheduled = |kind: &String| Self::ON_SCHEDULE.contains(&kind.as_str());
        if self.strategy_kinds.iter().all(is_scheduled) { self.pacing } else { Pacing::Closed }
    }

    /// The name of an instrument for people: its own, or `instrument 3`.
    pub fn instrument_name(&self, index: u16) -> String {
        match self.instruments.get(usize::from(index)).map(|instrument| instrument.name.as_str()) {
            None | Some("") => format!("instrument {index}"),
            Some(name) => name.into(),
        }
    }

    /// The kinds of strategies and of venues for people, ` (quoter, player)`; nothing where they
    /// are bulkhead's own.
    pub fn kinds_in_words(&self) -> [String; 2] {
        [(&self.strategy_kinds, Self::PLAYER), (&self.venue_kinds, Self::DELAY_VENUE)].map(|(kinds, own)| {
            let is_own = kinds.iter().all(|kind| kind == own);
            if is_own { String::new() } else { format!(" ({})", kinds.join(", ")) }
        })
    }

    /// The kind of a venue.
    pub fn venue_kind(&self, index: u16) -> &str {
        of_kind(&self.venue_kinds, index)
    }

    /// How many gateways there are: one for each venue and credential.
    pub const fn gateways(&self) -> u16 {
        self.venues.saturating_mul(self.credentials)
    }

    /// The credential of a strategy.
    pub const fn credential_of(&self, strategy: u16) -> u16 {
        strategy % if self.credentials == 0 { 1 } else { self.credentials }
    }

    /// The gateway of a venue for a credential.
    pub const fn gateway(&self, venue: u16, credential: u16) -> u16 {
        venue * self.credentials + credential
    }

    /// The venue of a gateway.
    pub const fn venue_of(&self, gateway: u16) -> u16 {
        gateway / if self.credentials == 0 { 1 } else { self.credentials }
    }

    /// The gateways of a venue.
    pub const fn gateways_of(&self, venue: u16) -> core::ops::Range<u16> {
        self.gateway(venue, 0)..self.gateway(venue, self.credentials)
    }

    /// Whether the venue is an exchange.
    pub fn is_book(&self, venue: u16) -> bool {
        self.venue_kind(venue) == Self::BOOK
    }

    /// The venues that are exchanges.
    pub fn books(&self) -> impl Iterator<Item = u16> + '_ {
        (0..self.venues).filter(|venue| self.is_book(*venue))
    }

    /// How many instruments are traded: all that there are where the plan names none.
    pub fn instrument_count(&self) -> usize {
        self.instruments.len().max(1)
    }

    /// The venues whose touches strategies can read.
    pub fn boards(&self) -> impl Iterator<Item = u16> + '_ {
        self.books().filter(|_| self.market_data)
    }

    /// Orders to one gateway that the orchestrator allocates queue memory for: as many as its
    /// credential's strategies may have open, and all gateways together at most
    /// [`Trading::MOST_WAITING`].
    pub fn waiting_room(&self, gateway: u16) -> usize {
        let is_its = |strategy: &u16| self.credential_of(*strategy) == gateway % self.credentials.max(1);
        let strategies = (0..self.strategies).filter(is_its).map(usize::from);
        let open = strategies.filter_map(|strategy| self.orders.get(strategy));
        let open = open.fold(0, |sum: u64, orders| sum.saturating_add(u64::from(self.max_open).min(*orders)));
        open.clamp(1, u64::from(Self::MOST_WAITING) / u64::from(self.gateways().max(1))) as usize
    }

    /// The orders of a strategy in one lap of the schedule; none for a strategy that there is not.
    pub fn orders_a_lap(&self, strategy: u16) -> u64 {
        self.orders.get(usize::from(strategy)).map_or(0, |orders| orders / u64::from(self.laps.max(1)))
    }

    /// All orders of all strategies; the largest number if there are more.
    pub fn total_orders(&self) -> u64 {
        self.orders.iter().fold(0, |sum: u64, orders| sum.saturating_add(*orders))
    }
}

/// The name at that index, beginning anew at the end of the list; none in an empty one.
fn of_kind(kinds: &[String], index: u16) -> &str {
    let place = usize::from(index).checked_rem(kinds.len());
    place.and_then(|place| kinds.get(place)).map_or("", String::as_str)
}
