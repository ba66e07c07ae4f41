//! The flags of a sweep that is planned in one place and made in many: `--plan`, `--run`, `--join`.

use clap::Args;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The flags of a planned sweep.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedFlags {
    /// The folder of a planned sweep
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// Write the sweep into FOLDER as a list of runs, and print a command for each turn
    #[arg(long, requires = "folder", conflicts_with_all = ["resume", "find_max_rate", "run", "join"], help_heading = "Cluster")]
    pub plan: bool,
    /// Make run K of FOLDER; or K-L, turn:T, all
    #[arg(long, value_name = "K", requires = "folder", conflicts_with_all = ["resume", "find_max_rate", "join"], help_heading = "Cluster")]
    pub run: Option<Chosen>,
    /// Gather the runs of FOLDER and report
    #[arg(long, requires = "folder", conflicts_with_all = ["resume", "find_max_rate"], help_heading = "Cluster")]
    pub join: bool,
}

/// Runs of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// From one to another, both included.
    Runs(u32, u32),
    /// Those of a turn.
    Turn(u32),
    /// Each.
    All,
}

impl FromStr for Chosen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number =
            |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
        let read = match text.split_once('-') {
            _ if text == "all" => Some(Self::All),
            _ if text.starts_with("turn:") => number(&text["turn:".len()..]).map(Self::Turn),
            Some((first, last)) => {
                number(first).zip(number(last)).map(|(first, last)| Self::Runs(first, last))
            }
            None => number(text).map(|only| Self::Runs(only, only)),
        };
        read.filter(|chosen| !matches!(chosen, Self::Runs(first, last) if first > last))
            .ok_or_else(|| format!("{text:?}: give a run's number, K-L, turn:T or all"))
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runs(first, last) if first == last => write!(f, "{first}"),
            Self::Runs(first, last) => write!(f, "{first}-{last}"),
            Self::Turn(turn) => write!(f, "turn:{turn}"),
            Self::All => f.write_str("all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_chosen_by_number_turn_or_all() {
        let read = |text: &str| text.parse::<Chosen>();
        assert_eq!(read("7"), Ok(Chosen::Runs(7, 7)));
        assert_eq!(read("0-3"), Ok(Chosen::Runs(0, 3)));
        assert_eq!(read("turn:2"), Ok(Chosen::Turn(2)));
        assert_eq!(read("all"), Ok(Chosen::All));
        for text in ["7", "0-3", "turn:2", "all"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        for wrong in ["", "-", "3-1", "+3", "turn:", "turn:x", "4294967296", "1-2-3", "every"] {
            assert!(read(wrong).unwrap_err().contains("give a run's number"), "{wrong:?}");
        }
    }
}
