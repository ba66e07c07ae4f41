//! How an exchange comes back: it carries out again what its journal says, and sends what its predecessor has not sent.
//!
//! What the dead one had done is read off from what it left behind. Everything that an exchange gives has its place in an order that
//! the journal alone decides, so counts are enough:
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

use crate::agent::{Close, Doors, ExchangeAgent, HeldReport, told};
use crate::answers::Trade;
use crate::carry::carry_out;
use crate::commands::{RecoveryError, Told};
use crate::market::{At, Outcome};
use crate::session::{Counts, SessionEnd};
use crate::shadow::{Followed, Past, Shadow, last_order, restored};
use exchange::Exchange;
use exchange::StateError;
use exchange::command::Command;
use journal::{Options, Reader, Record as Written, Recovered, Watermark, Writer};
use protocol::market::Quote;
use protocol::stamps::{Point, Record};
use protocol::wire::{Instruction, Order, OrderId, Report};
use shm::clock::Timebase;
use std::path::Path;

/// What the predecessors of an exchange have left behind; nothing where there was none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estate {
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

/// What comes of carrying out again.
struct Again<'a, T> {
    doors: &'a mut Doors<T>,
    estate: &'a Estate,
    now: u64,
}

impl<T> AsMut<Doors<T>> for Again<'_, T> {
    fn as_mut(&mut self) -> &mut Doors<T> {
        self.doors
    }
}

impl<T: Close> Outcome for Again<'_, T> {
    fn expect(&mut self, command: &Command, exchange: &Exchange) {
        if let Some(board) = &mut self.doors.board {
            board.expect(command, exchange);
        }
    }

    fn take(&mut self, reports: &[Report], trades: &[Trade]) {
        for report in reports {
            let is_stamped = self.doors.completed < self.estate.reports_stamped;
            self.doors.completed += 1;
            let session = usize::from(report.id.strategy()) % self.doors.sessions.len();
            // Recovered records are settled.
            if !self.doors.sessions[session].was_sent() {
                self.doors.held.push_back(HeldReport { report: *report, record: 0, is_stamped });
            }
        }
        for trade in trades {
            if self.doors.traded >= self.estate.trades {
                self.doors.tape.trade(trade, self.now);
            }
            self.doors.traded += 1;
            if let Some(board) = &mut self.doors.board {
                board.traded(trade.instrument, trade.price, trade.quantity);
            }
        }
    }

    fn close(&mut self, exchange: &Exchange) {
        self.doors.is_closed = true;
        self.doors.tape.close(exchange);
    }
}

impl<T: Close> Doors<T> {
    /// Takes over what is known of the past, and what of that has not gone out.
    fn inherit(&mut self, past: Past, estate: &Estate, sequence: u64) -> Result<u64, RecoveryError> {
        let given: Vec<u64> = past.sessions.iter().map(|counts| counts.given).collect();
        for (end, counts) in self.sessions.iter_mut().zip(past.sessions) {
            end.counts = Counts { given: counts.given.min(end.published()), ..counts };
        }
        (self.completed, self.faults) = (past.completed, past.faults);
        let mut next: Vec<u64> = self.sessions.iter().map(|end| end.counts.given).collect();
        for unsent in &past.unsent {
            let Some(next) = next.get_mut(usize::from(unsent.session)) else { continue };
            if unsent.number < *next {
                continue;
            }
            let report = unsent.report().filter(|_| unsent.number == *next);
            let report = report.ok_or(RecoveryError::State(sequence, StateError::Sessions))?;
            *next += 1;
            let is_stamped = unsent.place < estate.reports_stamped;
            // Recovered records are settled.
            self.held.push_back(HeldReport { report, record: 0, is_stamped });
        }
        if next != given {
            return Err(RecoveryError::State(sequence, StateError::Sessions));
        }
        let before = past.traded.saturating_sub(past.trades.len() as u64);
        for (trade, number) in past.trades.iter().zip(before..) {
            if number >= estate.trades {
                self.tape.trade(trade, past.now);
            }
        }
        self.traded = past.traded;
        if let Some(board) = &mut self.board {
            for ((last, trades), instrument) in past.touches.iter().zip(0..) {
                let last = last.map(|(price, quantity)| Quote { price, quantity });
                board.recall(instrument, last, *trades);
            }
        }
        Ok(past.received)
    }
}

