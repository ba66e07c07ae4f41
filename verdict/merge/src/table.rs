//! The order table: a partition for each strategy and epoch, a row of 88 bytes for each order.
//!
//! The index of a row is its order's sequence, so the join is an index operation, not a search,
//! with equal cost for the first order and the last. A partition grows as its orders appear, up to
//! a limit from the size of the logs: a run that plans 2^60 orders and stamped ten costs ten rows.
//! A restarted strategy has a partition for each epoch, also found by index; later partitions start
//! small and double.

use super::hand_offs::{ReturnOrder, SubmitOrder};
use super::row::{ExchangeStamps, OrderRow};
use protocol::index::StrategyIndex;
use protocol::wire::OrderId;

/// Rows of a first epoch are allocated in chunks of this many, to amortize growing.
const CHUNK: u64 = 4096;
/// Rows of a later epoch are allocated in powers of two from this on.
const LATER_CHUNK: u64 = 16;
/// Rows that a partition may have beyond the capacity of its strategy's log: for orders whose other
/// stamps are lost.
const SPARE_ROWS: u64 = 4096;

/// The table of one strategy incarnation's orders, by sequence.
#[derive(Debug, Default)]
pub(super) struct Partition {
    pub strategy: StrategyIndex,
    pub epoch: u16,
    /// Whether the strategy's log is untrusted, so that its stamps are never violations.
    pub is_untrusted: bool,
    /// Whether the strategy misbehaved according to the record, so that the engine's stamps of its
    /// orders may be invalid as well.
    pub is_hostile: bool,
    pub rows: Vec<OrderRow>,
    /// Instruments of the orders by sequence, up to the last order that does not trade instrument
    /// 0.
    pub instruments: Vec<u16>,
    /// Exchange stamps by sequence, up to the last order that was at an exchange.
    at_exchange: Vec<ExchangeStamps>,
    /// Claimed trigger versions by sequence, up to the last order that has one; 0 for none.
    triggers: Vec<u64>,
    /// Order checks of this incarnation's hand-offs.
    pub submit: SubmitOrder,
    pub returns: ReturnOrder,
}

impl Partition {
    fn new(strategy: StrategyIndex, epoch: u16, bounds: &PartitionBounds) -> Self {
        let PartitionBounds { is_untrusted, is_hostile, .. } = *bounds;
        Self { strategy, epoch, is_untrusted, is_hostile, ..Self::default() }
    }

    /// Returns the instrument of the incarnation's order with this sequence number, according to
    /// its gateway's log.
    #[inline]
    pub fn instrument(&self, sequence: u64) -> u16 {
        self.instruments.get(sequence as usize).copied().unwrap_or(0)
    }

    /// Sets the instrument of the incarnation's order with this sequence number.
    pub fn set_instrument(&mut self, sequence: u64, instrument: u16) -> Result<(), MissingRow> {
        *grow_to(&mut self.instruments, sequence)? = instrument;
        Ok(())
    }

    /// Returns the exchange's stamps of the incarnation's order with this sequence number; empty
    /// without any.
    #[inline]
    pub fn at_exchange(&self, sequence: u64) -> ExchangeStamps {
        self.at_exchange.get(sequence as usize).copied().unwrap_or_default()
    }

    /// Returns the exchange's stamps of the incarnation's order with this sequence number, for
    /// writing. An error if the table has no row of it.
    pub fn at_exchange_mut(&mut self, sequence: u64) -> Result<&mut ExchangeStamps, MissingRow> {
        grow_to(&mut self.at_exchange, sequence)
    }

    /// Returns the top-of-book version that this incarnation's order with this sequence number
    /// claims to react to; `None` if it claims none.
    #[inline]
    pub fn trigger(&self, sequence: u64) -> Option<u64> {
        self.triggers.get(sequence as usize).copied().filter(|version| *version > 0)
    }

    /// Sets the top-of-book version that this incarnation's order with this sequence number claims
    /// to react to. Returns `false` if it was set already.
    pub fn set_trigger(&mut self, sequence: u64, version: u64) -> Result<bool, MissingRow> {
        Ok(core::mem::replace(grow_to(&mut self.triggers, sequence)?, version) == 0)
    }

