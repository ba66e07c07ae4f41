//! What an exchange stamps of an order within its venue's time: when it took it from its session, and when it gave each report.
//!
//! An order that was at an exchange has both of its first report, between t4 and t5 and in their order, by the exchange of its venue
//! and by no other; each further report has the second before its t5. So the three parts of an order sum to its venue_service.

use super::chain::Chains;
use super::deaths::Deaths;
use super::row::{AtExchange, OrderRow, bit};
use super::table::{Lane, Table};
use super::violation::{Findings, ViolationKind, name_of};
use crate::logfile::file_name;
use crate::record::{Outcome, RunRecord};
use protocol::plan::{Plan, Role};
use protocol::stamps::Point;
use protocol::wire::OrderId;

/// What the checks need to know about the run.
struct Context<'a> {
    plan: &'a Plan,
    /// A stamp may be missing, or too late: the run broke off, or gateways check what their venues say.
    is_excused: bool,
    /// Points that may be missing, because the threads that stamp them are in processes that died.
    gone: u64,
}

impl Context<'_> {
    /// The thread of the exchange that an order was at; none where its venue is no exchange, or no gateway had it.
    fn exchange(&self, row: &OrderRow) -> Option<usize> {
        let (gateway, _) = row.pushed()?;
        let trading = self.plan.trading();
        let venue = trading.venue_of(gateway as u16);
        trading.is_book(venue).then(|| self.plan.thread_of(Role::Exchange(venue)))?
    }

    /// Whether a gateway may answer for its exchange: one that checks its session closes what the venue says nothing about, and refuses
    /// what is above the venue's message limit. What the exchange says of such an order may come too late.
    fn is_checked(plan: &Plan) -> bool {
        plan.trading().venue_limit > 0 || plan.faults.iter().any(|fault| fault.kind.is_of_venue())
    }

    fn owes(&self, point: Point) -> bool {
        !self.is_excused && self.gone & bit(point) == 0
    }
}

/// Looks at every order that an exchange had, or should have had. One that breaks a rule counts in no figure.
pub(super) fn check(
    table: &mut Table,
    chains: &Chains,
    record: &RunRecord,
    deaths: &Deaths,
    gone: u64,
    findings: &mut Findings,
) {
    let plan = &record.plan;
    let is_excused = matches!(record.outcome, Outcome::Failed { .. }) || Context::is_checked(plan);
    let context = Context { plan, is_excused, gone };
    let has_book = plan.trading().books().next().is_some();
    for lane in table.lanes.iter_mut().filter(|lane| !lane.is_excused) {
        if has_book || lane.has_exchange() {
            check_lane(lane, &context, findings);
        }
    }
    for (id, number, report) in chains.iter().filter(|(id, ..)| !deaths.is_untrusted(id.strategy())) {
        let exchange = table.row(id).and_then(|row| context.exchange(row));
        let what = match (report.given, report.at(Point::GatewayDone)) {
            (Some((_, thread)), _) if exchange != Some(thread as usize) => {
                (ViolationKind::Misplaced, foreign(plan, thread as usize))
            }
            (None, Some(_)) if exchange.is_some() && context.owes(Point::ExchangeDone) => {
                (ViolationKind::MissingPoint, format!("has no {}", Point::ExchangeDone.name()))
            }
            (Some((given, _)), Some(pushed)) if pushed < given && !is_excused => {
                (ViolationKind::TimeOrder, "has a t5 before the exchange gave it".into())
            }
            (Some((given, _)), _)
                if table.at_exchange(id).received().is_some_and(|received| given < received) =>
            {
                (ViolationKind::TimeOrder, "was given before the exchange had the order".into())
            }
            _ => continue,
        };
        findings.add(None, what.0, || format!("{}: report {number} {}", name_of(id), what.1));
    }
}

fn check_lane(lane: &mut Lane, context: &Context, findings: &mut Findings) {
    for sequence in 0..lane.rows.len() as u64 {
        let (at, row) = (lane.at_exchange(sequence), &mut lane.rows[sequence as usize]);
        if let Some((kind, what)) = fault(row, at, context) {
            row.clear_measured();
            let id = OrderId::new(lane.strategy, lane.epoch, sequence);
            findings.add(None, kind, || format!("{}: {what}", name_of(id)));
        }
    }
}

/// What is wrong with the stamps of an order.
fn fault(row: &OrderRow, at: AtExchange, context: &Context) -> Option<(ViolationKind, String)> {
    let exchange = context.exchange(row);
    if at.is_empty() && (exchange.is_none() || !row.has(Point::GatewayDone)) {
        return None;
    }
    if !at.is_empty() && exchange != Some(at.thread()) {
        let is_lost = !row.has(Point::GatewayRecv) && !context.owes(Point::GatewayRecv);
        return (!is_lost).then(|| (ViolationKind::Misplaced, foreign(context.plan, at.thread())));
    }
    let was_answered = row.has(Point::GatewayDone);
    let missing = |point| Some((ViolationKind::MissingPoint, format!("has no {}", Point::name(point))));
    if at.received().is_none() && (was_answered || at.done().is_some()) && context.owes(Point::ExchangeRecv) {
        return missing(Point::ExchangeRecv);
    }
    if at.done().is_none() && was_answered && context.owes(Point::ExchangeDone) {
        return missing(Point::ExchangeDone);
    }
    let way = [
        (Point::GatewayRecv, row.at(Point::GatewayRecv)),
        (Point::ExchangeRecv, at.received()),
        (Point::ExchangeDone, at.done()),
        (Point::GatewayDone, row.at(Point::GatewayDone).filter(|_| !context.is_excused)),
    ];
    let mut before: Option<(Point, u64)> = None;
    for (point, ticks) in way.into_iter().filter_map(|(point, ticks)| Some((point, ticks?))) {
        if let Some((earlier, since)) = before
            && ticks < since
        {
            let what = format!("{} before {}", point.name(), earlier.name());
            return Some((ViolationKind::TimeOrder, what));
        }
        before = Some((point, ticks));
    }
    None
}

/// The stamps of an exchange that the order was not at.
fn foreign(plan: &Plan, thread: usize) -> String {
    let file = plan.threads.get(thread).map_or_else(String::new, |thread| file_name(&thread.name));
    format!("is in {file}, and no gateway of that exchange had it")
}
