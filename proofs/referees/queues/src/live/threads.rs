//! Writer and readers as threads of one process.

use crate::figures::Figures;
use crate::work::{self, CONTROL, GO, Load, Read, START, STATE, Value};
use shm::memory::Region;
use shm::sync::Ordering;
use system::clock::{Clock, Monotonic};

/// Runs a contender: with a number of readers, for a time in nanoseconds, with a load, and with the
/// times at which writes are due.
pub type Run = Box<dyn Fn(usize, u64, Load, &[u64]) -> Figures>;

/// A compared crate whose ends are threads of one process: its name, how it makes the writer and
/// the readers, a write, and a read.
pub fn contender<W: Send, R: Send>(
    name: &'static str,
    make: impl Fn(usize) -> (W, Vec<R>) + 'static,
    write: impl Fn(&mut W, &Value) + Copy + Send + 'static,
    read: impl Read<R>,
) -> (&'static str, Run) {
    let run = move |readers: usize, ns, load: Load, due: &[u64]| {
        let (mut writer, ends) = make(readers);
        let control = Region::heap(CONTROL).words();
        let mut all = Figures::new();
        std::thread::scope(|scope| {
            let control = &control;
            let mut running = Vec::new();
            for (number, mut end) in (1..).zip(ends) {
                running.push(scope.spawn(move || {
                    let shares_core = work::place(number, readers);
                    work::read(&mut end, read, control, shares_core, load.hold(number))
                }));
            }
            running.push(scope.spawn(move || {
                work::place(0, readers);
                work::write(|value| write(&mut writer, value), control, due, ns)
            }));
            // All threads have been pinned by then.
            std::thread::sleep(std::time::Duration::from_millis(5));
            control[START].store(Monotonic.now() + 1_000_000, Ordering::Relaxed);
            control[STATE].store(GO, Ordering::Release);
            running.into_iter().for_each(|agent| all.add(agent.join().expect("it does not panic")));
        });
        all
    };
    (name, Box::new(run))
}
