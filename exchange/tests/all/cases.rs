//! Behaviour that venues' own documents define, case by case: what comes before, the command, and
//! its events. Each case runs through the engine and through the naive one. docs/src/exchange.md
//! has the table with the addresses of the sources.

mod others;

use crate::naive::Naive;
use Event::{Accepted, Cancelled, Reduced, Rejected, Replaced, Triggered, Uncrossed};
use OrderType::{Market, Stop, StopLimit};
use SelfTrade::{CancelBoth, CancelNewest, CancelOldest, Decrement};
use Side::{Buy, Sell};
use TimeInForce::{FillOrKill, GoodTillTime, ImmediateOrCancel};
use exchange::{
    CancelReason, Capacity, Command, Event, Exchange, Instrument, NewOrder, OrderType, RejectReason,
    SelfTrade, Side, TimeInForce,
};

const COINBASE: &str = "Coinbase Exchange, Matching Engine";
const COINBASE_RULES: &str = "Coinbase Exchange Trading Rules";
const COINBASE_DERIVATIVES: &str = "Coinbase Derivatives, Supported order qualifiers";
const CME_REPLACE: &str = "CME iLink 3, Order Cancel Replace, Tag Value Modification";
const CME_QUALIFIERS: &str = "CME Globex, Order Qualifiers";
const CME_TYPES: &str = "CME Globex, Order Types";
const CME_STOP: &str = "CME Globex, Stop Order Notes";
const MILLENNIUM: &str = "Colombo Stock Exchange (Millennium), Stop and Stop Limit Orders";
const TSX: &str = "TSX, Self Trade Prevention";
const JPX: &str = "JPX arrowhead4.0, FAQ 18144";
const XETRA: &str = "Xetra, Market Model Equities";

/// A limit order of an owner of its own.
pub fn limit(id: u64, side: Side, price: i64, quantity: u64) -> NewOrder {
    NewOrder {
        id,
        instrument: 0,
        owner: id as u32,
        side,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::GoodTillCancel,
        post_only: false,
        self_trade: SelfTrade::Allow,
        price,
        stop_price: 0,
        quantity,
        display: 0,
        minimum: 0,
        expires_at: 0,
    }
}

fn owned(owner: u32, order: NewOrder) -> NewOrder {
    NewOrder { owner, ..order }
}

fn iceberg(display: u64, order: NewOrder) -> NewOrder {
    NewOrder { display, ..order }
}

fn lasting(time_in_force: TimeInForce, order: NewOrder) -> NewOrder {
    NewOrder { time_in_force, ..order }
}

fn preventing(self_trade: SelfTrade, order: NewOrder) -> NewOrder {
    NewOrder { owner: 7, self_trade, ..order }
}

fn stop(stop_price: i64, order: NewOrder) -> NewOrder {
    NewOrder { stop_price, order_type: if order.price == 0 { Stop } else { StopLimit }, ..order }
}

fn market(order: NewOrder) -> NewOrder {
    NewOrder { order_type: Market, ..order }
}

fn post_only(order: NewOrder) -> NewOrder {
    NewOrder { post_only: true, ..order }
}

fn minimum(minimum: u64, order: NewOrder) -> NewOrder {
    NewOrder { minimum, ..order }
}

/// A trade between maker and taker, with what is left of each; its number counts from the first
/// that is expected.
fn trade(number: u64, parties: (u64, u64, Side), price: i64, quantity: u64, leaves: (u64, u64)) -> Event {
    Event::Trade {
        number,
        instrument: 0,
        maker: parties.0,
        taker: parties.1,
        taker_side: parties.2,
        price,
        quantity,
        maker_leaves: leaves.0,
        taker_leaves: leaves.1,
    }
}

fn accepted(id: u64) -> Event {
    Accepted { id, side: Buy, price: 0 }
}

fn cancelled(id: u64, leaves: u64, reason: CancelReason) -> Event {
    Cancelled { id, side: Buy, price: 0, leaves, reason }
}

/// The event as the cases write it: without the side and the price of the order, which the naive
/// engine checks.
fn without_terms(mut event: Event) -> Event {
    if let Accepted { side, price, .. }
    | Cancelled { side, price, .. }
    | Replaced { side, price, .. }
    | Event::Expired { side, price, .. } = &mut event
    {
        (*side, *price) = (Buy, 0);
    }
    event
}

/// Name, source, what comes before, the command, its events.
type DocumentedCase = (&'static str, &'static str, Vec<Command>, Command, Vec<Event>);

