//! Deaths of consumers at an instruction of their pop: the producers are not affected, and a
//! successor continues.

use super::bed::{TestBed, Trial};
use super::deaths::{CallRecording, UNTIL_FULL, sample};
use super::report::TrialCounts;
use super::setups::{Act, SetUp};
use super::victim::{Role, Victim};
use protocol::wire::Message;
use shm::ring::Link;

/// The victim, and the number of its popped messages that were checked.
pub struct PoppingVictim {
    pub victim: Victim,
    pub checked: u64,
}

impl PoppingVictim {
    pub fn new<T: Link>(trial: &mut Trial<'_, '_, T>, acts: &[Act]) -> Self {
        let victim = trial.bed.victim(Role::Consumer);
        let mut popping = Self { victim, checked: 0 };
        for run_act in acts {
            match run_act {
                Act::Fill(messages) if trial.bed.shared => trial.push(*messages),
                // Each producer has its own ring.
                Act::Fill(messages) => trial.push(*messages * trial.others.len() as u64),
                Act::Take(messages) => popping.pop(trial, *messages),
                Act::TakeAll => popping.pop(trial, 2 * UNTIL_FULL),
                Act::Park => trial.bed.park(),
                Act::Interrupted(..) => unreachable!("no producer is stepped here"),
            }
        }
        popping
    }

    fn pop<T: Link>(&mut self, trial: &mut Trial<'_, '_, T>, times: u64) {
        self.victim.run(times);
        self.receive_popped(trial);
    }

    fn receive_popped<T: Link>(&mut self, trial: &mut Trial<'_, '_, T>) {
        for n in self.checked..self.victim.done() {
            trial.receive(None, self.victim.popped(n));
        }
        self.checked = self.victim.done();
    }
}

fn record_pop<T: Link>(bed: &mut TestBed<'_, T>, set_up: &SetUp) -> (CallRecording, Option<Message>) {
    let mut trial = Trial::new(bed, &[]);
    let mut popping = PoppingVictim::new(&mut trial, &set_up.acts);
    popping.victim.begin();
    let record_pop = super::deaths::record_to_end(&trial, &popping.victim, 0);
    let message = record_pop.taken.then(|| popping.victim.popped(popping.checked));
    (record_pop, message)
}

/// Number of messages pushed before the death: none, one, and until the rings are full.
const PUSHES: [u64; 3] = [0, 1, UNTIL_FULL];

/// Tries every boundary of the pop in one state, with idle and with active producers; in quick mode
/// with one choice per boundary.
pub fn try_all_boundaries<T: Link>(bed: &mut TestBed<'_, T>, set_up: &SetUp) -> TrialCounts {
    let mut tally = TrialCounts::default();
    let (undisturbed, message) = record_pop(bed, set_up);
    tally.add("all boundaries", undisturbed.end() as u64 + 1);
    tally.add("distinct states", undisturbed.distinct_states());
    let mut was_taken_before = false;
    for boundary in 0..=undisturbed.end() {
        let mut was_taken_now = was_taken_before;
        for push in sample(&PUSHES, boundary) {
            let is_taken = try_death(bed, set_up, boundary, push, &undisturbed, message, &mut tally);
            if was_taken_before && !is_taken {
                let problem =
                    format!("boundary {boundary}: taken at an earlier boundary, but received again here");
                tally.problem(&set_up.name, problem);
            }
            was_taken_now |= is_taken;
        }
        was_taken_before = was_taken_now;
    }
    tally.add("boundaries", undisturbed.end() as u64 + 1);
    tally
}

/// Tries one death. Returns `true` if the message in flight is gone: taken, or none existed.
fn try_death<T: Link>(
    bed: &mut TestBed<'_, T>,
    set_up: &SetUp,
    boundary: usize,
    push: u64,
    record_pop: &CallRecording,
    in_flight: Option<Message>,
    tally: &mut TrialCounts,
) -> bool {
    let mut trial = Trial::new(bed, &[]);
    let mut popping = PoppingVictim::new(&mut trial, &set_up.acts);
    popping.victim.begin();
    popping.victim.replay(&record_pop.path_to(boundary));
    assert_eq!(popping.victim.at(), record_pop.path[boundary].0, "{set_up:?}: another path than recorded");
    assert_eq!(trial.bed.state(), record_pop.path[boundary].1, "{set_up:?}: another state than recorded");
    trial.push(push);
    let _proof = popping.victim.kill();
    tally.add("deaths", 1);
    // Without a consumer the other producers are not harmed, and finish.
    trial.push(UNTIL_FULL);
    trial.consumer = trial.bed.resume();
    let is_repeated = first_message_is_repeated(&mut trial, in_flight.as_slice());
    tally.add(if is_repeated { "received again" } else { "taken" }, u64::from(in_flight.is_some()));
    trial.take_all();
    trial.check_all_received(&[0, 1, 2], "the next consumer");
    trial.check_two_laps(trial.bed.slack, "the next consumer");
    trial.conclude(&set_up.name, format_args!("{boundary} of {}, {push}", record_pop.end()), tally);
    !is_repeated
}

/// Receives one message of the producer, and returns `true` if it is the first one in flight.
/// Otherwise the dead consumer had taken these messages.
pub fn first_message_is_repeated<T: Link>(trial: &mut Trial<'_, '_, T>, in_flight: &[Message]) -> bool {
    let Some(&expected) = in_flight.first() else { return false };
    let producer = (expected[0] >> 48) as usize;
    let mut popped = Vec::new();
    let mut is_repeated = false;
    // Messages of other producers may arrive first.
    while let Some((from, got)) = shm::ring::Consumer::try_pop(&mut trial.consumer) {
        popped.push((from, got));
        if (got[0] >> 48) as usize == producer {
            is_repeated = got == expected;
            break;
        }
    }
    if !is_repeated {
        trial.received[producer] += in_flight.len() as u64;
    }
    popped.into_iter().for_each(|(from, got)| trial.receive(from, got));
    is_repeated
}
