//! CPU lists in the notation of the kernel: `0,2-5`.

/// Upper bound of core numbers, so that a hostile range cannot exhaust memory.
const MAX_CORES: u32 = 8192;

/// Parses a list of CPU cores such as `0,2-5`. Returns the cores ascending and without duplicates,
/// or `None` if the text is invalid. An empty text is an empty list.
pub fn parse(text: &str) -> Option<Vec<u32>> {
    let mut cores = Vec::new();
    if text.trim().is_empty() {
        return Some(cores);
    }
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|core| *core < MAX_CORES);
        let (first, last) = (number(first)?, number(last)?);
        if first > last || cores.len() > MAX_CORES as usize {
            return None;
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Some(cores)
}

/// Formats ascending CPU core numbers as a list, with consecutive ones as ranges. Returns an empty
/// text for an empty list.
pub fn format(cores: &[u32]) -> String {
    let mut text = String::new();
    let mut rest = cores;
    while let Some(&first) = rest.first() {
        let run = rest.iter().zip(first..).take_while(|(core, expected)| **core == *expected).count();
        let last = rest[run - 1];
        if !text.is_empty() {
            text.push(',');
        }
        match last - first {
            0 => text.push_str(&first.to_string()),
            1 => text.push_str(&format!("{first},{last}")),
            _ => text.push_str(&format!("{first}-{last}")),
        }
        rest = &rest[run..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn core_lists_parse_kernel_format() {
        assert_eq!(parse("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse("5,2-3,2"), Some(vec![2, 3, 5]));
        assert_eq!(parse(" \n"), Some(vec![]));
        for text in ["(null)", "1-", "-1", "3-1", "0-4294967295", "1,,2", "0x1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn consecutive_cores_format_as_ranges() {
        assert_eq!(format(&[0, 2, 3, 4, 7, 8]), "0,2-4,7,8");
        assert_eq!(format(&[]), "");
    }

    proptest! {
        #[test]
        fn core_lists_round_trip(cores in proptest::collection::btree_set(0u32..MAX_CORES, 0..50)) {
            let cores: Vec<u32> = cores.into_iter().collect();
            prop_assert_eq!(parse(&format(&cores)), Some(cores));
        }

        #[test]
        fn arbitrary_text_never_panics(text in "\\PC*", list in "[0-9,-]{0,30}") {
            let _ = (parse(&text), parse(&list));
        }
    }
}
