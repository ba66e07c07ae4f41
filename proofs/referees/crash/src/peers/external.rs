//! Transports of other languages: programs that `external/build.sh` makes, or scripts. Their
//! protocol is in `external/README.md`.

use crate::peer::{End, Peer, Program};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

struct External {
    name: &'static str,
    library: &'static str,
    language: &'static str,
    kind: &'static str,
    has_many_senders: bool,
    /// What to do if its program is not there.
    hint: &'static str,
}

const BUILD: &str = "run external/build.sh";

const fn external(names: [&'static str; 4], has_many_senders: bool, hint: &'static str) -> External {
    let [name, library, language, kind] = names;
    External { name, library, language, kind, has_many_senders, hint }
}

/// A queue of bulkhead that is used without a call for each message.
const fn inline(name: &'static str, kind: &'static str) -> External {
    let hint = "cargo build --release --package bulkhead-queue in the root, and run external/build.sh";
    external([name, "bulkhead-queue", "C++", kind], false, hint)
}

const ALL: [External; 13] = [
    inline("bulkhead-inline-4", "SPSC queue of 4 bytes, inline"),
    inline("bulkhead-inline-8", "SPSC queue of 8 bytes, inline"),
    inline("bulkhead-inline-64", "SPSC queue of 64 bytes, inline"),
    inline("bulkhead-inline-1000", "SPSC queue of 1,000 bytes, inline"),
    external(
        ["boost-queue", "Boost.Interprocess", "C++", "message_queue"],
        true,
        "apt-get install libboost-dev, and run external/build.sh",
    ),
    external(
        ["cpp-ipc", "cpp-ipc", "C++", "channel"],
        true,
        "install mutouyun/cpp-ipc 1.4.1, and run external/build.sh OUT PREFIX VERSION",
    ),
    external(["posix-mq", "POSIX mq", "C", "mq_send"], true, BUILD),
    external(["sysv-msg", "System V msg", "C", "msgsnd"], true, BUILD),
    external(["unix-seqpacket", "Unix socket", "C", "SOCK_SEQPACKET"], true, BUILD),
    external(
        ["py-shared-memory", "multiprocessing.shared_memory", "Python", "SPSC ring in SharedMemory"],
        false,
        "install Python 3.11 or later",
    ),
    external(
        ["py-connection", "multiprocessing.connection", "Python", "Listener and Client"],
        true,
        "install Python 3.11 or later",
    ),
    external(
        ["agrona", "Agrona", "Java", "OneToOneRingBuffer"],
        false,
        "set JAVA_BIN, and run external/build.sh",
    ),
    external(
        ["aeron-ipc", "Aeron", "Java", "IPC, exclusive publications"],
        true,
        "set JAVA_BIN, and run external/build.sh",
    ),
];

/// Folder of the sources, unless the programs are elsewhere: `CRASH_TABLE_PEERS`.
fn folder() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/crash-peers");
    std::env::var_os("CRASH_TABLE_PEERS").map_or(built, PathBuf::from)
}

/// Returns the path of the interpreter: `python3` may be a script that looks for it.
fn python() -> Option<String> {
    static PATH: OnceLock<Option<String>> = OnceLock::new();
    let find = || {
        let output =
            Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    PATH.get_or_init(find).clone()
}

/// Returns the command of a transport and the version it reports; `None` if it cannot run here.
fn find(external: &External) -> Option<(Vec<String>, String)> {
    let command = if external.language == "Python" {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("external").join(external.name);
        vec![python()?, "-SEB".into(), script.with_extension("py").display().to_string()]
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
        let &External { name, library, language, kind, has_many_senders, .. } = external;
        let program = Program::External(command);
        Some(Peer {
            name,
            library,
            version,
            language,
            kind,
            creator: End::Receiver,
            is_newest_only: false,
            has_many_senders,
            starts_over: false,
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
    if !cfg!(feature = "subetha") {
        eprintln!("SKIPPED subetha: build with --features subetha (Rust 1.95: and --ignore-rust-version)");
    }
}
