//! What values hold: words from which a reader sees whether all of them are of the same write, and of which one.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_two_writes_is_seen_wherever_it_is_torn() {
        for words in [1, 2, 7, 64] {
            let (mut old, mut new) = (vec![0; words], vec![0; words]);
            fill(&mut old, 41);
            fill(&mut new, 42);
            assert!(is_whole(&old, 41) && is_whole(&new, 42));
            assert!(!is_whole(&old, 42), "a whole value of another version");
            for torn in 1..words {
                let value = [&new[..torn], &old[torn..]].concat();
                assert!(!is_whole(&value, 41) && !is_whole(&value, 42), "{torn} of {words}");
            }
            assert!(!is_whole(&vec![0; words], 41), "never written");
        }
    }

    #[test]
    fn versions_and_writes_are_the_same_numbers() {
        let mut versions = [0; 3];
        for write in 0..20 {
            let cell = write % 3;
            versions[cell] += 1;
            assert_eq!(number(versions[cell], cell, 3), write as u64);
        }
    }
}
