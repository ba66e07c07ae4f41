//! Workloads: the part of a plan that depends on the purpose of the run.

mod board;
mod memory;
mod queue;
mod resources;
mod speculation;

use crate::index::{GatewayIndex, StrategyIndex, VenueIndex};
pub use board::{BoardWork, ReaderWaiting};
pub use memory::{Binary, MemorySettings};
pub use queue::{EndWaiting, EventCost, QueueWork};
pub use resources::{LimitKeeper, ResourceLimit, StrategyResources, StrategyUser, thousandths};
pub use speculation::Speculation;

use crate::instrument::Instrument;
use crate::limits::LimitSetting;
use crate::wire::MAX_REPORTS;
use serde::{Deserialize, Serialize};
use system::named_enum;

named_enum! {
    /// The thread and process in which an exchange runs.
    ExchangePlacement {
        /// The exchange runs on the thread of its venue's gateway.
        Gateway = "gateway",
        /// The exchange runs on a thread of its own, in the process of its venue's gateway.
        Thread = "thread",
        /// The exchange runs in a process of its own.
        Process = "process",
    }
}

named_enum! {
    /// The journaling of exchanges and engine (write-ahead log), by the failures that a journal
    /// survives.
    #[derive(Default)]
    Journaling {
        /// None: the state of an exchange that dies is lost.
        #[default]
        None = "none",
        /// Every instruction is written to the page cache: survives the process, not the machine.
        Process = "process",
        /// Group commit: reports wait until their instructions are on disk, synced together.
        Group = "group",
        /// Reports wait until their instructions are on disk; each instruction is synced alone.
        Each = "each",
    }
}

named_enum! {
    /// The sequence in which an exchange executes orders.
    OrderSequence {
        /// Orders are executed in the order of their arrival.
        Arrival = "arrival",
        /// Orders are executed in the sequence of a recording: see
        /// [`ReplayStep`](crate::topology::ReplayStep).
        Recorded = "recorded",
    }
}

named_enum! {
    /// The pacing of a strategy's orders.
    Pacing {
        /// Each order has a scheduled time (open loop).
        Scheduled = "scheduled",
        /// As fast as the rings accept them (closed loop); scheduled times are ignored.
        Closed = "closed",
    }
}

/// The purpose of a run (trading, a queue benchmark or a board benchmark) with its settings, which
/// determine roles and links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Strategies trade through an orchestrator and gateways: [`crate::trading`].
    Trading(Trading),
    /// Producers push events into the queue of each consumer: [`crate::benchmark`].
    Queue(QueueWork),
    /// A writer and its readers share a board: [`crate::benchmark`].
    Board(BoardWork),
}

/// The settings of a trading run: strategies, venues, instruments, limits and others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trading {
    /// Number of strategies, 1 to [`MAX_STRATEGIES`](crate::wire::MAX_STRATEGIES).
    pub strategies: u16,
    /// Number of spare strategies, the last ones: retired from the start, until an operator adds
    /// them.
    #[serde(default)]
    pub spare_strategies: u16,
    /// Number of venues, 1 to [`MAX_VENUES`](crate::wire::MAX_VENUES).
    pub venues: u16,
    /// Kinds of strategies, round-robin: [`Trading::ON_SCHEDULE`], registered or with a command.
    pub strategy_kinds: Vec<String>,
    /// Kinds of venues, round-robin: [`Trading::DELAY_VENUE`], [`Trading::BOOK`], registered ones.
    pub venue_kinds: Vec<String>,
    /// Number of credentials, at least 1, assigned to strategies round-robin. Each venue has a
    /// gateway for each of them.
    #[serde(default = "one")]
    pub credentials: u16,
    /// Where the exchanges run, which are the venues of kind [`Trading::BOOK`].
    pub exchange: ExchangePlacement,
    /// The journaling of exchanges and engine.
    #[serde(default)]
    pub journal: Journaling,
    /// The absolute path of the file with each exchange's opening book; `None`: empty books.
    pub opening_book: Option<String>,
    /// Number of orders of the opening book.
    #[serde(rename = "house_orders")]
    pub opening_orders: u64,
    /// The sequence in which exchanges execute orders.
    pub sequence: OrderSequence,
    /// `true` if each exchange publishes its tops of book for all strategies: [`crate::market`].
    #[serde(default)]
    pub market_data: bool,
    /// Slots of each link, a power of two from 2 to 2^20.
    pub capacity: u32,
    /// Maximum number of open orders of a strategy; the engine reserves space for their reports.
    pub max_open: u32,
    /// Maximum number of orders that a gateway holds, at which the gateway stops reading its inbox.
    pub max_held: u32,
    /// Time (ns) after which a gateway closes an unanswered order; 0: longest delay + 1 s.
    #[serde(default)]
    pub venue_timeout_ns: u64,
    /// The pacing of strategies that follow a schedule; others have their own times.
    pub pacing: Pacing,
    /// Number of orders scheduled for each strategy.
    pub orders: Vec<u64>,
    /// Orders for each venue of strategy 0, then of strategy 1, and so on; empty: any venue.
    pub venue_orders: Vec<u64>,
    /// Average reports per order for which logs and return paths have space, to [`MAX_REPORTS`].
    #[serde(rename = "reports_an_order")]
    pub reports_per_order: u8,
    /// `true` if each venue publishes the release time of every order's first report.
    pub tells_release: bool,
    /// The longest venue delay in the schedule, in nanoseconds.
    pub max_delay_ns: u64,
    /// The orchestrator's extra work per order in nanoseconds; the counter `work` has the measured
    /// value.
    pub work_ns: u64,
    /// The instruments; orders refer to them by index. Empty: one instrument with any price.
    #[serde(default)]
    pub instruments: Vec<Instrument>,
    /// The limits in the order in which they apply; those set by commands apply after them.
    #[serde(default)]
    pub limits: Vec<LimitSetting>,
    /// The memory that strategies walk, run from and map.
    #[serde(default)]
    pub memory: MemorySettings,
    /// Limits and users of strategies, one entry for each; empty: the defaults.
    #[serde(default)]
    pub resources: Vec<StrategyResources>,
    /// `true` if strategies may leave core dumps.
    #[serde(default)]
    pub core_dumps: bool,
    /// Whether processes of strategies use indirect branch speculation (Spectre v2) as by default.
    #[serde(default)]
    pub speculation: Speculation,
    /// Time in nanoseconds for which only strategies at one position of the isolation list are
    /// offered orders, before those at another; 0: all at all times.
    #[serde(default)]
    pub crossover_ns: u64,
}

