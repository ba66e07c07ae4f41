//! Every check of `techniques::conformance` for each transport, and what it does not pass.

#![cfg(any(feature = "aeron", feature = "iceoryx2"))]

use launcher::shm::queue::Queue;
use launcher::shm::ring::Link;
use launcher::techniques::conformance::survey;

/// It passes every check, and a consumer cannot take the place of another.
fn keeps_the_contract<L: Link>() {
    for finding in survey::<L>() {
        let found = finding.violation.as_ref().map_or("passed".into(), ToString::to_string);
        println!("{}: {found}", finding.check);
        assert!(finding.violation.is_none(), "{}: {found}", finding.check);
    }
    let name = format!("transports-{}-{}", L::INFO.name, std::process::id());
    let mut queue = Queue::<L>::create(&name, 1, 64).unwrap();
    assert!(queue.resume_consumer().is_err_and(|error| error.to_string().contains("replace its consumer")));
    assert!(Queue::<L>::on_heap(1, 64).is_err());
}

#[cfg(feature = "aeron")]
#[test]
fn aeron_keeps_the_contract() {
    keeps_the_contract::<transports::aeron::Aeron>();
}

#[cfg(feature = "iceoryx2")]
#[test]
fn iceoryx2_keeps_the_contract() {
    keeps_the_contract::<transports::iceoryx::Iceoryx2>();
}
