//! SVG building blocks of all charts: numbers, paths, the canvas and its frame.

use maud::{Markup, html};
use std::fmt::Write;

/// The width of every chart in its own units; a page shows them at this many pixels or less.
pub const WIDTH: f64 = 1040.0;

/// A coordinate with one digit behind the point: a tenth of a pixel is what an eye can see and a
/// file should hold.
pub fn num(place: f64) -> String {
    if !place.is_finite() {
        return "0".into();
    }
    let text = format!("{place:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".into() } else { text.into() }
}

/// A path in the making.
#[derive(Clone, Debug, Default)]
pub struct Path {
    data: String,
    pen: Option<(f64, f64)>,
}

impl Path {
    /// On to the next point, in a straight line.
    pub fn to(&mut self, x: f64, y: f64) {
        let letter = if self.pen.is_some() { 'L' } else { 'M' };
        // Writing to a string cannot fail.
        let _ = write!(self.data, "{letter}{} {}", num(x), num(y));
        self.pen = Some((x, y));
    }

    /// A level from one place to the other, joined to what went before by an upright.
    pub fn level(&mut self, from: f64, to: f64, y: f64) {
        self.to(from, y);
        let _ = write!(self.data, "H{}", num(to));
        self.pen = Some((to, y));
    }

    /// What comes next is not joined to what went before.
    pub const fn lift(&mut self) {
        self.pen = None;
    }

    /// Where the pen is.
    pub const fn pen(&self) -> Option<(f64, f64)> {
        self.pen
    }

    /// The `d` of a path element.
    pub fn data(&self) -> &str {
        &self.data
    }
}

/// The rectangle that the data is drawn in, and the paper around it.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The paper's height; its width is [`WIDTH`].
    pub height: f64,
    /// Where the data begins.
    pub left: f64,
    /// Where it ends.
    pub right: f64,
    /// Its upper edge.
    pub top: f64,
    /// Its lower edge.
    pub bottom: f64,
}

impl Frame {
    /// A frame with room on the left for labels of values and on the right for names.
    pub const fn new(height: f64) -> Self {
        Self { height, left: 76.0, right: WIDTH - 224.0, top: 14.0, bottom: height - 50.0 }
    }

    /// From left to right.
    pub const fn across(&self) -> (f64, f64) {
        (self.left, self.right)
    }

    /// From the lower edge to the upper: greater values stand higher.
    pub const fn upward(&self) -> (f64, f64) {
        (self.bottom, self.top)
    }

    /// The drawing with its name and its description in words, for those who cannot see it.
    pub fn drawing(&self, id: &str, title: &str, description: &str, content: &Markup) -> Markup {
        let (title_id, description_id) = (format!("{id}-title"), format!("{id}-desc"));
        html! {
            svg id=(id) class="chart" viewBox={ "0 0 " (num(WIDTH)) " " (num(self.height)) } role="img"
                aria-labelledby={ (title_id) " " (description_id) } {
                title id=(title_id) { (title) }
                desc id=(description_id) { (description) }
                (content)
            }
        }
    }
}

/// A text on the paper. `anchor` is `start`, `middle` or `end`.
pub fn text(x: f64, y: f64, anchor: &str, class: &str, content: &str) -> Markup {
    html! { text x=(num(x)) y=(num(y)) text-anchor=(anchor) class=(class) { (content) } }
}

/// A straight line.
pub fn line(from: (f64, f64), to: (f64, f64), class: &str) -> Markup {
    html! { line x1=(num(from.0)) y1=(num(from.1)) x2=(num(to.0)) y2=(num(to.1)) class=(class) {} }
}

/// About how wide a text of the charts' size is: for deciding what fits, not for placing.
pub fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!([1.0, 1.25, -0.01, 1e3, 99.96].map(num), ["1", "1.2", "0", "1000", "100"]);
        assert_eq!([f64::NAN, f64::INFINITY].map(num), ["0", "0"], "never in a path");
    }

    #[test]
    fn paths_are_joined_until_the_pen_is_lifted() {
        let mut path = Path::default();
        path.to(1.0, 2.0);
        path.to(3.0, 4.0);
        path.lift();
        path.level(5.0, 6.0, 7.0);
        path.level(6.0, 8.0, 9.5);
        assert_eq!(path.data(), "M1 2L3 4M5 7H6L6 9.5H8");
    }

    #[test]
    fn a_drawing_is_named_and_escaped() {
        let drawing = Frame::new(300.0).drawing("a", "<b>", "x & y", &html! {}).into_string();
        assert!(drawing.contains("aria-labelledby=\"a-title a-desc\""), "{drawing}");
        assert!(drawing.contains("&lt;b&gt;") && drawing.contains("x &amp; y"), "{drawing}");
    }
}
