//! The cost of the journal: `cargo bench -p bulkhead-journal [DIR]`. DIR is on the disk to be
//! measured; `target` by default. `proofs/referees/journals` compares other crates.

mod rows;

use std::path::PathBuf;
use std::time::Duration;

fn main() {
    let folder = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or("target".to_owned());
    let disk = PathBuf::from(folder).join("journal-bench");
    let memory = PathBuf::from("/dev/shm/journal-bench");
    rows::alternate("Append of 64 bytes", 3000, rows::appends(&memory, &disk));
    rows::snapshots(&disk, 10_000);
    println!(
        "\nGroups of 64-byte records on the disk\n\n| what | outstanding | records/s | p50 of a group |\n|---|---:|---:|---:|"
    );
    for outstanding in [1, 16, 256] {
        let [journal, raw] = rows::groups(&disk, outstanding, Duration::from_secs(2));
        rows::print_group("journal", outstanding, journal);
        rows::print_group("write + fdatasync", outstanding, raw);
    }
    for folder in [disk, memory] {
        let _ = std::fs::remove_dir_all(folder);
    }
}
