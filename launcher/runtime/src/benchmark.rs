//! `launcher benchmark`: makes the runs of a benchmark that another process requests on stdin.
//! They are ordinary runs whose roles are measured loops (`protocol::benchmark`), without a merge.

use crate::clean::{self, CleanScope};
use crate::container;
use crate::prepare::{Presentation, prepare_benchmark};
use crate::progress::Progress;
use crate::signals::Signals;
use crate::stages::{FailedAtStart, Interrupted, PreparedRun};
use anyhow::{Context, Error, Result};
use planner::config::{ReportLength, UsageError};
use planner::host::{self, Machine};
use protocol::plan::{ClockSource, Role};
use protocol::status::LOG_OFFSET;
use protocol::topology::SegmentPurpose;
use record::benchmark::{
    BenchmarkFailure, BenchmarkReply, BenchmarkRequest, FailureKind, RunClock, RunReply, RunRequest,
    read_line, read_words, words_of, write_line, write_time_count, write_words,
};
use record::run::{ClockCalibration, RunOutcome};
use shm::memory::ReadOnlyWords;
use shm::memory::header::HEADER_WORDS;
use std::io::{self, BufRead, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;
use strategy::schedule::Schedule;
use system::clock::{self, ClockPair};

/// How long the clock is calibrated at least.
const CALIBRATION: Duration = Duration::from_millis(50);
/// How long the ends may take to get ready.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs `launcher benchmark`: makes each benchmark run that is requested on stdin, and writes the
/// result to stdout.
pub fn serve() -> Result<ExitCode> {
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    clean::clean(CleanScope::KeepLogs).context("cannot look into /dev/shm")?;
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut server = BenchmarkServer { machine: host::machine(), signals, clock: None };
    while let Some(request) = read_line(&mut input).map_err(invalid_request)? {
        let (reply, memory) = match request {
            BenchmarkRequest::CheckContainers { weaker_sandbox } => {
                match container::missing(weaker_sandbox) {
                    None => (BenchmarkReply::HasContainers, Vec::new()),
                    Some(why) => {
                        (BenchmarkReply::Failed(describe_failure(&UsageError(why).into())), Vec::new())
                    }
                }
            }
            BenchmarkRequest::Run(request) => {
                let schedule = read_schedule(&mut input, &request)?;
                match server.run(*request, schedule) {
                    Ok((reply, memory)) => (BenchmarkReply::Run(Box::new(reply)), memory),
                    Err(error) => (BenchmarkReply::Failed(describe_failure(&error)), Vec::new()),
                }
            }
        };
        write_line(&mut output, &reply)?;
        for words in &memory {
            write_words(&mut output, words_of(words))?;
        }
        output.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn invalid_request(error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::InvalidData => UsageError(format!("benchmark: no request of this build: {error}")).into(),
        _ => error.into(),
    }
}

/// Reads the due times of a board's writes, which follow its request.
fn read_schedule(input: &mut impl BufRead, request: &RunRequest) -> Result<Schedule> {
    Ok(match write_time_count(&request.plan) {
        0 => Schedule::empty(),
        count => {
            let times = read_words(input, count).context("benchmark: due times are missing")?;
            Schedule::from_due_times(words_of(&times))
        }
    })
}

/// Describes an error of a request, with its causes.
fn describe_failure(error: &Error) -> BenchmarkFailure {
    let kind = if error.is::<UsageError>() {
        FailureKind::Usage
    } else if error.is::<Interrupted>() {
        FailureKind::Interrupted
    } else {
        FailureKind::Other
    };
    BenchmarkFailure { kind, causes: error.chain().map(ToString::to_string).collect() }
}

/// The best clock of a machine, calibrated since its start.
struct BenchmarkClock {
    source: ClockSource,
    read_ns: f64,
    step_ticks: f64,
    first: ClockPair,
}

impl BenchmarkClock {
    /// Chooses the machine's best clock and calibrates it.
    fn start(machine: &Machine) -> Self {
        let source = if machine.tsc_invariant { ClockSource::Tsc } else { ClockSource::Monotonic };
        let first = ClockPair::read(&source);
        std::thread::sleep(CALIBRATION);
        let (read_ns, step_ticks) = (clock::read_cost_ns(&source), clock::step_ticks(&source));
        Self { source, read_ns, step_ticks, first }
    }

    /// Returns the clock, measured from its start until now.
    fn read(&self) -> RunClock {
        let ns_per_tick = ClockPair::read(&self.source).ns_per_tick_since(&self.first);
        RunClock { source: self.source, read_ns: self.read_ns, ns_per_tick }
    }
}

/// The machine, signals and clock that all runs of this process share.
struct BenchmarkServer {
    machine: Machine,
    signals: Signals,
    /// `None` before the first run.
    clock: Option<BenchmarkClock>,
}

impl BenchmarkServer {
    /// Makes one run of a plan and saves its record. Returns its outcome, and the words of its
    /// memory in the order of the reply. A failure of one of its processes is its outcome, not an
    /// error.
    fn run(&mut self, request: RunRequest, schedule: Schedule) -> Result<(RunReply, Vec<ReadOnlyWords>)> {
        let RunRequest { mut plan, out, interruption } = request;
        if plan.is_trading() {
            return Err(UsageError("benchmark: the plan is that of a run with orders".into()).into());
        }
        let presentation = Presentation {
            quiet: true,
            report: ReportLength::Short,
            weaker_sandbox: plan.weaker_sandbox,
            start_timeout: START_TIMEOUT,
            signals: &self.signals,
            interruption,
        };
        let progress = Progress::new(false);
        let clock = self.clock.get_or_insert_with(|| BenchmarkClock::start(&self.machine));
        let RunClock { source, read_ns, ns_per_tick } = clock.read();
        plan.clock = source;
        let step_ns = clock.step_ticks * ns_per_tick;
        let calibration = ClockCalibration { ns_per_tick, read_ns, step_ns, ..ClockCalibration::default() };
        let prepared = prepare_benchmark(plan, schedule, &self.machine, calibration, clock.first)?;
        let plan = prepared.record.plan.clone();
        let roles: Vec<Role> = plan.threads.iter().map(|thread| thread.roles[0]).collect();
        let mut reply = RunReply {
            plan,
            outcome: RunOutcome::Interrupted,
            start_ticks: None,
            deaths: Vec::new(),
            clock: clock.read(),
            result_words: Vec::new(),
            board_words: None,
        };
        let run = PreparedRun::new(prepared, None, &out, &presentation, &progress)?;
        let ended = match run.arm()?.play() {
            Ok(ended) => ended,
            Err(error) => {
                let FailedAtStart { process, pid, what } = error.downcast::<FailedAtStart>()?;
                reply.outcome = RunOutcome::Failed { process, pid, what };
                return Ok((reply, Vec::new()));
            }
        };
        let segments = ended.segments();
        let mut memory = Vec::new();
        for (role, thread) in roles.into_iter().zip(&segments.threads) {
            let results = segments.view(SegmentPurpose::Results(role));
            let results = results.map(|words| words.slice(HEADER_WORDS, words.len() - HEADER_WORDS));
            reply.result_words.push(results.as_ref().map(ReadOnlyWords::len));
            memory.push(thread.slice(0, LOG_OFFSET));
            memory.extend(results);
        }
        let board = segments.view(SegmentPurpose::Board);
        reply.board_words = board.as_ref().map(ReadOnlyWords::len);
        memory.extend(board);
        let (_, record) = ended.save()?.record()?;
        reply.outcome = record.outcome;
        reply.start_ticks = Some(record.clock.start_ticks);
        reply.deaths = record.role_restarts;
        reply.clock = clock.read();
        Ok((reply, memory))
    }
}
