//! `harness init`: files to begin from.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use harness_systems::files::{self, Files};

use super::screen::print;
use crate::cli::InitArgs;
use crate::exit::{Exit, Failure};
use crate::text::suggest;

/// A plan of nights to begin from.
const NIGHT: Files = Files {
    name: "night",
    about: None,
    files: &[("nightly.toml", include_str!("../../docs/nightly.toml"))],
    next: "what it would run: harness night FILE --dry-run\nthe night itself:  harness night FILE",
};

/// Writes them, unless something is there.
pub fn init(args: &InitArgs) -> Result<Exit, Failure> {
    let all = || [&NIGHT].into_iter().chain(files::ALL.iter().copied());
    let Some(beginning) = all().find(|beginning| beginning.name == args.what) else {
        let names: Vec<&str> = all().map(|beginning| beginning.name).collect();
        return Err(Failure::Usage(suggest::unknown("file", &args.what, &names, "`harness init` writes:")));
    };
    let first = beginning.files[0].0;
    let path = args.file.clone().unwrap_or_else(|| PathBuf::from(first));
    let beside = |name: &str| path.parent().unwrap_or(Path::new("")).join(name);
    let written: Vec<(PathBuf, &str)> = beginning
        .files
        .iter()
        .map(|(name, text)| (if *name == first { path.clone() } else { beside(name) }, *text))
        .collect();
    if let Some((taken, _)) = written.iter().find(|(path, _)| path.exists()) {
        return Err(Failure::usage(format!(
            "{} exists already, and stays as it is: name another",
            taken.display()
        )));
    }
    let mut names = Vec::new();
    for (path, text) in &written {
        write(path, text)?;
        names.push(path.display().to_string());
    }
    let next = beginning.next.replace("FILE", &names[0]).replace("././", "./");
    print(&format!("written: {}\n\n{next}\n", names.join(" ")))?;
    Ok(Exit::Done)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let name = path.display();
    let mut file = match OpenOptions::new().create_new(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Failure::usage(format!("{name} exists already, and stays as it is: name another")));
        }
        Err(error) => return Err(Failure::usage(format!("{name}: {error}"))),
        Ok(file) => file,
    };
    file.write_all(text.as_bytes()).with_context(|| format!("writing {name}"))?;
    Ok(())
}
