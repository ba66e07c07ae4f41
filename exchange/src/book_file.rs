//! Recorded books and flows: lines of comma-separated values, read line by line and never trusted.
//!
//! - Opening book: `order_id,side,price,quantity`; sides are `B` and `S`; in time priority within a price.
//! - Flow: `time_us,sequence,op,order_id,side,type,tif,price,quantity`; `op` is `new` or `cancel`, `type` `limit` or `market`, `tif` `gtc`,
//!   `ioc` or `fok`. A market order has no price; a cancel names only the order.
//!
//! The first line names the columns; a unit may follow the names of prices and quantities, as in `price_cents`.

use crate::command::{Command, NewOrder, OrderType, Side, TimeInForce};
use std::io::{BufRead, Error as IoError, Read};
use thiserror::Error;

/// The longest line, in bytes.
const LONGEST: u64 = 1024;

/// What is wrong with a file.
#[derive(Debug, Error)]
pub enum BookFileError {
    /// It cannot be read.
    #[error("line {line}: {source}")]
    Read {
        /// Where, from 1.
        line: usize,
        /// Why.
        source: IoError,
    },
    /// The first line does not name these columns.
    #[error("line 1: the columns are not {expected}")]
    Columns {
        /// What it should be.
        expected: &'static str,
    },
    /// A line has too few or too many values.
    #[error("line {line}: {found} values instead of {expected}")]
    Values {
        /// Where, from 1.
        line: usize,
        /// How many it has.
        found: usize,
        /// How many it should have.
        expected: usize,
    },
    /// A value that cannot be.
    #[error("line {line}: {column} is {value:?}; it must be {expected}")]
    Value {
        /// Where, from 1.
        line: usize,
        /// Which column.
        column: &'static str,
        /// What is there.
        value: String,
        /// What can be there.
        expected: &'static str,
    },
    /// A line longer than any should be.
    #[error("line {line} has more than {LONGEST} bytes")]
    Long {
        /// Where, from 1.
        line: usize,
    },
    /// More lines than wanted.
    #[error("line {line}: more than {most} lines")]
    Many {
        /// Where, from 1.
        line: usize,
        /// How many are wanted at most.
        most: usize,
    },
}

/// A line of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Microseconds since the first message.
    pub time_us: u64,
    /// The recorded exchange's sequence number.
    pub sequence: u64,
    /// What was done: a new order or a cancel.
    pub command: Command,
}

/// Reads an opening book of at most `most` orders, as orders of that instrument and owner.
///
/// # Errors
/// The first line that cannot be.
pub fn opening_book(
    file: impl BufRead,
    instrument: u16,
    owner: u32,
    most: usize,
) -> Result<Vec<NewOrder>, BookFileError> {
    let mut orders = Vec::new();
    lines(file, ["order_id", "side", "price", "quantity"], "order_id,side,price,quantity", most, |line| {
        orders.push(NewOrder {
            id: line.number(0, "order_id")?,
            instrument,
            owner,
            side: line.side(1)?,
            price: line.price(2)?,
            quantity: line.number(3, "quantity")?,
            ..NewOrder::default()
        });
        Ok(())
    })?;
    Ok(orders)
}

/// Reads a flow of at most `most` commands, as orders of that instrument and owner.
///
/// # Errors
/// The first line that cannot be.
pub fn flow(
    file: impl BufRead,
    instrument: u16,
    owner: u32,
    most: usize,
) -> Result<Vec<Flow>, BookFileError> {
    const COLUMNS: [&str; 9] =
        ["time_us", "sequence", "op", "order_id", "side", "type", "tif", "price", "quantity"];
    let mut flow = Vec::new();
    lines(file, COLUMNS, "time_us,sequence,op,order_id,side,type,tif,price,quantity", most, |line| {
        let id = line.number(3, "order_id")?;
        let command = match line.values[2] {
            "cancel" => Command::Cancel { id, owner },
            "new" => {
                let (order_type, price) = match line.values[5] {
                    "limit" => (OrderType::Limit, line.price(7)?),
                    "market" if line.values[7].is_empty() => (OrderType::Market, 0),
                    "market" => return line.wrong(7, "price", "empty for a market order"),
                    _ => return line.wrong(5, "type", "limit or market"),
                };
                let time_in_force = match line.values[6] {
                    "gtc" => TimeInForce::GoodTillCancel,
                    "ioc" => TimeInForce::ImmediateOrCancel,
                    "fok" => TimeInForce::FillOrKill,
                    _ => return line.wrong(6, "tif", "gtc, ioc or fok"),
                };
                Command::New(NewOrder {
                    id,
                    instrument,
                    owner,
                    side: line.side(4)?,
                    order_type,
                    time_in_force,
                    price,
                    quantity: line.number(8, "quantity")?,
                    ..NewOrder::default()
                })
            }
            _ => return line.wrong(2, "op", "new or cancel"),
        };
        let (time_us, sequence) = (line.number(0, "time_us")?, line.number(1, "sequence")?);
        flow.push(Flow { time_us, sequence, command });
        Ok(())
    })?;
    Ok(flow)
}

/// The values of a line.
struct Line<'a, const N: usize> {
    line: usize,
    values: [&'a str; N],
}

