//! Behaviour that venues' own documents define, case by case, in the notation of
//! [`crate::notation`], through the engine and the naive one. docs/src/exchange.md has the sources.

use crate::naive::Naive;
use crate::notation::{commands, describe};
use exchange::{Capacity, Event, Exchange, Instrument};

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

/// Offers at two prices.
const SELLS: &str = "S1 5@10, S2 5@10, S3 5@11";
/// Offers of which the first is the aggressor's own.
const OWN: &str = "S1 5@10 own=7, S2 5@10";

/// A documented behavior of venues.
struct DocumentedCase {
    name: &'static str,
    source: &'static str,
    before: &'static str,
    command: &'static str,
    events: &'static str,
}

const fn case(
    name: &'static str,
    source: &'static str,
    before: &'static str,
    command: &'static str,
    events: &'static str,
) -> DocumentedCase {
    DocumentedCase { name, source, before, command, events }
}

const CASES: [DocumentedCase; 36] = [
    case("price, then time", COINBASE, SELLS, "B9 12@11", "9+, 9>1 5@10, 9>2 5@10, 9>3 2@11"),
    case("price improvement is the aggressor's", COINBASE, "B1 1@20", "S9 1@16", "9+, 9>1 1@20"),
    case("self-trade: cancel newest", COINBASE, OWN, "B9 8@10 own=7 newest", "9+, 9- 8 SelfTrade"),
    case("self-trade: cancel oldest", COINBASE, OWN, "B9 8@10 own=7 oldest", "9+, 1- 5 SelfTrade, 9>2 5@10"),
    case(
        "self-trade: cancel both",
        COINBASE,
        OWN,
        "B9 8@10 own=7 both",
        "9+, 1- 5 SelfTrade, 9- 8 SelfTrade",
    ),
    case(
        "self-trade: decrement, the aggressor is larger",
        TSX,
        OWN,
        "B9 8@10 own=7 decrement",
        "9+, 1- 5 SelfTrade, 9~ 3, 9>2 3@10",
    ),
    case(
        "self-trade: decrement, the resting order is larger",
        TSX,
        OWN,
        "B9 3@10 own=7 decrement",
        "9+, 1~ 2, 9- 3 SelfTrade",
    ),
    case(
        "self-trade: decrement, both the same",
        COINBASE,
        OWN,
        "B9 5@10 own=7 decrement",
        "9+, 1- 5 SelfTrade, 9- 5 SelfTrade",
    ),
    case(
        "self-trade: the aggressor's instruction counts",
        COINBASE,
        "S1 5@10 own=7 newest",
        "B9 5@10 own=7 oldest",
        "9+, 1- 5 SelfTrade",
    ),
    case("fill or kill: not enough", CME_QUALIFIERS, SELLS, "B9 11@10 fok", "9+, 9- 11 FillOrKill"),
    case(
        "fill or kill: over two levels",
        CME_QUALIFIERS,
        SELLS,
        "B9 15@11 fok",
        "9+, 9>1 5@10, 9>2 5@10, 9>3 5@11",
    ),
    case(
        "immediate or cancel: the rest goes",
        CME_QUALIFIERS,
        SELLS,
        "B9 12@10 ioc",
        "9+, 9>1 5@10, 9>2 5@10, 9- 2 Immediate",
    ),
    case("immediate or cancel: nothing there", CME_QUALIFIERS, SELLS, "B9 1@9 ioc", "9+, 9- 1 Immediate"),
    case("minimum: filled, the rest is placed", CME_TYPES, "S1 5@10", "B9 8@10 min=5", "9+, 9>1 5@10"),
    case("minimum: too little, all is cancelled", CME_TYPES, "S1 5@10", "B9 8@10 min=6", "9+, 9- 8 Minimum"),
    case("post-only: would trade", COINBASE_DERIVATIVES, SELLS, "B9 1@10 post", "9! WouldTrade"),
    case("post-only: rests", COINBASE_DERIVATIVES, SELLS, "B9 1@9 post", "9+"),
    case(
        "iceberg: the next part goes to the end",
        CME_QUALIFIERS,
        "S1 10@10 show=4, S2 5@10",
        "B9 11@10",
        "9+, 9>1 4@10, 9>2 5@10, 9>1 2@10",
    ),
    case(
        "market: what finds nobody is cancelled",
        CME_TYPES,
        "S1 5@10",
        "B9 8",
        "9+, 9>1 5@10, 9- 3 NoLiquidity",
    ),
    case(
        "replace: less keeps the place",
        CME_REPLACE,
        "S1 5@10, S2 5@10, r1 3@10",
        "B9 1@10",
        "9+, 9>1 1@10",
    ),
    case(
        "replace: more loses the place",
        CME_REPLACE,
        "S1 5@10, S2 5@10, r1 6@10",
        "B9 1@10",
        "9+, 9>2 1@10",
    ),
    case(
        "replace: there and back loses the place",
        CME_REPLACE,
        "S1 5@10, S2 5@10, r1 5@11, r1 5@10",
        "B9 1@10",
        "9+, 9>2 1@10",
    ),
    case(
        "replace: a price that crosses trades",
        CME_REPLACE,
        "S1 5@10, B3 2@9",
        "r3 2@10",
        "3= 2@10, 3>1 2@10",
    ),
    case("good till time: gone at its time", CME_QUALIFIERS, "B1 2@9 until=5, time 4", "time 5", "1t 2"),
    case(
        "stop: a trade at its price makes it a market order",
        CME_STOP,
        "S1 1@10, S2 1@11, S3 9@12, B5 2 stop=10",
        "B9 1@10",
        "9+, 9>1 1@10, 5*, 5>2 1@11, 5>3 1@12",
    ),
    case(
        "stop-limit: what is left is a limit order",
        CME_STOP,
        "S1 1@10, S2 1@11, S3 9@12, B5 4@11 stop=10, B9 1@10",
        "x5",
        "5- 3 Requested",
    ),
    case(
        "stop: by stop price, then by time",
        MILLENNIUM,
        "S1 1@10, S2 1@11, S3 9@12, B5 1 stop=11, B6 1 stop=10, B7 1 stop=10",
        "B9 2@11",
        "9+, 9>1 1@10, 9>2 1@11, 6*, 6>3 1@12, 7*, 7>3 1@12, 5*, 5>3 1@12",
    ),
    case(
        "stop: in an auction it waits for the opening price",
        MILLENNIUM,
        "auction, B5 2 stop=10, S1 1@10, B2 1@10, S3 4@13",
        "uncross",
        "uncrossed 1@10, 2>1 1@10, 5*, 5>3 2@13",
    ),
    case(
        "auction: the largest volume",
        XETRA,
        "auction, B1 5@12, B2 4@11, S3 6@9, S4 3@11",
        "uncross",
        "uncrossed 9@11, 1>3 5@11, 2>3 1@11, 2>4 3@11",
    ),
    case(
        "auction: then the smallest surplus",
        XETRA,
        "auction, B1 5@14, S2 5@12, B3 4@12",
        "uncross",
        "uncrossed 5@13, 1>2 5@13",
    ),
    case(
        "auction: then nearest to the reference price, which is 10",
        XETRA,
        "auction, B1 5@14, S2 5@8",
        "uncross",
        "uncrossed 5@10, 1>2 5@10",
    ),
    case("auction: nothing crosses", XETRA, "auction, B1 5@8, S2 5@9", "uncross", "uncrossed 0@0"),
    case(
        "auction: an iceberg takes part with all of it",
        XETRA,
        "auction, S1 9@10 show=2, S2 4@10, B3 10@10",
        "uncross",
        "uncrossed 10@10, 3>1 9@10, 3>2 1@10",
    ),
    case(
        "auction: no self-trade prevention",
        JPX,
        "auction, S1 1@10 own=7 both, B2 1@10 own=7 both",
        "uncross",
        "uncrossed 1@10, 2>1 1@10",
    ),
    case("auction: no post-only orders", COINBASE_RULES, "auction", "B1 1@8 post", "1! WrongPhase"),
    case(
        "auction: no fill or kill, no immediate or cancel",
        CME_QUALIFIERS,
        "auction",
        "B1 1@8 fok",
        "1! WrongPhase",
    ),
];

