//! How an exchange comes back: it carries out again what its journal says, and sends what its
//! predecessor has not sent.
//!
//! What the dead one had done is read off from what it left behind. Everything that an exchange
//! gives has its place in an order that the journal alone decides, so counts are enough:
//!
//! | left behind | what follows from it |
//! |---|---|
//! | messages in a session's ring that is read | those that the journal has are passed over, the others are taken |
//! | messages in a session's ring that is written | so many reports of that session were sent |
//! | stamps of reports in the log | so many reports of all sessions have theirs |
//! | stamps of orders in the log | one more than the journal has orders: the last one was about to be written down |
//! | trades on the tape | so many are there |
//! | versions on the board | the log may lack the last one of an instrument, and gets it |
//! | triggers of orders in the log | so it may the last order's |

use crate::agent::{Close, ExchangeAgent, HeldReport, told};
use crate::market_board::MarketBoard;
use crate::session::SessionEnd;
use crate::shadow::{ExchangeReplica, Known, SessionPast};
use exchange::Exchange;
use journal::{Options, Reader, Record as Written, Recovered, RecoveryError, State, Watermark, Writer};
use protocol::market::Quote;
use protocol::stamps::{Point, Record};
use protocol::wire::{Instruction, Message, Order, OrderId, Report};
use std::path::Path;

/// What the predecessors of an exchange have left behind; nothing where there was none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputWatermarks {
    /// Orders that have their stamp.
    pub orders_stamped: u64,
    /// The last of them.
    pub last_stamped: Option<OrderId>,
    /// Reports that have their stamp.
    pub reports_stamped: u64,
    /// Trades on the tape.
    pub trades: u64,
    /// The last order whose trigger is in the log.
    pub last_triggered: Option<OrderId>,
    /// The last version of each instrument's touch that is in the log.
    pub touches: Vec<u64>,
}

impl ExchangeReplica {
    /// Makes the exchange that takes the place of a crashed one, or the first one with a journal.
    /// Reads what is left of the journal in `folder`: after what `followed` has read, or from a
    /// snapshot or the start on.
    ///
    /// # Errors
    /// See [`RecoveryError`].
    ///
    /// # Panics
    /// If the market is for another number of sessions.
    pub fn promote<T: Close>(
        mut self,
        followed: Option<Reader>,
        (folder, options): (&Path, &Options),
        estate: &OutputWatermarks,
        (mut sessions, mut tape, mut board): (Vec<SessionEnd>, T, Option<MarketBoard>),
    ) -> Result<ExchangeAgent<T>, RecoveryError> {
        let published = sessions.iter().map(SessionEnd::published).collect();
        self.past.known = Some(Known { published, trades: estate.trades });
        self.past.drop_gone();
        let mut close = |books: &Exchange| tape.close(books);
        if let Some((sequence, payload)) = self.closing.take() {
            self.act(&Written { sequence, payload: &payload }, &mut close)?;
        }
        let journal = Writer::recover(folder, options, followed, |part| match part {
            Recovered::Record { sequence, payload } => self.act(&Written { sequence, payload }, &mut close),
            snapshot => self.recover(snapshot),
        })?;
        let Self { market, past, .. } = self;
        let mut held = Vec::new();
        for (session, (end, SessionPast { counts, reports })) in
            sessions.iter_mut().zip(past.sessions).enumerate()
        {
            end.inherit(session, counts, &reports)?;
            held.extend(reports.into_unconfirmed());
        }
        held.sort_unstable_by_key(|(place, _)| *place);
        let traded = past.trades.produced();
        past.trades.into_unconfirmed().iter().for_each(|(ticks, trade)| tape.trade(trade, *ticks));
        if let Some(board) = &mut board {
            for ((last, trades), instrument) in past.touches.iter().zip(0..) {
                let last = last.map(|(price, quantity)| Quote { price, quantity });
                board.recall(instrument, last, *trades);
            }
        }
        let order = past.order.and_then(|message| match Instruction::from_message(message) {
            Ok(Instruction::Order(order)) => Some(order),
            _ => None,
        });
        let mut agent = ExchangeAgent::around(market, sessions, tape);
        agent.doors.untold = estate.untold(agent.doors.venue, board.as_ref(), order);
        agent.doors.held = held.into_iter().filter_map(|held| estate.held(held)).collect();
        (agent.doors.completed, agent.doors.traded, agent.doors.faults) =
            (past.completed, traded, past.faults);
        agent.doors.is_closed = agent.market.is_closed();
        agent.received = past.received;
        agent.is_stamped = estate.last_stamped.filter(|_| estate.orders_stamped > past.received);
        agent.journal = Some(journal);
        Ok(agent.telling(board))
    }
}

impl OutputWatermarks {
    /// A report that was not sent, with its place among all reports. Recovered records are durable.
    fn held(&self, (place, message): (u64, Message)) -> Option<HeldReport> {
        let report = Report::from_message(message).ok()?;
        Some(HeldReport { report, record: 0, is_stamped: place < self.reports_stamped })
    }

    /// What a crashed predecessor did and had no time to log: versions of touches, and the trigger
    /// of its last order.
    fn untold(&self, venue: u16, board: Option<&MarketBoard>, last: Option<Order>) -> Vec<Record> {
        let Some(board) = board else { return Vec::new() };
        let logged = self.touches.iter().copied().chain(core::iter::repeat(0));
        let versions = board.last_written().zip(logged);
        let touches = versions.filter(|(written, logged)| written.version > *logged);
        let mut untold: Vec<Record> = touches.map(|(written, _)| told(venue, written)).collect();
        let trigger = last.filter(|order| order.trigger > 0 && self.last_triggered != Some(order.id));
        untold.extend(trigger.map(|Order { id, trigger: value, .. }| Record {
            point: Point::Trigger,
            id,
            detail: 0,
            value,
        }));
        untold
    }
}

impl<T> ExchangeAgent<T> {
    /// How far its journal is on the disk, if it has one.
    pub fn watermark(&self) -> Option<Watermark> {
        self.journal.as_ref().map(Writer::watermark)
    }

    /// How many orders are in its books.
    pub fn open_orders(&self) -> usize {
        self.market.exchange().open_orders()
    }
}
