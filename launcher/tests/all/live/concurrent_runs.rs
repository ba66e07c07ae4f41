//! Two runs on the same cores name each other in their reports, and `doctor` names both.

use crate::common::{LONG, Launcher, list, output, string};
use record::document::Document;
use verdict::summary::Summary;

#[test]
fn runs_sharing_cores_name_each_other() {
    let (first, second) = (Launcher::new(), Launcher::new());
    let (first_run, second_run) = (first.start(LONG), second.start(LONG));
    let doctor = output("doctor --json").json();
    let found = list(&doctor["checks"]).iter().find(|check| check["name"] == "other runs").unwrap();
    let pids = [first_run.pid(), second_run.pid()].map(|pid| format!("(pid {pid}) holds core"));
    for pid in &pids {
        assert!(string(&found["found"]).contains(pid), "{found}");
    }
    assert_eq!((&found["state"], &doctor["fit"]), (&"bad".into(), &false.into()));
    // The first run finds the second at its end; the second found the first at its start.
    let stdout = first_run.interrupt().stdout;
    assert!(stdout.contains(&pids[1]), "{stdout}");
    second_run.interrupt();
    for (launcher, pid) in [(&first, &pids[1]), (&second, &pids[0])] {
        let summary = Summary::read(&launcher.folder()).unwrap();
        assert!(summary.valid && summary.orders.sent == summary.orders.returned, "{:?}", summary.violations);
        assert!(summary.reasons.iter().any(|reason| reason.contains(pid)), "{:?}", summary.reasons);
    }
    let doctor_after = output("doctor").stdout;
    assert!(!doctor_after.contains(&pids[0]) && !doctor_after.contains(&pids[1]), "{doctor_after}");
}
