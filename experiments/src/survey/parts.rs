//! The parts of a survey that make runs: their commands, and how each is measured within its time.

use super::{FoundPart, SurveyRun};
use crate::ExperimentFlags;
use crate::bill::BillFlags;
use crate::compare::{self, CompareFlags, SideSelector};
use crate::contain::ContainFlags;
use crate::contain::disturb::DisturbFlags;
use crate::launcher::Launcher;
use crate::measure::discard_logs;
use crate::nested::{NestedExperiment, flags, measure_nested};
use crate::sweep::SweepFlags;
use analysis::experiment::{
    Comparisons, Containments, Disturbances, Experiment, ExperimentRuns, IsolationCosts, Recovery, SurveyPart,
};
use analysis::stats::MIN_PAIRS;
use anyhow::{Error, Result, anyhow};
use planner::config::RunFlags;
use planner::host::Machine;
use planner::host::signals::Interrupted;
use record::run::RunOutcome;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use system::sandbox;
use verdict::summary::{Measure, Summary};

/// The repeats that are asked for; the time decides how many are made.
const REPEATS: u32 = 40;
/// The time that a run takes, about.
const RUN_TIME: Duration = Duration::from_millis(1_400);
/// The repeats that should fit into a part's time: for a verdict, and one in reserve.
const REPEATS_WANTED: u32 = MIN_PAIRS as u32 + 1;
/// The load of the runs of bill and journal: 20,000 orders a second.
const LOAD: &str = "--idle spin --orders 12k --window 600ms";
const CONTAINMENT: &str = "--technique spsc-mux";
const DISTURBANCE: &str = "--technique spsc-mux --isolation thread,process --fault fork-storm";
const JOURNAL: &str = "--a journal=none --b journal=process --venue book --venues 1";
/// What the bill varies, from wide to narrow, with the number of its settings and an A/A test.
const BILL: [(u32, &str); 4] = [
    (17, "--technique spsc-mux,array-queue,channel,linked --isolation thread,process,container,sandbox"),
    (9, "--technique spsc-mux,array-queue --isolation thread,process,container,sandbox"),
    (5, "--technique spsc-mux --isolation thread,process,container,sandbox"),
    (3, "--technique spsc-mux --isolation thread,process"),
];
/// What is varied of two queues, likewise.
const QUEUE: [(u32, &str); 2] = [
    (6, "--technique crossbeam-array-queue,spsc-mux --isolation thread --rate 100k,400k,800k"),
    (2, "--technique crossbeam-array-queue,spsc-mux --isolation thread --rate 400k"),
];
/// The roles that are killed, with the run of each.
const RECOVERY: [(&str, &str); 2] = [
    (
        "engine",
        "--venue book --venues 1 --idle park --journal process --on-death restart --orders 40k --window 2s \
         --fault kill:engine@100ms every 400ms",
    ),
    (
        "exchange-0",
        "--venue book --venues 1 --exchange process --journal process --on-death restart --orders 40k \
         --window 2s --fault kill:exchange@100ms every 400ms",
    ),
];

/// A command as a user would type it.
fn typed(name: &str, arguments: &str) -> String {
    let arguments = arguments.replace("kill:", "'kill:");
    let end = if arguments.contains('\'') { "'" } else { "" };
    format!("launcher {name} {arguments}{end}")
}

/// The strategies of the bill's and the queue's runs: as many as leave every role a core of its
/// own. Empty where there are too few cores, and the planner decides.
fn strategies(machine: &Machine) -> String {
    // Four venues, the engine, and two cores for the rest.
    match planner::count_physical_cores(machine).saturating_sub(7).min(8) {
        0 => String::new(),
        strategies => format!(" --strategies {strategies}"),
    }
}

/// The widest of several lists of settings, from wide to narrow, whose repeats fit into the time.
fn choose<'a>(until: Instant, lists: &[(u32, &'a str)]) -> &'a str {
    let time = until.saturating_duration_since(Instant::now());
    let fits = |(runs, _): &&(u32, &str)| RUN_TIME * *runs * REPEATS_WANTED <= time;
    lists.iter().find(fits).or(lists.last()).map_or("", |(_, arguments)| arguments)
}

