//! How much of the contract of techniques each of them keeps: every check of `shm::conformance`, and what each does not pass.

#![cfg(any(feature = "iceoryx2", feature = "aeron"))]

use launcher::shm::conformance::{Violation, survey};
use launcher::shm::queue::Queue;
use launcher::shm::ring::Link;

/// Surveys a technique; `is_known` says of a check and what was found whether that is named in its documentation.
fn known<L: Link>(is_known: impl Fn(&str, &Violation) -> bool) {
    let findings = survey::<L>();
    assert!(findings.len() > 20, "{}", findings.len());
    let mut unknown = Vec::new();
    for finding in &findings {
        match &finding.violation {
            None => println!("{}, {}: passed", L::RECORD.name, finding.check),
            Some(violation) => {
                println!("{}, {}: {violation}", L::RECORD.name, finding.check);
                if !is_known(&finding.check, violation) {
                    unknown.push(format!("{}: {violation}", finding.check));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

/// A consumer cannot take the place of another.
fn is_not_resumed<L: Link>() {
    let name = format!("transports-{}-{}", L::RECORD.name, std::process::id());
    let mut queue = Queue::<L>::create(&name, 1, 64).unwrap();
    assert!(queue.resume().is_err_and(|error| error.to_string().contains("replace its consumer")));
    assert!(Queue::<L>::on_heap(1, 64).is_err());
}

#[cfg(feature = "iceoryx2")]
#[test]
fn iceoryx2_keeps_the_contract() {
    known::<transports::iceoryx::Iceoryx2>(|_, _| false);
    is_not_resumed::<transports::iceoryx::Iceoryx2>();
}

/// The driver moves a publication's limit when it looks, so a push may be refused although all is taken.
#[cfg(feature = "aeron")]
#[test]
fn aeron_keeps_the_contract_but_for_when_it_is_full() {
    known::<transports::aeron::AeronIpc>(|_, violation| matches!(violation, Violation::FullTooEarly { .. }));
    is_not_resumed::<transports::aeron::AeronIpc>();
}
