//! Draws the page of a run folder into a file and says what that took, without building the harness:
//! `cargo run --release -p reports --example redraw -- runs/latest /tmp/page.html`.

use std::error::Error;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::PathBuf;
use std::time::Instant;

use checker::history::{History, load};
use reports::terminal::{self, Style};
use reports::{html, junit};
use runs::faults::{FaultTransition, fold};
use runs::operations;
use runs::results::{Results, RunInfo};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    let (Some(folder), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("name a run folder and the file to write".into());
    };
    let run: RunInfo = serde_json::from_reader(File::open(folder.join("run.json"))?)?;
    let results: Results = serde_json::from_reader(File::open(folder.join("results.json"))?)?;
    let lines = fs::read_to_string(folder.join("faults.jsonl"))?;
    let transitions: Vec<FaultTransition> =
        lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut faults = fold(&transitions, &run.kinds);
    let history = folder.join("history.jsonl");
    let history = if history.exists() { history } else { folder.join("history.jsonl.zst") };
    let history = match File::open(history) {
        Ok(file) => load(BufReader::new(file)).map(|loaded| loaded.history).unwrap_or_default(),
        Err(_) => History::default(),
    };
    let began = Instant::now();
    operations::count_around_faults(&history, &mut faults);
    let counted = began.elapsed();
    let page = html::render(&run, &results, &faults, &history);
    let drawn = began.elapsed() - counted;
    fs::write(&to, &page)?;
    fs::write(to.with_extension("xml"), junit::render(&run, &results, &faults))?;
    print!("{}", terminal::render(&run, &results, &faults, None, Style { colour: false, width: 80 }));
    println!(
        "{} operations, {} faults: {} bytes, counted in {counted:.1?}, drawn in {drawn:.1?}",
        history.ops().len(),
        faults.len(),
        page.len()
    );
    Ok(())
}
