//! Experiments: one document with rows for each, and the answers that its kind computes from them.
//! The launcher makes the runs.
//!
//! ```text
//! experiment.json: kind, axes, rows ── answer of its kind ──▶ Answer ─┬ report   tables, page
//!   │    a row: settings and figures of a run                         └ json     --json
//!   └▶ rows.csv
//! ```
//!
//! [`Axis`] is the table of settings to vary, [`Kind::entry`] that of questions. A new axis is an
//! entry in the first; a new kind is a file with its [`KindEntry`], and its name in the second.

pub mod axis;
pub mod board;
pub mod compare;
pub mod contain;
mod declared;
mod endpoint;
mod entry;
mod figures;
pub mod isolation_cost;
mod kind;
pub mod lab;
pub mod ladder;
mod order;
mod picture;
pub mod predict;
mod ratio;
mod record;
mod report;
mod rows_csv;
mod runs;
pub mod search;
pub mod survey;
pub mod sweep;
mod time_unit;

pub use self::record::{ComparedSettings, Experiment, ExperimentState, Row, Setting};
pub use axis::{Axis, AxisRecord};
pub use board::{
    BoardCase, BoardCurve, BoardDeath, BoardPlan, BoardReader, BoardReading, BoardSkew, BoardSlice,
    BoardThreshold, BoardUsage, BoardWarning, BoardWarnings, BoardWriter, Boards, THRESHOLDS,
    ThreadLatencies, latency_csv,
};
pub use compare::{Comparison, Comparisons};
pub use contain::disturb::{
    DISTURBANCE_MARGIN, Disturbance, DisturbanceDone, Disturbances, Effect, EngineGaps, FIRST_EVERY,
    GapComparison, StormLimit, StormSearch, TriedStorm, plan_next_storms,
};
pub use contain::{
    Confidential, Contained, Containment, Containments, FaultOutcome, ProtectionCost, RoleContainment,
    VenueContainment,
};
pub use declared::DeclaredPlan;
pub use endpoint::Endpoint;
pub use entry::{Answer, KindEntry, RowKind};
pub use figures::{Figures, SettingTexts};
pub use isolation_cost::{IsolationCostRow, IsolationCosts, LevelCost, Reference};
pub use kind::Kind;
pub use lab::{
    Lab, LabCell, LabLatency, LabPlan, LabRun, SideCost, SleepSample, Speed, Wait, histogram, percentile,
};
pub use order::{ordered_rows, turn_of_rows};
pub use picture::ComparedPoint;
pub use predict::{MeasuredCell, PredictPart, PredictQuestion, Prediction};
pub use report::{ALL, BriefReport, ExperimentReport};
pub(crate) use report::{FILES, PAGE, ReportSection, SectionPart, TERMINAL, with_figures};
pub use rows_csv::rows_csv;
pub use runs::{ExperimentRuns, Point, RunEntry, too_few_repeats};
pub use search::{NextStep, RateSearch, RateStep, SearchLimits};
pub use survey::{CoreMatrix, CorePair, PartRecord, Recovery, Survey, SurveyPart};
pub(crate) use verdict::report::machine_facts;

use ::record::document::{Document, DocumentError, DocumentFault};
use ::record::escape::single_line;
use std::path::Path;
use verdict::summary::Measure;

/// Returns the report of the experiment saved in a folder; `None` if the folder has none.
///
/// # Errors
/// A document that is damaged or of another version.
pub fn saved(folder: &Path) -> anyhow::Result<Option<ExperimentReport>> {
    let experiment = match Experiment::read(folder) {
        Err(DocumentError { fault: DocumentFault::Absent, .. }) => return Ok(None),
        read => read?,
    };
    Ok(Some(experiment.answer(folder)?.report))
}

impl Kind {
    /// Returns the properties of the kind of experiment from the table of kinds.
    pub const fn entry(self) -> &'static KindEntry {
        match self {
            Self::Sweep => &sweep::KIND,
            Self::MaxRate => &search::KIND,
            Self::Bill => &isolation_cost::KIND,
            Self::Compare => &compare::KIND,
            Self::Contain => &contain::KIND,
            Self::Disturb => &contain::disturb::KIND,
            Self::Lab => &lab::KIND,
            Self::Board => &board::KIND,
            Self::Survey => &survey::KIND,
            Self::Ladder => &ladder::KIND,
            Self::Predict => &predict::KIND,
        }
    }
}

impl Document for Experiment {
    const FILE: &'static str = "experiment.json";
    const NAME: &'static str = "bulkhead.experiment";
    const VERSION: u32 = 1;
    const ABSENT: &'static str = "not the folder of an experiment";
    const REMEDY: &'static str = "fetch it from a copy, or measure again: the runs' own folders are whole";
    const SYNCED: bool = true;

    fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
        serde_json::from_value(value)
    }

    fn check(&self) -> Result<(), String> {
        if Measure::every().all(|measure| measure.name() != self.endpoint.measure) {
            return Err(format!("endpoint {:?}", self.endpoint.measure));
        }
        (self.kind.entry().check)(self)
    }
}

impl Experiment {
    /// Reads the experiment in a folder and converts it with `convert`; an error of either names
    /// the document.
    ///
    /// # Errors
    /// The document is absent, damaged, of another version, or of another kind.
    pub fn read_as<T>(
        folder: &Path,
        convert: impl Fn(&Self) -> Result<T, String>,
    ) -> Result<T, DocumentError> {
        let experiment = Self::read(folder)?;
        convert(&experiment).map_err(|why| {
            let path = folder.join(Self::FILE);
            let message = format!("{}: {}: {}", path.display(), experiment.kind, single_line(&why));
            DocumentError::new(DocumentFault::Content, &path, message)
        })
    }

    /// Returns `true` if a folder has an experiment.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(Self::FILE).exists()
    }

    /// Computes the tables, texts and figures that answer the experiment's question, from its rows
    /// and their runs in `folder`.
    ///
    /// # Errors
    /// Rows of other settings or figures than the kind asks for.
    pub fn answer(&self, folder: &Path) -> anyhow::Result<Answer> {
        let why = |why: String| anyhow::anyhow!("{}: {}", folder.display(), single_line(&why));
        let mut answer = (self.kind.entry().answer)(self, folder).map_err(why)?;
        if let Some(compared) = Comparisons::of_settings(self) {
            // Settings that were compared with each other afterwards.
            answer.report.sections.splice(0..0, compare::report(&compared).sections);
        }
        Ok(answer)
    }
}
