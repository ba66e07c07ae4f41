//! A bill that is declared before its runs: `--declare FILE` writes the plan, `--declared FILE`
//! measures it.
//!
//! The file holds what the answer will depend on: the endpoint, its margin with a reason, the rows,
//! what is left out, and when measuring stops. Committed before the runs, it shows that the plan is
//! older than the data. A bill made from it names the file's SHA-256 and makes no other plan.

use super::BillFlags;
use crate::flags::SweptSettings;
use crate::{ExperimentFlags, usage};
use ::record::numbers::counted;
use analysis::experiment::{DeclaredPlan, Endpoint, Experiment, Setting, SettingTexts};
use anyhow::Result;
use hmac_sha256::Hash as Sha256;
use planner::config::input::UserFile;
use planner::config::{Common, Settings, UsageError};
use planner::host::Machine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// The format of the file.
const FORMAT: &str = "bulkhead.declaration/1";
/// Maximum size of a declaration, in bytes.
const MAX_BYTES: u64 = 256 * 1024;
/// Repeats of a declared bill unless told: pairs have a verdict from eight on.
const REPEATS: u64 = 12;
/// What no declaration has: where results are saved.
pub(super) const NOT_DECLARED: [&str; 2] = ["out", "preset"];
const POOLED: &str = "the headline is the ratio of each level to threads, at each percentile, pooled over \
                      all rows: the geometric mean, with an interval from resampled blocks or pairs";
const EXCLUSIONS: &str = "a run that fails or is not valid is left out with its pair; a pair whose \
                          core-to-core time moved within a run is left out if at least half of all pairs \
                          stay; no latency, load or steal leaves anything out";

/// The plan of a bill (the experiment on isolation costs), declared before its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Declaration {
    /// Format of the file.
    format: String,
    /// The settings as they were given to `launcher bill`.
    settings: BTreeMap<String, String>,
    /// The figures that the bill is about, and the largest difference that counts as none.
    endpoint: Endpoint,
    /// Why a difference within the margin counts as none.
    because: String,
    /// What the headline is.
    pooled: String,
    /// What is left out.
    exclusions: String,
    /// When measuring stops.
    stop: String,
    /// Seed of the first repeat.
    seed: u64,
    /// The settings that are measured, by name.
    rows: BTreeMap<String, SettingTexts>,
}

impl Declaration {
    /// Declares the plan of a bill with these settings.
    fn of(settings: &SweptSettings, plan: &Experiment, because: &str) -> Self {
        let declared = |(key, _): &&(&str, String)| !NOT_DECLARED.contains(key);
        let settings = settings.0.iter().filter(declared);
        let row = |setting: Setting| {
            let all =
                plan.base.iter().chain(&setting.settings).map(|(key, text)| (key.clone(), text.clone()));
            (setting.name, all.filter(|(key, _)| !NOT_DECLARED.contains(&key.as_str())).collect())
        };
        let repeats = counted(plan.asked_repeats.into(), "repeat");
        Self {
            format: FORMAT.into(),
            settings: settings.map(|(key, text)| ((*key).to_owned(), text.clone())).collect(),
            endpoint: plan.endpoint.clone(),
            because: because.into(),
            pooled: POOLED.into(),
            exclusions: EXCLUSIONS.into(),
            stop: format!(
                "after {repeats} of each row, whatever they show; pairs that drop out are replaced by at most \
                 half as many repeats, then until five pairs count, up to three times as many in all"
            ),
            seed: plan.seed,
            rows: plan.settings().into_iter().map(row).collect(),
        }
    }

