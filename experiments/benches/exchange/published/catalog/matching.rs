//! Insert, cancel, match and the mix, on a book alone.

use super::super::harness::subject::{Case, Figure, Group, Unit::Microseconds};
use super::book::{Book, QUANTITY, mixed};
use exchange::{Command, NewOrder, Side};

const SPARE: u64 = 16;

pub fn groups(scaled: impl Fn(u64) -> u64) -> Vec<Group> {
    let mut groups = vec![
        cancel_all("cancel_all/100", 2.05, 10, scaled(100)),
        cancel_all("cancel_all/1000", 20.79, 10, scaled(1_000)),
        cancel_all("cancel_all/5000", 110.74, 5, scaled(5_000)),
        cancel_middle(scaled(1_000)),
        cancel_best_level("cancel_best_level/100", 5.29, 10, scaled(100)),
        cancel_best_level("cancel_best_level/500", 40.12, 10, scaled(500)),
        cancel_best_level("cancel_best_level/1000", 124.07, 10, scaled(1_000)),
        full_fill(scaled(1_000)),
        multi_level_sweep(scaled(100)),
    ];
    for (name, theirs, batch, orders) in [
        ("insert/non_crossing/100", 6.40, 10, 100),
        ("insert/non_crossing/1000", 64.23, 10, 1_000),
        ("insert/non_crossing/10000", 608.91, 3, 10_000),
    ] {
        groups.push(insert(name, theirs, batch, scaled(orders)));
    }
    groups.push(mixed_workload(scaled(10_000)));
    groups
}

/// Creates a group of one row: `run` on a book that `prepare` has filled.
fn row(
    name: &'static str,
    theirs: f64,
    batch: usize,
    remark: &'static str,
    prepare: impl FnMut() -> Book + 'static,
    run: impl FnMut(&mut Book) + 'static,
) -> Group {
    let figure = Figure::new(name, theirs, Microseconds, remark);
    Group::timed(
        figure,
        Case { batch, operations: 1, prepare, run, drop_is_timed: true, count: |book: Book| book.counts() },
    )
}

fn one_level(orders: u64) -> Book {
    let mut book = Book::new(orders + SPARE);
    (1..=orders).for_each(|id| book.add(id, Side::Buy, 100, QUANTITY));
    book
}

fn cancel_all(name: &'static str, theirs: f64, batch: usize, orders: u64) -> Group {
    let remark = "all orders of one price, cancelled in their order; with the drop of the book";
    row(
        name,
        theirs,
        batch,
        remark,
        move || one_level(orders),
        move |book| {
            (1..=orders).for_each(|id| book.cancel(id));
        },
    )
}

fn cancel_middle(orders: u64) -> Group {
    let remark = "one cancel in the middle of a price, with the drop of the book, which is most of it";
    row(
        "cancel_middle_of_1k",
        0.85,
        10,
        remark,
        move || one_level(orders),
        move |book| {
            book.cancel(orders / 2);
        },
    )
}

fn cancel_best_level(name: &'static str, theirs: f64, batch: usize, orders: u64) -> Group {
    let remark = "an order a price; each cancel empties the best one; with the drop of the book";
    let prepare = move || {
        let mut book = Book::new(orders + SPARE);
        (1..=orders).for_each(|id| book.add(id, Side::Buy, 1_000 + id as i64, QUANTITY));
        book
    };
    row(name, theirs, batch, remark, prepare, move |book| {
        (1..=orders).rev().for_each(|id| book.cancel(id));
    })
}

fn full_fill(orders: u64) -> Group {
    let remark = "as many orders as rest, each filled by one of one price; with the drop of the book";
    let prepare = move || {
        let mut book = Book::new(2 * orders + SPARE);
        (1..=orders).for_each(|id| book.add(id, Side::Sell, 100, QUANTITY));
        book
    };
    row("match/full_fill_1k", 61.49, 10, remark, prepare, move |book| {
        (1..=orders).for_each(|id| book.add(orders + id, Side::Buy, 100, QUANTITY));
    })
}

fn multi_level_sweep(levels: u64) -> Group {
    let remark = "one order takes half of 100 prices of ten orders; with the drop of the book";
    let prepare = move || {
        let mut book = Book::new(20 * levels + SPARE);
        for n in 0..10 * levels {
            book.add(n + 1, Side::Sell, 100 + (n / 10) as i64, QUANTITY);
        }
        book
    };
    row("match/multi_level_sweep", 14.73, 10, remark, prepare, move |book| {
        book.add(20 * levels, Side::Buy, 100 + levels as i64, 5 * levels * QUANTITY);
    })
}

fn insert(name: &'static str, theirs: f64, batch: usize, orders: u64) -> Group {
    let remark = "two prices, sides in turns; with the drop of the book, without its creation";
    row(
        name,
        theirs,
        batch,
        remark,
        move || Book::new(orders + SPARE),
        move |book| {
            for n in 0..orders {
                let (side, price) = if n % 2 == 0 { (Side::Buy, 100) } else { (Side::Sell, 200) };
                book.add(n + 1, side, price, QUANTITY);
            }
        },
    )
}

fn mixed_workload(commands: u64) -> Group {
    let remark = "of ten: six rest at two prices, two cancel, two trade; the list of open orders is \
                  kept within the time, and the book dropped";
    let prepare = move || Book::new(commands * 8 / 5);
    row("mixed_workload_10k", 887.23, 3, remark, prepare, move |book| {
        let (mut resting, mut next_id) = (Vec::new(), 1);
        for n in 0..commands {
            match mixed(n, &mut resting, &mut next_id) {
                Some(Command::New(NewOrder { id, side, price, quantity, .. })) => {
                    book.add(id, side, price, quantity);
                }
                Some(Command::Cancel { id, .. }) => book.cancel(id),
                _ => {}
            }
        }
    })
}
