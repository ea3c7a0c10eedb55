//! Elements of HTML and SVG, as a tree.
//!
//! It is a tree rather than concatenated strings: what was opened is closed, and
//! text from scenario files is escaped in one place. The output is both HTML and
//! well-formed XML, so the same code writes pages and stand-alone SVG files, and an
//! XML parser can check both.

use std::fmt::{self, Display, Write};

/// An element with its attributes and children.
#[derive(Clone, Debug)]
pub(super) struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Node>,
}

#[derive(Clone, Debug)]
enum Node {
    Element(Element),
    Text(String),
}

/// An element without attributes or children.
pub(super) fn element(name: &'static str) -> Element {
    Element { name, attributes: Vec::new(), children: Vec::new() }
}

impl Element {
    /// Adds an attribute.
    pub(super) fn with(mut self, name: &'static str, value: impl Display) -> Element {
        self.attributes.push((name, value.to_string()));
        self
    }

    /// Adds the attribute `class`.
    pub(super) fn class(self, names: impl Display) -> Element {
        self.with("class", names)
    }

    /// Adds text.
    pub(super) fn text(mut self, text: impl Into<String>) -> Element {
        self.children.push(Node::Text(text.into()));
        self
    }

    /// Adds a child.
    pub(super) fn child(mut self, child: Element) -> Element {
        self.children.push(Node::Element(child));
        self
    }

    /// Adds any number of children, and so also an `Option`.
    pub(super) fn children(mut self, children: impl IntoIterator<Item = Element>) -> Element {
        self.children.extend(children.into_iter().map(Node::Element));
        self
    }
}

/// HTML elements that have no end tag.
const VOID: [&str; 3] = ["meta", "br", "col"];

/// Elements after which the text may break without a visible space; files of one
/// line are a burden to anyone who compares two of them.
const OWN_LINE: [&str; 26] = [
    "head",
    "meta",
    "title",
    "style",
    "body",
    "header",
    "main",
    "nav",
    "section",
    "figure",
    "figcaption",
    "details",
    "summary",
    "h1",
    "h2",
    "h3",
    "p",
    "ul",
    "li",
    "dt",
    "dd",
    "tr",
    "svg",
    "path",
    "g",
    "pre",
];

impl Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}", self.name)?;
        for (name, value) in &self.attributes {
            write!(f, " {name}=\"")?;
            escape(f, value, true)?;
            f.write_char('"')?;
        }
        if VOID.contains(&self.name) {
            f.write_str("/>")?;
        } else {
            f.write_char('>')?;
            for child in &self.children {
                match child {
                    Node::Element(element) => element.fmt(f)?,
                    Node::Text(text) => escape(f, text, false)?,
                }
            }
            write!(f, "</{}>", self.name)?;
        }
        if OWN_LINE.contains(&self.name) { f.write_char('\n') } else { Ok(()) }
    }
}

/// Writes `text` so that it can stand in content or in a `quoted` attribute. Only
/// what must be escaped is: HTML takes style sheets as they are written.
fn escape(f: &mut fmt::Formatter<'_>, text: &str, quoted: bool) -> fmt::Result {
    for character in text.chars() {
        match character {
            '&' => f.write_str("&amp;")?,
            '<' => f.write_str("&lt;")?,
            '"' if quoted => f.write_str("&quot;")?,
            // XML has no control characters, escaped or not.
            '\n' | '\t' => f.write_char(character)?,
            '\0'..='\x1f' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                f.write_char('\u{fffd}')?;
            }
            _ => f.write_char(character)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_are_escaped() {
        let written = element("b").with("title", "\"<&>").text("a < \"b\" & \u{1}").to_string();
        assert_eq!(written, "<b title=\"&quot;&lt;&amp;>\">a &lt; \"b\" &amp; \u{fffd}</b>");
    }
}
