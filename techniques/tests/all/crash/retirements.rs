//! Deaths of consumers while they retire a dead producer: the successor starts the retirement
//! again.

use super::bed::{FIRST, TestBed, Trial};
use super::deaths::{CallRecording, NOTHING, record_to_end, survey};
use super::report::TrialCounts;
use super::setups::{SetUp, prepare};
use super::victim::{Role, Victim};
use shm::ring::Link;

/// For each distinct state that a dead producer leaves, tries a death at each distinct state of the
/// retirement, because only memory survives the consumer; in slow mode at every boundary.
pub fn try_all_boundaries<T: Link>(bed: &mut TestBed<'_, T>, set_up: &SetUp) -> TrialCounts {
    let mut tally = TrialCounts::default();
    let push = survey(bed, set_up);
    let mut producer_at = push.before_changes();
    producer_at.push(push.end());
    for died_at in producer_at {
        let (trial, retiring_consumer) = prepare_retirement(bed, set_up, died_at, &push);
        let retirement = record_to_end(&trial, &retiring_consumer, 0);
        drop(retiring_consumer);
        drop(trial);
        tally.add("distinct states", retirement.distinct_states());
        for boundary in retirement.boundaries_to_try() {
            try_death(bed, set_up, (died_at, &push), (boundary, &retirement), &mut tally);
        }
    }
    tally
}

/// Prepares a producer that died at a boundary, and a consumer stopped before its retirement.
fn prepare_retirement<'b, 'a, T: Link>(
    bed: &'b mut TestBed<'a, T>,
    set_up: &SetUp,
    died_at: usize,
    push: &CallRecording,
) -> (Trial<'b, 'a, T>, Victim) {
    let (mut trial, mut victims) = prepare(bed, &set_up.acts, false);
    trial.approach(&mut victims.first, &[(died_at, NOTHING)], &[push]);
    trial.fence(FIRST, victims.first);
    let mut retiring_consumer = trial.bed.victim(Role::Consumer);
    retiring_consumer.begin_retirement(FIRST);
    (trial, retiring_consumer)
}

fn try_death<T: Link>(
    bed: &mut TestBed<'_, T>,
    set_up: &SetUp,
    (died_at, push): (usize, &CallRecording),
    (boundary, retirement): (usize, &CallRecording),
    tally: &mut TrialCounts,
) {
    let (mut trial, retiring_consumer) = prepare_retirement(bed, set_up, died_at, push);
    retiring_consumer.replay(&retirement.path_to(boundary));
    assert_eq!(retiring_consumer.at(), retirement.path[boundary].0, "{set_up:?}: another path than recorded");
    trial.push(1);
    let _proof = retiring_consumer.kill();
    tally.add("deaths", 1);
    trial.push(1);
    trial.consumer = trial.bed.resume();
    if !trial.try_retire(&[FIRST]) {
        trial.problem("unretired", format_args!("cannot be retired"));
    }
    let (sent, received) = (trial.sent[FIRST], trial.received[FIRST]);
    if !(sent..=sent + 1).contains(&received) {
        trial.problem(
            "dead",
            format_args!("of the dead producer {sent} were accepted, {received} were received"),
        );
    }
    trial.check_all_received(&[1, 2], "the next consumer");
    trial.check_two_laps(trial.bed.slack, "the next consumer");
    trial.renew(FIRST);
    trial.check_two_laps(trial.bed.slack, "after the renewal");
    let end = retirement.end();
    trial.conclude(
        &set_up.name,
        format_args!("producer died at {died_at}, consumer at {boundary} of {end}"),
        tally,
    );
}
