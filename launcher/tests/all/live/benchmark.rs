//! `launcher benchmark`: requests of runs on stdin, and replies on stdout.

use crate::common::{CommandResult, Running, assert_nothing_left, command};
use protocol::benchmark::LATENCIES;
use protocol::labels::ConsumerCounter;
use protocol::plan::{EndWaiting, Isolation, Plan, QueueWork, Role, Technique, Workload};
use protocol::status::{self, LOG_OFFSET};
use record::benchmark::{
    BenchmarkReply, BenchmarkRequest, FailureKind, Interruption, RunRequest, read_line, read_words,
    write_line,
};
use record::run::RunOutcome;
use std::io::{BufReader, Write};
use std::path::Path;
use std::process::Stdio;

const EVENTS: u64 = 300;

/// Returns a request of a run of a queue with one producer and one consumer.
fn request(out: &Path, capacity: u32) -> BenchmarkRequest {
    let work = QueueWork {
        capacity,
        events: vec![EVENTS],
        consumers: 1,
        producer_cost: None,
        consumer_cost: None,
        jitter: 0.0,
        waiting: EndWaiting::Park,
        slack_ns: 1,
        seed: 1,
    };
    let technique = Technique::from_name("array-queue").unwrap();
    let plan = Plan::for_benchmark(Workload::Queue(work), technique, Isolation::Process, &[]);
    let request = RunRequest { plan, out: out.to_owned(), interruption: Interruption::Discard };
    BenchmarkRequest::Run(Box::new(request))
}

/// Starts the command, writes all of its input, and waits for its end.
fn result_for(input: &[u8]) -> CommandResult {
    let mut running = Running::spawn(command("benchmark").stdin(Stdio::piped()));
    running.child.stdin.take().unwrap().write_all(input).unwrap();
    running.end()
}

#[test]
fn invalid_request_is_a_usage_error() {
    for input in [&b"garbage\n"[..], b"{}\n", b"\n", b"\xff\xfe\n", b"{\"run\":{\"plan\":7}}\n", b"[[[[[["] {
        let result = result_for(input).fails(2, &["error: benchmark: no request of this build"]);
        assert_eq!(result.stdout, "");
    }
    assert_eq!(result_for(b"").succeeds(), "");
}

#[test]
fn one_process_makes_runs_one_after_the_other() {
    let out = tempfile::tempdir().unwrap();
    let mut child =
        command("benchmark").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let pid = child.id();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut runs = Vec::new();
    // The second is refused: no ring has three slots. The next one is made.
    for capacity in [64, 3, 64] {
        write_line(&mut input, &request(out.path(), capacity)).unwrap();
        match read_line(&mut output).unwrap().expect("a reply") {
            BenchmarkReply::Failed(failed) => {
                assert_eq!((capacity, failed.kind), (3, FailureKind::Other));
                assert!(failed.causes[0].contains("no power of two"), "{failed:?}");
            }
            BenchmarkReply::Run(reply) => {
                assert_eq!((capacity, &reply.outcome), (64, &RunOutcome::Complete), "{reply:?}");
                assert_eq!(reply.result_words, [None, Some(LATENCIES + EVENTS as usize)]);
                assert!(reply.start_ticks > Some(0) && reply.clock.ns_per_tick > 0.0);
                read_words(&mut output, LOG_OFFSET).unwrap();
                let consumer = read_words(&mut output, LOG_OFFSET).unwrap();
                let role = Role::Consumer(0);
                let counters = status::counters_of(&consumer, &[role], role);
                assert_eq!(counters.get(ConsumerCounter::Taken), EVENTS);
                read_words(&mut output, reply.result_words[1].unwrap()).unwrap();
                assert_eq!(reply.plan.launcher_pid, pid);
                runs.push(reply.plan.run);
            }
            BenchmarkReply::HasContainers => panic!("a reply to another request"),
        }
    }
    assert!(runs.len() == 2 && runs[0] != runs[1], "{runs:?}");
    drop(input);
    assert!(child.wait().unwrap().success());
    assert_nothing_left(pid);
}
