//! A sender or a receiver that is stopped at an instruction of its push or pop, and killed there.

use crate::facts::Facts;
use crate::peer::{Attach, End, Peer};
use crate::place::Place;
use crate::process::{Answer, PATIENCE, Process};

const BEFORE: u64 = 3;
const AFTER: u64 = 3;
/// Messages to a receiver that is dead, and to its successor.
const MORE: u64 = 20;

/// Starts the processes of both ends, the creating one first. Returns the sender and the receiver.
pub fn both(peer: &Peer, place: &Place) -> (Process, Process) {
    let start = |end| {
        let attach = if end == peer.creator { Attach::Create } else { Attach::Join };
        let (process, answer) = Process::start(peer.name, end, place.path(), attach, 0);
        assert_eq!(answer, Answer::Line("ready".into()), "{}", peer.name);
        process
    };
    if peer.creator == End::Sender {
        let sender = start(End::Sender);
        (sender, start(End::Receiver))
    } else {
        let receiver = start(End::Receiver);
        (start(End::Sender), receiver)
    }
}

/// A receiver's answers: messages, messages that no sender made, and whether it hangs, has died or
/// reports an error.
#[derive(Default)]
pub struct Popped {
    pub messages: Vec<(u64, u64)>,
    pub unknown: u64,
    pub hangs: bool,
    pub died: bool,
    pub error: bool,
}

impl Popped {
    pub fn add(&mut self, answer: Answer) {
        let line = match answer {
            Answer::Line(line) => line,
            Answer::Hangs => return self.hangs = true,
            Answer::Died => return self.died = true,
        };
        for word in line.split(' ').skip(1) {
            let pair = word.split_once(':').and_then(|(s, n)| Some((s.parse().ok()?, n.parse().ok()?)));
            match pair {
                Some(pair) => self.messages.push(pair),
                None if word == "?" => self.unknown += 1,
                None => return self.error = true,
            }
        }
    }

    pub fn ask(&mut self, receiver: &mut Process, command: &str) {
        // One that has failed gets no further command.
        if !self.hangs && !self.died {
            self.add(receiver.ask(command));
        }
    }

    pub fn of(&self, sender: u64) -> Vec<u64> {
        self.messages.iter().filter(|(whose, _)| *whose == sender).map(|(_, number)| *number).collect()
    }

    pub fn count(&self, experiment: &'static str, facts: &mut Facts, who: [&'static str; 4]) {
        facts.add(experiment, who[0], self.hangs.into());
        facts.add(experiment, who[1], self.died.into());
        facts.add(experiment, who[2], self.error.into());
        facts.add(experiment, who[3], self.unknown);
    }
}

/// Returns how many messages a sender has sent, and whether it failed.
fn pushed(answer: &Answer) -> (u64, bool) {
    match answer {
        Answer::Line(line) => {
            let mut words = line.split(' ').skip(1);
            let count = words.next().and_then(|count| count.parse().ok()).unwrap_or(0);
            (count, words.next().is_some())
        }
        Answer::Hangs | Answer::Died => (0, true),
    }
}

pub fn instructions(peer: &Peer, end: End) -> usize {
    let place = Place::new();
    let (mut sender, mut receiver) = both(peer, &place);
    sender.ask(&format!("push {BEFORE}"));
    if end == End::Receiver {
        receiver.ask("take 1");
    }
    let victim = if end == End::Sender { &mut sender } else { &mut receiver };
    victim.begin_step();
    victim.step(1_000_000)
}

/// Returns at most `limit` of the points between instructions, the first and the last among them.
pub fn points(instructions: usize, limit: usize) -> Vec<usize> {
    let last = instructions.max(1);
    if last < limit {
        return (0..=last).collect();
    }
    (0..limit).map(|point| point * last / (limit - 1)).collect()
}

const KILLED: &str = "sender killed";
const PAUSED: &str = "sender paused";
const SUCCESSOR: u64 = 1;
const OTHER: u64 = 2;

const RECEIVER: [&str; 4] =
    ["receiver hangs", "receiver crashes", "receiver reports an error", "messages that nobody sent"];

