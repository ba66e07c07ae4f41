//! Instructions: what the orchestrator sends to a gateway.

use super::order::OrderWords;
use super::{Message, Order, OrderId, WireError};
use zerocopy::transmute;

/// What the orchestrator sends to a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// A strategy's order.
    Order(Order),
    /// Cancel every open order of the scope: cancel on disconnect, or a kill switch. No strategy
    /// can send it: as an order it is an unknown operation.
    CancelAll(CancelScope),
}

/// Which open orders of a gateway are cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CancelScope {
    /// Those of this id's strategy, up to this id's epoch; `None`: of every strategy.
    pub strategy: Option<OrderId>,
    /// Those of this instrument; `None`: of every one.
    pub instrument: Option<u16>,
}

impl CancelScope {
    /// The orders of an incarnation and of those before it.
    pub const fn of(strategy: OrderId) -> Self {
        Self { strategy: Some(strategy), instrument: None }
    }

    /// Whether an order is one of them.
    #[inline]
    pub const fn concerns(&self, id: OrderId, instrument: u16) -> bool {
        let by_strategy = match self.strategy {
            Some(dead) => id.strategy() == dead.strategy() && id.epoch() <= dead.epoch(),
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
/// The scope names a strategy.
const HAS_STRATEGY: u8 = 1;
/// The scope names an instrument.
const HAS_INSTRUMENT: u8 = 2;

impl Instruction {
    /// The message's words.
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

    /// Checks a message and makes an instruction of it.
    ///
    /// # Errors
    /// As [`Order::from_message`].
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
