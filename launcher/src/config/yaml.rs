//! A parser for flat YAML: one `key: value` a line, comments, and lists in brackets or one `- item`
//! a line.
//!
//! A value is plain, in single or double quotes, or after `>` or `|` the indented lines that
//! follow, in which version 0.2 wrote long values. Anything else in YAML (nested maps, anchors,
//! bracketed lists over several lines) is an error with its position.

/// The value of a key in a YAML file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum YamlValue {
    /// An empty value, or `null`.
    Nothing,
    /// A single value's text.
    One(String),
    /// A list of values.
    List(Vec<String>),
}

/// A position in a YAML file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextPosition {
    pub line: usize,
    pub column: usize,
}

/// A key of a YAML file with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct YamlEntry {
    pub key: String,
    pub value: YamlValue,
    /// Position of the key.
    pub key_at: TextPosition,
    /// Position of the value, or where it is missing.
    pub value_at: TextPosition,
}

/// A syntax error in a YAML file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct YamlError {
    pub what: &'static str,
    pub at: TextPosition,
}

const NO_KEY: &str = "expected lines of `key: value`, for example `strategies: 2`";
const QUOTE: &str = "this value needs quotes: \"…\"";
const OPEN: &str = "the quote is not closed on its line";
const TRAILING: &str = "expected the end of the line here";
const NESTED: &str = "expected a single value, not a list or a map";
const OPEN_LIST: &str = "expected `]` at the end of the list";

/// Parses all entries of a YAML file in order. A key may occur twice.
pub(super) fn entries(text: &str) -> Result<Vec<YamlEntry>, YamlError> {
    let mut found: Vec<YamlEntry> = Vec::new();
    let mut indent = None;
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let mut rest = LineCursor { line: number + 1, text: line, at: 0 };
        rest.skip_blanks();
        if rest.is_over() || number == 0 && matches!(line.trim_end(), "---" | "{}") {
            continue;
        }
        if rest.try_take_dash() {
            let item = rest.scalar(false)?;
            rest.expect_end()?;
            match (found.last_mut().map(|entry| &mut entry.value), item) {
                (Some(YamlValue::List(items)), Some(item)) => items.push(item),
                (Some(value @ YamlValue::Nothing), Some(item)) => *value = YamlValue::List(vec![item]),
                _ => return Err(rest.error(NO_KEY)),
            }
            continue;
        }
        let key_at = rest.position();
        if *indent.get_or_insert(key_at.column) != key_at.column {
            return Err(rest.error(NO_KEY));
        }
        let key = rest.key()?;
        rest.skip_blanks();
        let value_at = rest.position();
        let value = match rest.try_take_block() {
            Some(is_folded) => {
                let is_inside = |line: &str| line.trim().is_empty() || column_of(line) >= key_at.column;
                let block = std::iter::from_fn(|| lines.next_if(|(_, line)| is_inside(line)));
                YamlValue::One(joined(block.map(|(_, line)| line), is_folded))
            }
            None => rest.value()?,
        };
        rest.expect_end()?;
        found.push(YamlEntry { key, value, key_at, value_at });
    }
    Ok(found)
}

/// Returns the indentation of a line.
fn column_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Joins the indented lines of a block value. In folded style a line break becomes a blank, and an
/// empty line a line break.
fn joined<'a>(lines: impl Iterator<Item = &'a str>, is_folded: bool) -> String {
    let mut text = String::new();
    let mut indent = None;
    for line in lines {
        if is_folded && !text.is_empty() && !text.ends_with('\n') && !line.trim().is_empty() {
            text.push(' ');
        }
        let indent = *indent.get_or_insert(column_of(line));
        text.push_str(line.get(indent..).unwrap_or(""));
        if !is_folded || line.trim().is_empty() {
            text.push('\n');
        }
    }
    text.trim_end_matches('\n').to_owned()
}

/// A cursor over one line.
struct LineCursor<'a> {
    line: usize,
    text: &'a str,
    /// Bytes consumed.
    at: usize,
}

