//! Position and profit of a strategy, by average cost.

use exchange::Side;

/// Money: price times quantity, each in the recording's units.
pub type Amount = i128;

/// What a strategy has bought and sold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Quantity bought less quantity sold.
    pub position: i64,
    /// Money received less money paid.
    pub cash: Amount,
    /// Profit of the quantity that was bought and sold again, or sold and bought back.
    pub realized: Amount,
    /// Total quantity bought.
    pub bought: u64,
    /// Total quantity sold.
    pub sold: u64,
    /// Number of fills.
    pub fills: u64,
    /// What the open position has cost; below 0 for a short position, which was paid for.
    cost: Amount,
}

impl Account {
    /// Books a fill of the strategy's order.
    pub fn fill(&mut self, side: Side, price: i64, quantity: u64) {
        let signed = match side {
            Side::Buy => i128::from(quantity),
            Side::Sell => -i128::from(quantity),
        };
        match side {
            Side::Buy => self.bought += quantity,
            Side::Sell => self.sold += quantity,
        }
        self.fills += 1;
        self.cash -= signed * i128::from(price);
        let position = i128::from(self.position);
        // The part that closes leaves with its share of the cost; the rest opens at this price.
        let closing = if position.signum() == -signed.signum() {
            signed.abs().min(position.abs()) * signed.signum()
        } else {
            0
        };
        if closing != 0 {
            let cost = self.cost * closing.abs() / position.abs();
            self.cost -= cost;
            self.realized += -closing * i128::from(price) - cost;
        }
        self.cost += (signed - closing) * i128::from(price);
        self.position = (position + signed) as i64;
    }

    /// Returns the profit of the open position at a price, given as the sum of bid and offer.
    pub fn unrealized(&self, bid_and_offer: i64) -> Amount {
        i128::from(self.position) * i128::from(bid_and_offer) / 2 - self.cost
    }
}
