//! Boards between processes: read-only pages, deaths, successors, and waiting readers.

use super::{ticks, value};
use crate::common::test_child;
use shm::board::{BoardError, BoardShape, MAX_SLEEP, NamedWriter, Reader, Wait};
use shm::memory::SHM_DIR;
use std::os::unix::process::parent_id;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const NAME: &str = "BULKHEAD_TEST_BOARD";
const WORDS: usize = 32;

fn name(suffix: &str) -> String {
    format!("bulkhead-test-{}-{suffix}", std::process::id())
}

fn shape() -> BoardShape {
    BoardShape::with_cells(2, WORDS).unwrap()
}

fn exists(name: &str) -> bool {
    std::path::Path::new(&format!("{SHM_DIR}/{name}.board")).exists()
}

/// A child that writes cell 1 while its parent lives; the first one creates the board.
#[test]
#[ignore = "a process of its own"]
fn write_forever() {
    let name = std::env::var(NAME).unwrap();
    let parent = parent_id();
    let created =
        if exists(&name) { NamedWriter::resume(&name) } else { NamedWriter::create(&name, shape()) };
    let mut writer = created.unwrap();
    while parent_id() == parent {
        let next = writer.version(1) + 1;
        writer.write(1, ticks(1, next), &value(1, next, WORDS));
        if next % 64 == 0 {
            writer.wake(1);
        }
    }
}

fn start(name: &str) -> Child {
    let mut child = test_child("board::processes::write_forever");
    child.env(NAME, name).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Polls until the board exists: a child needs a moment to create it.
fn open(name: &str) -> Reader {
    let started = Instant::now();
    loop {
        match Reader::open(name) {
            Ok(reader) => return reader,
            Err(error) => assert!(started.elapsed() < Duration::from_secs(30), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn killed_writers_leave_whole_values_and_successors_continue() {
    let name = name("killed");
    let mut into = [0; WORDS];
    let mut seen = 0;
    let mut child = start(&name);
    let reader = open(&name);
    for round in 0..5 {
        for _ in 0..20 {
            let wait = [Wait::Spin, Wait::Yield, Wait::Sleep][round % 3];
            let newer = reader.wait_for_newer(1, seen, wait, Duration::from_secs(30));
            assert!(newer > seen, "the writer continues");
            if let Ok(stamp) = reader.read(1, &mut into) {
                let stamp = stamp.unwrap();
                assert!(stamp.version >= newer);
                assert_eq!(into[..], value(1, stamp.version, WORDS), "whole");
                seen = stamp.version;
            }
        }
        assert!(matches!(NamedWriter::resume(&name), Err(BoardError::Written(_))), "its writer lives");
        kill(child);
        // Without a writer the last value is whole.
        let stamp = reader.read(1, &mut into).unwrap().unwrap();
        assert_eq!(into[..], value(1, stamp.version, WORDS), "whole");
        assert!(stamp.version >= seen && stamp.ticks == ticks(1, stamp.version));
        seen = stamp.version;
        child = start(&name);
    }
    kill(child);
    let mut last = NamedWriter::resume(&name).unwrap();
    let next = last.version(1) + 1;
    assert_eq!(last.write(1, 0, &value(1, next, WORDS)), next);
    drop(last);
    assert!(!exists(&name), "the file is removed");
    assert_eq!(reader.version(1), next, "the memory stays mapped");
}

#[test]
fn dead_writers_board_is_replaced_live_ones_refused() {
    let name = name("taken");
    let child = start(&name);
    let reader = open(&name);
    assert!(NamedWriter::create(&name, shape()).is_err(), "its writer lives");
    assert!(reader.wait_for_newer(1, 0, Wait::Sleep, Duration::from_secs(30)) > 0, "it has written");
    kill(child);
    let replacement = NamedWriter::create(&name, shape()).unwrap();
    assert_eq!(replacement.version(1), 0, "a new board");
    assert!(reader.version(1) > 0, "the old mapping is unchanged");
    drop(replacement);
    assert!(!exists(&name));
    for bad in ["", "a/b", "a.b", "ä"] {
        assert!(matches!(Reader::open(bad), Err(BoardError::Name(_))), "{bad}");
    }
}

#[test]
fn reader_pages_are_read_only() {
    let name = name("pages");
    let writer = NamedWriter::create(&name, shape()).unwrap();
    let mappings = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let is_board = |line: &&str| line.ends_with(&format!("{name}.board"));
        maps.lines()
            .filter(is_board)
            .map(|line| line.split(' ').nth(1).unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(mappings(), ["rw-s"], "the writer's");
    let _reader = Reader::open(&name).unwrap();
    let mut all = mappings();
    all.sort();
    assert_eq!(all, ["r--s", "rw-s"], "and the reader's");
    drop(writer);
}

/// The kernel lets a reader sleep on a page that it cannot write, and a wake-up reaches it. Without
/// a wake-up the reader polls once each [`MAX_SLEEP`], a thousand times a second.
#[test]
fn reader_waits_on_a_read_only_page() {
    let name = name("sleeps");
    let mut writer = NamedWriter::create(&name, shape()).unwrap();
    let reader = Reader::open(&name).unwrap();
    let started = Instant::now();
    assert_eq!(reader.wait_for_newer(0, 0, Wait::Sleep, 20 * MAX_SLEEP), 0, "no newer version");
    assert!(started.elapsed() >= 20 * MAX_SLEEP);
    // If the kernel refused the wait, the reader would not sleep at all.
    let switches = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before = switches();
    reader.wait_for_newer(0, 0, Wait::Sleep, 20 * MAX_SLEEP);
    assert!(switches() > before, "it slept");
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| reader.wait_for_newer(0, 0, Wait::Sleep, Duration::from_secs(30)));
        writer.write(0, 0, &value(0, 1, WORDS));
        writer.wake(0);
        assert_eq!(sleeper.join().unwrap(), 1);
    });
}
