//! Each segment has its owner and rights, in every layout.

use super::*;
use crate::plan::{ExchangePlacement, Placement, Technique, Threading, Trading};
use std::collections::HashMap;

fn rights_of(plan: &Plan, process: &str) -> HashMap<String, Access> {
    let process = plan.processes.iter().find(|other| other.name == process).unwrap();
    rights(plan, process).collect()
}

fn plan(technique: Technique, placement: Placement) -> Plan {
    Plan { technique, placement, ..Plan::of(crate::workload::Trading::new(2, 2)) }.arranged()
}

#[test]
fn a_strategy_has_what_is_its_own_and_nothing_else() {
    let (read, write) = (Some(Access::Read), Some(Access::Write));
    for (technique, wanted) in [
        (
            Technique::default(),
            &[("submit-0", write), ("submit-0.head", read), ("submit-1", None), ("submit-1.head", None)][..],
        ),
        (
            Technique::of::<techniques::channel::Channel>(),
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
fn the_engine_reads_what_strategies_write() {
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
fn a_venues_touches_are_written_by_its_exchange_and_read_by_strategies_and_by_nobody_else() {
    let mut trading =
        Trading { exchange: ExchangePlacement::Process, market_data: true, ..Trading::new(2, 2) };
    trading.venue_kinds = vec![Trading::DELAY_VENUE.into(), Trading::BOOK.into()];
    let with = |trading| Plan::of(trading).arranged();
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
    let board = segments(&plan).into_iter().find(|segment| segment.purpose == Purpose::Market(1)).unwrap();
    assert_eq!((board.owner(), board.renewed_with), (Some(Role::Exchange(1)), None));
    let off = with(Trading { market_data: false, ..trading });
    assert!(segments(&off).iter().all(|segment| !matches!(segment.purpose, Purpose::Market(_))));
}

#[test]
fn a_gateway_of_its_own_process_sees_its_inbox_and_its_completions() {
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
fn a_process_without_roles_gets_the_plan_and_nothing_else() {
    let plan = plan(Technique::of::<shm::ring::array_queue::ArrayQueue>(), Placement::Engine);
    let nobody = ProcessPlan { name: "nobody".into(), threads: vec![] };
    assert_eq!(rights(&plan, &nobody).collect::<Vec<_>>(), [(CONTROL.to_owned(), Access::Read)]);
}

#[test]
fn own_memory_is_renewed_with_strategy_or_gateway() {
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
            let strategy = (0..2).find(|index| is_of(["submit", "return"], *index)).map(Role::Strategy);
            let gateway = (0..2).find(|index| is_of(["inbox", "completion"], *index)).map(Role::Gateway);
            let wanted = strategy.or(gateway);
            assert_eq!(segment.renewed_with, wanted, "{technique}: {}", segment.spec.name);
        }
    }
}

#[test]
fn an_owner_is_the_one_who_writes() {
    let plan =
        Plan { threading: Threading::Dedicated, ..plan(Technique::default(), Placement::Engine) }.arranged();
    let owner = |what: &str| segments(&plan).into_iter().find(|s| s.spec.name == what).unwrap().owner();
    assert_eq!(owner("submit-1"), Some(Role::Strategy(1)));
    assert_eq!(owner("submit-1.head"), Some(Role::Orchestrator));
    assert_eq!(owner("thread-gateway-0"), Some(Role::Gateway(0)));
    assert_eq!((owner("schedule-0"), owner("bell-orchestrator")), (None, Some(Role::Orchestrator)));
}

/// A segment of a run whose layout the control segment does not vouch for could be taken for
/// another build's.
#[test]
fn the_control_segment_vouches_for_every_layout() {
    let of = |kinds: &[SegmentKind]| {
        let layouts: Vec<_> = kinds.iter().map(|kind| (kind.name, kind.layout as usize)).collect();
        SegmentKind::new(1, "control", &layouts).layout
    };
    let mut kinds = vec![control::KIND];
    kinds.extend([shm::ring::spsc::KIND, shm::ring::spsc::HEAD_KIND, shm::ring::array_queue::KIND]);
    kinds.extend([techniques::linked::KIND, shm::ring::intent::KIND, bell::KIND, board::KIND, status::KIND]);
    kinds.extend([supervision::KIND, tape::KIND, DESK_KIND, ANSWERS_KIND, SPILLED_KIND]);
    kinds.extend([SCHEDULE_KIND, TURNS_KIND]);
    assert_eq!(of(&kinds), CONTROL_KIND.layout);
    let mut trading =
        Trading { exchange: ExchangePlacement::Process, market_data: true, ..Trading::new(2, 2) };
    trading.venue_kinds = vec![Trading::BOOK.into()];
    for technique in Technique::all() {
        let plan = Plan { technique, ..Plan::of(trading.clone()) }.arranged();
        for segment in segments(&plan) {
            let is_memory = matches!(segment.spec.place, SegmentPlace::Memory | SegmentPlace::Reserve);
            let kind = segment.spec.kind;
            // A reserve differs in how it is mapped.
            let is_there = kinds.iter().any(|known| known.layout == kind.layout);
            assert!(is_there || !is_memory, "{technique}: {}", segment.spec.name);
        }
    }
}

/// Whoever could write another thread's bell could take the wake-ups of all its senders away.
#[test]
fn each_bell_is_written_by_its_thread_alone() {
    for placement in Placement::ALL {
        for threading in Threading::ALL {
            let plan = Plan { threading: *threading, ..plan(Technique::default(), *placement) }.arranged();
            for segment in segments(&plan) {
                let Purpose::Bell(thread) = segment.purpose else { continue };
                let Rights::Roles(rights) = segment.rights else { panic!("everybody") };
                let writers = rights.iter().filter(|(_, access)| *access == Access::Write);
                assert!(writers.map(|(role, _)| *role).eq(plan.threads[thread].roles.iter().copied()));
            }
        }
    }
}

#[test]
fn a_culprit_is_the_strategy_that_alone_writes() {
    for technique in Technique::all() {
        let plan = plan(technique, Placement::Engine);
        for segment in segments(&plan) {
            let what = segment.spec.name.as_str();
            let of = |index: u16| {
                // In a ring that all write, the engine writes what they announce as well: it takes
                // it back.
                let all = ["submit-N", "return-N.head", "thread-strategy-N", "bell-strategy-N"];
                all.iter().any(|own| own.replace('N', &index.to_string()) == what)
            };
            let wanted = (0..2).find(|index| of(*index));
            assert_eq!(segment.culprit(&plan), wanted, "{technique}: {what}");
            assert!(segment.is_open_to_strategies() || wanted.is_none(), "{technique}: {what}");
        }
    }
    let together =
        Plan { isolation: crate::plan::Isolation::Thread, ..plan(Technique::default(), Placement::Engine) };
    let together = together.arranged();
    assert!(segments(&together).iter().all(|segment| segment.culprit(&together).is_none()));
}
