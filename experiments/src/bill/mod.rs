//! `launcher bill`: measures the cost of each isolation level, by technique.
//!
//! A row for each level and technique: what the engine adds to an order, the difference to the
//! reference row with its interval, and what else it costs. What a level contains when a strategy
//! goes wrong is added once it is measured (`contains` of a row).

#[cfg(test)]
mod capacity_tests;
mod declare;
mod native;

use super::benchmark;
use super::capacity;
use super::dry_run::dry_run;
use super::flags::{AxisValue, SweepRequest, SweptSettings};
use super::forecast::shared_across_levels;
use super::launch::expected_time;
use super::measure::MeasureEnd;
use super::points::lay_out;
use super::presets::{PRESET_REPEATS, SweepPreset};
use super::publish::publish;
use super::record::{self, new_record};
use super::{ExperimentFlags, measure_experiment, usage};
use ::record::document::Document;
use ::record::units::{Count, Nanos};
use analysis::experiment::isolation_cost::{NATIVE, REPEATS, answer_so_far, native_techniques};
use analysis::experiment::{Answer, Axis, Containments, Experiment, Kind, Setting};
use analysis::stats::{MIN_PAIRS, Margin};
use anyhow::{Error, Result};
use catalog::folder_of;
use clap::Args;
use planner::config::value::SettingValue;
use planner::config::{Choice, Common, Settings, UsageError};
use planner::host::Machine;
use protocol::plan::{Idle, Isolation, IsolationLevels, Technique};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The longest that a bill takes whose repeats were not asked for, in seconds.
const TIME_LIMIT_S: u64 = 300;
/// The orders and the window of a run whose load was not asked for: 20,000 orders a second.
const LOAD: (Count, Nanos) = (Count(20_000), Nanos(1_000_000_000));
/// The same rate in a run whose levels take turns: long, so that more of its time is measured.
const LONG_LOAD: (Count, Nanos) = (Count(160_000), Nanos(8_000_000_000));
/// The delay of venues where levels take turns: within the part of a turn that is left out.
const SHORT_DELAY: &str = "uniform:500us..2ms";
/// The turn of a level.
const EPOCH: Nanos = Nanos(50_000_000);

/// The command-line flags of `launcher bill`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct BillFlags {
    /// A sweep that was measured before; without it one is measured
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    swept: SweptSettings,
    #[command(flatten)]
    common: Common,
    /// Largest difference that counts as none: a time, a percentage, or the larger of both
    /// [default: 10ns,5%]
    #[arg(long, value_name = "MARGIN", conflicts_with = "folder")]
    margin: Option<Margin>,
    /// Write the plan into this new file and measure nothing: commit it before the runs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["folder", "dry_run", "find_capacity"], requires = "because")]
    declare: Option<PathBuf>,
    /// Why a difference within the margin changes nothing for users of the engine
    #[arg(long, value_name = "REASON", requires = "declare")]
    because: Option<String>,
    /// Measure what --declare wrote into this file, and nothing else
    #[arg(long, value_name = "FILE", conflicts_with_all = ["folder", "margin", "declare", "find_capacity"])]
    declared: Option<PathBuf>,
    /// Find the highest rate of each level whose p99 from due stays below this limit, e.g. 2ms:
    /// adds a search in runs of each level alone
    #[arg(long, value_name = "LIMIT", conflicts_with = "folder")]
    find_capacity: Option<Nanos>,
    /// What each level contains, measured before by launcher contain
    #[arg(long, value_name = "FOLDER", help_heading = "Run")]
    contain: Option<PathBuf>,
    /// Keep every run's stamp logs (large)
    #[arg(long, help_heading = "Run")]
    keep_logs: bool,
    /// Print the runs that would be made, in their order, and stop
    #[arg(long, conflicts_with = "folder", help_heading = "Run")]
    dry_run: bool,
}