#[test]
fn documented_cases_match_their_sources() {
    let instrument = Instrument { price_high: 1000, reference_price: 10, ..Instrument::default() };
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/results/studies/exchange.md");
    let page = std::fs::read_to_string(page).unwrap();
    for DocumentedCase { name, source, before, command, events: expected } in CASES {
        let mut engine = Exchange::new(&[instrument], Capacity::for_orders(64)).unwrap();
        let mut naive = Naive::new(&[instrument], Capacity::for_orders(64));
        let mut apply = |line| {
            let mut all_events = Vec::new();
            for command in commands(line) {
                let mut events = Vec::new();
                engine.apply(command, &mut events);
                assert_eq!(naive.apply(command), events, "{name} ({source}), of the naive engine");
                engine.check().unwrap_or_else(|violation| panic!("{name}: {violation:?}"));
                all_events.append(&mut events);
            }
            all_events
        };
        let events = apply(before);
        let is_rejected = events.iter().any(|event| matches!(event, Event::Rejected { .. }));
        assert!(!is_rejected, "{name}: {before} gives {events:?}");
        assert_eq!(describe(&apply(command)), expected, "{name} ({source})");
        let row = format!("| {name} | {source} |");
        assert!(page.contains(&row), "data/results/studies/exchange.md: no row {name:?}, {source:?}");
    }
}
