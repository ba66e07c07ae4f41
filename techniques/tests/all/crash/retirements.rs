//! Deaths of consumers while they retire a dead producer: the successor starts the retirement
//! again.

use super::bed::{Bed, FIRST, Scene};
use super::deaths::{NOTHING, Survey, survey, walk};
use super::report::TrialCounts;
use super::setups::{SetUp, prepare};
use super::victim::{Role, Victim};
use shm::ring::Link;

/// For each distinct state that a dead producer leaves, tries a death at each distinct state of the
/// retirement, because only memory survives the consumer; in slow mode at every boundary.
pub fn exhaust<T: Link>(bed: &mut Bed<'_, T>, set_up: &SetUp) -> TrialCounts {
    let mut tally = TrialCounts::default();
    let push = survey(bed, set_up);
    let mut producer_at = push.before_changes();
    producer_at.push(push.end());
    for died_at in producer_at {
        let (scene, repairer) = open_grave(bed, set_up, died_at, &push);
        let retirement = walk(&scene, &repairer, 0);
        drop(repairer);
        drop(scene);
        tally.add("distinct states", retirement.distinct_states());
        for boundary in retirement.chosen() {
            die(bed, set_up, (died_at, &push), (boundary, &retirement), &mut tally);
        }
    }
    tally
}

/// Prepares a producer that died at a boundary, and a consumer stopped before its retirement.
fn open_grave<'b, 'a, T: Link>(
    bed: &'b mut Bed<'a, T>,
    set_up: &SetUp,
    died_at: usize,
    push: &Survey,
) -> (Scene<'b, 'a, T>, Victim) {
    let (mut scene, mut victims) = prepare(bed, &set_up.acts, false);
    scene.approach(&mut victims.first, &[(died_at, NOTHING)], &[push]);
    scene.fence(FIRST, victims.first);
    let mut repairer = scene.bed.victim(Role::Consumer);
    repairer.begin_retirement(FIRST);
    (scene, repairer)
}

fn die<T: Link>(
    bed: &mut Bed<'_, T>,
    set_up: &SetUp,
    (died_at, push): (usize, &Survey),
    (boundary, retirement): (usize, &Survey),
    tally: &mut TrialCounts,
) {
    let (mut scene, repairer) = open_grave(bed, set_up, died_at, push);
    repairer.go(&retirement.way(boundary));
    assert_eq!(repairer.at(), retirement.path[boundary].0, "{set_up:?}: another way than before");
    scene.push(1);
    let _certain = repairer.kill();
    tally.add("deaths", 1);
    scene.push(1);
    scene.consumer = scene.bed.resume();
    if !scene.try_retire(&[FIRST]) {
        scene.problem("unretired", format_args!("cannot be retired"));
    }
    let (sent, came) = (scene.sent[FIRST], scene.came[FIRST]);
    if !(sent..=sent + 1).contains(&came) {
        scene.problem("dead", format_args!("of the dead producer {sent} were taken, {came} came"));
    }
    scene.check_all_received(&[1, 2], "the next consumer");
    scene.check_two_laps(scene.bed.slack, "the next consumer");
    scene.revive(FIRST);
    scene.check_two_laps(scene.bed.slack, "after the revival");
    let end = retirement.end();
    scene.conclude(
        &set_up.name,
        format_args!("producer died at {died_at}, consumer at {boundary} of {end}"),
        tally,
    );
}
