//! The counters of each kind of role, with name and unit.

/// Maximum number of counters that one agent has.
pub const MAX_COUNTERS: usize = 15;

/// The name and the unit of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterLabel {
    /// The counter's name; counters of several roles with one meaning share one name.
    pub name: &'static str,
    /// The unit of the counter's values, as it is printed.
    pub unit: &'static str,
}

/// A trait of enums whose values are the counters of one kind of agent, each with a name and a
/// unit.
pub trait Counter: Copy {
    /// The labels of all counters, in the order of the values; at most 15.
    const LABELS: &'static [CounterLabel];

    /// Returns the counter's index among the counters of its role, from 0.
    fn index(self) -> usize;
}

macro_rules! counters {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$each:meta])* $variant:ident = $label:literal, $unit:literal;)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum $name { $($(#[$each])* $variant,)+ }

        impl Counter for $name {
            const LABELS: &'static [CounterLabel] = &[$(CounterLabel { name: $label, unit: $unit }),+];

            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }
        }

        const _: () = assert!(<$name as Counter>::LABELS.len() <= MAX_COUNTERS);
    };
}

/// The name, in every role, of an agent's counter of pushes that found a ring full.
pub const FULL: &str = "full";
/// The name, in every role, of an agent's counter of invalid messages of peers.
pub const PROTOCOL_ERRORS: &str = "protocol-errors";

/// The name of the counter of top-of-book updates that a strategy received.
pub const TICKS: &str = "ticks";
/// The name of the counter of top-of-book versions overwritten before they were read.
pub const TICKS_MISSED: &str = "ticks-missed";

counters! {
    /// The counters of a strategy's session, since the strategy's incarnation began.
    StrategyCounter {
        /// Orders that the strategy sent.
        Sent = "sent", "orders";
        /// Reports received, without rejections and cancellations.
        Returned = "returned", "reports";
        /// Orders that were rejected or cancelled.
        Rejected = "rejected", "orders";
        /// Pushes that found the submit ring full.
        Full = "full", "pushes";
        /// Invalid messages from the engine.
        ProtocolErrors = "protocol-errors", "messages";
        /// Maximum number of orders open at once.
        InFlightPeak = "in-flight-peak", "orders";
        /// Top-of-book updates received.
        Ticks = "ticks", "versions";
        /// Versions that were overwritten before the strategy read them.
        TicksMissed = "ticks-missed", "versions";
        /// Cache lines of the strategy's own heap that it walked between orders.
        Walked = "walked", "lines";
        /// Time that the strategy spent on these walks, with a clock read for each step.
        WalkTime = "walk-time", "ticks";
        /// Median time of the walk for one order; 0 until the strategy ends.
        WalkP50 = "walk-p50", "ticks";
        /// 99th percentile of the walk for one order; 0 until the strategy ends.
        WalkP99 = "walk-p99", "ticks";
        /// Steps of a disturbance that a fault of the plan asked for.
        Disturbed = "disturbed", "steps";
    }
}

counters! {
    /// The counters of the orchestrator.
    OrchestratorCounter {
        /// Orders dispatched to a gateway.
        Dispatched = "dispatched", "orders";
        /// Orders whose last report was received from a gateway.
        Settled = "settled", "orders";
        /// Orders rejected, or refused because their sender was dead.
        Rejected = "rejected", "orders";
        /// Pushes that found an inbox or a return ring full.
        Full = "full", "pushes";
        /// Invalid messages of peers, and reports that found the return ring full.
        ProtocolErrors = "protocol-errors", "messages";
        /// Mean duration of the extra work that the orchestrator did for an order.
        Work = "work", "ps";
        /// Blocks of hand-offs used for the first time; 0 for techniques that never allocate.
        BlocksFresh = "blocks-fresh", "blocks";
        /// How often the contended hand-offs reused a block.
        BlocksReused = "blocks-reused", "blocks";
        /// Reports received from the gateways.
        Reports = "reports", "reports";
        /// Reports that were pushed into a return ring.
        Returned = "returned", "reports";
        /// Orders that are pending because their gateway's inbox is full.
        Waiting = "waiting", "orders";
        /// Maximum number of orders pending at once.
        WaitingPeak = "waiting-peak", "orders";
        /// Records in the orchestrator's journal.
        Journaled = "journalled", "messages";
        /// Records that were in the orchestrator's journal when it was restarted.
        Recovered = "recovered", "messages";
        /// Recovered records that were replayed; the others were covered by a snapshot.
        Replayed = "replayed", "messages";
    }
}

