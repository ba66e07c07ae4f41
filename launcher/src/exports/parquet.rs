//! Exports orders and stages as two Parquet tables, for DuckDB, Polars, pandas and other column
//! readers. Written with the crate `parquet`, whose writer keeps one row group in memory; the
//! feature `parquet` brings it.

use analysis::merge::{MergedRun, OrderRow};
use analysis::record::RunRecord;
use analysis::summary::to_ns;
use anyhow::{Context, Result};
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use protocol::flow::{PATH, Stage};
use protocol::stamps::Point;
use protocol::wire::OrderId;
use std::io::Write;
use std::sync::Arc;

/// Rows in a row group. All of its columns are in memory at once: about 10 MiB.
const GROUP: usize = 1 << 16;

const STRATEGY: &str = "required int32 strategy (integer(16, false)); ";
const REST_OF_ID: &str =
    "required int32 epoch (integer(16, false)); required int64 sequence (integer(64, false));";

/// Returns an order id's columns, without the strategy if the file's folder names it.
fn id_columns(part: Option<u16>) -> String {
    let strategy = if part.is_none() { STRATEGY } else { "" };
    format!("{strategy}{REST_OF_ID}")
}

/// Returns the orders of one strategy, or of all.
fn rows(merged: &MergedRun, part: Option<u16>) -> impl Iterator<Item = (OrderId, &OrderRow)> {
    let (all, of_one) = match part {
        None => (Some(merged.orders()), None),
        Some(strategy) => (None, Some(merged.orders_of(strategy))),
    };
    all.into_iter().flatten().chain(of_one.into_iter().flatten())
}

/// Returns the venue whose gateway received the order; `None` if no gateway's log has it.
fn venue(record: &RunRecord, row: &OrderRow) -> Option<u16> {
    // A row has room for a gateway's number of seven bits.
    row.pushed().map(|(gateway, _)| gateway as u16)
}

/// Returns nanoseconds since the run's start; negative before it.
fn since_start(record: &RunRecord, ticks: u64) -> i64 {
    let start = record.clock.start_ticks;
    let since = to_ns(ticks.abs_diff(start), record.clock.ns_per_tick) as i64;
    if ticks < start { -since } else { since }
}

/// Writes one row per order, of all strategies or of one, as a Parquet table. Its id, due time and
/// stamps in nanoseconds since the run's start (null if missing), the reason's code if it was
/// refused, whether it counts in the figures, and its venue (null if no gateway's log has it).
pub fn orders(
    record: &RunRecord,
    merged: &MergedRun,
    part: Option<u16>,
    out: impl Write + Send,
) -> Result<()> {
    let id = id_columns(part);
    let times: String = ["due".into()]
        .into_iter()
        .chain((1..=PATH.len()).map(|at| format!("t{at}")))
        .fold(String::new(), |all, name| all + &format!(" optional int64 {name};"));
    let schema = format!(
        "message orders {{ {id}{times} optional int32 rejected (integer(8, false)); required boolean measured; \
         optional int32 venue (integer(16, false)); }}"
    );
    let mut file = writer(&schema, &[], out)?;
    let mut rows = rows(merged, part);
    loop {
        let rows: Vec<_> = rows.by_ref().take(GROUP).collect();
        if rows.is_empty() {
            break;
        }
        let mut group = file.next_row_group()?;
        ids(&mut group, part, rows.iter().map(|(id, _)| *id))?;
        for point in [Point::Due].into_iter().chain(PATH) {
            let times = rows.iter().map(|(_, row)| row.at(point).map(|ticks| since_start(record, ticks)));
            let (values, there) = optional(times);
            put::<Int64Type>(&mut group, &values, Some(&there))?;
        }
        let (reasons, there) = optional(rows.iter().map(|(_, row)| row.reason().map(i32::from)));
        put::<Int32Type>(&mut group, &reasons, Some(&there))?;
        let measured: Vec<bool> = rows.iter().map(|(_, row)| row.is_measured()).collect();
        put::<BoolType>(&mut group, &measured, None)?;
        let (venues, there) = optional(rows.iter().map(|(_, row)| venue(record, row).map(i32::from)));
        put::<Int32Type>(&mut group, &venues, Some(&there))?;
        group.close()?;
    }
    file.close()?;
    Ok(())
}

