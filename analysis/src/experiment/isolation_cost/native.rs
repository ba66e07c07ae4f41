//! The level `native` of a bill: an engine whose strategies are its own threads, over the fastest
//! queue on the heap, with messages by value and by pointer.

use protocol::plan::{Isolation, IsolationLevel, Technique};

/// The name, in `--isolation`, of the level at which threads exchange messages through queues on
/// the heap (`rtrb`).
pub const NATIVE: &str = "native";

/// The techniques of the arm, and what sets their rows apart. Levels are compared with the first.
const ARMS: [(&str, &str); 2] = [("rtrb-mux", "by value"), ("rtrb-pointer-mux", "by pointer")];

/// Returns the techniques of the level `native`: queues on the heap that pass messages by value and
/// by pointer.
pub fn native_techniques() -> Vec<Technique> {
    ARMS.iter().filter_map(|(name, _)| Technique::from_name(name)).collect()
}

/// Returns what sets the row of a technique apart in the arm; `None` for other techniques.
pub(super) fn messages_of(isolation: IsolationLevel, technique: Technique) -> Option<&'static str> {
    let arm = ARMS.iter().find(|(name, _)| isolation == Isolation::Thread && *name == technique.name())?;
    Some(arm.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_techniques_are_on_the_heap() {
        let all = native_techniques();
        assert_eq!(all.len(), ARMS.len());
        assert!(all.iter().all(|technique| !technique.crosses_processes()));
        let first = |isolation, technique| messages_of(isolation, technique);
        assert_eq!(first(Isolation::Thread.into(), all[0]), Some("by value"));
        assert_eq!(first(Isolation::Process.into(), all[0]), None);
        assert_eq!(first(Isolation::Thread.into(), Technique::default()), None);
    }
}
