//! Plots of a page: values with their data, which the page's script draws (`html/plot.js`).
//!
//! A [`Plot`] is rendered as a `figure` that holds its data as JSON. Without scripts the figure
//! shows the description, and the tables next to it have the figures.

use maud::{Markup, PreEscaped, html};
use record::escape::single_line;
use serde::Serialize;
use serde_json::Value;

/// The unit of the values on a plot's axis, which decides how they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Plain numbers without a unit.
    #[default]
    Number,
    /// Nanoseconds.
    Duration,
    /// A percentile q as 1/(1 − q), so that on a logarithmic axis each further nine takes equal
    /// room.
    Percentile,
    /// Indices into the names of the axis. As the unit of x they make rows, as that of y lanes.
    Names,
}

/// An axis of a plot, with title and unit.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PlotAxis {
    /// Title of the axis; empty for none.
    pub title: String,
    /// Unit of the values on the axis.
    pub unit: Unit,
    /// Whether the axis is logarithmic, which needs values above zero.
    #[serde(rename = "log")]
    pub is_log: bool,
    /// Whether a linear axis begins at zero.
    #[serde(rename = "zero")]
    pub has_zero: bool,
    /// The ends of the axis; `None`: those of the data.
    pub range: Option<[f64; 2]>,
    /// The name of each row or lane.
    pub names: Vec<String>,
    /// The remark at the other end of each row, in the order of `names`.
    pub notes: Vec<String>,
}

impl PlotAxis {
    /// Creates a linear axis of a plot, whose ends are those of the data.
    pub fn new(title: impl Into<String>, unit: Unit) -> Self {
        Self { title: title.into(), unit, ..Self::default() }
    }

    /// Creates an axis of a plot: logarithmic if `is_log`, otherwise linear from zero.
    pub fn with_log(title: impl Into<String>, unit: Unit, is_log: bool) -> Self {
        let title: String = title.into();
        let title = if is_log { format!("{title}, logarithmic") } else { title };
        Self { is_log, has_zero: !is_log, ..Self::new(title, unit) }
    }

    /// Creates an axis of names: each name is a row of the plot on the x axis, a lane on the y
    /// axis.
    pub fn with_names(names: Vec<String>) -> Self {
        Self { unit: Unit::Names, names, ..Self::default() }
    }
}

/// The way in which the points of a plot's series are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SeriesKind {
    /// A line through the points.
    #[default]
    Line,
    /// A level from each x on.
    Steps,
    /// Dots without a line.
    Points,
    /// A rectangle from `low`, or from the axis, up to y.
    Bars,
    /// A rectangle as of `Bars`, so pale that other series are seen through it.
    Band,
}

/// The dash pattern of a plot's line, which remains distinct in grayscale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineDash {
    /// A line without gaps.
    #[default]
    Solid,
    /// Dashes.
    Dash,
    /// Dots.
    Dots,
    /// Dashes and dots in turn.
    DashDot,
}

/// A named series of points in a plot. A value that is not finite is a gap.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DataSeries {
    /// Name of the series in the legend.
    pub name: String,
    /// Shape in which the points are drawn.
    pub kind: SeriesKind,
    /// Number of a color of the page, 1 to 8; 0: the color of text.
    pub color: u8,
    /// Dash pattern of the line.
    pub dash: LineDash,
    /// Whether the line is thick.
    #[serde(rename = "strong")]
    pub is_strong: bool,
    /// Indices of the points that have a dot.
    pub dots: Vec<usize>,
    /// Width of a step or a bar, in units of x.
    pub width: f64,
    /// Position of each point, in the unit of the x axis.
    pub x: Vec<f64>,
    /// Value of each point, in the unit of the y axis; as many as in `x`.
    pub y: Vec<f64>,
    /// The lower end of each point's interval, in the unit of the y axis.
    pub low: Vec<f64>,
    /// The upper end of each point's interval, in the unit of the y axis.
    pub high: Vec<f64>,
    /// A color for each point, in place of the series' own.
    pub colors: Vec<u8>,
    /// A name for each point, written next to it.
    pub names: Vec<String>,
    /// The legend's text for each point, in place of the point's value.
    pub labels: Vec<String>,
    /// A last point to which a thin line leads.
    pub tail: Option<[f64; 2]>,
    /// The legend's text while no point is under the cursor.
    pub note: String,
}

impl DataSeries {
    /// Creates a plot's line without points, whose color, thickness and dashes are given as words
    /// of a CSS class, such as `c2 strong dash`. This one has color 2, and is thick and dashed.
    pub fn with_class(name: impl Into<String>, class: &str) -> Self {
        let has = |word: &str| class.split(' ').any(|other| other == word);
        let dash = match () {
            () if has("dash") => LineDash::Dash,
            () if has("dots") => LineDash::Dots,
            () if has("dashdot") => LineDash::DashDot,
            () => LineDash::Solid,
        };
        let (color, is_strong) = (color_number(class), has("strong"));
        Self { name: name.into(), color, dash, is_strong, ..Self::default() }
    }
}

