//! A word of the memory that a sender shares is overwritten, as a hostile sender would, while a
//! receiver polls.

use crate::facts::{Facts, Outcome};
use crate::peer::Peer;
use crate::place::Place;
use crate::popped::Popped;
use crate::process::{Answer, PATIENCE, Process};
use crate::shared::mappings;
use crate::trials::{end_and_find_leak, start_ends};
use nix::sys::uio::pwrite;
use std::fs::{File, OpenOptions};
use std::os::unix::process::ExitStatusExt as _;

pub const NAME: &str = "hostile word";
/// Messages before and after the word is overwritten.
const MESSAGES: u64 = 3;
/// The first words of a mapping, all of which are tried.
const FIRST: usize = 64;

fn words(process: &Process) -> Vec<Vec<u64>> {
    let words = |range: std::ops::Range<usize>| (range.start as u64..range.end as u64).step_by(8).collect();
    mappings(process.pid()).into_iter().map(words).collect()
}

/// Returns the memory words to overwrite: the first ones of each mapping, and at most `limit` of
/// the others, at equal distances.
pub fn places(peer: &Peer, limit: usize) -> Vec<(usize, usize)> {
    let place = Place::new();
    let (mut sender, _receiver) = start_ends(peer, &place);
    sender.ask(&format!("push {MESSAGES}"));
    let mappings = words(&sender);
    let all = mappings
        .iter()
        .enumerate()
        .flat_map(|(mapping, words)| (0..words.len()).map(move |word| (mapping, word)));
    let (first, rest): (Vec<_>, Vec<_>) = all.partition(|(_, word)| *word < FIRST);
    let step = rest.len().div_ceil(limit).max(1);
    first.into_iter().chain(rest.into_iter().step_by(step)).collect()
}

pub fn overwrite(peer: &Peer, (mapping, word): (usize, usize), facts: &mut Facts) {
    let place = Place::new();
    let (mut sender, mut receiver) = start_ends(peer, &place);
    sender.ask(&format!("push {MESSAGES}"));
    let address = words(&sender).get(mapping).and_then(|words| words.get(word).copied());
    let memory: Option<File> =
        OpenOptions::new().write(true).open(format!("/proc/{}/mem", sender.pid())).ok();
    let (Some(address), Some(memory)) = (address, memory) else {
        return facts.add(NAME, "not tried", 1);
    };
    facts.add(NAME, "words", 1);
    let value = shm::random::mix((mapping as u64) << 40 | word as u64 | 1 << 60);
    // Half of them while the first messages are there, half of them after these.
    if word.is_multiple_of(2) {
        receiver.send_command("poll 5");
    } else {
        receiver.ask("drain");
        receiver.send_command("poll 5");
    }
    if pwrite(&memory, &value.to_ne_bytes(), address as i64).is_err() {
        return facts.add(NAME, "not tried", 1);
    }
    let mut popped = Popped::default();
    popped.add(receiver.answer(PATIENCE));
    let sent = sender.ask(&format!("push {MESSAGES}"));
    popped.ask(&mut receiver, "drain");
    facts.add(NAME, "sender hangs", (sent == Answer::Hangs).into());
    facts.add(NAME, "sender crashes or panics", (sent == Answer::Died).into());
    facts.add(NAME, "receiver hangs", popped.hangs.into());
    facts.add(NAME, "receiver reports an error", popped.error.into());
    if popped.died {
        let by_signal = receiver.status().is_some_and(|status| status.signal().is_some());
        facts.add(NAME, if by_signal { "receiver is killed by a signal" } else { "receiver panics" }, 1);
    }
    let accepted = sent == Answer::Line(format!("pushed {MESSAGES}"));
    let newest = popped.of(0).last() == Some(&(2 * MESSAGES - 1));
    let continues = !popped.hangs && !popped.died && !popped.error && accepted && newest;
    facts.add(NAME, "both continue: the newest message arrives", continues.into());
    let is_silent = !continues && !popped.hangs && !popped.died && !popped.error && accepted;
    let has_no_room = matches!(&sent, Answer::Line(_)) && !accepted;
    facts.add(NAME, "both run: the sender finds no room", has_no_room.into());
    facts.add(NAME, "both run: the newest message does not arrive", is_silent.into());
    // A receiver that reports the damage can begin again; one that does not is deceived.
    let is_over = !continues && popped.error;
    let is_stuck = !continues && !is_over && !is_silent;
    Outcome { is_lost: is_silent, is_stuck, is_over, ..Outcome::default() }.count(NAME, facts);
    end_and_find_leak(peer, &place, []);
}
