//! One document of each kind with something in every key, so that its golden file shows them all.

use crate::html::fixtures::evaluated;
use crate::runs::deaths::{T1_OF_20, killed};
use crate::runs::fixture::Fixture;
use crate::runs::killing::Death;
use analysis::document::Document;
use analysis::experiment::{
    Axis, AxisRecord, Bill, BillRow, BoardCase, BoardCurve, BoardDeath, BoardReader, BoardReading,
    BoardSlice, BoardUsage, BoardWarnings, BoardWriter, Boards, Comparison, Comparisons, Contained,
    Containment, Containments, Cost, Lab, LabCell, LabLatency, LabRun, Reference, RoleContainment, RunEntry,
    Search, SearchRecord, SearchStep, SideCost, SleepSample, Speed, SweepPlan, SweepPoint, SweepRecord,
    SweepState, VenueContainment, Wait,
};
use analysis::kernel::{CoreAccount, KernelAccount, Throttled, WakeUps};
use analysis::merge::{Losses, Violation, ViolationKind};
use analysis::record::{OpenOrders, ProcessUsage, RunRecord};
use analysis::stats::{
    ComparisonLine, Difference, Estimate, HostDifference, Method, Outline, Percentile, Placed, Verdict,
    fixtures,
};
use analysis::summary::{Distribution, StrategySummary, StrategyTail, Summary, VenueIncident};
use analysis::tail::{Causes, Tail};
use analysis::timeline::Timeline;
use launcher::host::Machine;
use protocol::plan::{FaultKind, Isolation, Journalling, Technique};
use protocol::supervision::Misconduct;

fn machine() -> Machine {
    Machine {
        hostname: "host".into(),
        cpu_model: "a processor".into(),
        hypervisor: Some("a hypervisor".into()),
        cores_online: 4,
        cores_allowed: vec![0, 1, 2],
        smt_siblings: vec![vec![0, 1]],
        llc_groups: vec![vec![0, 1, 2]],
        numa_nodes: vec![vec![0, 1, 2]],
        isolated: vec![3],
        nohz_full: vec![3],
        governor: Some("performance".into()),
        clocksource: "tsc".into(),
        tsc_invariant: true,
        kernel: "6.1.0".into(),
        memory_bytes: 1 << 34,
        shm_free_bytes: 1 << 33,
        shm_total_bytes: 1 << 33,
    }
}

/// A run in which one strategy was killed and another quarantined.
fn fixture() -> Fixture {
    let mut fixture = killed(&[
        Death { restart: Some(2_000), ..Death::of(1, T1_OF_20 + 50) },
        Death { quarantined: Some(Misconduct::BadCursor), ..Death::of(2, T1_OF_20 + 90) },
    ]);
    let record = &mut fixture.record;
    record.machine = machine();
    record.input.file = Some("flow.csv".into());
    record.input.delay = "uniform:5ms..500ms".into();
    record.input.window_ns = 1_000_000;
    record.strikes = vec![Some(2), None];
    record.open_orders = Some(OpenOrders { samples: 12, order_ticks: 34.5, variance: 6.25 });
    record.warnings = vec!["a warning".into()];
    record.pss_bytes = Some(31 << 20);
    let core = CoreAccount {
        core: 1,
        steal_ns: Some(20_000_000),
        irq_ns: Some(0),
        softirq_ns: Some(0),
        run_delay_ns: Some(1_234),
        interrupts: Some(250),
        most: vec![("Local timer interrupts".into(), 250)],
    };
    record.kernel = Some(KernelAccount {
        cores: vec![core],
        throttled: Some(Throttled { times: 1, ns: 5_000_000 }),
        absent: vec!["something".into()],
        launcher: Some(WakeUps { times: 17, ns: 5_000_000_000 }),
    });
    fixture
}

fn usage() -> ProcessUsage {
    ProcessUsage {
        startup_ns: Some(12_000_000),
        startup_cpu_ns: Some(3_000_000),
        cpu_ns: Some(90_000_000),
        peak_bytes: Some(9 << 20),
        shared_bytes: Some(2 << 20),
    }
}

pub fn run() -> RunRecord {
    let mut record = fixture().record;
    record.exits[0].usage = Some(usage());
    record
}

