//! What stands around every page: one stylesheet, one script, and a policy that lets nothing else in.

use sha2::{Digest, Sha256};

use super::markup::Markup;

/// A page with what `body` writes. Style and script are ours.
pub(crate) fn write(title: &str, style: &str, script: &str, body: impl FnOnce(&mut Markup)) -> String {
    let mut page = Markup::default();
    page.drawing("<!doctype html>\n");
    page.el("html", &[("lang", "en")], |m| {
        m.el("head", &[], |m| {
            m.void("meta", &[("charset", "utf-8")]);
            m.void("meta", &[("name", "viewport"), ("content", "width=device-width,initial-scale=1")]);
            m.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy(script))]);
            m.leaf("title", &[], title);
            m.el("style", &[], |m| m.drawing(style));
        });
        m.line();
        m.el("body", &[], |m| {
            m.el("main", &[], body);
            m.el("script", &[], |m| m.drawing(script));
        });
    });
    page.line();
    page.finish()
}

/// What the browser is to hold the page to: nothing is fetched from anywhere, no script runs but this one,
/// and the script cannot turn text into markup.
fn policy(script: &str) -> String {
    let hash = base64(&Sha256::digest(script.as_bytes()));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

/// Base64 with padding, as the policy writes a hash.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let word =
            group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let six = usize::try_from(word >> (18 - 6 * place) & 63).unwrap_or(0);
            out.push(if place <= group.len() { char::from(LETTERS[six]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded_to_whole_groups() {
        let all = ["", "f", "fo", "foo", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(all, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYmFy"]);
    }
}
