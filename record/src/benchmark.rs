//! Runs of a benchmark that one process makes for another: their requests and replies.
//!
//! `launcher benchmark` makes the runs that are requested on its stdin, one after the other, and
//! replies to each on its stdout. A message is a line of JSON, and words after it:
//!
//! ```text
//! request  │ BenchmarkRequest │ due times of a board's writes │
//! reply    │ BenchmarkReply   │ each thread's status and counters, and its results │ board │
//! ```
//!
//! Words are little-endian. The plan and the reply say how many there are.

use crate::run::{RoleRestart, RunOutcome};
use protocol::plan::{ClockSource, Plan, Workload};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shm::memory::{ReadOnlyWords, Region};
use shm::sync::Ordering;
use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;

/// Words that are copied at a time.
const CHUNK_WORDS: usize = 8192;
const WORD_BYTES: usize = size_of::<u64>();

/// The effect of the first termination signal on a benchmark run: it drains its open orders, or it
/// is discarded. A second signal always ends the run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interruption {
    /// No more orders are sent, the open ones are waited for, and the run is evaluated.
    Drain,
    /// The run ends at once and is discarded: an experiment repeats what was interrupted.
    Discard,
}

impl Interruption {
    /// Returns how many termination signals end a benchmark run at once: two if the first one
    /// drains it, else one.
    pub const fn max_signals(self) -> usize {
        match self {
            Self::Drain => 2,
            Self::Discard => 1,
        }
    }
}

/// A request to the process that makes runs of a benchmark: check that containers can be used, or
/// make a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchmarkRequest {
    /// Check that ends of a benchmark can be isolated in containers.
    CheckContainers {
        /// A kernel that lacks some feature is accepted.
        weaker_sandbox: bool,
    },
    /// Make a run of the benchmark. The due times of its writes follow, if it has any
    /// ([`write_time_count`]).
    Run(Box<RunRequest>),
}

/// A request for one benchmark run: its plan (the run's identity is not set yet), its output
/// folder, and the effect of a termination signal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    /// Plan of the requested run.
    pub plan: Plan,
    /// Folder in which the folder of the run is created.
    pub out: PathBuf,
    /// Effect of a termination signal on the run.
    pub interruption: Interruption,
}

/// The reply to a [`BenchmarkRequest`]: containers can be started, the run was made, or a failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchmarkReply {
    /// Containers can be started on this machine.
    HasContainers,
    /// The requested run was made. The words of its memory follow.
    Run(Box<RunReply>),
    /// The request was not fulfilled.
    Failed(BenchmarkFailure),
}

/// The reply of `launcher benchmark` after a run: its plan, its outcome, and how many 64-bit result
/// words follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReply {
    /// Plan of the run that was made, with its identity.
    pub plan: Plan,
    /// Outcome of the run.
    pub outcome: RunOutcome,
    /// Tick at which the loops started; `None` if an end was never ready. No words follow then.
    pub start_ticks: Option<u64>,
    /// Deaths that the run survived.
    pub deaths: Vec<RoleRestart>,
    /// Clock of the runs of this process.
    pub clock: RunClock,
    /// Number of result words of each thread, in the order of the plan; `None` for a thread without
    /// any. Its status and counters are [`protocol::status::LOG_OFFSET`] words before them.
    pub result_words: Vec<Option<usize>>,
    /// Number of words of the board of a board benchmark.
    pub board_words: Option<usize>,
}

/// The clock of a process that makes benchmark runs: its source, nanoseconds per tick, and the cost
/// of a read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunClock {
    /// Source of the clock's ticks.
    pub source: ClockSource,
    /// Cost of one read of the clock, in nanoseconds.
    pub read_ns: f64,
    /// Nanoseconds per tick, measured from the first run of the process until after this one.
    pub ns_per_tick: f64,
}

/// The reason why a requested benchmark run was not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchmarkFailure {
    /// Kind of the failure, which decides the exit code.
    pub kind: FailureKind,
    /// Error and its causes, as they are printed.
    pub causes: Vec<String>,
}

/// The kind of a benchmark's failure, which decides the exit code: impossible settings, an
/// interruption, or any other failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The settings are not possible here: exit code 2.
    Usage,
    /// A termination signal came before anything was measured.
    Interrupted,
    /// Any other failure: exit code 1.
    Other,
}

/// Returns how many due times of board writes follow the request of a run in the pipe: 0 without a
/// board.
pub fn write_time_count(plan: &Plan) -> usize {
    match &plan.workload {
        Workload::Board(work) => work.scheduled.unwrap_or(0) as usize,
        Workload::Trading(_) | Workload::Queue(_) => 0,
    }
}

