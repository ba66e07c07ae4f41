//! A few messages of each type, written by hand.

use super::{Counts, Defect, Replay, replay};
use crate::lobster::read;

fn replay_lines(lines: &[&str], defect: Option<Defect>) -> Replay {
    replay(&read(&lines.join("\n")).unwrap(), defect)
}

fn counts(lines: &[&str]) -> Counts {
    let replay = replay_lines(lines, None);
    assert_eq!(replay.differences, Vec::<String>::new());
    replay.counts
}

/// Two bids at 100 and one at 99.
const BIDS: [&str; 3] = ["1,1,1,50,100,1", "1,1,2,30,100,1", "1,1,3,20,99,1"];

fn after_bids<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    [&BIDS, lines].concat()
}

#[test]
fn executions_at_one_time_are_one_order() {
    let counts = counts(&after_bids(&["2,4,1,50,100,1", "2,4,2,30,100,1", "2,4,3,5,99,1", "3,4,3,15,99,1"]));
    assert_eq!(counts, Counts { submissions: 3, executions: 4, takers: 2, ..Counts::default() });
}

#[test]
fn partial_cancel_keeps_priority() {
    let lines = after_bids(&["2,2,1,10,100,1", "3,4,1,40,100,1", "4,3,2,30,100,1"]);
    let expected = Counts {
        submissions: 3,
        partial_cancels: 1,
        executions: 1,
        takers: 1,
        deletions: 1,
        ..Counts::default()
    };
    assert_eq!(counts(&lines), expected);
    let broken = replay_lines(&lines, Some(Defect::PartialCancelLosesPriority));
    assert!(broken.differences[0].contains("line 4, "), "{broken:?}");
    assert!(broken.differences[1].contains("line 5, "), "{broken:?}");
}

#[test]
fn newest_first_is_found() {
    let broken = replay_lines(&after_bids(&["2,4,1,50,100,1"]), Some(Defect::NewestFirst));
    assert!(broken.differences[0].contains("line 2, "), "{broken:?}");
    assert!(broken.differences[1].contains("line 4, "), "{broken:?}");
}

#[test]
fn late_order_has_the_priority_of_its_number() {
    let lines = [
        "1,1,5,50,100,-1",
        "1,1,6,50,100,-1",
        "2,1,4,10,100,-1",
        "3,4,4,10,100,-1",
        "3,4,5,50,100,-1",
        "3,4,6,50,100,-1",
    ];
    let expected =
        Counts { submissions: 3, executions: 3, takers: 1, late: 1, moved: 2, ..Counts::default() };
    assert_eq!(counts(&lines), expected);
}

#[test]
fn hidden_execution_is_better_than_displayed_orders() {
    let hidden = |price| replay_lines(&after_bids(&[&format!("2,5,0,10,{price},1")]), None);
    assert_eq!(hidden(101).counts.hidden_executions, 1);
    for price in [100, 99] {
        assert!(hidden(price).differences[0].contains("a displayed one"), "{price}");
    }
}

#[test]
fn unknown_orders_and_halts_are_left_out() {
    let lines =
        after_bids(&["2,3,9,10,100,1", "2,4,9,10,100,1", "2,2,9,10,100,1", "3,7,0,0,-1,-1", "3,6,0,9,100,1"]);
    let expected = Counts {
        submissions: 3,
        unknown_deletions: 1,
        unknown_executions: 1,
        unknown_partial_cancels: 1,
        crosses_and_halts: 2,
        ..Counts::default()
    };
    assert_eq!(counts(&lines), expected);
}

#[test]
fn execution_without_priority_is_left_out() {
    let lines =
        after_bids(&["2,4,2,10,100,1", "2,4,2,20,100,1", "2,4,3,20,99,1", "3,4,1,50,100,1", "4,1,4,5,99,1"]);
    let replay = replay_lines(&lines, None);
    let expected = Counts { submissions: 4, executions: 1, takers: 1, passed_over: 3, ..Counts::default() };
    assert_eq!((replay.counts, replay.passed_over.len()), (expected, 3), "{:?}", replay.differences);
    assert_eq!(replay.passed_over[0], "line 4: 10 of order 2 at 100 traded, order 1 at 100 had priority");
    assert_eq!(replay.passed_over[2], "line 6: 20 of order 3 at 99 traded, order 1 at 100 had priority");
}

#[test]
fn contradictions_of_the_file_are_differences() {
    for (line, why) in [
        ("2,1,2,10,98,1", "already submitted"),
        ("2,1,4,10,100,-1", "Trade"),
        ("2,3,1,40,100,1", "leaves: 50"),
        ("2,3,1,50,101,1", "no such order is open"),
        ("2,3,1,50,100,-1", "no such order is open"),
        ("2,2,1,50,100,1", "a partial cancel of all that is open"),
        ("2,4,1,60,100,1", "only 50 is open"),
    ] {
        let replay = replay_lines(&after_bids(&[line]), None);
        assert_eq!(replay.counts.differing, 1, "{line}");
        assert!(replay.differences[0].contains(why), "{:?}", replay.differences);
    }
}
