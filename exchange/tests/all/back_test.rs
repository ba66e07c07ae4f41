//! The back test of the examples: the recording without a strategy, and the same result each time.

#[path = "../../examples/back_test/account.rs"]
mod account;
#[path = "../../examples/back_test/flow.rs"]
mod flow;
#[path = "../../examples/back_test/play.rs"]
mod play;
#[path = "../../examples/back_test/quoter.rs"]
mod quoter;

use account::Account;
use exchange::{NewOrder, Side, book_file};
use flow::Row;
use play::{Market, Orders, Played, Strategy};
use proptest::prelude::*;
use quoter::Quoter;
use std::sync::atomic::{AtomicI64, Ordering};

struct Idle;

impl Strategy for Idle {
    fn on_market_data(&mut self, _: &Market, _: &mut Orders) {}
}

/// Broken: what it quotes depends on how often it has run in this process.
struct Remembers;

static RUNS: AtomicI64 = AtomicI64::new(0);

impl Strategy for Remembers {
    fn on_market_data(&mut self, market: &Market, orders: &mut Orders) {
        if market.time_us == 0 {
            orders.quote(Side::Buy, 1 + RUNS.fetch_add(1, Ordering::Relaxed), 1);
        }
    }
}

fn recording() -> (Vec<NewOrder>, Vec<Row>) {
    let open = |name: &str| {
        let path = format!("{}/../data/coinbase-2016-03-12/{name}.csv", env!("CARGO_MANIFEST_DIR"));
        std::io::BufReader::new(std::fs::File::open(path).unwrap())
    };
    let opening = book_file::opening_book(open("opening_book"), 0, flow::RECORDED, 1 << 20).unwrap();
    (opening, flow::read(open("flow")).unwrap())
}

fn played(strategy: &mut impl Strategy, delay_us: u64) -> Played {
    let (opening, rows) = recording();
    play::play(&opening, &rows, delay_us, strategy).unwrap().0
}

#[test]
fn recording_without_strategy_trades_as_recorded() {
    let played = played(&mut Idle, 0);
    assert_eq!((played.ticks, played.trades, played.orders, played.late_cancels), (3_800, 12, 0, 0));
    assert_eq!(played.account, Account::default());
}

#[test]
fn back_test_gives_one_result_each_time() {
    let first = played(&mut Quoter, 0);
    assert_eq!(played(&mut Quoter, 0), first);
    assert_eq!((first.account.fills, first.account.position, first.orders), (8, -1_000_000, 43));
    assert_ne!(played(&mut Quoter, 50_000).digest, first.digest, "later orders are other orders");
    assert_ne!(played(&mut Remembers, 0).digest, played(&mut Remembers, 0).digest, "it is found");
}

#[test]
fn invalid_flow_names_its_line() {
    let header = "time_us,sequence,op,order_id,side,type,tif,price_cents,qty_satoshi\n";
    for (rows, wanted) in [
        ("1,1,new,7,B,limit,gtc,x,5\n", "line 2: price_cents is \"x\""),
        ("1,1,new,7,X,limit,gtc,3,5\n", "line 2: side is \"X\": expected B or S"),
        ("5,1,cancel,7,B,,,,\n4,1,cancel,7,B,,,,\n", "line 3: time_us goes back"),
        ("", "no rows"),
    ] {
        let error = flow::read(format!("{header}{rows}").as_bytes()).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
    assert!(flow::read("a,b\n".as_bytes()).unwrap_err().contains("line 1: expected the columns"));
}

proptest! {
    #[test]
    fn profit_is_cash_and_what_is_held(
        fills in prop::collection::vec((any::<bool>(), 1i64..1_000, 1u64..1_000), 0..40), mark in 1i64..1_000,
    ) {
        let mut account = Account::default();
        for (is_buy, price, quantity) in fills {
            account.fill(if is_buy { Side::Buy } else { Side::Sell }, price, quantity);
        }
        let held = i128::from(account.position) * i128::from(mark);
        prop_assert_eq!(account.realized + account.unrealized(2 * mark), account.cash + held);
        prop_assert!(account.position != 0 || account.realized == account.cash);
    }
}
