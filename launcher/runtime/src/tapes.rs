//! Saves the exchanges' trades and last books in the run's folder, as CSV tables.

use anyhow::{Context, Result};
use protocol::index::VenueIndex;
use protocol::tape::{TAPED_INSTRUMENTS, TapeView};
use protocol::wire::OrderId;
use record::numbers::counted;
use shm::memory::ReadOnlyWords;
use std::io::{BufWriter, IntoInnerError, Write};
use std::path::Path;
use system::folder::{Draft, OpenDir};

/// Saves the exchanges' trades and last books as `trades-V.csv` and `book-V.csv` for each venue V.
/// Returns notes for the user.
pub fn save(
    tapes: &[(VenueIndex, ReadOnlyWords)],
    start_ticks: u64,
    ns_per_tick: f64,
    folder: &Path,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let cannot = |name: &str| format!("cannot write {}", folder.join(name).display());
    let place = OpenDir::open(folder).with_context(|| cannot(""))?;
    for (venue, segment) in tapes {
        let Some(tape) = TapeView::new(segment.clone()) else { continue };
        let ns = |ticks: u64| (ticks.saturating_sub(start_ticks) as f64 * ns_per_tick) as u64;
        let name = format!("trades-{venue}.csv");
        let mut file = BufWriter::new(place.draft(&name).with_context(|| cannot(&name))?);
        writeln!(file, "time_ns,instrument,maker,taker,price_cents,qty_satoshi")?;
        for trade in tape.trades() {
            let (maker, taker) = (name_of(trade.maker), name_of(trade.taker));
            writeln!(
                file,
                "{},{},{maker},{taker},{},{}",
                ns(trade.ticks),
                trade.instrument,
                trade.price,
                trade.quantity
            )?;
        }
        save_draft(file).with_context(|| cannot(&name))?;
        let name = format!("book-{venue}.csv");
        let mut file = BufWriter::new(place.draft(&name).with_context(|| cannot(&name))?);
        writeln!(file, "instrument,side,rank,price_cents,qty_satoshi,orders")?;
        for instrument in 0..TAPED_INSTRUMENTS as u16 {
            for (side, is_sell) in [("B", false), ("S", true)] {
                for (rank, level) in tape.levels(instrument, is_sell).enumerate() {
                    writeln!(
                        file,
                        "{instrument},{side},{rank},{},{},{}",
                        level.price, level.quantity, level.orders
                    )?;
                }
            }
        }
        save_draft(file).with_context(|| cannot(&name))?;
        if !tape.is_closed() {
            notes
                .push(format!("exchange {venue} did not reach the end of trading: its last book is missing"));
        }
        if tape.dropped() > 0 {
            notes.push(format!(
                "exchange {venue}: {} did not fit on its tape",
                counted(tape.dropped(), "trade")
            ));
        }
    }
    Ok(notes)
}

fn save_draft(file: BufWriter<Draft<'_>>) -> std::io::Result<()> {
    file.into_inner().map_err(IntoInnerError::into_error)?.save()
}

/// Formats an order's id; `book:N` for order N of the opening book.
fn name_of(id: u64) -> String {
    if id & venue::RESTING != 0 {
        format!("book:{}", id & !venue::RESTING)
    } else {
        OrderId::from_word(id).to_string()
    }
}
