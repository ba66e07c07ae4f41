//! Line labels: names next to the ends of lines, moved apart as little as needed to avoid overlap.

use super::svg::{coordinate, line};
use maud::{Markup, html};

const LINE_HEIGHT: f64 = 15.0;

/// The name of a curve in a chart, written next to the curve's right end.
#[derive(Clone, Debug)]
pub struct LineLabel {
    pub x: f64,
    pub y: f64,
    pub text: String,
    pub class: String,
}

/// Draws the names of curves in a column at `column`, each connected to the end of its curve.
pub fn draw(column: f64, top: f64, bottom: f64, labels: &[LineLabel]) -> Markup {
    let wanted: Vec<f64> = labels.iter().map(|label| label.y).collect();
    let heights = spread_apart(&wanted, LINE_HEIGHT, top, bottom);
    html! {
        @for (label, y) in labels.iter().zip(heights) {
            (line((label.x + 3.0, label.y), (column - 3.0, y), "leader"))
            text x=(coordinate(column)) y=(coordinate(y + 4.0)) class={ "label ink " (label.class) } { (label.text) }
        }
    }
}

/// Returns positions as close to the wanted ones as possible: at least `gap` apart, and within the
/// bounds if they fit.
pub fn spread_apart(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    // Groups of labels that touch; a group is centered on the mean of the wanted positions.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    let position = |mean: f64, size: usize| {
        let half = (size - 1) as f64 * gap / 2.0;
        mean.min(bottom - half).max(top + half)
    };
    for index in &order {
        let mut group = (wanted[*index].clamp(top, bottom), 1);
        while let Some((mean, size)) = groups.last().copied() {
            let (above, below) = (position(mean, size), position(group.0, group.1));
            let distance = below - above - (size + group.1 - 2) as f64 * gap / 2.0;
            if distance >= gap {
                break;
            }
            groups.pop();
            let all = size + group.1;
            group = ((mean * size as f64 + group.0 * group.1 as f64) / all as f64, all);
        }
        groups.push(group);
    }
    let mut heights = vec![0.0; wanted.len()];
    let mut next = order.iter();
    for (mean, size) in groups {
        let first = position(mean, size) - (size - 1) as f64 * gap / 2.0;
        for (number, index) in next.by_ref().take(size).enumerate() {
            heights[*index] = first + number as f64 * gap;
        }
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_overlapping_labels_move_apart_evenly() {
        for (wanted, placed) in [
            ([100.0, 20.0, 60.0], [100.0, 20.0, 60.0]),
            ([100.0, 100.0, 20.0], [92.5, 107.5, 20.0]),
            ([5.0, 0.0, 2.0], [30.0, 0.0, 15.0]),
        ] {
            assert_eq!(spread_apart(&wanted, LINE_HEIGHT, 0.0, 300.0), placed);
        }
    }

    proptest! {
        #[test]
        fn labels_never_overlap(wanted in proptest::collection::vec(-50.0f64..350.0, 1..15)) {
            let mut heights = spread_apart(&wanted, LINE_HEIGHT, 0.0, 300.0);
            heights.sort_by(f64::total_cmp);
            prop_assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= LINE_HEIGHT - 1e-6), "{heights:?}");
            prop_assert!(heights[0] >= -1e-6 && heights[heights.len() - 1] <= 300.0 + 1e-6, "{heights:?}");
        }
    }
}
