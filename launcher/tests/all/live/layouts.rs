//! Layouts with fewer cores than strategies, and without pinning.

use crate::common::{Launcher, SHORT, list, string};
use serde_json::Value;

fn texts(list_of: &Value) -> Vec<&str> {
    list(list_of).iter().map(string).collect()
}

#[test]
fn parked_strategies_on_one_core_are_marked_and_measured() {
    let launcher = Launcher::new();
    let summary = launcher.summary("--strategies 4 --venues 2 --orders 2000 --window 200ms --delay uniform:1ms..20ms --strategy-cores 1 --idle park");
    let cores: Vec<&Value> = list(&summary["processes"]).iter().map(|thread| &thread["core"]).collect();
    assert!(cores[..4].iter().all(|core| *core == cores[0] && core.is_u64()), "{cores:?}");
    let notes = texts(&summary["notes"]);
    assert!(notes.iter().any(|note| note.starts_with("4 strategies share core")), "{notes:?}");
    let reasons = texts(&summary["reasons"]);
    assert!(!reasons.iter().any(|reason| reason.contains("share core")), "{reasons:?}");
}

#[test]
fn unpinned_run_has_no_thread_on_a_core() {
    let launcher = Launcher::new();
    let summary = launcher.summary(&format!("{SHORT} --pin off"));
    assert!(list(&summary["processes"]).iter().all(|thread| thread["core"].is_null()), "{summary:#}");
    assert!(texts(&summary["reasons"]).iter().any(|reason| reason.contains("(--pin off)")), "{summary:#}");
}
