//! What a receiver answered, and what a sender sent.

use crate::facts::Facts;
use crate::process::{Answer, Process};

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

    /// Returns `true` if one of the first `sent` messages of a sender is missing.
    pub fn lacks(&self, sender: u64, sent: u64) -> bool {
        let found = self.of(sender);
        (0..sent).any(|number| !found.contains(&number))
    }

    /// Returns `true` if a message came twice.
    pub fn has_doubles(&self) -> bool {
        let mut once = self.messages.clone();
        once.sort_unstable();
        once.dedup();
        once.len() < self.messages.len()
    }

    pub const fn fails(&self) -> bool {
        self.hangs || self.died || self.error || self.unknown > 0
    }

    pub fn count(&self, experiment: &'static str, facts: &mut Facts, who: [&'static str; 4]) {
        facts.add(experiment, who[0], self.hangs.into());
        facts.add(experiment, who[1], self.died.into());
        facts.add(experiment, who[2], self.error.into());
        facts.add(experiment, who[3], self.unknown);
    }
}

/// Returns how many messages a sender has sent, and whether it failed.
pub fn pushed(answer: &Answer) -> (u64, bool) {
    match answer {
        Answer::Line(line) => {
            let mut words = line.split(' ').skip(1);
            let count = words.next().and_then(|count| count.parse().ok()).unwrap_or(0);
            (count, words.next().is_some())
        }
        Answer::Hangs | Answer::Died => (0, true),
    }
}
