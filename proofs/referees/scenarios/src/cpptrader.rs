//! The books that CppTrader's tests expect: `cpptrader.txt`, whose head has the format.

use crate::market::{number, same};
use exchange::{Capacity, Command, Event, Exchange, Instrument, NewOrder, OrderType, Side, TimeInForce};

pub const TABLE: &str = include_str!("../cpptrader.txt");

/// Counts of a replayed table.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replay {
    pub cases: u64,
    pub checked: u64,
    pub left_out: u64,
    /// The first difference of each case that differs.
    pub differences: Vec<String>,
}

struct Market {
    exchange: Exchange,
    /// Id and quantity of each order that was entered.
    entered: Vec<(u64, u64)>,
    /// Events of the last command.
    events: Vec<Event>,
    is_broken: bool,
}

impl Market {
    fn apply(&mut self, command: Command) -> Result<(), String> {
        self.events.clear();
        self.exchange.apply(command, &mut self.events);
        let rejected = self.events.iter().find(|event| matches!(event, Event::Rejected { .. }));
        rejected.map_or(Ok(()), |event| Err(format!("{event:?}")))
    }

    fn enter(&mut self, order: NewOrder) -> Result<(), String> {
        self.entered.push((order.id, order.quantity));
        self.apply(Command::New(order))
    }

    fn enter_limit(&mut self, side: Side, words: &[&str]) -> Result<(), String> {
        let [id, price, quantity, rest @ ..] = words else { return Err("not an order".into()) };
        let (price, quantity) = (number(price)?, number(quantity)?);
        let mut order = NewOrder { id: number(id)?, side, price, quantity, ..NewOrder::default() };
        match rest {
            [] => {}
            ["immediate-or-cancel"] => order.time_in_force = TimeInForce::ImmediateOrCancel,
            ["fill-or-kill"] => order.time_in_force = TimeInForce::FillOrKill,
            ["stop", price] => {
                (order.order_type, order.stop_price) = (OrderType::StopLimit, number(price)?);
            }
            ["display", display] => order.display = number(display)?,
            other => return Err(format!("unknown attributes {other:?}")),
        }
        self.enter(order)
    }

    fn enter_market(&mut self, side: Side, words: &[&str]) -> Result<(), String> {
        let [id, quantity, rest @ ..] = words else { return Err("not an order".into()) };
        let (order_type, time_in_force) = (OrderType::Market, TimeInForce::ImmediateOrCancel);
        let (id, quantity) = (number(id)?, number(quantity)?);
        let mut order = NewOrder { id, side, quantity, order_type, time_in_force, ..NewOrder::default() };
        if let ["stop", price] = rest {
            (order.order_type, order.stop_price) = (OrderType::Stop, number(price)?);
        } else if let ["within", ticks] = rest {
            let (bid, offer) = self.exchange.best(0);
            let ticks: i64 = number(ticks)?;
            let (best, worse) = if side == Side::Buy { (offer, ticks) } else { (bid, -ticks) };
            order.order_type = OrderType::Limit;
            order.price = best.ok_or("an empty book")?.price + worse;
        }
        self.enter(order)
    }

    fn replace(&mut self, id: u64, price: Option<i64>, quantity: u64) -> Result<(), String> {
        let order = self.exchange.order(id).ok_or("no such order")?;
        let price = price.unwrap_or(order.price) + i64::from(self.is_broken);
        self.apply(Command::Replace { id, owner: order.owner, price, quantity })
    }

    /// Gives an order another total quantity, or cancels it if that much has traded.
    fn mitigate(&mut self, id: u64, total: u64) -> Result<(), String> {
        let leaves = self.exchange.order(id).ok_or("no such order")?.leaves;
        let entered = self.entered.iter_mut().find(|(known, _)| *known == id).ok_or("no such order")?;
        let traded = entered.1 - leaves;
        entered.1 = total;
        if total > traded {
            self.replace(id, None, total - traded)
        } else {
            self.apply(Command::Cancel { id, owner: 0 })
        }
    }

    /// Returns the number and the open quantity of the resting orders.
    fn book(&self, side: Side) -> (usize, u64) {
        let orders: Vec<u64> = self.exchange.orders(0, side).map(|order| order.leaves).collect();
        (orders.len(), orders.iter().sum())
    }

    /// Compares the trades of the last command, each `MAKER:PRICE:QUANTITY`.
    fn check_fills(&self, expected: &[&str]) -> Result<(), String> {
        let trade = |event: &Event| match *event {
            Event::Trade { maker, price, quantity, .. } => Some((maker, price, quantity)),
            _ => None,
        };
        let found: Vec<_> = self.events.iter().filter_map(trade).collect();
        let is_same = |((maker, price, quantity), expected): (&(u64, i64, u64), &&str)| {
            let price = if expected.contains('?') { "?".into() } else { price.to_string() };
            format!("{maker}:{price}:{quantity}") == **expected
        };
        let is_equal = found.len() == expected.len() && found.iter().zip(expected).all(is_same);
        if is_equal { Ok(()) } else { Err(format!("found {found:?}")) }
    }

