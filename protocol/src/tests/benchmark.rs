//! Plans of benchmarks: what is valid, who may map what, and what is isolated.

use crate::benchmark::{BOARD_SEGMENT, WRITE_TIMES_SEGMENT, results_segment};
use crate::codec;
use crate::plan::{
    BoardWork, EndWaiting, EventCost, Isolation, Plan, QueueWork, ReaderWaiting, Role, Technique, Workload,
};
use crate::topology::{self, SegmentPurpose, segments};
use shm::attached::Access;

fn queue(producers: usize, consumers: u16) -> Workload {
    Workload::Queue(QueueWork {
        capacity: 64,
        events: vec![10; producers],
        consumers,
        producer_cost: None,
        consumer_cost: Some(EventCost::Sleep(5)),
        jitter: 0.5,
        waiting: EndWaiting::Park,
        slack_ns: 1,
        seed: 1,
    })
}

fn board(readers: u16) -> Workload {
    Workload::Board(BoardWork {
        readers,
        waiting: ReaderWaiting::Spin,
        cells: 2,
        words: 3,
        scheduled: Some(7),
        duration_ns: 1_000,
        folder: None,
        decide_every_ns: None,
    })
}

fn plan(workload: Workload, isolation: Isolation) -> Plan {
    Plan::for_benchmark(workload, Technique::default(), isolation, &[Some(3)])
}

#[test]
fn board_in_a_folder_is_handed_over_at_every_level() {
    let mut plan = plan(board(2), Isolation::Process);
    let named = |plan: &Plan| segments(plan).into_iter().filter(|one| !one.is_sealed(plan)).count();
    let all = named(&plan);
    let Workload::Board(work) = &mut plan.workload else { unreachable!() };
    work.folder = Some("/var/tmp".into());
    assert_eq!(named(&plan), all - 1, "only the board has no name");
    let board = segments(&plan).into_iter().find(|one| one.purpose == SegmentPurpose::Board).unwrap();
    assert_eq!(board.folder(&plan), Some("/var/tmp".as_ref()));
    let read: Plan = codec::decode(&codec::encode(&plan).unwrap()).unwrap();
    assert_eq!(read, plan);
}

#[test]
fn only_exact_queues_have_any_capacity() {
    let plan_of = |name: &str| {
        let Workload::Queue(work) = queue(1, 1) else { unreachable!() };
        let workload = Workload::Queue(QueueWork { capacity: 1_000, ..work });
        Plan::for_benchmark(workload, Technique::from_name(name).unwrap(), Isolation::Thread, &[None])
    };
    assert_eq!(plan_of("crossbeam-array-queue").validate(), Ok(()));
    let refused = plan_of("array-queue").validate().unwrap_err().to_string();
    assert!(refused.contains("power of two"), "{refused}");
}

#[test]
fn benchmark_plan_is_valid_and_trades_nothing() {
    for workload in [queue(2, 2), queue(1, 0), board(2), board(0)] {
        for isolation in Isolation::ALL.iter().copied() {
            let plan = plan(workload.clone(), isolation);
            assert_eq!(plan.validate(), Ok(()));
            let read: Plan = codec::decode(&codec::encode(&plan).unwrap()).unwrap();
            assert_eq!(read, plan);
            let json = serde_json::to_value(&plan).unwrap();
            assert_eq!(serde_json::from_value::<Plan>(json).unwrap(), plan);
            assert_eq!((plan.trading().strategies, plan.trading().total_orders()), (0, 0));
            assert!(!plan.is_trading() && !plan.engine_is_restartable() && !plan.can_lose_gateways());
            assert_eq!(
                (plan.threads[0].core, plan.processes.len() == 1),
                (Some(3), isolation.is_thread() || plan.threads.len() == 1)
            );
        }
    }
}

#[test]
fn rights_of_benchmark_ends_are_the_smallest() {
    let plan = plan(board(2), Isolation::Process);
    let right = |process: usize, name: &str| {
        topology::rights(&plan, &plan.processes[process]).find(|(what, _)| what == name).map(|(_, it)| it)
    };
    assert_eq!(
        [0, 1, 2].map(|index| right(index, BOARD_SEGMENT)),
        [Some(Access::Write), Some(Access::Read), Some(Access::Read)]
    );
    assert_eq!([0, 1].map(|index| right(index, WRITE_TIMES_SEGMENT)), [Some(Access::Read); 2]);
    let results = results_segment(Role::Reader(0));
    assert_eq!([0, 1, 2].map(|index| right(index, &results)), [None, Some(Access::Write), None]);
    let plan = self::plan(queue(2, 2), Isolation::Process);
    let others = segments(&plan)
        .into_iter()
        .filter(|segment| matches!(segment.purpose, SegmentPurpose::Repairs | SegmentPurpose::Commands));
    assert_eq!(others.count(), 0, "a benchmark has no engine");
}

#[test]
fn consumer_of_kernel_queue_is_not_isolated() {
    let isolated = |name: &str, isolation| {
        let technique = Technique::from_name(name).unwrap();
        let plan = Plan::for_benchmark(queue(1, 1), technique, isolation, &[]);
        let by = |process| plan.sandbox_of(process).is_some() || plan.is_contained(process);
        plan.processes.iter().map(by).collect::<Vec<_>>()
    };
    for isolation in [Isolation::Sandbox, Isolation::Container] {
        assert_eq!(isolated("pipe", isolation), [true, false]);
        assert_eq!(isolated("linked", isolation), [true, true]);
    }
}

#[test]
fn each_inconsistency_of_a_benchmark_is_named() {
    let broken = |workload: Workload, change: fn(&mut Plan)| {
        let mut plan = plan(workload, Isolation::Process);
        change(&mut plan);
        plan.validate().unwrap_err().to_string()
    };
    assert!(broken(queue(1, 1), |plan| plan.links.clear()).contains("has its queue"));
    assert!(broken(queue(1, 1), |plan| plan.links[0].slots = 8).contains("has its queue"));
    assert!(broken(queue(0, 0), |_| ()).contains("1 to 64 producers"));
    assert!(broken(queue(65, 1), |_| ()).contains("1 to 64 producers"));
    assert!(broken(queue(1, 65), |_| ()).contains("64 consumers"));
    assert!(broken(board(257), |_| ()).contains("256 readers"));
    let swap = |plan: &mut Plan| plan.threads.swap(0, 1);
    assert!(broken(board(1), swap).contains("a thread for each end"));
    assert!(broken(queue(1, 1), swap).contains("a thread for each end"));
}
