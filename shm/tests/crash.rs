//! Real processes that die, by SIGKILL, at every instruction of the release build's push and pop; and what the others
//! make of it.
//!
//! A *victim* (`examples/victim.rs`) is traced: it stands before the first instruction of one push, does so many
//! instructions, and is killed. Then the ring is repaired as in a run (the kernel confirms the death, the fence goes up, the
//! consumer buries), and everything that the others sent must come, whole and in order, of the dead one everything
//! but perhaps the message on its way, and the ring must go on to its last place, for two laps and two more with a new
//! producer in the dead one's place.
//!
//! `cargo test --release -p shm --test crash -- --nocapture` prints the numbers; `BULKHEAD_SLOW=1` tries ten times as much.

#![cfg(not(any(miri, loom)))]

#[path = "crash/bed.rs"]
mod bed;
#[path = "common/mod.rs"]
mod common;
#[path = "crash/deaths.rs"]
mod deaths;
#[path = "crash/orders.rs"]
mod orders;
#[path = "crash/report.rs"]
mod report;
#[path = "crash/setups.rs"]
mod setups;
#[path = "crash/victim.rs"]
mod victim;

use bed::Bed;
use deaths::Effort;
use report::{Report, on_all_cores};
use shm::plan::Technique;
use shm::with_link;

/// The techniques over memory that processes share.
const TECHNIQUES: [Technique; 4] =
    [Technique::SpscMux, Technique::ArrayQueue, Technique::Channel, Technique::Linked];

#[test]
fn a_producer_may_die_at_every_instruction() {
    let effort = Effort { meddle_every: 40, company: 1 };
    let report = Report::new(
        "producers that died at an instruction of their push",
        &["set-ups", "boundaries", "tried", "distinct states", "deaths", "passed over", "waited for the slow", "violations"],
    );
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut jobs = Vec::new();
    for technique in TECHNIQUES.into_iter().filter(|t| t.to_string().contains(&only)) {
        let run = bed::run(technique);
        let states = with_link!(technique, T => setups::all(technique, Bed::<T>::new(&run).room));
        jobs.extend(states.into_iter().map(|set_up| (technique, set_up)));
    }
    on_all_cores(jobs, |(technique, set_up)| {
        let run = bed::run(technique);
        let mut tally = with_link!(technique, T => deaths::exhaust(&mut Bed::<T>::new(&run), &set_up, effort));
        tally.add("set-ups", 1);
        report.add(technique, tally);
    });
    assert_eq!(report.print(), 0, "violations");
    assert_eq!(report.sum("tried"), report.sum("boundaries"), "100% of the boundaries");
}
