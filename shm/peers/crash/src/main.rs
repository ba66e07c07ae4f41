//! What transports between processes do when a peer is killed, paused or hostile: see README.md.
//!
//! `cargo run --release [--features iceoryx2] [-- POINTS [NAME …]]` in this folder. For each
//! transport it prints a line for each fact: name, version, experiment, fact, count. Exits with 1
//! if the digest of the facts of one is another than in `expected.csv`.

mod facts;
mod hostile;
mod peer;
mod peers;
mod place;
mod process;
mod role;
mod trials;

use facts::Facts;
use peer::{Attach, End, Peer, version};
use std::path::Path;

/// Number of points at which an end is killed, by default.
const POINTS: usize = 200;

/// Digests of what was seen with [`POINTS`], by name.
const EXPECTED: &str = include_str!("../expected.csv");

/// Words that are overwritten, for each place at which an end is killed.
const WORDS_PER_POINT: usize = 4;

/// A transport, with what is compiled for it.
struct Contender {
    name: &'static str,
    krate: &'static str,
    kind: &'static str,
    test: fn(&str, usize) -> Facts,
    role: fn(&Path, End, Attach, u64),
}

impl Contender {
    const fn new<P: Peer>(name: &'static str) -> Self {
        Self { name, krate: P::CRATE, kind: P::KIND, test: test::<P>, role: serve::<P> }
    }
}

const ALL: &[Contender] = &[
    Contender::new::<peers::bulkhead::Bulkhead<1>>("bulkhead-spsc"),
    Contender::new::<peers::bulkhead::Bulkhead<3>>("bulkhead-mpsc"),
    Contender::new::<peers::control::Control>("control"),
    Contender::new::<peers::shaq::Spsc>("shaq-spsc"),
    Contender::new::<peers::shaq::Mpmc>("shaq-mpmc"),
    Contender::new::<peers::ringfire::Spmc>("ringfire-spmc"),
    Contender::new::<peers::ringfire::Mpmc>("ringfire-mpmc"),
    Contender::new::<peers::ipc_ring::IpcRing>("ipc_ring"),
    Contender::new::<peers::ipmpsc::Ipmpsc>("ipmpsc"),
    Contender::new::<peers::interprocess::Interprocess>("interprocess"),
    Contender::new::<peers::mmap_sync::MmapSync>("mmap-sync"),
    #[cfg(feature = "iceoryx2")]
    Contender::new::<peers::iceoryx::Iceoryx>("iceoryx2"),
];

fn serve<P: Peer>(place: &Path, end: End, attach: Attach, id: u64) {
    match end {
        End::Sender => role::sender::<P>(place, attach, id),
        End::Receiver => role::receiver::<P>(place, attach),
    }
}

fn test<P: Peer>(name: &str, limit: usize) -> Facts {
    let mut facts = Facts::default();
    let (push, pop) =
        (trials::instructions::<P>(name, End::Sender), trials::instructions::<P>(name, End::Receiver));
    facts.add("sender killed", "instructions of the push", push as u64);
    facts.add("receiver killed", "instructions of the pop", pop as u64);
    for point in trials::points(push, limit) {
        trials::kill_sender::<P>(name, point, &mut facts);
    }
    for point in trials::points(pop, limit) {
        trials::kill_receiver::<P>(name, point, &mut facts);
    }
    for place in hostile::places::<P>(name, WORDS_PER_POINT * limit) {
        hostile::overwrite::<P>(name, place, &mut facts);
    }
    trials::leave::<P>(name, &mut facts);
    facts
}

fn usage() -> ! {
    let names: Vec<&str> = ALL.iter().map(|contender| contender.name).collect();
    eprintln!("usage: crash-table [POINTS [NAME …]]; names: {}", names.join(", "));
    std::process::exit(2);
}

/// Runs as an end of a transport, if the arguments request it.
fn role(arguments: &[String]) -> bool {
    let [word, name, end, place, attach, id] = arguments else { return false };
    let contender = ALL.iter().find(|contender| contender.name == name);
    let (true, Some(contender)) = (word == "role", contender) else { return false };
    let end = if end == "sender" { End::Sender } else { End::Receiver };
    let attach = match attach.as_str() {
        "create" => Attach::Create,
        "join" => Attach::Join,
        _ => Attach::Succeed,
    };
    (contender.role)(Path::new(place), end, attach, id.parse().unwrap_or(0));
    true
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if role(&arguments) {
        return;
    }
    let limit = match arguments.first().map(|first| first.parse::<usize>()) {
        None => POINTS,
        Some(Ok(limit)) if limit >= 2 => limit,
        Some(_) => usage(),
    };
    let names = arguments.get(1..).unwrap_or_default();
    if names.iter().any(|name| ALL.iter().all(|contender| contender.name != name)) {
        usage();
    }
    let mut differs = false;
    println!("transport,crate,version,kind,experiment,fact,count");
    for contender in ALL.iter().filter(|it| names.is_empty() || names.iter().any(|name| name == it.name)) {
        let Contender { name, krate, kind, .. } = contender;
        let facts = (contender.test)(name, limit);
        for (experiment, fact, count) in facts.rows() {
            println!("{name},{krate},{},\"{kind}\",{experiment},\"{fact}\",{count}", version(krate));
        }
        let digest = format!("{:016x}", facts.digest());
        let expected = EXPECTED.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(','));
        let is_expected = expected.is_some_and(|expected| expected == digest);
        differs |= !is_expected;
        eprintln!(
            "{name}: digest {digest}, {}",
            if is_expected { "as expected" } else { "another one than in expected.csv" }
        );
    }
    if differs {
        std::process::exit(1);
    }
}
