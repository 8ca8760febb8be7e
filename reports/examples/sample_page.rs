//! Writes the pages, JUnit documents and last lines of four invented runs into the folder given (or the
//! current one), to be looked at: `cargo run -p reports --example sample_page -- target/sample`.

#[path = "invented/mod.rs"]
mod invented;

use std::fs;
use std::path::PathBuf;

use invented::{Ending, Invented};
use reports::terminal::Style;
use reports::{html, junit, terminal};
use runs::unsent::Unsent;

/// A run of which the bench did not send a part, and whose elections are not known in all their phases.
fn unsent() -> Invented {
    const S: u64 = 1_000_000_000;
    let mut run = invented::run(Ending::Valid, 500);
    run.results.unsent = Some(Unsent {
        due: 500,
        no_client_free: 31,
        replaced: 64,
        stretches: vec![(3 * S, 5 * S), (11 * S, 12 * S)],
        idle: Vec::new(),
    });
    for election in run.results.elections.iter_mut().skip(1) {
        (election.election_ms, election.sync_ms) = (None, None);
    }
    run
}

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    fs::create_dir_all(&folder)?;
    let runs = [
        ("valid", invented::run(Ending::Valid, 500)),
        ("violation", invented::run(Ending::Violation, 500)),
        ("unknown", invented::run(Ending::Unknown, 500)),
        ("unsent", unsent()),
    ];
    for (name, run) in runs {
        let page = html::render(&run.run, &run.results, &run.faults, &run.history);
        fs::write(folder.join(format!("{name}.html")), &page)?;
        fs::write(folder.join(format!("{name}.xml")), junit::render(&run.run, &run.results, &run.faults))?;
        let style = Style { colour: true, width: 100 };
        let file = format!("{name}.html, {} bytes", page.len());
        print!("{}", terminal::render(&run.run, &run.results, &run.faults, Some(&file), style));
    }
    Ok(())
}
