use super::*;
use clap::error::ErrorKind;
use planner::config::{Common, RunFlags, Settings};
use protocol::plan::FaultKind;
use record::units::Count;

fn parse(line: &str) -> Result<Command, clap::Error> {
    let arguments = std::iter::once("launcher").chain(line.split_whitespace());
    Cli::read_from(arguments.map(Into::into)).map(|cli| cli.command)
}

fn run(line: &str) -> Settings {
    match parse(&format!("run {line}")) {
        Ok(Command::Run(flags)) => flags.run.settings().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn layers_are_merged_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("b.yaml");
    std::fs::write(&path, "strategies: 3\nvenues: 7\n").unwrap();
    let settings = run(&format!("--preset seed --venues 2 --config {}", path.display()));
    assert_eq!(settings.venues, Some(Count(2)), "command line");
    assert_eq!(settings.strategies, Some(Count(3)), "file");
    assert_eq!(settings.orders, Some(Count(4_000_000)), "preset");
    let flags = RunFlags {
        common: Common { config: Some(dir.path().join("none.yaml")), ..Common::default() },
        ..RunFlags::default()
    };
    assert!(flags.settings().unwrap_err().to_string().contains("none.yaml"));
}

#[test]
fn mistyped_command_is_suggested() {
    for (typed, wanted) in [("rnu", "'run'"), ("swep", "'sweep'"), ("contian", "'contain'")] {
        let error = parse(typed).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidSubcommand);
        assert!(error.to_string().contains(wanted), "{error}");
    }
    assert!(!parse("zzz").unwrap_err().to_string().contains("similar"));
}

#[test]
fn a_wrong_value_says_what_would_be_right() {
    for (line, expected) in [
        ("run --cores 3-1", "0,2-5"),
        ("run --strategie 2", "--strateg"),
        ("run --strategy 2", "player"),
        ("inspct", "inspect"),
        ("inspect runs/x --order 17", "STRATEGY/SEQUENCE"),
        ("inspect runs/x --json --csv", "--csv"),
        ("run --window -5s", "'--window <DUR>': \"-5s\" is negative"),
        ("kill latest --all --timeout -1.5ms", "is negative"),
    ] {
        let error = parse(line).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains(expected), "{line}: {error}");
    }
}

#[test]
fn last_of_repeated_flags_wins() {
    let settings =
        run("--strategies 2 --technique linked --strategies 3 --technique pipe --window 1s --window 2s");
    assert_eq!((settings.strategies, settings.window), (Some(Count(3)), Some(Nanos(2_000_000_000))));
    assert_eq!(settings.technique.map(|technique| technique.to_string()).as_deref(), Some("pipe"));
    // Those that may be repeated are still added up, and switches may be repeated.
    assert_eq!(run("--fault kill@1s --fault hang@2s").fault.unwrap().0.len(), 2);
    match parse("list runs --json --json") {
        Ok(Command::List(flags)) => assert!(flags.json),
        other => panic!("{other:?}"),
    }
    assert!(parse("kill latest --strategy 0 --all").is_err(), "one target");
}

#[test]
fn words_of_an_experiment_are_left_to_its_program() {
    for line in ["compare --a x --help", "lab", "resume runs/x -h", "help bill", "sweep --work 0ns"] {
        assert!(matches!(parse(line), Ok(Command::Experiment(_))), "{line}");
    }
}

#[test]
fn start_timeout_is_in_help() {
    assert!(parse("run --help --all").unwrap_err().to_string().contains("--start-timeout <DUR>"));
}

#[test]
fn first_help_has_every_command_in_24_lines() {
    let help = |line: &str| parse(line).unwrap_err().to_string();
    let first = help("--help");
    assert!(first.lines().count() <= 24, "{first}");
    let is_named =
        |name: &str| first.split(|c: char| c != '-' && !c.is_alphanumeric()).any(|word| word == name);
    let command = command();
    let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(clap::Command::get_name);
    let missing: Vec<&str> = visible.filter(|name| !is_named(name)).collect();
    assert_eq!(missing, [""; 0], "{first}");
    assert_eq!([help("help"), help("-h"), help("")], [first.clone(), first.clone(), first.clone()]);
    let all = help("help --all");
    assert!(all.contains("Usage: launcher") && all.contains("completions  Print a shell"), "{all}");
    assert_eq!(help("--help --all"), all);
    for topic in ["units", "faults", "verdicts", "exit-codes"] {
        assert!(help(&format!("help {topic}")).lines().count() > 4 && first.contains(topic), "{topic}");
    }
    assert!(help("help unitz").contains("unitz"));
}

#[test]
fn first_help_of_run_has_twelve_flags() {
    let help = |line: &str| parse(line).unwrap_err().to_string();
    let first = help("run --help");
    let flags = |help: &str| help.lines().filter(|line| line.trim_start().starts_with("--")).count();
    assert_eq!(flags(&first), 12, "{first}");
    assert!(first.trim_end().lines().last().unwrap().ends_with("launcher help run --all"), "{first}");
    assert_eq!([help("help run"), help("run -h")], [first.clone(), first]);
    let all = help("help run --all");
    assert!(flags(&all) > 40 && all.contains("--start-timeout"), "{all}");
    assert_eq!(help("run --help --all"), all);
}

#[test]
fn help_fits_eighty_columns() {
    let commands = " run inspect report kill revive limits watch doctor clean";
    let topics =
        ["help --all", "help run --all", "help units", "help faults", "help verdicts", "help exit-codes"];
    let lines = commands.split(' ').map(|command| format!("{command} --help"));
    for line in lines.chain(topics.map(String::from)) {
        let help = parse(&line).unwrap_err();
        assert_eq!(help.kind(), ErrorKind::DisplayHelp);
        let help = help.to_string();
        println!("{help}");
        for text in help.lines() {
            assert!(text.chars().count() <= 80, "{line}: {text}");
        }
    }
}

#[test]
fn run_help_lists_every_kind_of_fault() {
    let help = parse("help run --all").unwrap_err().to_string();
    let missing = |help: &str| -> Vec<&str> {
        let kinds = help.split("  KIND ").nth(1).and_then(|rest| rest.split("  TARGET ").next());
        let named: Vec<&str> =
            kinds.unwrap().split(|char: char| char != '-' && !char.is_alphanumeric()).collect();
        FaultKind::ALL.iter().map(|kind| kind.name()).filter(|name| !named.contains(name)).collect()
    };
    assert_eq!(missing(&help), [""; 0], "{help}");
    assert_eq!(missing(&help.replace("punch", "")), ["punch"], "a kind that is left out is found");
}
