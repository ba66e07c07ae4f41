//! Consumers that die at an instruction of their pop: the producers do not notice, and a next
//! consumer goes on.

use super::bed::{Bed, Scene};
use super::deaths::{Survey, UNTIL_FULL, some_of};
use super::report::Tally;
use super::setups::{Act, SetUp};
use super::victim::{Role, Victim};
use protocol::wire::Message;
use shm::ring::Link;

/// The victim, and how much of what it has popped was looked at.
pub struct Popping {
    pub victim: Victim,
    pub seen: u64,
}

impl Popping {
    /// One in that state.
    pub fn new<T: Link>(scene: &mut Scene<'_, '_, T>, acts: &[Act]) -> Self {
        let victim = scene.bed.victim(Role::Consumer, 0);
        let mut popping = Self { victim, seen: 0 };
        for act in acts {
            match act {
                Act::Fill(messages) if scene.bed.shared => scene.push(*messages),
                // Each has its ring.
                Act::Fill(messages) => scene.push(*messages * scene.others.len() as u64),
                Act::Take(messages) => popping.pop(scene, *messages),
                Act::TakeAll => popping.pop(scene, 2 * UNTIL_FULL),
                Act::Park => scene.bed.park(),
                Act::Interrupted(..) => unreachable!("no producer is stepped here"),
            }
        }
        popping
    }

    fn pop<T: Link>(&mut self, scene: &mut Scene<'_, '_, T>, times: u64) {
        self.victim.run(times);
        self.look(scene);
    }

    /// Judges what has been popped since the last look.
    fn look<T: Link>(&mut self, scene: &mut Scene<'_, '_, T>) {
        for n in self.seen..self.victim.done() {
            scene.receive(None, self.victim.popped(n));
        }
        self.seen = self.victim.done();
    }
}

/// A pop to its end, and the message that it gave.
fn survey<T: Link>(bed: &mut Bed<'_, T>, set_up: &SetUp) -> (Survey, Option<Message>) {
    let mut scene = Scene::new(bed, &[]);
    let mut popping = Popping::new(&mut scene, &set_up.acts);
    popping.victim.begin();
    let survey = super::deaths::walk(&scene, &popping.victim, 0);
    let message = survey.taken.then(|| popping.victim.popped(popping.seen));
    (survey, message)
}

/// How much the producers push before they see a death: nothing, one message, and until the rings
/// are full.
const PUSHES: [u64; 3] = [0, 1, UNTIL_FULL];

/// Everything about one state: every boundary of the pop, with nobody and with everybody at work.
/// Where there is no time for everything, who is at work changes from one boundary to the next.
pub fn exhaust<T: Link>(bed: &mut Bed<'_, T>, set_up: &SetUp) -> Tally {
    let mut tally = Tally::default();
    let (plain, message) = survey(bed, set_up);
    tally.add("of", plain.end() as u64 + 1);
    tally.add("distinct states", plain.distinct_states());
    let mut gone_before = false;
    for boundary in 0..=plain.end() {
        let mut gone_now = gone_before;
        for push in some_of(&PUSHES, boundary) {
            let gone = die(bed, set_up, boundary, push, &plain, message, &mut tally);
            if gone_before && !gone {
                let what = format!("boundary {boundary}: taken before, and then there again");
                tally.problem(&set_up.name, what);
            }
            gone_now |= gone;
        }
        gone_before = gone_now;
    }
    tally.add("boundaries", plain.end() as u64 + 1);
    tally
}

/// One death. Whether the message in flight is gone: taken, or there was none.
fn die<T: Link>(
    bed: &mut Bed<'_, T>,
    set_up: &SetUp,
    boundary: usize,
    push: u64,
    survey: &Survey,
    in_flight: Option<Message>,
    tally: &mut Tally,
) -> bool {
    let mut scene = Scene::new(bed, &[]);
    let mut popping = Popping::new(&mut scene, &set_up.acts);
    popping.victim.begin();
    popping.victim.go(&survey.way(boundary));
    assert_eq!(popping.victim.at(), survey.path[boundary].0, "{set_up:?}: another way than before");
    assert_eq!(scene.bed.state(), survey.path[boundary].1, "{set_up:?}: another state than before");
    scene.push(push);
    let _certain = popping.victim.kill();
    tally.add("deaths", 1);
    // Nobody takes anything now: the others come to no harm and to an end.
    scene.push(UNTIL_FULL);
    scene.consumer = scene.bed.resume();
    let again = next_is_again(&mut scene, in_flight.as_slice());
    tally.add(if again { "came again" } else { "taken" }, u64::from(in_flight.is_some()));
    scene.take_all();
    scene.all_came(&[0, 1, 2], "the next consumer");
    scene.two_laps(scene.bed.slack, "the next consumer");
    let place = format!("{}, {}, {boundary} of {}, {push}", scene.bed.technique(), set_up.name, survey.end());
    tally.problems(&place, &scene.problems);
    !again
}

/// Takes one message of their producer, and says whether it is the first one of those in flight. If
/// not, they were taken by the dead one and went with it.
pub fn next_is_again<T: Link>(scene: &mut Scene<'_, '_, T>, in_flight: &[Message]) -> bool {
    let Some(&expected) = in_flight.first() else { return false };
    let producer = (expected[0] >> 48) as usize;
    let mut before = Vec::new();
    let mut again = false;
    // Others' messages may come first.
    while let Some((from, got)) = shm::ring::Consumer::try_pop(&mut scene.consumer) {
        before.push((from, got));
        if (got[0] >> 48) as usize == producer {
            again = got == expected;
            break;
        }
    }
    if !again {
        scene.came[producer] += in_flight.len() as u64;
    }
    before.into_iter().for_each(|(from, got)| scene.receive(from, got));
    again
}
