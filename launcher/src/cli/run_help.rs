//! The text below the help of `run`: examples, and the syntax and the kinds of faults.

use protocol::plan::FaultKind;

const EXAMPLES: &str = "\
Examples:
  launcher run
  launcher run --strategies 2 --orders 400k --window 10s
  launcher run --isolation thread --delay fixed:5ms --arrivals poisson
  launcher run --schedule flow.csv --speed 10
  launcher run --config bulkhead.yaml --json
  launcher run --strategies 4 --on-death continue --fault kill:strategy-3@2s
  launcher run --strategies 2 --fault 'kill:any@1s every 100ms'

";

const FAULTS: &str = "\
Faults: KIND[:TARGET][@WHEN][ every DUR][ for DUR], several with ; between:
";

const FAULT_SYNTAX: &str = "
  TARGET   strategy-N, any (drawn by the seed), engine, launcher, gateway-N,
           exchange-N, venue-N [any]
  WHEN     2s after the start [a tenth of the window, at least 100ms];
           order:N, at the strategy's order N; or push:STEP:N, within the push
           of it: entered, allocated, linked, announced, claimed, half-written,
           written, published, as far as the technique has that step
  every    kill and stop at a time come again and again
  for      how long the fault of a venue lasts [until the end]

Command line goes over config file, over preset, over defaults. The file has
the flags' names as keys, for example: `max_open: 4096`.";

/// The flags that `launcher run --help` shows; all are in `launcher help run --all`.
pub(super) const FIRST_FLAGS: [&str; 12] = [
    "technique",
    "isolation",
    "strategies",
    "strategy",
    "orders",
    "window",
    "idle",
    "on_death",
    "fault",
    "report",
    "json",
    "dry_run",
];

/// The text below the first help of `run`.
pub(super) const FIRST_EXAMPLES: &str = "\
Examples:
  launcher run
  launcher run --strategies 2 --orders 400k --window 10s
  launcher run --isolation thread --idle spin
  launcher run --strategies 4 --on-death restart --fault kill:strategy-3@2s

All flags, kinds of faults and keys of a file: launcher help run --all";

/// Builds the text below the help of `run`, with every kind of fault in it.
pub(super) fn examples() -> String {
    format!("{EXAMPLES}{}", faults())
}

/// Builds the text on faults: their syntax and every kind.
pub(super) fn faults() -> String {
    let kinds = |of_venue| FaultKind::ALL.iter().filter(move |kind| kind.is_of_venue() == of_venue);
    let names = kinds(false).map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    let of_venues = kinds(true).map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    let indent = " ".repeat(11);
    let mut lines = vec!["  KIND    ".to_owned()];
    for word in format!("{names}; of a venue: {of_venues}").split(' ') {
        if lines.last().is_none_or(|line| line.len() + 1 + word.len() > 79) {
            lines.push(indent.clone());
        }
        if let Some(line) = lines.last_mut() {
            if !line.ends_with(&indent) {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    format!("{FAULTS}{}{FAULT_SYNTAX}", lines.join("\n"))
}
