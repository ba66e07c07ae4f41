//! Counts in the book that can be counted again from `data/results`.

use checks::root;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

const TECHNIQUES: [&str; 6] = ["spsc-mux", "array-queue", "linked", "channel", "pipe", "unix-seqpacket"];

/// The techniques with rings that several strategies write.
const SHARED: [&str; 4] = ["array-queue", "linked", "channel", "pipe"];

/// Counts the runs of the first release: contained, late, not contained; by level and technique. A
/// flood in a shared ring counts as not contained, because a run with one is not valid any more.
fn counted() -> BTreeMap<(String, String), [u64; 3]> {
    let mut answers = BTreeMap::new();
    // A repeated run replaces the one it repeats.
    for file in ["contain.json", "contain-rerun.json"] {
        let path = root().join("data/results/2026-11-20-epyc-2core").join(file);
        let saved: Value =
            serde_json::from_str(&fs::read_to_string(path).expect("saved runs")).expect("JSON");
        for row in saved["rows"].as_array().expect("rows") {
            let word = |key: &str| row[key].as_str().expect("a word").to_owned();
            answers.insert((word("isolation"), word("technique"), word("fault")), word("contained"));
        }
    }
    let mut counts = BTreeMap::new();
    for ((isolation, technique, fault), answer) in &answers {
        let is_shared_flood = fault == "flood" && SHARED.contains(&technique.as_str());
        let answer = if is_shared_flood { "no" } else { answer };
        let which = ["yes", "waited", "no"].iter().position(|word| *word == answer).expect("a known answer");
        counts.entry((isolation.clone(), technique.clone())).or_insert([0; 3])[which] += 1;
    }
    counts
}

#[test]
fn containment_counts_are_those_of_the_saved_runs() {
    let counts = counted();
    let page = fs::read_to_string(root().join("docs/src/containment.md")).expect("a page");
    let cell = |[yes, late, no]: [u64; 3]| format!("{yes} / {late} / {no}");
    for isolation in ["thread", "process", "sandbox"] {
        let of = |technique: &str| counts[&(isolation.to_owned(), technique.to_owned())];
        let each = TECHNIQUES.map(of);
        let all = each.iter().fold([0; 3], |sum, one| [0, 1, 2].map(|which| sum[which] + one[which]));
        let row = format!("| `{isolation}` | {} | {} |", each.map(cell).join(" | "), cell(all));
        assert!(page.contains(&row), "the page does not have: {row}");
    }
    let isolated = ["process", "sandbox"].map(|level| counts[&(level.to_owned(), "spsc-mux".to_owned())]);
    assert_eq!(isolated, [[12, 0, 0]; 2]);
    let threads = counts.iter().filter(|((level, _), _)| level == "thread");
    let threads =
        threads.fold([0, 0], |[yes, all], (_, [good, late, no])| [yes + good, all + good + late + no]);
    assert_eq!(threads, [0, 68]);
    let processes = counts.iter().filter(|((level, _), _)| level == "process");
    assert_eq!(
        processes.fold([0; 2], |[yes, all], (_, row)| [yes + row[0], all + row.iter().sum::<u64>()]),
        [58, 68]
    );
}
