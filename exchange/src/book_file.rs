//! Opening books as CSV files with the columns `order_id,side,price,quantity`.
//!
//! Sides are `B` and `S`; orders are in time priority within a price. The first line names the
//! columns; a unit may follow the names of price and quantity, as in `price_cents`. The file is
//! read line by line, and is not trusted.

use crate::command::{NewOrder, Side};
use std::io::{BufRead, Error as IoError, Read};
use thiserror::Error;

/// Maximum length of a line in bytes.
const MAX_LINE_BYTES: u64 = 1024;

/// The error that a file with an opening order book cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BookFileError {
    /// The file cannot be read.
    #[error("line {line}: {source}")]
    Read {
        /// Line number, from 1.
        line: usize,
        /// The system's error.
        source: IoError,
    },
    /// The first line does not name the columns.
    #[error("line 1: the columns are not {expected}")]
    Columns {
        /// The expected columns.
        expected: &'static str,
    },
    /// A line has too few or too many values.
    #[error("line {line}: {found} values instead of {expected}")]
    Values {
        /// Line number, from 1.
        line: usize,
        /// Number of values in the line.
        found: usize,
        /// Number of values expected.
        expected: usize,
    },
    /// A value in a line of the file is invalid.
    #[error("line {line}: {column} is {value:?}; it must be {expected}")]
    Value {
        /// Line number, from 1.
        line: usize,
        /// Name of the column.
        column: &'static str,
        /// The value in the file.
        value: String,
        /// Description of a valid value.
        expected: &'static str,
    },
    /// A line is longer than 1,024 bytes.
    #[error("line {line} has more than {MAX_LINE_BYTES} bytes")]
    LineTooLong {
        /// Line number, from 1.
        line: usize,
    },
    /// The file has more orders than allowed.
    #[error("line {line}: more than {max} lines")]
    TooManyLines {
        /// Line number, from 1.
        line: usize,
        /// Maximum number of orders.
        max: usize,
    },
}

/// Reads the resting orders of an opening book, at most `max`, from a file as limit orders of one
/// instrument and owner.
///
/// # Errors
/// [`BookFileError`] for the first invalid line.
pub fn opening_book(
    file: impl BufRead,
    instrument: u16,
    owner: u32,
    max: usize,
) -> Result<Vec<NewOrder>, BookFileError> {
    let mut orders = Vec::new();
    lines(file, max, |line| {
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

const COLUMNS: &str = "order_id,side,price,quantity";

/// One line of the file, split at its commas.
struct BookRow<'a> {
    line: usize,
    values: [&'a str; 4],
}

impl BookRow<'_> {
    fn invalid<T>(
        &self,
        at: usize,
        column: &'static str,
        expected: &'static str,
    ) -> Result<T, BookFileError> {
        Err(BookFileError::Value { line: self.line, column, value: self.values[at].to_owned(), expected })
    }

    fn number(&self, at: usize, column: &'static str) -> Result<u64, BookFileError> {
        let value = self.values[at];
        // Nothing but digits: `parse` also takes a plus sign.
        match value.parse() {
            Ok(number) if value.bytes().all(|byte| byte.is_ascii_digit()) => Ok(number),
            _ => self.invalid(at, column, "a whole number from 0 to 2^64 - 1"),
        }
    }

    fn price(&self) -> Result<i64, BookFileError> {
        let price = self.number(2, "price")?;
        i64::try_from(price).or_else(|_| self.invalid(2, "price", "below 2^63"))
    }

    fn side(&self) -> Result<Side, BookFileError> {
        match self.values[1] {
            "B" => Ok(Side::Buy),
            "S" => Ok(Side::Sell),
            _ => self.invalid(1, "side", "B or S"),
        }
    }
}

/// Calls `f` for every line after the first, which must name the columns.
fn lines(
    mut file: impl BufRead,
    max: usize,
    mut f: impl FnMut(&BookRow<'_>) -> Result<(), BookFileError>,
) -> Result<(), BookFileError> {
    let mut text = String::new();
    for line in 1.. {
        text.clear();
        let read = file.by_ref().take(MAX_LINE_BYTES + 1).read_line(&mut text);
        let length = read.map_err(|source| BookFileError::Read { line, source })?;
        if length as u64 > MAX_LINE_BYTES {
            return Err(BookFileError::LineTooLong { line });
        }
        if length == 0 && line > 1 {
            break;
        }
        if line > max.saturating_add(1) {
            return Err(BookFileError::TooManyLines { line, max });
        }
        let text = text.trim_end_matches(['\n', '\r']);
        let (mut values, mut found) = ([""; 4], 0);
        for value in text.split(',') {
            if let Some(slot) = values.get_mut(found) {
                *slot = value;
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
        f(&BookRow { line, values })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(text: &str) -> String {
        opening_book(text.as_bytes(), 0, 0, 3).expect_err("invalid").to_string()
    }

    #[test]
    fn invalid_line_is_named_with_reason() {
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