    fn shown(&self, side: Side) -> u64 {
        self.exchange.depth(0, side, 100).map(|level| level.quantity).sum()
    }

    /// Carries out a line. Returns `true` if it was an expectation.
    fn step(&mut self, words: &[&str]) -> Result<bool, String> {
        match words {
            ["buy", rest @ ..] => self.enter_limit(Side::Buy, rest)?,
            ["sell", rest @ ..] => self.enter_limit(Side::Sell, rest)?,
            ["buy-market", rest @ ..] => self.enter_market(Side::Buy, rest)?,
            ["sell-market", rest @ ..] => self.enter_market(Side::Sell, rest)?,
            ["modify", id, price, quantity] => {
                self.replace(number(id)?, Some(number(price)?), number(quantity)?)?;
            }
            ["mitigate", id, total] => self.mitigate(number(id)?, number(total)?)?,
            ["cancel", id] => self.apply(Command::Cancel { id: number(id)?, owner: 0 })?,
            ["auction"] => self.apply(Command::Auction { instrument: 0 })?,
            ["uncross"] => self.apply(Command::Uncross { instrument: 0 })?,
            ["book", buys, sells, bought, sold] => {
                let expected = [(number(buys)?, number(bought)?), (number(sells)?, number(sold)?)];
                same(&[self.book(Side::Buy), self.book(Side::Sell)], &expected)?;
                return Ok(true);
            }
            ["fills", expected @ ..] => {
                self.check_fills(if *expected == ["none"] { &[] } else { expected })?;
                return Ok(true);
            }
            ["shown", bought, sold] => {
                let expected = [number(bought)?, number(sold)?];
                same(&[self.shown(Side::Buy), self.shown(Side::Sell)], &expected)?;
                return Ok(true);
            }
            _ => return Err("an unknown step".into()),
        }
        Ok(false)
    }
}

/// Replays the cases of a table, each on an empty exchange.
pub fn replay(table: &str, is_broken: bool) -> Replay {
    let mut replay = Replay::default();
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut market = None;
    let mut case = "";
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        if let Some(name) = line.strip_prefix("case ") {
            let exchange = Exchange::new(&[Instrument::default()], Capacity::for_orders(100));
            let exchange = exchange.expect("good numbers");
            market = Some(Market { exchange, entered: Vec::new(), events: Vec::new(), is_broken });
            case = name;
            replay.cases += 1;
        } else if let ["left", "out", count, ..] = words[..] {
            replay.left_out += number::<u64>(count).unwrap_or(0);
        } else if let Some(open) = &mut market {
            match open.step(&words) {
                Ok(is_checked) => replay.checked += u64::from(is_checked),
                Err(why) => {
                    replay.differences.push(format!("CppTrader, {case}: {line}: {why}"));
                    market = None;
                }
            }
        }
    }
    replay
}

#[cfg(test)]
mod tests {
    use super::{TABLE, replay};

    #[test]
    fn books_are_those_that_cpptrader_expects() {
        let replay = replay(TABLE, false);
        assert_eq!(replay.differences, Vec::<String>::new());
        assert_eq!((replay.cases, replay.checked, replay.left_out), (18, 63, 12));
    }

    /// Returns an expectation with one of its numbers one higher, for each of them.
    fn wrong_lines(line: &str) -> Vec<String> {
        let wrong = |(at, number): (usize, &str)| {
            let higher = number.parse::<u64>().ok()? + 1;
            Some(format!("{}{higher}{}", &line[..at], &line[at + number.len()..]))
        };
        let start = |part: &str| part.as_ptr() as usize - line.as_ptr() as usize;
        line.split([' ', ':']).map(|part| (start(part), part)).filter_map(wrong).collect()
    }

    #[test]
    fn each_wrong_expectation_is_found() {
        let lines: Vec<&str> = TABLE.lines().collect();
        let mut changed = 0;
        for (at, line) in lines.iter().enumerate() {
            if !["book ", "shown ", "fills "].iter().any(|word| line.starts_with(word)) {
                continue;
            }
            for wrong in wrong_lines(line) {
                let mut table = lines.clone();
                table[at] = &wrong;
                assert_eq!(replay(&table.join("\n"), false).differences.len(), 1, "{wrong}");
                changed += 1;
            }
        }
        assert_eq!(changed, 269);
    }

    #[test]
    fn price_one_tick_too_high_is_found() {
        assert!(!replay(TABLE, true).differences.is_empty());
    }
}
