//! Tests of an exchange's configuration and its digest.

use crate::{Capacity, Command, ConfigError, Exchange, Instrument, NewOrder};

/// An exchange of 16 orders in an instrument with a band from 1 to 1000.
pub(crate) fn exchange() -> Exchange {
    let instrument = Instrument {
        price_high: 1_000,
        max_quantity: 1 << 59,
        reference_price: 100,
        ..Instrument::default()
    };
    Exchange::new(&[instrument], Capacity::for_orders(16)).expect("a valid configuration")
}

#[test]
fn invalid_configuration_is_explained() {
    let new =
        |instrument: Instrument, orders: usize| Exchange::new(&[instrument], Capacity::for_orders(orders));
    let fine = Instrument::default();
    let problem = |instrument: Instrument| new(instrument, 4).expect_err("invalid").to_string();
    assert_eq!(problem(Instrument { tick: 0, ..fine }), "instrument 0: the tick is not from 1 to 2^62");
    assert_eq!(
        problem(Instrument { price_high: 0, ..fine }),
        "instrument 0: the band's highest price is below its lowest"
    );
    assert_eq!(
        problem(Instrument { reference_price: 0, ..fine }),
        "instrument 0: the reference price is outside of the band"
    );
    let big = new(Instrument { max_quantity: 1 << 62, ..fine }, 4);
    assert_eq!(big.expect_err("too much"), ConfigError::QuantityOverflow { index: 0, orders: 4 });
    assert_eq!(new(fine, 0).expect_err("no capacity"), ConfigError::Capacity(0));
}

#[test]
fn digest_depends_on_every_effective_command() {
    let order = |id, price| Command::New(NewOrder { id, price, quantity: 5, ..NewOrder::default() });
    let digest = |last: Option<Command>| {
        let mut exchange = exchange();
        let commands = [order(1, 9), order(2, 8)].into_iter().chain(last);
        commands.for_each(|command| exchange.apply(command, &mut Vec::new()));
        exchange.digest()
    };
    assert_eq!(digest(None), digest(None));
    assert_eq!(digest(Some(order(3, 0))), digest(None), "a rejected command changes nothing");
    let cancel = Command::Cancel { id: 1, owner: 0 };
    for command in [cancel, Command::Time(3), order(3, 8), Command::Auction { instrument: 0 }] {
        assert_ne!(digest(Some(command)), digest(None), "{command:?}");
    }
}