/// Runs `launcher bill`: measures the cost of each isolation level, or computes it from an earlier
/// measurement.
pub fn run(flags: &BillFlags) -> Result<ExitCode> {
    // Read first: a folder that is none is found out before anything is measured.
    let contained = flags.contain.as_deref().map(contained).transpose()?;
    if let Some(file) = &flags.declare {
        return declare::declare(flags, file);
    }
    if flags.dry_run {
        return dry_run(&flags.plan(planner::host::machine())?);
    }
    let (mut record, folder) = match &flags.folder {
        Some(folder) => {
            if let Some((key, _)) = flags.swept.0.first() {
                let key = key.replace('_', "-");
                let why = "what was measured is not measured again; leave one of them out";
                return usage(format!("--{key} with a folder: {why}"));
            }
            let folder = folder_of(folder)?;
            let mut record = record::read(&folder)?;
            let shown = bill_of(&mut record, contained.as_ref())?;
            record.save(&folder)?;
            return publish(&record, &folder, &shown, &flags.common, MeasureEnd::Complete);
        }
        None => flags.begin()?,
    };
    let ended = measure_experiment(&mut record, &folder, flags.common.json)?;
    let shown = match ended {
        MeasureEnd::Complete | MeasureEnd::GivenUp => bill_of(&mut record, contained.as_ref())?,
        MeasureEnd::Interrupted => record.answer(&folder)?,
    };
    record.save(&folder)?;
    publish(&record, &folder, &shown, &flags.common, ended)
}

impl ExperimentFlags for BillFlags {
    fn plan(&self, machine: Machine) -> Result<Experiment> {
        if let Some(file) = &self.declared {
            let more = self.swept.0.iter().find(|(key, _)| !declare::NOT_DECLARED.contains(key));
            if let Some((key, _)) = more {
                let key = key.replace('_', "-");
                return usage(format!("--{key} with --declared: the file has the whole plan; leave it out"));
            }
            return declare::declared_plan(file, &self.common, machine);
        }
        let (swept, names_native) = native::split_levels(&self.swept)?;
        let mut asked = swept.request(None, self.common.config.as_ref())?;
        let preset = asked.preset.as_deref().map(SweepPreset::parse).transpose()?;
        if preset.is_some_and(|preset| preset != SweepPreset::Bill) {
            return usage("--preset with bill: a bill has one preset, its own; leave it out");
        }
        asked.check_axes(Axis::is_of_bill)?;
        asked.preset = Some(SweepPreset::Bill.name().to_owned());
        let is_limited = preset.is_none() && asked.base.repeats.is_none();
        // A preset has the techniques of the arm among all.
        let mut has_native = names_native || preset.is_none() && !asked.has_axis(Axis::Isolation);
        if preset.is_none() {
            fill_default(&mut asked, &machine, self.common.allow_weaker_sandbox);
        }
        if let Some(epoch) = asked.base.crossover {
            if names_native {
                return usage(format!(
                    "--crossover {epoch} with the level {NATIVE}: it has runs of its own, so it takes no turn; leave one of the two out"
                ));
            }
            has_native = false;
        }
        let repeats = asked.repeats(if is_limited { REPEATS } else { PRESET_REPEATS }.into());
        asked.base.repeats = Some(repeats);
        SweepPreset::Bill.fill_request(&mut asked);
        if has_native {
            native::add(&mut asked);
        }
        let mut record = new_record(Kind::Bill, &asked, repeats.0, machine, &self.common);
        record.keep_logs = self.keep_logs;
        record.endpoint.margin = self.margin.unwrap_or_default();
        lay_out(&mut record, &asked)?;
        record.notes.extend(shared_across_levels(&record));
        let settings = settings_with_aa_test(&record);
        record.plan_rows(&settings);
        if is_limited {
            limit_time(&mut record, &settings);
        }
        if let Some(bound) = self.find_capacity {
            capacity::plan(&mut record, bound)?;
        }
        Ok(record)
    }

    fn out(&self) -> Result<Option<PathBuf>> {
        Ok(native::split_levels(&self.swept)?.0.request(None, self.common.config.as_ref())?.base.out)
    }
}

/// Completes a request with what a bill does not name: technique, load, and the levels. Where each
/// strategy has a core, the levels are measured side by side in the same runs; where strategies
/// share cores, they take turns in the same runs.
fn fill_default(asked: &mut SweepRequest, machine: &Machine, weaker_sandbox: bool) {
    let mixed = levels_side_by_side(weaker_sandbox);
    let count = mixed.as_slice().len();
    take_turns(asked, machine, mixed);
    // The engine and the launcher have cores as well.
    let has_cores = machine.cores_allowed.len() >= count + 2;
    if has_cores && !asked.has_axis(Axis::Isolation) && !asked.has_axis(Axis::Strategies) {
        asked.axes.push(vec![AxisValue { axis: Axis::Isolation, text: mixed.to_string() }]);
        asked.base.strategies = Some(Count(count as u64));
    }
    if !asked.has_axis(Axis::Technique) {
        asked.base.technique = Some(Technique::default());
    }
    let base = &mut asked.base;
    if base.orders.is_none() && base.window.is_none() && base.schedule.is_none() {
        (base.orders, base.window) = (Some(LOAD.0), Some(LOAD.1));
    }
}

