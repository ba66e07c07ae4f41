//! Messages of a NASDAQ trading day as LOBSTER reconstructs them: the reader of its message files.
//!
//! A line is `seconds,message_type,order_id,quantity,price,direction`. Prices are in dollars times
//! 10,000; the direction is that of the resting order, 1 for buy and -1 for sell.

pub mod book;
pub mod replay;

use exchange::Side;

const HEAD: &str = "seconds,message_type,order_id,quantity,price,direction";
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A type of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 1: a new limit order.
    Submission,
    /// 2: an order loses a part of its quantity.
    PartialCancel,
    /// 3: an order is deleted.
    Deletion,
    /// 4: a displayed order trades.
    Execution,
    /// 5: an order that is not displayed trades.
    HiddenExecution,
    /// 6 and 7: a cross, a trading halt.
    CrossOrHalt,
}

/// A line of a message file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Line in the file, from 1.
    pub line: usize,
    /// Nanoseconds since midnight.
    pub time: u64,
    pub kind: Kind,
    pub id: u64,
    pub quantity: u64,
    pub price: i64,
    /// Side of the resting order.
    pub side: Side,
}

/// Reads seconds. Returns nanoseconds, rounded: files that passed through floating point have up to
/// twelve decimals.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_decimal = (1..=12).contains(&decimals.len()) && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let picos: u64 = is_decimal.then(|| format!("{decimals:0<12}").parse().ok())??;
    seconds.parse::<u64>().ok()?.checked_mul(NANOS_PER_SECOND)?.checked_add((picos + 500) / 1000)
}

fn kind(text: &str) -> Option<Kind> {
    Some(match text {
        "1" => Kind::Submission,
        "2" => Kind::PartialCancel,
        "3" => Kind::Deletion,
        "4" => Kind::Execution,
        "5" => Kind::HiddenExecution,
        "6" | "7" => Kind::CrossOrHalt,
        _ => return None,
    })
}

/// Reads one line.
///
/// # Errors
/// The column that is invalid, and why.
fn message(line: usize, text: &str) -> Result<Message, String> {
    let columns: Vec<&str> = text.split(',').map(str::trim).collect();
    let [seconds, message_type, order_id, quantity, price, direction] = columns[..] else {
        return Err(format!("{} columns instead of 6 ({HEAD})", columns.len()));
    };
    let invalid =
        |column: &str, value: &str, wanted: &str| format!("column {column}: {value:?} is not {wanted}");
    let time = nanoseconds(seconds)
        .ok_or_else(|| invalid("seconds", seconds, "a number of seconds with at most 12 decimals"))?;
    let kind =
        kind(message_type).ok_or_else(|| invalid("message_type", message_type, "a type from 1 to 7"))?;
    // A halt has neither quantity nor price.
    let is_order = kind != Kind::CrossOrHalt;
    let is_valid_quantity = |&quantity: &u64| quantity > 0 || !is_order;
    let is_valid_price = |&price: &i64| price > 0 || !is_order;
    Ok(Message {
        line,
        time,
        kind,
        id: order_id.parse().map_err(|_| invalid("order_id", order_id, "an order number"))?,
        quantity: (quantity.parse().ok().filter(is_valid_quantity))
            .ok_or_else(|| invalid("quantity", quantity, "a number above 0"))?,
        price: (price.parse().ok().filter(is_valid_price))
            .ok_or_else(|| invalid("price", price, "a number above 0"))?,
        side: match direction {
            "1" => Side::Buy,
            "-1" => Side::Sell,
            _ => return Err(invalid("direction", direction, "1 or -1")),
        },
    })
}

/// Reads a message file, with or without a head line.
///
/// # Errors
/// The line and the column that are invalid.
pub fn read(text: &str) -> Result<Vec<Message>, String> {
    let mut messages: Vec<Message> = Vec::new();
    for (number, text) in (1..).zip(text.lines()) {
        if number == 1 && text.trim() == HEAD {
            continue;
        }
        let message = message(number, text).map_err(|why| format!("line {number}, {why}"))?;
        if messages.last().is_some_and(|previous| previous.time > message.time) {
            return Err(format!("line {number}, column seconds: before the time of the previous line"));
        }
        messages.push(message);
    }
    if messages.is_empty() { Err("no message".into()) } else { Ok(messages) }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Message, read};
    use exchange::Side;

    #[test]
    fn message_is_read_with_or_without_head() {
        let line = "34200.5,2,7,30,1000000,-1";
        let read_line = |number| Message {
            line: number,
            time: 34_200_500_000_000,
            kind: Kind::PartialCancel,
            id: 7,
            quantity: 30,
            price: 1_000_000,
            side: Side::Sell,
        };
        assert_eq!(read("34200.499999999996,2,7,30,1000000,-1"), Ok(vec![read_line(1)]));
        assert_eq!(read(line), Ok(vec![read_line(1)]));
        assert_eq!(read(&format!("{}\n{line}\n", super::HEAD)), Ok(vec![read_line(2)]));
    }

    #[test]
    fn halt_has_no_quantity_and_price() {
        let messages = read("34200,7,0,0,-1,-1").unwrap();
        assert_eq!(messages[0].kind, Kind::CrossOrHalt);
    }

    #[test]
    fn invalid_line_names_line_and_column() {
        for (line, why) in [
            ("1.5,1,7,30,100", "line 2, 5 columns instead of 6"),
            ("-1,1,7,30,100,1", "line 2, column seconds: \"-1\" is not"),
            ("1.1234567890123,1,7,30,100,1", "line 2, column seconds: \"1.1234567890123\" is not"),
            ("1.+5,1,7,30,100,1", "line 2, column seconds: \"1.+5\" is not"),
            ("0.5,1,7,30,100,1", "line 2, column seconds: before the time of the previous line"),
            ("1.5,8,7,30,100,1", "line 2, column message_type: \"8\" is not"),
            ("1.5,1,x,30,100,1", "line 2, column order_id: \"x\" is not"),
            ("1.5,1,7,0,100,1", "line 2, column quantity: \"0\" is not"),
            ("1.5,1,7,30,-1,1", "line 2, column price: \"-1\" is not"),
            ("1.5,1,7,30,100,0", "line 2, column direction: \"0\" is not"),
        ] {
            let error = read(&format!("1,1,6,30,100,1\n{line}")).unwrap_err();
            assert!(error.starts_with(why), "{line}: {error}");
        }
        assert_eq!(read("").unwrap_err(), "no message");
    }
}
