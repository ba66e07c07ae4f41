//! A thread that is started before its work is known.

use crate::error::JournalError;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

type Work = Box<dyn FnOnce() + Send>;

/// A thread that waits for its work. Without any it ends.
pub(crate) struct EarlyThread {
    work: Sender<Work>,
    begun: Receiver<()>,
    thread: JoinHandle<()>,
}

impl EarlyThread {
    /// Starts a thread. It has a core by the time it is needed, also if the caller's core is busy.
    pub(crate) fn start(name: &str) -> Result<Self, JournalError> {
        let (work, given) = mpsc::channel::<Work>();
        let (begins, begun) = mpsc::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _ = begins.send(());
            if let Ok(work) = given.recv() {
                work();
            }
        });
        let thread = thread
            .map_err(|error| JournalError::Options(format!("cannot start the thread {name}: {error}")))?;
        Ok(Self { work, begun, thread })
    }

    /// Gives the thread its work. Waits until the thread runs, so that a seccomp filter installed
    /// next does not interrupt its creation.
    pub(crate) fn run(self, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        let _ = self.begun.recv();
        let _ = self.work.send(Box::new(work));
        self.thread
    }
}
