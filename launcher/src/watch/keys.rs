//! Key commands of `watch`: select a strategy, kill, revive, set limits.
//!
//! A command waits for the engine on its own thread, so the view continues.

use super::terminal::Key;
use super::view::PromptView;
use crate::config::limits::{limit_of, limit_text};
use crate::operator::ActiveRunHandle;
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

/// The current prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PromptState {
    Nothing,
    /// Confirmation of a command for all strategies.
    Sure(Command),
    /// The limit typed so far.
    Limit(String),
}

/// The action that a key press in `launcher watch` selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAction {
    None,
    /// Quits `launcher watch`.
    Quit,
    /// Sends a command to the engine.
    Give(Command),
}

pub struct Keys {
    strategies: u16,
    selected: u16,
    prompt: PromptState,
    message: String,
    answers: (Sender<String>, Receiver<String>),
}

impl Keys {
    /// Creates the key handler of `launcher watch` for a run of `strategies` strategies.
    pub fn new(strategies: u16) -> Self {
        let (asked, message) = (PromptState::Nothing, String::new());
        Self { strategies, selected: 0, prompt: asked, message, answers: channel() }
    }

    /// Returns the selected strategy, the prompt and the messages for display.
    pub fn shown(&mut self) -> PromptView {
        if let Some(said) = self.answers.1.try_iter().last() {
            self.message = said;
        }
        let message = match &self.prompt {
            PromptState::Nothing => self.message.clone(),
            PromptState::Sure(command) => format!("{}? y: yes, anything else: no", text(*command)),
            PromptState::Limit(typed) => {
                format!("limit for strategy-{} (CONTROL=VALUE): {typed}_", self.selected)
            }
        };
        PromptView { selected: Some(self.selected), message }
    }

    pub fn press(&mut self, key: Key) -> KeyAction {
        match (std::mem::replace(&mut self.prompt, PromptState::Nothing), key) {
            (_, Key::Interrupt) => KeyAction::Quit,
            (PromptState::Sure(command), Key::Char('y')) => KeyAction::Give(command),
            (PromptState::Sure(_), _) => KeyAction::None,
            (PromptState::Limit(typed), key) => self.typed(typed, key),
            (PromptState::Nothing, key) => self.pressed(key),
        }
    }

    fn pressed(&mut self, key: Key) -> KeyAction {
        self.message.clear();
        let scope = Scope::Strategy(self.selected);
        match key {
            Key::Char('q') | Key::Escape => return KeyAction::Quit,
            Key::Up => self.selected = self.selected.saturating_sub(1),
            Key::Down => {
                self.selected = self.selected.saturating_add(1).min(self.strategies.saturating_sub(1));
            }
            Key::Char('k') => return KeyAction::Give(Command::Kill(scope)),
            Key::Char('r') => return KeyAction::Give(Command::Revive(scope)),
            Key::Char('K') => self.prompt = PromptState::Sure(Command::Kill(Scope::All)),
            Key::Char('R') => self.prompt = PromptState::Sure(Command::Revive(Scope::All)),
            Key::Char('l') => self.prompt = PromptState::Limit(String::new()),
            _ => {}
        }
        KeyAction::None
    }

    fn typed(&mut self, mut typed: String, key: Key) -> KeyAction {
        match key {
            Key::Enter => match limit_of(&typed, Scope::Strategy(self.selected)) {
                Ok(LimitSetting { scope, control, value }) => {
                    return KeyAction::Give(Command::SetLimit { scope, control: control.code(), value });
                }
                Err(why) => self.message = why,
            },
            Key::Escape => {}
            Key::Backspace => {
                typed.pop();
                self.prompt = PromptState::Limit(typed);
            }
            Key::Char(c) if c.is_ascii_graphic() && typed.len() < LONGEST => {
                typed.push(c);
                self.prompt = PromptState::Limit(typed);
            }
            _ => self.prompt = PromptState::Limit(typed),
        }
        KeyAction::None
    }

    /// Sends an operator's command to a run, without waiting for the result.
    pub fn give(&mut self, run: &str, command: Command) {
        self.message = format!("{}: waits for the engine", text(command));
        let (run, answers) = (run.to_owned(), self.answers.0.clone());
        thread::spawn(move || {
            // The view may have quit.
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
    let answered = ActiveRunHandle::find(run).and_then(|run| {
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

    fn press(keys: &mut Keys, text: &str) -> KeyAction {
        let mut wish = KeyAction::None;
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
    fn kill_all_needs_confirmation_kill_one_does_not() {
        let mut keys = Keys::new(3);
        assert_eq!(press(&mut keys, "vvvvk"), KeyAction::Give(Command::Kill(Scope::Strategy(2))));
        assert_eq!(press(&mut keys, "^r"), KeyAction::Give(Command::Revive(Scope::Strategy(1))));
        assert_eq!(press(&mut keys, "K"), KeyAction::None);
        assert!(keys.shown().message.contains("kill all?"), "{:?}", keys.shown());
        assert_eq!(press(&mut keys, "n"), KeyAction::None);
        assert_eq!(press(&mut keys, "Ky"), KeyAction::Give(Command::Kill(Scope::All)));
        assert_eq!(press(&mut keys, "Ry"), KeyAction::Give(Command::Revive(Scope::All)));
        assert_eq!(press(&mut keys, "q"), KeyAction::Quit);
        assert_eq!(keys.press(Key::Interrupt), KeyAction::Quit);
    }

    #[test]
    fn a_limit_is_typed_and_a_wrong_one_named() {
        let mut keys = Keys::new(1);
        let wish = press(&mut keys, "lmax-position=56<k\n");
        let control = protocol::limits::RiskControl::from_name("max-position").unwrap();
        let wanted = Command::SetLimit { scope: Scope::Strategy(0), control: control.code(), value: 5_000 };
        assert_eq!(wish, KeyAction::Give(wanted));
        assert_eq!(press(&mut keys, "lmax-hope=1\n"), KeyAction::None);
        assert!(keys.shown().message.contains("max-hope"), "{:?}", keys.shown());
        assert_eq!(press(&mut keys, "lq!"), KeyAction::None, "what is typed is no command");
        assert_eq!(press(&mut keys, "q"), KeyAction::Quit);
    }

    #[test]
    fn failed_command_is_reported() {
        let mut keys = Keys::new(1);
        keys.give("20000101-000000000-1-1", Command::Kill(Scope::All));
        let began = std::time::Instant::now();
        while !keys.shown().message.contains("no run") {
            assert!(began.elapsed() < Duration::from_secs(60), "{:?}", keys.shown());
            thread::sleep(Duration::from_millis(1));
        }
    }
}