/// Makes runs in which all levels take turns of a bill that is asked for more strategies than have
/// cores and for no levels. Nothing changes where other settings exclude turns.
fn take_turns(asked: &mut SweepRequest, machine: &Machine, mixed: IsolationLevels) {
    // Idle levels must leave the cores to the one whose turn it is.
    let parks = matches!(asked.base.idle, None | Some(Choice::Auto | Choice::Fixed(Idle::Park)));
    if asked.has_axis(Axis::Isolation) || asked.varies(Axis::Idle) || !parks {
        return;
    }
    // The engine has a core as well.
    let cores = machine.cores_allowed.len().saturating_sub(1) as u64;
    let cores = asked.base.strategy_cores.map_or(cores, |Count(cores)| cores);
    let of_axis = asked.axes.iter().find(|values| values[0].axis == Axis::Strategies);
    let each: Vec<u64> = match of_axis {
        Some(values) => values.iter().filter_map(|value| value.text.parse().ok()).map(|Count(n)| n).collect(),
        None => asked.base.strategies.iter().map(|Count(each)| *each).collect(),
    };
    if each.is_empty() || each.iter().any(|each| *each <= cores) {
        return;
    }
    let all: Vec<u64> = each.iter().map(|each| each * mixed.as_slice().len() as u64).collect();
    let mut base = asked.base.clone();
    base.crossover = Some(EPOCH);
    base.idle = Some(Choice::Fixed(Idle::Park));
    // A report that comes in the next turn wakes a strategy of another level.
    base.delay = base.delay.or_else(|| SettingValue::parse(SHORT_DELAY).ok());
    if base.orders.is_none() && base.window.is_none() && base.schedule.is_none() {
        (base.orders, base.window) = (Some(LONG_LOAD.0), Some(LONG_LOAD.1));
    }
    let is_possible = |strategies: &u64| {
        let strategies = Some(Count(*strategies));
        let alone = Settings { isolation: Some(mixed), strategies, ..base.clone() };
        planner::resolve(&alone, machine).is_ok()
    };
    if !all.iter().all(is_possible) {
        return;
    }
    match of_axis {
        Some(_) => {
            let value = |all: u64| AxisValue { axis: Axis::Strategies, text: all.to_string() };
            asked.axes.retain(|values| values[0].axis != Axis::Strategies);
            asked.axes.push(all.into_iter().map(value).collect());
        }
        None => base.strategies = all.first().map(|all| Count(*all)),
    }
    asked.axes.push(vec![AxisValue { axis: Axis::Isolation, text: mixed.to_string() }]);
    asked.base = base;
}

/// Returns the levels that this machine has, with threads twice: an A/A test in every run.
fn levels_side_by_side(weaker_sandbox: bool) -> IsolationLevels {
    let is_here =
        |level: &Isolation| benchmark::check_isolation([*level].into_iter(), weaker_sandbox).is_ok();
    let levels = Isolation::ALL.iter().copied().filter(is_here);
    let levels: Vec<Isolation> = [Isolation::Thread].into_iter().chain(levels).collect();
    IsolationLevels::new(&levels).unwrap_or(IsolationLevels::uniform(Isolation::Process))
}

