//! Writers in their own processes that are killed at random times.

use crate::basics::open;
use crate::common::{Random, State, append, folder, is_slow, payload, recovered};
use crate::victim::{victim, words};
use shm::sync::Ordering;
use std::path::Path;
use std::time::Duration;

#[test]
#[ignore = "a process that other tests start"]
fn as_a_victim() {
    let (Some(what), Some(folder)) = (std::env::var_os("JOURNAL_VICTIM"), std::env::var_os("JOURNAL_FOLDER"))
    else {
        return;
    };
    let folder = Path::new(&folder);
    match what.to_str().unwrap() {
        "append" => append_for_ever(folder, false),
        "boast" => append_for_ever(folder, true),
        "stepped" => crate::stepped::stepped(folder, false),
        "stepped-boast" => crate::stepped::stepped(folder, true),
        "limited" => crate::faults::limited(folder),
        "stranger" => crate::faults::stranger(folder),
        other => panic!("{other}"),
    }
}

fn append_for_ever(folder: &Path, is_boaster: bool) {
    let acknowledged = words(folder);
    let mut writer = open(folder);
    loop {
        let next = writer.last() + 1;
        if is_boaster {
            // The faulty variant acknowledges before it appends.
            acknowledged[0].store(next, Ordering::Release);
            std::thread::sleep(Duration::from_micros(50));
        }
        writer.append(&payload(next)).unwrap();
        acknowledged[0].store(next, Ordering::Release);
        if next.is_multiple_of(64) {
            writer.snapshot(State::after(next).encode()).unwrap();
        }
        if next > 2000 {
            // Computing a state of many records is slow.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn round(what: &str, folder: &Path, random: &mut Random) -> (u64, u64) {
    let before = recovered(folder).unwrap().1.last;
    let mut victim = victim(what, folder);
    // While it recovers, at its first record, or later.
    let wanted = random.below(120);
    let begun = std::time::Instant::now();
    while victim.acknowledged() < before + wanted && begun.elapsed() < Duration::from_secs(20) {
        std::hint::spin_loop();
    }
    std::thread::sleep(Duration::from_micros(random.below(300)));
    victim.kill();
    victim.wait();
    let (state, end) = recovered(folder).unwrap();
    assert_eq!(state, State::after(end.last));
    assert!(end.last >= before, "what was there stays there");
    (victim.acknowledged(), end.last)
}

#[test]
fn killed_writer_loses_no_acknowledged_record() {
    let mut random = Random(3);
    let folder = folder();
    for kill in 0..if is_slow() { 1000 } else { 40 } {
        // One directory for all: each victim continues after the last one.
        let (acknowledged, there) = round("append", folder.path(), &mut random);
        assert!(
            acknowledged == 0 || (acknowledged..=acknowledged + 1).contains(&there),
            "kill {kill}: {acknowledged}, {there}"
        );
        if there > 1500 {
            for entry in std::fs::read_dir(folder.path()).unwrap().flatten() {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    }
    let mut writer = open(folder.path());
    append(&mut writer, 10);
}

#[test]
fn writer_that_acknowledges_early_is_found() {
    let mut random = Random(4);
    let lost = (0..100).any(|_| {
        let folder = folder();
        let (acknowledged, there) = round("boast", folder.path(), &mut random);
        there < acknowledged
    });
    assert!(lost);
}
