//! Writes the page of an invented night to standard output, to be looked at: `cargo run -p reports --example
//! invented_night > target/night.html`. An argument asks for another rendering: screen, markdown,
//! annotations, junit or metrics. A second one asks for another ending: valid, not-ended or nothing.

#[path = "invented_nights/mod.rs"]
mod invented_nights;

use std::io::Write as _;

use invented_nights::{Ending, nights};
use reports::nights::{annotations, junit, markdown, open_metrics, page, screen, screen_page};
use reports::terminal::Style;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_else(|| "page".to_owned());
    let ending = match arguments.next().as_deref() {
        Some("valid") => Ending::Valid,
        Some("not-ended") => Ending::NotEnded,
        Some("nothing") => Ending::Nothing,
        _ => Ending::Failing,
    };
    let drawn = if what == "large" { nights(400, 300, ending) } else { nights(60, 46, ending) };
    let view = drawn.view();
    let text = match what.as_str() {
        "screen" => {
            screen(&view, Style { colour: false, width: 100 }) + &screen_page("runs/nightly/index.html")
        }
        "markdown" => markdown(&view),
        "annotations" => annotations(&view),
        "junit" => junit(&view),
        "metrics" => open_metrics(&view),
        _ => page(&view),
    };
    std::io::stdout().write_all(text.as_bytes())
}