impl LineCursor<'_> {
    fn remaining(&self) -> &str {
        &self.text[self.at..]
    }

    fn position(&self) -> TextPosition {
        TextPosition { line: self.line, column: self.text[..self.at].chars().count() + 1 }
    }

    fn error(&self, what: &'static str) -> YamlError {
        YamlError { what, at: self.position() }
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.remaining().trim_start().len();
    }

    /// Returns `true` if nothing is left but a comment, which begins the line or follows a blank.
    fn is_over(&self) -> bool {
        let is_parted = self.text[..self.at].chars().next_back().is_none_or(char::is_whitespace);
        self.remaining().trim_start().is_empty() || is_parted && self.remaining().starts_with('#')
    }

    fn expect_end(&mut self) -> Result<(), YamlError> {
        self.skip_blanks();
        if self.is_over() { Ok(()) } else { Err(self.error(TRAILING)) }
    }

    /// Consumes the dash of a list item, if there is one.
    fn try_take_dash(&mut self) -> bool {
        let is_item = self.remaining().strip_prefix('-').is_some_and(|rest| rest.starts_with([' ', '\t']));
        if is_item {
            self.at += 1;
            self.skip_blanks();
        }
        is_item
    }

    /// Consumes the marker of a block value, if there is one. Returns `true` if it is folded.
    fn try_take_block(&mut self) -> Option<bool> {
        let head = self.remaining().trim_end();
        let is_folded = matches!(head, ">" | ">-" | ">+");
        (is_folded || matches!(head, "|" | "|-" | "|+")).then(|| {
            self.at = self.text.len();
            is_folded
        })
    }

    fn key(&mut self) -> Result<String, YamlError> {
        if self.remaining().starts_with(['"', '\'']) {
            let key = self.quoted()?;
            if !self.remaining().starts_with(':') {
                return Err(self.error(NO_KEY));
            }
            self.at += 1;
            return Ok(key);
        }
        let left = self.remaining();
        let is_end = |place: &usize| left[place + 1..].chars().next().is_none_or(char::is_whitespace);
        let end = left.match_indices(':').map(|(place, _)| place).find(is_end);
        let Some(end) = end.filter(|end| *end > 0 && !left.starts_with(['[', '{', '#', '&', '*', '!']))
        else {
            return Err(self.error(NO_KEY));
        };
        let key = left[..end].trim_end().to_owned();
        self.at += end + 1;
        Ok(key)
    }

    fn value(&mut self) -> Result<YamlValue, YamlError> {
        if !self.remaining().starts_with('[') {
            return Ok(self.scalar(false)?.map_or(YamlValue::Nothing, YamlValue::One));
        }
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.skip_blanks();
            if self.remaining().starts_with(']') {
                break;
            }
            items.extend(self.scalar(true)?);
            self.skip_blanks();
            match self.remaining().chars().next() {
                Some(',') => self.at += 1,
                Some(']') => break,
                _ => return Err(self.error(OPEN_LIST)),
            }
        }
        self.at += 1;
        Ok(YamlValue::List(items))
    }

    /// Parses a single value; `None` if there is none.
    fn scalar(&mut self, in_list: bool) -> Result<Option<String>, YamlError> {
        if self.is_over() {
            return Ok(None);
        }
        match self.remaining().chars().next() {
            Some('"' | '\'') => return self.quoted().map(Some),
            Some('[' | '{') => return Err(self.error(NESTED)),
            Some('&' | '*' | '!' | '|' | '>' | '%' | '@' | '`' | ']' | '}' | ',') => {
                return Err(self.error(QUOTE));
            }
            _ => {}
        }
        let left = self.remaining();
        let mut end = left.find(" #").or_else(|| left.find("\t#")).unwrap_or(left.len());
        if in_list {
            end = left[..end].find([',', '[', ']', '{', '}']).unwrap_or(end);
        }
        let plain = left[..end].trim_end();
        if plain.contains(": ") || plain.ends_with(':') || plain.chars().any(char::is_control) {
            return Err(self.error(QUOTE));
        }
        let plain = (!matches!(plain, "~" | "null" | "Null" | "NULL")).then(|| plain.to_owned());
        self.at += end;
        Ok(plain)
    }

    /// Parses a quoted text.
    fn quoted(&mut self) -> Result<String, YamlError> {
        let mut text = String::new();
        let mut chars = self.remaining().char_indices();
        let quote = chars.next().map(|(_, quote)| quote);
        let is_double = quote == Some('"');
        while let Some((place, c)) = chars.next() {
            let is_twice = || !is_double && self.remaining()[place + 1..].starts_with('\'');
            match c {
                _ if Some(c) == quote && !is_twice() => {
                    self.at += place + 1;
                    return Ok(text);
                }
                '\'' if !is_double => {
                    chars.next();
                    text.push(c);
                }
                '\\' if is_double => {
                    let escaped = chars.next().and_then(|(_, escape)| unescaped(escape, &mut chars));
                    text.push(escaped.ok_or_else(|| self.error("an escape after `\\` that is none"))?);
                }
                c => text.push(c),
            }
        }
        Err(self.error(OPEN))
    }
}

