//! Writer and readers as threads of one process.

use crate::figures::Figures;
use crate::heap::Heap;
use crate::work::{self, CONTROL, GO, HOLD, Load, START, STATE};
use system::clock::{Clock, Monotonic};
use shm::memory::Region;
use shm::sync::Ordering;

/// The parameters of a run: readers, nanoseconds, load, and the times at which writes are due.
pub type Run = fn(usize, u64, Load, &[u64]) -> Figures;

/// Returns the function that runs the compared crate of that name.
pub const fn contender<P: Heap>() -> (&'static str, Run) {
    (P::NAME, run::<P>)
}

fn run<P: Heap>(readers: usize, ns: u64, load: Load, due: &[u64]) -> Figures {
    let (mut writer, ends) = P::make(readers);
    let control = Region::heap(CONTROL).words();
    let mut all = Figures::new();
    std::thread::scope(|scope| {
        let control = &control;
        let mut running = Vec::new();
        for (place, mut end) in ends.into_iter().enumerate() {
            let hold = (load == Load::Slow && place == 0).then_some(HOLD);
            running.push(scope.spawn(move || {
                let shared = work::place(place + 1, readers);
                work::read::<P>(&mut end, control, shared, hold)
            }));
        }
        running.push(scope.spawn(move || {
            work::place(0, readers);
            work::write::<P>(&mut writer, control, due, ns)
        }));
        // Everybody is there by then.
        std::thread::sleep(std::time::Duration::from_millis(5));
        control[START].store(Monotonic.now() + 1_000_000, Ordering::Relaxed);
        control[STATE].store(GO, Ordering::Release);
        running.into_iter().for_each(|agent| all.add(agent.join().expect("it does not panic")));
    });
    all
}
