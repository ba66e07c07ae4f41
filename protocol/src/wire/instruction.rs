//! Instructions: the messages from the orchestrator to a gateway.

use super::order::OrderWords;
use super::{Message, Order, OrderId, WireError};
use zerocopy::transmute;

/// A message from the orchestrator to a gateway: a strategy's order request, or a mass cancel of
/// open orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// A strategy's order for the gateway's venue.
    Order(Order),
    /// Cancel every open order of the scope. A strategy cannot send it: it is not a valid order.
    CancelAll(CancelScope),
}

/// The open orders of a gateway that a mass cancel affects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CancelScope {
    /// Orders of this id's strategy, up to this id's epoch; `None`: of every strategy.
    pub strategy: Option<OrderId>,
    /// Orders of this instrument; `None`: of every instrument.
    pub instrument: Option<u16>,
}

impl CancelScope {
    /// Creates the mass-cancel scope of all orders of one strategy up to and including the
    /// incarnation in the order id `strategy`.
    pub const fn for_strategy(strategy: OrderId) -> Self {
        Self { strategy: Some(strategy), instrument: None }
    }

    /// Returns `true` if a mass cancel of this scope affects an order.
    #[inline]
    pub const fn contains(&self, id: OrderId, instrument: u16) -> bool {
        let by_strategy = match self.strategy {
            Some(dead) => id.strategy().0 == dead.strategy().0 && id.epoch() <= dead.epoch(),
            None => true,
        };
        let by_instrument = match self.instrument {
            Some(wanted) => instrument == wanted,
            None => true,
        };
        by_strategy && by_instrument
    }
}

/// The operation code of [`Instruction::CancelAll`].
const CANCEL_ALL: u8 = 3;
const HAS_STRATEGY: u8 = 1;
const HAS_INSTRUMENT: u8 = 2;

impl Instruction {
    /// Encodes the instruction as a message for the gateway's ring.
    pub fn to_message(&self) -> Message {
        match self {
            Instruction::Order(order) => order.to_message(),
            Instruction::CancelAll(CancelScope { strategy, instrument }) => {
                transmute!(OrderWords {
                    id: strategy.map_or(0, OrderId::word),
                    instrument: instrument.unwrap_or(0),
                    code: CANCEL_ALL,
                    side: if strategy.is_some() { HAS_STRATEGY } else { 0 }
                        | if instrument.is_some() { HAS_INSTRUMENT } else { 0 },
                    ..OrderWords::default()
                })
            }
        }
    }

    /// Decodes and validates an instruction from a message.
    #[inline]
    pub fn from_message(message: Message) -> Result<Self, WireError> {
        let words: OrderWords = transmute!(message);
        if words.code == CANCEL_ALL {
            let has = |bit: u8| words.side & bit != 0;
            return Ok(Instruction::CancelAll(CancelScope {
                strategy: has(HAS_STRATEGY).then(|| OrderId::from_word(words.id)),
                instrument: has(HAS_INSTRUMENT).then_some(words.instrument),
            }));
        }
        Order::from_message(message).map(Instruction::Order)
    }
}
