//! Producers that only stand still in the middle of a push: nobody may take them for dead; and what
//! comes of it if somebody does.

use super::bed::{Bed, CAPACITY, FIRST, Scene};
use super::deaths::{Meanwhile, NOTHING, Stop, Survey, UNTIL_FULL, some_of, survey};
use super::report::Tally;
use super::setups::{SetUp, prepare};
use super::victim::Victim;
use shm::ring::{Consumer, Link};

/// At each boundary of a push the victim stands still while the others go on; then it goes on as
/// well.
pub fn stand_still<T: Link>(bed: &mut Bed<'_, T>, set_up: &SetUp) -> Tally {
    let mut tally = Tally::default();
    let plain = survey(bed, set_up);
    tally.add("of", plain.end() as u64 + 1);
    for boundary in 0..=plain.end() {
        let others =
            [NOTHING, Meanwhile { push: 2, take: 1 }, Meanwhile { push: UNTIL_FULL, take: UNTIL_FULL }];
        // What it has read and not yet used matters here, so that each boundary is another one,
        // also between two changes.
        for meanwhile in some_of(&others, boundary) {
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
    tally: &mut Tally,
) {
    let (mut scene, mut victims) = prepare(bed, &set_up.acts, false);
    let victim = &mut victims.first;
    scene.approach(victim, &[(boundary, meanwhile)], &[plain]);
    tally.add("stood still", 1);
    // Without a proof of death there is no fence, and without a fence nobody retires: see
    // `ControlWriter::fence`.
    if victim.death().is_some() {
        tally.add("taken for dead", 1);
        scene.problem("dead", format_args!("stands still, and is taken for dead"));
    }
    if !scene.bed.shared {
        // Each has a ring of its own: the others do not even notice.
        scene.take_all();
        scene.two_laps(0, "while one stands still");
    }
    let before = scene.sent[FIRST];
    scene.let_finish(victim);
    tally.add("sent after all", scene.sent[FIRST] - before);
    scene.take_all();
    scene.all_came(&[FIRST, 1, 2], "it has gone on");
    scene.two_laps(2 * scene.bed.slack, "it has gone on");
    scene.let_push(victim, 2 * CAPACITY);
    scene.take_all();
    scene.all_came(&[FIRST, 1, 2], "it goes on for two laps");
    if scene.consumer.passed_over() > 0 {
        scene.problem("passed over", format_args!("a message of the living"));
    }
    tally.problems(
        &format!("{}, {}, {boundary} {meanwhile:?}", scene.bed.technique(), set_up.name),
        &scene.problems,
    );
}

/// So many of the victim's instructions are looked at one by one: longer than any push, unless it
/// tries again and again.
const LOOKS: usize = 200;

/// What the rule is for: at each boundary a repair *by time-out*, of a victim that lives, and then
/// it goes on.
pub fn break_the_rule<T: Link>(bed: &mut Bed<'_, T>, set_up: &SetUp) -> Tally {
    let mut tally = Tally::default();
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

/// The others work on after the wrong repair, their messages are on their way everywhere; then the
/// victim goes on.
fn wake_after_repair<T: Link>(scene: &mut Scene<'_, '_, T>, victim: &Victim) {
    scene.push(2);
    scene.retire(&[FIRST]);
    scene.push(UNTIL_FULL);
    // Each message of the others is looked at, and another one put in its place, after each of the
    // victim's instructions.
    for _ in 0..LOOKS {
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
            // Either they wait for ever, or they are gone.
            let what = if scene.others.iter().any(|(other, _)| *other == index) { "stuck" } else { "lost" };
            scene.problem(what, format_args!("{} of producer {index}", sent - came));
        }
    }
}
