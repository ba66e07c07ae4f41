//! Transports of other languages: programs that `external/build.sh` makes, or scripts. Their
//! protocol is in `external/README.md`.

use crate::peer::{End, Peer, Program};
use std::path::{Path, PathBuf};
use std::process::Command;

struct External {
    name: &'static str,
    library: &'static str,
    language: &'static str,
    kind: &'static str,
    creator: End,
    has_many_senders: bool,
    starts_over: bool,
    /// What to do if its program is not there.
    hint: &'static str,
}

const fn external(names: [&'static str; 4], creator: End, hint: &'static str) -> External {
    let [name, library, language, kind] = names;
    External { name, library, language, kind, creator, has_many_senders: true, starts_over: false, hint }
}

const ALL: [External; 0] = [];

/// Folder of the sources, unless the programs are elsewhere: `CRASH_TABLE_PEERS`.
fn folder() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/crash-peers");
    std::env::var_os("CRASH_TABLE_PEERS").map_or(built, PathBuf::from)
}

/// Returns the command of a transport and the version it reports; `None` if it cannot run here.
fn find(external: &External) -> Option<(Vec<String>, String)> {
    let command = if external.language == "Python" {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("external").join(external.name);
        vec!["python3".into(), script.with_extension("py").display().to_string()]
    } else {
        vec![folder().join(external.name).display().to_string()]
    };
    let output = Command::new(&command[0]).args(&command[1..]).arg("version").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !version.is_empty()).then_some((command, version))
}

pub fn all() -> Vec<Peer> {
    let peer = |external: &External| {
        let (command, version) = find(external)?;
        let &External { name, library, language, kind, creator, has_many_senders, starts_over, .. } = external;
        let program = Program::External(command);
        let is_newest_only = false;
        Some(Peer {
            name,
            library,
            version,
            language,
            kind,
            creator,
            is_newest_only,
            has_many_senders,
            starts_over,
            program,
        })
    };
    ALL.iter().filter_map(peer).collect()
}

/// Prints which transports are skipped, and how to get them.
pub fn print_missing() {
    for external in ALL.iter().filter(|external| find(external).is_none()) {
        eprintln!("SKIPPED {}: {}", external.name, external.hint);
    }
    if !cfg!(feature = "iceoryx2") {
        eprintln!("SKIPPED iceoryx2: build with --features iceoryx2 (needs libclang: pip install libclang)");
    }
}
