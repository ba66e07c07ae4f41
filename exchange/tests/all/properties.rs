//! Properties: the engine agrees with the naive one on random commands.

use crate::deep;
use crate::drawn::{CommandSource, Setting, Words};
use crate::pair::{ALWAYS, Engine, Pair, failure, run};
use exchange::{Command, Event, Events, Exchange};
use proptest::collection::vec;
use proptest::prelude::*;
use shm::random::SplitMix64;
use std::collections::BTreeMap;

/// Commands, each drawn from its own words, so that leaving one out keeps the others.
fn commands(setting: Setting) -> impl Strategy<Value = Vec<Command>> {
    vec(vec(any::<u16>(), 30), 1..160).prop_map(move |drawn| {
        let mut source = CommandSource::new(&setting);
        drawn.iter().map(|words| source.command(&mut Words(words))).collect()
    })
}

fn check_against_naive(setting: &Setting, commands: &[Command]) -> Result<(), TestCaseError> {
    run::<Exchange>(setting, commands)
        .map_err(|difference| TestCaseError::fail(failure(setting, commands, difference)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn engine_agrees_with_naive_engine(commands in commands(Setting::crowded())) {
        check_against_naive(&Setting::crowded(), &commands)?;
    }

    #[test]
    fn engine_agrees_with_naive_when_levels_run_out(commands in commands(Setting::few_levels())) {
        check_against_naive(&Setting::few_levels(), &commands)?;
    }

    #[test]
    fn engine_agrees_with_naive_on_scattered_prices(commands in commands(Setting::scattered())) {
        check_against_naive(&Setting::scattered(), &commands)?;
    }

    #[test]
    fn equal_commands_give_equal_events_and_state(commands in commands(Setting::crowded())) {
        let run_in_batches = |batch_len: usize| {
            let mut engine = Exchange::start(&Setting::crowded());
            let mut events = Vec::new();
            commands.chunks(batch_len).for_each(|batch| engine.apply_all(batch, &mut events));
            (events, engine.digest())
        };
        prop_assert_eq!(run_in_batches(1), run_in_batches(1));
        prop_assert_eq!(run_in_batches(1), run_in_batches(commands.len()), "one by one or in a batch");
    }
}

/// Long histories, which proptest does not reach, each from a seed. Together they have every kind
/// of event, rejection and cancel.
#[test]
fn engine_agrees_with_naive_over_long_histories() {
    let mut event_counts: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..12 {
        let setting = Setting::of_history(seed);
        let (mut numbers, mut source) = (SplitMix64(seed), CommandSource::new(&setting));
        let commands: Vec<Command> = (0..4000).map(|_| source.command(&mut numbers)).collect();
        let mut pair = Pair::<Exchange>::new(&setting, ALWAYS);
        for command in &commands {
            let events = match pair.apply(*command) {
                Ok(events) => events,
                Err(difference) => panic!("seed {seed}: {}", failure(&setting, &commands, difference)),
            };
            for event in events {
                let name = match event {
                    Event::Rejected { reason, .. } => format!("rejected {reason:?}"),
                    Event::Cancelled { reason, .. } => format!("cancelled {reason:?}"),
                    Event::Uncrossed { volume, .. } => format!("uncrossed {}", *volume > 0),
                    other => format!("{other:?}").split(' ').next().unwrap().to_owned(),
                };
                *event_counts.entry(name).or_default() += 1;
            }
        }
        assert!(pair.trades() > 200, "seed {seed}: only {} trades", pair.trades());
    }
    let fewest = event_counts.values().min().unwrap();
    assert!(event_counts.len() == 26 && *fewest >= 10, "counts of events: {event_counts:#?}");
}

#[global_allocator]
static ALLOCATOR: system::alloc::CountingAllocator = system::alloc::CountingAllocator;

struct EventCount(u64);

impl Events for EventCount {
    fn on(&mut self, _event: Event) {
        self.0 += 1;
    }
}

#[test]
fn no_command_allocates() {
    assert!(system::alloc::is_counted());
    let setting = Setting::crowded();
    let (mut numbers, mut source) = (SplitMix64(1), CommandSource::new(&setting));
    let commands: Vec<Command> = (0..50_000).map(|_| source.command(&mut numbers)).collect();
    let (mut engine, mut count) = (Exchange::start(&setting), EventCount(0));
    let before = system::alloc::allocations();
    commands.iter().for_each(|command| Exchange::apply(&mut engine, *command, &mut count));
    assert_eq!(system::alloc::allocations() - before, 0);
    assert!(count.0 > 50_000, "only {} events", count.0);
}

#[test]
fn deep_book_adds_up() {
    let deep = deep::run(40_000, 5, 5_000).unwrap_or_else(|problem| panic!("{problem}"));
    assert!(deep.max_open > 3_000 && deep.trades > 1_000, "{} orders, {} trades", deep.max_open, deep.trades);
}
