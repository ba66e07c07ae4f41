//! The far host's command: `bulkhead-bridge join NAME@HOST:PORT …` waits until the engine's side
//! answers, and becomes a run of this host whose venue is `remote`. Behind the run it prints what
//! crossed.

use crate::figures::{Crossing, FILE};
use crate::meeting::Meeting;
use crate::place::Place;
use crate::pump::{self, Part, Turn};
use crate::transport::Transport;
use crate::venue::{MEETING, first_attempt};
use bridge::frame::{Side, run_digest};
use bridge::link::{Event, Link, Timing};
use clap::Args;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Makes a run of this host whose orders go to an engine on another one.
#[derive(Args, Clone, Debug)]
pub struct JoinFlags {
    /// The name that both sides say, and the engine's host with its port
    #[arg(value_name = "NAME@HOST:PORT")]
    pub meeting: Meeting,
    /// The flags of `run`, but --venue, --venues, --credentials and --repeats
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "RUN FLAGS")]
    pub words: Vec<String>,
}

/// The flags that a joined run has already.
const TAKEN: [&str; 4] = ["--venue", "--venues", "--credentials", "--repeats"];

/// Calls until somebody answers.
struct Caller {
    is_answered: bool,
}

impl Part for Caller {
    fn event(&mut self, event: Event, link: &mut Link) {
        if let Event::Up { .. } = event {
            self.is_answered = true;
            link.hang_up();
        }
    }

    fn turn(&mut self, _: &mut Link, _: u64) -> Turn {
        if self.is_answered { Turn::Over } else { Turn::Idle }
    }
}

/// Waits for the engine's side, then becomes the run. Returns only what kept it from that.
pub fn join(flags: &JoinFlags) -> ExitCode {
    let name_of = |word: &String| word.split('=').next().map(str::to_owned);
    if let Some(taken) = flags.words.iter().filter_map(name_of).find(|name| TAKEN.contains(&name.as_str())) {
        eprintln!(
            "error: {taken} cannot be set for a joined run: it has one venue, the engine's host, and is made once"
        );
        return ExitCode::from(2);
    }
    eprintln!("calling {} …", flags.meeting);
    if let Err(why) = call(&flags.meeting) {
        eprintln!("error: {why}");
        return ExitCode::FAILURE;
    }
    let me = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("bulkhead-bridge"));
    let error = Command::new(me)
        .env(MEETING, flags.meeting.to_string())
        .args(["run", "--venue", "remote", "--venues", "1"])
        .args(&flags.words)
        .exec();
    eprintln!("error: cannot start the run: {error}");
    ExitCode::FAILURE
}

fn call(meeting: &Meeting) -> Result<(), String> {
    let place = Place::alone("call").map_err(|error| error.to_string())?;
    let _guard = place.guard();
    let called = place.for_driver().map_err(|error| error.to_string()).and_then(|folder| {
        let transport = Transport::open(Side::Far, meeting, &folder).map_err(|error| error.to_string())?;
        let link = Link::far(run_digest(&meeting.name), first_attempt(), Timing::default());
        let (_, result) = pump::run(transport, link, &mut Caller { is_answered: false });
        result.map_err(|error| error.to_string())
    });
    place.remove();
    called
}

/// What crossed in the run that this process was, if it was one that `join` began.
pub fn show(words: &[String]) {
    if std::env::var_os(MEETING).is_none() {
        return;
    }
    match crossing_of(words) {
        Some(_) if words.iter().any(|word| word == "--json") => {}
        Some(crossing) => print!("{}", crossing.table()),
        None => eprintln!("what crossed is not known: no {FILE} of this run"),
    }
}

/// That of this process's run, whose id ends with the process's.
fn crossing_of(words: &[String]) -> Option<Crossing> {
    let out = words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix("--out") {
        Some("") => words.get(at + 1).cloned(),
        Some(rest) => rest.strip_prefix('=').map(str::to_owned),
        None => None,
    });
    let mine = format!("-{}", std::process::id());
    let entries = std::fs::read_dir(out.as_deref().unwrap_or("runs")).ok()?;
    let known = entries.flatten().filter_map(|entry| Crossing::read(&entry.path()).ok());
    known.filter(|crossing| crossing.run.ends_with(&mine)).max_by(|one, other| one.run.cmp(&other.run))
}
