use super::*;
use shm::process::start_time;

fn sleeper() -> Child {
    Command::new("sleep").arg("60").spawn().unwrap()
}

#[test]
fn unwatchable_child_is_killed_and_reaped() {
    let child = sleeper();
    let pid = child.id();
    let start = start_time(pid).unwrap();
    let refused = |_| Err(io::Error::from_raw_os_error(nix::libc::EMFILE));
    let error = Process::watch("strategy-3", child, PathBuf::new(), refused).err().unwrap();
    assert!(format!("{error:#}").starts_with("cannot watch process strategy-3: "), "{error:#}");
    assert_ne!(start_time(pid), Some(start), "neither running nor a zombie");
}

#[test]
fn last_words_are_no_scraps_of_a_backtrace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strategy-0.stderr");
    let trace = "\nthread 'main' panicked at src/mine.rs:7:5:\nno price for BTC\nstack backtrace:\n   0: rust_begin_unwind\n             \
                 at /rustc/lib.rs:1:2\n  11: mine::main\nnote: Some details are omitted\n";
    std::fs::write(&path, trace).unwrap();
    let mut process = Process::watch("strategy-0", sleeper(), path, process::pidfd_open).unwrap();
    assert_eq!(process.stderr_tail(), "thread 'main' panicked at src/mine.rs:7:5: · no price for BTC");
    process.end();
}

#[test]
fn bytes_that_are_no_text_are_quoted() {
    assert_eq!(shown_line("price € 3\tof 5\r".as_bytes()), "price € 3\tof 5");
    assert_eq!(shown_line(b"\x1b[2Jall is well\xff"), r#""\x1b[2Jall is well\xff""#);
    assert_eq!(shown_line(&[0; 4096]).chars().count(), 2 + 4 * MAX_HEX_BYTES + 1);
}

#[test]
fn one_that_has_ended_gets_no_signal() {
    let mut process = Process::watch("sleeper", sleeper(), PathBuf::new(), process::pidfd_open).unwrap();
    // As after its end: its id may be another's by now. Here nobody has it yet, so that it can be
    // seen.
    process.status = Some(ExitStatus::from_raw(0));
    process.kill();
    process.stop();
    assert!(process.proof_of_death().unwrap().is_none(), "it was signalled");
    assert_eq!(process.child.try_wait().unwrap(), None);
    process.status = None;
    process.kill();
    process.end();
    assert_eq!(process.exit_text(), "signal 9 (SIGKILL)");
    process.end_overdue(Duration::from_secs(5));
    assert_eq!(process.exit_text(), "signal 9 (SIGKILL)", "it had ended");
}

#[test]
fn process_killed_after_deadline_reports_delay() {
    let mut process = Process::watch("sleeper", sleeper(), PathBuf::new(), process::pidfd_open).unwrap();
    process.end_overdue(Duration::from_secs(5));
    assert_eq!(process.exit_text(), "killed 5,000 ms after it was asked to exit");
    let child = Command::new("true").spawn().unwrap();
    let mut process = Process::watch("quick", child, PathBuf::new(), process::pidfd_open).unwrap();
    process::wait_readable(&[process.pidfd()], Duration::from_secs(30)).unwrap();
    process.end_overdue(Duration::from_secs(5));
    assert_eq!(process.exit_text(), "exit 0", "it had ended, and nobody had looked");
}
