//! Judges histories of queue and board with stateright's `LinearizabilityTester`: see README.md.
//!
//! ```text
//! linearizability [HISTORIES [SEED]]      10,000 of threads and as many of processes for each object
//! ```

mod ends;
mod history;
mod job;
mod plan;
mod processes;
mod random;
mod record;
mod spec;
mod threads;
mod worker;

use history::{Call, is_linearizable};
use job::Fault;
use plan::{KINDS, Kind, Plan};
use processes::Pool;
use random::Random;
use record::Record;
use std::time::Instant;

/// Histories of each object, of threads and of processes.
const HISTORIES: u64 = 10_000;
/// Histories in which a broken variant must be found.
const PATIENCE: u64 = 1_000;
/// Maximum number of kills in a history of processes.
const KILLS: u64 = 2;

fn print_history(calls: &[Call]) {
    let mut calls = calls.to_vec();
    calls.sort_by_key(|call| call.began);
    calls.iter().for_each(|call| eprintln!("  {call:?}"));
}

/// Makes and judges histories, of processes if there is a pool. Returns the number of the first one
/// that is not linearizable, and its calls; else how many calls there were.
fn judge(
    kind: Kind,
    pool: &mut Option<Pool>,
    histories: u64,
    seed: u64,
    fault: Fault,
) -> Result<u64, (u64, Vec<Call>)> {
    let heap = Record::on_heap();
    let mut random = Random(seed);
    let mut count = 0;
    for history in 0..histories {
        let (name, seed) = (format!("linearizability-{}-{history}", std::process::id()), random.next());
        let kills = if pool.is_some() { KILLS } else { 0 };
        let plan = Plan::create(kind, &name, seed, kills, fault);
        let calls = match pool {
            Some(pool) => pool.run(&plan, seed),
            None => threads::run(&heap, &plan),
        };
        count += calls.len() as u64;
        if !is_linearizable(&calls, &plan.spec) {
            return Err((history, calls));
        }
    }
    Ok(count)
}

/// The broken variants, and the histories in which each is found.
const BROKEN: [(Kind, bool, Fault); 10] = [
    (Kind::Spsc, false, Fault::Doubles),
    (Kind::Spsc, false, Fault::Loses),
    (Kind::Spsc, false, Fault::Reorders),
    (Kind::Mpsc, false, Fault::Doubles),
    (Kind::Mpsc, false, Fault::Loses),
    (Kind::Mpsc, false, Fault::Reorders),
    (Kind::Spsc, true, Fault::AnswersEarly),
    (Kind::Mpsc, true, Fault::Resurrects),
    (Kind::Board, false, Fault::GoesBack),
    (Kind::Board, true, Fault::GoesBack),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, record] = &arguments[..]
        && word == processes::WORKER
    {
        return processes::serve(record);
    }
    let number = |index: usize, default| arguments.get(index).map_or(Ok(default), |text| text.parse());
    let (Ok(histories), Ok(seed)) = (number(0, HISTORIES), number(1, 1)) else {
        eprintln!("usage: linearizability [HISTORIES [SEED]]");
        std::process::exit(2);
    };
    let mut failures = 0;
    for is_processes in [false, true] {
        for kind in KINDS {
            let (mut pool, start) = (is_processes.then(Pool::new), Instant::now());
            let what = if is_processes { "processes" } else { "threads" };
            match judge(kind, &mut pool, histories, seed, Fault::None) {
                Ok(calls) => {
                    let kills = pool.map_or(String::new(), |pool| {
                        format!(", {} kills, {} of them in a call", pool.killed, pool.killed_in_call)
                    });
                    let seconds = start.elapsed().as_secs_f64();
                    println!(
                        "{kind:?}, {what}: {histories} histories, {calls} calls{kills}: linearizable ({seconds:.0} s)"
                    );
                }
                Err((history, calls)) => {
                    failures += 1;
                    println!("{kind:?}, {what}, seed {seed}: history {history} IS NOT LINEARIZABLE");
                    print_history(&calls);
                }
            }
        }
    }
    for (kind, is_processes, fault) in BROKEN {
        let mut pool = is_processes.then(Pool::new);
        let what = if is_processes { "processes" } else { "threads" };
        match judge(kind, &mut pool, PATIENCE, seed, fault) {
            Err((history, _)) => println!("{kind:?} that {fault:?}, {what}: found in history {history}"),
            Ok(_) => {
                failures += 1;
                println!("{kind:?} that {fault:?}, {what}: NOT FOUND in {PATIENCE} histories");
            }
        }
    }
    std::process::exit(i32::from(failures > 0));
}
