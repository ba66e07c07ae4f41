//! Writers in their own processes that are killed at random times.

use crate::basics::open;
use crate::common::{State, append, folder, is_slow, payload, recovered};
use crate::victim::{victim, words};
use shm::random::SplitMix64;
use shm::sync::Ordering;
use std::path::Path;
use std::time::Duration;

#[test]
#[ignore = "a process that other tests start"]
fn as_a_victim() {
    let (Some(mode), Some(folder)) = (std::env::var_os("JOURNAL_VICTIM"), std::env::var_os("JOURNAL_FOLDER"))
    else {
        return;
    };
    let folder = Path::new(&folder);
    match mode.to_str().unwrap() {
        "append" => append_forever(folder, false),
        "acknowledge-early" => append_forever(folder, true),
        "stepped" => crate::stepped::stepped(folder, false),
        "stepped-acknowledge-early" => crate::stepped::stepped(folder, true),
        "limited" => crate::faults::limited(folder),
        "unprivileged" => crate::faults::unprivileged(folder),
        mode if mode.starts_with("damaged-") => crate::damaged::write_until_killed(mode, folder),
        other => panic!("{other}"),
    }
}

fn append_forever(folder: &Path, acknowledges_early: bool) {
    let acknowledged = words(folder);
    let mut writer = open(folder);
    loop {
        let next = writer.last() + 1;
        if acknowledges_early {
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

fn round(mode: &str, folder: &Path, random: &mut SplitMix64) -> (u64, u64) {
    let before = recovered(folder).unwrap().1.last;
    let mut victim = victim(mode, folder);
    // The kill comes during its recovery, at its first record, or later.
    let wanted = random.below(120);
    let started = std::time::Instant::now();
    while victim.acknowledged() < before + wanted && started.elapsed() < Duration::from_secs(20) {
        std::hint::spin_loop();
    }
    std::thread::sleep(Duration::from_micros(random.below(300)));
    victim.kill();
    victim.wait();
    let (state, end) = recovered(folder).unwrap();
    assert_eq!(state, State::after(end.last));
    assert!(end.last >= before, "recovered records stay");
    (victim.acknowledged(), end.last)
}

#[test]
fn killed_writer_loses_no_acknowledged_record() {
    let mut random = SplitMix64(3);
    let folder = folder();
    for kill in 0..if is_slow() { 1000 } else { 40 } {
        // One directory for all: each victim continues after the last one.
        let (acknowledged, recovered_last) = round("append", folder.path(), &mut random);
        assert!(
            acknowledged == 0 || (acknowledged..=acknowledged + 1).contains(&recovered_last),
            "kill {kill}: {acknowledged}, {recovered_last}"
        );
        if recovered_last > 1500 {
            for entry in std::fs::read_dir(folder.path()).unwrap().flatten() {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    }
    let mut writer = open(folder.path());
    append(&mut writer, 10);
}

#[test]
fn writer_that_acknowledges_early_is_detected() {
    let mut random = SplitMix64(4);
    let lost = (0..100).any(|_| {
        let folder = folder();
        let (acknowledged, recovered_last) = round("acknowledge-early", folder.path(), &mut random);
        recovered_last < acknowledged
    });
    assert!(lost);
}
