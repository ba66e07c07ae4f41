//! Stalled producers in the middle of a push: they must not be treated as dead, and the harm if
//! they are.

use super::bed::{Bed, CAPACITY, FIRST, Scene};
use super::deaths::{Meanwhile, NOTHING, Stop, Survey, UNTIL_FULL, sample, survey};
use super::report::TrialCounts;
use super::setups::{SetUp, prepare};
use super::victim::Victim;
use shm::ring::{Consumer, Link};

/// Stalls the victim at each boundary of a push while the others continue; then the victim
/// continues.
pub fn exhaust_stalls<T: Link>(bed: &mut Bed<'_, T>, set_up: &SetUp) -> TrialCounts {
    let mut tally = TrialCounts::default();
    let plain = survey(bed, set_up);
    tally.add("of", plain.end() as u64 + 1);
    for boundary in 0..=plain.end() {
        let others =
            [NOTHING, Meanwhile { push: 2, take: 1 }, Meanwhile { push: UNTIL_FULL, take: UNTIL_FULL }];
        // Values that it has read and not yet used matter here, so each boundary is distinct, even
        // between two changes.
        for meanwhile in sample(&others, boundary) {
            slow(bed, set_up, (boundary, meanwhile), &plain, &mut tally);
        }
        tally.add("boundaries", 1);
    }
    tally
}

fn slow<T: Link>(
    bed: &mut Bed<'_, T>,
    set_up: &SetUp,
    (boundary, meanwhile): Stop,
    plain: &Survey,
    tally: &mut TrialCounts,
) {
    let (mut scene, mut victims) = prepare(bed, &set_up.acts, false);
    let victim = &mut victims.first;
    scene.approach(victim, &[(boundary, meanwhile)], &[plain]);
    tally.add("stood still", 1);
    // Fencing needs a proof of death, and retiring needs a fence: see `ControlWriter::fence`.
    if victim.death().is_some() {
        tally.add("taken for dead", 1);
        scene.problem("dead", format_args!("stands still, and is taken for dead"));
    }
    if !scene.bed.shared {
        // Each producer has its own ring: the others are not affected.
        scene.take_all();
        scene.check_two_laps(0, "while one stands still");
    }
    let before = scene.sent[FIRST];
    scene.let_finish(victim);
    tally.add("sent after all", scene.sent[FIRST] - before);
    scene.take_all();
    scene.check_all_received(&[FIRST, 1, 2], "it has gone on");
    scene.check_two_laps(2 * scene.bed.slack, "it has gone on");
    scene.let_push(victim, 2 * CAPACITY);
    scene.take_all();
    scene.check_all_received(&[FIRST, 1, 2], "it goes on for two laps");
    if scene.consumer.passed_over() > 0 {
        scene.problem("passed over", format_args!("a message of the living"));
    }
    scene.conclude(&set_up.name, format_args!("{boundary} {meanwhile:?}"), tally);
}

/// Number of the victim's instructions after which the others act, one by one: more than any push
/// without retries.
const MAX_POLLS: usize = 200;

/// Shows the purpose of the rule: at each boundary a running victim is repaired *by timeout*, and
/// then continues.
pub fn exhaust_early_repairs<T: Link>(bed: &mut Bed<'_, T>, set_up: &SetUp) -> TrialCounts {
    let mut tally = TrialCounts::default();
    let plain = survey(bed, set_up);
    tally.add("boundaries", plain.end() as u64 + 1);
    for boundary in 0..=plain.end() {
        let (mut scene, mut victims) = prepare(bed, &set_up.acts, false);
        scene.approach(&mut victims.first, &[(boundary, NOTHING)], &[&plain]);
        wake_after_repair(&mut scene, &victims.first);
        for what in ["torn", "twice or out of order", "lost", "stuck", "damage"] {
            tally.add(what, u64::from(scene.problems.has(what)));
        }
        tally.add("harmed", u64::from(!scene.problems.is_empty()));
    }
    tally
}

/// Continues the victim after a wrong repair, while messages of the others are in every slot.
fn wake_after_repair<T: Link>(scene: &mut Scene<'_, '_, T>, victim: &Victim) {
    scene.push(2);
    scene.try_retire(&[FIRST]);
    scene.push(UNTIL_FULL);
    // After each of the victim's instructions, every message of the others is taken and replaced.
    for _ in 0..MAX_POLLS {
        victim.step_at_most(1);
        scene.take_all();
        scene.push(UNTIL_FULL);
    }
    scene.let_finish(victim);
    scene.take_all();
    scene.push(UNTIL_FULL);
    scene.take_all();
    for index in [FIRST, 1, 2] {
        let (sent, came) = (scene.sent[index], scene.came[index]);
        if sent > came {
            // The messages are stuck or lost.
            let what = if scene.others.iter().any(|(other, _)| *other == index) { "stuck" } else { "lost" };
            scene.problem(what, format_args!("{} of producer {index}", sent - came));
        }
    }
}
