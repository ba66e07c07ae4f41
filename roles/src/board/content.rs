//! Values of the board benchmark: each word identifies the write by which it was stored.

const WRITE: u64 = 0x9E37_79B9_7F4A_7C15;
const PLACE: u64 = 0xD1B5_4A32_D192_ED03;

/// Fills a board cell's value with words derived from the number of its write, so that a torn value
/// can be detected. Writes are numbered over all cells.
#[inline(always)]
pub fn fill(value: &mut [u64], number: u64) {
    let mut word = number.wrapping_add(1).wrapping_mul(WRITE);
    for slot in value {
        *slot = word;
        word = word.wrapping_add(PLACE);
    }
}

/// Returns `true` if every word of a board's value belongs to write `number`, so that the value is
/// not torn.
#[inline(always)]
pub fn is_whole(value: &[u64], number: u64) -> bool {
    let mut word = number.wrapping_add(1).wrapping_mul(WRITE);
    let mut differs = 0;
    for slot in value {
        differs |= *slot ^ word;
        word = word.wrapping_add(PLACE);
    }
    differs == 0
}

/// Returns the number of the write that gave a board's cell this version. Writes are counted over
/// all cells and go to the cells in turn.
#[inline(always)]
pub const fn number(version: u64, cell: usize, cells: usize) -> u64 {
    version.wrapping_sub(1).wrapping_mul(cells as u64).wrapping_add(cell as u64)
}