impl<T: Close> ExchangeAgent<T> {
    /// An exchange in the state of one that has followed the journal so far, with what it was read with ([`journal::Follower::into_parts`]);
    /// [`ExchangeAgent::journalled`] takes it on from there.
    ///
    /// # Panics
    /// If the state's market is for another number of sessions.
    pub fn behind((followed, reader): (Shadow, Reader), sessions: Vec<SessionEnd>, tape: T) -> Self {
        let Shadow { market, past, closing, .. } = followed;
        let mut agent = Self::around(market, sessions, tape);
        agent.followed = Some(Box::new(Followed { past, closing, reader }));
        agent
    }

    /// How far its journal is on the disk, if it has one.
    pub fn watermark(&self) -> Option<Watermark> {
        self.journal.as_ref().map(Writer::watermark)
    }

    /// How many orders are in its books.
    pub fn open_orders(&self) -> usize {
        self.market.exchange().open_orders()
    }

    /// The same with a journal in that folder, and in the state in which the journal has it. `time` is the run's.
    ///
    /// # Errors
    /// As [`RecoveryError`].
    pub fn journalled(
        mut self,
        folder: &Path,
        options: &Options,
        time: Timebase,
        estate: &Estate,
    ) -> Result<Self, RecoveryError> {
        let Self { market, doors, received, followed, .. } = &mut self;
        let mut last = None;
        let mut reader = None;
        if let Some(followed) = followed.take() {
            last = last_order(&followed.past);
            let sequence = followed.reader.due() - 1;
            *received = doors.inherit(followed.past, estate, sequence)?;
            if let Some(now) = followed.closing {
                let _ = market.close(At { now, time }, &mut Again { doors, estate, now });
                last = None;
            }
            reader = Some(followed.reader);
        }
        let journal = Writer::recover(folder, options, reader, |part| {
            let (told, now) = match part {
                Recovered::Record { sequence, payload } => Told::of(&Written { sequence, payload })?,
                Recovered::Snapshot { sequence, state } => {
                    let past = restored(market, sequence, state)?;
                    last = last_order(&past);
                    *received = doors.inherit(past, estate, sequence)?;
                    return Ok(());
                }
            };
            let at = At { now, time };
            last = None;
            let mut again = Again { doors, estate, now };
            match told {
                Told::Time => market.time(at, &mut again),
                Told::Close => drop(market.close(at, &mut again)),
                Told::Message(session, _) if session >= again.doors.sessions.len() => {
                    return Err(RecoveryError::Session(session));
                }
                Told::Message(session, message) => {
                    let orders = carry_out(market, session, message, at, &mut again);
                    last = Instruction::from_message(message).ok().filter(|_| orders > 0);
                    *received += orders;
                }
            }
            Ok(())
        })?;
        for (session, end) in self.doors.sessions.iter_mut().enumerate() {
            end.skip_taken().map_err(|(what, journal, there)| RecoveryError::Short {
                what,
                session,
                journal,
                there,
            })?;
        }
        let board = self.doors.board.as_ref();
        let logged = estate.touches.iter().copied().chain(core::iter::repeat(0));
        let versions = board.into_iter().flat_map(|board| board.last_written()).zip(logged);
        let venue = self.doors.venue;
        let touches = versions.filter(|(written, logged)| written.version > *logged);
        self.doors.untold = touches.map(|(written, _)| told(venue, written)).collect();
        if let Some(Instruction::Order(order)) = last.filter(|_| self.doors.board.is_some())
            && order.trigger > 0
            && estate.last_triggered != Some(order.id)
        {
            let Order { id, trigger: value, .. } = order;
            self.doors.untold.push(Record { point: Point::Trigger, id, detail: 0, value });
        }
        self.is_stamped = estate.last_stamped.filter(|_| estate.orders_stamped > self.received);
        self.journal = Some(journal);
        Ok(self)
    }
}