    /// Iterates over the sequence numbers of the orders that claim to react to some
    /// top-of-book version.
    pub fn triggered(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.triggers.len() as u64).filter(|sequence| self.trigger(*sequence).is_some())
    }

    /// Returns `true` if an exchange stamped any order of this incarnation.
    pub fn has_exchange(&self) -> bool {
        !self.at_exchange.is_empty()
    }

    /// Returns the id of the incarnation's order with this sequence number.
    pub const fn id(&self, sequence: u64) -> OrderId {
        OrderId::new(self.strategy.0, self.epoch, sequence)
    }
}

fn resize<T: Clone + Default>(column: &mut Vec<T>, len: usize) -> Result<(), MissingRow> {
    let more = len.saturating_sub(column.len());
    column.try_reserve(more).map_err(|_| MissingRow::Memory((more * size_of::<T>()) as u64))?;
    column.resize(len, T::default());
    Ok(())
}

/// Returns the value of an order, after growing the column to contain it.
#[inline]
fn grow_to<T: Clone + Default>(column: &mut Vec<T>, sequence: u64) -> Result<&mut T, MissingRow> {
    let index = sequence as usize;
    if column.len() <= index {
        resize(column, index + 1)?;
    }
    Ok(&mut column[index])
}

/// A reason why the merged table has no row for an order.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MissingRow {
    Strategy,
    /// The strategy never had the epoch.
    Epoch,
    /// The sequence exceeds the capacity of the logs.
    Limit,
    /// Memory for the order table is missing: this many bytes.
    Memory(u64),
}

/// The limits of the memory for one strategy's orders in the merged table.
#[derive(Clone, Debug)]
pub(super) struct PartitionBounds {
    pub rows: u64,
    /// Maximum rows in all partitions of later epochs together.
    pub later_rows: u64,
    pub last_epoch: u16,
    pub is_untrusted: bool,
    /// Whether the engine's stamps of the strategy's orders are untrusted as well.
    pub is_hostile: bool,
}

impl PartitionBounds {
    /// Computes the maximum numbers of rows of a strategy's orders in the merged table, from its
    /// planned orders, log records and last epoch. No more rows than planned, and no more than
    /// records, plus a margin for orders with lost stamps. Memory use follows the size of the
    /// files.
    pub fn new(planned: u64, records: u64, last_epoch: u16, is_untrusted: bool) -> Self {
        // A partition that doubles is at most twice as long as necessary.
        let rows = records.saturating_mul(2).saturating_add(SPARE_ROWS);
        let later_rows = rows.saturating_add(u64::from(last_epoch) * LATER_CHUNK);
        Self { rows: planned.min(rows), later_rows, last_epoch, is_untrusted, is_hostile: is_untrusted }
    }
}

/// The partitions of one strategy from epoch 1 on.
#[derive(Debug)]
struct LaterEpochs {
    bounds: PartitionBounds,
    /// Index among all partitions, by epoch − 1; 0 (the first strategy's first partition) if it
    /// does not exist yet.
    partition_indices: Vec<u32>,
}

/// The merged table of a run's orders, by strategy and incarnation, with a row of stamps for each.
/// Partitions of epoch 0 are at their strategy's index.
#[derive(Debug)]
pub(super) struct OrderTable {
    pub partitions: Vec<Partition>,
    later: Vec<LaterEpochs>,
}

const BLOCK: usize = 1 << 12;

impl OrderTable {
    /// Creates an empty table with the maximum size of each strategy's partitions.
    pub fn new(bounds: Vec<PartitionBounds>) -> Self {
        let partition = |(strategy, bounds): (usize, &PartitionBounds)| {
            Partition::new(StrategyIndex(strategy as u16), 0, bounds)
        };
        let partitions = bounds.iter().enumerate().map(partition).collect();
        let later =
            bounds.into_iter().map(|bounds| LaterEpochs { bounds, partition_indices: Vec::new() }).collect();
        Self { partitions, later }
    }

    /// Returns the partition (orders of one strategy incarnation) of an order id, grown to have a
    /// row for the order.
    #[inline]
    pub fn partition(&mut self, id: OrderId) -> Result<&mut Partition, MissingRow> {
        let mut partition_index = id.strategy().as_usize();
        if partition_index >= self.later.len() {
            return Err(MissingRow::Strategy);
        }
        if id.epoch() > 0 {
            partition_index = self.later_partition_index(id)?;
        }
        if id.sequence() >= self.partitions[partition_index].rows.len() as u64 {
            self.grow(partition_index, id.sequence())?;
        }
        Ok(&mut self.partitions[partition_index])
    }

