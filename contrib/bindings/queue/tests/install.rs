//! What `install.sh` installs is enough for a program in C: compiled with what pkg-config prints,
//! with the shared and with the static library.
#![forbid(unsafe_code)]

mod common;

use common::{crate_folder, is_installed, library_folder, run};
use std::path::Path;
use std::process::Command;

fn install(prefix: &Path) {
    let mut command = Command::new(crate_folder().join("install.sh"));
    run(command.arg(prefix).arg(library_folder()));
}

/// Returns the words that pkg-config prints.
fn pkg_config(prefix: &Path, words: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(words).arg("bulkhead-queue").env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    run(&mut command).split_whitespace().map(str::to_owned).collect()
}

/// Compiles the example with these words, and returns what it needs when it runs.
fn compile_and_run(prefix: &Path, words: &[String]) -> String {
    let program = prefix.join("program");
    let source = crate_folder().join("examples/c/two_processes.c");
    run(Command::new("cc").arg(source).args(words).arg("-o").arg(&program));
    assert!(run(Command::new(&program).env("LD_LIBRARY_PATH", prefix.join("lib"))).contains("100000 trades"));
    run(Command::new("ldd").arg(&program).env("LD_LIBRARY_PATH", prefix.join("lib")))
}

#[test]
fn installed_library_is_found_by_pkg_config() {
    if !is_installed("pkg-config") {
        println!("SKIPPED, NOTHING WAS INSTALLED: no pkg-config here");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder to install to");
    let prefix = folder.path();
    install(prefix);
    let version = pkg_config(prefix, &["--modversion"]);
    assert_eq!(version, [env!("CARGO_PKG_VERSION")]);

    let name = format!("libbulkhead_queue.so.{}", bulkhead_queue::codes::BHQ_VERSION >> 16);
    assert!(prefix.join("lib").join(&name).exists(), "install.sh has another major version than {name}");
    let shared = pkg_config(prefix, &["--cflags", "--libs"]);
    let needed = compile_and_run(prefix, &shared);
    assert!(needed.contains(&name), "build.rs has another major version than {name}: {needed}");

    // The static library by its name; the rest as pkg-config prints it.
    let archive = prefix.join("lib/libbulkhead_queue.a").display().to_string();
    let words = pkg_config(prefix, &["--static", "--cflags", "--libs"]).into_iter();
    let fixed = words.map(|word| if word == "-lbulkhead_queue" { archive.clone() } else { word });
    let needed = compile_and_run(prefix, &fixed.collect::<Vec<_>>());
    assert!(!needed.contains("bulkhead_queue"), "{needed}");
}

#[test]
fn headers_alone_do_not_link() {
    let folder = tempfile::tempdir().expect("a folder to install to");
    install(folder.path());
    let source = crate_folder().join("examples/c/two_processes.c");
    let mut command = Command::new("cc");
    command.arg(source).arg("-I").arg(folder.path().join("include"));
    let output = command.arg("-o").arg(folder.path().join("program")).output().expect("a compiler");
    assert!(!output.status.success() && common::text(&output).contains("bhq_create"));
}