/// Returns the number of the color in a CSS class such as `c2 dash`; 0 if it has none.
pub fn color_number(class: &str) -> u8 {
    let number = |word: &str| word.strip_prefix('c')?.parse().ok();
    class.split(' ').find_map(number).unwrap_or(0)
}

/// A line across a plot at one value of its x or y axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReferenceLine {
    /// Axis of the value: `x` or `y`.
    pub axis: char,
    /// Value at which the line crosses the axis, in the unit of the axis.
    pub at: f64,
}

/// The meaning of a marked span in a plot, such as a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanTone {
    /// The marked time is a stall, or an absence that ended.
    Stall,
    /// The marked time is the loss of something that did not return.
    Lost,
}

/// A marked range of x values in a plot, such as a stall, over the plot's whole height or in one
/// lane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MarkedSpan {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) tone: SpanTone,
    pub(crate) lane: Option<usize>,
    /// Number above the plot, under which a table lists the span.
    pub(crate) mark: String,
    /// Text that is shown under the cursor.
    pub(crate) label: String,
}

/// A plot in an HTML page: axes, series, marks and texts, from which the page's script draws it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Plot {
    /// Id of the figure, unique in the page.
    #[serde(skip)]
    pub id: String,
    /// Caption of the figure; empty: it has none.
    #[serde(skip)]
    pub title: String,
    /// Alternative text.
    #[serde(skip)]
    pub description: String,
    /// Height with axes, in CSS pixels. A plot of rows is as high as its rows.
    pub height: u32,
    /// The x axis; with [`Unit::Names`] the plot has a row for each name.
    pub x: PlotAxis,
    /// The y axis; with [`Unit::Names`] the plot has a lane for each name.
    pub y: PlotAxis,
    /// The series of points, drawn in this order.
    pub series: Vec<DataSeries>,
    /// Lines across the plot.
    pub lines: Vec<ReferenceLine>,
    /// Marked ranges of x values.
    pub spans: Vec<MarkedSpan>,
    /// Name of a group of plots that share cursor and zoom.
    pub group: &'static str,
}

impl Plot {
    /// Returns the plot as an HTML `figure` element that contains its data as JSON.
    pub fn figure(&self) -> Markup {
        // Serializing plain values cannot fail. No tag or comment can begin in the data.
        let data = compact(serde_json::to_value(self).unwrap_or_default());
        let data = data.to_string().replace('<', "\\u003c");
        html! {
            figure class="plot" id=(self.id) {
                @if !self.title.is_empty() { figcaption { (self.title) } }
                div role="img" aria-label=(self.description) {}
                script type="application/json" { (PreEscaped(data)) }
            }
        }
    }
}

/// Returns what the script reads: without what is empty, without decimal points of whole numbers,
/// and with control characters made visible.
fn compact(value: Value) -> Value {
    const MAX_EXACT: f64 = (1_u64 << 53) as f64;
    let is_empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, compact(value)));
            fields.filter(|(_, value)| !is_empty(value)).collect()
        }
        Value::Array(items) => items.into_iter().map(compact).collect(),
        Value::String(text) => single_line(&text).into(),
        Value::Number(number) => match number.as_f64() {
            Some(whole) if whole.fract() == 0.0 && whole.abs() < MAX_EXACT => (whole as i64).into(),
            _ => Value::Number(number),
        },
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_inside_their_script() {
        let name = "</script><!-- <b>\u{1b}[2J\u{202e}";
        let series = DataSeries { x: vec![1.0, 2.5], y: vec![f64::NAN, 1e300], ..DataSeries::default() };
        let plot = Plot {
            id: "p".into(),
            title: name.into(),
            series: vec![DataSeries { name: name.into(), names: vec![name.into()], ..series }],
            ..Plot::default()
        };
        let figure = plot.figure().into_string();
        let (_, data) = figure.split_once("<script type=\"application/json\">").unwrap();
        let (data, rest) = data.split_once("</script>").unwrap();
        assert_eq!(rest, "</figure>");
        assert!(!data.contains('<') && !data.contains('\u{1b}') && !data.contains('\u{202e}'), "{data}");
        let read: Value = serde_json::from_str(data).unwrap();
        let shown = "</script><!-- <b>\\u001b[2J\\u202e";
        assert_eq!(read["series"][0]["name"], shown);
        assert_eq!(read["series"][0]["y"], serde_json::json!([null, 1e300]));
        assert!(data.contains("\"x\":[1,2.5]"), "{data}");
    }

    #[test]
    fn classes_give_color_dash_and_weight() {
        let of = |class| {
            let DataSeries { color, dash, is_strong, .. } = DataSeries::with_class("a", class);
            (color, dash, is_strong)
        };
        assert_eq!(of("c2 strong dash"), (2, LineDash::Dash, true));
        assert_eq!(of("c7"), (7, LineDash::Solid, false));
        assert_eq!(of("whole dashdot"), (0, LineDash::DashDot, false));
    }
}
