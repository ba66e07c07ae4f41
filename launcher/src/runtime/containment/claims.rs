//! Verifies the claims of a strategy in memory that it can write: its last error message and its
//! order counters. They are only reported and never trusted.

use crate::runtime::restart_policy::ProcessControl;
use crate::runtime::setup::Segments;
use protocol::labels::StrategyCounter;
use protocol::plan::Role;
use protocol::status::{self, ThreadState};
use shm::memory::ReadOnlyWords;

/// Describes how a strategy's process exited before it was done; `None` if it runs or exited as it
/// should.
pub(super) fn early_exit(
    children: &impl ProcessControl,
    process: usize,
    thread: &ReadOnlyWords,
) -> Option<String> {
    let ended = children.exited_normally(process)?;
    let status = status::read(thread);
    let in_order = ended && status.state() == ThreadState::Done;
    let words = if status.state() == ThreadState::Failed { status.error() } else { String::new() };
    let how = || match children.exited_normally(process) {
        Some(true) => format!("{} before it had finished", children.exit_text(process)),
        _ => children.exit_text(process),
    };
    (!in_order).then(|| with_own_message(&how(), &words))
}

/// Maximum length of a strategy's own message, in characters.
const MAX_MESSAGE_CHARS: usize = 120;

/// Returns how a process exited according to the kernel, followed by the strategy's own message. It
/// is quoted, and without characters that could be mistaken for something else.
pub fn with_own_message(how: &str, words: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() || c == ' ' || "µ·–…’“”≥≤×".contains(c);
    let words: String = words
        .trim()
        .chars()
        .take(MAX_MESSAGE_CHARS)
        .map(|c| if plain(c) && c != '"' { c } else { '?' })
        .collect();
    if words.is_empty() { how.to_owned() } else { format!("{how}; it says itself: \"{words}\"") }
}

/// Returns the orders that a strategy has sent in its incarnation, and how many were answered. The
/// counters are the strategy's own, so they are capped at the planned orders.
pub(super) fn sent_and_settled(segments: &Segments, strategy: u16) -> (u64, u64) {
    let (plan, role) = (&segments.plan, Role::Strategy(strategy));
    let thread = plan.thread_of(role);
    let counters = thread
        .map(|thread| status::counters_of(&segments.threads[thread], &plan.threads[thread].roles, role));
    let orders = plan.trading().orders[usize::from(strategy)];
    let count = |counter| counters.map_or(0, |mine| mine.get(counter)).min(orders);
    (count(StrategyCounter::Sent), count(StrategyCounter::Returned) + count(StrategyCounter::Rejected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_message_comes_last_and_quoted() {
        let killed = "signal 11 (SIGSEGV)";
        assert_eq!(with_own_message(killed, ""), killed);
        let says = with_own_message(killed, " no route \"to\" the venue\u{1b}[31m\u{202e}ש ");
        assert_eq!(says, "signal 11 (SIGSEGV); it says itself: \"no route ?to? the venue?[31m??\"");
        let long = with_own_message(killed, &"x".repeat(1000));
        assert_eq!(long.matches('x').count(), MAX_MESSAGE_CHARS, "{long}");
    }
}
