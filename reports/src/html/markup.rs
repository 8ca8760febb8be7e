//! Markup that is balanced and escaped because there is no other way to write it.
//!
//! Every element is opened and closed by one call, text and attribute values are escaped on their way in,
//! and the only raw text that is taken is a drawing of our own. What comes from outside (names of runs,
//! evidence, error messages) can therefore be as hostile as it likes.

use std::fmt::Write as _;

use runs::findings::Sentence;

/// A document under construction.
#[derive(Default)]
pub(crate) struct Markup {
    out: String,
}

/// Attributes of an element.
pub(crate) type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Markup {
    /// An element with what `inside` writes.
    pub(crate) fn el(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        inside: impl FnOnce(&mut Self),
    ) {
        self.open(tag, attributes);
        inside(self);
        let _ = write!(self.out, "</{tag}>");
    }

    /// An element with text.
    pub(crate) fn leaf(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) {
        self.el(tag, attributes, |m| m.text(text));
    }

    /// An element that cannot hold anything (`meta`).
    pub(crate) fn void(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.open(tag, attributes);
    }

    fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            let _ = write!(self.out, " {name}=\"{}\"", escape(value));
        }
        self.out.push('>');
    }

    /// Text.
    pub(crate) fn text(&mut self, text: &str) {
        self.out.push_str(&escape(text));
    }

    /// A finding, its weight kept.
    pub(crate) fn sentence(&mut self, sentence: &Sentence) {
        for (text, strong) in sentence.parts() {
            if strong { self.leaf("b", &[], text) } else { self.text(text) }
        }
    }

    /// A drawing of the `svg` module or a constant of this crate: never anything from outside.
    pub(crate) fn drawing(&mut self, svg: &str) {
        self.out.push_str(svg);
    }

    /// A heading with an address, and the finding of its part.
    pub(crate) fn heading(&mut self, id: &str, title: &str, finding: &Sentence) {
        self.leaf("h2", &[("id", id)], title);
        self.el("p", &[("class", "finding")], |m| m.sentence(finding));
        self.line();
    }

    /// A line break in the source, for those who read it.
    pub(crate) fn line(&mut self) {
        self.out.push('\n');
    }

    /// The document so far.
    pub(crate) fn finish(self) -> String {
        self.out
    }
}

/// Escapes text for HTML text and quoted attributes. Control characters and marks that reverse the direction
/// of writing are replaced: neither belongs in a name, and the second can make a page say another thing than
/// its source.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() => out.push('\u{fffd}'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A CSS number: short, and never in exponents.
pub(crate) fn css(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        let mut m = Markup::default();
        m.leaf("p", &[("title", "\"><script>")], "</p><script>alert('x')</script>\u{202e}\u{0}");
        assert_eq!(
            m.finish(),
            "<p title=\"&quot;&gt;&lt;script&gt;\">&lt;/p&gt;&lt;script&gt;alert(&#39;x&#39;)\
             &lt;/script&gt;\u{fffd}\u{fffd}</p>"
        );
    }

    #[test]
    fn css_numbers_are_short() {
        assert_eq!(
            [css(1.0), css(0.5), css(12.3456), css(-0.0001), css(100.0)],
            ["1", "0.5", "12.346", "0", "100"]
        );
    }
}
