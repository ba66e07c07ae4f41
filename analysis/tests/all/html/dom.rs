//! A minimal HTML reader for pages.

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

/// Returns every element with an opening tag, in page order.
pub fn elements(html: &str) -> Vec<Element> {
    html.split('<')
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
    let body = html.split_once("</style>").map_or(html, |(_, body)| body);
    let texts = body.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    texts.collect::<Vec<_>>().join(" ")
}

/// Checks that a page causes no request: it references nothing, and its own content security policy
/// forbids it.
pub fn check_alone(html: &str) {
    for word in [
        "http:", "https:", "//", "url(", "@import", "src=", "href=", "<script", "<link", "<iframe", "<object",
    ] {
        let found =
            html.find(word).map(|index| &html[index.saturating_sub(40)..(index + 40).min(html.len())]);
        assert_eq!(found, None, "{word}");
    }
    assert!(html.contains("default-src 'none'"));
    for word in ["NaN", "inf ", "Infinity"] {
        assert!(!html.contains(word), "{word}");
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
