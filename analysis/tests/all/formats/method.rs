//! What the book says about the method is what the code does.

use analysis::experiment::{Endpoint, isolation_cost};
use analysis::stats::placement::CORE_RTT_TOLERANCE;
use analysis::stats::{MIN_KEPT_SHARE, MIN_PAIRS, MIN_PAIRS_FOR_FLIPS, Margin, kept_pairs_decide};
use merge::WARM_UP;
use merge::tail::MIN_STEAL_NS;
use protocol::gaps::MIN_NS;
use std::path::Path;

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src").join(name);
    std::fs::read_to_string(path).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn percent(share: f64) -> String {
    format!("{} %", share * 100.0)
}

/// Returns the sentences of the method, with the numbers of the code.
fn sentences(margin: Margin, kept: f64) -> Vec<String> {
    let endpoint = Endpoint::default();
    vec![
        format!(
            "A pair is kept if both runs are complete and valid, and the core-to-core time of neither changed by more than {} from its start to its end. Two levels of one run are always kept. No latency decides it.",
            percent(kept)
        ),
        format!(
            "the endpoint, `{}` at {}, and the margin, the larger of {} ns and {} of the reference's median",
            endpoint.measure,
            endpoint.describe().split_once(' ').unwrap().1,
            margin.ns,
            percent(margin.share)
        ),
        format!(
            "Kept pairs decide if there are at least {MIN_PAIRS} of them and they are at least {} of all pairs; otherwise all pairs decide.",
            percent(MIN_KEPT_SHARE)
        ),
        format!("From {MIN_PAIRS_FOR_FLIPS} pairs on, A and B are permuted within pairs"),
        format!("**Fewer than {MIN_PAIRS} pairs** have no interval"),
        format!("Orders due within the first {} of the window are in no percentile", percent(WARM_UP)),
        format!("steal | no kernel event, {} µs or longer;", MIN_STEAL_NS / 1_000),
        format!("each time of {} µs and more in which it began no duty cycle", MIN_NS[0] / 1_000),
        format!("100 simulated bills of {} repeats each", isolation_cost::REPEATS),
    ]
}

#[test]
fn book_states_the_rules_of_the_code() {
    let page = page("measuring.md");
    let is_said = |sentence: &String| page.contains(sentence.as_str());
    let absent: Vec<String> = sentences(Margin::default(), CORE_RTT_TOLERANCE)
        .into_iter()
        .filter(|message| !is_said(message))
        .collect();
    assert!(absent.is_empty(), "measuring.md does not say: {absent:#?}");
    let least = (MIN_KEPT_SHARE * 20.0) as usize;
    assert!(kept_pairs_decide(least, 20) && !kept_pairs_decide(least - 1, 20));
    assert!(kept_pairs_decide(MIN_PAIRS, MIN_PAIRS) && !kept_pairs_decide(MIN_PAIRS - 1, MIN_PAIRS));
    // Other rules are found.
    assert!(
        !is_said(&sentences(Margin::default(), 0.3)[0]) && !is_said(&sentences(Margin::RELATIVE, 0.25)[1])
    );
}

#[test]
fn book_states_the_margin_and_the_repeats_of_a_bill() {
    let page = page("compare.md");
    let Margin { ns, share } = Margin::default();
    for expected in [
        format!("The margin is the larger of {ns} ns and {} of A's median.", percent(share)),
        format!("It has {} repeats", isolation_cost::REPEATS),
    ] {
        assert!(page.contains(&expected), "compare.md does not say: {expected}");
    }
}
