//! The board next to mmap-sync as the seed document 004 measures it: one writer and twelve readers
//! as threads, values of 96 bytes, three loads, the time of a write and that of a read from the
//! version's change to the whole value.
//!
//! `cargo run --release --bin seed [ROUNDS [MILLISECONDS [READERS]]]` in this folder. The two take
//! turns, and which of them begins changes from round to round. Prints the ratio of ours to theirs
//! for each figure, median of the rounds with quartiles, and ends with the rounds as JSON.

mod figures;
mod work;

use figures::{Figures, NAMES};
use mmap_sync::instance::InstanceVersion;
use mmap_sync::locks::SingleWriter;
use mmap_sync::synchronizer::Synchronizer;
use shm::board::{self, BoardShape};
use std::path::Path;
use std::time::Duration;
use work::{Load, Setup, Value, WORDS};
use wyhash::WyHash;

/// A writer that finds readers in the older copy sleeps for 1 µs, and takes the copy after 10 ms.
/// With the crate's own second a single preempted reader would hold the writer for a second; the
/// document's longest write is 257 µs, so its writer cannot have slept for that long.
type MmapSync = Synchronizer<WyHash, SingleWriter, 1024, 1_000>;
const GRACE: Duration = Duration::from_millis(10);

fn mmap_sync(setup: &Setup, folder: &Path) -> Figures {
    let path = folder.join("values");
    let mut writer = MmapSync::with_params(path.as_os_str());
    writer.write(&Value::default(), GRACE).expect("the first write");
    let readers = (0..setup.readers)
        .map(|_| (MmapSync::with_params(path.as_os_str()), None))
        .collect::<Vec<(MmapSync, Option<InstanceVersion>)>>();
    setup.run(
        move |value| {
            writer.write(value, GRACE).expect("a write");
        },
        readers,
        |(reader, seen)| {
            let version = reader.version().ok();
            let is_newer = version != *seen;
            *seen = version;
            is_newer
        },
        |(reader, _), into| {
            // SAFETY: what is mapped is an array of integers, of which every pattern of bits is one;
            // every value that is written has that length, so nothing is to be checked.
            if let Ok(value) = unsafe { reader.read::<Value>(false) } {
                // SAFETY: mapped, for as long as the guard lives; volatile, because a writer may
                // take the copy after its grace.
                *into = unsafe { (&raw const *value).cast::<Value>().read_volatile() };
            }
        },
    )
}

fn board(setup: &Setup, _: &Path) -> Figures {
    let (mut writer, reader) = board::pair(BoardShape::with_cells(1, WORDS).expect("a shape"));
    let readers = vec![(reader, 0); setup.readers];
    setup.run(
        move |value| _ = writer.write(0, value[1], value),
        readers,
        |(reader, seen)| {
            let version = reader.version(0);
            let is_newer = version != *seen;
            *seen = version;
            is_newer
        },
        |(reader, seen), into| {
            if let Ok(Some(stamp)) = reader.read(0, into) {
                *seen = stamp.version;
            }
        },
    )
}

/// Returns the lower quartile, the median and the upper quartile.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| {
        let at = (values.len() - 1) as f64 * f64::from(quarter) / 4.0;
        let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
        low + (high - low) * at.fract()
    })
}

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let mut next = |usual| words.next().unwrap_or(usual);
    let (rounds, milliseconds, readers) = (next(5), next(2_000), next(12) as usize);
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder in memory");
    let mut rows = Vec::new();
    for load in Load::ALL {
        let setup = Setup { load, readers, ns: milliseconds * 1_000_000 };
        let mut both = [Vec::new(), Vec::new()];
        for round in 0..rounds {
            for place in 0..2 {
                let which = (place + round as usize) % 2;
                let own = folder.path().join(format!("{}-{round}-{which}", load.name()));
                std::fs::create_dir(&own).expect("a folder for the round");
                both[which].push([mmap_sync, board][which](&setup, &own).values());
            }
        }
        println!(
            "{}: board to mmap-sync, {rounds} rounds of {milliseconds} ms, {readers} readers",
            load.name()
        );
        for (index, name) in NAMES.iter().enumerate() {
            let ratios = both[1].iter().zip(&both[0]).map(|(ours, theirs)| ours[index] / theirs[index]);
            let [low, middle, high] = quartiles(ratios.collect());
            println!("  {name:<16} {middle:>8.3} [{low:.3}–{high:.3}]");
            let list = |all: &[Vec<f64>]| {
                all.iter().map(|one| format!("{:.1}", one[index])).collect::<Vec<_>>().join(", ")
            };
            rows.push(format!(
                "  {{\"load\": \"{}\", \"figure\": \"{name}\", \"theirs\": [{}], \"ours\": [{}]}}",
                load.name(),
                list(&both[0]),
                list(&both[1])
            ));
        }
    }
    println!(
        "{{\"schema\": \"bulkhead.seed-board/1\", \"readers\": {readers}, \"round_ms\": {milliseconds}, \"rows\": [\n{}\n]}}",
        rows.join(",\n")
    );
}
