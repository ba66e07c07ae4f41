//! Sets up and measures one case of the board benchmark: board, writer, readers and due times.

use crate::config::value::named_values;
use crate::experiments::bench::{BenchPlan, BenchWork, MeasuredLoop, SharedSegment};
use anyhow::{Context, Result};
use roles::bench::account::AgentAccount;
use roles::bench::boards::counts::{self, BoardLog};
use roles::bench::boards::{BoardAgent, BoardEnd, LATE_NS, Waiting};
use serde::{Deserialize, Serialize};
use shm::attached::{Access, Attached};
use shm::board::{self, BoardShape};
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, Header, SegmentKind};
use shm::ring::{EndRights, SegmentSpec};
use shm::sync::Ordering;
use std::time::Duration;

named_values!(Waiting);

pub const BOARD: &str = "board";
const DUE: &str = "due";
const DUE_KIND: SegmentKind = SegmentKind::new(42, "board-due", &[("times", HEADER_WORDS)]);
/// How long a writer may be late, and readers may take to read the last values.
const LATE_TIMEOUT: Duration = Duration::from_secs(5);

/// The work of one run of the board benchmark: writer, readers and their settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoardWork {
    pub readers: usize,
    pub waiting: Waiting,
    pub cells: usize,
    /// Words of a value.
    pub words: usize,
    /// Writes that are due; `None`: nothing is due.
    pub scheduled: Option<u64>,
    pub duration_ns: u64,
    /// When each write is due, in nanoseconds from the start. Agents read it in its segment.
    #[serde(skip)]
    pub due: Vec<u64>,
}

impl BoardWork {
    pub fn shape(&self) -> Result<BoardShape> {
        Ok(BoardShape::with_cells(self.cells, self.words)?)
    }

    fn segment(&self, what: &str, words: usize, kind: SegmentKind, writer: Access) -> SharedSegment {
        let rights = (0..=self.readers).map(|agent| Some(if agent == 0 { writer } else { Access::Read }));
        let spec = SegmentSpec::memory(what, kind, words, EndRights::NONE);
        SharedSegment { spec, rights: rights.collect() }
    }
}

impl BenchWork for BoardWork {
    const PREFIX: &'static str = "board-";
    const SURVIVES_DEATHS: bool = true;

    fn agents(&self) -> Vec<String> {
        let readers = (0..self.readers).map(|reader| format!("reader-{reader}"));
        std::iter::once("writer".to_owned()).chain(readers).collect()
    }

    fn sources(&self) -> usize {
        1
    }

    fn segments(&self) -> Vec<SharedSegment> {
        let words = self.shape().map_or(HEADER_WORDS, |shape| shape.segment_words());
        let board = self.segment(BOARD, words, board::KIND, Access::Write);
        let due = |times: u64| self.segment(DUE, HEADER_WORDS + times as usize, DUE_KIND, Access::Read);
        std::iter::once(board).chain(self.scheduled.map(due)).collect()
    }

    fn account_words(&self, _: usize) -> usize {
        counts::WORDS
    }

    fn write_segment(&self, spec: &SegmentSpec, header: Header, words: &AtomicWords) {
        match self.shape() {
            Ok(shape) if spec.name == BOARD => shape.write_header(words, header),
            _ => header.write(words),
        }
        if spec.name == DUE {
            for (word, time) in words[HEADER_WORDS..].iter().zip(&self.due) {
                // Relaxed: the agents' processes start afterwards.
                word.store(*time, Ordering::Relaxed);
            }
        }
    }

    fn attach(
        plan: &BenchPlan<Self>,
        agent: usize,
        attached: &mut Attached<'_>,
        account: &AgentAccount,
    ) -> Result<MeasuredLoop> {
        let end = match agent {
            0 => BoardEnd::Writer(board::Writer::attach(&attached.region(BOARD, board::KIND)?.words())?),
            _ => BoardEnd::Reader(board::Reader::attach(&attached.view(BOARD, board::KIND)?)?),
        };
        let due = match plan.work.scheduled {
            Some(times) => {
                let times = usize::try_from(times).context("too many writes")?;
                Some(attached.view(DUE, DUE_KIND)?.slice(HEADER_WORDS, times))
            }
            None => None,
        };
        let (work, log) = (plan.work.clone(), BoardLog::new(account));
        Ok(Box::new(move |context| {
            let agent = BoardAgent {
                time: context.time,
                control: context.control,
                due,
                account: context.account,
                log,
                waiting: work.waiting,
                cells: work.cells,
                words: work.words,
                duration_ns: work.duration_ns,
            };
            agent.run(context.clock, end);
        }))
    }

    fn progress_timeout(&self, is_draining: bool) -> Duration {
        let writing = if is_draining { 0 } else { self.duration_ns.saturating_add(LATE_NS) };
        LATE_TIMEOUT + Duration::from_nanos(writing)
    }
}
