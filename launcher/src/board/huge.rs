//! Huge pages: how many a board takes, and what to say where the machine has not put enough of them aside.

use std::fs;

/// What `--on` calls them.
pub const NAME: &str = "huge";
/// Bytes of one.
pub const BYTES: usize = 2 << 20;
/// Where the kernel says how many are free.
const FREE: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";

/// How many hold so many words.
pub const fn pages(words: usize) -> usize {
    (words * 8).div_ceil(BYTES)
}

/// How many are free; 0 where the kernel has none of this size.
pub fn free() -> usize {
    fs::read_to_string(FREE).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Why so many cannot be had, and the way out.
pub fn refusal(pages: usize) -> String {
    format!(
        "--on {NAME}: the board takes {pages} huge pages of 2 MiB, {} are free here. `sysctl vm.nr_hugepages={pages}` as root puts \
         so many aside; --on ./{NAME} is a folder of that name",
        free()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_takes_whole_pages_and_a_refusal_says_how_many() {
        assert_eq!([0, 1, BYTES / 8, BYTES / 8 + 1].map(pages), [0, 1, 1, 2]);
        assert!(refusal(7).contains("nr_hugepages=7"), "{}", refusal(7));
    }
}
