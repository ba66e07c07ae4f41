//! Values of the board benchmark, whose words show which write they belong to.

/// An odd number with many bits: neighbouring writes have values that differ in every word.
const WRITE: u64 = 0x9E37_79B9_7F4A_7C15;
/// Another one: neighbouring words differ.
const PLACE: u64 = 0xD1B5_4A32_D192_ED03;

/// The value of the write of that number, of all writes to all cells.
#[inline(always)]
pub fn fill(value: &mut [u64], number: u64) {
    let mut word = number.wrapping_add(1).wrapping_mul(WRITE);
    for place in value {
        *place = word;
        word = word.wrapping_add(PLACE);
    }
}

/// Whether every word is of the write of that number.
#[inline(always)]
pub fn is_whole(value: &[u64], number: u64) -> bool {
    let mut word = number.wrapping_add(1).wrapping_mul(WRITE);
    let mut differs = 0;
    for place in value {
        differs |= *place ^ word;
        word = word.wrapping_add(PLACE);
    }
    differs == 0
}

/// The write that gave a cell that version: writes go to the cells in turn.
#[inline(always)]
pub const fn number(version: u64, cell: usize, cells: usize) -> u64 {
    version.wrapping_sub(1).wrapping_mul(cells as u64).wrapping_add(cell as u64)
}