fn case(
    name: &'static str,
    source: &'static str,
    before: &[NewOrder],
    command: impl Into<CaseInput>,
    events: &[Event],
) -> DocumentedCase {
    let CaseInput(mut between, command) = command.into();
    let mut all: Vec<Command> = before.iter().map(|order| Command::New(*order)).collect();
    all.append(&mut between);
    (name, source, all, command, events.to_vec())
}

/// The command of a case, and what comes between it and the orders before.
struct CaseInput(Vec<Command>, Command);

impl From<NewOrder> for CaseInput {
    fn from(order: NewOrder) -> CaseInput {
        CaseInput(Vec::new(), Command::New(order))
    }
}

impl From<Command> for CaseInput {
    fn from(command: Command) -> CaseInput {
        CaseInput(Vec::new(), command)
    }
}

fn replace(id: u64, price: i64, quantity: u64) -> Command {
    Command::Replace { id, owner: id as u32, price, quantity }
}

const AUCTION: Command = Command::Auction { instrument: 0 };
const UNCROSS: Command = Command::Uncross { instrument: 0 };

/// Orders that gather in an auction, and the uncrossing.
fn gathered(orders: &[NewOrder]) -> CaseInput {
    let begin = std::iter::once(AUCTION);
    CaseInput(begin.chain(orders.iter().map(|order| Command::New(*order))).collect(), UNCROSS)
}

fn trading() -> Vec<DocumentedCase> {
    let sells = [limit(1, Sell, 10, 5), limit(2, Sell, 10, 5), limit(3, Sell, 11, 5)];
    let own = [owned(7, limit(1, Sell, 10, 5)), limit(2, Sell, 10, 5)];
    let me = |quantity| limit(9, Buy, 10, quantity);
    let ice = [iceberg(4, limit(1, Sell, 10, 10)), limit(2, Sell, 10, 5)];
    vec![
        case(
            "price, then time",
            COINBASE,
            &sells,
            limit(9, Buy, 11, 12),
            &[
                accepted(9),
                trade(0, (1, 9, Buy), 10, 5, (0, 7)),
                trade(1, (2, 9, Buy), 10, 5, (0, 2)),
                trade(2, (3, 9, Buy), 11, 2, (3, 0)),
            ],
        ),
        case(
            "price improvement is the aggressor's",
            COINBASE,
            &[limit(1, Buy, 20, 1)],
            limit(9, Sell, 16, 1),
            &[accepted(9), trade(0, (1, 9, Sell), 20, 1, (0, 0))],
        ),
        case(
            "self-trade: cancel newest",
            COINBASE,
            &own,
            preventing(CancelNewest, me(8)),
            &[accepted(9), cancelled(9, 8, CancelReason::SelfTrade)],
        ),
        case(
            "self-trade: cancel oldest",
            COINBASE,
            &own,
            preventing(CancelOldest, me(8)),
            &[accepted(9), cancelled(1, 5, CancelReason::SelfTrade), trade(0, (2, 9, Buy), 10, 5, (0, 3))],
        ),
        case(
            "self-trade: cancel both",
            COINBASE,
            &own,
            preventing(CancelBoth, me(8)),
            &[
                accepted(9),
                cancelled(1, 5, CancelReason::SelfTrade),
                cancelled(9, 8, CancelReason::SelfTrade),
            ],
        ),
        case(
            "self-trade: decrement, the aggressor is larger",
            TSX,
            &own,
            preventing(Decrement, me(8)),
            &[
                accepted(9),
                cancelled(1, 5, CancelReason::SelfTrade),
                Reduced { id: 9, leaves: 3 },
                trade(0, (2, 9, Buy), 10, 3, (2, 0)),
            ],
        ),
        case(
            "self-trade: decrement, the resting order is larger",
            TSX,
            &own,
            preventing(Decrement, me(3)),
            &[accepted(9), Reduced { id: 1, leaves: 2 }, cancelled(9, 3, CancelReason::SelfTrade)],
        ),
        case(
            "self-trade: decrement, both the same",
            COINBASE,
            &own,
            preventing(Decrement, me(5)),
            &[
                accepted(9),
                cancelled(1, 5, CancelReason::SelfTrade),
                cancelled(9, 5, CancelReason::SelfTrade),
            ],
        ),
        case(
            "self-trade: the aggressor's instruction counts",
            COINBASE,
            &[preventing(CancelNewest, limit(1, Sell, 10, 5))],
            preventing(CancelOldest, me(5)),
            &[accepted(9), cancelled(1, 5, CancelReason::SelfTrade)],
        ),
        case(
            "fill or kill: not enough",
            CME_QUALIFIERS,
            &sells,
            lasting(FillOrKill, limit(9, Buy, 10, 11)),
            &[accepted(9), cancelled(9, 11, CancelReason::FillOrKill)],
        ),
        case(
            "fill or kill: over two levels",
            CME_QUALIFIERS,
            &sells,
            lasting(FillOrKill, limit(9, Buy, 11, 15)),
            &[
                accepted(9),
                trade(0, (1, 9, Buy), 10, 5, (0, 10)),
                trade(1, (2, 9, Buy), 10, 5, (0, 5)),
                trade(2, (3, 9, Buy), 11, 5, (0, 0)),
            ],
        ),
        case(
            "immediate or cancel: the rest goes",
            CME_QUALIFIERS,
            &sells,
            lasting(ImmediateOrCancel, limit(9, Buy, 10, 12)),
            &[
                accepted(9),
                trade(0, (1, 9, Buy), 10, 5, (0, 7)),
                trade(1, (2, 9, Buy), 10, 5, (0, 2)),
                cancelled(9, 2, CancelReason::Immediate),
            ],
        ),
        case(
            "immediate or cancel: nothing there",
            CME_QUALIFIERS,
            &sells,
            lasting(ImmediateOrCancel, limit(9, Buy, 9, 1)),
            &[accepted(9), cancelled(9, 1, CancelReason::Immediate)],
        ),
        case(
            "minimum: filled, the rest is placed",
            CME_TYPES,
            &sells[..1],
            minimum(5, me(8)),
            &[accepted(9), trade(0, (1, 9, Buy), 10, 5, (0, 3))],
        ),
        case(
            "minimum: too little, all is cancelled",
            CME_TYPES,
            &sells[..1],
            minimum(6, me(8)),
            &[accepted(9), cancelled(9, 8, CancelReason::Minimum)],
        ),
        case(
            "post-only: would trade",
            COINBASE_DERIVATIVES,
            &sells,
            post_only(me(1)),
            &[Rejected { id: 9, reason: RejectReason::WouldTrade }],
        ),
        case(
            "post-only: rests",
            COINBASE_DERIVATIVES,
            &sells,
            post_only(limit(9, Buy, 9, 1)),
            &[accepted(9)],
        ),
        case(
            "iceberg: the next part goes to the end",
            CME_QUALIFIERS,
            &ice,
            me(11),
            &[
                accepted(9),
                trade(0, (1, 9, Buy), 10, 4, (6, 7)),
                trade(1, (2, 9, Buy), 10, 5, (0, 2)),
                trade(2, (1, 9, Buy), 10, 2, (4, 0)),
            ],
        ),
        case(
            "market: what finds nobody is cancelled",
            CME_TYPES,
            &sells[..1],
            market(limit(9, Buy, 0, 8)),
            &[accepted(9), trade(0, (1, 9, Buy), 10, 5, (0, 3)), cancelled(9, 3, CancelReason::NoLiquidity)],
        ),
    ]
}

