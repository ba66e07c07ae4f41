//! Deaths at an instruction of a batch: a prefix of the producer's batch is published, and the
//! consumer's successor continues.

use super::bed::{self, Bed, FIRST, Scene};
use super::consumers::{Popping, next_is_again};
use super::deaths::{UNTIL_FULL, walk};
use super::orders::message;
use super::report::TrialCounts;
use super::setups::{SetUp, prepare};
use shm::ring::Producer;
use shm::ring::spsc_mux::SpscMux;
use techniques::Technique;

/// Messages per batch: more than are pushed one by one, and than fit in some setups.
const BATCH: u64 = 7;

/// Kills a producer at every instruction boundary of a batch, in one state. Its memory is reset for
/// a successor, or inherited, alternately.
pub fn producers(technique: Technique, set_up: &SetUp) -> TrialCounts {
    let run = bed::run(technique);
    let bed = &mut Bed::<SpscMux>::new(&run);
    let mut tally = TrialCounts::default();
    let survey = {
        let (scene, mut victims) = prepare(bed, &set_up.acts, false);
        victims.first.begin_batch(BATCH);
        walk(&scene, &victims.first, 0)
    };
    tally.add("of", survey.end() as u64 + 1);
    tally.add("distinct states", survey.distinct_states());
    let mut came_before = 0;
    for boundary in 0..=survey.end() {
        for inherits in [false, true] {
            let (mut scene, mut victims) = prepare(bed, &set_up.acts, false);
            victims.first.begin_batch(BATCH);
            victims.first.go(&survey.way(boundary));
            assert_eq!(victims.first.at(), survey.path[boundary].0, "{set_up:?}: another way than before");
            assert_eq!(scene.bed.state(), survey.path[boundary].1, "{set_up:?}: another state than before");
            scene.fence(FIRST, victims.first);
            tally.add("deaths", 1);
            scene.push(boundary as u64 % 3);
            scene.take_all();
            let (sent, came) = (scene.sent[FIRST], scene.came[FIRST]);
            if !(sent + came_before..=sent + BATCH).contains(&came) {
                scene.problem(
                    "prefix",
                    format_args!("{sent} were taken, {came_before} of the batch before, {came} came"),
                );
            }
            came_before = came.saturating_sub(sent);
            tally.add("in part", u64::from((1..BATCH).contains(&came_before)));
            scene.check_all_received(&[1, 2], "beside a batch");
            if inherits {
                inherit(&mut scene);
            } else {
                if !scene.try_retire(&[FIRST]) {
                    scene.problem("unretired", format_args!("the dead one cannot be retired"));
                }
                scene.revive(FIRST);
            }
            scene.check_two_laps(0, "after the death");
            let place = format!("{}, {boundary} of {}, inherits: {inherits}", set_up.name, survey.end());
            tally.problems(&place, &scene.problems);
        }
        tally.add("boundaries", 1);
    }
    tally
}

/// Continues with an inheriting producer after the published messages; no other message of the
/// batch may appear.
fn inherit(scene: &mut Scene<'_, '_, SpscMux>) {
    let came = scene.came[FIRST];
    scene.sent[FIRST] = came;
    let mut heir = scene.bed.successor(FIRST);
    if heir.0.published() != came {
        scene.problem(
            "heir",
            format_args!("{came} came, it thinks that {} were published", heir.0.published()),
        );
    }
    for _ in 0..BATCH {
        scene.sent[FIRST] += u64::from(heir.try_push(&message(FIRST, scene.sent[FIRST])).is_ok());
        scene.take_all();
        scene.check_all_received(&[FIRST], "of the heir");
    }
    scene.others.push((FIRST, heir));
}

/// Kills a consumer at every instruction boundary of a batch, in one state.
pub fn consumers(technique: Technique, set_up: &SetUp) -> TrialCounts {
    let run = bed::run(technique);
    let bed = &mut Bed::<SpscMux>::new(&run);
    let mut tally = TrialCounts::default();
    let (survey, in_flight) = {
        let mut scene = Scene::new(bed, &[]);
        let mut popping = Popping::new(&mut scene, &set_up.acts);
        popping.victim.begin_batch(BATCH);
        let survey = walk(&scene, &popping.victim, 0);
        let taken = popping.victim.done() - popping.seen;
        (survey, (popping.seen..popping.seen + taken).map(|n| popping.victim.popped(n)).collect::<Vec<_>>())
    };
    tally.add("of", survey.end() as u64 + 1);
    tally.add("distinct states", survey.distinct_states());
    let mut gone_before = false;
    for boundary in 0..=survey.end() {
        let mut scene = Scene::new(bed, &[]);
        let mut popping = Popping::new(&mut scene, &set_up.acts);
        popping.victim.begin_batch(BATCH);
        popping.victim.go(&survey.way(boundary));
        assert_eq!(popping.victim.at(), survey.path[boundary].0, "{set_up:?}: another way than before");
        scene.push(boundary as u64 % 3);
        let _certain = popping.victim.kill();
        tally.add("deaths", 1);
        scene.push(UNTIL_FULL);
        scene.consumer = scene.bed.resume();
        let gone = !in_flight.is_empty() && !next_is_again(&mut scene, &in_flight);
        if gone_before && !gone {
            scene.problem("again", format_args!("taken before boundary {boundary}, and then there again"));
        }
        gone_before = gone;
        scene.take_all();
        scene.check_all_received(&[0, 1, 2], "the next consumer");
        scene.check_two_laps(0, "the next consumer");
        tally.problems(&format!("{}, {boundary} of {}", set_up.name, survey.end()), &scene.problems);
        tally.add("boundaries", 1);
    }
    tally
}
