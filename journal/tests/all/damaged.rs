//! Segments that another program removes, truncates, changes, renames or swaps after a kill:
//! recovery returns every acknowledged record, or reports the damage.

use crate::common::{State, append, copy, folder, is_slow, payload, recovered};
use crate::victim::{victim, words};
use journal::format::{SEGMENT_HEADER, SegmentHeader, WATERMARK};
use journal::{Durability, JournalError, Options, Recovered, Writer, tool};
use shm::random::SplitMix64;
use shm::sync::Ordering;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MODES: [&str; 3] = ["damaged-process", "damaged-group", "damaged-each"];

fn options(mode: &str) -> Options {
    let durability = match mode {
        "damaged-process" => Durability::Process,
        "damaged-group" => Durability::GroupCommit { records: 8, within: Duration::from_micros(200) },
        _ => Durability::EveryRecord,
    };
    Options { durability, segment_bytes: 4096, snapshot_every: 700, ..Options::default() }
}

/// Runs in the victim: appends, and acknowledges what its mode promises.
pub fn write_until_killed(mode: &str, folder: &Path) {
    let acknowledged = words(folder);
    let mut state = State::default();
    let mut writer = Writer::open(folder, &options(mode), |part| match part {
        Recovered::Snapshot { state: bytes, .. } => state = journal::codec::decode(1, bytes).unwrap(),
        Recovered::Record { payload, .. } => state.apply(payload),
    })
    .unwrap();
    loop {
        let payload = payload(writer.last() + 1);
        writer.append(&payload).unwrap();
        state.apply(&payload);
        acknowledged[0].store(writer.durable_sequence().min(writer.last()), Ordering::Release);
        // The group mode has no snapshots, and so more segments.
        if writer.is_snapshot_due() && !writer.is_group_commit() {
            writer.snapshot(state.encode()).unwrap();
        }
        if writer.last().is_multiple_of(8) {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Starts a victim and kills it. Returns the last record that it acknowledged.
fn kill_one(mode: &str, folder: &Path, random: &mut SplitMix64) -> u64 {
    let wanted = recovered(folder).unwrap().1.last + random.below(300);
    let mut victim = victim(mode, folder);
    let started = Instant::now();
    while victim.acknowledged() < wanted && started.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_micros(random.below(300)));
    victim.kill();
    victim.wait();
    victim.acknowledged()
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| journal::index_of(path).is_some());
    paths.sort();
    paths
}

/// Returns `true` if a later segment shows that a segment was there: with its records, or with a
/// watermark, which modes that sync store in an empty one as well.
fn has_successor(mode: &str, later: &[PathBuf]) -> bool {
    let has_records =
        |path: &PathBuf| fs::read(path).unwrap()[SEGMENT_HEADER..].iter().any(|byte| *byte != 0);
    later.iter().any(|path| mode != MODES[0] || has_records(path))
}

/// Damages one segment, or two. Returns a description. The newest segment does not vanish: without
/// a successor nothing shows that it was there.
fn damage(mode: &str, folder: &Path, random: &mut SplitMix64) -> String {
    let paths = segments(folder);
    let chosen = random.below(paths.len() as u64) as usize;
    let (path, other) = (&paths[chosen], &paths[random.below(paths.len() as u64) as usize]);
    let can_vanish = has_successor(mode, &paths[chosen + 1..]);
    let length = fs::metadata(path).unwrap().len();
    let index = journal::index_of(path).unwrap();
    let damage = match random.below(6) {
        0 if can_vanish => fs::remove_file(path).map(|()| "removed".to_owned()),
        1 if can_vanish => fs::rename(path, folder.join("moved")).map(|()| "moved away".to_owned()),
        2 => {
            let to = folder.join(format!("log-{:08}", index + 1 + random.below(200)));
            if to.exists() {
                Ok(String::new())
            } else {
                fs::rename(path, &to).map(|()| format!("renamed to {to:?}"))
            }
        }
        3 => {
            let end = if random.below(3) == 0 { 100 } else { length };
            let cut = random.below(end).max(u64::from(!can_vanish));
            let file = File::options().write(true).open(path).unwrap();
            file.set_len(cut).map(|()| format!("cut to {cut}"))
        }
        4 => {
            let (one, two) = (fs::read(path).unwrap(), fs::read(other).unwrap());
            fs::write(path, two)
                .and_then(|()| fs::write(other, one))
                .map(|()| format!("swapped with {other:?}"))
        }
        _ => {
            let end = if random.below(4) == 0 { 64 } else { length };
            let bit = random.below(8 * end);
            let mut byte = [0];
            let file = File::options().read(true).write(true).open(path).unwrap();
            file.read_exact_at(&mut byte, bit / 8).unwrap();
            byte[0] ^= 1 << (bit % 8);
            file.write_all_at(&byte, bit / 8).map(|()| format!("bit {bit} flipped"))
        }
    };
    format!("{path:?} of {} {}", paths.len(), damage.unwrap())
}

#[derive(Debug, Default)]
struct Outcomes {
    kills: u64,
    damaged: u64,
    returned: u64,
    reported: u64,
    silent: Vec<String>,
}

impl Outcomes {
    /// Recovers a damaged journal: all records up to `acknowledged`, or an error. Without syncs,
    /// the reason why the log ends counts as a report.
    fn check(&mut self, mode: &str, folder: &Path, acknowledged: u64, damage: &str) {
        self.damaged += 1;
        let is_reported = match recovered(folder) {
            Ok((state, end)) if end.last >= acknowledged => {
                assert_eq!(state.records, end.last);
                self.returned += 1;
                return;
            }
            Ok((_, end)) => mode == MODES[0] && end.stopped.is_some(),
            Err(error) => {
                let is_whole = tool::verify(folder, &mut std::io::sink()).unwrap_or(false);
                assert!(!is_whole, "{mode}: {damage}: recovery refuses it ({error}), and verify does not");
                true
            }
        };
        let opened = Writer::open(folder, &options(mode), |_| {});
        if is_reported && opened.map_or(true, |writer| writer.recovered().stopped.is_some()) {
            self.reported += 1;
        } else {
            self.silent.push(format!("{mode}: {acknowledged} acknowledged, {damage}"));
        }
    }
}

/// Kills writers of each mode and damages copies of what each leaves, after `prepare`.
fn kill_and_damage(kills: u64, prepare: impl Fn(&Path)) -> Outcomes {
    let (mut random, mut outcomes) = (SplitMix64(7), Outcomes::default());
    for mode in MODES {
        let folder = folder();
        let mut acknowledged = 0;
        for _ in 0..kills {
            acknowledged = kill_one(mode, folder.path(), &mut random).max(acknowledged);
            outcomes.kills += 1;
            let (_, end) = recovered(folder.path()).unwrap();
            assert!(end.last >= acknowledged, "{mode}: {} of {acknowledged}, undamaged", end.last);
            for _ in 0..3 {
                let copied = self::folder();
                copy(folder.path(), copied.path());
                prepare(copied.path());
                let damage = damage(mode, copied.path(), &mut random);
                outcomes.check(mode, copied.path(), acknowledged, &damage);
            }
            if end.last > 3000 {
                fs::read_dir(folder.path())
                    .unwrap()
                    .flatten()
                    .for_each(|file| fs::remove_file(file.path()).unwrap());
                acknowledged = 0;
            }
        }
    }
    outcomes
}

#[test]
fn damage_after_kills_is_never_silent() {
    let outcomes = kill_and_damage(if is_slow() { 334 } else { 10 }, |_| {});
    println!(
        "{} kills, {} damaged journals: {} returned all, {} reported",
        outcomes.kills, outcomes.damaged, outcomes.returned, outcomes.reported
    );
    assert!(outcomes.silent.is_empty(), "{:#?}", outcomes.silent);
    assert!(outcomes.returned > outcomes.kills / 4 && outcomes.reported > outcomes.kills / 2, "{outcomes:?}");
}

/// Removes the watermarks of all segments, as if they were new ones of an earlier build.
fn remove_watermarks(folder: &Path) {
    for path in segments(folder) {
        let bytes = [0_u64, !0].map(u64::to_le_bytes);
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .write_all_at(bytes.as_flattened(), WATERMARK as u64)
            .unwrap();
    }
    recovered(folder).unwrap();
}

#[test]
fn journal_without_watermarks_is_detected() {
    let outcomes = kill_and_damage(10, remove_watermarks);
    assert!(!outcomes.silent.is_empty(), "{outcomes:?}");
}

/// A journal of several closed segments, with the mode's durability.
fn closed_journal(mode: &str) -> tempfile::TempDir {
    let folder = folder();
    let mut writer = Writer::open(folder.path(), &options(mode), |_| {}).unwrap();
    append(&mut writer, 400);
    writer.close().unwrap();
    folder
}

fn verify(folder: &Path) -> (bool, String) {
    let mut out = Vec::new();
    let is_whole = tool::verify(folder, &mut out).unwrap();
    (is_whole, String::from_utf8(out).unwrap())
}

#[test]
fn new_segment_begins_with_the_known_watermark() {
    let folder = folder();
    let mut writer = Writer::open(folder.path(), &options(MODES[2]), |_| {}).unwrap();
    append(&mut writer, 400);
    let watermarks: Vec<_> = segments(folder.path())
        .iter()
        .map(|path| SegmentHeader::decode(&fs::read(path).unwrap()).unwrap().watermark)
        .collect();
    assert!(watermarks.len() > 4 && watermarks.is_sorted(), "{watermarks:?}");
    // The last one is prepared, or the writer's.
    assert_eq!(watermarks[watermarks.len() - 1], 400, "{watermarks:?}");
}

#[test]
fn lost_newest_records_are_damage_without_later_ones() {
    for mode in &MODES[1..] {
        let folder = closed_journal(mode);
        let paths = segments(folder.path());
        fs::remove_file(&paths[paths.len() - 1]).unwrap();
        let error = recovered(folder.path()).unwrap_err();
        assert!(matches!(error, JournalError::Missing { .. } | JournalError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("journal cut"), "{error}");
        assert!(Writer::open(folder.path(), &options(mode), |_| {}).is_err());
        let (is_whole, report) = verify(folder.path());
        assert!(!is_whole && report.contains("DAMAGED"), "{report}");
        let left = tool::cut(folder.path()).unwrap();
        assert_eq!(recovered(folder.path()).unwrap().0, State::after(left), "{mode}");
        append(&mut Writer::open(folder.path(), &options(mode), |_| {}).unwrap(), 10);
        assert!(verify(folder.path()).0);
    }
}

#[test]
fn gap_before_a_later_segment_is_reported() {
    let folder = closed_journal(MODES[0]);
    fs::remove_file(&segments(folder.path())[2]).unwrap();
    let (is_whole, report) = verify(folder.path());
    assert!(!is_whole && report.contains("a later segment begins with record"), "{report}");
    let refused = Writer::open(folder.path(), &options(MODES[0]), |_| {}).err().unwrap();
    assert!(matches!(refused, JournalError::Missing { .. }), "{refused}");
    tool::cut(folder.path()).unwrap();
    assert!(verify(folder.path()).0);
}

#[test]
fn segment_with_another_index_is_refused() {
    let folder = closed_journal(MODES[0]);
    let paths = segments(folder.path());
    let (one, two) = (fs::read(&paths[1]).unwrap(), fs::read(&paths[2]).unwrap());
    fs::write(&paths[1], &two).unwrap();
    fs::write(&paths[2], &one).unwrap();
    let error = recovered(folder.path()).unwrap_err().to_string();
    assert!(error.contains("log-00000002") && error.contains("renamed or replaced"), "{error}");
    // Nothing was changed: swapped back, all is there.
    assert!(Writer::open(folder.path(), &options(MODES[0]), |_| {}).is_err());
    fs::write(&paths[1], one).unwrap();
    fs::write(&paths[2], two).unwrap();
    assert_eq!(recovered(folder.path()).unwrap().0, State::after(400));
}

#[test]
fn stray_high_index_delays_no_sync() {
    let folder = folder();
    append(&mut Writer::open(folder.path(), &options(MODES[0]), |_| {}).unwrap(), 100);
    fs::write(folder.path().join(format!("log-{:08}", 1_u64 << 60)), "stray").unwrap();
    // Its predecessor synced nothing, so the sync includes all segments from the first one on: that
    // ends only if the indices up to the stray one are not counted.
    let mut writer = Writer::open(folder.path(), &options(MODES[0]), |_| {}).unwrap();
    append(&mut writer, 1);
    writer.sync().unwrap();
    drop(writer);
    assert_eq!(recovered(folder.path()).unwrap().0, State::after(101));
    fs::write(folder.path().join(format!("log-{}", u64::MAX)), "stray").unwrap();
    let error = Writer::open(folder.path(), &options(MODES[0]), |_| {}).err().unwrap().to_string();
    assert!(error.contains("move the file away"), "{error}");
}
