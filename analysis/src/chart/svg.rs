//! SVG building blocks of the charts: numbers, paths and the frame.

use maud::{Markup, PreEscaped, html};
use std::fmt::Write;

/// Width of every chart in SVG user units; pages show it at this many pixels or less.
pub const WIDTH: f64 = 1040.0;

/// Formats an SVG coordinate with one decimal: finer than a pixel makes files larger.
pub fn coordinate(position: f64) -> String {
    if !position.is_finite() {
        return "0".into();
    }
    let text = format!("{position:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".into() } else { text.into() }
}

/// A builder for the `d` attribute of an SVG path.
#[derive(Clone, Debug, Default)]
pub struct SvgPath {
    data: String,
    pen: Option<(f64, f64)>,
}

impl SvgPath {
    /// Draws a straight line to the next point, or starts a new subpath there if the pen is lifted.
    pub fn line_to(&mut self, x: f64, y: f64) {
        let letter = if self.pen.is_some() { 'L' } else { 'M' };
        // Writing to a string cannot fail.
        let _ = write!(self.data, "{letter}{} {}", coordinate(x), coordinate(y));
        self.pen = Some((x, y));
    }

    /// Draws a horizontal segment, joined to the current point unless the pen is lifted.
    pub fn horizontal(&mut self, from: f64, to: f64, y: f64) {
        self.line_to(from, y);
        let _ = write!(self.data, "H{}", coordinate(to));
        self.pen = Some((to, y));
    }

    /// Adds a filled rectangle from its upper left corner to its lower right one.
    pub fn rectangle(&mut self, (left, top): (f64, f64), (right, bottom): (f64, f64)) {
        let [left, top, right, bottom] = [left, top, right, bottom].map(coordinate);
        let _ = write!(self.data, "M{left} {top}H{right}V{bottom}H{left}Z");
    }

    /// Lifts the pen: the next point starts a new subpath.
    pub const fn lift_pen(&mut self) {
        self.pen = None;
    }

    /// Returns the path's current point; `None` while the pen is lifted.
    pub const fn pen(&self) -> Option<(f64, f64)> {
        self.pen
    }

    pub fn data(&self) -> &str {
        &self.data
    }
}

/// A chart's canvas: the edges of its data area, with margins around it.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Height of the canvas; its width is [`WIDTH`].
    pub height: f64,
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Frame {
    /// Creates a frame with margins for tick labels (left) and line labels (right).
    pub const fn new(height: f64) -> Self {
        Self { height, left: 76.0, right: WIDTH - 224.0, top: 14.0, bottom: height - 50.0 }
    }

    pub const fn x_range(&self) -> (f64, f64) {
        (self.left, self.right)
    }

    /// Returns the vertical range from the lower edge on, so that greater values are drawn higher.
    pub const fn y_range(&self) -> (f64, f64) {
        (self.bottom, self.top)
    }

    /// Wraps `content` in an SVG element with an accessible title and description.
    pub fn drawing(&self, id: &str, title: &str, description: &str, content: &Markup) -> Markup {
        let (title_id, description_id) = (format!("{id}-title"), format!("{id}-desc"));
        html! {
            svg id=(id) class="chart" viewBox={ "0 0 " (coordinate(WIDTH)) " " (coordinate(self.height)) } role="img"
                aria-labelledby={ (title_id) " " (description_id) } {
                title id=(title_id) { (title) }
                desc id=(description_id) { (description) }
                (content)
            }
        }
    }
}

/// Returns a complete SVG file of this width and height.
pub fn file(
    (width, height): (f64, f64),
    title: &str,
    description: Option<&str>,
    style: &str,
    content: &Markup,
) -> String {
    let (width, height) = (coordinate(width), coordinate(height));
    let labels = if description.is_some() { "title desc" } else { "title" };
    let drawing = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) } width=(width)
            height=(height) role="img" aria-labelledby=(labels) {
            title id="title" { (title) }
            @if let Some(description) = description { desc id="desc" { (description) } }
            style { (PreEscaped(style)) }
            rect class="paper" width=(width) height=(height) {}
            (content)
        }
    };
    drawing.into_string() + "\n"
}

/// Returns an SVG text element. `anchor` is `start`, `middle` or `end`.
pub fn text(x: f64, y: f64, anchor: &str, class: &str, content: &str) -> Markup {
    html! { text x=(coordinate(x)) y=(coordinate(y)) text-anchor=(anchor) class=(class) { (content) } }
}

pub fn line(from: (f64, f64), to: (f64, f64), class: &str) -> Markup {
    html! { line x1=(coordinate(from.0)) y1=(coordinate(from.1)) x2=(coordinate(to.0)) y2=(coordinate(to.1)) class=(class) {} }
}

/// Returns the legend of a chart's colors: classes and their meanings. One color needs none.
pub fn legend<'a>(colors: impl IntoIterator<Item = (&'a str, String)>) -> Markup {
    let colors: Vec<(&str, String)> = colors.into_iter().collect();
    html! {
        @if colors.len() > 1 {
            p class="note legend" {
                @for (class, meaning) in colors { span class={ "key " (class) } { span class="swatch" {} (meaning) } " " }
            }
        }
    }
}

/// Returns the approximate width of a text at the charts' font size.
pub fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_keep_one_decimal() {
        assert_eq!([1.0, 1.25, -0.01, 1e3, 99.96].map(coordinate), ["1", "1.2", "0", "1000", "100"]);
        assert_eq!([f64::NAN, f64::INFINITY].map(coordinate), ["0", "0"], "never in a path");
    }

    #[test]
    fn path_is_joined_until_pen_is_lifted() {
        let mut path = SvgPath::default();
        path.line_to(1.0, 2.0);
        path.line_to(3.0, 4.0);
        path.lift_pen();
        path.horizontal(5.0, 6.0, 7.0);
        path.horizontal(6.0, 8.0, 9.5);
        assert_eq!(path.data(), "M1 2L3 4M5 7H6L6 9.5H8");
    }
}
