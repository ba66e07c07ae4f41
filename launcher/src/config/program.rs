//! Programs that a user names as strategies: whether they can be started, before anything is.

use protocol::plan::Trading;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// That the first word of a command is a program: a file with a slash in its name, or one that is found in PATH.
///
/// # Errors
/// What is wrong with it, and the way out.
pub fn executable(command: &str) -> Result<(), String> {
    let program = command.split_whitespace().next().unwrap_or_default();
    if program.contains('/') {
        return check_file(Path::new(program)).map_err(|why| format!("{program} {why}"));
    }
    if file_of(program).is_some() {
        return Ok(());
    }
    Err(format!(
        "there is no program {program} in PATH.\nOne in this folder is called ./{program}: --strategy {}./{command}",
        Trading::PROGRAM
    ))
}

/// The file of a program.
pub(super) fn file_of(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| check_file(path).is_ok())
}

/// A runtime that the sandbox has no room for, and what it needs all the time.
struct Runtime {
    /// What its program's name begins with.
    program: &'static str,
    name: &'static str,
    needs: &'static str,
}

const RUNTIMES: [Runtime; 4] = [
    Runtime {
        program: "python",
        name: "Python",
        needs: "opens files whenever something is imported or an error is printed, and packages such as NumPy have threads of their own",
    },
    Runtime {
        program: "java",
        name: "Java",
        needs: "makes memory executable (what it compiles), maps and opens files (classes), and has threads that compile and collect",
    },
    Runtime {
        program: "node",
        name: "Node.js",
        needs: "makes memory executable (what it compiles), opens files (modules), and has threads of its own",
    },
    Runtime {
        program: "dotnet",
        name: ".NET",
        needs: "makes memory executable (what it compiles), maps and opens files, and has threads of its own",
    },
];

/// Why a command cannot run in the sandbox, and the way out: it is known to be a runtime that needs more. One that is not known is started, and the kernel
/// says what it needs.
///
/// # Errors
/// What the runtime needs.
pub fn fits_the_sandbox(command: &str) -> Result<(), String> {
    let program = command.split_whitespace().next().unwrap_or_default();
    let file = file_of(program).unwrap_or_default();
    let real = file.canonicalize().unwrap_or_else(|_| file.clone());
    // By the name that it is called by, by its own behind a link, and by what a script says that it is for.
    let names =
        [&file, &real].map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned());
    let interpreter = interpreter(&real);
    let words = interpreter.split_whitespace().filter_map(|word| word.rsplit('/').next());
    let mut names = names.iter().map(String::as_str).chain(words);
    let is = |name: &str, runtime: &Runtime| {
        let rest = name.strip_prefix(runtime.program);
        rest.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
    };
    match names.find_map(|name| RUNTIMES.iter().find(|runtime| is(name, runtime))) {
        None => Ok(()),
        Some(Runtime { name, needs, .. }) => Err(format!(
            "{name} {needs}. In the sandbox a program that has attached does none of that: no file, no thread, no executable memory.\n\
             Use --isolation container: namespaces, a read-only root, limits and no network; or --isolation process"
        )),
    }
}

/// What the first line of a script says that it is for; nothing: it is none.
fn interpreter(path: &Path) -> String {
    let mut start = [0; 128];
    let read = File::open(path).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    let line = start[..read].strip_prefix(b"#!").and_then(|rest| rest.split(|byte| *byte == b'\n').next());
    String::from_utf8_lossy(line.unwrap_or_default()).into_owned()
}

fn check_file(path: &Path) -> Result<(), String> {
    let facts = std::fs::metadata(path).map_err(|error| format!("cannot be started: {error}"))?;
    if !facts.is_file() {
        return Err("is no file: name the program in it".into());
    }
    if facts.permissions().mode() & 0o111 == 0 {
        return Err("is not executable: chmod +x makes it so, or name the program that runs it".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_or_none_is_named_with_the_way_out() {
        assert_eq!((executable("sh -c exit"), executable("/bin/sh")), (Ok(()), Ok(())));
        for (command, words) in [
            ("/etc/passwd", "/etc/passwd is not executable: chmod +x"),
            ("/etc x", "/etc is no file"),
            ("./nowhere/mine", "./nowhere/mine cannot be started: No such file"),
            ("no-such-program -x", "--strategy exec:./no-such-program -x"),
        ] {
            let error = executable(command).unwrap_err();
            assert!(error.contains(words), "{command}: {error}");
        }
    }

    #[test]
    fn a_runtime_that_needs_more_than_the_sandbox_has_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let link = folder.path().join("strategy");
        std::os::unix::fs::symlink(make("python3.12", ""), &link).unwrap();
        for (command, words) in [
            (make("java", ""), "Java makes memory executable"),
            (make("node", ""), "Node.js"),
            (make("script", "#!/usr/bin/env python3\nprint()\n"), "Python opens files"),
            (link.display().to_string(), "Python opens files"),
        ] {
            let error = fits_the_sandbox(&format!("{command} -x 1")).unwrap_err();
            assert!(error.contains(words) && error.contains("--isolation container"), "{command}: {error}");
        }
        for command in
            ["sh", "/nowhere/mine", &make("javastrategy", ""), &make("shell", "#!/bin/sh\nexec java\n")]
        {
            assert_eq!(fits_the_sandbox(command), Ok(()));
        }
    }
}
