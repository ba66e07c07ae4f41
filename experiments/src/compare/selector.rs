//! Parses a side of a comparison, `--a isolation=thread`: which saved runs, or which settings to
//! measure.

use super::load::SettingRuns;
use crate::flags::{AxisValue, read_value};
use analysis::experiment::Axis;
use planner::config::{Settings, UsageError, nearest};

/// The settings that select one side of a comparison: `--a` or `--b`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideSelector {
    /// The flag: `a` or `b`.
    flag: &'static str,
    /// The selected settings, as keys and texts from the command line.
    pub pairs: Vec<(String, String)>,
    pub settings: Settings,
    pub rate: Option<AxisValue>,
}

impl SideSelector {
    /// Parses one side of a comparison: `isolation=thread,technique=spsc-mux`.
    pub fn parse(flag: &'static str, text: &str) -> Result<Self, UsageError> {
        let mut side = Self { flag, ..Self::default() };
        for word in text.split([' ', ',']).filter(|word| !word.is_empty()) {
            let wrong = |message: String| UsageError(format!("--{flag} {word:?}: {message}"));
            let Some((key, value)) = word.split_once('=') else {
                return Err(wrong("expected KEY=VALUE, for example isolation=thread".into()));
            };
            let key = key.trim_start_matches('-').replace('-', "_");
            let known = || std::iter::once("rate").chain(Settings::KEYS.iter().copied());
            if !known().any(|name| name == key) {
                return Err(wrong(match nearest(&key, known()) {
                    Some(near) => format!("there is no {key}: did you mean {near}?"),
                    None => {
                        format!("there is no {key}; there are {}", known().collect::<Vec<_>>().join(", "))
                    }
                }));
            }
            if value.is_empty() {
                return Err(wrong(format!("{key} has no value: give {key}=VALUE")));
            }
            if matches!(key.as_str(), "seed" | "repeats" | "out" | "preset") {
                return Err(wrong(format!("{key} is the same for both sides: give it as --{key}")));
            }
            if key == "rate" {
                side.rate = Some(read_value(Axis::Rate, value)?);
            } else {
                match side.settings.set(&key, value) {
                    Some(Ok(())) => {}
                    Some(Err(message)) => return Err(wrong(message)),
                    None => return Err(wrong(format!("there is no {key}"))),
                }
            }
            side.pairs.push((key, value.to_owned()));
        }
        if side.pairs.is_empty() {
            return Err(UsageError(format!(
                "--{flag} is empty: give KEY=VALUE, for example isolation=thread"
            )));
        }
        Ok(side)
    }

    /// Returns the groups of saved runs whose settings match this side of the comparison (`--a` or
    /// `--b`).
    pub fn choose(&self, cells: &[SettingRuns]) -> Result<Vec<SettingRuns>, UsageError> {
        let flag = self.flag;
        for (key, text) in &self.pairs {
            let texts: Vec<&str> = cells.iter().filter_map(|cell| value(cell, key)).collect();
            if !texts.iter().any(|found| is_same_value(key, found, text)) {
                let mut there = texts.clone();
                there.sort_unstable();
                there.dedup();
                let there = if there.is_empty() { "nothing of it".into() } else { there.join(", ") };
                return Err(UsageError(format!("--{flag} {key}={text}: the folder holds {there}")));
            }
        }
        let fits = |cell: &&SettingRuns| {
            self.pairs
                .iter()
                .all(|(key, text)| value(cell, key).is_some_and(|found| is_same_value(key, found, text)))
        };
        let chosen: Vec<SettingRuns> = cells.iter().filter(fits).cloned().collect();
        if chosen.is_empty() {
            return Err(UsageError(format!("--{flag}: no setting in the folder has all of that")));
        }
        Ok(chosen)
    }
}

fn value<'a>(cell: &'a SettingRuns, key: &str) -> Option<&'a str> {
    cell.key.iter().find(|(name, _)| name == key).map(|(_, text)| text.as_str())
}

/// `1us` is `1000ns`.
fn is_same_value(key: &str, found: &str, asked: &str) -> bool {
    Axis::from_name(key).map_or(found == asked, |axis| axis.is_same_value(found, asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(isolation: &str, work: &str) -> SettingRuns {
        let key = [("isolation", isolation), ("work", work), ("capacity", "1024")];
        SettingRuns {
            name: format!("{isolation} {work}"),
            key: key.map(|(key, text)| (key.to_owned(), text.to_owned())).to_vec(),
            runs: Vec::new(),
        }
    }

    #[test]
    fn words_choose_cells_whatever_the_spelling() {
        let cells = [cell("thread", "0ns"), cell("process", "1000ns")];
        let names = |text| {
            let chosen = SideSelector::parse("a", text).unwrap().choose(&cells);
            chosen.map(|cells| cells.into_iter().map(|cell| cell.name).collect::<Vec<_>>())
        };
        assert_eq!(names("isolation=process,work=1us").unwrap(), ["process 1000ns"]);
        assert_eq!(names("capacity=1024").unwrap().len(), 2);
        assert!(names("work=2us").unwrap_err().to_string().contains("the folder holds 0ns, 1000ns"));
        assert!(names("isolation=thread work=1us").unwrap_err().to_string().contains("has all of that"));
        assert!(names("venues=2").unwrap_err().to_string().contains("holds nothing of it"));
    }

    #[test]
    fn words_that_are_none_are_named() {
        let wrong = |text| SideSelector::parse("b", text).unwrap_err().to_string();
        assert!(wrong("thread").contains("KEY=VALUE"));
        assert!(wrong("").contains("--b is empty"));
        assert!(wrong("isolation=thred").contains("did you mean thread?"));
        assert!(wrong("colour=red").contains("there is no colour; there are rate, technique"));
        assert!(wrong("technik=").contains("there is no technik: did you mean technique?"));
        assert!(wrong("technique=").contains("technique has no value"));
        assert!(wrong("seed=4").contains("give it as --seed"));
        assert!(wrong("rate=x").contains("--rate"));
    }
}
