//! Arbitrary bytes are commands: the engine's events equal those of its naive twin, and its own
//! check finds nothing. The first byte chooses the setting; of the upper quarter of the words, the
//! numbers of commands are the bytes themselves.
#![no_main]
#![allow(dead_code, reason = "the tests use more of these modules")]

#[path = "../../tests/all/drawn.rs"]
mod drawn;
#[path = "../../tests/all/ledger.rs"]
mod ledger;
#[path = "../../tests/all/naive/mod.rs"]
mod naive;
#[path = "../../tests/all/pair.rs"]
mod pair;

use drawn::{Drawer, Setting, Words};
use exchange::{Command, Exchange};
use libfuzzer_sys::fuzz_target;
use pair::{ALWAYS, Pair};

/// Numbers as they come: ids, prices and quantities that no generator would draw.
fn raw(command: Command, words: &[u16]) -> Command {
    let wide =
        |at: usize| words.iter().cycle().skip(at).take(4).fold(0, |all, word| all << 16 | u64::from(*word));
    match command {
        Command::New(mut order) => {
            match words[0] % 6 {
                0 => order.price = wide(1) as i64,
                1 => order.quantity = wide(1),
                2 => order.stop_price = wide(1) as i64,
                3 => (order.display, order.minimum) = (wide(1), wide(2)),
                4 => order.expires_at = wide(1),
                _ => order.instrument = words[1 % words.len()],
            }
            Command::New(order)
        }
        Command::Cancel { .. } => Command::Cancel { id: wide(0), owner: wide(1) as u32 },
        Command::Replace { id, owner, .. } => {
            Command::Replace { id, owner, price: wide(0) as i64, quantity: wide(2) }
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
    let (mut drawer, mut pair) = (Drawer::new(&setting), Pair::<Exchange>::new(&setting, ALWAYS));
    let mut left = Words(&words);
    while !left.0.is_empty() {
        let before = left.0;
        let mut command = drawer.command(&mut left);
        if before[0] >= 0xc000 {
            command = raw(command, before);
        }
        if let Err(difference) = pair.apply(command) {
            panic!("{difference}");
        }
    }
});
