//! What a member says first on an election connection: who it is, and where it can be dialled.
//!
//! Of two members only the one with the larger id keeps an election connection that it made. Apache ZooKeeper
//! closes the other's and dials back, not where its own configuration says but at the address that the
//! connection began with, which is the member's own: such a connection would pass by the links. So a link
//! puts the address of the link that leads back in its place, as a router that translates addresses does for
//! protocols that name them. Nothing else that is said is touched, and what is no introduction passes as it
//! is.
//!
//! An introduction is a number for the form (-65536 for one address, -65535 for several, parted by `|`), the
//! id of whoever dials, the length of the text, and the text, `host:port`. Versions before 3.5 begin with the
//! id.

use std::net::SocketAddr;

/// Forms of an introduction.
const FORMS: [i64; 2] = [-65_536, -65_535];
/// Form, id, and the length of the text.
const HEAD_BYTES: usize = 20;
/// An address longer than this is none.
const MAX_TEXT_BYTES: usize = 1024;

/// Replaces the address in an introduction, once for a connection.
#[derive(Debug)]
pub(super) struct Introduction {
    instead: SocketAddr,
    /// What came and is not yet an introduction as a whole.
    withheld: Vec<u8>,
    is_over: bool,
}

impl Introduction {
    /// One that is to name this address.
    pub(super) fn naming(instead: SocketAddr) -> Self {
        Self { instead, withheld: Vec::new(), is_over: false }
    }

    /// Takes what came and gives what goes on; nothing while the introduction is not whole.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.is_over {
            return bytes.to_vec();
        }
        self.withheld.extend_from_slice(bytes);
        match self.text() {
            Text::Incomplete => Vec::new(),
            Text::None => self.rest(),
            Text::Until(end) => {
                let text = self.instead.to_string();
                let length = u32::try_from(text.len()).unwrap_or_default();
                let mut said = self.withheld[..HEAD_BYTES - 4].to_vec();
                said.extend_from_slice(&length.to_be_bytes());
                said.extend_from_slice(text.as_bytes());
                said.extend_from_slice(&self.withheld[end..]);
                self.withheld.clear();
                self.is_over = true;
                said
            }
        }
    }

    /// What was withheld, as it came: nothing more comes, or it is no introduction.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        self.is_over = true;
        std::mem::take(&mut self.withheld)
    }

    fn text(&self) -> Text {
        let said = &self.withheld;
        let Some(form) = said.first_chunk::<8>() else { return Text::Incomplete };
        if !FORMS.contains(&i64::from_be_bytes(*form)) {
            return Text::None;
        }
        let Some(length) = said.get(HEAD_BYTES - 4..).and_then(<[u8]>::first_chunk::<4>) else {
            return Text::Incomplete;
        };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        match length {
            1..=MAX_TEXT_BYTES if said.len() < HEAD_BYTES + length => Text::Incomplete,
            1..=MAX_TEXT_BYTES => Text::Until(HEAD_BYTES + length),
            _ => Text::None,
        }
    }
}

/// Where the text ends, if there is one.
enum Text {
    Incomplete,
    None,
    Until(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instead() -> SocketAddr {
        "127.0.0.1:20007".parse().expect("an address")
    }

    fn introduction(form: i64, text: &str) -> Vec<u8> {
        let length = u32::try_from(text.len()).expect("short");
        [&form.to_be_bytes()[..], &3_i64.to_be_bytes(), &length.to_be_bytes(), text.as_bytes()].concat()
    }

    #[test]
    fn the_address_is_replaced_and_nothing_else_however_it_comes_in_parts() {
        for (form, text) in [(-65_536, "localhost:3888"), (-65_535, "[::1]:3888|10.0.0.1:3888")] {
            let said = [introduction(form, text), b"votes".to_vec()].concat();
            let wanted = [introduction(form, "127.0.0.1:20007"), b"votes".to_vec()].concat();
            for part in 1..=said.len() {
                let mut introduction = Introduction::naming(instead());
                let mut heard: Vec<u8> =
                    said.chunks(part).flat_map(|bytes| introduction.pass(bytes)).collect();
                heard.extend(introduction.rest());
                assert_eq!(heard, wanted, "in parts of {part}");
            }
        }
    }

    #[test]
    fn what_is_no_introduction_passes_as_it_is() {
        let long = [&(-65_536_i64).to_be_bytes()[..], &[0; 8], &u32::MAX.to_be_bytes(), b"x"].concat();
        let cut_short = introduction(-65_536, "localhost:3888")[..25].to_vec();
        for said in [7_i64.to_be_bytes().to_vec(), long, cut_short, b"ruok".to_vec(), Vec::new()] {
            let mut introduction = Introduction::naming(instead());
            let mut heard = introduction.pass(&said);
            heard.extend(introduction.rest());
            assert_eq!(heard, said);
        }
    }
}
