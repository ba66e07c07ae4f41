//! Market data: who reads the feed has the book.

use super::allocations::draw;
use super::exchange;
use crate::market_data::{LONG, Message, SHORT};
use crate::{Event, Level, MarketData, Side};

#[test]
fn quotes_trades_and_depth_are_those_of_the_book() {
    let (mut exchange, mut market_data) = (exchange(), MarketData::new(1));
    let (mut events, mut feed, mut state) = (Vec::new(), Vec::new(), 9);
    let mut quote = (None, None);
    let (mut last, mut trades, mut quotes) = (0, 0, 0);
    for step in 0..20_000 {
        events.clear();
        feed.clear();
        market_data.apply(&mut exchange, draw(&mut state, step), &mut events, &mut feed);
        if step % 3 == 0 {
            market_data.depth(&exchange, 0, &mut feed);
        }
        let mut traded = events.iter().filter_map(|event| match *event {
            Event::Trade { number, price, quantity, taker_side, .. } => {
                Some(Message::Trade { number, price, quantity, taker_side })
            }
            _ => None,
        });
        for words in &feed {
            let (header, message) = Message::parse(words).expect("a message");
            last += 1;
            assert_eq!((header.number, header.instrument), (last, 0), "none is missing");
            match message {
                Message::Quote { bid, offer } => {
                    assert_ne!((bid, offer), quote, "only changes are published");
                    quote = (bid, offer);
                    quotes += 1;
                }
                Message::Trade { .. } => {
                    assert_eq!(Some(message), traded.next());
                    trades += 1;
                }
                Message::Depth { bids, offers } => {
                    let levels = |side| {
                        let level = |level: Level| (level.price, level.quantity);
                        exchange.depth(0, side, 10).map(level).collect::<Vec<_>>()
                    };
                    assert_eq!(bids.into_iter().flatten().collect::<Vec<_>>(), levels(Side::Buy));
                    assert_eq!(offers.into_iter().flatten().collect::<Vec<_>>(), levels(Side::Sell));
                }
            }
        }
        assert_eq!(traded.next(), None, "every trade is in the feed");
        assert_eq!(quote, exchange.best(0), "step {step}");
    }
    assert!(trades > 1_000 && quotes > 1_000, "{trades} trades, {quotes} quotes");
}

#[test]
fn words_that_are_no_message_are_not_read() {
    let mut good = [1 | 1 << 8, 1, 100, 5, 101, 6, 1, 1];
    assert!(Message::parse(&good).is_some());
    for (place, bad) in [
        (0, 0),
        (0, 1),
        (0, 9 | 1 << 8),
        (0, 1 | 1 << 8 | 1 << 40),
        (1, 0),
        (2, 1 << 63),
        (2, 0),
        (3, 0),
        (6, 0),
        (6, 1 << 32),
    ] {
        let right = std::mem::replace(&mut good[place], bad);
        assert_eq!(Message::parse(&good), None, "word {place} is {bad}");
        good[place] = right;
    }
    assert_eq!(Message::parse(&good[..7]), None);
    assert_eq!(Message::parse(&[]), None);
    assert_eq!(Message::parse(&[2 | 1 << 8, 1, 0, 5, 5, 2, 0, 0]), None, "no side");
    assert!(Message::parse(&[2 | 1 << 8, 1, 0, 5, 5, 1, 0, 0]).is_some());
    assert_eq!(Message::parse(&[3 | 1 << 8; SHORT]), None);
    let mut depth = [0; LONG];
    (depth[0], depth[1], depth[5]) = (3 | 1 << 8, 1, 7);
    assert_eq!(Message::parse(&depth), None, "a quantity without a price");
}
