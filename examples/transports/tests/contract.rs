//! How much of the contract of techniques each of them keeps: every check of `shm::conformance`, and what each does not pass.

#![cfg(feature = "iceoryx2")]

use launcher::shm::conformance::survey;
use launcher::shm::queue::Queue;
use launcher::shm::ring::Link;
use transports::iceoryx::Iceoryx2;

/// A consumer cannot take the place of another.
fn is_not_resumed<L: Link>() {
    let name = format!("transports-{}-{}", L::RECORD.name, std::process::id());
    let mut queue = Queue::<L>::create(&name, 1, 64).unwrap();
    assert!(queue.resume().is_err_and(|error| error.to_string().contains("replace its consumer")));
    assert!(Queue::<L>::on_heap(1, 64).is_err());
}

#[test]
fn iceoryx2_keeps_the_contract() {
    for finding in survey::<Iceoryx2>() {
        let found = finding.violation.as_ref().map_or("passed".into(), ToString::to_string);
        println!("{}: {found}", finding.check);
        assert!(finding.violation.is_none(), "{}: {found}", finding.check);
    }
    is_not_resumed::<Iceoryx2>();
}
