//! Reads a recorded flow as commands of an exchange, with their times.

use exchange::{Command, NewOrder, OrderType, Side, TimeInForce};
use std::io::BufRead;

/// The owner of all recorded orders.
pub const RECORDED: u32 = 1;

/// The columns that a back test reads, in the order of [`Row`]'s fields.
const COLUMNS: [&str; 8] = ["time_us", "op", "order_id", "side", "type", "tif", "price_cents", "qty_satoshi"];

/// A row of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Microseconds from any origin.
    pub time_us: u64,
    /// What the recorded exchange was told.
    pub command: Command,
}

/// Reads a flow, as `launcher run --schedule` does.
///
/// # Errors
/// The line, its problem and what is expected.
pub fn read(file: impl BufRead) -> Result<Vec<Row>, String> {
    let mut places: Option<[usize; COLUMNS.len()]> = None;
    let mut rows: Vec<Row> = Vec::new();
    for (number, line) in (1..).zip(file.lines()) {
        let line = line.map_err(|error| format!("line {number}: {error}"))?;
        if line.trim().is_empty() {
            continue;
        }
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let Some(places) = &places else {
            let place = |column: &str| fields.iter().position(|field| *field == column);
            let found: Option<Vec<usize>> = COLUMNS.iter().map(|column| place(column)).collect();
            let found = found.and_then(|found| found.try_into().ok());
            places = Some(found.ok_or_else(|| format!("line {number}: expected the columns {COLUMNS:?}"))?);
            continue;
        };
        let row = row(&places.map(|place| fields.get(place).copied().unwrap_or_default()))
            .map_err(|problem| format!("line {number}: {problem}"))?;
        if rows.last().is_some_and(|last| row.time_us < last.time_us) {
            return Err(format!("line {number}: time_us goes back: sort the file by time"));
        }
        rows.push(row);
    }
    if rows.is_empty() { Err("no rows: expected a header and at least one order".into()) } else { Ok(rows) }
}

fn row(fields: &[&str; COLUMNS.len()]) -> Result<Row, String> {
    let number = |column: usize| {
        let text = fields[column];
        text.parse::<u64>().map_err(|_| format!("{} is {text:?}: expected a whole number", COLUMNS[column]))
    };
    let one_of = |column: usize, names: [&str; 2]| match fields[column] {
        text if text == names[0] => Ok(false),
        text if text == names[1] => Ok(true),
        text => Err(format!("{} is {text:?}: expected {} or {}", COLUMNS[column], names[0], names[1])),
    };
    let whole = fields[0].split('.').next().unwrap_or_default();
    let time_us = whole.parse().map_err(|_| format!("time_us is {:?}: expected microseconds", fields[0]))?;
    let id = number(2)?;
    if one_of(1, ["new", "cancel"])? {
        return Ok(Row { time_us, command: Command::Cancel { id, owner: RECORDED } });
    }
    let is_market = one_of(4, ["limit", "market"])?;
    let time_in_force = match fields[5] {
        "gtc" if !is_market => TimeInForce::GoodTillCancel,
        "gtc" | "ioc" => TimeInForce::ImmediateOrCancel,
        "fok" => TimeInForce::FillOrKill,
        text => return Err(format!("tif is {text:?}: expected gtc, ioc or fok")),
    };
    let price = if is_market { 0 } else { i64::try_from(number(6)?).map_err(|error| error.to_string())? };
    let order = NewOrder {
        id,
        owner: RECORDED,
        side: if one_of(3, ["B", "S"])? { Side::Sell } else { Side::Buy },
        order_type: if is_market { OrderType::Market } else { OrderType::Limit },
        time_in_force,
        price,
        quantity: number(7)?,
        ..NewOrder::default()
    };
    Ok(Row { time_us, command: Command::New(order) })
}
