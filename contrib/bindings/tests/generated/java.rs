//! The constants of the Java library, and a view of each structure that moves no object.

use super::source::{Field, Interface, Structure};
use std::fmt::Write;

const HEAD: &str = "package bulkhead;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.MemorySegment;

/**
 * What is handed over, field by field, and the codes: the structures of bulkhead.h as views of memory.
 *
 * <p>Made of contrib/bindings/src by contrib/bindings/tests/generated: change it there. Numbers of 64 bits that have no sign are longs here: none that a run
 * can have is as large.
 */
public final class Layout {
    private Layout() {}
";

/// `best_bid` as `bestBid`.
fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (first, rest) = part.split_at(1);
        text.push_str(&first.to_uppercase());
        text.push_str(rest);
    }
    text
}

/// Returns the Java type, the layout constant, and the expression that widens the value as
/// unsigned.
fn kinds(field: &Field) -> (&'static str, &'static str, &'static str, &'static str) {
    match field.bits {
        64 => ("long", "JAVA_LONG", "", ""),
        16 => ("int", "JAVA_SHORT", " & 0xFFFF", "(short) "),
        _ => ("int", "JAVA_BYTE", " & 0xFF", "(byte) "),
    }
}

fn view(text: &mut String, structure: &Structure) {
    let Structure { name, doc, fields } = structure;
    let is_array = name == "Report";
    let at = if is_array { "at + " } else { "" };
    let _ = write!(
        text,
        "\n    /** {doc} */\n    public static final class {name} {{\n        /** Bytes of one. */\n        public static final long BYTES = {};\n\n        \
         private final MemorySegment memory;\n",
        structure.size()
    );
    if is_array {
        text.push_str("        private long at;\n");
    }
    let _ = write!(
        text,
        "\n        {name}(MemorySegment memory) {{\n            this.memory = memory;\n        }}\n"
    );
    if is_array {
        text.push_str(
            "\n        Report at(int place) {\n            at = place * BYTES;\n            return this;\n        }\n",
        );
    }
    for field in fields.iter().filter(|field| field.many == 1) {
        let (kind, layout, mask, cast) = kinds(field);
        let (method, offset, doc) = (camel(&field.name), field.offset, &field.doc);
        let _ = write!(
            text,
            "\n        /** {doc} */\n        public {kind} {method}() {{\n            return memory.get({layout}, {at}{offset}){mask};\n        }}\n"
        );
        if name == "Order" {
            let _ = write!(
                text,
                "\n        /** {doc} */\n        public Order {method}({kind} value) {{\n            memory.set({layout}, {at}{offset}, {cast}value);\n            \
                 return this;\n        }}\n"
            );
        }
    }
    text.push_str("    }\n");
}

/// The class.
pub fn render(interface: &Interface) -> String {
    let mut text = HEAD.to_owned();
    for constant in &interface.constants {
        let space = if constant.begins { "\n" } else { "" };
        let doc = &constant.doc;
        let _ = write!(
            text,
            "{space}    /** {doc} */\n    public static final int {} = {};\n",
            constant.name, constant.value
        );
    }
    interface.structures.iter().for_each(|structure| view(&mut text, structure));
    text.push_str("}\n");
    text
}
