//! The tape of an exchange in a run.

use exchange::{Exchange, Side};
use protocol::tape::{TAPED_INSTRUMENTS, TAPED_LEVELS, TapeWriter, TapedLevel, TapedTrade};
use venue::{Trade, TradeTape};

/// Writes an exchange's trades and last books to its tape in shared memory.
pub(super) struct RunTape(pub TapeWriter);

impl TradeTape for RunTape {
    #[inline]
    fn trade(&mut self, trade: &Trade, ticks: u64) {
        let Trade { number: _, instrument, maker, taker, price, quantity } = *trade;
        self.0.append_trade(&TapedTrade { ticks, instrument, maker, taker, price, quantity });
    }

    fn close(&mut self, exchange: &Exchange) {
        for instrument in 0..TAPED_INSTRUMENTS as u16 {
            for (side, is_sell) in [(Side::Buy, false), (Side::Sell, true)] {
                for (rank, level) in exchange.depth(instrument, side, TAPED_LEVELS).enumerate() {
                    let (price, quantity, orders) = (level.price, level.quantity, level.orders.into());
                    self.0.write_level(instrument, is_sell, rank, TapedLevel { price, quantity, orders });
                }
            }
        }
        self.0.close();
    }
}
