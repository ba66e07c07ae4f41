//! A sender or a receiver that is stopped at an instruction of its push or pop, and killed there.

use crate::facts::{Facts, Outcome};
use crate::peer::{Attach, CAPACITY, End, Peer};
use crate::place::Place;
use crate::popped::{Popped, pushed};
use crate::process::{Answer, PATIENCE, Process};
use crate::tracer::{Point, Stretch};

pub const BEFORE: u64 = 3;
pub const AFTER: u64 = 3;
/// Messages sent to a dead receiver: as many as fit while the message in flight keeps its slot, and
/// one more, which fits only if that slot was freed.
const TO_FULL: u64 = CAPACITY as u64 - (BEFORE - 1 + AFTER) + 1;
/// Messages sent to the successor of a dead receiver.
const MORE: u64 = 20;

/// Starts the sender's and the receiver's process of a queue, first the one that creates the queue.
/// Returns sender and receiver.
pub fn start_ends(peer: &Peer, place: &Place) -> (Process, Process) {
    let start = |end| {
        let attach = if end == peer.creator { Attach::Create } else { Attach::Join };
        let (process, answer) = Process::start(peer, end, place.path(), attach, 0);
        assert_eq!(answer, Answer::Line("ready".into()), "{}: {} {}", peer.name, end.name(), attach.name());
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

/// Ends processes in order and cleans up as the transport documents. Returns `true` if the
/// clean-up fails or files remain.
pub fn end_and_find_leak(peer: &Peer, place: &Place, processes: impl IntoIterator<Item = Process>) -> bool {
    for process in processes {
        process.finish();
    }
    !Process::clean_up(peer, place.path()) || place.files() > 0
}

/// Measures a sender's push, or a receiver's pop.
pub fn survey(peer: &Peer, end: End) -> Stretch {
    let place = Place::new();
    let (mut sender, mut receiver) = start_ends(peer, &place);
    sender.ask(&format!("push {BEFORE}"));
    if end == End::Receiver {
        receiver.ask("take 1");
    }
    let victim = if end == End::Sender { &mut sender } else { &mut receiver };
    victim.begin("step");
    let stretch = victim.survey();
    end_and_find_leak(peer, &place, [sender, receiver]);
    stretch
}

/// A function that kills an end at one point, and records what follows.
pub type Kill = fn(&Peer, Point, &mut Facts);

const KILLED: &str = "sender killed";
const PAUSED: &str = "sender paused";
const SUCCESSOR: u64 = 1;
const OTHER: u64 = 2;

const RECEIVER: [&str; 4] =
    ["receiver hangs", "receiver crashes", "receiver reports an error", "messages that nobody sent"];

/// Kills a sender at a point of a push, and lets a successor send. Before the kill, the receiver
/// and another sender, if there may be one, are tried.
pub fn kill_sender(peer: &Peer, point: Point, facts: &mut Facts) {
    let place = Place::new();
    let (mut sender, mut receiver) = start_ends(peer, &place);
    let mut other = peer.has_many_senders.then(|| OtherSender::start(peer, &place));
    sender.ask(&format!("push {BEFORE}"));
    sender.begin("step");
    sender.run_to(point);
    let mut popped = Popped::default();
    let (mut paused, mut killed) = (Outcome::default(), Outcome::default());
    facts.add(PAUSED, "points", 1);
    popped.ask(&mut receiver, "drain");
    if let Some(other) = &mut other {
        paused.is_stuck |= !other.push(&mut receiver, &mut popped, facts, PAUSED);
    }
    popped.count(PAUSED, facts, RECEIVER);
    paused.is_stuck |= popped.fails();
    paused.is_doubled = popped.has_doubles();
    paused.count(PAUSED, facts);
    sender.kill();
    facts.add(KILLED, "points", 1);
    if popped.hangs {
        // It may only have waited for the sender.
        popped.hangs = false;
        popped.add(receiver.answer(PATIENCE));
    }
    popped.ask(&mut receiver, "drain");
    let mut others = 0;
    if let Some(mut other) = other {
        killed.is_stuck |= !other.push(&mut receiver, &mut popped, facts, KILLED);
        others = other.sent;
        // A successor may have to be alone.
        other.process.finish();
    }
    let before = popped.of(OTHER).len();
    let (successor, attached) = Process::start(peer, End::Sender, place.path(), Attach::Resume, SUCCESSOR);
    facts.add(
        KILLED,
        if attached.is_ready() { "successor attaches" } else { "successor does not attach" },
        1,
    );
    let mut to_end = Vec::new();
    if attached.is_ready() {
        let goes_on = check_successor(peer, &place, successor, &mut receiver, &mut popped, facts, &mut to_end);
        killed.is_stuck |= !goes_on;
    } else {
        drop(successor);
        killed.is_over = peer.starts_over;
        killed.is_stuck |= !peer.starts_over;
    }
    popped.count(KILLED, facts, RECEIVER);
    killed.is_stuck |= popped.fails();
    let has_receiver = !popped.hangs && !popped.died;
    if has_receiver {
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
        killed.is_lost = earlier < BEFORE || (!peer.is_newest_only && popped.lacks(OTHER, others));
        killed.is_doubled = popped.has_doubles();
    }
    to_end.insert(usize::from(peer.creator == End::Receiver).min(to_end.len()), receiver);
    killed.is_leaked = end_and_find_leak(peer, &place, to_end);
    killed.count(KILLED, facts);
}

/// A sender that is attached at the same time as the one that is killed.
pub struct OtherSender {
    process: Process,
    is_hanging: bool,
    /// Messages that it has sent.
    sent: u64,
}

impl OtherSender {
    pub fn start(peer: &Peer, place: &Place) -> Self {
        let (process, _) = Process::start(peer, End::Sender, place.path(), Attach::Join, OTHER);
        Self { process, is_hanging: false, sent: 0 }
    }

    /// Lets it send, or waits for what it was sending. Returns `true` if its messages arrive.
    fn push(
        &mut self,
        receiver: &mut Process,
        popped: &mut Popped,
        facts: &mut Facts,
        experiment: &'static str,
    ) -> bool {
        let before = popped.of(OTHER).len();
        let answer = if self.is_hanging {
            self.process.answer(PATIENCE)
        } else {
            self.process.ask(&format!("push {AFTER}"))
        };
        self.is_hanging = answer == Answer::Hangs;
        let (sent, failed) = pushed(&answer);
        self.sent += sent;
        facts.add(experiment, "points at which another sender hangs", self.is_hanging.into());
        facts.add(experiment, "another sender fails", (failed && !self.is_hanging).into());
        popped.ask(receiver, "drain");
        let arrived = popped.of(OTHER).len() - before;
        let fact = "points at which messages of another sender do not arrive";
        facts.add(experiment, fact, (arrived == 0 && !self.is_hanging).into());
        arrived > 0 && !failed
    }
}

/// Lets a successor send. Returns `true` if its messages arrive, at a receiver that attaches again
/// if need be. Adds the processes that its caller must end to `to_end`.
fn check_successor(
    peer: &Peer,
    place: &Place,
    mut successor: Process,
    receiver: &mut Process,
    popped: &mut Popped,
    facts: &mut Facts,
    to_end: &mut Vec<Process>,
) -> bool {
    let answer = successor.ask(&format!("push {AFTER}"));
    facts.add(KILLED, "successor hangs", (answer == Answer::Hangs).into());
    let cannot_send = pushed(&answer).0 < AFTER;
    facts.add(KILLED, "successor cannot send", (cannot_send && answer != Answer::Hangs).into());
    if answer == Answer::Hangs {
        return false;
    }
    popped.ask(receiver, "drain");
    let has_come = |popped: &Popped| popped.of(SUCCESSOR).contains(&(AFTER - 1));
    if has_come(popped) || popped.hangs || popped.died {
        to_end.push(successor);
        return has_come(popped) && !cannot_send;
    }
    facts.add(KILLED, "points at which the successor's messages do not arrive", 1);
    let (mut fresh, _) = Process::start(peer, End::Receiver, place.path(), Attach::Join, 0);
    let mut found = Popped::default();
    found.ask(&mut fresh, "drain");
    fresh.finish();
    let arrives = found.of(SUCCESSOR).contains(&(AFTER - 1));
    facts.add(KILLED, "… but arrive at a receiver that attaches now", arrives.into());
    successor.ask("fill");
    popped.ask(receiver, "drain");
    let has_any = !popped.of(SUCCESSOR).is_empty();
    facts.add(KILLED, "… but arrive once a lap of messages has followed", has_any.into());
    to_end.push(successor);
    arrives && !cannot_send
}

/// Kills a receiver at a point of a pop, and lets a successor take the remaining messages. Before
/// the kill, the sender sends.
pub fn kill_receiver(peer: &Peer, point: Point, facts: &mut Facts) {
    const KILLED: &str = "receiver killed";
    const PAUSED: &str = "receiver paused";
    let place = Place::new();
    let (mut sender, mut receiver) = start_ends(peer, &place);
    sender.ask(&format!("push {BEFORE}"));
    let mut popped = Popped::default();
    popped.ask(&mut receiver, "take 1");
    receiver.begin("step");
    receiver.run_to(point);
    let answer = sender.ask(&format!("push {AFTER}"));
    let (mut first, failed) = pushed(&answer);
    facts.add(PAUSED, "points", 1);
    facts.add(PAUSED, "sender hangs", (answer == Answer::Hangs).into());
    facts.add(PAUSED, "sender reports an error", u64::from(failed && answer != Answer::Hangs));
    Outcome { is_stuck: failed || first < AFTER, ..Outcome::default() }.count(PAUSED, facts);
    receiver.kill();
    facts.add(KILLED, "points", 1);
    if answer == Answer::Hangs {
        // It may only have waited for the receiver.
        first = pushed(&sender.answer(PATIENCE)).0;
    }
    let answer = sender.ask(&format!("push {TO_FULL}"));
    let (second, _) = pushed(&answer);
    let mut killed = Outcome { is_stuck: answer == Answer::Hangs, ..Outcome::default() };
    facts.add(KILLED, "sender hangs", killed.is_stuck.into());
    let (mut successor, attached) = Process::start(peer, End::Receiver, place.path(), Attach::Resume, 1);
    let is_ready = attached.is_ready();
    facts.add(KILLED, if is_ready { "successor attaches" } else { "successor does not attach" }, 1);
    killed.is_over = !is_ready && peer.starts_over;
    killed.is_stuck |= !is_ready && !peer.starts_over;
    if is_ready && answer != Answer::Hangs {
        let mut rest = Popped::default();
        rest.ask(&mut successor, "drain");
        let (third, failed) = pushed(&sender.ask(&format!("push {MORE}")));
        let is_cut = failed || third < MORE;
        facts.add(KILLED, "sender cannot continue", is_cut.into());
        rest.ask(&mut successor, "drain");
        let is_over = is_cut && !flows_again(peer, &place, &mut successor);
        facts.add(KILLED, "… but can attach again", (is_cut && !is_over).into());
        let facts_of_successor = [
            "successor hangs",
            "successor crashes",
            "successor reports an error",
            "messages that nobody sent",
        ];
        rest.count(KILLED, facts, facts_of_successor);
        killed.is_stuck |= is_over || rest.fails();
        if !rest.hangs && !rest.died {
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
            killed.is_lost = lost > 0;
            killed.is_doubled = !peer.is_newest_only && (found.contains(&0) || rest.has_doubles());
        }
    }
    let ends = if peer.creator == End::Sender { [successor, sender] } else { [sender, successor] };
    killed.is_leaked = end_and_find_leak(peer, &place, ends);
    killed.count(KILLED, facts);
}

/// Returns `true` if a sender that attaches now reaches the receiver.
fn flows_again(peer: &Peer, place: &Place, receiver: &mut Process) -> bool {
    let (mut again, attached) = Process::start(peer, End::Sender, place.path(), Attach::Join, SUCCESSOR);
    let sent = attached.is_ready() && again.ask("push 3") == Answer::Line("pushed 3".into());
    let mut popped = Popped::default();
    popped.ask(receiver, "drain");
    again.finish();
    sent && popped.of(SUCCESSOR).contains(&2)
}

/// Counts the files that both ends leave in `/dev/shm`, ended in order or killed. Then tries to
/// create the transport again there.
pub fn count_leftovers(peer: &Peer, facts: &mut Facts) {
    for is_killed in [false, true] {
        let place = Place::new();
        let (mut sender, receiver) = start_ends(peer, &place);
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
        let (again, answer) = Process::start(peer, peer.creator, place.path(), Attach::Create, 2);
        facts.add(experiment, if answer.is_ready() { "created again" } else { "not created again" }, 1);
        again.finish();
        facts.add(experiment, "files left after it was created again and ended", place.files() as u64);
        Process::clean_up(peer, place.path());
        facts.add(experiment, "files left after the documented clean-up", place.files() as u64);
    }
}
