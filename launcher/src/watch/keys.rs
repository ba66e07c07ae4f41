//! Key commands of `watch`: select a strategy, kill, revive, set limits.
//!
//! A command waits for the engine on a thread of its own, so the view goes on.

use super::terminal::Key;
use super::view::Shown;
use crate::config::limits::{limit_of, limit_text};
use crate::operator::LiveRun;
use analysis::numbers::{count, duration};
use protocol::commands::{Command, CommandStatus};
use protocol::kill::Scope;
use protocol::limits::LimitSetting;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// How long a command waits for the engine.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest limit that can be typed.
const LONGEST: usize = 60;

/// What is being asked of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    /// Whether a command for everybody is meant.
    Sure(Command),
    /// A limit, as far as it is typed.
    Limit(String),
}

/// What a key came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    None,
    /// The user has seen enough.
    Quit,
    /// A command for the engine.
    Give(Command),
}

pub struct Keys {
    strategies: u16,
    selected: u16,
    asked: Asked,
    message: String,
    answers: (Sender<String>, Receiver<String>),
}

impl Keys {
    /// For a run of so many strategies.
    pub fn new(strategies: u16) -> Self {
        let (asked, message) = (Asked::Nothing, String::new());
        Self { strategies, selected: 0, asked, message, answers: channel() }
    }

    /// What the view shows of it.
    pub fn shown(&mut self) -> Shown {
        if let Some(said) = self.answers.1.try_iter().last() {
            self.message = said;
        }
        let message = match &self.asked {
            Asked::Nothing => self.message.clone(),
            Asked::Sure(command) => format!("{}? y: yes, anything else: no", text(*command)),
            Asked::Limit(typed) => format!("limit for strategy-{} (CONTROL=VALUE): {typed}_", self.selected),
        };
        Shown { selected: Some(self.selected), message }
    }

    pub fn press(&mut self, key: Key) -> Wish {
        match (std::mem::replace(&mut self.asked, Asked::Nothing), key) {
            (_, Key::Interrupt) => Wish::Quit,
            (Asked::Sure(command), Key::Char('y')) => Wish::Give(command),
            (Asked::Sure(_), _) => Wish::None,
            (Asked::Limit(typed), key) => self.typed(typed, key),
            (Asked::Nothing, key) => self.pressed(key),
        }
    }

    fn pressed(&mut self, key: Key) -> Wish {
        self.message.clear();
        let scope = Scope::Strategy(self.selected);
        match key {
            Key::Char('q') | Key::Escape => return Wish::Quit,
            Key::Up => self.selected = self.selected.saturating_sub(1),
            Key::Down => {
                self.selected = self.selected.saturating_add(1).min(self.strategies.saturating_sub(1));
            }
            Key::Char('k') => return Wish::Give(Command::Kill(scope)),
            Key::Char('r') => return Wish::Give(Command::Revive(scope)),
            Key::Char('K') => self.asked = Asked::Sure(Command::Kill(Scope::All)),
            Key::Char('R') => self.asked = Asked::Sure(Command::Revive(Scope::All)),
            Key::Char('l') => self.asked = Asked::Limit(String::new()),
            _ => {}
        }
        Wish::None
    }

    fn typed(&mut self, mut typed: String, key: Key) -> Wish {
        match key {
            Key::Enter => match limit_of(&typed, Scope::Strategy(self.selected)) {
                Ok(LimitSetting { scope, control, value }) => {
                    return Wish::Give(Command::SetLimit { scope, control: control.code(), value });
                }
                Err(why) => self.message = why,
            },
            Key::Escape => {}
            Key::Backspace => {
                typed.pop();
                self.asked = Asked::Limit(typed);
            }
            Key::Char(c) if c.is_ascii_graphic() && typed.len() < LONGEST => {
                typed.push(c);
                self.asked = Asked::Limit(typed);
            }
            _ => self.asked = Asked::Limit(typed),
        }
        Wish::None
    }

