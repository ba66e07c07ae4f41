//! Loom models of the channel, whose receiver parks, in every order of steps and with every value
//! that the orderings allow.
//!
//! Mutants: both polls of the channel without their SeqCst are killed, and so is the park without
//! its second poll.
//!
//! `.ci/loom.sh channel::`

use core::time::Duration;
use loom::thread;
use shm::bell::BELL_WORDS;
use shm::memory::Region;
use shm::ring::array_queue::{ring_words, write_header};
use shm::ring::intent;
use techniques::channel::{Receiver, Sender};

const CAPACITY: usize = 2;

fn channel() -> (Sender<1>, Sender<1>, Receiver<1>) {
    let ring = Region::heap(ring_words(CAPACITY, 1)).words();
    write_header::<1>(&ring, CAPACITY);
    let (intents, waker) = (intent::on_heap(2), Region::heap(BELL_WORDS).words());
    let sender = |index: usize| Sender::attach(&ring, &intents[index], &waker).unwrap();
    (sender(0), sender(1), Receiver::attach(&ring, intents.clone(), &waker).unwrap())
}

/// Loom's futex has no timeout: a lost wake-up hangs the model, which loom reports.
#[test]
fn a_parked_receiver_is_woken() {
    loom::model(|| {
        let (mut sender, _, mut receiver) = channel();
        let sends = thread::spawn(move || sender.try_push(&[7]).unwrap());
        assert_eq!(receiver.pop_timeout(Duration::MAX), Ok(Some([7])));
        sends.join().unwrap();
    });
}

#[test]
fn two_senders_and_a_parked_receiver() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let (mut one, mut two, mut receiver) = channel();
        let one = thread::spawn(move || one.try_push(&[1]).unwrap());
        let two = thread::spawn(move || two.try_push(&[2]).unwrap());
        let got = [(); 2].map(|()| receiver.pop_timeout(Duration::MAX).unwrap().unwrap()[0]);
        assert_eq!(got[0] + got[1], 3, "{got:?}");
        one.join().unwrap();
        two.join().unwrap();
    });
}
