//! A naive matching engine, the reference: sorted `Vec`s, written from the docs of [`Command`]
//! alone.

mod book;

pub use book::OpenOrder;
use book::{Book, triggers};
use exchange::{
    CancelReason, Capacity, Command, Event, Instrument, NewOrder, OrderType, RejectReason, Side, TimeInForce,
};

/// The naive engine, with the interface of the real one.
#[derive(Clone)]
pub struct Naive {
    books: Vec<Book>,
    capacity: Capacity,
    now: u64,
    trades: u64,
    arrivals: u64,
}

impl Naive {
    pub fn new(instruments: &[Instrument], capacity: Capacity) -> Naive {
        Naive {
            books: instruments.iter().map(|rules| Book::new(*rules)).collect(),
            capacity,
            now: 0,
            trades: 0,
            arrivals: 0,
        }
    }

    /// The open orders of a side, in priority.
    pub fn orders(&self, instrument: u16, side: Side) -> &[OpenOrder] {
        &self.books[instrument as usize].orders[side as usize]
    }

    /// The waiting stop orders of a side: buy stops from the lowest, sell stops from the highest.
    pub fn stops(&self, instrument: u16, side: Side) -> &[OpenOrder] {
        &self.books[instrument as usize].stops[side as usize]
    }

    /// Price, shown quantity and number of orders of every level, from the best.
    pub fn depth(&self, instrument: u16, side: Side) -> Vec<(i64, u64, u32)> {
        let mut levels: Vec<(i64, u64, u32)> = Vec::new();
        for open in self.orders(instrument, side) {
            match levels.last_mut() {
                Some(level) if level.0 == open.order.price => {
                    *level = (level.0, level.1 + open.shown, level.2 + 1)
                }
                _ => levels.push((open.order.price, open.shown, 1)),
            }
        }
        levels
    }

    pub fn open_orders(&self) -> usize {
        self.books.iter().flat_map(|book| book.orders.iter().chain(&book.stops)).map(Vec::len).sum()
    }

    fn free_levels(&self) -> usize {
        let mut used = 0;
        for (instrument, book) in self.books.iter().enumerate() {
            for side in [Side::Buy, Side::Sell] {
                used += self.depth(instrument as u16, side).len();
                let stops = &book.stops[side as usize];
                let mut prices: Vec<i64> = stops.iter().map(|open| open.order.stop_price).collect();
                prices.dedup();
                used += prices.len()
                    + stops.iter().filter(|open| open.order.order_type == OrderType::StopLimit).count();
            }
        }
        self.capacity.levels - used
    }

    /// Applies a command and returns its events.
    pub fn apply(&mut self, command: Command) -> Vec<Event> {
        let mut events = Vec::new();
        let rejected = match command {
            Command::New(order) => self.new_order(order, &mut events).map_err(|reason| (order.id, reason)),
            Command::Cancel { id, owner } => {
                self.cancel(id, owner, &mut events).map_err(|reason| (id, reason))
            }
            Command::Replace { id, owner, price, quantity } => {
                self.replace(id, owner, price, quantity, &mut events).map_err(|reason| (id, reason))
            }
            Command::MassCancel { owner, instrument } => {
                self.mass_cancel(owner, instrument, &mut events).map_err(|reason| (0, reason))
            }
            Command::Time(now) => {
                self.time(now, &mut events);
                Ok(())
            }
            Command::Auction { instrument } => {
                self.phase(instrument, true, &mut events).map_err(|reason| (0, reason))
            }
            Command::Uncross { instrument } => {
                self.phase(instrument, false, &mut events).map_err(|reason| (0, reason))
            }
        };
        if let Err((id, reason)) = rejected {
            assert!(events.is_empty());
            events.push(Event::Rejected { id, reason });
        }
        events
    }

