//! `harness man`: pages of the manual, from the definition of the command line.

use std::path::Path;

use anyhow::Context;
use clap_mangen::Man;

use super::screen::print;
use super::visible;
use crate::exit::{Exit, Failure};

/// Prints the pages of the tool and its commands, one behind the other, or writes each into a file of a
/// folder.
pub fn man(folder: Option<&Path>) -> Result<Exit, Failure> {
    let Some(folder) = folder else {
        let pages: Vec<String> = pages()?.into_iter().map(|(_, page)| page).collect();
        print(&pages.concat())?;
        return Ok(Exit::Done);
    };
    let refused = |error: std::io::Error| {
        Failure::usage(format!("{}: {error}; name a folder that can be written to", folder.display()))
    };
    std::fs::create_dir_all(folder).map_err(refused)?;
    for (name, page) in pages()? {
        std::fs::write(folder.join(name), page).map_err(refused)?;
    }
    Ok(Exit::Done)
}

/// The name and the text of each page, that of the whole tool first.
fn pages() -> Result<Vec<(String, String)>, Failure> {
    let mut whole = visible().disable_help_subcommand(true);
    // Commands learn here that they are the tool's.
    whole.build();
    let commands = std::iter::once(&whole).chain(whole.get_subcommands());
    commands
        .map(|command| {
            let man = Man::new(command.clone());
            let mut page = Vec::new();
            man.render(&mut page).context("writing a page of the manual")?;
            Ok((man.get_filename(), String::from_utf8_lossy(&page).into_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_page_for_the_tool_and_for_every_command_that_people_see() {
        let pages = pages().expect("pages");
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[0], "harness.1");
        assert!(names.contains(&"harness-run.1") && names.contains(&"harness-completions.1"), "{names:?}");
        assert!(!names.iter().any(|name| name.contains("member") || name.contains("help")), "{names:?}");
        let of_run = &pages.iter().find(|(name, _)| name == "harness-run.1").expect("a page").1;
        assert!(
            of_run.contains(".TH") && of_run.contains("nemesis") && of_run.contains("kill\\-leader"),
            "{of_run}"
        );
    }
}
