//! The SVG writer of pictures in files and in the book: coordinates, elements, whole files.

use maud::{Markup, PreEscaped, html};

/// Width in SVG user units of large pictures, such as that of an order's path; cards have widths of
/// their own.
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

/// The edges of a picture's data area, in SVG user units.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Left edge, in SVG user units.
    pub left: f64,
    /// Right edge, in SVG user units.
    pub right: f64,
    /// Top edge, in SVG user units; less than `bottom`.
    pub top: f64,
    /// Bottom edge, in SVG user units.
    pub bottom: f64,
}

impl Frame {
    /// Returns the left and the right edge of the data area, the range of a horizontal scale.
    pub const fn x_range(&self) -> (f64, f64) {
        (self.left, self.right)
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

/// Returns an SVG line element between two points, each as x and y in user units.
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

/// Returns the approximate width of a text at the charts' font size, in SVG user units.
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
}
