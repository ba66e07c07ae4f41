//! The command line of a bench.

use std::path::PathBuf;

/// Samples of each row unless the command line says otherwise.
const ROUNDS: usize = 31;

/// The options of an exchange benchmark's command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Names of the rows to run; empty for all.
    pub names: Vec<String>,
    pub json: Option<PathBuf>,
    pub rounds: usize,
}

impl Options {
    /// Returns `true` if the options select the benchmark row with this name.
    pub fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

/// The parsed arguments of an exchange benchmark: options, or a request for help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arguments {
    Help,
    Run(Options),
}

/// Returns the help text of the benchmark `bench`, whose rows have these names.
pub fn help(bench: &str, rows: &[&str]) -> String {
    let rows: String = rows.iter().map(|row| format!("  {row}\n")).collect();
    format!(
        "\
Measure every row of a published table by its name, next to its figure.

Usage: cargo bench -p benches --bench {bench} [-- NAME... OPTIONS]

Arguments:
  NAME...        Run only the rows of these names, or whose names contain one

Options:
  --json FILE    Write the rows to FILE as JSON; a relative path begins at the
                 package's folder, where cargo runs benches
  --rounds N     Take N samples of each row, in turns [default: {ROUNDS}]
  --help         Print this text

Rows:
{rows}"
    )
}

/// Parses the benchmark's arguments after the program's name. `rows` are the names of all rows.
///
/// # Errors
/// What is wrong, and what to do.
pub fn parse(arguments: impl Iterator<Item = String>, rows: &[&str]) -> Result<Arguments, String> {
    let mut options = Options { names: Vec::new(), json: None, rounds: ROUNDS };
    let mut arguments = arguments;
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--help" | "-h" => return Ok(Arguments::Help),
            // Cargo's.
            "--bench" => {}
            "--json" => {
                let file = arguments.next().filter(|file| !file.is_empty());
                options.json = Some(file.ok_or("`--json` has no FILE: name one")?.into());
            }
            "--rounds" => {
                let value = arguments.next().unwrap_or_default();
                let rounds = value.parse().ok().filter(|&rounds| rounds > 0);
                options.rounds = rounds.ok_or(format!("`--rounds {value}` is not a count: use 1 or more"))?;
            }
            _ if word.starts_with('-') => return Err(format!("unknown argument `{word}`: see --help")),
            _ if rows.contains(&word.as_str()) => options.names.push(word),
            _ if rows.iter().any(|row| row.contains(word.as_str())) => {
                let matching = rows.iter().filter(|row| row.contains(word.as_str()));
                options.names.extend(matching.map(|row| row.to_string()));
            }
            _ => {
                return Err(format!(
                    "no row has `{word}` in its name: use a part of a name that --help lists"
                ));
            }
        }
    }
    Ok(Arguments::Run(options))
}
