//! Schedules: entries of any words, and recorded flows of any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use strategy::schedule::{DelayRange, Entry, Replay, replay_from};

const HEADER: &[u8] = b"time_us,sequence,op,order_id,side,type,tif,price_cents,qty_satoshi,venue\n";

fuzz_target!(|bytes: &[u8]| {
    for eight in bytes.chunks_exact(32) {
        let words =
            std::array::from_fn(|word| u64::from_le_bytes(eight[8 * word..][..8].try_into().unwrap()));
        if let Ok(entry) = Entry::from_words(words) {
            assert_eq!(entry.to_words(), words);
        }
    }
    let delay = DelayRange { min_ns: 1, max_ns: 1000 };
    let replay = Replay { strategies: 3, venues: 2, delay, seed: 1, speed: 1.5, orders: Some(10_000) };
    for input in [bytes, &[HEADER, bytes].concat()] {
        match replay_from("flow.csv", input, &replay) {
            Ok(schedule) => {
                assert_eq!(schedule.orders_per_strategy_and_venue().iter().sum::<u64>(), schedule.total())
            }
            Err(error) => assert!(error.to_string().lines().count() <= 2),
        }
    }
});
