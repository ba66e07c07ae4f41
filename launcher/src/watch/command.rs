//! The command `launcher watch`: polls an active run and shows it as a terminal view, text or
//! JSON.

use super::flags::WatchFlags;
use super::keys::{KeyAction, Keys};
use super::model::Snapshot;
use super::sampler::Sampler;
use super::screen::Screen;
use super::source::ActiveRunView;
use super::terminal::{self, KeyInput};
use super::view::{self, NARROW, PromptView};
use crate::config::UsageError;
use crate::operator::find_run;
use crate::output;
use crate::runtime::affinity_guard::AffinityGuard;
use crate::runtime::signals::{self, Signals};
use anyhow::{Context, Result};
use std::io::{IsTerminal, Write, stdin, stdout};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};
use terminal_size::{Width, terminal_size_of};

/// Minimum interval: more frequent polls would be a load.
const MIN_INTERVAL: Duration = Duration::from_millis(50);
/// Poll interval of keys and signals.
const TICK: Duration = Duration::from_millis(50);
/// With `--once`, the maximum number of polls to catch up with long logs.
const CATCH_UP: usize = 256;
/// How long after a termination signal a process exits that is blocked in a write.
const GRACE: Duration = Duration::from_secs(1);
/// Exit code if the terminal was closed: that of SIGHUP.
const CLOSED: u8 = 129;
/// Maximum number of lines of a text frame.
const MAX_LINES: usize = 1_000;

pub fn watch(flags: &WatchFlags) -> Result<ExitCode> {
    let interval = Duration::from_nanos(flags.interval.0);
    if interval < MIN_INTERVAL {
        return Err(UsageError(format!("--interval {}: at least 50ms", flags.interval)).into());
    }
    let shows = !flags.once && !flags.json;
    if shows && !(stdout().is_terminal() && stdin().is_terminal()) {
        let way = "not a terminal: use --once for one frame, or --json for a line each poll";
        return Err(UsageError(way.into()).into());
    }
    let run = find_run(&flags.run)?;
    let living = ActiveRunView::open(&run).with_context(|| format!("cannot read run {run}"))?;
    // Keeps off the run's cores.
    AffinityGuard::move_off(&living.plan).keep();
    let mut sampler = Sampler::new(living);
    if flags.once {
        once(&mut sampler, flags.json, interval)?;
        return Ok(ExitCode::SUCCESS);
    }
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    signals::exit_after_signal(GRACE);
    if flags.json {
        stream(&mut sampler, interval, &signals)?;
    } else {
        let screen = Screen::open().context("cannot use the terminal")?;
        let ended = run_view(&screen, &mut sampler, &run, interval, &signals);
        drop(screen);
        match ended? {
            WatchEnd::Closed => return Ok(ExitCode::from(CLOSED)),
            WatchEnd::Seen(last) if last.state.is_over() => {
                let mut out = output::stdout();
                writeln!(out, "run {} is {}: launcher report {}", last.run, last.state.name(), last.folder)?;
            }
            WatchEnd::Seen(_) => {}
        }
    }
    Ok(signals::exit_code_of_reader())
}

enum WatchEnd {
    /// The user quit, or a signal came; the last snapshot.
    Seen(Box<Snapshot>),
    Closed,
}

/// Polls twice, since a rate is a difference, and prints one frame.
fn once(sampler: &mut Sampler, json: bool, interval: Duration) -> Result<()> {
    let mut snapshot = sampler.poll()?;
    for _ in 0..CATCH_UP {
        if !sampler.is_behind() || snapshot.state.is_over() {
            break;
        }
        snapshot = sampler.poll()?;
    }
    if !snapshot.state.is_over() {
        sleep(interval);
        snapshot = sampler.poll()?;
    }
    let mut out = output::stdout();
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(&snapshot)?)?;
    } else {
        let size = terminal_size_of(stdout()).filter(|_| stdout().is_terminal());
        let width = size.map_or(80, |(Width(columns), _)| usize::from(columns).max(NARROW));
        for line in view::lines(&snapshot, &PromptView::default(), width, MAX_LINES) {
            writeln!(out, "{}", line.to_string().trim_end())?;
        }
    }
    Ok(())
}

/// Prints a line for each poll, the last one at the run's end.
fn stream(sampler: &mut Sampler, interval: Duration, signals: &Signals) -> Result<()> {
    loop {
        let snapshot = sampler.poll()?;
        let mut out = output::stdout_while_read();
        serde_json::to_writer(&mut out, &snapshot)?;
        writeln!(out)?;
        out.flush()?;
        drop(out);
        if snapshot.state.is_over() || wait(interval, signals) {
            return Ok(());
        }
    }
}

/// Waits for the interval. Returns `true` if an end was requested.
fn wait(interval: Duration, signals: &Signals) -> bool {
    let until = Instant::now() + interval;
    loop {
        if signals.take_requests() > 0 {
            return true;
        }
        match until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => sleep(left.min(TICK)),
            _ => return false,
        }
    }
}

/// Runs the terminal view until the user quits, a signal comes or the terminal is closed.
fn run_view(
    screen: &Screen,
    sampler: &mut Sampler,
    run: &str,
    interval: Duration,
    signals: &Signals,
) -> Result<WatchEnd> {
    let mut keys = Keys::new(sampler.plan().trading().strategies);
    let mut snapshot = sampler.poll()?;
    let mut next = Instant::now() + interval;
    loop {
        let shown = keys.shown();
        let drawn = screen.draw(&view::frame(&snapshot, &shown, screen.size()));
        let pressed = terminal::read_keys(signals, TICK.min(next.saturating_duration_since(Instant::now())))?;
        let KeyInput::Keys(pressed) = pressed else { return Ok(WatchEnd::Closed) };
        drawn?;
        for key in pressed {
            match keys.press(key) {
                KeyAction::Quit => return Ok(WatchEnd::Seen(Box::new(snapshot))),
                KeyAction::Give(command) if !snapshot.state.is_over() => keys.give(run, command),
                KeyAction::Give(_) | KeyAction::None => {}
            }
        }
        if signals.take_requests() > 0 {
            return Ok(WatchEnd::Seen(Box::new(snapshot)));
        }
        if Instant::now() >= next {
            snapshot = sampler.poll()?;
            next = Instant::now() + interval;
        }
    }
}