const _: () = assert!(MAX_REPORTS <= u8::MAX as usize);

impl Trading {
    /// The trading part of a run that does not trade: no strategies, no venues, no orders.
    pub(crate) const NONE: Self = Self {
        strategies: 0,
        spare_strategies: 0,
        venues: 0,
        strategy_kinds: Vec::new(),
        venue_kinds: Vec::new(),
        credentials: 1,
        exchange: ExchangePlacement::Gateway,
        journal: Journaling::None,
        opening_book: None,
        opening_orders: 0,
        sequence: OrderSequence::Arrival,
        market_data: false,
        capacity: 64,
        max_open: 64,
        venue_timeout_ns: 0,
        max_held: 64,
        pacing: Pacing::Scheduled,
        orders: Vec::new(),
        venue_orders: Vec::new(),
        reports_per_order: 1,
        tells_release: true,
        max_delay_ns: 0,
        work_ns: 0,
        instruments: Vec::new(),
        limits: Vec::new(),
        memory: MemorySettings::NONE,
        resources: Vec::new(),
        core_dumps: false,
        speculation: Speculation::Open,
        crossover_ns: 0,
    };

    /// Length in nanoseconds of the washout at the start of each crossover period; orders due in it
    /// count in no latency. In a period only the strategies at one position of the isolation list
    /// are offered orders. By the end of the washout the queues of the period before are empty, and
    /// threads awake.
    pub const WASHOUT_NS: u64 = 3_000_000;

