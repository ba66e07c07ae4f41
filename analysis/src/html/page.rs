//! The frame of every HTML page: head, styles and navigation. A page is one file that loads
//! nothing.

use crate::escape::printable;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// Returns a complete HTML page. The policy in its head makes the browser itself refuse scripts and
/// every request.
pub fn page(title: &str, subject: &str, dim: &str, content: &Markup) -> String {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    p class="subject" { (subject) }
                    p class="dim" { (dim) }
                }
                main { (content) }
                footer {
                    "Written by bulkhead " (env!("CARGO_PKG_VERSION")) " from the saved results beside this file. "
                    "Percentiles with fewer than ten samples beyond them are left out (–)."
                }
            }
        }
    };
    printable(&markup.into_string()).into_owned()
}

/// Returns a page's section with its heading.
pub fn section(id: &str, heading: &str, content: &Markup) -> Markup {
    html! { section id=(id) { h2 { (heading) } p class="hint" { "wider than this screen: swipe sideways →" } div class="scroll" { (content) } } }
}

/// Formats names and values in columns, as HTML.
pub fn fact_columns(facts: &[(String, String)]) -> Markup {
    html! {
        div class="columns" {
            @for column in facts.chunks(facts.len().div_ceil(3).max(4)) {
                dl { @for (name, text) in column { dt { (name) } dd { (text) } } }
            }
        }
    }
}
