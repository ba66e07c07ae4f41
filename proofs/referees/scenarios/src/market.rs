//! An exchange that carries out the steps of a scenario.

use exchange::{Capacity, Command, Event, Exchange, Instrument, NewOrder, Side, TimeInForce};

pub struct Market {
    exchange: Exchange,
    symbols: Vec<String>,
    clients: Vec<String>,
    /// Events of the last command.
    events: Vec<Event>,
    /// A broken exchange moves an order to a price one tick higher.
    is_broken: bool,
    pub checked: u64,
    pub left_out: u64,
}

/// Reads the digits that a text begins with.
pub fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().map_err(|_| format!("{text:?} is not a number"))
}

/// Returns the text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Result<&'a str, String> {
    let rest = text.split_once(before).ok_or_else(|| format!("without {before:?}"))?.1;
    Ok(if after.is_empty() { rest } else { rest.split_once(after).map_or(rest, |(found, _)| found) })
}

fn index(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

/// Compares what was found with what was expected.
pub fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("found {found:?}, expected {expected:?}")) }
}

impl Market {
    pub fn new(is_broken: bool) -> Self {
        let exchange = Exchange::new(&[Instrument::default(); 4], Capacity::for_orders(100));
        Self {
            exchange: exchange.expect("good numbers"),
            symbols: Vec::new(),
            clients: Vec::new(),
            events: Vec::new(),
            is_broken,
            checked: 0,
            left_out: 0,
        }
    }

    fn apply(&mut self, command: Command) -> Result<(), String> {
        self.events.clear();
        self.exchange.apply(command, &mut self.events);
        let rejected = self.events.iter().find(|event| matches!(event, Event::Rejected { .. }));
        rejected.map_or(Ok(()), |event| Err(format!("{event:?}")))
    }

    /// Carries out a step, or checks what it expects.
    ///
    /// # Errors
    /// What differs from the step's expectation.
    pub fn step(&mut self, step: &str, rows: &[Vec<String>]) -> Result<(), String> {
        let step = step.split_once(' ').map_or(step, |(_, rest)| rest);
        // Accounts and their limits are not part of the exchange.
        if step.contains(" balance") || step.contains(" could not ") {
            self.left_out += 1;
            Ok(())
        } else if step.contains(" places an ") {
            self.place(step)
        } else if step.contains(" moves a price to ") {
            let id = number(between(step, "of the order ", "")?)?;
            let price: i64 = number(between(step, "price to ", " ")?)?;
            let order = self.exchange.order(id).ok_or("no such order")?;
            let (owner, quantity) = (order.owner, order.leaves);
            self.apply(Command::Replace { id, owner, price: price + i64::from(self.is_broken), quantity })
        } else if step.contains(" cancels the remaining size ") {
            let (id, size) =
                (number(between(step, "of the order ", "")?)?, number(between(step, "size ", " ")?)?);
            let order = self.exchange.order(id).ok_or("no such order")?;
            self.checked += 1;
            same(&order.leaves, &size)?;
            self.apply(Command::Cancel { id, owner: order.owner })
        } else {
            self.checked += 1;
            self.check(step, rows)
        }
    }

    fn place(&mut self, step: &str) -> Result<(), String> {
        let owner = index(&mut self.clients, between(step, "client ", " ")?) as u32;
        let symbol = between(step, "symbol: ", ",")?.trim_end_matches(')');
        let side = if step.contains(" an BID ") { Side::Buy } else { Side::Sell };
        let time_in_force = match between(step, "type: ", ",")? {
            "GTC" => TimeInForce::GoodTillCancel,
            "IOC" => TimeInForce::ImmediateOrCancel,
            other => return Err(format!("unknown type {other}")),
        };
        let order = NewOrder {
            id: number(between(step, " order ", " ")?)?,
            instrument: index(&mut self.symbols, symbol) as u16,
            owner,
            side,
            time_in_force,
            price: number(between(step, " at ", "@")?)?,
            quantity: number(between(step, "@", " ")?)?,
            ..NewOrder::default()
        };
        self.apply(Command::New(order))
    }

    fn check(&mut self, step: &str, rows: &[Vec<String>]) -> Result<(), String> {
        let trades = || {
            self.events.iter().filter_map(|event| match *event {
                Event::Trade { maker, price, quantity, maker_leaves, .. } => {
                    Some((maker, price, quantity, maker_leaves))
                }
                _ => None,
            })
        };
        if step.starts_with("No trade events") || step.contains("trade events") {
            same(&trades().count(), &0)
        } else if step.contains(" matched. LastPx") {
            let id: u64 = number(between(step, "order ", " ")?)?;
            let (price, quantity) =
                (number(between(step, "LastPx: ", ",")?)?, number(between(step, "LastQty: ", ",")?)?);
            let is_full = step.contains("fully");
            let expected = |(maker, at, size, leaves)| {
                maker == id && at == price && size == quantity && (leaves == 0) == is_full
            };
            same(&trades().any(expected), &true)
        } else if step.contains(" order book is:") {
            self.check_book(between(step, "An ", " ")?, rows)
        } else if step.contains(" orders:") || step.contains("does not have active orders") {
            self.check_orders(between(step, "client ", " ")?, rows)
        } else {
            Err("an unknown step".into())
        }
    }

    fn check_book(&mut self, symbol: &str, rows: &[Vec<String>]) -> Result<(), String> {
        let instrument = index(&mut self.symbols, symbol) as u16;
        let levels =
            |side| self.exchange.depth(instrument, side, 100).map(|level| (level.price, level.quantity));
        let (mut bids, mut offers) = (Vec::new(), Vec::new());
        for row in rows.iter().filter(|row| row[1] != "price") {
            let price = number(&row[1])?;
            if !row[0].is_empty() {
                bids.push((price, number(&row[0])?));
            }
            if !row[2].is_empty() {
                offers.insert(0, (price, number(&row[2])?));
            }
        }
        same(&levels(Side::Buy).collect(), &bids)?;
        same(&levels(Side::Sell).collect(), &offers)
    }

    fn check_orders(&mut self, client: &str, rows: &[Vec<String>]) -> Result<(), String> {
        let owner = index(&mut self.clients, client) as u32;
        let mut found = Vec::new();
        for instrument in 0..self.symbols.len() as u16 {
            for side in [Side::Buy, Side::Sell] {
                let own = self.exchange.orders(instrument, side).filter(|order| order.owner == owner);
                found.extend(own.map(|order| (order.id, order.price, order.leaves, side)));
            }
        }
        let mut expected = Vec::new();
        for row in rows.iter().filter(|row| row[0] != "id") {
            let side = if row[5] == "BID" { Side::Buy } else { Side::Sell };
            let leaves = number::<u64>(&row[2])? - number::<u64>(&row[3])?;
            expected.push((number(&row[0])?, number(&row[1])?, leaves, side));
        }
        found.sort_unstable_by_key(|order| order.0);
        expected.sort_unstable_by_key(|order: &(u64, i64, u64, Side)| order.0);
        same(&found, &expected)
    }
}
