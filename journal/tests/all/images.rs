//! Crash images: the possible contents of the disk after a power failure, each recovered.
//!
//! The method is that of ALICE (Pillai et al., OSDI 2014) and CrashMonkey (Mohan et al., OSDI
//! 2018): the states of the files at the last sync and now are recorded, and of the blocks that
//! differ any subset may have been written. Blocks are sectors of 512 bytes: the smallest that a
//! disk writes whole. A block that was written several times may have any of its states.

use crate::basics::{open, options};
use crate::common::{State, append, folder, is_slow, payload, recovered};
use journal::format::{self, SEGMENT_HEADER, ScanResult, SegmentHeader};
use journal::{Durability, JournalError, Options, Writer};
use shm::random::SplitMix64;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const BLOCK: usize = 512;

type Image = Vec<(PathBuf, Vec<u8>)>;

fn image(folder: &Path) -> Image {
    let mut files: Image = fs::read_dir(folder)
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("log-"))
        .map(|entry| (entry.path(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

/// A log up to a sync, and the states of its files after each further append.
struct RecordedLog {
    folder: tempfile::TempDir,
    durable: u64,
    states: Vec<Image>,
}

const MANUAL: Durability = Durability::GroupCommit { records: u64::MAX, within: Duration::from_secs(3600) };

fn record(synced: u64, unsynced: u64) -> RecordedLog {
    let folder = folder();
    let mut writer = Writer::open(folder.path(), &options(MANUAL), |_| {}).unwrap();
    append(&mut writer, synced);
    writer.sync().unwrap();
    let durable = writer.watermark().durable();
    let mut states = vec![image(folder.path())];
    for sequence in synced + 1..=synced + unsynced {
        writer.append(&payload(sequence)).unwrap();
        states.push(image(folder.path()));
    }
    // Not closed, which would sync. From now on the directory holds images.
    drop(writer);
    // Segments are prepared at any time. Those missing in a state are empty and can be ignored.
    let final_paths: Vec<PathBuf> = states[states.len() - 1].iter().map(|(path, _)| path.clone()).collect();
    for state in &mut states {
        state.retain(|(path, _)| final_paths.contains(path));
    }
    for path in image(folder.path()).into_iter().map(|(path, _)| path) {
        fs::remove_file(path).unwrap();
    }
    RecordedLog { folder, durable, states }
}

impl RecordedLog {
    /// Returns the blocks in which the states differ, by file and offset.
    fn dirty_blocks(&self) -> Vec<(PathBuf, usize)> {
        let (first, last) = (&self.states[0], &self.states[self.states.len() - 1]);
        let mut dirty_blocks = Vec::new();
        for (path, bytes) in last {
            let before = first.iter().find(|(candidate, _)| candidate == path).map(|(_, bytes)| bytes);
            for at in (0..bytes.len()).step_by(BLOCK) {
                let was = before.map_or(&[0; BLOCK][..], |before| &before[at..at + BLOCK]);
                if was != &bytes[at..at + BLOCK] {
                    dirty_blocks.push((path.clone(), at));
                }
            }
        }
        dirty_blocks
    }

    /// Writes an image into the directory: the chosen state of each dirty block.
    fn write_image(
        &self,
        dirty_blocks: &[(PathBuf, usize)],
        state_of: &mut dyn FnMut(usize) -> usize,
    ) -> Image {
        // A header is durable before its segment is used.
        let mut image = self.states[self.states.len() - 1].clone();
        for (number, (path, at)) in dirty_blocks.iter().enumerate() {
            let state = &self.states[state_of(number)];
            let to =
                &mut image.iter_mut().find(|(candidate, _)| candidate == path).unwrap().1[*at..*at + BLOCK];
            match state.iter().find(|(candidate, _)| candidate == path) {
                Some((_, bytes)) => to.copy_from_slice(&bytes[*at..*at + BLOCK]),
                None if *at == 0 => to[SEGMENT_HEADER..].fill(0),
                None => to.fill(0),
            }
        }
        self.write_files(&image);
        image
    }

    fn write_files(&self, image: &Image) {
        image.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    }

    /// Checks that the image recovers to an exact prefix with all durable records.
    fn check_recovery(&self, durable: u64) -> Result<u64, String> {
        let (state, end) = recovered(self.folder.path()).map_err(|error| error.to_string())?;
        if state != State::after(end.last) {
            return Err(format!("not the state of {}", end.last));
        }
        if end.last < durable {
            return Err(format!("{} of {durable} durable records", end.last));
        }
        Ok(end.last)
    }

    /// Checks images of subsets of blocks: all subsets, or random ones with any state of each
    /// block.
    fn check_subsets(
        &self,
        random_images: u64,
        durable: u64,
        mut on_image: impl FnMut(Result<u64, String>, &Image),
    ) -> u64 {
        let dirty_blocks = self.dirty_blocks();
        let last = self.states.len() - 1;
        let mut images = 0;
        if dirty_blocks.len() <= 12 {
            for subset in 0..1_usize << dirty_blocks.len() {
                let image = self
                    .write_image(&dirty_blocks, &mut |block| if subset >> block & 1 == 1 { last } else { 0 });
                on_image(self.check_recovery(durable), &image);
                images += 1;
            }
        }
        let mut random = SplitMix64(durable);
        for _ in 0..random_images {
            let image = self.write_image(&dirty_blocks, &mut |_| match random.below(3) {
                0 => 0,
                1 => last,
                _ => random.below(last as u64 + 1) as usize,
            });
            on_image(self.check_recovery(durable), &image);
            images += 1;
        }
        images
    }
}

#[test]
fn any_subset_of_unsynced_blocks_recovers() {
    let (runs, random_images) = if is_slow() { (40, 3500) } else { (3, 1800) };
    let mut images = 0;
    let mut outcomes = std::collections::BTreeSet::new();
    for run in 0..runs {
        // Few records, then enough for several segments.
        for unsynced in [40, 400] {
            let recorded = record(60 + 17 * run, unsynced);
            images += recorded.check_subsets(random_images, recorded.durable, |result, _| {
                outcomes.insert(result.unwrap());
            });
        }
    }
    println!("{images} images of subsets, {} different ends", outcomes.len());
    assert!(
        images >= runs * 2 * random_images && outcomes.len() > 30,
        "{images} images, {} ends",
        outcomes.len()
    );
}

#[test]
fn journal_durable_before_sync_is_detected() {
    let recorded = record(60, 10);
    let mut lost = 0;
    // A journal without the sync would have acknowledged every appended record.
    recorded.check_subsets(0, 70, |result, _| lost += u64::from(result.is_err()));
    assert!(lost > 0);
}

/// Corrects all CRCs, which shows a journal as it would be without the check.
fn correct_crcs(image: &mut Image) {
    for (_, bytes) in image {
        let Ok(header) = SegmentHeader::decode(bytes) else { continue };
        let mut at = SEGMENT_HEADER;
        while at + 16 <= bytes.len() {
            let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            let (length, sequence) = (word(at) as u32, word(at + 8));
            if length == 0 || length as usize > bytes.len() - at - 16 {
                break;
            }
            let payload = bytes[at + 16..at + 16 + length as usize].to_vec();
            let first = format::first_word(header.seed(), length, sequence, &payload);
            bytes[at..at + 8].copy_from_slice(&first.to_le_bytes());
            at += format::record_size(length as usize);
        }
    }
}

#[test]
fn journal_without_crc_check_is_detected() {
    let recorded = record(60, 40);
    let mut wrong = 0;
    recorded.check_subsets(0, 60, |_, image| {
        let mut image = image.clone();
        correct_crcs(&mut image);
        recorded.write_files(&image);
        let result = std::panic::catch_unwind(|| recorded.check_recovery(60));
        wrong += u64::from(!matches!(result, Ok(Ok(_))));
    });
    assert!(wrong > 0);
}

/// Creates a log of more than 64 KiB in one segment. Returns its end.
fn long_log() -> (tempfile::TempDir, PathBuf, Vec<u8>, usize, u64) {
    let folder = folder();
    let options = Options { segment_bytes: 1 << 17, ..options(MANUAL) };
    let mut writer = Writer::open(folder.path(), &options, |_| {}).unwrap();
    let mut bytes = SEGMENT_HEADER;
    while bytes < 70 << 10 {
        let payload = payload(writer.last() + 1);
        bytes += format::record_size(payload.len());
        writer.append(&payload).unwrap();
    }
    let last = writer.last();
    let (path, file) = image(folder.path()).swap_remove(0);
    drop(writer);
    fs::write(&path, &file).unwrap();
    (folder, path, file, bytes, last)
}

#[test]
fn log_truncated_at_any_byte_recovers_prefix() {
    let (folder, path, file, end, last) = long_log();
    let step = if is_slow() { 1 } else { 13 };
    let open = fs::File::options().write(true).open(&path).unwrap();
    let (mut images, mut before) = (0, last);
    for cut in (end - (64 << 10)..=end).rev().step_by(step) {
        open.set_len(cut as u64).unwrap();
        let (state, log_end) = recovered(folder.path()).unwrap();
        assert!(log_end.last <= before && (images > 0 || log_end.last == last), "cut at {cut}");
        // Computing a state is slow: only some. Each record was compared anyway.
        assert!(images % 64 != 0 || state == State::after(log_end.last), "cut at {cut}");
        before = log_end.last;
        images += 1;
    }
    println!("{images} cuts, of {} bytes", file.len());
    assert!(before < last / 2);
}

#[test]
fn flipped_bit_ends_log_or_changes_nothing() {
    let (folder, path, file, end, last) = long_log();
    let open = fs::File::options().write(true).open(&path).unwrap();
    let mut random = SplitMix64(1);
    let images = if is_slow() { 60_000 } else { 5000 };
    for _ in 0..images {
        use std::os::unix::fs::FileExt;
        let bit = ((end - (64 << 10)) * 8) as u64 + random.below(8 * (64 << 10));
        let (at, mask) = (bit / 8, 1 << (bit % 8));
        open.write_at(&[file[at as usize] ^ mask], at).unwrap();
        let (_, log_end) = recovered(folder.path()).unwrap();
        // The padding after a payload is part of no record.
        assert!(log_end.last == last || log_end.stopped.is_some(), "bit {bit}");
        open.write_at(&[file[at as usize]], at).unwrap();
    }
    assert_eq!(recovered(folder.path()).unwrap().1.last, last);
}

#[test]
fn missing_durable_record_is_damage() {
    let folder = folder();
    let mut writer = Writer::open(folder.path(), &options(MANUAL), |_| {}).unwrap();
    append(&mut writer, 50);
    writer.sync().unwrap();
    writer.append(&payload(51)).unwrap();
    writer.close().unwrap();
    let (path, mut bytes) = image(folder.path()).swap_remove(0);
    let header = SegmentHeader::decode(&bytes).unwrap();
    let ScanResult::Record(first) = format::scan(&bytes[SEGMENT_HEADER..], 8000, header.seed(), 1) else {
        panic!()
    };
    bytes[SEGMENT_HEADER + format::record_size(first) + 16] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let error = recovered(folder.path()).unwrap_err();
    assert!(matches!(error, JournalError::Damaged { next: 2, durable: 51, .. }), "{error}");
    assert!(Writer::open(folder.path(), &options(MANUAL), |_| {}).is_err(), "a writer is refused as well");
}

#[test]
fn writer_continues_after_any_image_without_stale_records() {
    let recorded = record(60, 120);
    let dirty_blocks = recorded.dirty_blocks();
    let mut random = SplitMix64(77);
    let rounds = if is_slow() { 2000 } else { 60 };
    for round in 0..rounds {
        for entry in fs::read_dir(recorded.folder.path()).unwrap().flatten() {
            fs::remove_file(entry.path()).unwrap();
        }
        let last = recorded.states.len() as u64 - 1;
        recorded.write_image(&dirty_blocks, &mut |_| random.below(last + 1) as usize);
        let mut last = recorded.check_recovery(60).unwrap();
        // Two more writers: the second one recovers the records of the first one.
        for successor in 0..2 {
            let mut writer = open(recorded.folder.path());
            assert_eq!(writer.last(), last, "round {round}, successor {successor}");
            append(&mut writer, 30);
            last += 30;
        }
        assert_eq!(recorded.check_recovery(60), Ok(last), "round {round}");
    }
}