/// Kills a sender after `point` instructions of a push, and lets a successor send. Before the kill,
/// the receiver and another sender, if there may be one, are tried.
pub fn kill_sender(peer: &Peer, point: usize, facts: &mut Facts) {
    let place = Place::new();
    let (mut sender, mut receiver) = both(peer, &place);
    let mut other = peer.has_many_senders.then(|| OtherSender::start(peer.name, &place));
    sender.ask(&format!("push {BEFORE}"));
    sender.begin_step();
    sender.step(point);
    let mut popped = Popped::default();
    facts.add(PAUSED, "points", 1);
    popped.ask(&mut receiver, "drain");
    if let Some(other) = &mut other {
        other.push(&mut receiver, &mut popped, facts, PAUSED);
    }
    popped.count(PAUSED, facts, RECEIVER);
    sender.kill();
    facts.add(KILLED, "points", 1);
    if popped.hangs {
        // It may only have waited for the sender.
        popped.hangs = false;
        popped.add(receiver.answer(PATIENCE));
    }
    popped.ask(&mut receiver, "drain");
    if let Some(mut other) = other {
        other.push(&mut receiver, &mut popped, facts, KILLED);
        // A successor may have to be alone.
        other.process.finish();
    }
    let before = popped.of(OTHER).len();
    let (successor, attached) =
        Process::start(peer.name, End::Sender, place.path(), Attach::Resume, SUCCESSOR);
    let is_ready = attached == Answer::Line("ready".into());
    facts.add(KILLED, if is_ready { "successor attaches" } else { "successor does not attach" }, 1);
    if is_ready {
        check_successor(peer, &place, successor, &mut receiver, &mut popped, facts);
    }
    popped.count(KILLED, facts, RECEIVER);
    if popped.hangs || popped.died {
        return;
    }
    let found = popped.of(0);
    let earlier = if peer.is_newest_only {
        u64::from(!found.is_empty()) * BEFORE
    } else {
        (0..BEFORE).filter(|number| found.contains(number)).count() as u64
    };
    facts.add(KILLED, "earlier messages that do not arrive", BEFORE - earlier);
    facts.add(KILLED, "message in flight arrives", found.contains(&BEFORE).into());
    let mut once = found.clone();
    once.sort_unstable();
    once.dedup();
    facts.add(KILLED, "messages that arrive again", (found.len() - once.len()) as u64);
    let late = popped.of(OTHER).len() - before;
    facts.add(KILLED, "messages of another sender that arrive after a successor has sent", late as u64);
}

/// A sender that is attached at the same time as the one that is killed.
struct OtherSender {
    process: Process,
    is_hanging: bool,
}

impl OtherSender {
    fn start(name: &str, place: &Place) -> Self {
        let (process, _) = Process::start(name, End::Sender, place.path(), Attach::Join, OTHER);
        Self { process, is_hanging: false }
    }

    /// Lets it send, or waits for what it was sending.
    fn push(
        &mut self,
        receiver: &mut Process,
        popped: &mut Popped,
        facts: &mut Facts,
        experiment: &'static str,
    ) {
        let before = popped.of(OTHER).len();
        let answer = if self.is_hanging {
            self.process.answer(PATIENCE)
        } else {
            self.process.ask(&format!("push {AFTER}"))
        };
        self.is_hanging = answer == Answer::Hangs;
        facts.add(experiment, "points at which another sender hangs", self.is_hanging.into());
        facts.add(experiment, "another sender fails", (pushed(&answer).1 && !self.is_hanging).into());
        popped.ask(receiver, "drain");
        let arrived = popped.of(OTHER).len() - before;
        let fact = "points at which messages of another sender do not arrive";
        facts.add(experiment, fact, (arrived == 0 && !self.is_hanging).into());
    }
}

fn check_successor(
    peer: &Peer,
    place: &Place,
    mut successor: Process,
    receiver: &mut Process,
    popped: &mut Popped,
    facts: &mut Facts,
) {
    let answer = successor.ask(&format!("push {AFTER}"));
    facts.add(KILLED, "successor hangs", (answer == Answer::Hangs).into());
    facts.add(KILLED, "successor cannot send", (pushed(&answer).0 < AFTER && answer != Answer::Hangs).into());
    if answer == Answer::Hangs {
        return;
    }
    popped.ask(receiver, "drain");
    let has_come = |popped: &Popped| popped.of(SUCCESSOR).contains(&(AFTER - 1));
    if has_come(popped) || popped.hangs || popped.died {
        return;
    }
    facts.add(KILLED, "points at which the successor's messages do not arrive", 1);
    successor.ask("fill");
    popped.ask(receiver, "drain");
    let has_any = !popped.of(SUCCESSOR).is_empty();
    facts.add(KILLED, "… but arrive once a lap of messages has followed", has_any.into());
    let (mut fresh, _) = Process::start(peer.name, End::Receiver, place.path(), Attach::Join, 0);
    let mut found = Popped::default();
    found.ask(&mut fresh, "drain");
    facts.add(
        KILLED,
        "… but arrive at a receiver that attaches now",
        (!found.of(SUCCESSOR).is_empty()).into(),
    );
}