impl SurveyRun<'_> {
    pub(super) fn make_recovery(&mut self) -> Result<FoundPart> {
        let start_timeout = Duration::from_secs(10);
        let launcher = Launcher { weaker_sandbox: false, start_timeout, signals: self.signals };
        let (mut recoveries, mut shortfall) = (Vec::new(), None);
        for (role, arguments) in RECOVERY {
            if Instant::now() > self.until {
                shortfall = Some(format!("no time for {role}"));
                break;
            }
            self.bar.set_message(format!("{role} is killed"));
            self.commands.push(typed("run", arguments));
            let settings = flags::<RunFlags>(arguments, Some(self.folder))?.settings()?;
            let finished = match launcher.run(&settings) {
                Err(error) if error.is::<Interrupted>() => break,
                finished => finished?,
            };
            let summary = finished.summary.map_err(|why| anyhow!(why.error))?;
            discard_logs(&finished.folder);
            let name = finished.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            recoveries.push((recovery(role, &summary), name));
        }
        let (found, folders): (Vec<Recovery>, Vec<String>) = recoveries.into_iter().unzip();
        let mut part = FoundPart::new(SurveyPart::Recovery, &found, shortfall);
        part.rows.iter_mut().zip(folders).for_each(|(row, folder)| row.folder = folder);
        Ok(part)
    }

    pub(super) fn make_containment(&mut self) -> Result<FoundPart> {
        let missing = sandbox::missing();
        let levels = if missing.is_empty() { "process,sandbox" } else { "process" };
        let arguments = format!("{CONTAINMENT} --isolation {levels}");
        let (record, _, shortfall) = self.measure::<ContainFlags>("contain", &arguments)?;
        let shortfall = shortfall.or_else(|| Some(format!("no sandbox here: {}", missing.first()?)));
        let found =
            Containments { notes: Vec::new(), ..Containments::from_experiment(&record).map_err(Error::msg)? };
        Ok(FoundPart::new(SurveyPart::Containment, &found, shortfall))
    }

    pub(super) fn make_disturbance(&mut self) -> Result<FoundPart> {
        let arguments = format!("{DISTURBANCE} --repeats {REPEATS}");
        let (record, _, shortfall) = self.measure::<DisturbFlags>("disturb", &arguments)?;
        let found =
            Disturbances { notes: Vec::new(), ..Disturbances::from_experiment(&record).map_err(Error::msg)? };
        Ok(FoundPart::new(SurveyPart::Disturbance, &found, shortfall))
    }

    pub(super) fn make_journal(&mut self) -> Result<FoundPart> {
        let arguments = format!("{JOURNAL} --repeats {REPEATS} {LOAD}");
        let (record, _, shortfall) = self.measure::<CompareFlags>("compare", &arguments)?;
        let found = Comparisons::from_runs(&ExperimentRuns::new(&record)).map_err(Error::msg)?;
        Ok(FoundPart::new(SurveyPart::Journal, &shortened(found), shortfall))
    }

    pub(super) fn make_bill(&mut self) -> Result<FoundPart> {
        let settings = choose(self.until, &BILL);
        let arguments = format!("{settings} --repeats {REPEATS} {LOAD}{}", strategies(self.machine));
        let (record, _, shortfall) = self.measure::<BillFlags>("bill", &arguments)?;
        let mut found = IsolationCosts::from_runs(&ExperimentRuns::new(&record)).map_err(Error::msg)?;
        for row in &mut found.rows {
            row.differences.retain(|line| is_shown(&line.measure));
        }
        Ok(FoundPart::new(SurveyPart::Bill, &found, shortfall))
    }

    pub(super) fn make_queue(&mut self) -> Result<FoundPart> {
        let settings = choose(self.until, &QUEUE);
        let window = "--idle spin --window 400ms";
        let arguments = format!("{settings} --repeats {REPEATS} {window}{}", strategies(self.machine));
        let (_, folder, shortfall) = self.measure::<SweepFlags>("sweep", &arguments)?;
        let [a, b] = ["technique=crossbeam-array-queue", "technique=spsc-mux"];
        self.commands.push(format!("launcher compare FOLDER --a {a} --b {b}"));
        let found = compare::within(&folder, &SideSelector::parse("a", a)?, &SideSelector::parse("b", b)?)?;
        Ok(FoundPart::new(SurveyPart::Queue, &shortened(found), shortfall))
    }

    /// Measures an experiment until the time of its part is over, and saves its report. Returns it,
    /// its folder, and what is missing.
    fn measure<F: ExperimentFlags>(
        &mut self,
        name: &str,
        arguments: &str,
    ) -> Result<(Experiment, PathBuf, Option<String>)> {
        self.commands.push(typed(name, arguments));
        let show = |kind, number| self.bar.set_message(format!("{kind}, run {number}"));
        let NestedExperiment { record, folder, shortfall } =
            measure_nested::<F>(arguments, self.folder, self.until, &show)?;
        if !record.kind.entry().keeps_failures {
            let runs = ExperimentRuns::new(&record);
            let runs = runs.runs().map(|run| &run.outline);
            self.runs.extend(runs.map(|run| (run.is_usable() && run.fit_for_latency, run.reasons.clone())));
        }
        Ok((record, folder, shortfall))
    }
}