/// Writes one row per stage of an order as a Parquet table: order id, stage name, start and
/// duration. The start is in nanoseconds since the run's start. All stages of an order are
/// consecutive; those of which an end was not stamped are not there.
pub fn stages(
    record: &RunRecord,
    merged: &MergedRun,
    part: Option<u16>,
    out: impl Write + Send,
) -> Result<()> {
    let id = id_columns(part);
    let schema = format!(
        "message stages {{ {id} required binary stage (string); required int64 began; required int64 ns; required boolean measured; }}"
    );
    let mut file = writer(&schema, &["stage"], out)?;
    let mut rows = rows(merged, part).flat_map(|(id, row)| {
        Stage::ALL.into_iter().filter_map(move |stage| {
            let (began, took) = (row.at(stage.info().from)?, row.stage(stage)?);
            Some((id, stage, began, took, row.is_measured()))
        })
    });
    loop {
        let rows: Vec<_> = rows.by_ref().take(GROUP).collect();
        if rows.is_empty() {
            break;
        }
        let mut group = file.next_row_group()?;
        ids(&mut group, part, rows.iter().map(|row| row.0))?;
        let names: Vec<ByteArray> = rows.iter().map(|row| ByteArray::from(row.1.name())).collect();
        put::<ByteArrayType>(&mut group, &names, None)?;
        let began = rows.iter().map(|row| since_start(record, row.2)).collect();
        let took = rows.iter().map(|row| to_ns(row.3, record.clock.ns_per_tick) as i64).collect();
        for values in [began, took] as [Vec<i64>; 2] {
            put::<Int64Type>(&mut group, &values, None)?;
        }
        let measured: Vec<bool> = rows.iter().map(|row| row.4).collect();
        put::<BoolType>(&mut group, &measured, None)?;
        group.close()?;
    }
    file.close()?;
    Ok(())
}

/// Numbers that differ little between rows are delta-encoded; names, of which there are few, use a
/// dictionary.
fn writer<W: Write + Send>(schema: &str, names: &[&str], out: W) -> Result<SerializedFileWriter<W>> {
    let schema = Arc::new(parse_message_type(schema)?);
    let mut properties =
        WriterProperties::builder().set_compression(Compression::UNCOMPRESSED).set_dictionary_enabled(false);
    for field in schema.get_fields() {
        let is_number =
            matches!(field.get_physical_type(), parquet::basic::Type::INT32 | parquet::basic::Type::INT64);
        if is_number {
            properties = properties.set_column_encoding(field.name().into(), Encoding::DELTA_BINARY_PACKED);
        }
    }
    for name in names {
        properties = properties.set_column_dictionary_enabled((*name).into(), true);
    }
    Ok(SerializedFileWriter::new(out, schema, Arc::new(properties.build()))?)
}

fn ids(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    part: Option<u16>,
    ids: impl Iterator<Item = OrderId> + Clone,
) -> Result<()> {
    let strategy = part.is_none().then_some(OrderId::strategy as fn(OrderId) -> u16);
    for number in strategy.into_iter().chain([OrderId::epoch as fn(OrderId) -> u16]) {
        let values: Vec<i32> = ids.clone().map(|id| i32::from(number(id))).collect();
        put::<Int32Type>(group, &values, None)?;
    }
    let sequences: Vec<i64> = ids.map(|id| id.sequence() as i64).collect();
    put::<Int64Type>(group, &sequences, None)
}

/// Writes the next column of a row group; `there` marks the rows that have a value, for an optional
/// column.
fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
    there: Option<&[i16]>,
) -> Result<()> {
    let mut column = group.next_column()?.context("the schema has fewer columns than are written")?;
    column.typed::<T>().write_batch(values, there, None)?;
    column.close()?;
    Ok(())
}

/// Returns the present values, and for each row whether it has one.
fn optional<T>(rows: impl Iterator<Item = Option<T>>) -> (Vec<T>, Vec<i16>) {
    let mut values = Vec::with_capacity(rows.size_hint().0);
    let there = rows
        .map(|row| {
            let is_there = i16::from(row.is_some());
            values.extend(row);
            is_there
        })
        .collect();
    (values, there)
}