    /// Returns the index of a later epoch's partition, created if new.
    fn later_partition_index(&mut self, id: OrderId) -> Result<usize, MissingRow> {
        let LaterEpochs { bounds, partition_indices } = &mut self.later[id.strategy().as_usize()];
        let index = usize::from(id.epoch()) - 1;
        match partition_indices.get(index) {
            Some(partition_index) if *partition_index > 0 => return Ok(*partition_index as usize),
            _ if id.epoch() > bounds.last_epoch => return Err(MissingRow::Epoch),
            // Checked here and not when it grows, so that an impossible order creates no partition.
            _ if id.sequence() >= bounds.rows => return Err(MissingRow::Limit),
            _ => {}
        }
        if partition_indices.len() <= index {
            partition_indices.resize(index + 1, 0);
        }
        // There are at most as many partitions as strategies and epochs: 20 bits.
        partition_indices[index] = self.partitions.len() as u32;
        self.partitions.push(Partition::new(id.strategy(), id.epoch(), bounds));
        Ok(self.partitions.len() - 1)
    }

    #[cold]
    fn grow(&mut self, partition_index: usize, sequence: u64) -> Result<(), MissingRow> {
        let partition = &mut self.partitions[partition_index];
        let bounds = &mut self.later[partition.strategy.as_usize()].bounds;
        if sequence >= bounds.rows {
            return Err(MissingRow::Limit);
        }
        let is_later = partition.epoch > 0;
        let target_rows = match is_later {
            false => (sequence + 1).next_multiple_of(CHUNK),
            true => (sequence + 1).next_power_of_two().max(LATER_CHUNK),
        };
        let more = target_rows.min(bounds.rows) - partition.rows.len() as u64;
        if is_later && more > bounds.later_rows {
            return Err(MissingRow::Limit);
        }
        let len = partition.rows.len() + more as usize;
        resize(&mut partition.rows, len)?;
        if is_later {
            bounds.later_rows -= more;
        }
        Ok(())
    }

    /// Returns the partition (orders) of a strategy's incarnation; `None` if the table has none.
    pub fn partition_of(&self, strategy: StrategyIndex, epoch: u16) -> Option<&Partition> {
        let first = strategy.as_usize();
        match epoch.checked_sub(1) {
            None if first < self.later.len() => self.partitions.get(first),
            None => None,
            Some(index) => {
                let partition_index =
                    *self.later.get(first)?.partition_indices.get(usize::from(index))? as usize;
                if partition_index == 0 { None } else { self.partitions.get(partition_index) }
            }
        }
    }

    /// Marks a strategy's log as untrusted, and removes the mark *measured* (counted in the
    /// figures) from all of the strategy's orders.
    pub fn distrust(&mut self, strategy: StrategyIndex) {
        if let Some(later) = self.later.get_mut(strategy.as_usize()) {
            later.bounds.is_untrusted = true;
        }
        for partition in self.partitions.iter_mut().filter(|partition| partition.strategy == strategy) {
            partition.is_untrusted = true;
            partition.rows.iter_mut().for_each(OrderRow::clear_measured);
        }
    }

    /// Returns the highest epoch (incarnation number, from 0) of a strategy in the table.
    pub fn newest_epoch(&self, strategy: StrategyIndex) -> u16 {
        self.later.get(strategy.as_usize()).map_or(0, |later| later.partition_indices.len() as u16)
    }

    /// Returns the stamps of an order; `None` if it has no row.
    pub fn row(&self, id: OrderId) -> Option<&OrderRow> {
        self.partition_of(id.strategy(), id.epoch())?.rows.get(usize::try_from(id.sequence()).ok()?)
    }

    /// Returns the exchange's stamps of an order; empty without any.
    pub fn at_exchange(&self, id: OrderId) -> ExchangeStamps {
        let partition = self.partition_of(id.strategy(), id.epoch());
        partition.map_or_else(ExchangeStamps::default, |partition| partition.at_exchange(id.sequence()))
    }

    /// Returns the instrument of an order according to its gateway's log; 0 without a record.
    pub fn instrument(&self, id: OrderId) -> u16 {
        self.partition_of(id.strategy(), id.epoch())
            .map_or(0, |partition| partition.instrument(id.sequence()))
    }

