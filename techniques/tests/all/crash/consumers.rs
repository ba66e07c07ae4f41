//! Deaths of consumers at an instruction of their pop: the producers are not affected, and a
//! successor continues.

use super::bed::{Bed, Scene};
use super::deaths::{Survey, UNTIL_FULL, sample};
use super::report::TrialCounts;
use super::setups::{Act, SetUp};
use super::victim::{Role, Victim};
use protocol::wire::Message;
use shm::ring::Link;

/// The victim, and the number of its popped messages that were checked.
pub struct Popping {
    pub victim: Victim,
    pub seen: u64,
}

impl Popping {
    pub fn new<T: Link>(scene: &mut Scene<'_, '_, T>, acts: &[Act]) -> Self {
        let victim = scene.bed.victim(Role::Consumer);
        let mut popping = Self { victim, seen: 0 };
        for act in acts {
            match act {
                Act::Fill(messages) if scene.bed.shared => scene.push(*messages),
                // Each producer has its own ring.
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

    fn look<T: Link>(&mut self, scene: &mut Scene<'_, '_, T>) {
        for n in self.seen..self.victim.done() {
            scene.receive(None, self.victim.popped(n));
        }
        self.seen = self.victim.done();
    }
}

fn survey<T: Link>(bed: &mut Bed<'_, T>, set_up: &SetUp) -> (Survey, Option<Message>) {
    let mut scene = Scene::new(bed, &[]);
    let mut popping = Popping::new(&mut scene, &set_up.acts);
    popping.victim.begin();
    let survey = super::deaths::walk(&scene, &popping.victim, 0);
    let message = survey.taken.then(|| popping.victim.popped(popping.seen));
    (survey, message)
}

/// Number of messages pushed before the death: none, one, and until the rings are full.
const PUSHES: [u64; 3] = [0, 1, UNTIL_FULL];

/// Tries every boundary of the pop in one state, with idle and with active producers; in quick mode
/// with one choice per boundary.
pub fn exhaust<T: Link>(bed: &mut Bed<'_, T>, set_up: &SetUp) -> TrialCounts {
    let mut tally = TrialCounts::default();
    let (plain, message) = survey(bed, set_up);
    tally.add("of", plain.end() as u64 + 1);
    tally.add("distinct states", plain.distinct_states());
    let mut gone_before = false;
    for boundary in 0..=plain.end() {
        let mut gone_now = gone_before;
        for push in sample(&PUSHES, boundary) {
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

/// Tries one death. Returns `true` if the message in flight is gone: taken, or none existed.
fn die<T: Link>(
    bed: &mut Bed<'_, T>,
    set_up: &SetUp,
    boundary: usize,
    push: u64,
    survey: &Survey,
    in_flight: Option<Message>,
    tally: &mut TrialCounts,
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
    // Without a consumer the other producers are not harmed, and finish.
    scene.push(UNTIL_FULL);
    scene.consumer = scene.bed.resume();
    let again = next_is_again(&mut scene, in_flight.as_slice());
    tally.add(if again { "came again" } else { "taken" }, u64::from(in_flight.is_some()));
    scene.take_all();
    scene.check_all_received(&[0, 1, 2], "the next consumer");
    scene.check_two_laps(scene.bed.slack, "the next consumer");
    scene.conclude(&set_up.name, format_args!("{boundary} of {}, {push}", survey.end()), tally);
    !again
}

/// Receives one message of the producer, and returns `true` if it is the first one in flight.
/// Otherwise the dead consumer had taken these messages.
pub fn next_is_again<T: Link>(scene: &mut Scene<'_, '_, T>, in_flight: &[Message]) -> bool {
    let Some(&expected) = in_flight.first() else { return false };
    let producer = (expected[0] >> 48) as usize;
    let mut before = Vec::new();
    let mut again = false;
    // Messages of other producers may arrive first.
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
