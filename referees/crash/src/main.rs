//! What transports between processes do when a peer is killed, paused or hostile: see README.md.
//!
//! `cargo run --release [--features iceoryx2] [-- POINTS [NAME …]]` in this folder. For each
//! transport it prints a line for each fact: name, version, experiment, fact, count. Exits with 1
//! if the digest of the facts of one is another than in `expected.csv`.

mod facts;
mod hostile;
mod messages;
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

const EXPECTED: &str = include_str!("../expected.csv");

/// Words that are overwritten, for each place at which an end is killed.
const WORDS_PER_POINT: usize = 4;

fn test(peer: &Peer, limit: usize) -> Facts {
    let mut facts = Facts::default();
    let (push, pop) = (trials::instructions(peer, End::Sender), trials::instructions(peer, End::Receiver));
    facts.add("sender killed", "instructions of the push", push as u64);
    facts.add("receiver killed", "instructions of the pop", pop as u64);
    for point in trials::points(push, limit) {
        trials::kill_sender(peer, point, &mut facts);
    }
    for point in trials::points(pop, limit) {
        trials::kill_receiver(peer, point, &mut facts);
    }
    for place in hostile::places(peer, WORDS_PER_POINT * limit) {
        hostile::overwrite(peer, place, &mut facts);
    }
    trials::leave(peer, &mut facts);
    facts
}

fn usage(all: &[Peer]) -> ! {
    let names: Vec<&str> = all.iter().map(|peer| peer.name).collect();
    eprintln!("usage: crash-table [POINTS [NAME …]]; names: {}", names.join(", "));
    std::process::exit(2);
}

fn role(all: &[Peer], arguments: &[String]) -> bool {
    let [word, name, end, place, attach, id] = arguments else { return false };
    let peer = all.iter().find(|peer| peer.name == name);
    let (true, Some(peer)) = (word == "role", peer) else { return false };
    let end = if end == "sender" { End::Sender } else { End::Receiver };
    let attach = match attach.as_str() {
        "create" => Attach::Create,
        "join" => Attach::Join,
        _ => Attach::Resume,
    };
    (peer.role)(Path::new(place), end, attach, id.parse().unwrap_or(0));
    true
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let all = peers::all();
    if role(&all, &arguments) {
        return;
    }
    let limit = match arguments.first().map(|first| first.parse::<usize>()) {
        None => POINTS,
        Some(Ok(limit)) if limit >= 2 => limit,
        Some(_) => usage(&all),
    };
    let names = arguments.get(1..).unwrap_or_default();
    if names.iter().any(|name| all.iter().all(|peer| peer.name != name)) {
        usage(&all);
    }
    let mut differs = false;
    println!("transport,crate,version,kind,experiment,fact,count");
    for peer in all.iter().filter(|it| names.is_empty() || names.iter().any(|name| name == it.name)) {
        let Peer { name, krate, kind, .. } = peer;
        let facts = test(peer, limit);
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