/// Returns the settings of a bill with an A/A test: a reference of its headline once more.
fn settings_with_aa_test(record: &Experiment) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut all = record.settings();
    // Planned once more, they carry all that they share.
    all.iter_mut().for_each(|setting| {
        let shared = record.base.iter().map(|(key, text)| (key.clone(), text.clone()));
        setting.settings = shared.chain(std::mem::take(&mut setting.settings)).collect();
    });
    let has = |setting: &Setting, axis: Axis, text: &str| {
        let value = setting.values.get(&axis).or_else(|| setting.settings.get(&axis.key()));
        value.is_some_and(|value| value == text)
    };
    let is_native = |setting: &Setting| {
        native_techniques().iter().any(|technique| has(setting, Axis::Technique, technique.name()))
    };
    let is_thread = |setting: &Setting| has(setting, Axis::Isolation, Isolation::Thread.name());
    let threads = || all.iter().filter(|setting| is_thread(setting) && !is_native(setting));
    let default = threads().find(|setting| has(setting, Axis::Technique, Technique::default().name()));
    let reference = default.or_else(|| threads().next()).map(|setting| setting.name.clone());
    for setting in all {
        let is_reference = reference.as_ref() == Some(&setting.name);
        let again = Setting { name: format!("{} A/A", setting.name), is_aa_test: true, ..setting.clone() };
        settings.push(setting);
        settings.extend(is_reference.then_some(again));
    }
    settings
}

/// Limits the time of a bill: it begins with the repeats that a verdict needs, and adds those that
/// fit at the pace of the first ones.
fn limit_time(record: &mut Experiment, settings: &[Setting]) {
    record.time_limit_s = Some(TIME_LIMIT_S);
    let machine = record.machine.clone();
    let Some((_, time)) = expected_time(record, &machine) else { return };
    let each = time / record.repeats.max(1);
    let fitting =
        Duration::from_secs(TIME_LIMIT_S).div_duration_f64(each.max(Duration::from_millis(1))) as u32;
    record.asked_repeats = record.repeats.min(fitting.max(MIN_PAIRS as u32));
    record.repeats = record.asked_repeats.min(MIN_PAIRS as u32);
    record.plan_rows(settings);
}

/// Reads the table of `launcher contain` in a folder.
fn contained(folder: &Path) -> Result<Containments> {
    Containments::from_experiment(&record::read_kind(Kind::Contain, folder)?).map_err(Error::msg)
}

