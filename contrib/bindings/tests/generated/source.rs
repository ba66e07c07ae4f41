//! The interface as its source has it: structures, constants, functions, each with its comment.

use super::folder;

/// Everything.
pub struct Interface {
    pub structures: Vec<Structure>,
    pub constants: Vec<Constant>,
    pub functions: Vec<Function>,
    sources: Vec<String>,
}

/// A structure.
pub struct Structure {
    pub name: String,
    pub doc: String,
    pub fields: Vec<Field>,
}

/// A field of one.
pub struct Field {
    pub name: String,
    pub doc: String,
    /// Width in bits of the field or of its elements, and whether it is signed.
    pub bits: usize,
    pub is_signed: bool,
    /// Number of elements; 1: not an array.
    pub many: usize,
    pub offset: usize,
}

/// A number with a name, without its `BH_`.
pub struct Constant {
    pub name: String,
    pub doc: String,
    pub value: i64,
    /// The first of several that belong together.
    pub begins: bool,
}

/// A function.
pub struct Function {
    pub name: String,
    /// The parameters in C syntax.
    pub arguments: Vec<String>,
    /// The first sentence of its comment.
    pub doc: String,
}

impl Structure {
    pub fn size(&self) -> usize {
        self.fields.iter().map(Field::size).sum()
    }
}

impl Field {
    pub fn size(&self) -> usize {
        self.bits / 8 * self.many
    }

    /// `u16`, `i64`, `u8[5]`.
    pub fn kind(&self) -> String {
        let many = if self.many > 1 { format!("[{}]", self.many) } else { String::new() };
        format!("{}{}{many}", if self.is_signed { 'i' } else { 'u' }, self.bits)
    }
}

impl Interface {
    pub fn read() -> Self {
        let text = |module: &str| {
            let path = folder().join(format!("src/{module}.rs"));
            let text = std::fs::read_to_string(&path).expect("the source is there");
            text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()
        };
        let [codes, layout, abi] = ["codes", "layout", "abi"].map(text);
        Self {
            structures: structures(&layout),
            constants: [&codes, &layout].into_iter().flat_map(|text| constants(text)).collect(),
            functions: functions(&abi),
            sources: vec![codes, layout, abi],
        }
    }

    /// Returns the number of occurrences in the source.
    pub fn count_of(&self, words: &str) -> usize {
        self.sources.iter().map(|text| text.matches(words).count()).sum()
    }

    pub fn constant(&self, name: &str) -> i64 {
        self.constants.iter().find(|found| found.name == name).expect("there is such a constant").value
    }
}

/// The comment above that line.
fn comment(lines: &[&str], before: usize) -> String {
    let above = lines[..before].iter().rev().map(|line| line.trim_start());
    let above = above.skip_while(|line| line.starts_with("#["));
    let mut found: Vec<&str> =
        above.take_while(|line| line.starts_with("///")).map(|line| line[3..].trim()).collect();
    found.reverse();
    found.join(" ")
}

/// The structures of C in a source; panics if the compiler would have to pad one.
pub fn structures(text: &str) -> Vec<Structure> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found: Vec<Structure> = Vec::new();
    let mut is_inside = false;
    for (place, line) in lines.iter().enumerate() {
        if let Some(name) = line.strip_prefix("pub struct ") {
            let name = name.trim_end_matches(" {").to_owned();
            found.push(Structure { name, doc: comment(&lines, place), fields: Vec::new() });
            is_inside = true;
        } else if *line == "}" {
            is_inside = false;
        } else if let Some((name, kind)) =
            line.trim().strip_prefix("pub ").and_then(|rest| rest.split_once(": "))
            && let Some(structure) = found.last_mut().filter(|_| is_inside)
        {
            let kind = kind.trim_end_matches(',');
            let (of, many) = match kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
                Some(array) => array.split_once("; ").expect("an array has a length"),
                None => (kind, "1"),
            };
            let bits: usize = of[1..].parse().expect("a field is a number");
            let offset = structure.size();
            assert!(offset.is_multiple_of(bits / 8), "{}.{name}: padding before it", structure.name);
            structure.fields.push(Field {
                name: name.to_owned(),
                doc: comment(&lines, place),
                bits,
                is_signed: of.starts_with('i'),
                many: many.parse().expect("a length"),
                offset,
            });
        }
    }
    for structure in &found {
        assert!(structure.size().is_multiple_of(8), "{}: padding behind it", structure.name);
    }
    found
}

fn constants(text: &str) -> Vec<Constant> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut begins = true;
    for (place, line) in lines.iter().enumerate() {
        begins |= line.is_empty();
        let Some(rest) = line.strip_prefix("pub const BH_") else { continue };
        let (name, value) = rest.split_once(" = ").expect("a constant has a value");
        let name = name.split(':').next().unwrap_or_default();
        let value = value.trim_end_matches(';').replace('_', "");
        let value = match value.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16),
            None => value.parse(),
        };
        let value = value.expect("a number");
        found.push(Constant { name: name.to_owned(), doc: comment(&lines, place), value, begins });
        begins = false;
    }
    found
}

fn functions(text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let Some((_, rest)) = line.split_once("extern \"C\" fn ") else { continue };
        let (name, rest) = rest.split_once('(').expect("a function has arguments");
        let arguments = rest.split(')').next().unwrap_or_default().split(", ");
        let arguments =
            arguments.filter_map(|one| one.split_once(": ")).map(|(name, _)| name.to_owned()).collect();
        let doc = comment(&lines, place);
        let end = doc.find(". ").map_or(doc.len(), |end| end + 1);
        found.push(Function { name: name.to_owned(), arguments, doc: doc[..end].to_owned() });
    }
    found
}
