//! Compares the board with crates that publish to many readers, under equal loads: one end writes
//! when a write is due, the others poll. Every value carries the number and start time of its
//! write, so lateness, propagation, misses and tears are measured the same way for all. Those on
//! the heap are threads of one process; those that work across processes are processes; the board
//! is both.
//!
//! `cargo run --release --bin live [READERS] [MILLISECONDS] [NAMES …]` in this folder; loads and
//! `threads` and `processes` are names too. With `--features iceoryx2` that crate as well: it needs
//! libclang. The writer has the first core, readers the others.

mod figures;
mod heap;
#[cfg(feature = "iceoryx2")]
mod iceoryx;
mod processes;
mod shared;
mod threads;
mod work;

use figures::Figures;
use std::path::{Path, PathBuf};
use work::{Load, WORDS};

/// Rounds: each begins with another one.
const ROUNDS: usize = 3;

/// A folder in memory that is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn rounds(names: &[&str], mut run: impl FnMut(usize) -> Figures) {
    let mut all: Vec<Figures> = names.iter().map(|_| Figures::new()).collect();
    for round in 0..ROUNDS {
        for place in 0..names.len() {
            let place = (place + round) % names.len();
            all[place].add(run(place));
        }
    }
    println!("{}", Figures::HEAD);
    for (name, figures) in names.iter().zip(&all) {
        figures.print(name);
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (heap, shared) = (heap::all(), shared::all());
    if words.first().is_some_and(|word| word == processes::CHILD) {
        return processes::child(&words[1..], &shared);
    }
    let mut words = words.into_iter().peekable();
    let mut number = |usual: u64| {
        words.next_if(|word| word.parse::<u64>().is_ok()).map_or(usual, |word| word.parse().unwrap_or(usual))
    };
    let readers = number(1).clamp(1, 64) as usize;
    let ns = number(500).clamp(1, 60_000) * 1_000_000;
    let mut wanted: Vec<String> = words.collect();
    let mut any = |names: &[&str]| {
        let has = wanted.iter().any(|word| names.contains(&word.as_str()));
        let of_these: Vec<String> =
            wanted.iter().filter(|word| names.contains(&word.as_str())).cloned().collect();
        wanted.retain(|word| !names.contains(&word.as_str()));
        move |name: &str| !has || of_these.iter().any(|word| word == name)
    };
    let (is_way, is_load) = (any(&["threads", "processes"]), any(&Load::ALL.map(|(_, name, _)| name)));
    let all: Vec<&str> =
        heap.iter().map(|(name, _)| *name).chain(shared.iter().map(|peer| peer.name)).collect();
    if let Some(unknown) = wanted.iter().find(|word| !all.contains(&word.as_str())) {
        eprintln!("{unknown:?}: none of threads, processes, poisson, stress, slow, {}", all.join(", "));
        std::process::exit(2);
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let heap: Vec<_> = heap.iter().filter(|(name, _)| is_way("threads") && is_wanted(name)).collect();
    let shared: Vec<_> = shared.iter().filter(|peer| is_way("processes") && is_wanted(peer.name)).collect();
    let folder = Folder(format!("/dev/shm/bulkhead-peers-{}", std::process::id()).into());
    std::fs::create_dir(&folder.0).expect("a folder of its own");
    println!(
        "{readers} readers, values of {} bytes, {ROUNDS} rounds of {} ms each; nanoseconds.",
        WORDS * 8,
        ns / 1_000_000
    );
    for (load, _, what) in Load::ALL.into_iter().filter(|(_, name, _)| is_load(name)) {
        let due = work::due(load, ns);
        if !heap.is_empty() {
            println!("\n{what}; threads of one process");
            let names: Vec<&str> = heap.iter().map(|(name, _)| *name).collect();
            rounds(&names, |place| heap[place].1(readers, ns, load, &due));
        }
        if !shared.is_empty() {
            println!("\n{what}; processes");
            let names: Vec<&str> = shared.iter().map(|peer| peer.name).collect();
            rounds(&names, |place| processes::run(shared[place], readers, ns, load, Path::new(&folder.0)));
        }
    }
}
