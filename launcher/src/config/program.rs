//! Programs that a user names as strategies: whether they can be started, before anything is.

use protocol::plan::Trading;
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
}