    /// The strategy kind that sends recorded or generated orders at the times of its schedule.
    pub const PLAYER: &'static str = "player";
    /// The kinds of strategies that follow a schedule: player, market maker, taker and crosser.
    pub const ON_SCHEDULE: [&'static str; 4] = [Self::PLAYER, "maker", "taker", "crosser"];
    /// The kind of venue that executes every order in full after the order's own delay.
    pub const DELAY_VENUE: &'static str = "delay";
    /// The kind of venue that is an exchange with a matching engine.
    pub const BOOK: &'static str = "book";

    /// The prefix of a strategy kind that is an external program; the program's command follows.
    pub const PROGRAM: &'static str = "exec:";

    /// Maximum number of orders, over all gateways, for which the orchestrator allocates queue
    /// memory.
    pub const MAX_WAITING_ORDERS: u32 = 1 << 20;

    /// Creates the settings of a trading run with these numbers of strategies and venues.
    pub fn new(strategies: u16, venues: u16) -> Self {
        Self {
            strategies,
            venues,
            strategy_kinds: vec![Self::PLAYER.into()],
            venue_kinds: vec![Self::DELAY_VENUE.into()],
            orders: vec![0; strategies.into()],
            ..Self::NONE
        }
    }

    /// Returns the kind of a strategy, such as `player` or `maker`.
    pub fn strategy_kind(&self, index: StrategyIndex) -> &str {
        kind_at(&self.strategy_kinds, index.as_usize())
    }

    /// Returns `true` if a strategy is a spare, which is not started until an operator adds it.
    pub const fn is_spare(&self, strategy: StrategyIndex) -> bool {
        strategy.0 < self.strategies && strategy.0 >= self.strategies.saturating_sub(self.spare_strategies)
    }

    /// Returns the indices of the spare strategies, which are not started until an operator adds
    /// them.
    pub fn spares(&self) -> impl ExactSizeIterator<Item = StrategyIndex> + Clone + use<> {
        (self.strategies.saturating_sub(self.spare_strategies)..self.strategies).map(StrategyIndex)
    }

    /// Changes the kind of one strategy, such as `player` or `maker`; the other strategies keep
    /// theirs.
    pub fn set_strategy_kind(&mut self, index: StrategyIndex, kind: &str) {
        let kinds = StrategyIndex::first(self.strategies).map(|other| self.strategy_kind(other).to_owned());
        self.strategy_kinds = kinds.collect();
        if let Some(own) = self.strategy_kinds.get_mut(index.as_usize()) {
            kind.clone_into(own);
        }
    }

    /// Returns the command that starts a strategy of this kind, if the kind is an external program
    /// (`exec:COMMAND`); `None` for other kinds.
    pub fn command_of(kind: &str) -> Option<&str> {
        kind.strip_prefix(Self::PROGRAM)
    }

    /// Returns the command of a strategy that is an external program; `None` for other strategies.
    pub fn program_of(&self, strategy: StrategyIndex) -> Option<&str> {
        Self::command_of(self.strategy_kind(strategy))
    }

    /// Returns a strategy's resource limits and the system user that it runs as.
    pub fn resources_of(&self, strategy: StrategyIndex) -> &StrategyResources {
        static NONE: StrategyResources = StrategyResources::NONE;
        self.resources.get(strategy.as_usize()).unwrap_or(&NONE)
    }

    /// Returns lines of text for people with the resource limits and users that are set for
    /// strategies. Adjacent strategies with equal ones share a line.
    pub fn resource_lines(&self) -> Vec<String> {
        let all: Vec<(usize, &StrategyResources)> = self.resources.iter().enumerate().collect();
        let line = |group: &[(usize, &StrategyResources)]| {
            let [(first, resources), ..] = group else { return None };
            let name = |strategy: usize| format!("strategy-{strategy}");
            let names = match group.len() {
                1 => name(*first),
                len => format!("{} … {}", name(*first), name(first + len - 1)),
            };
            (**resources != StrategyResources::NONE).then(|| format!("{names}: {resources}"))
        };
        all.chunk_by(|(_, first), (_, second)| first == second).filter_map(line).collect()
    }

    /// Returns `true` if some strategy runs as another user than the launcher.
    pub fn has_users(&self) -> bool {
        self.resources.iter().any(|resources| resources.user.is_some())
    }

    /// Returns `true` if the run has several strategy kinds or an external program, so that reports
    /// list strategies separately.
    pub fn has_several_kinds(&self) -> bool {
        self.strategy_kinds.len() > 1
            || self.strategy_kinds.iter().any(|kind| Self::command_of(kind).is_some())
    }

    /// Returns a strategy's pacing: the run's setting for a kind that follows a schedule, closed
    /// loop for any other.
    pub fn pacing_of(&self, strategy: StrategyIndex) -> Pacing {
        if Self::ON_SCHEDULE.contains(&self.strategy_kind(strategy)) { self.pacing } else { Pacing::Closed }
    }

    /// Returns the pacing of the run's orders: the run's setting if every strategy follows a
    /// schedule, else closed loop.
    pub fn overall_pacing(&self) -> Pacing {
        let is_scheduled = |kind: &String| Self::ON_SCHEDULE.contains(&kind.as_str());
        if self.strategy_kinds.iter().all(is_scheduled) { self.pacing } else { Pacing::Closed }
    }

    /// Returns the name of an instrument for people: its own name, or `instrument 3`.
    pub fn instrument_name(&self, index: u16) -> String {
        match self.instruments.get(usize::from(index)).map(|instrument| instrument.name.as_str()) {
            None | Some("") => format!("instrument {index}"),
            Some(name) => name.into(),
        }
    }

    /// Returns two texts with the kinds of strategies and of venues, as ` (quoter, player)`; empty
    /// for the default kind. With several credentials those of venues end in ` with 2 credentials`.
    pub fn kind_labels(&self) -> [String; 2] {
        let [strategies, venues] =
            [(&self.strategy_kinds, Self::PLAYER), (&self.venue_kinds, Self::DELAY_VENUE)].map(
                |(kinds, own)| {
                    let is_own = kinds.iter().all(|kind| kind == own);
                    if is_own { String::new() } else { format!(" ({})", kinds.join(", ")) }
                },
            );
        match self.credentials {
            0 | 1 => [strategies, venues],
            count => [strategies, format!("{venues} with {count} credentials")],
        }
    }

    /// Returns the kind of a venue, such as `delay` or `book`.
    pub fn venue_kind(&self, index: VenueIndex) -> &str {
        kind_at(&self.venue_kinds, index.as_usize())
    }

    /// Returns the number of gateways: one for each venue and credential.
    pub const fn gateways(&self) -> u16 {
        self.venues.saturating_mul(self.credentials)
    }

    /// Returns the index of the credential (name at a venue) that a strategy trades under, equal at
    /// every venue.
    pub const fn credential_of(&self, strategy: StrategyIndex) -> u16 {
        strategy.0 % at_least_one(self.credentials)
    }

    /// Returns the gateway of a venue for a credential. The gateways of a venue are adjacent.
    pub const fn gateway(&self, venue: VenueIndex, credential: u16) -> GatewayIndex {
        GatewayIndex(venue.0.saturating_mul(self.credentials).saturating_add(credential))
    }

    /// Returns the gateways of a venue, in the order of their credentials.
    pub fn gateways_of(&self, venue: VenueIndex) -> impl Iterator<Item = GatewayIndex> + Clone + use<> {
        (self.gateway(venue, 0).0..self.gateway(venue, self.credentials).0).map(GatewayIndex)
    }

    /// Returns the venue and the credential of a gateway.
    pub const fn venue_and_credential(&self, gateway: GatewayIndex) -> (VenueIndex, u16) {
        let credentials = at_least_one(self.credentials);
        (VenueIndex(gateway.0 / credentials), gateway.0 % credentials)
    }

    /// Returns the venue of a gateway.
    pub const fn venue_of(&self, gateway: GatewayIndex) -> VenueIndex {
        self.venue_and_credential(gateway).0
    }

    /// Returns a gateway's venue and credential for people: `venue-1`, with several credentials
    /// `venue-1/credential-0`.
    pub fn gateway_place(&self, gateway: GatewayIndex) -> String {
        let (venue, credential) = self.venue_and_credential(gateway);
        match self.credentials {
            0 | 1 => format!("venue-{venue}"),
            _ => format!("venue-{venue}/credential-{credential}"),
        }
    }

    /// Returns `true` if the venue is an exchange.
    pub fn is_book(&self, venue: VenueIndex) -> bool {
        self.venue_kind(venue) == Self::BOOK
    }

    /// Returns the indices of the venues that are exchanges with a matching engine.
    pub fn books(&self) -> impl Iterator<Item = VenueIndex> + '_ {
        VenueIndex::first(self.venues).filter(|venue| self.is_book(*venue))
    }

