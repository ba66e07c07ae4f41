//! `join`: waits for the engine's side, becomes a run with the venue `remote`, prints its
//! latencies.

use crate::bridge_address::BridgeAddress;
use crate::bridge_dir::BridgeDir;
use crate::figures::{Crossing, FILE};
use crate::pump::{self, BridgeSide, TurnResult};
use crate::transport::Transport;
use crate::venue::{ADDRESS_VARIABLE, first_attempt};
use bridge::frame::{Side, run_digest};
use bridge::link::{Event, Link, Timing};
use clap::Args;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The flags of the command `join`, which makes a run on this host whose orders go to an engine on
/// another host.
#[derive(Args, Clone, Debug)]
pub struct JoinFlags {
    /// Name shared by both sides, and the engine's host and port
    #[arg(value_name = "NAME@HOST:PORT")]
    pub address: BridgeAddress,
    /// The flags of `run`, but --venue, --venues, --credentials and --repeats
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "RUN FLAGS")]
    pub args: Vec<String>,
}

/// The flags that a joined run sets itself.
const FIXED_FLAGS: [&str; 4] = ["--venue", "--venues", "--credentials", "--repeats"];

struct Caller {
    is_answered: bool,
}

impl BridgeSide for Caller {
    fn event(&mut self, event: Event, link: &mut Link) {
        if let Event::Up { .. } = event {
            self.is_answered = true;
            link.hang_up();
        }
    }

    fn turn(&mut self, _: &mut Link, _: u64) -> TurnResult {
        if self.is_answered { TurnResult::Over } else { TurnResult::Idle }
    }
}

/// Waits until the engine's host answers, then executes the run's launcher in place of this
/// process; returns only after an error.
pub fn join(flags: &JoinFlags) -> ExitCode {
    let name_of = |arg: &String| arg.split('=').next().map(str::to_owned);
    if let Some(flag) =
        flags.args.iter().filter_map(name_of).find(|name| FIXED_FLAGS.contains(&name.as_str()))
    {
        eprintln!(
            "error: {flag} cannot be set for a joined run: it has one venue, the engine's host, and is made once"
        );
        return ExitCode::from(2);
    }
    eprintln!("calling {} …", flags.address);
    if let Err(why) = call(&flags.address) {
        eprintln!("error: {why}");
        return ExitCode::FAILURE;
    }
    let me = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("bulkhead-bridge"));
    let error = Command::new(me)
        .env(ADDRESS_VARIABLE, flags.address.to_string())
        .args(["run", "--venue", "remote", "--venues", "1"])
        .args(&flags.args)
        .exec();
    eprintln!("error: cannot start the run: {error}");
    ExitCode::FAILURE
}

fn call(address: &BridgeAddress) -> Result<(), String> {
    let dir = BridgeDir::for_process("call").map_err(|error| error.to_string())?;
    let _guard = dir.guard();
    let called = dir.driver_dir().map_err(|error| error.to_string()).and_then(|folder| {
        let transport =
            Transport::open(Side::Strategy, address, &folder).map_err(|error| error.to_string())?;
        let link = Link::strategy_side(run_digest(&address.name), first_attempt(), Timing::default());
        let (_, result) = pump::run(transport, link, &mut Caller { is_answered: false });
        result.map_err(|error| error.to_string())
    });
    dir.remove();
    called
}

/// Prints the latencies between the hosts after a run that `join` started, unless `--json` was
/// given; prints nothing after other runs.
pub fn show(args: &[String]) {
    if std::env::var_os(ADDRESS_VARIABLE).is_none() {
        return;
    }
    match find_crossing(args) {
        Some(_) if args.iter().any(|arg| arg == "--json") => {}
        Some(crossing) => print!("{}", crossing.table()),
        None => eprintln!("what crossed is not known: no {FILE} of this run"),
    }
}

/// Finds the figures of this process's run, whose id ends with the PID.
fn find_crossing(args: &[String]) -> Option<Crossing> {
    let out = args.iter().enumerate().find_map(|(at, arg)| match arg.strip_prefix("--out") {
        Some("") => args.get(at + 1).cloned(),
        Some(rest) => rest.strip_prefix('=').map(str::to_owned),
        None => None,
    });
    let mine = format!("-{}", std::process::id());
    let entries = std::fs::read_dir(out.as_deref().unwrap_or("runs")).ok()?;
    let known = entries.flatten().filter_map(|entry| Crossing::read(&entry.path()).ok());
    known.filter(|crossing| crossing.run.ends_with(&mine)).max_by(|one, other| one.run.cmp(&other.run))
}
