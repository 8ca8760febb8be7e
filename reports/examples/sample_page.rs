//! Writes the pages, JUnit documents and last lines of three invented runs into the folder given (or the
//! current one), to be looked at: `cargo run -p reports --example sample_page -- target/sample`.

#[path = "invented/mod.rs"]
mod invented;

use std::fs;
use std::path::PathBuf;

use invented::Ending;
use reports::terminal::Style;
use reports::{html, junit, terminal};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    fs::create_dir_all(&folder)?;
    for (name, ending) in
        [("valid", Ending::Valid), ("violation", Ending::Violation), ("unknown", Ending::Unknown)]
    {
        let run = invented::run(ending, 500);
        let page = html::render(&run.run, &run.results, &run.faults, &run.history);
        fs::write(folder.join(format!("{name}.html")), &page)?;
        fs::write(folder.join(format!("{name}.xml")), junit::render(&run.run, &run.results, &run.faults))?;
        let style = Style { colour: true, width: 100 };
        let file = format!("{name}.html, {} bytes", page.len());
        print!("{}", terminal::render(&run.run, &run.results, &run.faults, Some(&file), style));
    }
    Ok(())
}