    /// Returns the number of instruments, at least one.
    pub fn instrument_count(&self) -> usize {
        self.instruments.len().max(1)
    }

    /// Returns the indices of the exchanges with a market-data board that strategies read; none
    /// without market data.
    pub fn boards(&self) -> impl Iterator<Item = VenueIndex> + '_ {
        self.books().filter(|_| self.market_data)
    }

    /// Returns the number of orders to one gateway for which queue memory is allocated.
    pub fn pending_capacity(&self, gateway: GatewayIndex) -> usize {
        let (_, credential) = self.venue_and_credential(gateway);
        let open = StrategyIndex::first(self.strategies).zip(&self.orders);
        let open = open.filter(|(strategy, _)| self.credential_of(*strategy) == credential);
        let open = open.map(|(_, orders)| orders);
        let open = open.fold(0, |sum: u64, orders| sum.saturating_add(u64::from(self.max_open).min(*orders)));
        open.clamp(1, u64::from(Self::MAX_WAITING_ORDERS) / u64::from(self.gateways().max(1))) as usize
    }

    /// Returns the number of orders of all strategies of the run together (saturating).
    pub fn total_orders(&self) -> u64 {
        self.orders.iter().fold(0, |sum: u64, orders| sum.saturating_add(*orders))
    }
}

const fn one() -> u16 {
    1
}

const fn at_least_one(count: u16) -> u16 {
    if count == 0 { 1 } else { count }
}

/// Returns the name at that index modulo the number of names; empty for an empty list.
fn kind_at(kinds: &[String], index: usize) -> &str {
    let kind_index = index.checked_rem(kinds.len());
    kind_index.and_then(|kind_index| kinds.get(kind_index)).map_or("", String::as_str)
}
