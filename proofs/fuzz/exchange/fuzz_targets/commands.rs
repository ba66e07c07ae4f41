//! Arbitrary bytes are commands: the engine's events equal those of its naive twin, and its own
//! check finds nothing. The first byte chooses the setting; of the upper quarter of the words, the
//! numbers of commands are the bytes themselves.
#![no_main]
#![allow(dead_code, reason = "the tests use more of these modules")]

#[path = "../../../../exchange/tests/all/drawn.rs"]
mod drawn;
#[path = "../../../../exchange/tests/all/ledger.rs"]
mod ledger;
#[path = "../../../../exchange/tests/all/naive/mod.rs"]
mod naive;
#[path = "../../../../exchange/tests/all/pair.rs"]
mod pair;

use drawn::{CommandSource, Setting, Words};
use exchange::{Command, Exchange};
use libfuzzer_sys::fuzz_target;
use pair::{ALWAYS, Pair};

/// Replaces a command's numbers by raw ones: ids, prices and quantities that no generator draws.
fn with_raw_numbers(command: Command, words: &[u16]) -> Command {
    let wide_number =
        |at: usize| words.iter().cycle().skip(at).take(4).fold(0, |number, word| number << 16 | u64::from(*word));
    match command {
        Command::New(mut order) => {
            match words[0] % 6 {
                0 => order.price = wide_number(1) as i64,
                1 => order.quantity = wide_number(1),
                2 => order.stop_price = wide_number(1) as i64,
                3 => (order.display, order.minimum) = (wide_number(1), wide_number(2)),
                4 => order.expires_at = wide_number(1),
                _ => order.instrument = words[1 % words.len()],
            }
            Command::New(order)
        }
        Command::Cancel { .. } => Command::Cancel { id: wide_number(0), owner: wide_number(1) as u32 },
        Command::Replace { id, owner, .. } => {
            Command::Replace { id, owner, price: wide_number(0) as i64, quantity: wide_number(2) }
        }
        Command::MassCancel { owner, .. } => Command::MassCancel { owner, instrument: Some(words[0]) },
        Command::Time(now) => Command::Time(now),
        Command::Auction { .. } => Command::Auction { instrument: words[0] },
        Command::Uncross { .. } => Command::Uncross { instrument: words[0] },
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let setting = Setting::of_history(u64::from(*first));
    let words: Vec<u16> = rest.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]])).collect();
    let (mut source, mut pair) = (CommandSource::new(&setting), Pair::<Exchange>::new(&setting, ALWAYS));
    let mut remaining = Words(&words);
    while !remaining.0.is_empty() {
        let words_before = remaining.0;
        let mut command = source.command(&mut remaining);
        if words_before[0] >= 0xc000 {
            command = with_raw_numbers(command, words_before);
        }
        if let Err(difference) = pair.apply(command) {
            panic!("{difference}");
        }
    }
});
