//! Number formatting for people: few digits and a fitting unit.

/// Formats a duration in nanoseconds for people, in a fitting unit: `412 ns`, `12.3 µs`, `250 ms`,
/// `24.0 h`. Nanoseconds up to 9,999, then micro- and milliseconds, seconds, hours and days, with
/// three significant digits or more.
pub fn duration(ns: u64) -> String {
    const UNITS: [(&str, f64); 5] = [("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("h", 3.6e12), ("d", 8.64e13)];
    if ns <= 9_999 {
        return format!("{} ns", count(ns));
    }
    let unit = UNITS.iter().find(|(_, size)| ns as f64 / size < 9_999.5).unwrap_or(&UNITS[4]);
    format!("{} {}", plain(ns as f64 / unit.1), unit.0)
}

/// Formats a duration in nanoseconds for people; a dash if it is unknown.
pub fn duration_or_dash(ns: Option<u64>) -> String {
    ns.map_or_else(|| "–".into(), duration)
}

/// The units of time with their length in nanoseconds, shortest first.
const TIME_UNITS: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
/// A unit is too short for a row of durations if the longest has this many of it.
const TOO_MANY: f64 = 10_000.0;
/// A unit is too long for a row of durations if the shortest has less than this of it.
const TOO_FEW: f64 = 0.05;

/// Formats the durations of one table row, in nanoseconds, in one unit: `0.42 µs`, `13,300 µs`. A
/// dash for an unknown one.
pub fn in_one_unit<const N: usize>(durations: [Option<u64>; N]) -> [String; N] {
    let known = || durations.iter().flatten().filter(|ns| **ns > 0).map(|ns| *ns as f64);
    let max = known().fold(0.0, f64::max);
    let min = known().fold(max, f64::min);
    let fits = |size: f64| min >= size || max >= TOO_MANY * size / 1e3 && min >= TOO_FEW * size;
    let (name, size) = *TIME_UNITS.iter().rev().find(|(_, size)| fits(*size)).unwrap_or(&TIME_UNITS[0]);
    let number = |ns: u64| if size > 1.0 { plain(ns as f64 / size) } else { count(ns) };
    durations.map(|ns| ns.map_or_else(|| "–".into(), |ns| format!("{} {name}", number(ns))))
}

/// Formats a difference of durations in nanoseconds with its sign: `+12 ns`, `−1,234 µs`.
pub fn signed(ns: f64) -> String {
    let sign = if ns < 0.0 { "−" } else { "+" };
    format!("{sign}{}", duration(ns.abs().round() as u64))
}

/// Formats a whole number with separated thousands: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 case`, `1,234 cases`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {}", count(number), plural(noun, number))
}

/// Returns an English noun in the form that goes with this number: `case` or `cases`, `strategy` or
/// `strategies`, `process` or `processes`.
pub fn plural(noun: &str, number: u64) -> String {
    match noun.strip_suffix('y') {
        _ if number == 1 => noun.into(),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// Formats a whole number for people in at most six characters: `99,999`, then `1.23 M`, `12.3 M`,
/// `45.6 G`.
pub fn short(number: u64) -> String {
    const UNITS: [(&str, f64); 5] = [("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("E", 1e18)];
    if number <= 99_999 {
        return count(number);
    }
    let number = number as f64;
    let unit = UNITS.iter().find(|(_, size)| number / size < 999.5).unwrap_or(&UNITS[4]);
    format!("{} {}", plain(number / unit.1), unit.0)
}

/// Formats a number for people with three significant digits: `0.42`, `12.3`, `1,234`; a dash if it
/// is not finite. It is whole from 100 on.
pub fn plain(number: f64) -> String {
    match number.abs() {
        size if !size.is_finite() => "–".into(),
        size if size < 9.995 => format!("{number:.2}"),
        size if size < 99.95 => format!("{number:.1}"),
        _ if number < 0.0 => format!("-{}", count(-number.round() as u64)),
        _ => count(number.round() as u64),
    }
}

/// Formats a share from 0 to 1 as a percentage: `42%`; a dash if it is unknown or not finite.
pub fn percent(share: Option<f64>) -> String {
    share
        .filter(|share| share.is_finite())
        .map_or_else(|| "–".into(), |share| format!("{:.0}%", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_follow_their_number() {
        let cases = [
            (0, "case", "0 cases"),
            (1, "case", "1 case"),
            (1_234, "minute", "1,234 minutes"),
            (1, "strategy", "1 strategy"),
            (2, "strategy", "2 strategies"),
            (2, "process", "2 processes"),
            (3, "more repeat", "3 more repeats"),
            (2, "key", "2 keys"),
            (2, "push", "2 pushes"),
        ];
        for (number, noun, wanted) in cases {
            assert_eq!(counted(number, noun), wanted);
        }
    }

    #[test]
    fn durations_change_units_as_documented() {
        let cases = [
            (0, "0 ns"),
            (412, "412 ns"),
            (9_999, "9,999 ns"),
            (10_000, "10.0 µs"),
            (12_345, "12.3 µs"),
            (99_960, "100 µs"),
            (1_234_567, "1,235 µs"),
            (9_999_499, "9,999 µs"),
            (9_999_500, "10.0 ms"),
            (250_000_000, "250 ms"),
            (9_000_000_000_000, "9,000 s"),
            (86_400_000_000_000, "24.0 h"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(duration(u64::MAX), "213,504 d");
        assert_eq!(duration_or_dash(None), "–");
    }

    #[test]
    fn durations_of_a_row_share_their_unit() {
        let row = |low: u64, high: u64| in_one_unit([Some(low), Some(high)]);
        assert_eq!(row(265, 1_200), ["265 ns", "1,200 ns"]);
        assert_eq!(row(421, 13_300_000), ["0.42 µs", "13,300 µs"]);
        assert_eq!(row(1_392, 11_500_000), ["1.39 µs", "11,500 µs"]);
        assert_eq!(row(7_221_000, 36_900_000), ["7.22 ms", "36.9 ms"]);
        assert_eq!(row(60_000, 700_000_000), ["0.06 ms", "700 ms"]);
        assert_eq!(row(0, 0), ["0 ns", "0 ns"]);
        assert_eq!(in_one_unit([None, Some(2_000_000_000)]), ["–", "2.00 s"]);
        assert_eq!(in_one_unit([None]), ["–"]);
    }

    #[test]
    fn counts_group_thousands() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [99_999, 100_000, 1_234_567, 40_000_000].map(short),
            ["99,999", "100 k", "1.23 M", "40.0 M"]
        );
        assert!(short(u64::MAX).len() <= 6, "{}", short(u64::MAX));
    }

    #[test]
    fn unusual_numbers_stay_readable() {
        assert_eq!(
            [0.0, 9.999, 99.96, 1234.4, -1234.4].map(plain),
            ["0.00", "10.0", "100", "1,234", "-1,234"]
        );
        assert_eq!(plain(f64::NAN), "–");
        assert_eq!([percent(Some(0.424)), percent(None)], ["42%", "–"]);
    }
}