/// What a run shows in which a role was killed again and again.
fn recovery(role: &str, summary: &Summary) -> Recovery {
    let deaths: Vec<_> = summary.role_restarts.iter().filter(|restart| restart.role == role).collect();
    let recover_ns: Vec<u64> = deaths.iter().filter_map(|death| death.detect_to_recovery_ns).collect();
    let problem = match (&summary.outcome, summary.violations.first()) {
        (RunOutcome::Failed { process, what, .. }, _) => format!("{process}: {what}"),
        (_, Some(violation)) => violation.first.clone(),
        _ => String::new(),
    };
    Recovery {
        role: role.to_owned(),
        killed: deaths.len(),
        recovered: recover_ns.len(),
        sent: summary.orders.sent,
        returned: summary.orders.returned,
        recover_ns,
        problem,
    }
}

/// The figures of a comparison that a survey keeps: the engine's share of the round trip, in all
/// and without the machine's stalls.
fn shortened(mut found: Comparisons) -> Comparisons {
    for comparison in &mut found.comparisons {
        comparison.lines.retain(|line| is_shown(&line.measure));
    }
    found
}

fn is_shown(measure: &str) -> bool {
    [Measure::RtVenueFromDue, Measure::RtVenue, Measure::StallFree]
        .iter()
        .any(|shown| shown.name() == measure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use planner::config::Choice;
    use planner::host::fake;
    use protocol::plan::Threading;
    use std::path::Path;

    #[test]
    fn every_command_can_be_typed() {
        for (_, arguments) in RECOVERY {
            let settings = flags::<RunFlags>(arguments, Some(Path::new("a b"))).unwrap().settings().unwrap();
            assert_eq!((settings.out.as_deref(), settings.repeats), (Some(Path::new("a b")), None));
            assert_eq!(settings.fault.as_ref().unwrap().0.len(), 1);
            planner::resolve(&settings, &fake::plain(2).machine()).unwrap();
        }
        flags::<ContainFlags>(CONTAINMENT, None).unwrap();
        flags::<CompareFlags>(&format!("{JOURNAL} --repeats {REPEATS} {LOAD}"), None).unwrap();
        BILL.iter().for_each(|(_, arguments)| drop(flags::<BillFlags>(arguments, None).unwrap()));
        QUEUE.iter().for_each(|(_, arguments)| drop(flags::<SweepFlags>(arguments, None).unwrap()));
        assert!(flags::<BillFlags>("--no-such-flag", None).is_err());
        assert!(typed("run", RECOVERY[0].1).ends_with("'kill:engine@100ms every 400ms'"));
    }

    #[test]
    fn roles_have_dedicated_cores_where_possible() {
        let of = |cores| strategies(&fake::plain(cores).machine());
        assert_eq!(
            [2, 7, 8, 16, 64].map(of),
            ["", "", " --strategies 1", " --strategies 8", " --strategies 8"]
        );
        for cores in [8, 12, 16] {
            let settings = flags::<RunFlags>(&of(cores), None).unwrap().settings().unwrap();
            let threading =
                planner::resolve(&settings, &fake::plain(cores).machine()).unwrap().settings.threading;
            assert_eq!(threading, Some(Choice::Fixed(Threading::Dedicated)), "{cores} cores");
        }
    }

    #[test]
    fn short_time_measures_fewer_settings() {
        let of = |seconds| choose(Instant::now() + Duration::from_secs(seconds), &QUEUE);
        assert_eq!([of(0), of(20), of(200)], [QUEUE[1].1, QUEUE[1].1, QUEUE[0].1]);
    }
}
