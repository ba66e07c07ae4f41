//! Descriptions of the records in the journals of an engine and of exchanges.

use journal::Record;
use orchestrator::Input;
use protocol::commands::CommandEntry;
use protocol::reject::Reject;
use protocol::supervision::Incarnation;
use protocol::wire::{
    CancelScope, Instruction, Message, Operation, Order, OrderStatus, OrderType, Report, Side,
};
use record::numbers::count;
use std::path::Path;
use venue::JournalEntry;

/// Returns the function that describes the records of the journal in a folder of a run. The
/// folder's name shows which role wrote it; records of other journals have no description.
pub(super) fn describer(folder: &Path) -> fn(Record<'_>) -> Option<String> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if name == "journal-engine" {
        describe_input
    } else if name.starts_with("journal-venue-") {
        describe_entry
    } else {
        |_| None
    }
}

/// Describes a record of an engine's journal.
fn describe_input(record: Record<'_>) -> Option<String> {
    let lives = |life: Incarnation| match life.fenced {
        true => format!("is fenced, incarnation {}", life.epoch),
        false => format!("begins incarnation {}", life.epoch),
    };
    let sender =
        |from: Option<_>| from.map_or_else(|| "a strategy".to_owned(), |from| format!("strategy {from}"));
    let (input, _) = Input::from_record(&record).ok()?;
    Some(match input {
        Input::Order { message, .. } => order_or_invalid(message),
        Input::Report { message, .. } => match Report::from_message(message) {
            Ok(report) => describe_report(&report),
            Err(error) => format!("invalid report: {error}"),
        },
        Input::Lifecycle { strategy, life } => format!("strategy {strategy} {}", lives(life)),
        Input::Retired { strategy } => format!("strategy {strategy} is drained"),
        Input::GatewayLife { gateway, life } => format!("gateway {gateway} {}", lives(life)),
        Input::GatewayDrained { gateway } => format!("gateway {gateway} is drained"),
        Input::Command { number, command } => {
            format!("command {number}: {}", CommandEntry { number, ticks: 0, pid: 0, command })
        }
        Input::Recalled { message } => format!("recalled: {}", order_or_invalid(message)),
        Input::Violation { from, why } => format!("violation of {}: {why}", sender(from)),
    })
}

/// Describes a record of an exchange's journal.
fn describe_entry(record: Record<'_>) -> Option<String> {
    let (entry, _) = JournalEntry::from_record(&record).ok()?;
    Some(match entry {
        JournalEntry::Time => "time passes".to_owned(),
        JournalEntry::Close => "trading closes".to_owned(),
        JournalEntry::Message(_, message) => match Instruction::from_message(message) {
            Ok(Instruction::Order(order)) => describe_order(&order),
            Ok(Instruction::CancelAll(CancelScope { strategy, instrument })) => {
                let of = strategy.map_or_else(String::new, |id| format!(" of strategy {}", id.strategy()));
                let within = instrument.map_or_else(String::new, |index| format!(" in instrument {index}"));
                format!("cancel all{of}{within}")
            }
            Err(error) => format!("invalid message: {error}"),
        },
    })
}

fn order_or_invalid(message: Message) -> String {
    match Order::from_message(message) {
        Ok(order) => describe_order(&order),
        Err(error) => format!("invalid order: {error}"),
    }
}

fn describe_order(order: &Order) -> String {
    let Order { id, request } = order;
    let target = || {
        let id = id.to_string();
        let strategy = id.split('/').next().unwrap_or_default();
        format!("{strategy}/{}", request.target)
    };
    let (amount, at) = (quantity(request.quantity), price(request.price));
    match request.operation {
        Operation::New => {
            let at = match request.terms.order_type {
                OrderType::Limit => at,
                OrderType::Market => "market".to_owned(),
                OrderType::Stop => "stop".to_owned(),
                OrderType::StopLimit => format!("{at}, stop"),
            };
            format!("order {id} new {} {amount} at {at}", side(request.side))
        }
        Operation::Cancel => format!("order {id} cancel {}", target()),
        Operation::Replace => format!("order {id} replace {} with {amount} at {at}", target()),
        Operation::MassCancel => format!("order {id} cancel all in instrument {}", request.instrument),
    }
}

