//! An end that is killed while it creates the transport, attaches to it, or detaches from it.

use crate::facts::{Facts, Outcome};
use crate::peer::{Attach, End, Peer};
use crate::place::Place;
use crate::popped::{Popped, pushed};
use crate::process::{Answer, Process};
use crate::tracer::{Point, Stretch};
use crate::trials::{AFTER, BEFORE, end_and_find_leak, start_ends};
use std::ops::Range;

/// Numbers of the senders in these trials; 0 is the one that attached first.
const EARLY: u64 = 3;
const NEXT: u64 = 4;

/// What the killed end was doing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Create,
    Attach(End),
    Detach(End),
}

impl Act {
    pub const ALL: [Self; 5] = [
        Self::Create,
        Self::Attach(End::Sender),
        Self::Attach(End::Receiver),
        Self::Detach(End::Sender),
        Self::Detach(End::Receiver),
    ];

    pub const fn experiment(self) -> &'static str {
        match self {
            Self::Create => "killed in create",
            Self::Attach(End::Sender) => "sender killed in attach",
            Self::Attach(End::Receiver) => "receiver killed in attach",
            Self::Detach(End::Sender) => "sender killed in detach",
            Self::Detach(End::Receiver) => "receiver killed in detach",
        }
    }
}

/// The processes of a trial, except for the killed one.
struct Scene {
    place: Place,
    victim: Process,
    /// The end of the other kind, if it is attached.
    other: Option<Process>,
    /// Messages that the first sender has sent.
    sent: u64,
    /// Of these, received before.
    taken: u64,
    /// `true` if the killed end takes the transport with it when it detaches in order.
    removes: bool,
}

/// Prepares an act, up to the first trap. `None` if the transport refuses it.
fn begin(peer: &Peer, act: Act) -> Option<Scene> {
    let place = Place::new();
    if act == Act::Create {
        let mut victim = Process::start_at_gate(peer, peer.creator, place.path(), Attach::Create, 0);
        victim.begin("marked go");
        return Some(Scene { place, victim, other: None, sent: 0, taken: 0, removes: false });
    }
    let (mut sender, mut receiver) = start_ends(peer, &place);
    let sent = pushed(&sender.ask(&format!("push {BEFORE}"))).0;
    match act {
        Act::Create => None,
        Act::Attach(end) => {
            // The successor of an end that was killed between two messages is the one to be killed.
            let (first, other) = if end == End::Sender { (sender, receiver) } else { (receiver, sender) };
            first.kill();
            let mut victim = Process::start_at_gate(peer, end, place.path(), Attach::Resume, NEXT - 1);
            victim.begin("marked go");
            Some(Scene { place, victim, other: Some(other), sent, taken: 0, removes: false })
        }
        Act::Detach(end) => {
            let removes = end == peer.creator;
            let (mut victim, other, taken) = if end == End::Sender {
                (sender, receiver, 0)
            } else if removes {
                // Messages that it leaves would be its decision.
                receiver.ask("drain");
                (receiver, sender, sent)
            } else {
                receiver.ask("take 1");
                (receiver, sender, 1)
            };
            victim.begin("marked drop");
            Some(Scene { place, victim, other: Some(other), sent, taken, removes })
        }
    }
}

/// Measures an act. `None` if the transport does not have it.
pub fn survey(peer: &Peer, act: Act) -> Option<Stretch> {
    let mut scene = begin(peer, act)?;
    let stretch = scene.victim.survey();
    let answer = scene.victim.answer(crate::process::PATIENCE);
    let has_act = !matches!(&answer, Answer::Line(line) if line.starts_with("refused"));
    end_and_find_leak(peer, &scene.place, [Some(scene.victim), scene.other].into_iter().flatten());
    has_act.then_some(stretch)
}

/// Kills one end of a queue at this point of what it does (`act`), and lets the other ends and a
/// successor go on.
pub fn kill(peer: &Peer, act: Act, point: Point, facts: &mut Facts) {
    let Some(mut scene) = begin(peer, act) else { return };
    scene.victim.run_to(point);
    scene.victim.kill();
    let experiment = act.experiment();
    let mut outcome = Outcome::default();
    let mut rest = Survivors { peer, place: scene.place, experiment, popped: Popped::default() };
    let ends = match (act, scene.other) {
        (Act::Create, _) | (_, None) => rest.after_create(facts, &mut outcome),
        (Act::Attach(End::Sender) | Act::Detach(End::Sender), Some(receiver)) => {
            rest.after_sender(receiver, scene.sent, facts, &mut outcome)
        }
        (Act::Attach(End::Receiver) | Act::Detach(End::Receiver), Some(sender)) => {
            let (unread, removes) = (scene.taken..scene.sent, scene.removes);
            rest.after_receiver(sender, unread, removes, facts, &mut outcome)
        }
    };
    let popped = &rest.popped;
    facts.add(experiment, "a receiver hangs", popped.hangs.into());
    facts.add(experiment, "a receiver crashes", popped.died.into());
    facts.add(experiment, "a receiver reports an error", popped.error.into());
    facts.add(experiment, "messages that nobody sent", popped.unknown);
    outcome.is_stuck |= popped.fails();
    outcome.is_doubled |= !peer.is_newest_only && popped.has_doubles();
    outcome.is_leaked = end_and_find_leak(peer, &rest.place, ends);
    outcome.count(experiment, facts);
}

