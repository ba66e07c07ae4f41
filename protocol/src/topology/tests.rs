//! Tests of the owners and rights of each segment, in every topology.

use super::*;
use crate::index::{GatewayIndex, StrategyIndex};
use crate::plan::{ExchangePlacement, Idle, OnDeath, Placement, Technique, Threading, Trading};
use std::collections::HashMap;

fn rights_of(plan: &Plan, process: &str) -> HashMap<String, Access> {
    let process = plan.processes.iter().find(|other| other.name == process).unwrap();
    rights(plan, process).collect()
}

fn plan(technique: Technique, placement: Placement) -> Plan {
    Plan { technique, placement, ..Plan::for_trading(crate::workload::Trading::new(2, 2)) }.arranged()
}

#[test]
fn strategy_has_rights_to_its_own_segments_only() {
    let (read, write) = (Some(Access::Read), Some(Access::Write));
    for (technique, wanted) in [
        (
            Technique::default(),
            &[("submit-0", write), ("submit-0.head", read), ("submit-1", None), ("submit-1.head", None)][..],
        ),
        (
            Technique::from_link::<techniques::channel::Channel>(),
            &[
                ("submit", write),
                ("submit-waker", write),
                ("submit-0.intent", write),
                ("submit-1.intent", None),
                ("completion", None),
            ],
        ),
    ] {
        let held = rights_of(&plan(technique, Placement::Engine), "strategy-0");
        let always = [
            ("return-0", read),
            ("return-0.head", write),
            ("return-1.head", None),
            ("completion-0", None),
            ("inbox-0", None),
            ("schedule-0", read),
            ("schedule-1", None),
            ("thread-strategy-0", write),
            ("thread-engine", None),
            ("bell-strategy-0", write),
            ("bell-strategy-1", None),
            ("bell-engine", read),
            ("repairs", None),
            ("desk", None),
            ("answers", None),
            ("control", read),
            ("anything-else", None),
        ];
        for (what, right) in wanted.iter().chain(&always) {
            assert_eq!(held.get(*what), right.as_ref(), "{technique}: {what}");
        }
    }
}

#[test]
fn engine_reads_segments_that_strategies_write() {
    let held = rights_of(&plan(Technique::default(), Placement::Engine), "engine");
    for (what, right) in [
        ("submit-1", Some(Access::Read)),
        ("submit-1.head", Some(Access::Write)),
        ("return-1", Some(Access::Write)),
        ("return-1.head", Some(Access::Read)),
        ("inbox-1", Some(Access::Write)),
        ("inbox-1.head", Some(Access::Write)),
        ("schedule-0", None),
        ("thread-strategy-0", None),
        ("thread-engine", Some(Access::Write)),
        ("bell-strategy-1", Some(Access::Read)),
        ("bell-engine", Some(Access::Write)),
        ("repairs", Some(Access::Write)),
        ("desk", Some(Access::Read)),
        ("answers", Some(Access::Write)),
    ] {
        assert_eq!(held.get(what), right.as_ref(), "{what}");
    }
}

#[test]
fn top_of_book_board_is_written_by_exchange_only() {
    let mut trading =
        Trading { exchange: ExchangePlacement::Process, market_data: true, ..Trading::new(2, 2) };
    trading.venue_kinds = vec![Trading::DELAY_VENUE.into(), Trading::BOOK.into()];
    let with = |trading| Plan::for_trading(trading).arranged();
    let plan = with(trading.clone());
    for (process, right) in [
        ("exchange-1", Some(Access::Write)),
        ("strategy-0", Some(Access::Read)),
        ("strategy-1", Some(Access::Read)),
        ("engine", None),
    ] {
        let held = rights_of(&plan, process);
        assert_eq!((held.get("market-1").copied(), held.get("market-0")), (right, None), "{process}");
    }
    let board = segments(&plan)
        .into_iter()
        .find(|segment| segment.purpose == SegmentPurpose::Market(VenueIndex(1)))
        .unwrap();
    assert_eq!(board.reset_with_role, None);
    let off = with(Trading { market_data: false, ..trading });
    assert!(segments(&off).iter().all(|segment| !matches!(segment.purpose, SegmentPurpose::Market(_))));
}

#[test]
fn separate_gateway_has_rights_to_its_links_only() {
    let plan = plan(Technique::default(), Placement::EachGateway);
    let held = rights_of(&plan, "gateway-1");
    let mut names: Vec<(&str, Access)> = held.iter().map(|(what, right)| (what.as_str(), *right)).collect();
    names.sort_by_key(|(what, _)| *what);
    let (read, write) = (Access::Read, Access::Write);
    let wanted = [
        ("bell-gateway-1", write),
        ("bell-orchestrator", read),
        ("completion-1", write),
        ("completion-1.head", read),
        ("control", read),
        ("inbox-1", read),
        ("inbox-1.head", write),
        ("thread-gateway-1", write),
    ];
    assert_eq!(names, wanted);
    assert_eq!(rights_of(&plan, "engine").get("inbox-1"), Some(&write));
    assert_eq!(rights_of(&plan, "engine").get("inbox-1.head"), Some(&read));
}

#[test]
fn process_without_roles_sees_only_the_plan() {
    let plan = plan(Technique::from_link::<shm::ring::array_queue::ArrayQueue>(), Placement::Engine);
    let nobody = ProcessPlan { name: "nobody".into(), threads: vec![] };
    assert_eq!(rights(&plan, &nobody).collect::<Vec<_>>(), [(CONTROL.to_owned(), Access::Read)]);
}

