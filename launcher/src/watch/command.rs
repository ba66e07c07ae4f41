//! The command: finds the run, looks at it again and again, and shows what it found, as a
//! terminal's view, as text or as JSON.

use super::flags::WatchFlags;
use super::keys::{Keys, Wish};
use super::metrics::{self, Metrics};
use super::model::Snapshot;
use super::sampler::Sampler;
use super::screen::Screen;
use super::source::Living;
use super::terminal::{self, Typed};
use super::view::{self, NARROW, Shown};
use crate::config::UsageError;
use crate::operator::find_run;
use crate::output;
use crate::runtime::affinity_guard::Aside;
use crate::runtime::signals::{self, Signals};
use anyhow::{Context, Result};
use std::io::{IsTerminal, Write, stdin, stdout};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};
use terminal_size::{Width, terminal_size_of};

/// More looks than that a second would be a load.
const SHORTEST: Duration = Duration::from_millis(50);
/// How often keys and signals are looked for.
const TICK: Duration = Duration::from_millis(50);
/// With `--once`, so many looks catch up with logs that are long already.
const CATCH_UP: usize = 256;
/// A process that is blocked in a write to a terminal or a pipe that nobody reads ends so long
/// after it was asked to.
const GRACE: Duration = Duration::from_secs(1);
/// The exit code where the terminal was closed: that of a SIGHUP.
const CLOSED: u8 = 129;
/// As many lines as a frame of text may have.
const TALL: usize = 1_000;

pub fn watch(flags: &WatchFlags) -> Result<ExitCode> {
    let interval = Duration::from_nanos(flags.interval.0);
    if interval < SHORTEST {
        return Err(UsageError(format!("--interval {}: at least 50ms", flags.interval)).into());
    }
    let metrics = flags.metrics.as_deref().map(Metrics::open).transpose()?;
    let shows = !flags.once && !flags.json && metrics.is_none();
    if shows && !(stdout().is_terminal() && stdin().is_terminal()) {
        let way = "this is no terminal: --once prints one frame, --json a line a look";
        return Err(UsageError(way.into()).into());
    }
    let run = find_run(&flags.run)?;
    let living = Living::open(&run).with_context(|| format!("cannot read run {run}"))?;
    // The run is not to notice.
    Aside::of(&living.plan).stay();
    let mut sampler = Sampler::new(living);
    if flags.once {
        once(&mut sampler, flags.json, interval)?;
        return Ok(ExitCode::SUCCESS);
    }
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    signals::end_anyway(GRACE);
    if let Some(metrics) = metrics {
        measured(&mut sampler, &metrics, interval, &signals)?;
    } else if flags.json {
        stream(&mut sampler, interval, &signals)?;
    } else {
        let screen = Screen::open().context("cannot use the terminal")?;
        let ended = show(&screen, &mut sampler, &run, interval, &signals);
        drop(screen);
        match ended? {
            Ended::Closed => return Ok(ExitCode::from(CLOSED)),
            Ended::Seen(last) if last.state.is_over() => {
                let mut out = output::stdout();
                writeln!(out, "run {} is {}: launcher report {}", last.run, last.state.name(), last.folder)?;
            }
            Ended::Seen(_) => {}
        }
    }
    Ok(signals::exit_code_of_reader())
}

enum Ended {
    /// The user has seen enough, or a signal asked for the end; the last look.
    Seen(Box<Snapshot>),
    Closed,
}

/// Two looks: a rate is a difference.
fn once(sampler: &mut Sampler, json: bool, interval: Duration) -> Result<()> {
    let mut snapshot = sampler.look()?;
    for _ in 0..CATCH_UP {
        if !sampler.is_behind() || snapshot.state.is_over() {
            break;
        }
        snapshot = sampler.look()?;
    }
    if !snapshot.state.is_over() {
        sleep(interval);
        snapshot = sampler.look()?;
    }
    let mut out = output::stdout();
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(&snapshot)?)?;
    } else {
        let size = terminal_size_of(stdout()).filter(|_| stdout().is_terminal());
        let width = size.map_or(80, |(Width(columns), _)| usize::from(columns).max(NARROW));
        for line in view::lines(&snapshot, &Shown::default(), width, TALL) {
            writeln!(out, "{}", line.to_string().trim_end())?;
        }
    }
    Ok(())
}

/// A line a look, the last of them of the run's end.
fn stream(sampler: &mut Sampler, interval: Duration, signals: &Signals) -> Result<()> {
    loop {
        let snapshot = sampler.look()?;
        let mut out = output::stdout_while_read();
        serde_json::to_writer(&mut out, &snapshot)?;
        writeln!(out)?;
        out.flush()?;
        drop(out);
        if snapshot.state.is_over() || wait(interval, || signals.take() > 0) {
            return Ok(());
        }
    }
}

/// Metrics, until the run ends.
fn measured(sampler: &mut Sampler, metrics: &Metrics, interval: Duration, signals: &Signals) -> Result<()> {
    loop {
        let snapshot = sampler.look()?;
        let text = metrics::text(&snapshot);
        metrics.publish(&text)?;
        let wants_end = || {
            metrics.serve(&text);
            signals.take() > 0
        };
        if snapshot.state.is_over() || wait(interval, wants_end) {
            return Ok(());
        }
    }
}

/// Waits that long, or until somebody wants an end; whether somebody did.
fn wait(interval: Duration, wants_end: impl Fn() -> bool) -> bool {
    let until = Instant::now() + interval;
    loop {
        if wants_end() {
            return true;
        }
        match until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => sleep(left.min(TICK)),
            _ => return false,
        }
    }
}

/// The view, until the user has seen enough, a signal comes or the terminal is closed.
fn show(
    screen: &Screen,
    sampler: &mut Sampler,
    run: &str,
    interval: Duration,
    signals: &Signals,
) -> Result<Ended> {
    let mut keys = Keys::new(sampler.plan().trading().strategies);
    let mut snapshot = sampler.look()?;
    let mut next = Instant::now() + interval;
    loop {
        let shown = keys.shown();
        let drawn = screen.draw(&view::frame(&snapshot, &shown, screen.size()));
        let pressed = terminal::typed(signals, TICK.min(next.saturating_duration_since(Instant::now())))?;
        let Typed::Keys(pressed) = pressed else { return Ok(Ended::Closed) };
        drawn?;
        for key in pressed {
            match keys.press(key) {
                Wish::Quit => return Ok(Ended::Seen(Box::new(snapshot))),
                Wish::Give(command) if !snapshot.state.is_over() => keys.give(run, command),
                Wish::Give(_) | Wish::None => {}
            }
        }
        if signals.take() > 0 {
            return Ok(Ended::Seen(Box::new(snapshot)));
        }
        if Instant::now() >= next {
            snapshot = sampler.look()?;
            next = Instant::now() + interval;
        }
    }
}