impl<const N: usize> Line<'_, N> {
    fn wrong<T>(&self, at: usize, column: &'static str, expected: &'static str) -> Result<T, BookFileError> {
        Err(BookFileError::Value { line: self.line, column, value: self.values[at].to_owned(), expected })
    }

    fn number(&self, at: usize, column: &'static str) -> Result<u64, BookFileError> {
        let value = self.values[at];
        // Nothing but digits: `parse` also takes a plus sign.
        match value.parse() {
            Ok(number) if value.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
            _ => self.wrong(at, column, "a whole number from 0 to 2^64 - 1"),
        }
    }

    fn price(&self, at: usize) -> Result<i64, BookFileError> {
        let price = self.number(at, "price")?;
        i64::try_from(price).or_else(|_| self.wrong(at, "price", "below 2^63"))
    }

    fn side(&self, at: usize) -> Result<Side, BookFileError> {
        match self.values[at] {
            "B" => Ok(Side::Buy),
            "S" => Ok(Side::Sell),
            _ => self.wrong(at, "side", "B or S"),
        }
    }
}

/// Calls `each` for every line behind the first, which must name the columns.
fn lines<const N: usize>(
    mut file: impl BufRead,
    columns: [&str; N],
    expected: &'static str,
    most: usize,
    mut each: impl FnMut(&Line<'_, N>) -> Result<(), BookFileError>,
) -> Result<(), BookFileError> {
    let mut text = String::new();
    for line in 1.. {
        text.clear();
        let read = file.by_ref().take(LONGEST + 1).read_line(&mut text);
        let length = read.map_err(|source| BookFileError::Read { line, source })?;
        if length as u64 > LONGEST {
            return Err(BookFileError::Long { line });
        }
        if length == 0 && line > 1 {
            break;
        }
        if line > most.saturating_add(1) {
            return Err(BookFileError::Many { line, most });
        }
        let text = text.trim_end_matches(['\n', '\r']);
        let (mut values, mut found) = ([""; N], 0);
        for value in text.split(',') {
            if let Some(place) = values.get_mut(found) {
                *place = value;
            }
            found += 1;
        }
        if line == 1 {
            let names = |(value, column): (&&str, &&str)| {
                let (value, column) = (*value, *column);
                let short = if column == "quantity" { "qty" } else { column };
                let unit = |name: &str| value.strip_prefix(name).is_some_and(|rest| rest.starts_with('_'));
                value == column || matches!(column, "price" | "quantity") && (unit(column) || unit(short))
            };
            if found != N || !values.iter().zip(&columns).all(names) {
                return Err(BookFileError::Columns { expected });
            }
            continue;
        }
        if found != N {
            return Err(BookFileError::Values { line, found, expected: N });
        }
        each(&Line { line, values })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(text: &str) -> String {
        opening_book(text.as_bytes(), 0, 0, 3).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_bad_line_is_named_with_what_is_wrong() {
        let columns = "order_id,side,price_cents,qty_satoshi";
        assert_eq!(book(""), "line 1: the columns are not order_id,side,price,quantity");
        assert_eq!(
            book("order_id,side,cents,quantity"),
            "line 1: the columns are not order_id,side,price,quantity"
        );
        assert_eq!(book(&format!("{columns}\n1,B,5,6\n1,B,5\n")), "line 3: 3 values instead of 4");
        assert_eq!(book(&format!("{columns}\n1,X,5,6\n")), "line 2: side is \"X\"; it must be B or S");
        let number = "it must be a whole number from 0 to 2^64 - 1";
        assert_eq!(book(&format!("{columns}\n+1,B,5,6\n")), format!("line 2: order_id is \"+1\"; {number}"));
        assert_eq!(book(&format!("{columns}\n1,B,-5,6\n")), format!("line 2: price is \"-5\"; {number}"));
        let long = "9".repeat(1100);
        assert_eq!(book(&format!("{columns}\n{long},B,5,6\n")), "line 2 has more than 1024 bytes");
        assert_eq!(book(&format!("{columns}\n{}", "1,B,5,6\n".repeat(4))), "line 5: more than 3 lines");
        assert!(opening_book(&b"order_id,side,price,qty\n\xff\xff"[..], 0, 0, 9).is_err());
    }

    #[test]
    fn a_flow_names_orders_and_cancels() {
        let columns = "time_us,sequence,op,order_id,side,type,tif,price,quantity";
        let read = |lines: &str| flow(format!("{columns}\n{lines}").as_bytes(), 2, 7, 9);
        let found = read("5,9,new,1,S,market,ioc,,4\n6,10,cancel,3,S,,,,\r\n").expect("a flow");
        assert_eq!((found[0].time_us, found[0].sequence, found.len()), (5, 9, 2));
        let Command::New(order) = found[0].command else { panic!("an order") };
        assert_eq!(
            (order.order_type, order.time_in_force),
            (OrderType::Market, TimeInForce::ImmediateOrCancel)
        );
        assert_eq!((order.instrument, order.owner, order.quantity), (2, 7, 4));
        assert_eq!(found[1].command, Command::Cancel { id: 3, owner: 7 });
        let wrong = |line: &str| read(line).expect_err("it is wrong").to_string();
        assert_eq!(
            wrong("5,9,new,1,S,market,ioc,3,4"),
            "line 2: price is \"3\"; it must be empty for a market order"
        );
        assert_eq!(wrong("5,9,amend,1,S,limit,gtc,3,4"), "line 2: op is \"amend\"; it must be new or cancel");
    }
}
