//! Opening books: lines of comma-separated values `order_id,side,price,quantity`, read line by line
//! and never trusted.
//!
//! Sides are `B` and `S`; orders are in time priority within a price. The first line names the
//! columns; a unit may follow the names of price and quantity, as in `price_cents`. (Recorded flows
//! are read by `strategy::schedule`.)

use crate::command::{NewOrder, Side};
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
    lines(file, most, |line| {
        orders.push(NewOrder {
            id: line.number(0, "order_id")?,
            instrument,
            owner,
            side: line.side()?,
            price: line.price()?,
            quantity: line.number(3, "quantity")?,
            ..NewOrder::default()
        });
        Ok(())
    })?;
    Ok(orders)
}

/// The columns.
const COLUMNS: &str = "order_id,side,price,quantity";

/// The values of a line.
struct Line<'a> {
    line: usize,
    values: [&'a str; 4],
}

impl Line<'_> {
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

    fn price(&self) -> Result<i64, BookFileError> {
        let price = self.number(2, "price")?;
        i64::try_from(price).or_else(|_| self.wrong(2, "price", "below 2^63"))
    }

    fn side(&self) -> Result<Side, BookFileError> {
        match self.values[1] {
            "B" => Ok(Side::Buy),
            "S" => Ok(Side::Sell),
            _ => self.wrong(1, "side", "B or S"),
        }
    }
}

/// Calls `each` for every line behind the first, which must name the columns.
fn lines(
    mut file: impl BufRead,
    most: usize,
    mut each: impl FnMut(&Line<'_>) -> Result<(), BookFileError>,
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
        let (mut values, mut found) = ([""; 4], 0);
        for value in text.split(',') {
            if let Some(place) = values.get_mut(found) {
                *place = value;
            }
            found += 1;
        }
        if line == 1 {
            let names = |(value, column): (&&str, &str)| {
                let value = *value;
                let short = if column == "quantity" { "qty" } else { column };
                let unit = |name: &str| value.strip_prefix(name).is_some_and(|rest| rest.starts_with('_'));
                value == column || matches!(column, "price" | "quantity") && (unit(column) || unit(short))
            };
            if found != values.len() || !values.iter().zip(COLUMNS.split(',')).all(names) {
                return Err(BookFileError::Columns { expected: COLUMNS });
            }
            continue;
        }
        if found != values.len() {
            return Err(BookFileError::Values { line, found, expected: values.len() });
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
}
