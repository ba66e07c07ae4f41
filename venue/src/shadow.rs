//! An exchange without doors: it carries out what a journal says, sends nothing, and keeps what may not have gone out.
//!
//! It is the state between two records. As bytes it is a snapshot; beside a living exchange it follows that one's journal, writes the
//! snapshots (so that the exchange never stands still for one), and is what a successor goes on from.

use crate::answers::Trade;
use crate::carry::{Counted, carry_out};
use crate::commands::{RecoveryError, Told};
use crate::market::{At, Market, MarketSetup, MarketState, Outcome};
use crate::session::Counts;
use exchange::Exchange;
use exchange::StateError;
use journal::{Reader, Record, State, codec};
use protocol::wire::{Instruction, Message, Report};
use serde::{Deserialize, Serialize};
use shm::clock::Timebase;

/// The version of a snapshot's form.
const VERSION: u32 = 1;

/// What an exchange has given up to a record, and what of that may not have gone out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Past {
    pub sessions: Vec<Counts>,
    pub received: u64,
    pub completed: u64,
    pub traded: u64,
    pub faults: u64,
    /// Reports that may not have been sent, in their order.
    pub unsent: Vec<Unsent>,
    /// When the last record was carried out, in ticks.
    pub now: u64,
    /// The order that it was, if it was one.
    pub order: Option<Message>,
    /// Its trades: those of all records before it are on the tape.
    pub trades: Vec<Trade>,
    /// The last trade of each instrument, and how many there were.
    pub touches: Vec<(Option<(i64, u64)>, u64)>,
}

/// A report that may not have been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Unsent {
    pub session: u16,
    /// Its place among the reports of its session, from 0.
    pub number: u64,
    /// Its place among all reports, from 0.
    pub place: u64,
    report: Message,
}

impl Unsent {
    pub fn report(&self) -> Option<Report> {
        Report::from_message(self.report).ok()
    }
}

impl AsMut<Past> for Past {
    fn as_mut(&mut self) -> &mut Past {
        self
    }
}

impl Counted for Past {
    fn counts(&mut self, session: usize) -> &mut Counts {
        &mut self.sessions[session]
    }

    fn fault(&mut self) {
        self.faults += 1;
    }
}

impl Outcome for Past {
    fn take(&mut self, reports: &[Report], trades: &[Trade]) {
        for report in reports {
            let session = usize::from(report.id.strategy()) % self.sessions.len();
            let number = self.sessions[session].given;
            self.sessions[session].given += 1;
            let (session, place) = (session as u16, self.completed);
            self.unsent.push(Unsent { session, number, place, report: report.to_message() });
            self.completed += 1;
        }
        for trade in trades {
            self.traded += 1;
            self.trades.push(*trade);
            if let Some((last, count)) = self.touches.get_mut(usize::from(trade.instrument)) {
                (*last, *count) = (Some((trade.price, trade.quantity)), *count + 1);
            }
        }
    }

    fn close(&mut self, _: &Exchange) {}
}

/// A snapshot, decoded.
#[derive(Serialize, Deserialize)]
struct Saved {
    past: Past,
    market: MarketState,
}

/// The state of an exchange behind a record of its journal.
pub struct Shadow {
    pub(crate) market: Market,
    pub(crate) past: Past,
    time: Timebase,
    /// That trading is over, with its time: what comes then is a successor's.
    pub(crate) closing: Option<u64>,
}

/// What one that has followed a journal leaves to the exchange that goes on from its state, beside the market.
pub(crate) struct Followed {
    pub past: Past,
    pub closing: Option<u64>,
    pub reader: Reader,
}

impl Shadow {
    /// Before the first record. `time` is the run's.
    pub fn new(setup: MarketSetup, time: Timebase) -> Self {
        let past = Past {
            sessions: vec![Counts::default(); setup.sessions],
            touches: vec![(None, 0); setup.instruments.into()],
            ..Past::default()
        };
        Self { market: Market::new(setup), past, time, closing: None }
    }

    /// Whether there are reports of which it is not known that they were sent.
    pub fn has_unsent(&self) -> bool {
        !self.past.unsent.is_empty()
    }

    /// So many reports of each session were sent: those need not be kept.
    pub fn were_sent(&mut self, published: &[u64]) {
        self.past.unsent.retain(|unsent| {
            published.get(usize::from(unsent.session)).is_none_or(|published| unsent.number >= *published)
        });
    }

    /// Carries out what the exchange was told, unless that is that trading is over.
    pub(crate) fn act(&mut self, told: Told, now: u64) -> Result<(), RecoveryError> {
        let Self { market, past, time, closing } = self;
        let at = At { now, time: *time };
        if told == Told::Close {
            *closing = Some(now);
            return Ok(());
        }
        past.trades.clear();
        (past.now, past.order) = (now, None);
        match told {
            Told::Time => market.time(at, past),
            Told::Message(session, _) if session >= past.sessions.len() => {
                return Err(RecoveryError::Session(session));
            }
            Told::Message(session, message) => {
                let orders = carry_out(market, session, message, at, past);
                past.order = (orders > 0).then_some(message);
                past.received += orders;
            }
            Told::Close => {}
        }
        Ok(())
    }
}

impl State for Shadow {
    type Error = RecoveryError;

    fn restore(&mut self, sequence: u64, bytes: &[u8]) -> Result<(), RecoveryError> {
        self.past = restored(&mut self.market, sequence, bytes)?;
        Ok(())
    }

    fn carry_out(&mut self, record: Record<'_>) -> Result<(), RecoveryError> {
        let (told, now) = Told::of(&record)?;
        self.act(told, now)
    }

    fn encode(&self) -> Result<Vec<u8>, RecoveryError> {
        let saved = Saved { past: self.past.clone(), market: self.market.state() };
        Ok(codec::encode(VERSION, &saved)?)
    }

    fn size(&self) -> u64 {
        self.market.exchange().open_orders() as u64
    }

    fn is_over(&self) -> bool {
        self.closing.is_some()
    }
}

/// Brings a market into the state that a snapshot has; what is known of the past beside it.
pub(crate) fn restored(market: &mut Market, sequence: u64, bytes: &[u8]) -> Result<Past, RecoveryError> {
    let saved = codec::decode::<Saved>(VERSION, bytes);
    let Saved { past, market: state } = saved.map_err(|error| RecoveryError::Encoded(sequence, error))?;
    let wrong = |error| RecoveryError::State(sequence, error);
    let (sessions, instruments) = (market.sessions(), usize::from(market.instruments()));
    if past.sessions.len() != sessions || past.touches.len() != instruments {
        return Err(wrong(StateError::Sessions));
    }
    if past.unsent.iter().any(|unsent| usize::from(unsent.session) >= sessions || unsent.report().is_none()) {
        return Err(wrong(StateError::Sessions));
    }
    market.restore(state).map_err(wrong)?;
    Ok(past)
}

/// The order of the last record, if it was one.
pub(crate) fn last_order(past: &Past) -> Option<Instruction> {
    past.order.and_then(|message| Instruction::from_message(message).ok())
}
