//! Stalled producers in the middle of a push: they must not be treated as dead, and the harm if
//! they are.

use super::bed::{CAPACITY, FIRST, TestBed, Trial};
use super::deaths::{CallRecording, ConcurrentActions, NOTHING, Stop, UNTIL_FULL, sample, survey};
use super::report::TrialCounts;
use super::setups::{SetUp, prepare};
use super::victim::Victim;
use shm::ring::{Consumer, Link};

/// Stalls the victim at each boundary of a push while the others continue; then the victim
/// continues.
pub fn stall_at_all_boundaries<T: Link>(bed: &mut TestBed<'_, T>, set_up: &SetUp) -> TrialCounts {
    let mut tally = TrialCounts::default();
    let undisturbed = survey(bed, set_up);
    tally.add("all boundaries", undisturbed.end() as u64 + 1);
    for boundary in 0..=undisturbed.end() {
        let choices = [
            NOTHING,
            ConcurrentActions { push: 2, take: 1 },
            ConcurrentActions { push: UNTIL_FULL, take: UNTIL_FULL },
        ];
        // Values that it has read and not yet used matter here, so each boundary is distinct, even
        // between two changes.
        for run_actions in sample(&choices, boundary) {
            try_stall(bed, set_up, (boundary, run_actions), &undisturbed, &mut tally);
        }
        tally.add("boundaries", 1);
    }
    tally
}

fn try_stall<T: Link>(
    bed: &mut TestBed<'_, T>,
    set_up: &SetUp,
    (boundary, run_actions): Stop,
    undisturbed: &CallRecording,
    tally: &mut TrialCounts,
) {
    let (mut trial, mut victims) = prepare(bed, &set_up.acts, false);
    let victim = &mut victims.first;
    trial.approach(victim, &[(boundary, run_actions)], &[undisturbed]);
    tally.add("stalled", 1);
    // Fencing needs a proof of death, and retiring needs a fence: see `ControlWriter::fence`.
    if victim.death().is_some() {
        tally.add("treated as dead", 1);
        trial.problem("dead", format_args!("a stalled producer is treated as dead"));
    }
    if !trial.bed.shared {
        // Each producer has its own ring: the others are not affected.
        trial.take_all();
        trial.check_two_laps(0, "while one producer is stalled");
    }
    let before = trial.sent[FIRST];
    trial.finish_victim(victim);
    tally.add("sent later", trial.sent[FIRST] - before);
    trial.take_all();
    trial.check_all_received(&[FIRST, 1, 2], "after it continued");
    trial.check_two_laps(2 * trial.bed.slack, "after it continued");
    trial.push_by_victim(victim, 2 * CAPACITY);
    trial.take_all();
    trial.check_all_received(&[FIRST, 1, 2], "after two more laps");
    if trial.consumer.passed_over() > 0 {
        trial.problem("passed over", format_args!("a message of a running producer"));
    }
    trial.conclude(&set_up.name, format_args!("{boundary} {run_actions:?}"), tally);
}

/// Number of the victim's instructions after which the others act, one by one: more than any push
/// without retries.
const MAX_POLLS: usize = 200;

/// Shows the purpose of the rule: at each boundary a running victim is repaired *by timeout*, and
/// then continues.
pub fn repair_early_at_all_boundaries<T: Link>(bed: &mut TestBed<'_, T>, set_up: &SetUp) -> TrialCounts {
    let mut tally = TrialCounts::default();
    let undisturbed = survey(bed, set_up);
    tally.add("boundaries", undisturbed.end() as u64 + 1);
    for boundary in 0..=undisturbed.end() {
        let (mut trial, mut victims) = prepare(bed, &set_up.acts, false);
        trial.approach(&mut victims.first, &[(boundary, NOTHING)], &[&undisturbed]);
        continue_after_repair(&mut trial, &victims.first);
        for kind in ["torn", "twice or out of order", "lost", "stuck", "damage"] {
            tally.add(kind, u64::from(trial.problems.has(kind)));
        }
        tally.add("harmed", u64::from(!trial.problems.is_empty()));
    }
    tally
}

/// Continues the victim after a wrong repair, while messages of the others are in every slot.
fn continue_after_repair<T: Link>(trial: &mut Trial<'_, '_, T>, victim: &Victim) {
    trial.push(2);
    trial.try_retire(&[FIRST]);
    trial.push(UNTIL_FULL);
    // After each of the victim's instructions, every message of the others is taken and replaced.
    for _ in 0..MAX_POLLS {
        victim.step_at_most(1);
        trial.take_all();
        trial.push(UNTIL_FULL);
    }
    trial.finish_victim(victim);
    trial.take_all();
    trial.push(UNTIL_FULL);
    trial.take_all();
    for index in [FIRST, 1, 2] {
        let (sent, received) = (trial.sent[index], trial.received[index]);
        if sent > received {
            // The messages are stuck or lost.
            let kind = if trial.others.iter().any(|(other, _)| *other == index) { "stuck" } else { "lost" };
            trial.problem(kind, format_args!("{} of producer {index}", sent - received));
        }
    }
}