/// Makes a bill of an experiment's runs, with what each level contains.
fn bill_of(record: &mut Experiment, contained: Option<&Containments>) -> Result<Answer> {
    if let Some(contained) = contained {
        record.set_contains(&contained.summaries(), contained.cost);
    }
    let answer = answer_so_far(record).map_err(UsageError)?;
    record.kind = Kind::Bill;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use planner::host::fake;

    #[derive(Parser)]
    struct TestCommandLine {
        #[command(flatten)]
        flags: BillFlags,
    }

    /// Parses the flags of `launcher bill`.
    pub(super) fn parsed(line: &str) -> BillFlags {
        let arguments = ["bill"].into_iter().chain(line.split_whitespace());
        TestCommandLine::try_parse_from(arguments).unwrap().flags
    }

    fn planned(line: &str) -> Experiment {
        // Root may have every level here, others not all.
        parsed(line).plan(fake::plain(2).machine()).unwrap()
    }

    #[test]
    fn bill_without_flags_fits_into_five_minutes() {
        let record = planned("");
        let machine = record.machine.clone();
        let (runs, time) = expected_time(&record, &machine).unwrap();
        let time = time * record.asked_repeats / record.repeats;
        assert!(time <= Duration::from_secs(TIME_LIMIT_S), "{runs} runs take {time:?}");
        assert!(record.repeats >= MIN_PAIRS as u32 && record.time_limit_s == Some(TIME_LIMIT_S));
        let technique = record.axes.iter().find(|axis| axis.axis == Axis::Technique).unwrap();
        assert_eq!(technique.values, ["spsc-mux", "rtrb-mux", "rtrb-pointer-mux"], "one between processes");
        let narrow = planned("--isolation thread,process");
        assert_eq!((narrow.repeats, narrow.asked_repeats), (MIN_PAIRS as u32, REPEATS));
        let asked = planned("--isolation thread,process --repeats 6");
        assert_eq!((asked.repeats, asked.time_limit_s), (6, None));
    }

    /// The settings of a plan with a technique of the arm `native`, by name.
    fn native_settings(record: &Experiment) -> Vec<String> {
        let is_native = |setting: &Setting| {
            native_techniques()
                .iter()
                .any(|one| setting.values.get(&Axis::Technique).is_some_and(|text| text == one.name()))
        };
        record.settings().into_iter().filter(is_native).map(|setting| setting.name).collect()
    }

    #[test]
    fn native_arm_is_threads_over_heap_queues() {
        let both = ["rtrb-mux", "rtrb-pointer-mux"].map(|name| format!("technique={name} isolation=thread"));
        for line in
            ["", "--isolation native,thread,process", "--isolation thread+process,native --strategies 2"]
        {
            let record = planned(line);
            assert_eq!(native_settings(&record), both, "{line}");
            assert!(
                !record
                    .settings()
                    .iter()
                    .any(|one| one.is_aa_test && native_settings(&record).contains(&one.name))
            );
        }
        assert_eq!(native_settings(&planned("--isolation thread,process")), Vec::<String>::new());
        let named = planned("--technique spsc-mux,rtrb-mux --isolation native,thread");
        assert_eq!(native_settings(&named), both, "each once");
        let two = planned("--isolation native,thread,process --idle spin,park");
        assert_eq!(native_settings(&two).len(), 4, "at each condition: {:?}", native_settings(&two));
        let arguments = ["bill", "--isolation", "native"];
        let alone = TestCommandLine::try_parse_from(arguments).unwrap().flags;
        let error = alone.plan(fake::plain(2).machine()).unwrap_err().to_string();
        assert!(error.contains("--isolation native,thread,process"), "{error}");
    }

    #[test]
    fn levels_that_share_cores_are_remarked() {
        let is_remarked =
            |line: &str| planned(line).notes.iter().any(|note| note.starts_with("levels share cores"));
        assert!(is_remarked("--isolation thread+process --strategies 4 --idle park"));
        assert!(
            !is_remarked("--isolation thread,process --strategies 4 --idle park"),
            "each in its own runs"
        );
        assert!(!is_remarked("--isolation thread,process --strategies 1"));
    }

    #[test]
    fn levels_of_strategies_that_share_cores_take_turns() {
        let keys = ["crossover", "idle", "window"];
        let settings = |line: &str| {
            let base = planned(line).base;
            keys.map(|key| base.get(key).cloned().unwrap_or_default())
        };
        assert_eq!(settings("--strategies 4"), ["50ms", "park", "8s"]);
        assert_eq!(planned("--strategies 4").base["delay"], SHORT_DELAY);
        let mixed = planned("--strategies 4");
        let levels = mixed.settings()[0].values[&Axis::Isolation].split('+').count();
        assert!(levels >= 3, "threads twice, and a process");
        assert_eq!(mixed.base["strategies"], (4 * levels).to_string());
        assert!(native_settings(&mixed).is_empty(), "it takes no turn");
        let several = planned("--strategies 4,16");
        let counts = several.axis(Axis::Strategies).unwrap().values.clone();
        assert_eq!(counts, [4, 16].map(|each| (each * levels).to_string()));
        assert_eq!(several.base["crossover"], "50ms");
        for line in [
            "",
            "--strategies 4 --idle spin",
            "--strategies 1,4",
            "--strategies 4 --isolation thread,process",
        ] {
            assert_eq!(settings(line)[0], "", "{line}");
        }
        let arguments =
            ["bill", "--isolation", "native,thread+process", "--strategies", "4", "--crossover", "50ms"];
        let named = TestCommandLine::try_parse_from(arguments).unwrap().flags;
        let error = named.plan(fake::plain(2).machine()).unwrap_err().to_string();
        assert!(error.contains("--crossover 50ms with the level native"), "{error}");
    }

    #[test]
    fn bill_repeats_its_reference_as_aa_test() {
        let record =
            planned("--technique channel,spsc-mux --isolation thread,process --repeats 5 --margin 20ns");
        let settings = record.settings();
        let aa: Vec<&Setting> = settings.iter().filter(|setting| setting.is_aa_test).collect();
        assert_eq!((settings.len(), aa.len()), (5, 1));
        assert!(aa[0].name.ends_with(" A/A") && aa[0].name.contains("spsc-mux"), "{}", aa[0].name);
        let reference =
            settings.iter().find(|setting| aa[0].name == format!("{} A/A", setting.name)).unwrap();
        assert_eq!((&reference.values, &reference.settings), (&aa[0].values, &aa[0].settings));
        assert_eq!(record.endpoint.margin, "20ns".parse().unwrap());
        assert_eq!(record.endpoint.measure, "rt_venue_from_due");
        assert!(!planned("--isolation process --repeats 5").settings().iter().any(|one| one.is_aa_test));
    }
}
