//! Ends that die at an instruction of a batch: the producer's prefix is there, the consumer's
//! successor goes on.

use super::bed::{self, Bed, FIRST, Scene};
use super::consumers::{Popping, next_is_again};
use super::deaths::{UNTIL_FULL, walk};
use super::orders::message;
use super::report::Tally;
use super::setups::{SetUp, prepare};
use shm::ring::Producer;
use shm::ring::spsc_mux::SpscMux;
use techniques::Technique;

/// Messages in a batch: more than are pushed one by one, and than some set-ups have room for.
const BATCH: u64 = 7;

/// A producer of that technique, at every boundary, in one state. Its memory is made anew for its
/// successor, or its heir goes on in it, in turns.
pub fn producers(technique: Technique, set_up: &SetUp) -> Tally {
    let run = bed::run(technique);
    let bed = &mut Bed::<SpscMux>::new(&run);
    let mut tally = Tally::default();
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
            scene.all_came(&[1, 2], "beside a batch");
            if inherits {
                inherit(&mut scene);
            } else {
                if !scene.retire(&[FIRST]) {
                    scene.problem("unretired", format_args!("the dead one cannot be retired"));
                }
                scene.revive(FIRST);
            }
            scene.two_laps(0, "after the death");
            let place = format!("{}, {boundary} of {}, inherits: {inherits}", set_up.name, survey.end());
            tally.problems(&place, &scene.problems);
        }
        tally.add("boundaries", 1);
    }
    tally
}

/// An heir goes on behind what was published; nothing of the rest of the batch appears behind its
/// messages.
fn inherit(scene: &mut Scene<'_, '_, SpscMux>) {
    let came = scene.came[FIRST];
    scene.sent[FIRST] = came;
    let mut heir = scene.bed.heir(FIRST);
    if heir.0.published() != came {
        scene.problem(
            "heir",
            format_args!("{came} came, it thinks that {} were published", heir.0.published()),
        );
    }
    for _ in 0..BATCH {
        scene.sent[FIRST] += u64::from(heir.try_push(&message(FIRST, scene.sent[FIRST])).is_ok());
        scene.take_all();
        scene.all_came(&[FIRST], "of the heir");
    }
    scene.others.push((FIRST, heir));
}

/// A consumer of that technique, at every boundary, in one state.
pub fn consumers(technique: Technique, set_up: &SetUp) -> Tally {
    let run = bed::run(technique);
    let bed = &mut Bed::<SpscMux>::new(&run);
    let mut tally = Tally::default();
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
        scene.all_came(&[0, 1, 2], "the next consumer");
        scene.two_laps(0, "the next consumer");
        tally.problems(&format!("{}, {boundary} of {}", set_up.name, survey.end()), &scene.problems);
        tally.add("boundaries", 1);
    }
    tally
}
