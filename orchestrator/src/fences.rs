//! The engine's reader of the control segment: which incarnations of strategies and gateways have
//! died or started.

use protocol::control::Control;

/// The engine's reader of the control segment, by which it detects deaths and restarts of
/// strategies and gateways.
pub struct Supervision {
    pub(crate) control: Control,
    pub(crate) seen: u64,
    pub(crate) next_inspection: u64,
    pub(crate) is_damaged: bool,
}

impl Supervision {
    /// Creates the engine's reader of a control segment; deaths recorded there before the call are
    /// reported too.
    pub fn new(control: Control) -> Self {
        // Not the current generation: existing fences must be seen.
        Self { control, seen: 0, next_inspection: 0, is_damaged: false }
    }

    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.control.generation() != self.seen
    }
}
