//! What transports between processes do when a peer is killed, paused or hostile: see README.md.
//!
//! `cargo run --release [--features FEATURE] [-- [POINTS] [NAME …]]` in this folder. For each
//! transport it prints a line for each fact: transport, library, version, language, kind,
//! experiment, fact, value. Those of the experiment `run` tell on what machine, when and for how long
//! it ran. Exits with 1 if the digest of the facts of one is another than in `expected.csv`.

mod conditions;
mod facts;
mod hostile;
mod lifecycle;
mod messages;
mod peer;
mod peers;
mod place;
mod popped;
mod process;
mod role;
mod shared;
mod tracer;
mod trials;

use facts::Facts;
use lifecycle::Act;
use peer::{Attach, End, Peer, Program};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// Points at which an end is killed in create, attach and detach, by default: half as many
/// instructions at equal distances, and as many changes of shared memory and system calls.
const POINTS: usize = 30;
/// Instructions of push and pop at which an end is killed, for each point: by default all of most.
const INSTRUCTIONS_PER_POINT: usize = 6;
/// Answers that one experiment waits for in vain, a second each; the points that are left then are
/// skipped and counted.
const MAX_HANGS: u64 = 60;

const EXPECTED: &str = include_str!("../expected.csv");

/// Words that are overwritten, for each point.
const WORDS_PER_POINT: usize = 5;

fn try_all<T>(experiment: &'static str, points: Vec<T>, facts: &mut Facts, run: impl Fn(T, &mut Facts)) {
    let before = process::hangs();
    for point in points {
        if process::hangs() - before < MAX_HANGS {
            run(point, facts);
        } else {
            facts.add(experiment, "points skipped after many hangs", 1);
        }
    }
}

fn test(peer: &Peer, limit: usize) -> Facts {
    let mut facts = Facts::default();
    for (end, name, size, run) in [
        (End::Sender, "sender killed", "instructions of the push", trials::kill_sender as trials::Kill),
        (End::Receiver, "receiver killed", "instructions of the pop", trials::kill_receiver),
    ] {
        let stretch = trials::survey(peer, end);
        facts.add(name, size, stretch.instructions as u64);
        let points = stretch.every_instruction(INSTRUCTIONS_PER_POINT * limit);
        try_all(name, points, &mut facts, |point, facts| run(peer, point, facts));
    }
    for act in Act::ALL {
        let name = act.experiment();
        let Some(stretch) = lifecycle::survey(peer, act) else {
            facts.add(name, "the transport has no such successor", 1);
            continue;
        };
        facts.add(name, "instructions", stretch.instructions as u64);
        facts.add(name, "system calls", stretch.calls as u64);
        facts.add(name, "changes of shared memory", stretch.changes() as u64);
        try_all(name, stretch.points(limit), &mut facts, |point, facts| {
            lifecycle::kill(peer, act, point, facts)
        });
    }
    let words = hostile::places(peer, WORDS_PER_POINT * limit);
    try_all(hostile::NAME, words, &mut facts, |word, facts| hostile::overwrite(peer, word, facts));
    trials::count_leftovers(peer, &mut facts);
    facts
}

fn usage(all: &[Peer]) -> ! {
    let names: Vec<&str> = all.iter().map(|peer| peer.name).collect();
    eprintln!("usage: crash-table [POINTS [NAME …]]; names: {}", names.join(", "));
    std::process::exit(2);
}

/// Runs as a process of a trial, if the arguments have that form.
fn role(all: &[Peer], arguments: &[String]) -> bool {
    let [word, name, rest @ ..] = arguments else { return false };
    let peer = all.iter().find(|peer| peer.name == name);
    let (true, Some(Program::Own { role, clean_up })) = (word == "role", peer.map(|peer| &peer.program))
    else {
        return false;
    };
    match rest {
        [clean, place] if clean == "clean" => {
            if let Err(error) = clean_up(Path::new(place)) {
                eprintln!("{name}: cannot clean up: {error}");
                std::process::exit(1);
            }
        }
        [end, place, attach, id] => {
            let end = if end == "sender" { End::Sender } else { End::Receiver };
            let attach = Attach::ALL.into_iter().find(|kind| kind.name() == attach).unwrap_or(Attach::Resume);
            role(Path::new(place), end, attach, id.parse().unwrap_or(0));
        }
        _ => return false,
    }
    true
}

