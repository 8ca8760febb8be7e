//! `harness init`: a file to begin from.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;

use super::screen::print;
use crate::cli::InitArgs;
use crate::exit::{Exit, Failure};
use crate::text::suggest;

/// What there is to begin with: a name, the usual file, its text, and what to do with it.
const ALL: [(&str, &str, &str, &str); 1] = [(
    "night",
    "nightly.toml",
    include_str!("../../docs/nightly.toml"),
    "what it would run: harness night FILE --dry-run\nthe night itself:  harness night FILE",
)];

/// Writes it, unless something is there.
pub fn init(args: &InitArgs) -> Result<Exit, Failure> {
    let Some((_, usual, text, next)) = ALL.into_iter().find(|(name, ..)| *name == args.what) else {
        let names = ALL.map(|(name, ..)| name);
        return Err(Failure::Usage(suggest::unknown("file", &args.what, &names, "`harness init` writes:")));
    };
    let path = args.file.clone().unwrap_or_else(|| PathBuf::from(usual));
    let name = path.display().to_string();
    let mut file = match OpenOptions::new().create_new(true).write(true).open(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Failure::usage(format!("{name} exists already, and stays as it is: name another")));
        }
        Err(error) => return Err(Failure::usage(format!("{name}: {error}"))),
        Ok(file) => file,
    };
    file.write_all(text.as_bytes()).with_context(|| format!("writing {name}"))?;
    print(&format!("written: {name}\n\n{}\n", next.replace("FILE", &name)))?;
    Ok(Exit::Done)
}
