//! The engine's reader of the control segment: which incarnations of strategies and gateways have
//! died or started.

use protocol::control::Control;

/// A reader of the control segment, which finds strategies and gateways that died or were
/// restarted.
pub struct Supervision {
    pub(crate) control: Control,
    pub(crate) seen: u64,
    pub(crate) next_inspection: u64,
    pub(crate) is_damaged: bool,
}

impl Supervision {
    /// Creates the engine's reader of a control segment, which finds deaths and restarts.
    pub fn new(control: Control) -> Self {
        // Not the current generation: existing fences must be seen.
        Self { control, seen: 0, next_inspection: 0, is_damaged: false }
    }

    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.control.generation() != self.seen
    }
}
