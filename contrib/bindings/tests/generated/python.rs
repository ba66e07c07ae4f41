//! The constants and the data types of the Python package.

use super::source::{Field, Interface};
use std::fmt::Write;

const HEAD: &str = "\"\"\"What is handed over, field by field, and the codes: the structures of ``bulkhead.h`` as data types of NumPy's.

Made of contrib/bindings/src by contrib/bindings/tests/generated: change it there.
\"\"\"

from typing import Any, Final

import numpy as np
";

fn element(field: &Field) -> String {
    let sign = if field.is_signed { 'i' } else { 'u' };
    let many = if field.many > 1 { format!(", ({},)", field.many) } else { String::new() };
    format!("(\"{}\", \"<{sign}{}\"{many})", field.name, field.bits / 8)
}

/// The module.
pub fn render(interface: &Interface) -> String {
    let mut text = HEAD.to_owned();
    for constant in interface.constants.iter().filter(|constant| constant.name != "VERSION") {
        let space = if constant.begins { "\n" } else { "" };
        let _ = write!(
            text,
            "{space}{}: Final = {}\n\"\"\"{}\"\"\"\n",
            constant.name, constant.value, constant.doc
        );
    }
    for structure in &interface.structures {
        let name = structure.name.to_uppercase();
        let _ = write!(text, "\n{name}: Final[np.dtype[Any]] = np.dtype(\n    [\n");
        for field in &structure.fields {
            let _ = writeln!(text, "        # {}\n        {},", field.doc, element(field));
        }
        let _ = write!(text, "    ]\n)\n\"\"\"{}\"\"\"\n", structure.doc);
    }
    for structure in &interface.structures {
        let name = structure.name.to_uppercase();
        let _ = write!(text, "\nassert {name}.itemsize == {}", structure.size());
    }
    text.push('\n');
    text
}
