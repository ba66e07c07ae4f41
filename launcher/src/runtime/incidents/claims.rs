//! A strategy's own claims: its last words and the orders that it counted. None of it is believed
//! further than that.

use crate::runtime::restart_policy::Children;
use crate::runtime::setup::Segments;
use protocol::labels::StrategyCounter;
use protocol::plan::Role;
use protocol::role::RoleKind;
use protocol::status::{self, ThreadState};
use shm::memory::ReadOnlyWords;

/// How a strategy's process ended before it was done, in words; `None`: it runs, or ended as it
/// should.
pub(super) fn ended(children: &impl Children, process: usize, thread: &ReadOnlyWords) -> Option<String> {
    let ended = children.ended(process)?;
    let status = status::read(thread);
    let in_order = ended && status.state() == ThreadState::Done;
    let words = if status.state() == ThreadState::Failed { status.error() } else { String::new() };
    let how = || match children.ended(process) {
        Some(true) => format!("{} before it had finished", children.how(process)),
        _ => children.how(process),
    };
    (!in_order).then(|| with_own_words(&how(), &words))
}

/// The longest of a strategy's own words that are shown, in characters.
const OWN_WORDS: usize = 120;

/// What the kernel says, and then what a strategy says about itself: quoted, and without what could
/// be taken for something else.
pub fn with_own_words(how: &str, words: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() || c == ' ' || "µ·–…’“”≥≤×".contains(c);
    let words: String =
        words.trim().chars().take(OWN_WORDS).map(|c| if plain(c) && c != '"' { c } else { '?' }).collect();
    if words.is_empty() { how.to_owned() } else { format!("{how}; it says itself: \"{words}\"") }
}

/// Orders that the strategy of a thread has sent in its incarnation, and those of them that it got
/// an answer for. It says so itself, and one that scribbles says anything: not believed beyond the
/// orders that there are for it.
pub(super) fn sent_and_settled(segments: &Segments, thread: usize, orders: u64) -> (u64, u64) {
    settled_by(&segments.threads[thread], &segments.plan.threads[thread].roles, orders)
}

/// As `sent_and_settled`, of the thread that runs these.
pub fn settled_by(thread: &ReadOnlyWords, roles: &[Role], orders: u64) -> (u64, u64) {
    let role = roles.iter().find(|role| role.kind() == RoleKind::Strategy);
    let mine = role.map(|role| status::counters_of(thread, roles, *role));
    let count = |counter| mine.map_or(0, |mine| mine.get(counter)).min(orders);
    (count(StrategyCounter::Sent), count(StrategyCounter::Returned) + count(StrategyCounter::Rejected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_strategy_says_of_itself_comes_last_and_is_marked() {
        let killed = "signal 11 (SIGSEGV)";
        assert_eq!(with_own_words(killed, ""), killed);
        let says = with_own_words(killed, " no route \"to\" the venue\u{1b}[31m\u{202e}ש ");
        assert_eq!(says, "signal 11 (SIGSEGV); it says itself: \"no route ?to? the venue?[31m??\"");
        let long = with_own_words(killed, &"x".repeat(1000));
        assert_eq!(long.matches('x').count(), OWN_WORDS, "{long}");
    }
}
