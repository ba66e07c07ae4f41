//! The counters of each kind of role, with name, unit and kind.

/// Maximum number of counters that one agent has.
pub const MAX_COUNTERS: usize = 15;

/// The unit of a counter in reports and tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterUnit {
    /// Orders.
    Orders,
    /// Reports.
    Reports,
    /// Pushes into a ring.
    Pushes,
    /// Sessions with a venue.
    Sessions,
    /// Messages.
    Messages,
    /// Blocks of a queue's memory.
    Blocks,
    /// Picoseconds.
    Picoseconds,
    /// Versions of an instrument's top of book.
    Versions,
}

impl CounterUnit {
    /// Returns the unit's name as it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            CounterUnit::Orders => "orders",
            CounterUnit::Reports => "reports",
            CounterUnit::Pushes => "pushes",
            CounterUnit::Sessions => "sessions",
            CounterUnit::Messages => "messages",
            CounterUnit::Blocks => "blocks",
            CounterUnit::Picoseconds => "ps",
            CounterUnit::Versions => "versions",
        }
    }
}

/// The kind of a counter, which determines how the values of two agents are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// A value that only grows: values are added.
    Total,
    /// The maximum so far: the larger value counts.
    Peak,
    /// A current value: values are not combined.
    Latest,
}

/// The name, unit and kind of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterLabel {
    /// The name; counters of several roles with the same meaning have the same name.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: CounterUnit,
    /// The rule by which values of several threads are combined.
    pub kind: CounterKind,
}

/// The counters of one kind of agent: an enum with a label for each value.
pub trait Counter: Copy {
    /// The labels of all counters, in the order of the values; at most 15.
    const LABELS: &'static [CounterLabel];

    /// Returns the counter's index among the counters of its role, from 0.
    fn index(self) -> usize;
}

macro_rules! counters {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$each:meta])* $variant:ident = $label:literal, $unit:ident, $kind:ident;)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $name { $($(#[$each])* $variant,)+ }

        impl Counter for $name {
            const LABELS: &'static [CounterLabel] =
                &[$(CounterLabel { name: $label, unit: CounterUnit::$unit, kind: CounterKind::$kind }),+];

            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }
        }

        const _: () = assert!(<$name as Counter>::LABELS.len() <= MAX_COUNTERS);
    };
}

/// The name of the counter of pushes that found a ring full, in every role.
pub const FULL: &str = "full";
/// The name of the counter of invalid messages of peers, in every role.
pub const PROTOCOL_ERRORS: &str = "protocol-errors";

/// The name of the counter of top-of-book updates that a strategy received.
pub const TICKS: &str = "ticks";
/// The name of the counter of top-of-book versions that were overwritten before the strategy read
/// them.
pub const TICKS_MISSED: &str = "ticks-missed";

counters! {
    /// The counters of a strategy's session, since its incarnation began.
    StrategyCounter {
        /// Orders sent.
        Sent = "sent", Orders, Total;
        /// Reports received, without rejections and cancellations.
        Returned = "returned", Reports, Total;
        /// Orders that were rejected or cancelled.
        Rejected = "rejected", Orders, Total;
        /// Pushes that found the submit ring full.
        Full = "full", Pushes, Total;
        /// Invalid messages from the engine.
        ProtocolErrors = "protocol-errors", Messages, Total;
        /// Maximum number of orders open at once.
        InFlightPeak = "in-flight-peak", Orders, Peak;
        /// Top-of-book updates received.
        Ticks = "ticks", Versions, Total;
        /// Versions that were overwritten before the strategy read them.
        TicksMissed = "ticks-missed", Versions, Total;
    }
}

counters! {
    /// The counters of the orchestrator.
    OrchestratorCounter {
        /// Orders dispatched to a gateway.
        Dispatched = "dispatched", Orders, Total;
        /// Orders whose last report was received from a gateway.
        Settled = "settled", Orders, Total;
        /// Orders rejected, or refused because their sender was dead.
        Rejected = "rejected", Orders, Total;
        /// Pushes that found an inbox or a return ring full.
        Full = "full", Pushes, Total;
        /// Invalid messages of strategies and gateways, and reports that found the return ring
        /// full.
        ProtocolErrors = "protocol-errors", Messages, Total;
        /// The extra work that was done for an order.
        Work = "work", Picoseconds, Latest;
        /// Blocks that the contended hand-offs used for the first time; 0 for techniques that never
        /// allocate.
        BlocksFresh = "blocks-fresh", Blocks, Total;
        /// How often the contended hand-offs reused a block.
        BlocksReused = "blocks-reused", Blocks, Total;
        /// Reports received from the gateways.
        Reports = "reports", Reports, Total;
        /// Reports that were pushed into a return ring.
        Returned = "returned", Reports, Total;
        /// Orders that are pending because their gateway's inbox is full.
        Waiting = "waiting", Orders, Latest;
        /// Maximum number of orders pending at once.
        WaitingPeak = "waiting-peak", Orders, Peak;
        /// Records in its journal.
        Journaled = "journalled", Messages, Total;
        /// Records that were in its journal when it was restarted.
        Recovered = "recovered", Messages, Latest;
        /// Recovered records that were replayed; the others were covered by a snapshot.
        Replayed = "replayed", Messages, Latest;
    }
}

counters! {
    /// The counters of a gateway.
    GatewayCounter {
        /// Orders received from the orchestrator.
        Received = "received", Orders, Total;
        /// Reports sent.
        Completed = "completed", Reports, Total;
        /// Pushes that found the completion ring full.
        Full = "full", Pushes, Total;
        /// Invalid messages from the orchestrator.
        ProtocolErrors = "protocol-errors", Messages, Total;
        /// Messages sent to the venue, if there is a session: the number of the last one.
        SessionSent = "session-sent", Messages, Total;
        /// Messages received from the venue: the number of the last one.
        SessionReceived = "session-received", Messages, Total;
        /// Invalid messages of the venue, which were ignored.
        VenueErrors = "venue-errors", Messages, Total;
        /// Orders that were closed because the venue did not answer in time.
        Stuck = "stuck", Orders, Total;
        /// Orders that the venue refused, or that found its session down.
        Refused = "refused", Orders, Total;
        /// Number of times the session went down.
        Disconnects = "disconnects", Sessions, Total;
    }
}

counters! {
    /// The counters of an exchange.
    ExchangeCounter {
        /// Orders, cancels and replaces received from the sessions.
        Received = "received", Orders, Total;
        /// Reports sent.
        Completed = "completed", Reports, Total;
        /// Trades.
        Trades = "trades", Messages, Total;
        /// Maximum number of orders in its books at once.
        OpenPeak = "open-peak", Orders, Peak;
        /// Orders and requests that it refused.
        Refused = "refused", Orders, Total;
        /// Pushes that found a session full.
        Full = "full", Pushes, Total;
        /// Invalid messages from gateways.
        ProtocolErrors = "protocol-errors", Messages, Total;
        /// Records in its journal.
        Journaled = "journalled", Messages, Total;
        /// Records that were in its journal when its last incarnation began.
        Recovered = "recovered", Messages, Latest;
        /// Recovered records that were replayed; the others were covered by a snapshot.
        Replayed = "replayed", Messages, Latest;
        /// Top-of-book updates written to its board.
        TopOfBookUpdates = "touches", Versions, Total;
    }
}
