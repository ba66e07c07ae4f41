//! Compares the board with crates that publish to many readers, under equal loads: one end writes
//! when a write is due, the others poll. Every value carries the number and start time of its
//! write, so lateness, propagation, misses and tears are measured the same way for all. Those on
//! the heap are threads of one process; those that work across processes are processes; the board
//! is both.
//!
//! `cargo run --release --bin live [READERS[,READERS …]] [MILLISECONDS] [NAMES …]` in this folder;
//! loads and `threads` and `processes` are names too. Several numbers of readers give the table of
//! the fan-out, of processes only. With `--features iceoryx2,aeron` these as well: they need
//! libclang, and Aeron CMake 3. The writer has the first core, readers the others.

#[cfg(feature = "aeron")]
mod aeron;
mod figures;
mod heap;
#[cfg(feature = "iceoryx2")]
mod iceoryx;
mod processes;
mod shared;
mod threads;
mod work;

use figures::Figures;
use processes::Contender;
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

/// Runs each of `names` in each round, in another order each time.
fn measure(names: &[&str], mut run: impl FnMut(usize) -> Figures) -> Vec<Figures> {
    let mut all: Vec<Figures> = names.iter().map(|_| Figures::new()).collect();
    for round in 0..ROUNDS {
        for place in 0..names.len() {
            let place = (place + round) % names.len();
            all[place].add(run(place));
        }
    }
    all
}

fn rounds(names: &[&str], run: impl FnMut(usize) -> Figures) {
    let all = measure(names, run);
    println!("{}", Figures::HEAD);
    for (name, figures) in names.iter().zip(&all) {
        figures.print(name);
    }
}

/// The cost of more readers: each contender with each number of them.
fn fan_out(shared: &[&Contender], counts: &[usize], ns: u64, load: Load, folder: &Path) {
    let cells: Vec<(&Contender, usize)> =
        shared.iter().flat_map(|peer| counts.iter().map(|count| (*peer, *count))).collect();
    let names: Vec<&str> = cells.iter().map(|(peer, _)| peer.name).collect();
    let all = measure(&names, |place| processes::run(cells[place].0, cells[place].1, ns, load, folder));
    println!("{}", Figures::FAN_OUT_HEAD);
    for (cells, figures) in cells.chunks(counts.len()).zip(all.chunks(counts.len())) {
        for ((peer, readers), mine) in cells.iter().zip(figures) {
            mine.print_fan_out(peer.name, *readers, &figures[0]);
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (heap, shared) = (heap::all(), shared::all());
    if words.first().is_some_and(|word| word == processes::CHILD) {
        return processes::child(&words[1..], &shared);
    }
    let mut words = words.into_iter().peekable();
    let mut numbers = |usual: u64, most: u64| {
        let parsed = |word: &str| word.split(',').map(str::parse).collect::<Result<Vec<u64>, _>>();
        let given = words.next_if(|word| parsed(word).is_ok()).and_then(|word| parsed(&word).ok());
        given.unwrap_or(vec![usual]).into_iter().map(move |number| number.clamp(1, most))
    };
    let counts: Vec<usize> = numbers(1, 64).map(|count| count as usize).collect();
    let readers = counts[0];
    let ns = numbers(500, 60_000).next().unwrap_or(500) * 1_000_000;
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
    let listed: Vec<String> = counts.iter().map(usize::to_string).collect();
    println!(
        "{} readers, values of {} bytes, {ROUNDS} rounds of {} ms each; nanoseconds, CPU in cores.",
        listed.join(", "),
        WORDS * 8,
        ns / 1_000_000
    );
    for (load, _, what) in Load::ALL.into_iter().filter(|(_, name, _)| is_load(name)) {
        let due = work::due(load, ns);
        if counts.len() > 1 {
            println!("\n{what}; processes");
            fan_out(&shared, &counts, ns, load, &folder.0);
            continue;
        }
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
