//! Runs the examples; their processes are this binary started again.

use crate::common::itself;
use std::process::Stdio;
use techniques::Technique;
use techniques::with_link;

#[allow(dead_code, reason = "its `main` is for the command line")]
#[path = "../../examples/successor.rs"]
mod successor;

/// The environment variable with a producer's parameters: technique, name of the queue, number.
const PRODUCER: &str = "BULKHEAD_EXAMPLE_PRODUCER";

#[test]
#[ignore = "the other test starts it, as a process of its own"]
fn the_producer_itself() {
    let Ok(orders) = std::env::var(PRODUCER) else { return };
    let [technique, name, number] = orders.split(' ').collect::<Vec<_>>()[..] else { panic!("{orders}") };
    let technique = Technique::from_name(technique).unwrap();
    with_link!(technique, T => successor::produce::<T>(name, number.parse().unwrap())).unwrap();
}

#[test]
fn killed_producers_successor_loses_and_duplicates_nothing() {
    for &technique in Technique::built_in().iter().filter(|technique| technique.crosses_processes()) {
        let name = format!("successor-{technique}-{}", std::process::id());
        let start = |number| {
            let mut command = itself("examples::the_producer_itself");
            command.env(PRODUCER, format!("{technique} {name} {number}"));
            command.stdout(Stdio::null());
            command
        };
        println!("{technique}");
        with_link!(technique, T => successor::consume::<T>(&name, start)).unwrap();
    }
}
