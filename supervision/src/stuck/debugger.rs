//! A debugger that has stopped a strategy: plain data that the runtime reads.

use std::fmt;

/// A debugger, such as gdb, that has stopped a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debugger {
    /// Process id of the debugger; `None` if it is in an outer PID namespace.
    pub pid: Option<u32>,
    /// Printable name of the debugger's process; empty if it is not visible.
    pub name: String,
}

impl fmt::Display for Debugger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "a debugger (pid {pid}, {})", self.name),
            None => f.write_str("a debugger (in an outer PID namespace)"),
        }
    }
}
