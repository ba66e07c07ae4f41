//! Self-trade prevention, by instruction of the aggressor.

use super::last;

const BOOK: &str = "S1 2@101 own=8, S2 5@101 own=7, S3 5@102 own=8";

#[test]
fn aggressor_instruction_decides_self_trade() {
    let with = |order: &str| last(&format!("{BOOK}\n{order}"));
    assert_eq!(with("B4 9@102 own=7"), "4+, 4>1 2@101, 4>2 5@101, 4>3 2@102");
    assert_eq!(with("B4 9@102 own=7 newest"), "4+, 4>1 2@101, 4- 7 SelfTrade");
    assert_eq!(
        with("B4 9@102 own=7 oldest, x4 7"),
        "4+, 4>1 2@101, 2- 5 SelfTrade, 4>3 5@102, 4- 2 Requested"
    );
    assert_eq!(with("B4 9@102 own=7 both"), "4+, 4>1 2@101, 2- 5 SelfTrade, 4- 7 SelfTrade");
    assert_eq!(with("B4 9@102 own=7 decrement"), "4+, 4>1 2@101, 2- 5 SelfTrade, 4~ 2, 4>3 2@102");
    assert_eq!(with("B4 4@102 own=7 decrement"), "4+, 4>1 2@101, 2~ 3, 4- 2 SelfTrade");
    assert_eq!(with("B4 7@102 own=7 decrement"), "4+, 4>1 2@101, 2- 5 SelfTrade, 4- 5 SelfTrade");
    assert_eq!(with("B4 9@102 own=9 both"), "4+, 4>1 2@101, 4>2 5@101, 4>3 2@102", "another's");
}

#[test]
fn fill_or_kill_and_minimum_exclude_prevented_trades() {
    let with = |order: &str| last(&format!("{BOOK}\n{order}"));
    assert_eq!(with("B4 8@102 own=7 oldest fok"), "4+, 4- 8 FillOrKill");
    assert_eq!(with("B4 7@102 own=7 oldest fok"), "4+, 4>1 2@101, 2- 5 SelfTrade, 4>3 5@102");
    assert_eq!(with("B4 3@102 own=7 newest fok"), "4+, 4- 3 FillOrKill");
    assert_eq!(with("B4 2@102 own=7 newest fok"), "4+, 4>1 2@101");
    assert_eq!(with("B4 3@102 own=7 both fok"), "4+, 4- 3 FillOrKill");
    assert_eq!(with("B4 7@102 own=7 decrement fok"), "4+, 4- 7 FillOrKill");
    assert_eq!(with("B4 2@102 own=7 decrement fok"), "4+, 4>1 2@101");
    assert_eq!(with("B4 9@102 own=7 decrement min=5"), "4+, 4- 9 Minimum");
    assert_eq!(with("B4 9@102 own=7 decrement min=4"), "4+, 4>1 2@101, 2- 5 SelfTrade, 4~ 2, 4>3 2@102");
}

#[test]
fn further_iceberg_parts_queue_after_own_order() {
    let with = |order: &str| last(&format!("S1 6@101 own=8 show=2, S2 1@101 own=7\n{order}"));
    assert_eq!(with("B4 3@101 own=7 newest fok"), "4+, 4- 3 FillOrKill");
    assert_eq!(with("B4 3@101 own=7 newest"), "4+, 4>1 2@101, 4- 1 SelfTrade");
    assert_eq!(with("B4 6@101 own=7 oldest fok"), "4+, 4>1 2@101, 2- 1 SelfTrade, 4>1 2@101, 4>1 2@101");
    assert_eq!(
        with("B4 7@101 own=7 decrement min=6"),
        "4+, 4>1 2@101, 2- 1 SelfTrade, 4~ 4, 4>1 2@101, 4>1 2@101"
    );
}

#[test]
fn decrement_takes_hidden_quantity_first() {
    let book = "S1 9@101 own=7 show=3";
    assert_eq!(
        last(&format!("{book}\nB2 5@101 own=7 decrement, B3 9@101 ioc")),
        "2+, 1~ 4, 2- 5 SelfTrade, 3+, 3>1 3@101, 3>1 1@101, 3- 5 Immediate"
    );
}

#[test]
fn replacement_keeps_self_trade_instruction() {
    assert_eq!(last("S1 5@101 own=7, B2 5@100 own=7 oldest\nr2 5@101 own=7"), "2= 5@101, 1- 5 SelfTrade");
}