#[test]
fn documented_cases_match_their_sources() {
    let instrument = Instrument { price_high: 1000, reference_price: 10, ..Instrument::default() };
    let cases = [trading(), others::changing(), others::stops(), others::auctions()].concat();
    assert_eq!(cases.len(), 36);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/results/studies/exchange.md");
    let page = std::fs::read_to_string(page).unwrap();
    for (name, source, before, command, expected) in cases {
        let mut engine = Exchange::new(&[instrument], Capacity::for_orders(64)).unwrap();
        let mut naive = Naive::new(&[instrument], Capacity::for_orders(64));
        for command in before {
            let mut events = Vec::new();
            engine.apply(command, &mut events);
            naive.apply(command);
            assert!(
                !events.iter().any(|event| matches!(event, Rejected { .. })),
                "{name}: {command:?} gives {events:?}"
            );
        }
        let mut events = Vec::new();
        engine.apply(command, &mut events);
        assert_eq!(naive.apply(command), events, "{name} ({source}), of the naive engine");
        let events: Vec<Event> = events.into_iter().map(without_terms).collect();
        assert_eq!(events, expected, "{name} ({source})");
        engine.check().unwrap_or_else(|found| panic!("{name}: {found:?}"));
        assert!(
            page.contains(&format!("| {name} | {source} |")),
            "data/results/studies/exchange.md: no row {name:?}, {source:?}"
        );
    }
}
