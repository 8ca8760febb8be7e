//! Flags of the commands about a history: judging it, and confirming the order that proves a verdict.

use std::path::PathBuf;

use clap::Args;

use super::Format;

/// Flags of `check`.
#[derive(Clone, Debug, Args)]
#[command(after_help = after_help())]
pub struct CheckArgs {
    /// A run folder, or a history file; `-` reads a history from standard input
    pub path: PathBuf,
    /// What the history is of; see below [default: guessed from the functions that occur]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// What it has to fulfil; see below [default: the first of the model's]
    #[arg(long, value_name = "NAME")]
    pub condition: Option<String>,
    /// Answer unknown after this long [default: when the search has taken its usual number of steps]
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<String>,
    /// Answer unknown before this process holds more [default: three quarters of what is available]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Keys that are judged at a time [default: as many as there are cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Write the order that proves a valid verdict, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub witness: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Flags of `confirm`.
#[derive(Clone, Debug, Args)]
pub struct ConfirmArgs {
    /// What `check --witness` wrote
    pub witness: PathBuf,
    /// The history; `-` reads it from standard input
    pub path: PathBuf,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Columns of the help, a little less than where clap would break lines by itself.
const COLUMNS: usize = 98;

/// Rows of a table, their text broken under itself.
fn table(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, text) in rows {
        let mut row = format!("  {name:width$} ");
        for word in text.split(' ') {
            if row.chars().count() + 1 + word.chars().count() > COLUMNS {
                out.push_str(&row);
                row = format!("\n{}", " ".repeat(width + 3));
            }
            row.push(' ');
            row.push_str(word);
        }
        out.push_str(&row);
        out.push('\n');
    }
    out
}

/// Models and conditions, one line each, so that nobody has to look elsewhere.
fn after_help() -> String {
    use checker::catalogue::{Condition, ModelName};
    let models: Vec<(&str, String)> = ModelName::ALL
        .into_iter()
        .map(|model| {
            let others: Vec<&str> = model.conditions().iter().map(|condition| condition.name()).collect();
            let text =
                format!("{} ({}): {}", model.summary(), model.functions().join(", "), others.join(", "));
            (model.name(), text)
        })
        .collect();
    let conditions: Vec<(&str, String)> =
        Condition::ALL.map(|condition| (condition.name(), condition.summary().to_owned())).into();
    format!(
        "Models, each with the functions of its histories and its \
         conditions:\n{}\nConditions:\n{}\nHistories are JSON lines, Jepsen's EDN or its text log, plain or \
         compressed by zstd; which one is seen from the content. Exit status: 0 valid, 1 a violation, 2 \
         unknown, 254 what was asked for can't be done.\n\n  harness check --model cas-register history.edn",
        table(&models),
        table(&conditions)
    )
}
