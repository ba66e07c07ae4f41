//! Replays an exchange's journal, and sends only what its predecessor has not sent.
//!
//! The journal alone determines the order of all outputs, so counts show what the crashed exchange
//! had sent:
//!
//! | found | meaning |
//! |---|---|
//! | messages in a session's inbound ring | journaled ones are skipped, the others are taken |
//! | messages in a session's outbound ring | number of reports sent in that session |
//! | stamps of reports in the log | number of reports stamped, of all sessions |
//! | stamps of orders in the log | one more than journaled: the last was about to be journaled |
//! | trades on the tape | number of trades recorded |
//! | versions on the board | the log may lack an instrument's last one, which is then logged |
//! | triggers of orders in the log | the last order's may be missing, and is then logged |

use crate::agent::{DeferredReport, ExchangeAgent, TradeTape};
use crate::market_board::MarketBoard;
use crate::replica::{ConfirmedOutput, ExchangeReplica};
use crate::session::SessionEnd;
use exchange::Exchange;
use journal::{Options, Reader, Record as Written, Recovered, RecoveryError, State, Watermark, Writer};
use protocol::market::Quote;
use protocol::stamps::{Point, Record};
use protocol::wire::{Instruction, Message, Order, OrderId, Report};
use std::path::Path;

/// How many orders, reports and trades an exchange's crashed predecessors have stamped or recorded,
/// according to their stamp logs and the trade tape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputWatermarks {
    /// Number of orders that crashed exchanges stamped.
    pub orders_stamped: u64,
    /// Id of the last order that a crashed exchange stamped.
    pub last_stamped: Option<OrderId>,
    /// Number of reports that crashed exchanges stamped.
    pub reports_stamped: u64,
    /// Number of trades on the tape.
    pub trades: u64,
    /// Id of the last order whose trigger is in the log.
    pub last_triggered: Option<OrderId>,
    /// The last version of each instrument's top of book in the log.
    pub touches: Vec<u64>,
}

impl ExchangeReplica {
    /// Turns the replica into the running exchange, after applying the rest of the journal in
    /// `folder`.
    pub fn promote<T: TradeTape>(
        mut self,
        followed: Option<Reader>,
        (folder, options): (&Path, &Options),
        watermarks: &OutputWatermarks,
        (mut sessions, mut tape, mut board): (Vec<SessionEnd>, T, Option<MarketBoard>),
    ) -> Result<ExchangeAgent<T>, RecoveryError> {
        let published = sessions.iter().map(SessionEnd::published).collect();
        self.output.confirmed = Some(ConfirmedOutput { published, trades: watermarks.trades });
        self.output.confirm_known();
        let mut close = |books: &Exchange| tape.close(books);
        if let Some((sequence, payload)) = self.closing.take() {
            self.apply_record(&Written { sequence, payload: &payload }, &mut close)?;
        }
        let journal = Writer::recover(folder, options, followed, |part| match part {
            Recovered::Record { sequence, payload } => {
                self.apply_record(&Written { sequence, payload }, &mut close)
            }
            snapshot => self.recover(snapshot),
        })?;
        let Self { market, output, .. } = self;
        let mut deferred = Vec::new();
        for (index, (end, output)) in sessions.iter_mut().zip(output.sessions).enumerate() {
            end.resume_from(index, output.counts, &output.reports)?;
            deferred.extend(output.reports.into_unconfirmed());
        }
        deferred.sort_unstable_by_key(|(index, _)| *index);
        let traded = output.trades.produced();
        output.trades.into_unconfirmed().iter().for_each(|(ticks, trade)| tape.trade(trade, *ticks));
        if let Some(board) = &mut board {
            for ((last, trades), instrument) in output.touches.iter().zip(0..) {
                let last = last.map(|(price, quantity)| Quote { price, quantity });
                board.restore_trades(instrument, last, *trades);
            }
        }
        let order = output.order.and_then(|message| match Instruction::from_message(message) {
            Ok(Instruction::Order(order)) => Some(order),
            _ => None,
        });
        let mut agent = ExchangeAgent::with_market(market, sessions, tape);
        agent.outputs.unlogged = watermarks.unlogged(board.as_ref(), order);
        agent.outputs.deferred =
            deferred.into_iter().filter_map(|deferred| watermarks.deferred_report(deferred)).collect();
        (agent.outputs.completed, agent.outputs.traded) = (output.completed, traded);
        agent.outputs.is_closed = agent.market.is_closed();
        agent.received = output.received;
        agent.stamped_order = watermarks.last_stamped.filter(|_| watermarks.orders_stamped > output.received);
        agent.journal = Some(journal);
        Ok(agent.with_market_board(board))
    }
}

impl OutputWatermarks {
    /// Returns an unsent report, given with its index. Recovered records are durable.
    fn deferred_report(&self, (index, message): (u64, Message)) -> Option<DeferredReport> {
        let report = Report::from_message(message).ok()?;
        Some(DeferredReport { report, record: 0, is_stamped: index < self.reports_stamped })
    }

    /// Returns unlogged records of a predecessor: versions, and its last order's trigger.
    fn unlogged(&self, board: Option<&MarketBoard>, last: Option<Order>) -> Vec<Record> {
        let Some(board) = board else { return Vec::new() };
        let logged = self.touches.iter().copied().chain(core::iter::repeat(0));
        let versions = board.last_written().zip(logged);
        let touches = versions.filter(|(written, logged)| written.version > *logged);
        let mut records: Vec<Record> = touches.map(|(written, _)| written.record()).collect();
        let trigger = last.filter(|order| order.request.trigger > 0 && self.last_triggered != Some(order.id));
        records.extend(trigger.map(|order| Record {
            point: Point::Trigger,
            id: order.id,
            detail: 0,
            value: order.request.trigger,
        }));
        records
    }
}

impl<T> ExchangeAgent<T> {
    /// Returns a handle for reading up to which record the exchange's journal is durable (safe on
    /// disk); `None` without a journal.
    pub fn watermark(&self) -> Option<Watermark> {
        self.journal.as_ref().map(Writer::watermark)
    }

    /// Returns the number of orders in the exchange's books.
    pub fn open_orders(&self) -> usize {
        self.market.exchange().open_orders()
    }
}