    /// Checks prices and quantity of a new order or a replacement against the instrument's rules.
    fn check_price_and_quantity(
        rules: &Instrument,
        prices: &[i64],
        quantity: u64,
    ) -> Result<(), RejectReason> {
        if quantity == 0 || !quantity.is_multiple_of(rules.lot) || quantity > rules.max_quantity {
            return Err(RejectReason::BadQuantity);
        }
        let is_valid_price =
            |price: &i64| (rules.price_low..=rules.price_high).contains(price) && price % rules.tick == 0;
        if !prices.iter().all(is_valid_price) {
            return Err(RejectReason::BadPrice);
        }
        let overflows = |price: &i64| *price as u128 * u128::from(quantity) > u128::from(u64::MAX);
        if prices.iter().any(overflows) { Err(RejectReason::NotionalOverflow) } else { Ok(()) }
    }

    fn new_order(&mut self, order: NewOrder, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let instrument = order.instrument as usize;
        let book = self.books.get(instrument).ok_or(RejectReason::UnknownInstrument)?;
        if self.books.iter().any(|book| book.find(order.id).is_some()) {
            return Err(RejectReason::DuplicateId);
        }
        let is_invalid_part = |part: u64| !part.is_multiple_of(book.rules.lot) || part > order.quantity;
        if is_invalid_part(order.display) || is_invalid_part(order.minimum) {
            return Err(RejectReason::BadQuantity);
        }
        let prices: &[i64] = match order.order_type {
            OrderType::Limit => &[order.price],
            OrderType::Market => &[],
            OrderType::Stop => &[order.stop_price],
            OrderType::StopLimit => &[order.price, order.stop_price],
        };
        Naive::check_price_and_quantity(&book.rules, prices, order.quantity)?;
        if !is_valid_combination(&order) {
            return Err(RejectReason::BadCombination);
        }
        if order.time_in_force == TimeInForce::GoodTillTime && order.expires_at <= self.now {
            return Err(RejectReason::Expired);
        }
        let is_stop = matches!(order.order_type, OrderType::Stop | OrderType::StopLimit);
        let immediate =
            matches!(order.time_in_force, TimeInForce::ImmediateOrCancel | TimeInForce::FillOrKill);
        let is_plain_limit =
            order.order_type == OrderType::Limit && !immediate && !order.post_only && order.minimum == 0;
        if book.auction && !is_stop && !is_plain_limit {
            return Err(RejectReason::WrongPhase);
        }
        if order.post_only && book.reaches(order.side, order.price) {
            return Err(RejectReason::WouldTrade);
        }
        let levels = match order.order_type {
            OrderType::StopLimit => 2,
            OrderType::Market => 0,
            OrderType::Limit if immediate => 0,
            _ => 1,
        };
        if self.open_orders() == self.capacity.orders || self.free_levels() < levels {
            return Err(RejectReason::Full);
        }

        let open =
            OpenOrder { order, leaves: order.quantity, shown: 0, arrival: self.arrivals, waits: is_stop };
        events.push(Event::Accepted { id: order.id, side: order.side, price: open.price() });
        let open = OpenOrder { waits: false, ..open };
        self.arrivals += 1;
        let book = &mut self.books[instrument];
        if is_stop {
            if book.auction || !book.last.is_some_and(|last| triggers(last, &order)) {
                book.wait(open);
                return Ok(());
            }
            events.push(Event::Triggered { id: order.id });
        }
        if book.auction {
            book.rest(open);
        } else {
            book.execute(open, &mut self.trades, events);
            book.execute_triggered(&mut self.trades, events);
        }
        Ok(())
    }

    fn cancel(&mut self, id: u64, owner: u32, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let order = self
            .books
            .iter_mut()
            .find_map(|book| book.remove_first(|open| (open.order.id, open.order.owner) == (id, owner)));
        events.push(order.ok_or(RejectReason::UnknownOrder)?.cancelled(CancelReason::Requested));
        Ok(())
    }