/// The summary, the timeline and the tail of that run.
pub fn evaluation() -> (Summary, Timeline, Tail) {
    let (folder, mut summary) = evaluated(&fixture());
    let violation = Violation { kind: ViolationKind::Checksum, count: 1, first: "an example".into() };
    summary.violations = vec![violation];
    let mut tail = Tail::read(folder.path()).unwrap();
    let own = StrategyTail {
        strategy: 1,
        explained: 900,
        touched: 7,
        orders: 9,
        causes_ns: Causes([1, 2, 3, 4, 5, 6, 7]),
    };
    tail.strategies = vec![own.clone()];
    summary.strategies = vec![StrategySummary {
        strategy: 1,
        kind: "exec:./mine".into(),
        sent: 1_000,
        rt_venue: summary.rt_venue,
        gaps: 3,
        longest_gap_ns: 4_000,
        usage: Some(usage()),
        tail: Some(own),
        ..StrategySummary::default()
    }];
    (summary, Timeline::read(folder.path()).unwrap(), tail)
}

fn outline() -> Outline {
    Outline { work_done_ns: Some(512.5), pss_bytes: Some(1 << 20), ..fixtures::run(1, 640.0) }
}

pub fn sweep() -> SweepRecord {
    let texts = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect();
    let step = SearchStep {
        rate_per_s: 20_000.0,
        achieved_per_s: Some(19_990.5),
        p999_ns: Some(81_000),
        held: true,
        runs_held: 1,
        why: "not because of anything".into(),
        folders: vec!["run-1".into()],
    };
    SweepRecord {
        version: "0.1.0".into(),
        started: "2026-11-20T06:15:02Z".into(),
        kind: "sweep".into(),
        preset: Some("work".into()),
        state: SweepState::Interrupted,
        launcher: (4_000, 1_234),
        machine: machine(),
        base: texts(&[("venues", "2")]),
        axes: vec![AxisRecord { axis: Axis::Work, values: vec!["0ns".into(), "500ns".into()] }],
        repeats: 1,
        seed: 7,
        keep_logs: true,
        weaker_sandbox: false,
        start_timeout_ns: 10_000_000_000,
        notes: vec!["a note".into()],
        points: vec![SweepPoint {
            name: "work=500ns".into(),
            values: [(Axis::Work, "500ns".into())].into(),
            settings: texts(&[("venues", "2"), ("work", "500ns")]),
            runs: vec![RunEntry { repeat: 0, seed: 7, folder: "run-1".into(), outline: outline() }],
        }],
        search: Some(SearchRecord {
            bound_ns: 100_000,
            most_steps: 12,
            first_per_s: 10_000.0,
            points: vec![Search {
                steps: vec![step],
                highest_per_s: Some(20_000.0),
                ended: "the next rate was not held".into(),
            }],
        }),
        keeps_failures: false,
    }
}

/// A plan of one run.
pub fn plan() -> SweepPlan {
    let mut sweep = sweep();
    (sweep.search, sweep.repeats) = (None, 1);
    sweep.points.iter_mut().for_each(|point| point.runs.clear());
    SweepPlan { sweep }
}

fn line() -> ComparisonLine {
    ComparisonLine {
        measure: "rt_venue".into(),
        percentile: Percentile::P999,
        a_ns: Some(640.0),
        b_ns: Some(660.5),
        taken_out: None,
        difference: Some(Difference {
            pairs: 10,
            method: Method::PairFlips,
            ratio: Estimate { value: 1.03, low: 1.01, high: 1.05 },
            difference: Estimate { value: 20.0, low: 10.0, high: 30.0 },
        }),
        hosts: vec![HostDifference { host: "host".into(), pairs: 4, difference: None }],
        verdict: Verdict::Slower,
        why: vec!["a reason".into()],
    }
}

