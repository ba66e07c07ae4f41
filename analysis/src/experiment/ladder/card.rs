//! The card of a ladder: a line for each level, as a picture for design reviews.

use super::{Ladder, Rung, added, contained, disturbance_names, disturbed, names, ratio};
use crate::experiment::survey::CARD_STYLE;
use maud::{Markup, PreEscaped, html};
use verdict::chart::svg::{self, coordinate, line, text};
use verdict::table::grid::wrap;

/// Width of the picture, its margin, and the height of a line.
const WIDTH: f64 = 860.0;
const MARGIN: f64 = 24.0;
const LINE: f64 = 18.0;
/// Characters in a line of the whole width.
const LINE_CHARS: usize = 114;
/// Characters in a line of a reason, which begins at the bars.
const REASON_CHARS: usize = 98;
/// Left edge of the bars, and their greatest width: CPU time that a level adds to an order.
const BARS: f64 = 130.0;
const BAR: f64 = 120.0;
/// Left edges of the columns after the bars.
const COLUMNS: [f64; 4] = [330.0, 490.0, 570.0, 715.0];

/// Returns the ladder (a machine's isolation levels with costs and benefits) as an SVG file.
pub fn svg_card(ladder: &Ladder) -> String {
    let (size, content) = drawing(ladder);
    svg::file(size, "The ladder of isolation", None, CARD_STYLE, &content)
}

/// Returns the ladder as a figure of a page.
pub(super) fn figure(ladder: &Ladder) -> Markup {
    let ((width, height), content) = drawing(ladder);
    html! {
        figure class="card" {
            style { (PreEscaped(format!(".card {{ {CARD_STYLE} }}"))) }
            svg class="chart" viewBox={ "0 0 " (coordinate(width)) " " (coordinate(height)) } role="img" aria-labelledby="ladder-title" {
                title id="ladder-title" { "The ladder of isolation" }
                (content)
            }
        }
    }
}

/// Returns size and content of the picture.
fn drawing(ladder: &Ladder) -> ((f64, f64), Markup) {
    let disturbances = names(ladder, disturbance_names);
    let cpu = |rung: &Rung| rung.cpu_added.map_or(0.0, |added| added.value.max(0.0));
    let longest = ladder.rungs.iter().map(cpu).fold(f64::MIN_POSITIVE, f64::max);
    let mut top = 34.0;
    let mut parts = vec![text(MARGIN, top, "start", "heading", "What a strategy's isolation costs and buys")];
    let machine = format!("{}, Linux {}; {}", ladder.machine.cpu_model, ladder.machine.kernel, ladder.load);
    for (class, sentence) in [("dim", machine), ("dim", ladder.fitness.sentence())] {
        for sentence in wrap(&sentence, LINE_CHARS, 0) {
            top += LINE;
            parts.push(text(MARGIN, top, "start", class, &sentence));
        }
    }
    top += 2.0 * LINE;
    let mut heads = vec![
        (BARS, "CPU added, an order".to_owned()),
        (COLUMNS[0], "p50".into()),
        (COLUMNS[1], "faults".into()),
    ];
    heads.extend(COLUMNS[2..].iter().zip(&disturbances).map(|(left, name)| (*left, format!("{name}, p50"))));
    parts.extend(heads.iter().map(|(left, head)| text(*left, top, "start", "dim", head)));
    for rung in &ladder.rungs {
        top += 10.0;
        parts.push(line((MARGIN, top), (WIDTH - MARGIN, top), "rule"));
        top += LINE;
        parts.push(text(MARGIN, top, "start", "strong", &rung.level));
        if let Some(why) = &rung.missing {
            for (line, sentence) in wrap(&format!("not here: {why}"), REASON_CHARS, 0).iter().enumerate() {
                top += if line > 0 { LINE } else { 0.0 };
                parts.push(text(BARS, top, "start", "dim", sentence));
            }
            continue;
        }
        let width = BAR * cpu(rung) / longest;
        parts.push(html! {
            rect class="dot" x=(coordinate(BARS)) y=(coordinate(top - 11.0)) width=(coordinate(width)) height="12" {}
        });
        let mut cells = vec![
            (BARS + width + 6.0, added(rung.cpu_added)),
            (COLUMNS[0], ratio(rung.p50)),
            (COLUMNS[1], contained(rung)),
        ];
        cells.extend(
            COLUMNS[2..].iter().zip(&disturbances).map(|(left, name)| (*left, disturbed(rung, name))),
        );
        parts.extend(cells.iter().map(|(left, sentence)| text(*left, top, "start", "", sentence)));
    }
    let note = "p50: of rt_venue from due against threads, by turns; faults: contained of tried; disturbances: the others' p50 against calm runs";
    top += LINE;
    for sentence in wrap(note, LINE_CHARS, 0) {
        top += LINE;
        parts.push(text(MARGIN, top, "start", "dim", &sentence));
    }
    ((WIDTH, top + MARGIN), html! { @for part in &parts { (part) } })
}

#[cfg(test)]
mod tests {
    use super::super::tests::ladder;
    use super::*;

    #[test]
    fn card_has_row_for_each_level_and_escapes_reasons() {
        let card = svg_card(&ladder());
        for level in ["thread", "process", "sandbox", "container"] {
            assert!(card.contains(&format!(">{level}<")), "{level}: {card}");
        }
        assert!(card.contains("&lt;here&gt;") && card.contains("× 56"), "{card}");
        assert!(card.contains("prefers-color-scheme: dark") && !card.contains("class=\"bar\""), "{card}");
        assert!(card.contains("+6.4 %") && card.contains("2 of 2") || card.contains("1 of 1"), "{card}");
    }
}
