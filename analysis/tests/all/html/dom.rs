//! A minimal HTML reader for pages.

use serde_json::Value;
use std::collections::HashMap;

/// An element with its name and attributes.
#[derive(Clone, Debug)]
pub struct Element {
    pub name: String,
    pub attributes: HashMap<String, String>,
}

impl Element {
    pub fn get(&self, attribute: &str) -> Option<&str> {
        self.attributes.get(attribute).map(String::as_str)
    }

    pub fn number(&self, attribute: &str) -> Option<f64> {
        self.get(attribute).map(|text| text.parse().unwrap_or_else(|_| panic!("{attribute}={text:?}")))
    }

    pub fn whole(&self, attribute: &str) -> Option<u64> {
        self.get(attribute).map(|text| text.parse().unwrap_or_else(|_| panic!("{attribute}={text:?}")))
    }
}

/// Returns a page without the script of its plots; their data stays.
pub fn without_script(html: &str) -> String {
    let Some((before, rest)) = html.split_once("<script id=\"plots\">") else { return html.into() };
    let (_, after) = rest.split_once("</script>").expect("the script ends");
    format!("{before}{after}")
}

/// Returns the plots of a page, each with its id and its data, in page order.
pub fn plots(html: &str) -> Vec<(String, Value)> {
    let plot = |figure: &str| {
        let (id, rest) = figure.split_once('"').unwrap();
        let (_, data) = rest.split_once("<script type=\"application/json\">").unwrap();
        let (data, _) = data.split_once("</script>").unwrap();
        (id.to_owned(), serde_json::from_str(data).unwrap())
    };
    html.split("<figure class=\"plot\" id=\"").skip(1).map(plot).collect()
}

/// Returns the data of the plot with this id.
pub fn plot(html: &str, id: &str) -> Value {
    let found = plots(html).into_iter().find(|(other, _)| other == id);
    found.unwrap_or_else(|| panic!("no plot {id}")).1
}

/// Returns the series of a plot with this name.
pub fn series<'a>(plot: &'a Value, name: &str) -> &'a Value {
    let all = plot["series"].as_array().unwrap();
    all.iter().find(|series| series["name"] == name).unwrap_or_else(|| panic!("no series {name}: {plot}"))
}

/// Returns the numbers of a list; null is a gap. An empty list is left out of the data.
pub fn numbers(list: &Value) -> Vec<Option<f64>> {
    list.as_array().into_iter().flatten().map(Value::as_f64).collect()
}

/// Returns the texts of a list.
pub fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// Returns every element with an opening tag, in page order.
pub fn elements(html: &str) -> Vec<Element> {
    without_script(html)
        .split('<')
        .skip(1)
        .filter(|tag| tag.starts_with(|c: char| c.is_ascii_alphabetic()))
        .map(element)
        .collect()
}

pub fn having(html: &str, attribute: &str) -> Vec<Element> {
    elements(html).into_iter().filter(|element| element.get(attribute).is_some()).collect()
}

fn element(tag: &str) -> Element {
    let end = tag.find(|c: char| !(c.is_ascii_alphanumeric())).unwrap_or(tag.len());
    let mut attributes = HashMap::new();
    let mut rest = &tag[end..];
    while let Some((before, after)) = rest.split_once("=\"") {
        if before.contains('>') {
            break;
        }
        let name = before.rsplit(char::is_whitespace).next().unwrap_or("").to_owned();
        let (value, tail) = after.split_once('"').expect("a closing quote");
        let value =
            value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        attributes.insert(name, value);
        rest = tail;
    }
    Element { name: tag[..end].to_ascii_lowercase(), attributes }
}

/// Returns the text of a page without its tags and style.
pub fn text(html: &str) -> String {
    let html = without_script(html);
    let body = html.split_once("</style>").map_or(&*html, |(_, body)| body);
    let texts = body.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    texts.collect::<Vec<_>>().join(" ")
}

/// Checks that a page causes no request: it references nothing, and its own content security policy
/// forbids it. The one script that may run is that of the plots, and only in a page that has some.
pub fn check_alone(html: &str) {
    let count = |part: &str| html.matches(part).count();
    let plots = plots(html);
    assert_eq!(count("<script id=\"plots\">"), usize::from(!plots.is_empty()));
    assert_eq!(count("script-src 'sha256-"), usize::from(!plots.is_empty()));
    assert_eq!(count("<script type=\"application/json\">"), plots.len());
    let html = &without_script(html).replace("<script type=\"application/json\">", "");
    for word in [
        "http:", "https:", "//", "url(", "@import", "src=", "href=", "<script", "<link", "<iframe", "<object",
    ] {
        let found =
            html.find(word).map(|index| &html[index.saturating_sub(40)..(index + 40).min(html.len())]);
        assert_eq!(found, None, "{word}");
    }
    assert!(html.contains("default-src 'none'") && !html.contains("unsafe-eval"));
    for word in ["NaN", "inf ", "Infinity"] {
        assert!(!html.contains(word), "{word}");
    }
    let is_image = |element: &&Element| element.name == "div" && element.get("role") == Some("img");
    for image in having(html, "role").iter().filter(is_image) {
        assert!(image.get("aria-label").is_some_and(|text| text.len() > 20), "{image:?}");
    }
    for table in elements(html).iter().filter(|element| element.get("class") == Some("scroll")) {
        assert_eq!(table.get("tabindex"), Some("0"), "the arrow keys scroll it: {table:?}");
        assert!(table.get("aria-label").is_some_and(|text| !text.is_empty()), "{table:?}");
    }
    for drawing in elements(html).iter().filter(|element| element.name == "svg") {
        assert_eq!(drawing.get("role"), Some("img"));
        for id in drawing.get("aria-labelledby").unwrap().split(' ') {
            assert!(elements(html).iter().any(|element| element.get("id") == Some(id)), "{id}");
        }
    }
    let mut ids: Vec<String> = having(html, "id").iter().map(|e| e.get("id").unwrap().to_owned()).collect();
    ids.sort();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
}