/// Tests one transport. `load` is the load average before the first one. Returns `true` if its
/// digest is the expected one.
fn report(peer: &Peer, limit: usize, load: &str) -> bool {
    let Peer { name, library, version, language, kind, .. } = peer;
    let start = Instant::now();
    let facts = test(peer, limit);
    let seconds = start.elapsed().as_secs().to_string();
    let line = |experiment: &str, fact: &str, value: &str| {
        println!("{name},{library},{version},{language},\"{kind}\",{experiment},\"{fact}\",{value}");
    };
    for (experiment, fact, count) in facts.rows() {
        line(experiment, fact, &count.to_string());
    }
    line("run", "machine", &conditions::machine());
    line("run", "date", &conditions::date());
    line("run", "load average at the start", load);
    line("run", "seconds", &seconds);
    let digest = format!("{:016x}", facts.digest());
    let expected = EXPECTED.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(','));
    let note = match expected {
        None => "none is expected",
        Some(expected) if expected == digest => "as expected",
        Some(_) => "another one than in expected.csv",
    };
    eprintln!("{name}: digest {digest}, {note} ({seconds} s)");
    expected.is_none_or(|expected| expected == digest)
}

/// What the processes of all transports have printed, those that have ended.
struct Results {
    outputs: Vec<Option<Vec<u8>>>,
    printed: usize,
    is_expected: bool,
}

impl Results {
    /// Prints the outputs in the order of the transports, as far as they are there.
    fn print(&mut self) {
        while let Some(Some(output)) = self.outputs.get(self.printed) {
            let _ = std::io::stdout().write_all(output);
            self.printed += 1;
        }
    }
}

/// Tests each transport in a process of its own, two at once for each core, since trials mostly wait.
/// Returns `true` if all had their expected digests.
fn report_all(peers: &[(&str, usize)]) -> bool {
    let load = conditions::load();
    let jobs = std::thread::available_parallelism().map_or(2, |cores| 2 * cores.get());
    // The last ones are interpreters, which take longest.
    let next = Mutex::new(peers.iter().enumerate().rev());
    let results = Mutex::new(Results { outputs: vec![None; peers.len()], printed: 0, is_expected: true });
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let peer = next.lock().expect("no panic there").next();
                    let Some((index, (name, limit))) = peer else { break };
                    let mut command = Command::new(std::env::current_exe().expect("a program has a path"));
                    command.args(["one", &limit.to_string(), name, &load]).stderr(Stdio::inherit());
                    let output = command.output().expect("a process");
                    let mut results = results.lock().expect("no panic there");
                    results.is_expected &= output.status.success();
                    results.outputs[index] = Some(output.stdout);
                    results.print();
                }
            });
        }
    });
    results.into_inner().expect("no panic there").is_expected
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if role(&peers::own(), &arguments) {
        return;
    }
    let all = peers::all();
    if let [word, limit, name, load] = &arguments[..]
        && word == "one"
    {
        let peer = all.iter().find(|peer| peer.name == name).unwrap_or_else(|| usage(&all));
        let is_expected = report(peer, limit.parse().unwrap_or(POINTS), load);
        std::process::exit((!is_expected).into());
    }
    let limit = match arguments.first().map(|first| first.parse::<usize>()) {
        None => POINTS,
        Some(Ok(limit)) if limit >= 2 => limit,
        Some(_) => usage(&all),
    };
    let chosen = arguments.get(1..).unwrap_or_default();
    if chosen.iter().any(|name| all.iter().all(|peer| peer.name != name)) {
        usage(&all);
    }
    if chosen.is_empty() {
        peers::print_missing();
    }
    let is_chosen = |peer: &Peer| chosen.is_empty() || chosen.iter().any(|name| name == peer.name);
    let with_limit = |peer: &Peer| {
        // An interpreter starts slowly and executes many instructions: a sample.
        (peer.name, if matches!(peer.language, "Python" | "Java") { (limit / 4).max(2) } else { limit })
    };
    let peers: Vec<(&str, usize)> = all.iter().filter(|peer| is_chosen(peer)).map(with_limit).collect();
    println!("transport,library,version,language,kind,experiment,fact,value");
    if !report_all(&peers) {
        std::process::exit(1);
    }
}