/// Writes a benchmark's request or reply as one line of JSON.
pub fn write_line(output: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *output, message)?;
    output.write_all(b"\n")
}

/// Reads a benchmark's request or reply from one line of JSON; `None` at the end of the input.
///
/// # Errors
/// `InvalidData`: the line is not such a message.
pub fn read_line<T: DeserializeOwned>(input: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    if input.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    serde_json::from_slice(&line).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Writes 64-bit words that follow a request or a reply in a pipe.
pub fn write_words(output: &mut impl Write, words: impl ExactSizeIterator<Item = u64>) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(words.len().min(CHUNK_WORDS) * WORD_BYTES);
    for word in words {
        bytes.extend_from_slice(&word.to_le_bytes());
        if bytes.len() == CHUNK_WORDS * WORD_BYTES {
            output.write_all(&bytes)?;
            bytes.clear();
        }
    }
    output.write_all(&bytes)
}

/// Iterates over the 64-bit words of a memory segment in order, to be written with [`write_words`].
pub fn words_of(memory: &ReadOnlyWords) -> impl ExactSizeIterator<Item = u64> {
    // Relaxed: the processes that wrote them have ended.
    (0..memory.len()).map(|index| memory.load(index, Ordering::Relaxed))
}

/// Reads the `count` 64-bit words that follow a message in a pipe.
pub fn read_words(input: &mut impl Read, count: usize) -> io::Result<ReadOnlyWords> {
    let words = Region::heap(count).words();
    let mut bytes = vec![0; count.min(CHUNK_WORDS) * WORD_BYTES];
    for chunk in words.chunks(CHUNK_WORDS) {
        let bytes = &mut bytes[..chunk.len() * WORD_BYTES];
        input.read_exact(bytes)?;
        for (word, bytes) in chunk.iter().zip(bytes.as_chunks().0) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
    }
    Ok(words.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::plan::{BoardWork, EndWaiting, Isolation, QueueWork, ReaderWaiting, Technique};

    fn plans() -> [Plan; 2] {
        let queue = QueueWork {
            capacity: 64,
            events: vec![3, u64::MAX],
            consumers: 1,
            producer_cost: None,
            consumer_cost: None,
            jitter: 0.1,
            waiting: EndWaiting::Sleep(50_000),
            slack_ns: 1,
            seed: u64::MAX,
        };
        let board = BoardWork {
            readers: 2,
            waiting: ReaderWaiting::Spin,
            cells: 1,
            words: 8,
            scheduled: Some(7),
            duration_ns: 1 << 40,
            folder: Some("/tmp/a b".into()),
            decide_every_ns: Some(1_000_000),
        };
        [Workload::Queue(queue), Workload::Board(board)].map(|workload| Plan {
            ns_per_tick: 0.1 + 0.2,
            ..Plan::for_benchmark(workload, Technique::default(), Isolation::Process, &[Some(1), None])
        })
    }

    #[test]
    fn requests_and_words_round_trip() {
        for (plan, times) in plans().into_iter().zip([0, 7]) {
            assert_eq!(write_time_count(&plan), times);
            let request = RunRequest { plan, out: "a\nb".into(), interruption: Interruption::Drain };
            let request = BenchmarkRequest::Run(Box::new(request));
            let sent: Vec<u64> = (0..CHUNK_WORDS as u64 + 7).map(|word| word << 40).collect();
            let mut bytes = Vec::new();
            write_line(&mut bytes, &request).unwrap();
            write_words(&mut bytes, sent.iter().copied()).unwrap();
            write_line(&mut bytes, &request).unwrap();
            let mut input = bytes.as_slice();
            assert_eq!(read_line(&mut input).unwrap().as_ref(), Some(&request));
            let read = read_words(&mut input, sent.len()).unwrap();
            assert!(words_of(&read).eq(sent));
            assert_eq!(read_line(&mut input).unwrap(), Some(request));
            assert_eq!(read_line::<BenchmarkRequest>(&mut input).unwrap(), None);
        }
    }

    #[test]
    fn damaged_messages_are_errors() {
        for line in [&b"\n"[..], b"{}", b"\xff\n", b"{\"run\":{\"plan\":1}}\n", b"[[[["] {
            let error = read_line::<BenchmarkRequest>(&mut { line }).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{line:?}");
        }
        let error = read_words(&mut [0; 15].as_slice(), 2).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
