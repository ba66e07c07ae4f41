//! Tests of agents' counters in the segment of their thread.

use crate::counters::*;
use crate::index::{GatewayIndex, StrategyIndex};
use crate::labels::{FULL, GatewayCounter, OrchestratorCounter, PROTOCOL_ERRORS, StrategyCounter};
use crate::role::Role;
use crate::status::{self, LOG_OFFSET, StatusWriter};
use crate::wire::MAX_VENUES;
use shm::memory::{AtomicWords, Region};
use shm::sync::Ordering;

const ROLES: [Role; 3] =
    [Role::Orchestrator, Role::Gateway(GatewayIndex(0)), Role::Gateway(GatewayIndex(63))];

#[test]
fn agents_sharing_a_thread_have_separate_counters() {
    let segment = Region::heap(LOG_OFFSET).words();
    let writer = StatusWriter::new(&segment);
    writer.announce(&ROLES);
    let mut slots = writer.slots();
    slots.next_agent().set(OrchestratorCounter::Dispatched, 11);
    let gateway = slots.next_agent();
    gateway.set(GatewayCounter::Received, 5);
    gateway.set(GatewayCounter::Full, 2);
    let last = slots.next_agent();
    last.set(GatewayCounter::Received, 6);
    last.set(GatewayCounter::Full, u64::MAX);
    let counters = status::counters(&segment.into());
    assert_eq!(counters.agent_counters(&ROLES, Role::Orchestrator).get(OrchestratorCounter::Dispatched), 11);
    assert_eq!(
        counters.agent_counters(&ROLES, Role::Gateway(GatewayIndex(0))).get(GatewayCounter::Received),
        5
    );
    assert_eq!(
        counters.agent_counters(&ROLES, Role::Gateway(GatewayIndex(63))).get_by_name("received"),
        Some(6)
    );
    assert_eq!(counters.total(&ROLES, FULL), u64::MAX, "as much as fits");
    assert_eq!(
        counters.agent_counters(&ROLES, Role::Strategy(StrategyIndex(0))).get(StrategyCounter::Sent),
        0,
        "not here"
    );
    assert_eq!(
        counters.agent_counters(&ROLES, Role::Gateway(GatewayIndex(0))).get(StrategyCounter::Sent),
        0,
        "not this role's"
    );
    let announced: Vec<Role> = counters.announced().map(|agent| agent.role()).collect();
    assert_eq!(announced, ROLES);
}

#[test]
fn counters_of_largest_engine_overlap_no_record() {
    let roles: Vec<Role> = std::iter::once(Role::Orchestrator)
        .chain(GatewayIndex::first(MAX_VENUES as u16).map(Role::Gateway))
        .collect();
    let segment = Region::heap(LOG_OFFSET + 2).words();
    let writer = StatusWriter::new(&segment);
    writer.announce(&roles);
    let mut slots = writer.slots();
    for role in &roles {
        let slot = slots.next_agent();
        for place in 0..role.info().counters.len() {
            slot.0[1 + place].store(u64::MAX, Ordering::Relaxed);
        }
    }
    assert!(segment[LOG_OFFSET..].iter().all(|word| word.load(Ordering::Relaxed) == 0));
    assert_eq!(writer_state(&segment), 0, "nor the status");
    assert_eq!(status::counters(&segment.into()).announced().count(), roles.len());
}

fn writer_state(segment: &AtomicWords) -> u64 {
    segment[shm::memory::header::HEADER_WORDS].load(Ordering::Relaxed)
}

#[test]
fn single_agent_read_equals_whole_read() {
    let segment = Region::heap(LOG_OFFSET).words();
    (0..LOG_OFFSET).for_each(|word| segment[word].store(word as u64, Ordering::Relaxed));
    let segment = segment.into();
    let all = status::counters(&segment);
    for role in ROLES.into_iter().chain([Role::Strategy(StrategyIndex(0))]) {
        assert_eq!(status::counters_of(&segment, &ROLES, role), all.agent_counters(&ROLES, role), "{role}");
    }
    // An oversized plan must not read past the segment.
    let too_many = [Role::Orchestrator; MAX_AGENTS].into_iter().chain([Role::Gateway(GatewayIndex(0))]);
    let too_many: Vec<Role> = too_many.collect();
    assert!(
        status::counters_of(&segment, &too_many, Role::Gateway(GatewayIndex(0)))
            .labeled()
            .all(|(_, value)| value == 0)
    );
}

#[test]
fn arbitrary_counter_words_never_panic() {
    let hostile = ThreadCounters::from_words([u64::MAX; COUNTER_WORDS + 5]);
    assert_eq!(hostile.announced().count(), 0);
    assert_eq!(
        hostile.agent_counters(&ROLES, Role::Gateway(GatewayIndex(63))).get(GatewayCounter::Completed),
        u64::MAX
    );
    let none = ThreadCounters::default();
    assert_eq!((none.total(&ROLES, PROTOCOL_ERRORS), none.announced().count()), (0, 0));
}

#[test]
fn roles_have_common_counters_and_no_duplicate_names() {
    for role in [Role::Strategy(StrategyIndex(1)), Role::Orchestrator, Role::Gateway(GatewayIndex(1))] {
        let mut names: Vec<&str> = role.info().counters.iter().map(|label| label.name).collect();
        assert!(names.contains(&FULL) && names.contains(&PROTOCOL_ERRORS), "{role}: {names:?}");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), role.info().counters.len(), "{role}: {names:?}");
        assert_eq!(role_of(tag(role)), Some(role));
    }
}
