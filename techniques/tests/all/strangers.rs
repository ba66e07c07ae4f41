//! Foreign processes at the socket of `unix-seqpacket`: they can neither impersonate a producer nor
//! receive a producer's orders.

use crate::common::{Run, test_child};
use protocol::control::ControlWriter;
use protocol::segments;
use shm::ring::{Consumer, Link, MESSAGE_WORDS, Message, PeerFault, Producer};
use std::io::{Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use techniques::Technique;
use techniques::named::seqpacket;
use techniques::unix_seqpacket::UnixSeqpacket;

/// The environment variable with the foreign process's action: `connect NAME` or `listen NAME`.
const ACTION: &str = "BULKHEAD_STRANGER";
const LIMIT: Duration = Duration::from_secs(60);

/// The foreign process: prints a line after its action, and waits for its end.
#[test]
#[ignore = "started by other tests as a process of its own"]
fn stranger_process() {
    let Ok(argument) = std::env::var(ACTION) else { return };
    let (action, name) = argument.split_once(' ').unwrap();
    let mut streams: Vec<Box<dyn std::any::Any>> = Vec::new();
    if action == "listen" {
        streams.push(Box::new(seqpacket::listen(name).unwrap()));
    } else {
        for index in 0..3_u64 {
            let mut stream = seqpacket::connect(name, LIMIT).unwrap();
            let _ = stream.write(&index.to_le_bytes());
            let _ = stream.write(&[0xEE; 8 * MESSAGE_WORDS]);
            streams.push(Box::new(stream));
        }
    }
    eprintln!("done");
    // Until its starter closes the pipe or ends.
    let _ = std::io::stdin().read(&mut [0]);
}

struct Stranger(Child);

impl Stranger {
    fn start(action: &str, name: &str) -> Self {
        let child = test_child("strangers::stranger_process")
            .env(ACTION, format!("{action} {name}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stranger = Self(child);
        let mut line = [0; 4];
        stranger.0.stderr.as_mut().unwrap().read_exact(&mut line).unwrap();
        assert_eq!(&line, b"done");
        stranger
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes a run whose processes all have this one's id.
fn run(producers: u16) -> (Run, ControlWriter) {
    let run = Run::new(Technique::from_link::<UnixSeqpacket>(), producers, 4);
    let launching = segments::create_control(run.plan(), &[]).unwrap();
    (0..=producers.into()).for_each(|process| launching.record_start(process, std::process::id()));
    (run, launching)
}

fn message(n: u64) -> Message {
    [n; MESSAGE_WORDS]
}

type ReportedFaults = Vec<(Option<usize>, PeerFault)>;

/// Returns the next message, and the faults until then.
fn next(consumer: &mut impl Consumer) -> (Option<usize>, Message, ReportedFaults) {
    let (mut faults, started) = (Vec::new(), Instant::now());
    loop {
        let popped = consumer.try_pop();
        faults.extend(consumer.take_fault());
        if let Some((from, got)) = popped {
            return (from, got, faults);
        }
        assert!(started.elapsed() < LIMIT, "nothing was received: {faults:?}");
    }
}

#[test]
fn process_without_producer_role_is_refused() {
    let (run, launching) = run(2);
    let mut attached = segments::attach_with(run.plan(), None, &launching.control());
    let link = run.link();
    let mut consumer = attached.consumer::<UnixSeqpacket>(&link).unwrap();
    // It connects first, and claims every index.
    let stranger = Stranger::start("connect", &run.plan().segment_name("submit"));
    let mut producers: Vec<_> =
        (0..2).map(|index| attached.producer::<UnixSeqpacket>(&link, index).unwrap()).collect();
    let pid = stranger.0.id();
    let mut faults_found = Vec::new();
    for round in 0..4 {
        for (index, producer) in producers.iter_mut().enumerate() {
            producer.try_push(&message(round)).expect("its connection is open");
            let (from, got, faults) = next(&mut consumer);
            assert_eq!((from, got), (Some(index), message(round)));
            faults_found.extend(faults);
        }
    }
    assert!(
        !faults_found.is_empty()
            && faults_found.iter().all(|fault| *fault == (None, PeerFault::Stranger { pid: pid.into() })),
        "{faults_found:?}"
    );
}

/// Each incarnation is another process: the earlier one has no index any more, and no process has
/// one while none is started.
#[test]
fn producer_index_belongs_to_last_started_process() {
    let (run, launching) = run(2);
    let mut attached = segments::attach_with(run.plan(), None, &launching.control());
    let link = run.link();
    let mut consumer = attached.consumer::<UnixSeqpacket>(&link).unwrap();
    let mut first = attached.producer::<UnixSeqpacket>(&link, 0).unwrap();
    first.try_push(&message(1)).unwrap();
    assert_eq!(next(&mut consumer), (Some(0), message(1), vec![]));
    drop(first);
    while !consumer.retire(0) {}
    launching.record_end(0);
    consumer.renew(0);
    // The connection is from a process that is still producer 1.
    let connect_as = |index: u64| {
        let mut stream = seqpacket::connect(&run.plan().segment_name("submit"), LIMIT).unwrap();
        let _ = stream.write(&index.to_le_bytes());
        let _ = stream.write(message(9).map(u64::to_le_bytes).as_flattened());
        stream
    };
    let _early = connect_as(0);
    assert_eq!(consumer.try_pop(), None);
    let fault = consumer.take_fault();
    assert_eq!(fault, Some((Some(1), PeerFault::InvalidIndex { index: 0 })));
    launching.record_start(0, std::process::id());
    let mut second = attached.producer::<UnixSeqpacket>(&link, 0).unwrap();
    second.try_push(&message(2)).unwrap();
    assert_eq!(next(&mut consumer), (Some(0), message(2), vec![]));
}

#[test]
fn producer_refuses_foreign_listener() {
    let (run, launching) = run(1);
    let name = run.plan().segment_name("submit");
    let stranger = Stranger::start("listen", &name);
    let mut attached = segments::attach_with(run.plan(), None, &launching.control());
    let Err(error) = UnixSeqpacket::producer(&run.link(), 0, &mut attached) else {
        panic!("the foreign listener was accepted")
    };
    let error = error.to_string();
    assert!(error.contains(&format!("process {} listens there", stranger.0.id())), "{error}");
}
