//! The recorded flow of data/coinbase-2016-03-12 as a load.

use crate::load::{Load, Op};

/// Returns the recorded load: an opening book, then a flow of 1,912 new orders and 1,888 cancels.
pub fn load() -> Load {
    let rows = |name: &str| -> Vec<Vec<String>> {
        let path = format!("{}/../../../data/coinbase-2016-03-12/{name}.csv", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    let number = |text: &str| text.parse().expect("a number");
    let order = |id: &str, side: &str, price: &str, quantity: &str| {
        let (id, buy, quantity) = (number(id), side == "B", number(quantity));
        if price.is_empty() {
            Op::Market { id, buy, quantity }
        } else {
            Op::Add { id, buy, price: number(price), quantity }
        }
    };
    let before = rows("opening_book").iter().map(|row| order(&row[0], &row[1], &row[2], &row[3])).collect();
    let one = |row: &Vec<String>| match row[2].as_str() {
        "new" => order(&row[3], &row[4], &row[7], &row[8]),
        _ => Op::Cancel { id: number(&row[3]) },
    };
    Load { name: "recorded flow".into(), before, timed: rows("flow").iter().map(one).collect() }
}
