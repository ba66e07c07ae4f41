//! The benchmark's messages as commands of the exchange.

use crate::abi::{CancelMessage, ModifyMessage, NewOrderMessage};
use exchange::{Command, NewOrder, Side, TimeInForce};

/// The owner of all orders: the benchmark has no accounts.
const OWNER: u32 = 1;

impl From<&NewOrderMessage> for Command {
    #[inline(always)]
    fn from(message: &NewOrderMessage) -> Self {
        Self::New(NewOrder {
            id: message.order_id,
            owner: OWNER,
            side: if message.side == 0 { Side::Buy } else { Side::Sell },
            price: message.price_ticks,
            quantity: u64::from(message.quantity),
            time_in_force: if message.ioc == 0 {
                TimeInForce::GoodTillCancel
            } else {
                TimeInForce::ImmediateOrCancel
            },
            ..NewOrder::default()
        })
    }
}

impl From<&CancelMessage> for Command {
    #[inline(always)]
    fn from(message: &CancelMessage) -> Self {
        Self::Cancel { id: message.order_id, owner: OWNER }
    }
}

/// Every modify of the benchmark is a new price or a larger quantity, which loses its priority in
/// the exchange as the benchmark requires.
impl From<&ModifyMessage> for Command {
    #[inline(always)]
    fn from(message: &ModifyMessage) -> Self {
        Self::Replace {
            id: message.order_id,
            owner: OWNER,
            price: message.new_price_ticks,
            quantity: u64::from(message.new_quantity),
        }
    }
}