#[test]
fn own_memory_is_reset_with_strategy_or_gateway() {
    for technique in Technique::all() {
        let plan = plan(technique, Placement::Engine);
        for segment in segments(&plan) {
            let is_of = |links: [&str; 2], index: u16| {
                links.map(|link| format!("{link}-{index}")).iter().any(|own| {
                    segment
                        .spec
                        .name
                        .strip_prefix(own.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                })
            };
            let strategy = (0..2)
                .find(|index| is_of(["submit", "return"], *index))
                .map(StrategyIndex)
                .map(Role::Strategy);
            let gateway = (0..2)
                .find(|index| is_of(["inbox", "completion"], *index))
                .map(GatewayIndex)
                .map(Role::Gateway);
            let wanted = strategy.or(gateway);
            assert_eq!(segment.reset_with_role, wanted, "{technique}: {}", segment.spec.name);
        }
    }
}

/// Otherwise a segment of another build could be accepted.
#[test]
fn control_layout_hash_covers_every_layout() {
    let of = |kinds: &[SegmentKind]| {
        let layouts: Vec<_> = kinds.iter().map(|kind| (kind.name, kind.layout as usize)).collect();
        SegmentKind::new(1, "control", &layouts).layout
    };
    let mut kinds = vec![control::KIND];
    kinds.extend([shm::ring::spsc::KIND, shm::ring::spsc::HEAD_KIND, shm::ring::array_queue::KIND]);
    kinds.extend([techniques::linked::KIND, shm::ring::intent::KIND, bell::KIND, board::KIND, status::KIND]);
    kinds.extend([supervision::KIND, tape::KIND, COMMANDS_KIND, ANSWERS_KIND]);
    kinds.extend([SCHEDULE_KIND, POSITIONS_KIND, REPLAY_KIND, RESULTS_KIND, WRITE_TIMES_KIND]);
    assert_eq!(of(&kinds), CONTROL_KIND.layout);
    let mut trading =
        Trading { exchange: ExchangePlacement::Process, market_data: true, ..Trading::new(2, 2) };
    trading.venue_kinds = vec![Trading::BOOK.into()];
    for technique in Technique::all() {
        let on_death = OnDeath::Restart;
        let plan = Plan { technique, on_death, ..Plan::for_trading(trading.clone()) }.arranged();
        for segment in segments(&plan) {
            let is_memory = matches!(segment.spec.place, SegmentPlace::Memory | SegmentPlace::Reserve);
            let kind = segment.spec.kind;
            // A reserve is mapped differently.
            let is_there = kinds.iter().any(|known| known.layout == kind.layout);
            assert!(is_there || !is_memory, "{technique}: {}", segment.spec.name);
        }
    }
}

/// A process that could write another's doorbell could suppress the wake-ups of its senders.
#[test]
fn each_doorbell_is_written_by_one_thread() {
    for placement in Placement::ALL {
        for threading in Threading::ALL {
            let plan = Plan { threading: *threading, ..plan(Technique::default(), *placement) }.arranged();
            for segment in segments(&plan) {
                let SegmentPurpose::Bell(thread) = segment.purpose else { continue };
                let SegmentRights::Roles(rights) = segment.rights else { panic!("everybody") };
                let writers = rights.iter().filter(|(_, access)| *access == Access::Write);
                assert!(writers.map(|(role, _)| *role).eq(plan.threads[thread].roles.iter().copied()));
            }
        }
    }
}

/// A strategy that maps a word on which another one waits could wait or wake there.
#[test]
fn waking_word_is_mapped_by_its_two_threads_only() {
    for placement in Placement::ALL {
        for idle in [Idle::Park, Idle::Spin] {
            let mut plan = plan(Technique::default(), *placement);
            plan.threads.iter_mut().for_each(|thread| thread.idle = idle);
            let mut count = 0;
            for segment in segments(&plan) {
                let SegmentPurpose::Wake(from, to) = segment.purpose else { continue };
                count += 1;
                let SegmentRights::Roles(rights) = segment.rights else { panic!("everybody") };
                for (thread, access) in [(from, Access::Write), (to, Access::Read)] {
                    let roles = rights.iter().filter(|(_, right)| *right == access).map(|(role, _)| *role);
                    assert!(roles.eq(plan.threads[thread].roles.iter().copied()), "{}", segment.spec.name);
                }
            }
            let pairs: usize = (0..plan.threads.len()).map(|thread| peers(&plan, thread).len()).sum();
            assert_eq!(count, if idle == Idle::Park { pairs } else { 0 }, "{placement}");
        }
    }
}

#[test]
fn sole_strategy_writer_requires_exclusive_write_access() {
    for technique in Technique::all() {
        let plan = plan(technique, Placement::Engine);
        for segment in segments(&plan) {
            let what = segment.spec.name.as_str();
            let of = |index: StrategyIndex| {
                // In a shared ring the engine also writes the announcements: it withdraws them.
                let all = ["submit-N", "return-N.head", "thread-strategy-N", "bell-strategy-N"];
                all.iter().any(|own| own.replace('N', &index.to_string()) == what)
            };
            let wanted = StrategyIndex::first(2).find(|index| of(*index));
            assert_eq!(segment.sole_strategy_writer(&plan), wanted, "{technique}: {what}");
            assert!(segment.is_writable_by_isolated() || wanted.is_none(), "{technique}: {what}");
        }
    }
    let together = Plan {
        isolation: crate::plan::Isolation::Thread.into(),
        ..plan(Technique::default(), Placement::Engine)
    };
    let together = together.arranged();
    assert!(segments(&together).iter().all(|segment| segment.sole_strategy_writer(&together).is_none()));
}