/// Kills a receiver after `point` instructions of a pop, and lets a successor take what is left.
/// Before the kill, the sender sends.
pub fn kill_receiver(peer: &Peer, point: usize, facts: &mut Facts) {
    const KILLED: &str = "receiver killed";
    const PAUSED: &str = "receiver paused";
    let place = Place::new();
    let (mut sender, mut receiver) = both(peer, &place);
    sender.ask(&format!("push {BEFORE}"));
    let mut popped = Popped::default();
    popped.ask(&mut receiver, "take 1");
    receiver.begin_step();
    receiver.step(point);
    let answer = sender.ask(&format!("push {AFTER}"));
    let (first, failed) = pushed(&answer);
    facts.add(PAUSED, "points", 1);
    facts.add(PAUSED, "sender hangs", (answer == Answer::Hangs).into());
    facts.add(PAUSED, "sender reports an error", u64::from(failed && answer != Answer::Hangs));
    receiver.kill();
    facts.add(KILLED, "points", 1);
    let mut first = first;
    if answer == Answer::Hangs {
        // It may only have waited for the receiver.
        first = pushed(&sender.answer(PATIENCE)).0;
    }
    let answer = sender.ask(&format!("push {MORE}"));
    let (second, _) = pushed(&answer);
    facts.add(KILLED, "sender hangs", (answer == Answer::Hangs).into());
    let (mut successor, attached) = Process::start(peer.name, End::Receiver, place.path(), Attach::Resume, 1);
    let ready = attached == Answer::Line("ready".into());
    facts.add(KILLED, if ready { "successor attaches" } else { "successor does not attach" }, 1);
    if !ready {
        return;
    }
    if answer == Answer::Hangs {
        return;
    }
    let mut rest = Popped::default();
    rest.ask(&mut successor, "drain");
    let answer = sender.ask(&format!("push {MORE}"));
    let (third, failed) = pushed(&answer);
    facts.add(KILLED, "sender cannot continue", u64::from(failed || third < MORE));
    rest.ask(&mut successor, "drain");
    rest.count(
        KILLED,
        facts,
        ["successor hangs", "successor crashes", "successor reports an error", "messages that nobody sent"],
    );
    if rest.hangs || rest.died {
        return;
    }
    let (found, end) = (rest.of(0), BEFORE + first + second + third);
    // The message in flight was taken, or was not.
    facts.add(KILLED, "message in flight arrives again or late", found.contains(&1).into());
    facts.add(KILLED, "taken messages that arrive again", found.contains(&0).into());
    let lost = if peer.is_newest_only {
        u64::from(third > 0 && found.last() != Some(&(end - 1)))
    } else {
        (2..end).filter(|number| !found.contains(number)).count() as u64
    };
    facts.add(KILLED, "messages lost", lost);
}

/// Counts the files that both ends leave in `/dev/shm`, ended in order or killed. Then tries to
/// create the transport again there.
pub fn leave(peer: &Peer, facts: &mut Facts) {
    for is_killed in [false, true] {
        let place = Place::new();
        let (mut sender, receiver) = both(peer, &place);
        sender.ask(&format!("push {BEFORE}"));
        let experiment = if is_killed { "both killed" } else { "both end in order" };
        if is_killed {
            sender.kill();
            receiver.kill();
        } else {
            let ends = if peer.creator == End::Sender { [receiver, sender] } else { [sender, receiver] };
            let hang = ends.into_iter().map(Process::finish).filter(|bye| !bye).count();
            facts.add(experiment, "ends that do not end", hang as u64);
        }
        facts.add(experiment, "files left in /dev/shm", place.files() as u64);
        let (again, answer) = Process::start(peer.name, peer.creator, place.path(), Attach::Create, 2);
        let fact = if answer == Answer::Line("ready".into()) { "created again" } else { "not created again" };
        facts.add(experiment, fact, 1);
        again.finish();
        facts.add(experiment, "files left after it was created again and ended", place.files() as u64);
    }
}
