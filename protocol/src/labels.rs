//! Counters of agents: an enum for each kind of role, with a label for each counter.

/// The most counters that an agent may have.
pub const MOST: usize = 15;

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Orders.
    Orders,
    /// Reports.
    Reports,
    /// Pushes.
    Pushes,
    /// Sessions.
    Sessions,
    /// Messages.
    Messages,
    /// Blocks of a queue's memory.
    Blocks,
    /// Picoseconds.
    Picoseconds,
    /// Versions of a touch.
    Versions,
}

impl Unit {
    /// The unit's name, as it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Orders => "orders",
            Unit::Reports => "reports",
            Unit::Pushes => "pushes",
            Unit::Sessions => "sessions",
            Unit::Messages => "messages",
            Unit::Blocks => "blocks",
            Unit::Picoseconds => "ps",
            Unit::Versions => "versions",
        }
    }
}

/// How a counter moves, which says how two agents' values go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Only grows: values add up.
    Total,
    /// The greatest value so far: of two, the greater one.
    Peak,
    /// A value of now: they do not go together.
    Latest,
}

/// A counter's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterLabel {
    /// Its name; counters of several roles that mean the same have the same name.
    pub name: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// How it moves.
    pub shape: Shape,
}

/// The counters of one kind of agent: an enum with a label for each value.
pub trait Counter: Copy {
    /// The labels, in the order of the values; at most 15.
    const LABELS: &'static [CounterLabel];

    /// Which of them it is, from 0.
    fn place(self) -> usize;
}

macro_rules! counters {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$each:meta])* $variant:ident = $label:literal, $unit:ident, $shape:ident;)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $name { $($(#[$each])* $variant,)+ }

        impl Counter for $name {
            const LABELS: &'static [CounterLabel] =
                &[$(CounterLabel { name: $label, unit: Unit::$unit, shape: Shape::$shape }),+];

            #[inline(always)]
            fn place(self) -> usize {
                self as usize
            }
        }

        const _: () = assert!(<$name as Counter>::LABELS.len() <= MOST);
    };
}

/// Pushes that found a ring full: the name of that counter with every role.
pub const FULL: &str = "full";
/// What a peer wrote that none may: the name of that counter with every role.
pub const PROTOCOL_ERRORS: &str = "protocol-errors";

/// Touches that a strategy heard: the name of that counter.
pub const TICKS: &str = "ticks";
/// Versions of touches that were written over before it looked: the name of that counter.
pub const TICKS_MISSED: &str = "ticks-missed";

counters! {
    /// What a strategy's session counts, since its incarnation began.
    StrategyCounter {
        /// Orders sent.
        Sent = "sent", Orders, Total;
        /// Reports received, without rejections and cancellations.
        Returned = "returned", Reports, Total;
        /// Orders that were rejected or cancelled.
        Rejected = "rejected", Orders, Total;
        /// Pushes that found the submit ring full.
        Full = "full", Pushes, Total;
        /// Messages that the engine never sends.
        ProtocolErrors = "protocol-errors", Messages, Total;
        /// The most orders open at once.
        InFlightPeak = "in-flight-peak", Orders, Peak;
        /// Touches heard: market data.
        Ticks = "ticks", Versions, Total;
        /// Versions that were written over before it looked.
        TicksMissed = "ticks-missed", Versions, Total;
    }
}

counters! {
    /// What the orchestrator counts.
    OrchestratorCounter {
        /// Orders dispatched to a gateway.
        Dispatched = "dispatched", Orders, Total;
        /// Orders whose last report was taken from a gateway.
        Settled = "settled", Orders, Total;
        /// Orders rejected, or refused because their sender was dead.
        Rejected = "rejected", Orders, Total;
        /// Pushes that found an inbox or a return ring full.
        Full = "full", Pushes, Total;
        /// Messages that no honest strategy or gateway sends, and reports that found no room.
        ProtocolErrors = "protocol-errors", Messages, Total;
        /// The work that was achieved for an order.
        Work = "work", Picoseconds, Latest;
        /// Blocks that the contended hand-offs used for the first time; 0 for what never allocates.
        BlocksFresh = "blocks-fresh", Blocks, Total;
        /// How often they used a block again.
        BlocksReused = "blocks-reused", Blocks, Total;
        /// Reports taken from the gateways.
        Reports = "reports", Reports, Total;
        /// Reports that were put into a return ring.
        Returned = "returned", Reports, Total;
        /// Orders that wait for room in their gateway's inbox now.
        Waiting = "waiting", Orders, Latest;
        /// The most orders that waited at once.
        WaitingPeak = "waiting-peak", Orders, Peak;
        /// Records in its journal.
        Journalled = "journalled", Messages, Total;
        /// Those of them that were there when it came back.
        Recovered = "recovered", Messages, Latest;
        /// Those of these that it carried out again; the others were in a state that it went on
        /// from.
        Replayed = "replayed", Messages, Latest;
    }
}

counters! {
    /// What a gateway counts.
    GatewayCounter {
        /// Orders received from the orchestrator.
        Received = "received", Orders, Total;
        /// Reports sent.
        Completed = "completed", Reports, Total;
        /// Pushes that found the completion ring full.
        Full = "full", Pushes, Total;
        /// Messages that the orchestrator never sends.
        ProtocolErrors = "protocol-errors", Messages, Total;
        /// Messages to the venue, where there is a session: the number of the last one.
        SessionSent = "session-sent", Messages, Total;
        /// Messages from the venue, likewise.
        SessionReceived = "session-received", Messages, Total;
        /// Messages of the venue that cannot be; none of them was believed.
        VenueErrors = "venue-errors", Messages, Total;
        /// Orders that were closed because the venue said nothing about them.
        Stuck = "stuck", Orders, Total;
        /// Orders that the venue refused, or that found its session down.
        Refused = "refused", Orders, Total;
        /// How often the session went down.
        Disconnects = "disconnects", Sessions, Total;
        /// Orders that were rejected because the venue's message limit was reached.
        Throttled = "throttled", Orders, Total;
    }
}

counters! {
    /// What an exchange counts.
    ExchangeCounter {
        /// Orders, cancels and replaces taken from the sessions.
        Received = "received", Orders, Total;
        /// Reports sent.
        Completed = "completed", Reports, Total;
        /// Trades.
        Trades = "trades", Messages, Total;
        /// The most orders in its books at once.
        OpenPeak = "open-peak", Orders, Peak;
        /// Orders and requests that it refused.
        Refused = "refused", Orders, Total;
        /// Pushes that found a session full.
        Full = "full", Pushes, Total;
        /// Messages that a gateway never sends.
        ProtocolErrors = "protocol-errors", Messages, Total;
        /// Records in its journal.
        Journalled = "journalled", Messages, Total;
        /// Those of them that it found there when its last incarnation began.
        Recovered = "recovered", Messages, Latest;
        /// Those of these that it carried out again; the others were in a state that it went on
        /// from.
        Replayed = "replayed", Messages, Latest;
        /// Touches written to its board.
        Touches = "touches", Versions, Total;
    }
}