    /// Reads a declaration with the SHA-256 of its file.
    fn read(path: &Path) -> Result<(Self, String)> {
        let name = path.display();
        let text = UserFile::read_text(path, MAX_BYTES)
            .map_err(|error| UsageError(format!("cannot read --declared {name}: {error}")))?;
        let hash = Sha256::hash(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        match serde_json::from_str::<Self>(&text) {
            Ok(declaration) if declaration.format == FORMAT => Ok((declaration, hash)),
            Ok(Self { format, .. }) => usage(format!("{name}: {format}: this build reads {FORMAT}")),
            Err(error) => usage(format!(
                "{name}: no declaration of a bill ({error}); launcher bill --declare writes one"
            )),
        }
    }

    /// Returns the settings in the order of the command line.
    fn settings(&self, path: &Path) -> Result<SweptSettings> {
        let known = |key: &&str| self.settings.contains_key(*key);
        let keys: Vec<&'static str> = Settings::KEYS.iter().copied().filter(known).collect();
        if let Some(key) = self.settings.keys().find(|key| !keys.contains(&key.as_str())) {
            return usage(format!("{}: this build has no setting {key}", path.display()));
        }
        Ok(SweptSettings(keys.into_iter().map(|key| (key, self.settings[key].clone())).collect()))
    }

    /// Names the first part in which a plan made now differs.
    fn difference(&self, now: &Self) -> Option<String> {
        let texts = [
            ("the endpoint", self.endpoint != now.endpoint),
            ("the rule of the headline", self.pooled != now.pooled),
            ("what is left out", self.exclusions != now.exclusions),
            ("when measuring stops", self.stop != now.stop),
            ("the seed", self.seed != now.seed),
        ];
        if let Some((what, _)) = texts.into_iter().find(|(_, differs)| *differs) {
            return Some(what.into());
        }
        let missing = self.rows.keys().find(|name| !now.rows.contains_key(*name));
        let added = now.rows.keys().find(|name| !self.rows.contains_key(*name));
        let changed = self.rows.iter().find(|(name, row)| now.rows.get(*name).is_some_and(|now| now != *row));
        missing
            .map(|name| format!("the row {name} cannot be made here"))
            .or_else(|| added.map(|name| format!("the row {name} is not declared")))
            .or_else(|| changed.map(|(name, _)| format!("the settings of the row {name}")))
    }
}

/// Writes the plan of a bill (the experiment on isolation costs) into a new file, and measures
/// nothing.
pub fn declare(flags: &BillFlags, path: &Path) -> Result<ExitCode> {
    let because = flags.because.as_deref().unwrap_or_default();
    if because.trim().is_empty() {
        return usage("--because: say what a difference within the margin does not change for a user");
    }
    let plan = fixed(flags).plan(planner::host::machine())?;
    let declaration = Declaration::of(&flags.swept, &plan, because);
    let name = path.display();
    let text = serde_json::to_string_pretty(&declaration)?;
    // A declaration that changes after the first run is none.
    let mut file = File::create_new(path)
        .map_err(|error| UsageError(format!("cannot write --declare {name}: {error}; name a new file")))?;
    writeln!(file, "{text}")?;
    let (rows, repeats) = (counted(declaration.rows.len() as u64, "row"), plan.asked_repeats);
    writeln!(
        ::record::screen::stdout(),
        "{name}: {rows}, {}; commit it, then launcher bill --declared {name}",
        counted(repeats.into(), "repeat")
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the plan of a bill (the experiment on isolation costs) that was declared in a file, if
/// this build makes the same plan on this machine.
pub fn declared_plan(path: &Path, common: &Common, machine: Machine) -> Result<Experiment> {
    let (declaration, sha256) = Declaration::read(path)?;
    let settings = declaration.settings(path)?;
    let flags = BillFlags {
        swept: settings.clone(),
        common: common.clone(),
        margin: Some(declaration.endpoint.margin),
        ..BillFlags::default()
    };
    let mut plan = fixed(&flags).plan(machine)?;
    let now = Declaration::of(&settings, &plan, &declaration.because);
    if let Some(what) = declaration.difference(&now) {
        return usage(format!("{}: not what would be measured now: {what}", path.display()));
    }
    let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    plan.set_declared(DeclaredPlan { file, sha256, because: declaration.because });
    Ok(plan)
}

/// Returns flags whose repeats are given, so that no time limit decides how many are made.
fn fixed(flags: &BillFlags) -> BillFlags {
    let mut fixed = BillFlags { declare: None, declared: None, ..flags.clone() };
    if !fixed.swept.0.iter().any(|(key, _)| *key == "repeats") {
        fixed.swept.0.push(("repeats", REPEATS.to_string()));
    }
    fixed
}

#[cfg(test)]
mod tests {
    use super::super::tests::parsed as flags;
    use super::*;
    use planner::host::fake;

    const LINE: &str = "--strategies 4,16 --isolation thread,process --idle park --margin 10ns,5%";

    fn here() -> Machine {
        fake::plain(2).machine()
    }

    /// A declaration of [`LINE`], in a file after a change of its text.
    fn saved(folder: &Path, change: impl Fn(String) -> String) -> std::path::PathBuf {
        let flags = flags(LINE);
        let plan = fixed(&flags).plan(here()).unwrap();
        let declaration = Declaration::of(&flags.swept, &plan, "two hosts of a rack differ by as much");
        let path = folder.join("bill.json");
        std::fs::write(&path, change(serde_json::to_string_pretty(&declaration).unwrap())).unwrap();
        path
    }

    #[test]
    fn declared_bill_is_measured_as_declared() {
        let folder = tempfile::tempdir().unwrap();
        let path = saved(folder.path(), |text| text);
        let plan = declared_plan(&path, &Common::default(), here()).unwrap();
        let asked = fixed(&flags(LINE)).plan(here()).unwrap();
        assert_eq!((plan.settings(), plan.endpoint.clone()), (asked.settings(), asked.endpoint));
        assert_eq!((plan.asked_repeats, plan.time_limit_s), (REPEATS as u32, None));
        let declared = plan.declared().unwrap();
        assert_eq!(declared.sha256.len(), 64);
        // As `sha256sum` prints it.
        let text = std::fs::read(&path).unwrap();
        assert!(declared.sha256.starts_with(&format!("{:02x}", Sha256::hash(&text)[0])));
    }

    #[test]
    fn changed_declaration_is_refused_with_the_difference() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |from: &str, to: &str| {
            let path = saved(folder.path(), |text| {
                assert!(text.contains(from), "{from} in {text}");
                text.replacen(from, to, 1)
            });
            declared_plan(&path, &Common::default(), here()).unwrap_err().to_string()
        };
        for (from, to, named) in [
            (r#""percentile": "p50""#, r#""percentile": "p99""#, "the endpoint"),
            (r#""seed": 1"#, r#""seed": 2"#, "the seed"),
            ("12 repeats", "3 repeats", "when measuring stops"),
            (r#""strategies": "4,16""#, r#""strategies": "4,8""#, "cannot be made here"),
            (r#""idle": "park""#, r#""idle": "yield""#, "the settings of the row"),
            (r#""idle""#, r#""idles""#, "no setting idles"),
            ("declaration/1", "declaration/9", "this build reads"),
            ("{", "", "no declaration of a bill"),
        ] {
            let error = refusal(from, to);
            assert!(error.contains(named), "{to}: {error}");
        }
    }
}
