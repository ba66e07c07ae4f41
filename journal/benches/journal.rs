//! What the journal costs: `cargo bench -p journal [FOLDER]`. The folder lies on the disk to be
//! measured; `target` unless told. With the other crates beside it: `journal/peers`.

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
        rows::print_group("journal", outstanding, rows::group(&disk, outstanding, Duration::from_secs(1)));
        rows::print_group(
            "write + fdatasync",
            outstanding,
            rows::raw(&disk, outstanding, Duration::from_secs(1)),
        );
    }
    for folder in [disk, memory] {
        let _ = std::fs::remove_dir_all(folder);
    }
}