    /// Gives a command to a run, and shows later what came of it.
    pub fn give(&mut self, run: &str, command: Command) {
        self.message = format!("{}: waits for the engine", text(command));
        let (run, answers) = (run.to_owned(), self.answers.0.clone());
        thread::spawn(move || {
            // Nobody may be there to read it any more.
            let _ = answers.send(given(&run, command));
        });
    }
}

/// `kill strategy-0`, `limit strategy-0.max-position=100`.
fn text(command: Command) -> String {
    match command {
        Command::Kill(scope) => format!("kill {scope}"),
        Command::Revive(scope) => format!("revive {scope}"),
        Command::SetLimit { scope, control, value } => {
            match protocol::limits::RiskControl::from_code(control) {
                Some(control) => format!("limit {}", limit_text(&LimitSetting { scope, control, value })),
                None => "limit".into(),
            }
        }
    }
}

fn given(run: &str, command: Command) -> String {
    let what = text(command);
    let answered = LiveRun::find(run).and_then(|run| {
        let (entry, answer) = run.give(command, TIMEOUT)?;
        Ok((answer, run.ns(entry.ticks, answer.seen_ticks)))
    });
    match answered {
        Ok((answer, seen)) if matches!(answer.status, CommandStatus::Done | CommandStatus::Seen) => {
            let cancelled = match answer.orders {
                0 => String::new(),
                orders => format!(", {} open orders cancelled", count(orders)),
            };
            format!("{what}: in force {} after the key{cancelled}", duration(seen))
        }
        Ok((answer, _)) => format!("{what}: refused, {}", answer.status),
        Err(error) => format!("{what}: {error:#}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(keys: &mut Keys, text: &str) -> Wish {
        let mut wish = Wish::None;
        for c in text.chars() {
            let key = match c {
                '\n' => Key::Enter,
                '<' => Key::Backspace,
                '^' => Key::Up,
                'v' => Key::Down,
                '!' => Key::Escape,
                c => Key::Char(c),
            };
            wish = keys.press(key);
        }
        wish
    }

    #[test]
    fn one_strategy_is_killed_at_once_and_everybody_after_a_question() {
        let mut keys = Keys::new(3);
        assert_eq!(press(&mut keys, "vvvvk"), Wish::Give(Command::Kill(Scope::Strategy(2))));
        assert_eq!(press(&mut keys, "^r"), Wish::Give(Command::Revive(Scope::Strategy(1))));
        assert_eq!(press(&mut keys, "K"), Wish::None);
        assert!(keys.shown().message.contains("kill all?"), "{:?}", keys.shown());
        assert_eq!(press(&mut keys, "n"), Wish::None);
        assert_eq!(press(&mut keys, "Ky"), Wish::Give(Command::Kill(Scope::All)));
        assert_eq!(press(&mut keys, "Ry"), Wish::Give(Command::Revive(Scope::All)));
        assert_eq!(press(&mut keys, "q"), Wish::Quit);
        assert_eq!(keys.press(Key::Interrupt), Wish::Quit);
    }

    #[test]
    fn a_limit_is_typed_and_a_wrong_one_named() {
        let mut keys = Keys::new(1);
        let wish = press(&mut keys, "lmax-position=56<k\n");
        let control = protocol::limits::RiskControl::from_name("max-position").unwrap();
        let wanted = Command::SetLimit { scope: Scope::Strategy(0), control: control.code(), value: 5_000 };
        assert_eq!(wish, Wish::Give(wanted));
        assert_eq!(press(&mut keys, "lmax-hope=1\n"), Wish::None);
        assert!(keys.shown().message.contains("max-hope"), "{:?}", keys.shown());
        assert_eq!(press(&mut keys, "lq!"), Wish::None, "what is typed is no command");
        assert_eq!(press(&mut keys, "q"), Wish::Quit);
    }

    #[test]
    fn what_cannot_be_given_is_said() {
        let mut keys = Keys::new(1);
        keys.give("20000101-000000000-1-1", Command::Kill(Scope::All));
        let began = std::time::Instant::now();
        while !keys.shown().message.contains("no run") {
            assert!(began.elapsed() < Duration::from_secs(60), "{:?}", keys.shown());
            thread::sleep(Duration::from_millis(1));
        }
    }
}
