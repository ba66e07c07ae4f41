//! Two runs on the same cores warn each other, and `doctor` names the one that holds them.

use crate::common::{LONG, Launcher, output, signal, text};
use analysis::document::Document;
use analysis::summary::Summary;
use serde_json::Value;

#[test]
fn two_runs_on_the_same_cores_name_each_other() {
    let (first, second) = (Launcher::new(), Launcher::new());
    let (one, other) = (first.start(LONG), second.start(LONG));
    let doctor: Value = serde_json::from_slice(&output(&["doctor", "--json"]).stdout).unwrap();
    let checks = doctor["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == "other runs").unwrap();
    let pids = [one.pid(), other.pid()].map(|pid| format!("(pid {pid}) holds core"));
    for pid in &pids {
        assert!(found["found"].as_str().unwrap().contains(pid), "{found}");
    }
    assert_eq!((&found["state"], &doctor["fit"]), (&"bad".into(), &false.into()));
    // The one that came first learns of the other at its end; the one that came later knew from its
    // beginning.
    signal(one.pid(), "INT");
    let (_, said, _) = one.end();
    assert!(said.contains(&pids[1]), "{said}");
    signal(other.pid(), "INT");
    other.end();
    for (launcher, pid) in [(&first, &pids[1]), (&second, &pids[0])] {
        let summary = Summary::read(&launcher.folders()[0]).unwrap();
        assert!(summary.reasons.iter().any(|reason| reason.contains(pid)), "{:?}", summary.reasons);
    }
    let nobody = text(&output(&["doctor"]).stdout);
    assert!(!nobody.contains(&pids[0]) && !nobody.contains(&pids[1]), "{nobody}");
}