pub fn bill() -> Bill {
    Bill {
        rows: vec![BillRow {
            isolation: Isolation::Process,
            technique: Technique::default(),
            variant: "stamps ends".into(),
            runs: 10,
            p50_ns: Some(640.0),
            p99_ns: Some(1_280.0),
            p999_ns: Some(9_000.0),
            stall_free_p99_ns: Some(700.5),
            stall_free_p999_ns: None,
            taken_out: Some(0.125),
            reference: Some(Reference { isolation: Isolation::Thread, technique: Technique::default() }),
            differences: vec![line()],
            adds: Vec::new(),
            caveats: vec!["a caveat".into()],
            cpu_s_per_million: Some(52.1),
            startup_ns: Some(21e6),
            pss_bytes: Some(31e6),
            page_faults: Some(120.0),
            context_switches: Some(3.0),
            contains: Some("11 of 12, 1 late".into()),
        }],
        notes: vec!["a note".into()],
    }
}

pub fn compare() -> Comparisons {
    let placed = Placed {
        host: "host".into(),
        floor_ns: Some(45.0),
        a: 4,
        b: 5,
        a_ns: Some(240.0),
        b_ns: Some(250.0),
    };
    Comparisons {
        comparisons: vec![Comparison {
            a: "isolation=thread".into(),
            b: "isolation=process".into(),
            pairs: 10,
            caveats: vec!["a caveat".into()],
            placed: vec![placed],
            lines: vec![line()],
        }],
        notes: vec!["a note".into()],
    }
}

pub fn contain() -> Containments {
    Containments {
        machine: "a processor".into(),
        rows: vec![Containment {
            isolation: Isolation::Process,
            technique: Technique::default(),
            fault: "kill in a push".into(),
            contained: Contained::Waited,
            seen: "signal 9 (SIGKILL)".into(),
            losses: Losses { lost: 1, cancelled: 2, orphaned: 3 },
            lost_of_others: 0,
            detect_ns: Some(1_000),
            repair_ns: Some(2_000),
            restart_ns: Some(3_000),
            before_p999_ns: Some(9_000),
            before_max_ns: Some(90_000),
            during_p999_ns: Some(8_000),
            during_max_ns: Some(80_000),
            folder: "run-1".into(),
        }],
        venues: vec![VenueContainment {
            isolation: Isolation::Process,
            technique: Technique::default(),
            contained: Contained::Yes,
            incident: VenueIncident {
                venue: 1,
                fault: FaultKind::Mute,
                from_ns: 400_000_000,
                until_ns: Some(800_000_000),
                orders: 2_000,
                usual_ns: 20_000_000,
                stuck: 1_900,
                longest_ns: Some(300_000_000),
                recover_ns: Some(290_000_000),
                refused: 0,
                errors: 0,
                closed: 1_900,
                others_before: Distribution::default(),
                others_during: Distribution::default(),
            },
            lost: 0,
            folder: "run-2".into(),
        }],
        roles: vec![RoleContainment {
            isolation: Isolation::Process,
            technique: Technique::default(),
            role: "exchange-0".into(),
            fault: FaultKind::Kill,
            journal: Journalling::Process,
            contained: Contained::Yes,
            seen: "signal 9 (SIGKILL)".into(),
            lost: 0,
            in_flight: 40,
            detect_ns: Some(1_000_000),
            recover_ns: Some(20_000_000),
            served_ns: Some(22_000_000),
            longest_ns: Some(45_000_000),
            folder: "run-3".into(),
        }],
        cost: Some(Cost { bare_ns: 10.5, protected_ns: 11.5, ratio: 1.095, ratio_middle: None }),
        notes: vec!["a note".into()],
    }
}

