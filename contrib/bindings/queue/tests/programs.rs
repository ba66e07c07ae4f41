//! The examples in C and C++, compiled with warnings as errors, run, and killed.
#![forbid(unsafe_code)]

mod common;

use common::{compile, is_installed, run, text};
use std::process::Command;
use std::time::Duration;

/// Rounds of a kill and a successor.
const ROUNDS: &str = "10";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder for programs")
}

#[test]
fn two_processes_in_c_exchange_messages() {
    let folder = folder();
    let program = compile(&folder, "cc", "c/two_processes.c", &["-std=c11"]);
    assert!(run(&mut Command::new(program)).contains("100000 trades"));
}

/// The example's sender, and a receiver in Rust, whose message type has the layout of the C struct.
#[test]
fn rust_receives_what_c_sends() {
    let folder = folder();
    let program = compile(&folder, "cc", "c/two_processes.c", &["-std=c11"]);
    let name = format!("rust-and-c-{}", std::process::id());
    let mut queue = shm::queue::spsc::<[u64; 3]>(&name, 1024).expect("a queue");
    let mut receiver = queue.receiver().expect("its receiver");
    let mut child = Command::new(program).arg(&name).spawn().expect("the sender starts");
    for n in 0..100_000 {
        let message = receiver.pop_timeout(Duration::from_secs(60)).expect("no fault");
        assert_eq!(message, Some([n, 100 + n % 7, 1 + n % 3]));
    }
    assert!(child.wait().expect("its status").success());
    assert_eq!(receiver.pop(), Ok(None));
}

#[test]
fn killed_senders_in_c_lose_nothing() {
    let folder = folder();
    for words in ["1", "3", "8", "125"] {
        let words = format!("-DWORDS={words}");
        // With pushes and pops that are calls, and without.
        for flags in [&["-std=c11", &words][..], &["-std=c11", "-DINLINE", &words]] {
            let program = compile(&folder, "cc", "c/crash_and_successor.c", flags);
            let found = run(Command::new(program).arg(ROUNDS));
            assert!(found.starts_with("10 senders killed") && found.contains("none lost"), "{found}");
        }
    }
}

#[test]
fn killed_senders_in_cpp_lose_nothing() {
    for compiler in ["g++", "clang++"] {
        if !is_installed(compiler) {
            println!("SKIPPED, NOTHING WAS COMPILED: no {compiler} here");
            continue;
        }
        let folder = folder();
        let program =
            compile(&folder, compiler, "cpp/crash_and_successor.cpp", &["-std=c++17", "-Wpedantic"]);
        let found = run(Command::new(program).arg(ROUNDS));
        assert!(found.starts_with("10 senders killed") && found.contains("none lost"), "{found}");
    }
}

/// The broken senders: the receivers of the examples find each.
#[test]
fn planted_errors_of_senders_are_found() {
    let sources =
        [("cc", "c/crash_and_successor.c", "-std=c11"), ("c++", "cpp/crash_and_successor.cpp", "-std=c++17")];
    for (compiler, source, standard) in sources {
        let folder = folder();
        let program = compile(&folder, compiler, source, &[standard]);
        for planted in ["lost", "doubled", "torn"] {
            let output = Command::new(&program).args([ROUNDS, planted]).output().expect("the program runs");
            let found = text(&output);
            assert!(!output.status.success() && found.starts_with(planted), "{source}, {planted}: {found}");
        }
    }
}
