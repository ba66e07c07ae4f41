//! Runs the examples. `cargo test` builds them if no target is named.

use shm::memory::SHM_DIR;
use std::process::Command;

#[test]
fn examples_run_and_leave_nothing() {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap().join("examples");
    for name in ["two_processes", "crash_and_successor", "sealed", "tokio_consumer"] {
        let path = folder.join(name);
        if !path.exists() {
            eprintln!("SKIPPED, {name} IS NOT BUILT: `cargo test -p bulkhead-shm` without --test builds it");
            continue;
        }
        let output = Command::new(&path).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {}: {errors}", output.status);
        let file = name.replace('_', "-");
        let entries = std::fs::read_dir(SHM_DIR).unwrap();
        let leftovers = entries.filter(|entry| {
            let name = entry.as_ref().unwrap().file_name().into_string().unwrap();
            name.starts_with(&format!("{}{file}-", shm::queue::PREFIX))
        });
        assert_eq!(leftovers.count(), 0, "{name}");
    }
}