counters! {
    /// The counters of a gateway.
    GatewayCounter {
        /// Orders received from the orchestrator.
        Received = "received", "orders";
        /// Reports sent to the orchestrator.
        Completed = "completed", "reports";
        /// Pushes that found the completion ring full.
        Full = "full", "pushes";
        /// Invalid messages from the orchestrator.
        ProtocolErrors = "protocol-errors", "messages";
        /// Messages sent to the venue, if there is a session: the number of the last one.
        SessionSent = "session-sent", "messages";
        /// Messages received from the venue: the number of the last one.
        SessionReceived = "session-received", "messages";
        /// Invalid messages of the venue, which were ignored.
        VenueErrors = "venue-errors", "messages";
        /// Orders that were closed because the venue did not answer in time.
        Stuck = "stuck", "orders";
        /// Orders that the venue refused, or that found the venue's session down.
        Refused = "refused", "orders";
        /// Number of times the session went down.
        Disconnects = "disconnects", "sessions";
    }
}

counters! {
    /// The counters of an exchange.
    ExchangeCounter {
        /// Orders, cancels and replaces received from the sessions.
        Received = "received", "orders";
        /// Reports sent through the sessions.
        Completed = "completed", "reports";
        /// Trades that the exchange executed.
        Trades = "trades", "messages";
        /// Maximum number of orders in the exchange's books at once.
        OpenPeak = "open-peak", "orders";
        /// Orders and requests that the exchange refused.
        Refused = "refused", "orders";
        /// Pushes that found the ring of a session full.
        Full = "full", "pushes";
        /// Invalid messages from gateways.
        ProtocolErrors = "protocol-errors", "messages";
        /// Records in the exchange's journal.
        Journaled = "journalled", "messages";
        /// Records that were in the exchange's journal when its last incarnation began.
        Recovered = "recovered", "messages";
        /// Recovered records that were replayed; the others were covered by a snapshot.
        Replayed = "replayed", "messages";
        /// Top-of-book updates written to the exchange's market-data board.
        TopOfBookUpdates = "touches", "versions";
    }
}

counters! {
    /// The counters of a producer of a queue benchmark.
    ProducerCounter {
        /// Events pushed into every queue.
        Sent = "sent", "events";
        /// Number of times the producer had to wait for a free slot.
        Waits = "waits", "waits";
        /// Number of times the producer returned from a yield or a sleep.
        Wakes = "wakes", "wakes";
        /// The producer's longest wait for a free slot.
        LongestWait = "longest-wait", "ticks";
        /// The wrapping sum of the checksums of the producer's events.
        Checksum = "checksum", "sum";
    }
}

counters! {
    /// The counters of a consumer of a queue benchmark.
    ConsumerCounter {
        /// Events that the consumer took from its queue.
        Taken = "taken", "events";
        /// Number of times the consumer found its queue empty.
        Waits = "waits", "waits";
        /// Number of times the consumer returned from a yield or a sleep.
        Wakes = "wakes", "wakes";
        /// The wrapping sum of the checksums of the events that the consumer took.
        Checksum = "checksum", "sum";
        /// Events with a wrong checksum or an unknown producer.
        Damaged = "damaged", "events";
        /// Events that arrived after a later event of their producer.
        Disordered = "disordered", "events";
        /// Numbers of events that were skipped and never arrived.
        Missing = "missing", "events";
    }
}

counters! {
    /// The counters of the writer of a board benchmark, over all its incarnations.
    WriterCounter {
        /// Values written to the board.
        Written = "written", "values";
    }
}

counters! {
    /// The counters of a reader of a board benchmark.
    ReaderCounter {
        /// Values that the reader read.
        Read = "read", "values";
        /// Versions that were overwritten before they were read.
        Missed = "missed", "versions";
        /// Values whose content does not match their version.
        Torn = "torn", "values";
        /// Reads given up because the writer overtook them.
        Overtaken = "overtaken", "reads";
    }
}