    fn replace(
        &mut self,
        id: u64,
        owner: u32,
        price: i64,
        quantity: u64,
        events: &mut Vec<Event>,
    ) -> Result<(), RejectReason> {
        let free = self.free_levels();
        let has_order = |book: &&mut Book| book.find(id).is_some_and(|open| open.order.owner == owner);
        let book = self.books.iter_mut().find(has_order).ok_or(RejectReason::UnknownOrder)?;
        if book.stops.iter().flatten().any(|open| open.order.id == id) {
            return Err(RejectReason::BadCombination);
        }
        Naive::check_price_and_quantity(&book.rules, &[price], quantity)?;
        let before = book.find(id).unwrap().clone();
        let (side, price_changes) = (before.order.side, price != before.order.price);
        let keeps_priority = !price_changes && quantity <= before.leaves;
        if price_changes && before.order.post_only && !book.auction && book.reaches(side, price) {
            return Err(RejectReason::WouldTrade);
        }
        if !keeps_priority && free == 0 {
            return Err(RejectReason::Full);
        }

        events.push(Event::Replaced { id, side, price, leaves: quantity });
        if keeps_priority {
            let mut orders = book.orders[side as usize].iter_mut();
            orders.find(|open| open.order.id == id).unwrap().reduce(before.leaves - quantity);
            return Ok(());
        }
        let mut open = book.remove_first(|open| open.order.id == id).unwrap();
        open.order.price = price;
        open.leaves = quantity;
        let remainder =
            if book.auction { Some(open) } else { book.match_with(open, &mut self.trades, events) };
        if let Some(remainder) = remainder {
            book.rest(remainder);
        }
        book.execute_triggered(&mut self.trades, events);
        Ok(())
    }

    fn mass_cancel(
        &mut self,
        owner: u32,
        only: Option<u16>,
        events: &mut Vec<Event>,
    ) -> Result<(), RejectReason> {
        if only.is_some_and(|instrument| instrument as usize >= self.books.len()) {
            return Err(RejectReason::UnknownInstrument);
        }
        for (instrument, book) in self.books.iter_mut().enumerate() {
            if only.is_none_or(|only| only as usize == instrument) {
                while let Some(order) = book.remove_first(|open| open.order.owner == owner) {
                    events.push(order.cancelled(CancelReason::MassCancel));
                }
            }
        }
        Ok(())
    }

    fn time(&mut self, now: u64, events: &mut Vec<Event>) {
        self.now = self.now.max(now);
        let is_expired = |open: &OpenOrder| {
            open.order.time_in_force == TimeInForce::GoodTillTime && open.order.expires_at <= self.now
        };
        let mut expired = Vec::new();
        for book in &mut self.books {
            while let Some(open) = book.remove_first(is_expired) {
                expired.push(open);
            }
        }
        expired.sort_by_key(|open| (open.order.expires_at, open.arrival));
        events.extend(expired.iter().map(|open| {
            let NewOrder { id, side, .. } = open.order;
            Event::Expired { id, side, price: open.price(), leaves: open.leaves }
        }));
    }

    fn phase(&mut self, instrument: u16, auction: bool, events: &mut Vec<Event>) -> Result<(), RejectReason> {
        let book = self.books.get_mut(instrument as usize).ok_or(RejectReason::UnknownInstrument)?;
        if book.auction == auction {
            return Err(RejectReason::WrongPhase);
        }
        if auction {
            book.auction = true;
        } else {
            book.uncross(instrument, &mut self.trades, events);
        }
        Ok(())
    }
}

fn is_valid_combination(order: &NewOrder) -> bool {
    let (iceberg, minimum, post_only) = (order.display > 0, order.minimum > 0, order.post_only);
    let by_type = match order.order_type {
        OrderType::Limit => true,
        OrderType::Market => order.time_in_force != TimeInForce::GoodTillTime && !post_only && !iceberg,
        OrderType::Stop => !post_only && !iceberg && !minimum,
        OrderType::StopLimit => !post_only && !minimum,
    };
    let by_time = match order.time_in_force {
        TimeInForce::GoodTillCancel | TimeInForce::GoodTillTime => true,
        TimeInForce::ImmediateOrCancel => !post_only && !iceberg,
        TimeInForce::FillOrKill => !post_only && !iceberg && !minimum,
    };
    by_type && by_time && !(minimum && post_only)
}
