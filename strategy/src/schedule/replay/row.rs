//! The columns of a recorded flow, and one row of it. [`super::replay`] documents the values of
//! each.

use super::ReplayError;
use super::error::{HEADER, LinePosition, excerpt};
use crate::schedule::RESTING;
use csv::ByteRecord;
use protocol::wire::{Operation, Side};
use std::ops::RangeInclusive;

system::named_enum! {
    Column {
        TimeUs = "time_us",
        Sequence = "sequence",
        Op = "op",
        OrderId = "order_id",
        Side = "side",
        Type = "type",
        Tif = "tif",
        PriceCents = "price_cents",
        QtySatoshi = "qty_satoshi",
        Venue = "venue",
    }
}

impl Column {
    /// Returns the error of a field with an invalid value. `why` follows the value in the text.
    pub(super) fn error(self, at_line: LinePosition<'_>, value: &str, why: &str) -> ReplayError {
        at_line.error(format!("column {self}: {} {why}", excerpt(value)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplayRow {
    /// Nanoseconds from any origin.
    pub(super) time_ns: u128,
    pub(super) operation: Operation,
    pub(super) order_id: u64,
    pub(super) side: Side,
    /// 0 for a market order or a cancel.
    pub(super) price: i64,
    /// 0 for a cancel.
    pub(super) quantity: u64,
    pub(super) venue: Option<u16>,
}

/// The positions of a recorded flow's columns, from its header.
pub(super) struct Columns {
    /// Position by `Column as usize`; only that of the venue may be missing.
    positions: [Option<usize>; Column::ALL.len()],
    count: usize,
}

impl Columns {
    pub(super) fn read(at_line: LinePosition<'_>, header: &ByteRecord) -> Result<Self, ReplayError> {
        let header_error = |problem: String| {
            at_line.error(format!("{problem}\nexpected {HEADER} and optionally venue, in any order"))
        };
        let mut positions = [None; Column::ALL.len()];
        for (position, field) in header.iter().enumerate() {
            let field = String::from_utf8_lossy(field.trim_ascii());
            let Some(column) = Column::from_name(&field) else {
                return Err(header_error(format!("unknown column {}", excerpt(&field))));
            };
            if positions[column as usize].replace(position).is_some() {
                return Err(header_error(format!("column {column} is there twice")));
            }
        }
        let missing = |column: &&Column| positions[**column as usize].is_none() && **column != Column::Venue;
        match Column::ALL.iter().find(missing) {
            Some(column) => Err(header_error(format!("no column {column}"))),
            None => Ok(Self { positions, count: header.len() }),
        }
    }

    /// Reads one row of a recorded flow for a run with `venues` venues.
    pub(super) fn row(
        &self,
        at_line: LinePosition<'_>,
        record: &ByteRecord,
        venues: u16,
    ) -> Result<ReplayRow, ReplayError> {
        if record.len() != self.count {
            let (found, expected) = (record.len(), self.count);
            return Err(at_line.error(format!("{found} fields, the header has {expected}")));
        }
        let fields = Fields { columns: self, at_line, record };
        fields.number(Column::Sequence, 0..=u64::MAX)?;
        let operation =
            fields.one_of(Column::Op, &[("new", Operation::New), ("cancel", Operation::Cancel)])?;
        let (price, quantity) = if operation == Operation::New {
            fields.price_and_quantity()?
        } else {
            let unused = [Column::Type, Column::Tif, Column::PriceCents, Column::QtySatoshi];
            unused.into_iter().try_for_each(|column| fields.empty(column, "a cancel"))?;
            (0, 0)
        };
        let venue = self.positions[Column::Venue as usize].map(|_| fields.venue(venues)).transpose()?;
        Ok(ReplayRow {
            time_ns: fields.time_ns()?,
            operation,
            order_id: fields.number(Column::OrderId, 0..=RESTING - 1)?,
            side: fields.one_of(Column::Side, &[("B", Side::Buy), ("S", Side::Sell)])?,
            price,
            quantity,
            venue,
        })
    }
}

struct Fields<'a> {
    columns: &'a Columns,
    at_line: LinePosition<'a>,
    record: &'a ByteRecord,
}

impl Fields<'_> {
    fn get(&self, column: Column) -> &[u8] {
        let position = self.columns.positions[column as usize];
        position.and_then(|position| self.record.get(position)).unwrap_or_default().trim_ascii()
    }

    fn refuse<T>(&self, column: Column, why: &str) -> Result<T, ReplayError> {
        Err(column.error(self.at_line, &String::from_utf8_lossy(self.get(column)), why))
    }

    /// Reads microseconds with at most three decimals, in nanoseconds.
    fn time_ns(&self) -> Result<u128, ReplayError> {
        let (column, field) = (Column::TimeUs, self.get(Column::TimeUs));
        let Some(point) = field.iter().position(|byte| *byte == b'.') else {
            return Ok(u128::from(self.number(column, 0..=u64::MAX)?) * 1000);
        };
        let (whole, decimals) = (&field[..point], &field[point + 1..]);
        if decimals.is_empty() || decimals.len() > 3 {
            return self.refuse(column, "has more than three decimals, or none after the point");
        }
        let (whole, fraction) = (self.parse(column, whole)?, self.parse(column, decimals)?);
        Ok(u128::from(whole) * 1000 + u128::from(fraction) * 10u128.pow(3 - decimals.len() as u32))
    }

    fn number(&self, column: Column, range: RangeInclusive<u64>) -> Result<u64, ReplayError> {
        let value = self.parse(column, self.get(column))?;
        if range.contains(&value) {
            return Ok(value);
        }
        self.refuse(column, &format!("is not from {} to {}", range.start(), range.end()))
    }

    fn parse(&self, column: Column, digits: &[u8]) -> Result<u64, ReplayError> {
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return self.refuse(column, "is not a whole number");
        }
        // Digits alone fail to parse only when there are too many of them.
        match str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()) {
            Some(value) => Ok(value),
            None => self.refuse(column, &format!("is larger than {}", u64::MAX)),
        }
    }

    fn one_of<T: Copy>(&self, column: Column, words: &[(&str, T)]) -> Result<T, ReplayError> {
        match words.iter().find(|(word, _)| word.as_bytes() == self.get(column)) {
            Some((_, value)) => Ok(*value),
            None => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                self.refuse(column, &format!("is not one of {}", words.join(", ")))
            }
        }
    }

    fn empty(&self, column: Column, owner: &str) -> Result<(), ReplayError> {
        if self.get(column).is_empty() {
            return Ok(());
        }
        self.refuse(column, &format!("should be empty: {owner} has none"))
    }

    fn price_and_quantity(&self) -> Result<(i64, u64), ReplayError> {
        let limit = self.one_of(Column::Type, &[("limit", true), ("market", false)])?;
        self.one_of(Column::Tif, &[("gtc", ()), ("ioc", ()), ("fok", ())])?;
        let price = if limit {
            self.number(Column::PriceCents, 1..=i64::MAX as u64)?
        } else {
            self.empty(Column::PriceCents, "a market order")?;
            0
        };
        Ok((price.cast_signed(), self.number(Column::QtySatoshi, 1..=u64::MAX)?))
    }

    fn venue(&self, venues: u16) -> Result<u16, ReplayError> {
        let venue = self.number(Column::Venue, 0..=u64::MAX)?;
        if venue < u64::from(venues) {
            return Ok(venue as u16);
        }
        let max = venues - 1;
        let why = format!("is not a venue of this run, which has 0 to {max}: raise their number");
        self.refuse(Column::Venue, &why)
    }
}
