//! The columns of a recorded flow, and one row of it. [`super::replay`] documents the values of
//! each.

use super::ReplayError;
use super::error::excerpt;
use crate::schedule::RESTING;
use csv::ByteRecord;
use protocol::wire::{Operation, Side};
use std::ops::RangeInclusive;

/// A column of a recorded flow's CSV file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    TimeUs,
    Sequence,
    Op,
    OrderId,
    Side,
    Type,
    Tif,
    PriceCents,
    QtySatoshi,
    Venue,
}

impl Column {
    const ALL: [Self; 10] = [
        Self::TimeUs,
        Self::Sequence,
        Self::Op,
        Self::OrderId,
        Self::Side,
        Self::Type,
        Self::Tif,
        Self::PriceCents,
        Self::QtySatoshi,
        Self::Venue,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::TimeUs => "time_us",
            Self::Sequence => "sequence",
            Self::Op => "op",
            Self::OrderId => "order_id",
            Self::Side => "side",
            Self::Type => "type",
            Self::Tif => "tif",
            Self::PriceCents => "price_cents",
            Self::QtySatoshi => "qty_satoshi",
            Self::Venue => "venue",
        }
    }
}

/// A validated row of a recorded flow: one order.
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
    at: [Option<usize>; Column::ALL.len()],
    count: usize,
}

impl Columns {
    /// Reads the header of a recorded flow, which names the columns.
    pub(super) fn read(file: &str, line: u64, header: &ByteRecord) -> Result<Self, ReplayError> {
        let wrong = |problem| ReplayError::Header { file: file.into(), line, problem };
        let mut at = [None; Column::ALL.len()];
        for (position, field) in header.iter().enumerate() {
            let field = field.trim_ascii();
            let Some(column) = Column::ALL.iter().find(|column| column.name().as_bytes() == field) else {
                let name = excerpt(&String::from_utf8_lossy(field));
                return Err(wrong(format!("unknown column {name}")));
            };
            if at[*column as usize].replace(position).is_some() {
                return Err(wrong(format!("column {} is there twice", column.name())));
            }
        }
        let missing = |column: &&Column| at[**column as usize].is_none() && **column != Column::Venue;
        match Column::ALL.iter().find(missing) {
            Some(column) => Err(wrong(format!("no column {}", column.name()))),
            None => Ok(Self { at, count: header.len() }),
        }
    }

    /// Reads one row of a recorded flow for a run with `venues` venues.
    pub(super) fn row(
        &self,
        file: &str,
        line: u64,
        record: &ByteRecord,
        venues: u16,
    ) -> Result<ReplayRow, ReplayError> {
        if record.len() != self.count {
            let (found, expected) = (record.len(), self.count);
            return Err(ReplayError::Fields { file: file.into(), line, found, expected });
        }
        let fields = Fields { columns: self, file, line, record };
        fields.number(Column::Sequence, 0..=u64::MAX)?;
        let operation =
            fields.one_of(Column::Op, &[("new", Operation::New), ("cancel", Operation::Cancel)])?;
        let (price, quantity) = match operation {
            Operation::New => fields.price_and_quantity()?,
            Operation::Cancel | Operation::Replace | Operation::MassCancel => {
                let unused = [Column::Type, Column::Tif, Column::PriceCents, Column::QtySatoshi];
                unused.into_iter().try_for_each(|column| fields.empty(column, "a cancel"))?;
                (0, 0)
            }
        };
        let venue = match self.at[Column::Venue as usize] {
            Some(_) => Some(fields.venue(venues)?),
            None => None,
        };
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

/// The fields of one row, by column.
struct Fields<'a> {
    columns: &'a Columns,
    file: &'a str,
    line: u64,
    record: &'a ByteRecord,
}

impl Fields<'_> {
    fn get(&self, column: Column) -> &[u8] {
        let position = self.columns.at[column as usize];
        position.and_then(|position| self.record.get(position)).unwrap_or_default().trim_ascii()
    }

    fn refuse<T>(&self, column: Column, why: String) -> Result<T, ReplayError> {
        let found = String::from_utf8_lossy(self.get(column)).into_owned();
        let (file, line) = (self.file.into(), self.line);
        Err(ReplayError::Field { file, line, column: column.name(), found, why })
    }

    /// Reads microseconds with at most three decimals, in nanoseconds.
    fn time_ns(&self) -> Result<u128, ReplayError> {
        let (column, field) = (Column::TimeUs, self.get(Column::TimeUs));
        let Some(point) = field.iter().position(|byte| *byte == b'.') else {
            return Ok(u128::from(self.number(column, 0..=u64::MAX)?) * 1000);
        };
        let (whole, decimals) = (&field[..point], &field[point + 1..]);
        if decimals.is_empty() || decimals.len() > 3 {
            return self.refuse(column, "has more than three decimals, or none after the point".into());
        }
        let (whole, part) = (self.parse(column, whole)?, self.parse(column, decimals)?);
        Ok(u128::from(whole) * 1000 + u128::from(part) * 10u128.pow(3 - decimals.len() as u32))
    }

    /// A whole number in a range.
    fn number(&self, column: Column, range: RangeInclusive<u64>) -> Result<u64, ReplayError> {
        let value = self.parse(column, self.get(column))?;
        if range.contains(&value) {
            return Ok(value);
        }
        self.refuse(column, format!("is not from {} to {}", range.start(), range.end()))
    }

    /// Parses digits of a column.
    fn parse(&self, column: Column, field: &[u8]) -> Result<u64, ReplayError> {
        if field.is_empty() || !field.iter().all(u8::is_ascii_digit) {
            return self.refuse(column, "is not a whole number".into());
        }
        // Digits alone fail to parse only when there are too many of them.
        match str::from_utf8(field).ok().and_then(|digits| digits.parse().ok()) {
            Some(value) => Ok(value),
            None => self.refuse(column, format!("is larger than {}", u64::MAX)),
        }
    }

    /// Parses one of a few keywords.
    fn one_of<T: Copy>(&self, column: Column, words: &[(&str, T)]) -> Result<T, ReplayError> {
        match words.iter().find(|(word, _)| word.as_bytes() == self.get(column)) {
            Some((_, value)) => Ok(*value),
            None => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                self.refuse(column, format!("is not one of {}", words.join(", ")))
            }
        }
    }

    fn empty(&self, column: Column, whose: &str) -> Result<(), ReplayError> {
        if self.get(column).is_empty() {
            return Ok(());
        }
        self.refuse(column, format!("should be empty: {whose} has none"))
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
        self.refuse(
            Column::Venue,
            format!("is not a venue of this run, which has 0 to {}: raise their number", venues - 1),
        )
    }
}