/// Returns the character of an escape.
fn unescaped(escape: char, chars: &mut std::str::CharIndices<'_>) -> Option<char> {
    let digits = match escape {
        'n' => return Some('\n'),
        't' => return Some('\t'),
        'r' => return Some('\r'),
        '0' => return Some('\0'),
        'e' => return Some('\x1b'),
        '"' | '\\' | '/' | ' ' => return Some(escape),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return None,
    };
    let mut code = 0;
    for _ in 0..digits {
        code = code * 16 + chars.next()?.1.to_digit(16)?;
    }
    char::from_u32(code)
}

/// Formats a text as a YAML value that is parsed back to an equal text. Plain if possible,
/// otherwise in double quotes.
pub(super) fn written(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+=@%~ ".contains(c);
    let begins_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric() || "_./+".contains(c));
    let is_ambiguous = text.contains(": ")
        || text.ends_with([':', ' '])
        || matches!(text, "null" | "Null" | "NULL" | "true" | "false");
    if begins_plain && !is_ambiguous && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                quoted.push_str(&format!("\\U{:08x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(text: &str) -> Vec<YamlValue> {
        entries(text).unwrap().into_iter().map(|entry| entry.value).collect()
    }

    #[test]
    fn each_way_to_write_a_value_is_read() {
        let one = |text: &str| YamlValue::One(text.to_owned());
        let list = |items: &[&str]| YamlValue::List(items.iter().map(|item| (*item).to_owned()).collect());
        for (text, value) in [
            ("a: b c  # d", one("b c")),
            ("  a :\tb#c", one("b#c")),
            ("---\n\"a\": 'it''s # b'", one("it's # b")),
            (r#"a: "\x41\u00e9\U0001f600\n\"""#, one("Aé😀\n\"")),
            ("a: 10.0.0.1:7000", one("10.0.0.1:7000")),
            ("a:", YamlValue::Nothing),
            ("a: ~ # nothing", YamlValue::Nothing),
            ("a: []", list(&[])),
            ("a: [b, 'c, d', \"]\"] # e", list(&["b", "c, d", "]"])),
            ("a:\n- b\n- c # d", list(&["b", "c"])),
            ("a:\n  # b\n  - c:d:e\n\n  - 'f'", list(&["c:d:e", "f"])),
            ("a: >-\n  b c\n  d # e\n\n  f\n", one("b c d # e\nf")),
            ("a: |\n  b\n    c\n", one("b\n  c")),
        ] {
            assert_eq!(values(text), [value], "{text:?}");
        }
        assert_eq!(values("a: >-\n  b\nc: d\n"), [one("b"), one("d")]);
    }

    #[test]
    fn yaml_error_shows_position() {
        for (text, what, line, column) in [
            ("a: b\nc\n", NO_KEY, 2, 1),
            ("- a", NO_KEY, 1, 4),
            ("a: 1\n- b", NO_KEY, 2, 4),
            ("a: 1\n  b: 2", NO_KEY, 2, 3),
            ("a: b: c", QUOTE, 1, 4),
            ("a:\n- b: c", QUOTE, 2, 3),
            ("a: *b", QUOTE, 1, 4),
            ("a: {b: c}", NESTED, 1, 4),
            ("a: [b, [c]]", NESTED, 1, 8),
            ("a: [b, c", OPEN_LIST, 1, 9),
            ("a: [b] c", TRAILING, 1, 8),
            ("a: 'b", OPEN, 1, 4),
            ("a: \"b\" c", TRAILING, 1, 8),
        ] {
            assert_eq!(entries(text), Err(YamlError { what, at: TextPosition { line, column } }), "{text:?}");
        }
        assert!(entries(r#"a: "\ud800""#).is_err());
    }

    proptest! {
        #[test]
        fn written_text_is_read_back(text in "\\PC*|[a-z :#'\"\n\t~>|-]{0,9}") {
            prop_assert_eq!(values(&format!("a: {}\n", written(&text))), [YamlValue::One(text)]);
        }
    }
}
