//! Reads the instruments file: CSV with a header line, one instrument a line, in the order of their
//! indexes.
//!
//! ```text
//! name,tick,lot,price_low,price_high,max_quantity,reference_price
//! BTC-USD,1,1,1,10000000,100000000000,41300
//! ```
//!
//! `name` is required, the other columns are optional; an empty field has the default. Prices and
//! ticks are in cents, quantities and lots in 1e-8 units.

use super::input::UserFile;
use super::{UsageError, nearest};
use protocol::instrument::{Instrument, MAX_INSTRUMENTS};
use record::units::clip;
use std::path::Path;

/// Maximum size of the file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

const COLUMNS: [&str; 7] =
    ["name", "tick", "lot", "price_low", "price_high", "max_quantity", "reference_price"];

pub(crate) fn read(path: &Path) -> Result<Vec<Instrument>, UsageError> {
    let name = path.display();
    let cannot = |error: std::io::Error| UsageError(format!("--instruments {name}: {error}"));
    let text = UserFile::read_text(path, MAX_BYTES).map_err(cannot)?;
    parse(&text).map_err(|(line, what)| UsageError(format!("{name}:{line}: {what}")))
}

/// Parses the text of an instruments file. An error carries its line number.
fn parse(text: &str) -> Result<Vec<Instrument>, (usize, String)> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (line, head) =
        lines.next().ok_or((1, format!("no instruments: expected the head {}", COLUMNS.join(","))))?;
    let columns: Vec<&str> = head.split(',').map(str::trim).collect();
    for (index, column) in columns.iter().enumerate() {
        if !COLUMNS.contains(column) {
            let hint = match nearest(column, COLUMNS.into_iter()) {
                Some(suggestion) => format!("did you mean {suggestion}?"),
                None => format!("there are {}", COLUMNS.join(", ")),
            };
            return Err((line, format!("unknown column {:?}: {hint}", clip(column))));
        }
        if columns[..index].contains(column) {
            return Err((line, format!("column {column} stands here twice")));
        }
    }
    if !columns.contains(&"name") {
        return Err((line, "no column name".into()));
    }
    let mut instruments: Vec<Instrument> = Vec::new();
    for (line, row) in lines {
        let instrument = instrument(&columns, row).map_err(|what| (line, what))?;
        if instruments.iter().any(|other| other.name == instrument.name) {
            return Err((line, format!("instrument {} stands here twice", instrument.name)));
        }
        if instruments.len() == MAX_INSTRUMENTS {
            return Err((line, format!("more than {MAX_INSTRUMENTS} instruments")));
        }
        instruments.push(instrument);
    }
    if instruments.is_empty() { Err((line, "no instruments below the head".into())) } else { Ok(instruments) }
}

fn instrument(columns: &[&str], row: &str) -> Result<Instrument, String> {
    let fields: Vec<&str> = row.split(',').map(str::trim).collect();
    if fields.len() != columns.len() {
        return Err(format!("{} fields, the head has {}", fields.len(), columns.len()));
    }
    let mut instrument = Instrument::default();
    for (column, text) in columns.iter().zip(fields).filter(|(_, text)| !text.is_empty()) {
        let number = |range: &str| format!("column {column}: {:?} is not a number {range}", clip(text));
        let signed = || text.parse::<i64>().map_err(|_| number("of cents"));
        let unsigned = || text.parse::<u64>().map_err(|_| number("of 1e-8 units"));
        match *column {
            "name" => instrument.name = text.into(),
            "tick" => instrument.tick = signed()?,
            "lot" => instrument.lot = unsigned()?,
            "price_low" => instrument.price_low = signed()?,
            "price_high" => instrument.price_high = signed()?,
            "max_quantity" => instrument.max_quantity = unsigned()?,
            _ => instrument.reference_price = signed()?,
        }
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    if instrument.name.is_empty() || instrument.name.len() > 32 || !instrument.name.bytes().all(is_plain) {
        return Err(format!("the name {:?}: 1 to 32 letters, digits or any of -_./", clip(&instrument.name)));
    }
    instrument.check().map_err(|error| format!("{}: {error}", instrument.name))?;
    Ok(instrument)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_may_be_left_out_and_fields_empty() {
        let read = parse("name,tick,reference_price\nBTC-USD,5,41300\n\nETH-USD,,\n").unwrap();
        let wanted = [
            Instrument { name: "BTC-USD".into(), tick: 5, reference_price: 41_300, ..Instrument::default() },
            Instrument { name: "ETH-USD".into(), ..Instrument::default() },
        ];
        assert_eq!(read, wanted);
    }

    #[test]
    fn error_names_its_line() {
        for (text, line, wanted) in [
            ("", 1, "expected the head name,tick"),
            ("name\n", 1, "no instruments below the head"),
            ("name,tik\nA,1\n", 1, "did you mean tick?"),
            ("name,name\nA,B\n", 1, "stands here twice"),
            ("tick\n1\n", 1, "no column name"),
            ("name,tick\nA\n", 2, "1 fields, the head has 2"),
            ("name,tick\nA,x\n", 2, "\"x\" is not a number of cents"),
            ("name,lot\n\nA,-1\n", 3, "is not a number of 1e-8 units"),
            ("name,tick\nA,0\n", 2, "the tick is 0"),
            ("name\nA\nA\n", 3, "instrument A stands here twice"),
            ("name\nA B\n", 2, "1 to 32 letters"),
        ] {
            let (at, what) = parse(text).unwrap_err();
            assert!(what.contains(wanted) && at == line, "{text:?}: {at}: {what}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*", rows in "(name|tick|,|[0-9]|\n|-){0,30}") {
            let _ = (parse(&text), parse(&rows));
        }
    }
}
