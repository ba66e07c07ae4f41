//! A journal's folder from the command line: `cargo run -p journal --example journal -- COMMAND FOLDER`.

use journal::tool::{self, Form};
use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "usage: journal COMMAND FOLDER
  list    segments and snapshots
  verify  read everything as recovery would
  text, json, csv  every record
  follow  every record, and those that come
  cut     give up everything from the first damaged record on (copied to aside-… first)";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [command, folder] = &words[..] else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let (folder, mut out) = (Path::new(folder), stdout().lock());
    let nap = || {
        std::thread::sleep(Duration::from_millis(1));
        true
    };
    let done = match command.as_str() {
        "list" => tool::list(folder, &mut out).map(|()| true),
        "verify" => tool::verify(folder, &mut out),
        "text" => tool::dump(folder, None, Form::Text, &mut out, || false).map(|_| true),
        "json" => tool::dump(folder, None, Form::Json, &mut out, || false).map(|_| true),
        "csv" => tool::dump(folder, None, Form::Csv, &mut out, || false).map(|_| true),
        "follow" => tool::dump(folder, None, Form::Text, &mut out, nap).map(|_| true),
        "cut" => {
            tool::cut(folder).and_then(|left| Ok(writeln!(out, "{left} records are left").map(|()| true)?))
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