    /// Iterates over the rows of all orders with stamps.
    pub fn rows(&self) -> impl Iterator<Item = (OrderId, &OrderRow)> {
        self.blocks().flat_map(block_rows)
    }

    /// Iterates over the rows of one strategy's orders, without reading those of others.
    pub fn rows_of(&self, strategy: StrategyIndex) -> impl Iterator<Item = (OrderId, &OrderRow)> {
        let partitions = self.partitions.iter().filter(move |partition| partition.strategy == strategy);
        partitions.flat_map(blocks_of).flat_map(block_rows)
    }

    /// Iterates over the rows of stamps in blocks, each with the id of its first order.
    pub fn blocks(&self) -> impl Iterator<Item = (OrderId, &[OrderRow])> {
        self.partitions.iter().flat_map(blocks_of)
    }
}

fn blocks_of(partition: &Partition) -> impl Iterator<Item = (OrderId, &[OrderRow])> {
    partition.rows.chunks(BLOCK).zip(0..).map(|(rows, number)| (partition.id(number * BLOCK as u64), rows))
}

fn block_rows((first, rows): (OrderId, &[OrderRow])) -> impl Iterator<Item = (OrderId, &OrderRow)> {
    let id = move |at: usize| first.with_sequence(first.sequence() + at as u64);
    rows.iter().enumerate().map(move |(at, row)| (id(at), row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::wire::MAX_EPOCH;

    const LAST: usize = MAX_EPOCH as usize;

    fn table(planned: u64, records: u64, last_epoch: u16) -> OrderTable {
        OrderTable::new(vec![PartitionBounds::new(planned, records, last_epoch, false); 2])
    }

    fn rows(table: &OrderTable) -> usize {
        table.partitions.iter().map(|partition| partition.rows.len()).sum()
    }

    #[test]
    fn epoch_memory_follows_its_orders() {
        let mut table = table(1_000_000, 6 * LAST as u64, MAX_EPOCH);
        for epoch in 1..=MAX_EPOCH {
            for sequence in 0..2 {
                table.partition(OrderId::new(1, epoch, sequence)).unwrap();
            }
        }
        assert_eq!((table.partitions.len(), rows(&table)), (2 + LAST, LAST * LATER_CHUNK as usize));
        let partition = table.partition(OrderId::new(1, 7, 20)).unwrap();
        assert_eq!((partition.epoch, partition.rows.len()), (7, 32));
        assert_eq!(table.partition_of(StrategyIndex(1), MAX_EPOCH).unwrap().epoch, MAX_EPOCH);
        assert!(
            table.partition_of(StrategyIndex(0), 1).is_none()
                && table.partition_of(StrategyIndex(2), 0).is_none()
        );
        assert_eq!(
            (table.newest_epoch(StrategyIndex(1)), table.newest_epoch(StrategyIndex(0))),
            (MAX_EPOCH, 0)
        );
    }

    #[test]
    fn impossible_orders_have_no_row() {
        let mut table = table(100, 1_000, 3);
        let mut error_for =
            |strategy, epoch, sequence| table.partition(OrderId::new(strategy, epoch, sequence)).err();
        assert_eq!(error_for(2, 0, 0), Some(MissingRow::Strategy));
        assert_eq!(error_for(1, 4, 0), Some(MissingRow::Epoch));
        assert_eq!(
            (error_for(1, 3, 100), error_for(1, 0, 100)),
            (Some(MissingRow::Limit), Some(MissingRow::Limit))
        );
        assert_eq!((error_for(1, 3, 99), error_for(1, 0, 99)), (None, None));
        assert_eq!(table.partitions.len(), 3);
    }

    #[test]
    fn forged_sequences_do_not_multiply_memory() {
        let mut table = table(u64::MAX, 5_000, MAX_EPOCH);
        let refused = (0..5_000u64).filter(|number| {
            let id = OrderId::new(0, 1 + (number % LAST as u64) as u16, number * 7_919 % 14_000);
            table.partition(id).is_err()
        });
        assert!(refused.count() > 4_000);
        assert!(rows(&table) as u64 <= 5_000 * 2 + SPARE_ROWS + LAST as u64 * LATER_CHUNK);
    }
}
