//! Stop and stop-limit orders: trigger, order of execution, cascades.

use super::last;

#[test]
fn trade_at_or_beyond_stop_price_triggers() {
    let book = "S1 1@101, S2 5@102, B3 2 stop=102";
    assert_eq!(last(&format!("{book}\nB4 1@101, B5 1@102")), "4+, 4>1 1@101, 5+, 5>2 1@102, 3*, 3>2 2@102");
    assert_eq!(last("B1 1@90, B2 5@80, S3 2 stop=90\nS4 1@90"), "4+, 4>1 1@90, 3*, 3>2 2@80");
    assert_eq!(last("B1 1@90, S3 2 stop=90\nS4 1@90"), "4+, 4>1 1@90, 3*, 3- 2 NoLiquidity");
}

#[test]
fn stop_limit_order_rests_at_its_limit() {
    let book = "S1 1@101, S2 5@104, B3 2@103 stop=101";
    assert_eq!(last(&format!("{book}\nB4 1@101, S5 9@103")), "4+, 4>1 1@101, 3*, 5+, 5>3 2@103");
    assert_eq!(last("S1 1@101, B3 2@103 stop=101 ioc\nB4 1@101"), "4+, 4>1 1@101, 3*, 3- 2 Immediate");
    assert_eq!(last("S1 2@101, B3 2@103 stop=101 fok\nB4 1@101"), "4+, 4>1 1@101, 3*, 3- 2 FillOrKill");
}

#[test]
fn triggered_stops_act_by_price_then_arrival() {
    let book = "S1 1@101, S2 1@102, S3 20@103, B4 1 stop=102, B5 1 stop=101, B6 1 stop=102, S7 1 stop=102";
    // The sell stop has stop price 102: the trade at 101 is below it.
    assert_eq!(
        last(&format!("{book}\nB8 4@103")),
        "8+, 8>1 1@101, 8>2 1@102, 8>3 2@103, 5*, 5>3 1@103, 7*, 7- 1 NoLiquidity, 4*, 4>3 1@103, 6*, 6>3 1@103"
    );
}

#[test]
fn stop_cascade_runs_until_nothing_is_triggered() {
    let book = "S1 1@101, S2 1@102, S3 1@103, S4 1@104, B11 1 stop=101, B12 1 stop=102, B13 1 stop=103";
    assert_eq!(
        last(&format!("{book}\nB20 1@101")),
        "20+, 20>1 1@101, 11*, 11>2 1@102, 12*, 12>3 1@103, 13*, 13>4 1@104"
    );
}

#[test]
fn stop_with_reached_price_triggers_at_once() {
    assert_eq!(
        last("S1 1@101, S2 5@102, B3 1@101\nB4 1 stop=101, B5 1 stop=102"),
        "4+, 4*, 4>2 1@102, 5+, 5*, 5>2 1@102"
    );
    assert_eq!(last("S1 1@101, B3 1@101\nB4 1 stop=102"), "4+");
}

#[test]
fn waiting_stop_can_be_cancelled_but_not_replaced() {
    assert_eq!(
        last("B1 2@103 stop=101\nr1 1@103, x1 9, x1, x1"),
        "1! BadCombination, 1! UnknownOrder, 1- 2 Requested, 1! UnknownOrder"
    );
    assert_eq!(last("S9 1@50, B1 2@103 stop=101, B8 1@50\nx1, time 9"), "1- 2 Requested");
}