/// A lab of two ways of waiting, two runs of each.
pub fn lab() -> Lab {
    let side = |cpu_ns| SideCost { cpu_ns, voluntary: 3, involuntary: 2, looks: 40, wakes: 5 };
    let run = |number: u32, problems: &[&str]| LabRun {
        number,
        run_ns: 52_000_000 + u64::from(number),
        taken: 10_000,
        latency: Some(LabLatency {
            mean_ns: 250.5,
            p50_ns: Some(240),
            p90_ns: Some(300),
            p99_ns: Some(900),
            p999_ns: Some(4_000),
            max_ns: 9_000,
        }),
        producer: side(50_000_000),
        consumer: side(8_000_000),
        shares: vec![0.5, 0.5],
        longest_wait_ns: vec![1_000, 2_000],
        problems: problems.iter().map(|text| (*text).to_owned()).collect(),
    };
    let cell = |wait| {
        let mut cell = LabCell {
            technique: Technique::from_name("array-queue").unwrap(),
            isolation: Isolation::Process,
            producers: 2,
            consumers: 1,
            producer: Speed::Slow,
            consumer: Speed::Fast,
            wait,
            latency: String::new(),
            made: Vec::new(),
        };
        let mut latencies = analysis::experiment::histogram();
        latencies.record_n(240, 10_000).unwrap();
        cell.add(run(0, &[]), &latencies).unwrap();
        cell.add(run(1, &["consumer-0: 1 events passed over"]), &latencies).unwrap();
        cell
    };
    Lab {
        version: "0.2.0".into(),
        started: "2026-11-20T06:15:02Z".into(),
        machine: machine(),
        events: 10_000,
        runs: 2,
        capacity_asked: 1_000,
        capacity: 1_024,
        slow: "work:5us".into(),
        jitter: 0.1,
        poll_ns: 50_000,
        slack_ns: 1,
        seed: 1,
        cores: vec![0, 1],
        weaker_sandbox: false,
        clock_read_ns: 14.5,
        sleep: Some(SleepSample { default_ns: 1_083_000, precise_ns: 1_032_000, samples: 40 }),
        notes: vec!["a note".into()],
        cells: vec![cell(Wait::Busy), cell(Wait::Park)],
    }
}

fn distribution() -> Distribution {
    Distribution {
        count: 100_000,
        min_ns: Some(20),
        p50_ns: Some(40),
        p90_ns: Some(50),
        p99_ns: Some(60),
        p999_ns: Some(900),
        p9999_ns: Some(9_000),
        max_ns: Some(90_000),
        mean_ns: Some(41.5),
    }
}

pub fn boards() -> Boards {
    let usage = BoardUsage { cpu_ns: 900, voluntary_switches: 1, involuntary_switches: 2, faults: 3 };
    let reading = BoardReading {
        reads: 90_000,
        reads_per_s: 30_000.5,
        missed: 10_000,
        unseen: 1,
        torn: 2,
        overtaken: 3,
        propagation: distribution(),
        read: distribution(),
        stale: Some(distribution()),
    };
    let reader =
        BoardReader { name: "reader-0".into(), core: Some(1), reading: reading.clone(), usage: Some(usage) };
    let slice = BoardSlice {
        begin_ns: 0,
        writes: 5,
        write_p50_ns: Some(20),
        write_p99_ns: Some(30),
        write_max_ns: Some(40),
        reads: 6,
        propagation_p50_ns: Some(50),
        propagation_p99_ns: Some(60),
        propagation_max_ns: Some(70),
    };
    Boards {
        version: "0.2.0".into(),
        started: "2026-11-20T06:15:02Z".into(),
        machine: machine(),
        interrupted: true,
        warn: BoardWarnings { writer_p99_ns: Some(50), reader_p99_ns: Some(50) },
        cases: vec![BoardCase {
            mode: "poisson:10000".into(),
            readers: 1,
            size_bytes: 64,
            cells: 1,
            slots: 4,
            isolation: Isolation::Process,
            waiting: "spin".into(),
            on: "/dev/shm".into(),
            carrier: "board".into(),
            duration_ns: 3_000_000_000,
            scheduled: Some(100_001),
            writer_core: Some(0),
            reader_cores: vec![1],
            shared: true,
            clock: "tsc".into(),
            ns_per_tick: 0.4,
            writer: BoardWriter {
                writes: 100_001,
                writes_per_s: 33_000.5,
                write: distribution(),
                from_due: Some(distribution()),
                usage: Some(usage),
            },
            all: reading,
            each: vec![reader],
            deaths: vec![BoardDeath {
                process: "board-writer".into(),
                how: "signal 9 (SIGKILL)".into(),
                at_ns: 5_000,
                succeeded: true,
            }],
            timeline: vec![slice, BoardSlice { begin_ns: 50_000_000, ..BoardSlice::default() }, slice],
            curves: vec![BoardCurve {
                measure: "write".into(),
                points: vec![(1.0, 20), (2.0, 40), (10.0, 50)],
            }],
            problems: vec!["a problem".into()],
        }],
        notes: vec!["a note".into()],
    }
}
