//! Which runs `--find-capacity` plans, and how they are announced.

use super::tests::parsed;
use crate::ExperimentFlags;
use crate::capacity::{announcement, search_of};
use analysis::experiment::isolation_cost::Capacity;
use analysis::experiment::{Experiment, Row};
use anyhow::Result;
use planner::config::Settings;
use planner::host::fake;

fn planned(line: &str) -> Result<Experiment> {
    parsed(line).plan(fake::plain(2).machine())
}

/// The runs of a search: name, strategies, window and crossover of each.
fn searched(line: &str) -> Vec<(String, u64, u64, bool)> {
    let search = search_of(&planned(line).unwrap()).unwrap().unwrap();
    let row = |row: &Row| {
        let settings = Settings::from_texts(&search.settings_of(row)).unwrap();
        let of = (settings.strategies.unwrap().0, settings.window.unwrap().0);
        (row.setting.name.clone(), of.0, of.1, settings.crossover.is_some())
    };
    search.rows.iter().map(row).collect()
}

#[test]
fn levels_are_searched_alone_however_the_bill_measures_them() {
    let wanted = ["isolation=thread", "isolation=thread A/A", "isolation=process"];
    let turns = "--isolation thread+thread+process --strategies 12 --crossover 50ms --idle park \
                 --orders 160k --window 8s --strategy-cores 1 --find-capacity 2ms";
    let own = "--technique spsc-mux --isolation thread,process --strategies 4 --idle park --repeats 5 \
               --orders 20k --window 1s --find-capacity 2ms";
    for (line, window) in [(turns, 2_000_000_000), (own, 1_000_000_000)] {
        let runs = searched(line);
        let names: Vec<&str> = runs.iter().map(|run| run.0.as_str()).collect();
        assert_eq!(names, wanted, "{line}");
        for (name, strategies, own_window, takes_turns) in runs {
            assert_eq!((strategies, own_window, takes_turns), (4, window, false), "{name}");
        }
    }
    let both =
        searched("--isolation thread,process --strategies 2,4 --idle park --repeats 5 --find-capacity 1ms");
    assert_eq!(both.len(), 5, "{both:?}");
    assert!(both.iter().any(|run| run.0 == "isolation=process strategies=4"), "{both:?}");
}

#[test]
fn search_begins_at_the_rate_of_the_bill_and_is_announced() {
    let record =
        planned("--isolation thread,process --repeats 5 --orders 30k --window 2s --find-capacity 2ms")
            .unwrap();
    let limits = Capacity::from_bill(&record).unwrap().unwrap().limits;
    assert_eq!((limits.first_per_s, limits.bound_ns), (15_000.0, 2_000_000));
    let message = announcement(&record).unwrap();
    assert!(message.chars().count() <= 80, "{message}");
    assert!(message.starts_with("then capacity (p99 ≤ 2,000 µs): up to 30 rates of 3 runs"), "{message}");
    let without = planned("--isolation thread,process --repeats 5").unwrap();
    assert_eq!((announcement(&without), search_of(&without).unwrap()), (None, None));
    let error = planned("--isolation thread,process --find-capacity 0ns").unwrap_err().to_string();
    assert!(error.contains("--find-capacity 0ns"), "{error}");
}
