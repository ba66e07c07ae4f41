//! The page of a containment table: what stayed where it began, level by level, and what it took.

use super::page::{page, section};
use super::{around_incident, matrix};
use crate::experiment::{Contained, Containments};
use crate::report::{self, grid::Grid};
use maud::{Markup, html};
use protocol::plan::Isolation;
use std::path::Path;

/// The page.
pub fn contain_page(all: &Containments, folder: &Path) -> String {
    let count = |isolation: Isolation, contained: Option<Contained>| {
        let rows = all.rows.iter().filter(|row| row.isolation == isolation);
        rows.filter(|row| contained.is_none_or(|wanted| row.contained == wanted)).count()
    };
    let (matrices, wide) = report::contain::grids(all);
    let content = html! {
        @if !all.notes.is_empty() {
            (section("facts", "What was measured", &html! { ul class="note" { @for note in &all.notes { li { (note) } } } }))
        }
        (section("contain", "Did the fault stay with its strategy?", &html! {
            p {
                "yes: all others' orders came back and none of them waited for it. late: they all came back, but some waited "
                "for the deadline. NO: the run ended, or others lost orders. nothing: the fault never came."
            }
            ul { @for isolation in Isolation::ALL {
                @let tried = count(*isolation, None);
                @if tried > 0 {
                    li { b { (isolation) } ": " (count(*isolation, Some(Contained::Yes))) " of " (tried) " contained, "
                        (count(*isolation, Some(Contained::Waited))) " late" }
                }
            } }
            (matrix::draw(all))
            @for grid in &matrices { (table(grid)) }
        }))
        @if let Some(around) = around_incident::draw(all, folder) {
            (section("around", "What the others felt", &around))
        }
        @if !all.venues.is_empty() {
            (section("venues", "Did the fault stay with its venue?", &html! {
                p {
                    "Orders at the venue while its fault lasted, those of them that it kept longer than any before, and how long it took "
                    "from the end of the fault until the last of those was closed; then the orders of the other venues, before and during."
                }
                (table(&report::contain::venues(all)))
            }))
        }
        @if !all.roles.is_empty() {
            (section("roles", "Did the engine's roles come back?", &html! {
                p {
                    "yes: it came back from its journal, and every order with it. NO: the run ended. Orders there are those that were at it, \
                     or came, while it was away."
                }
                (table(&report::contain::roles(all)))
            }))
        }
        (section("what", "What was seen, lost, and how long it took", &table(&wide)))
    };
    let subject =
        format!("{} faults tried, on {}", all.rows.len() + all.venues.len() + all.roles.len(), all.machine);
    page("What isolation buys", &subject, &format!("bulkhead {}", env!("CARGO_PKG_VERSION")), &content)
}

/// A table with the three answers in colours.
fn table(grid: &Grid) -> Markup {
    super::table::table(grid, |cell| match cell {
        "yes" => "good",
        "late" => "warn",
        "NO" => "bad",
        _ => "",
    })
}