fn describe_report(report: &Report) -> String {
    let (id, side, at) = (report.id, side(report.side), price(report.price));
    let (filled, open) = (quantity(report.filled), quantity(report.leaves));
    let what = match report.status {
        OrderStatus::Filled => format!("filled {side} {filled} at {at}"),
        OrderStatus::PartiallyFilled => format!("partially filled {side} {filled} at {at}, {open} open"),
        OrderStatus::Rejected => match Reject::from_code(report.reason) {
            Some(reason) => format!("rejected: {}", reason.name()),
            None => format!("rejected: reason {}", report.reason),
        },
        OrderStatus::Accepted => format!("accepted {side} {open} at {at}"),
        OrderStatus::Replaced => format!("replaced by {side} {open} at {at}"),
        OrderStatus::Restated => format!("restated, {open} open"),
        OrderStatus::Cancelled => "cancelled".to_owned(),
        OrderStatus::Refused => format!("refused: reason {}", report.reason),
        OrderStatus::Expired => "expired".to_owned(),
        OrderStatus::Triggered => "triggered".to_owned(),
        OrderStatus::Done => "done".to_owned(),
    };
    format!("report {id} {what}")
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Buy => "buy",
        Side::Sell => "sell",
    }
}

/// Formats a quantity of 1e-8 units as a decimal number.
fn quantity(units: u64) -> String {
    decimal(units / 100_000_000, &format!("{:08}", units % 100_000_000))
}

/// Formats a price in cents.
fn price(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    let cents = cents.unsigned_abs();
    format!("{sign}{}", decimal(cents / 100, &format!("{:02}", cents % 100)))
}

fn decimal(whole: u64, fraction: &str) -> String {
    let text = format!("{}.{fraction}", count(whole));
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::index::{GatewayIndex, StrategyIndex};
    use protocol::wire::{OrderId, OrderRequest};

    fn order() -> Order {
        let request = OrderRequest {
            side: Side::Buy,
            price: 4_130_000,
            quantity: 300_000_000,
            ..OrderRequest::to_venue(0)
        };
        request.with_id(OrderId::new(0, 0, 9))
    }

    fn described(folder: &str, payload: &[u8]) -> Option<String> {
        describer(Path::new(folder))(Record { sequence: 1, payload })
    }

    fn of_engine(input: Input) -> String {
        described("/run/journal-engine", &input.encode(77, <[u8]>::to_vec)).unwrap()
    }

    #[test]
    fn engine_record_is_described_by_its_input() {
        let new = Input::Order { from: None, message: order().to_message() };
        assert_eq!(of_engine(new), "order 0/9 new buy 3 at 41,300");
        let mut cancel = order();
        (cancel.request.operation, cancel.request.target) = (Operation::Cancel, 5);
        let cancel = Input::Order { from: Some(StrategyIndex(0)), message: cancel.to_message() };
        assert_eq!(of_engine(cancel), "order 0/9 cancel 0/5");
        let report = Report { filled: 150_000_000, leaves: 1, price: -5, ..Report::full_fill(&order()) };
        let message = Report { status: OrderStatus::PartiallyFilled, ..report }.to_message();
        let filled = Input::Report { gateway: Some(GatewayIndex(0)), message };
        assert_eq!(of_engine(filled), "report 0/9 partially filled buy 1.5 at -0.05, 0.00000001 open");
        let life = Incarnation { epoch: 1, fenced: true };
        let fenced = Input::Lifecycle { strategy: StrategyIndex(2), life };
        assert_eq!(of_engine(fenced), "strategy 2 is fenced, incarnation 1");
        assert_eq!(
            of_engine(Input::Order { from: None, message: [0; 7] }),
            "invalid order: unknown operation code"
        );
    }

    #[test]
    fn only_journals_of_runs_are_described() {
        // A message of session 0, as venue::JournalEntry encodes it.
        let words = [vec![2, 77], order().to_message().to_vec()].concat();
        let payload: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        assert_eq!(described("/run/journal-venue-3", &payload).unwrap(), "order 0/9 new buy 3 at 41,300");
        assert_eq!(described("/run/journal-venue-3", &payload[1..]), None);
        assert_eq!(described("/run/log", &payload), None);
    }
}
