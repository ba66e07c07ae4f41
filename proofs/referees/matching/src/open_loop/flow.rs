//! The benchmark's recorded flows: `orders_SCENARIO_sSEED_nCOUNT.bin`, as its generator writes them.

use crate::abi::{CancelMessage, ModifyMessage, NewOrderMessage};
use std::path::Path;

const MAGIC: u64 = 0x4D45_4257_5F30_3031;
const VERSION: u32 = 1;
/// Bytes of the head: magic, version, count.
const HEAD: usize = 16;
/// Bytes of a record: type, side, immediate-or-cancel, padding; quantity; sequence; order; price; reserved.
const RECORD: usize = 40;

pub enum Message {
    New(NewOrderMessage),
    Cancel(CancelMessage),
    Modify(ModifyMessage),
}

/// Reads a flow. Sequence numbers are the indices of the messages.
///
/// # Errors
/// What is wrong with the file.
pub fn read(path: &Path) -> Result<Vec<Message>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let wrong = |what: &str| format!("{}: {what}: make it with the benchmark's generator", path.display());
    let (head, records) = bytes.split_at_checked(HEAD).ok_or_else(|| wrong("too short"))?;
    if word(head, 0) != MAGIC || half(head, 8) != VERSION {
        return Err(wrong("no flow of this version"));
    }
    if records.len() != half(head, 12) as usize * RECORD {
        return Err(wrong("another length than its head has"));
    }
    let messages = records.chunks_exact(RECORD).enumerate().map(|(index, record)| {
        let (order_id, price, quantity) = (word(record, 16), word(record, 24).cast_signed(), half(record, 4));
        let (side, ioc, sequence_number) = (record[1], record[2], index as u64);
        Some(match record[0] {
            0 => Message::New(NewOrderMessage {
                order_id,
                sequence_number,
                price_ticks: price,
                quantity,
                side,
                ioc,
                reserved: [0; 2],
            }),
            1 => Message::Cancel(CancelMessage { order_id, sequence_number }),
            2 => Message::Modify(ModifyMessage {
                order_id,
                sequence_number,
                new_price_ticks: price,
                new_quantity: quantity,
                side,
                reserved: [0; 3],
            }),
            _ => return None,
        })
    });
    messages.collect::<Option<Vec<_>>>().ok_or_else(|| wrong("an unknown type of message"))
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
