//! Stamp logs in files: their names, writing one, and reading back the keys of a part.
//!
//! The layout and the reader that checks every record are in `analysis::logfile`.

use crate::stamps::{RECORD_BYTES, RECORD_WORDS, count_records};
use crate::status::LOG_OFFSET;
use shm::memory::ReadOnlyWords;
use shm::sync::Ordering;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use system::folder::open_regular;

/// The file name extension of saved stamp logs.
pub const EXTENSION: &str = "stamps";

/// Returns the file name of a thread's log in the run's directory.
pub fn file_name(thread: &str) -> String {
    format!("{thread}.{EXTENSION}")
}

/// Number of bytes before the first record in a saved log.
pub const RECORDS_AT: u64 = (LOG_OFFSET * 8) as u64;

/// Number of words copied and written at a time: 1 MiB.
const CHUNK: usize = 1 << 17;

/// Writes one thread's stamp log to a file: header, status block and records. `header` replaces the
/// segment's own header.
///
/// # Errors
/// An error of `out`.
pub fn write(header: &[u64], segment: &ReadOnlyWords, out: &mut impl Write) -> io::Result<()> {
    let words = LOG_OFFSET + count_records(segment) * RECORD_WORDS;
    let mut bytes = Vec::with_capacity(CHUNK.min(words) * 8);
    for start in (0..words).step_by(CHUNK) {
        bytes.clear();
        for index in start..words.min(start + CHUNK) {
            // Relaxed: the records below the count are complete, and the thread that wrote them has
            // ended.
            let word = header.get(index).copied().unwrap_or_else(|| segment.load(index, Ordering::Relaxed));
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Reads the key words of `records` records of a saved log, from record `first` on. The file may
/// still be growing.
///
/// # Errors
/// An error of the system; a file that ends too early.
pub fn keys_at(path: &Path, first: u64, records: usize) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; records * RECORD_BYTES];
    open_regular(path)?.read_exact_at(&mut bytes, RECORDS_AT + first * RECORD_BYTES as u64)?;
    let key = |record: &[u8; RECORD_BYTES]| u64::from_le_bytes(std::array::from_fn(|byte| record[byte]));
    Ok(bytes.as_chunks().0.iter().map(key).collect())
}
