//! Two runs at once do not meet: on the same cores they warn each other, and `doctor` names the one
//! that holds them.

use crate::common::{LONG, Launcher, list, output, string};
use analysis::document::Document;
use analysis::summary::Summary;

#[test]
fn two_runs_on_the_same_cores_name_each_other() {
    let (first, second) = (Launcher::new(), Launcher::new());
    let (one, other) = (first.start(LONG), second.start(LONG));
    let doctor = output("doctor --json").json();
    let found = list(&doctor["checks"]).iter().find(|check| check["name"] == "other runs").unwrap();
    let pids = [one.pid(), other.pid()].map(|pid| format!("(pid {pid}) holds core"));
    for pid in &pids {
        assert!(string(&found["found"]).contains(pid), "{found}");
    }
    assert_eq!((&found["state"], &doctor["fit"]), (&"bad".into(), &false.into()));
    // The one that came first learns of the other at its end; the one that came later knew from its
    // beginning.
    let said = one.interrupt().stdout;
    assert!(said.contains(&pids[1]), "{said}");
    other.interrupt();
    for (launcher, pid) in [(&first, &pids[1]), (&second, &pids[0])] {
        let summary = Summary::read(&launcher.folder()).unwrap();
        assert!(summary.valid && summary.orders.sent == summary.orders.returned, "{:?}", summary.violations);
        assert!(summary.reasons.iter().any(|reason| reason.contains(pid)), "{:?}", summary.reasons);
    }
    let nobody = output("doctor").stdout;
    assert!(!nobody.contains(&pids[0]) && !nobody.contains(&pids[1]), "{nobody}");
}
