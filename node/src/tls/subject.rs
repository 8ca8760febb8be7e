//! A subject's name as Java writes it by RFC 2253, because that text is the identity which lists of access
//! hold.
//!
//! The last part comes first, parts are separated by commas, the nine keywords of the RFC stand for their
//! numbers, and whatever has no keyword or is no text is its number and the hexadecimal of its encoding. Java
//! escapes more characters than the RFC asks for (`=` among them), and so must we.

use std::fmt::Write;

use x509_parser::asn1_rs::{Tag, ToDer};
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// The RFC's keywords.
const KEYWORDS: [(&str, &str); 9] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "STREET"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
];

/// What stands behind a backslash.
const ESCAPED: &str = ",=+<>#;\"\\";

/// The whole name.
pub(super) fn rfc2253(name: &X509Name<'_>) -> String {
    let parts: Vec<String> =
        name.iter_rdn().map(|part| part.iter().map(attribute).collect::<Vec<_>>().join("+")).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join(",")
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let number = attribute.attr_type().to_id_string();
    let keyword = KEYWORDS.iter().find(|(known, _)| *known == number).map(|(_, keyword)| *keyword);
    match (keyword, text(attribute)) {
        (Some(keyword), Some(text)) => format!("{keyword}={}", escape(&text)),
        _ => {
            let encoded = attribute.attr_value().to_der_vec().unwrap_or_default();
            let mut shown = format!("{number}=#");
            for byte in encoded {
                // Writing into a string does not fail.
                let _ = write!(shown, "{byte:02x}");
            }
            shown
        }
    }
}

/// The characters of a value, when it is one of the kinds of text.
fn text(attribute: &AttributeTypeAndValue<'_>) -> Option<String> {
    let value = attribute.attr_value();
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String | Tag::NumericString => {
            std::str::from_utf8(value.data).ok().map(str::to_owned)
        }
        // Java reads it as Latin-1, whatever the standard says.
        Tag::TeletexString | Tag::GeneralString => Some(value.data.iter().copied().map(char::from).collect()),
        Tag::BmpString => {
            let units = value.data.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            char::decode_utf16(units).collect::<Result<String, _>>().ok()
        }
        _ => None,
    }
}

/// A value with its spaces at either end, and whatever would part names, behind backslashes.
fn escape(text: &str) -> String {
    let leading = text.chars().take_while(|char| *char == ' ').count();
    let trailing = text.chars().rev().take_while(|char| *char == ' ').count();
    let count = text.chars().count();
    let mut escaped = String::with_capacity(text.len());
    for (at, char) in text.chars().enumerate() {
        let at_the_edge = at < leading || at >= count - trailing;
        if char == '\0' {
            escaped.push_str("\\00");
            continue;
        }
        if at_the_edge || ESCAPED.contains(char) {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_part_names_is_escaped() {
        for (text, escaped) in [
            ("ann", "ann"),
            ("a,b=c+d", "a\\,b\\=c\\+d"),
            (" a b ", "\\ a b\\ "),
            ("  ", "\\ \\ "),
            ("#\"\\<>;", "\\#\\\"\\\\\\<\\>\\;"),
        ] {
            assert_eq!(escape(text), escaped, "{text:?}");
        }
    }
}