struct Survivors<'a> {
    peer: &'a Peer,
    place: Place,
    experiment: &'static str,
    popped: Popped,
}

impl Survivors<'_> {
    fn start(&self, end: End, attach: Attach, id: u64) -> (Process, Answer) {
        Process::start(self.peer, end, self.place.path(), attach, id)
    }

    /// Starts a successor of the creating end: it resumes what is there, or creates it, after the
    /// documented clean-up if that is needed. `None` if it cannot.
    fn start_creator(&self, id: u64, facts: &mut Facts) -> Option<Process> {
        let end = self.peer.creator;
        for (attach, is_cleaned, fact) in [
            (Attach::Resume, false, "a successor resumes"),
            (Attach::Create, false, "a successor creates"),
            (Attach::Create, true, "a successor creates after a clean-up"),
        ] {
            if is_cleaned {
                Process::clean_up(self.peer, self.place.path());
            }
            let (process, answer) = self.start(end, attach, id);
            if answer.is_ready() {
                facts.add(self.experiment, fact, 1);
                return Some(process);
            }
            facts.add(self.experiment, "a successor hangs", (answer == Answer::Hangs).into());
            facts.add(self.experiment, "a successor crashes", (answer == Answer::Died).into());
        }
        facts.add(self.experiment, "no successor can begin", 1);
        None
    }

    /// Lets a sender send and a receiver take. Returns `true` if the messages arrive.
    fn flows(&mut self, sender: &mut Process, receiver: &mut Process, id: u64) -> bool {
        let sent = pushed(&sender.ask(&format!("push {AFTER}"))).0;
        self.popped.ask(receiver, "drain");
        sent == AFTER && self.popped.of(id).last() == Some(&(AFTER - 1))
    }

    /// The other end tries what the dead creator left; then a successor begins, and both go on.
    fn after_create(&mut self, facts: &mut Facts, outcome: &mut Outcome) -> Vec<Process> {
        let (creator, other) = (self.peer.creator, self.peer.creator.other());
        let (mut early, answer) = self.start(other, Attach::Join, EARLY);
        let fact = match &answer {
            Answer::Hangs => "the other end hangs",
            Answer::Died => "the other end crashes",
            answer if answer.is_ready() => "the other end attaches",
            Answer::Line(_) => "the other end is refused",
        };
        facts.add(self.experiment, fact, 1);
        outcome.is_stuck |= matches!(answer, Answer::Hangs | Answer::Died);
        let is_early = answer.is_ready();
        let mut early_sent = 0;
        if is_early {
            let asked = early.ask(if other == End::Sender { "push 3" } else { "drain" });
            outcome.is_stuck |= matches!(asked, Answer::Hangs | Answer::Died);
            facts.add(self.experiment, "the other end hangs later", (asked == Answer::Hangs).into());
            facts.add(self.experiment, "the other end crashes later", (asked == Answer::Died).into());
            if other == End::Sender {
                early_sent = pushed(&asked).0;
            }
        }
        let Some(mut successor) = self.start_creator(NEXT, facts) else {
            outcome.is_stuck = true;
            return vec![early];
        };
        if is_early && creator == End::Receiver {
            self.popped.ask(&mut successor, "drain");
            outcome.is_lost = !self.peer.is_newest_only && self.popped.lacks(EARLY, early_sent);
        }
        // An end with a place of its own may not be free for a second one.
        early.finish();
        let (mut next, answer) = self.start(other, Attach::Join, NEXT);
        facts.add(self.experiment, "the next other end cannot attach", (!answer.is_ready()).into());
        outcome.is_stuck |= !answer.is_ready();
        if answer.is_ready() {
            let flows = if creator == End::Receiver {
                self.flows(&mut next, &mut successor, NEXT)
            } else {
                self.flows(&mut successor, &mut next, NEXT)
            };
            facts.add(self.experiment, "messages do not flow", (!flows).into());
            outcome.is_stuck |= !flows;
        }
        vec![next, successor]
    }

    /// The receiver takes what was sent; then another sender sends.
    fn after_sender(
        &mut self,
        mut receiver: Process,
        sent: u64,
        facts: &mut Facts,
        outcome: &mut Outcome,
    ) -> Vec<Process> {
        self.popped.ask(&mut receiver, "drain");
        let is_lost = if self.peer.is_newest_only {
            self.popped.of(0).last() != Some(&(BEFORE - 1))
        } else {
            self.popped.lacks(0, sent)
        };
        facts.add(self.experiment, "trials in which earlier messages do not arrive", is_lost.into());
        outcome.is_lost |= is_lost;
        if self.peer.creator == End::Sender {
            return self.after_creating_sender(receiver, facts, outcome);
        }
        let (mut next, answer) = self.start(End::Sender, Attach::Resume, NEXT);
        self.count_successor(&answer, facts, outcome);
        if answer.is_ready() {
            let flows = self.flows(&mut next, &mut receiver, NEXT);
            facts.add(self.experiment, "messages do not flow", (!flows).into());
            outcome.is_stuck |= !flows;
        }
        vec![next, receiver]
    }

    fn after_creating_sender(
        &mut self,
        mut receiver: Process,
        facts: &mut Facts,
        outcome: &mut Outcome,
    ) -> Vec<Process> {
        let Some(mut next) = self.start_creator(NEXT, facts) else {
            outcome.is_stuck = true;
            return vec![receiver];
        };
        if self.flows(&mut next, &mut receiver, NEXT) {
            return vec![receiver, next];
        }
        // Where a successor makes a new transport at the path, its receivers attach again.
        let (mut again, answer) = self.start(End::Receiver, Attach::Join, 0);
        let mut found = Popped::default();
        found.ask(&mut again, "drain");
        let flows = answer.is_ready() && found.of(NEXT).last() == Some(&(AFTER - 1));
        facts.add(self.experiment, "receivers have to attach again", flows.into());
        facts.add(self.experiment, "messages do not flow", (!flows).into());
        outcome.is_stuck |= !flows;
        again.finish();
        vec![receiver, next]
    }

    /// The sender sends on; then another receiver takes.
    fn after_receiver(
        &mut self,
        mut sender: Process,
        unread: Range<u64>,
        removes: bool,
        facts: &mut Facts,
        outcome: &mut Outcome,
    ) -> Vec<Process> {
        let answer = sender.ask(&format!("push {AFTER}"));
        let (more, _) = pushed(&answer);
        let is_broken = matches!(answer, Answer::Hangs | Answer::Died);
        facts.add(self.experiment, "the sender hangs or crashes", is_broken.into());
        outcome.is_stuck |= is_broken;
        let receiver = if removes {
            self.start_creator(NEXT, facts)
        } else {
            let (receiver, answer) = self.start(End::Receiver, Attach::Resume, NEXT);
            self.count_successor(&answer, facts, outcome);
            answer.is_ready().then_some(receiver)
        };
        let Some(mut receiver) = receiver else {
            outcome.is_stuck |= !self.peer.starts_over;
            return vec![sender];
        };
        self.popped.ask(&mut receiver, "drain");
        if !removes && !self.peer.is_newest_only {
            let found = self.popped.of(0);
            outcome.is_doubled |= found.iter().any(|number| *number < unread.start);
            let is_lost = (unread.start..unread.end + more).any(|number| !found.contains(&number));
            facts.add(self.experiment, "trials in which earlier messages do not arrive", is_lost.into());
            outcome.is_lost |= is_lost;
        }
        if is_broken {
            return vec![sender, receiver];
        }
        let before = self.popped.of(0).len();
        let (more, failed) = pushed(&sender.ask(&format!("push {AFTER}")));
        self.popped.ask(&mut receiver, "drain");
        if !failed && more == AFTER && self.popped.of(0).len() > before {
            return vec![sender, receiver];
        }
        // Where the receiver took the transport with it, its senders attach again.
        sender.finish();
        let (mut again, answer) = self.start(End::Sender, Attach::Join, EARLY);
        let flows = answer.is_ready() && self.flows(&mut again, &mut receiver, EARLY);
        facts.add(self.experiment, "senders have to attach again", flows.into());
        facts.add(self.experiment, "messages do not flow", (!flows).into());
        outcome.is_stuck |= !flows;
        vec![again, receiver]
    }

    fn count_successor(&self, answer: &Answer, facts: &mut Facts, outcome: &mut Outcome) {
        let fact = match answer {
            Answer::Hangs => "a successor hangs",
            Answer::Died => "a successor crashes",
            answer if answer.is_ready() => "a successor attaches",
            Answer::Line(_) => "a successor is refused",
        };
        facts.add(self.experiment, fact, 1);
        let is_refusal = matches!(answer, Answer::Line(_)) && self.peer.starts_over;
        outcome.is_over |= is_refusal && !answer.is_ready();
        outcome.is_stuck |= !answer.is_ready() && !is_refusal;
    }
}
