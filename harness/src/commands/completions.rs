//! `harness completions`: what a shell needs to complete commands, flags and names, from the definition of
//! the command line.

use clap_complete::Shell;

use super::screen::print;
use super::visible;
use crate::exit::{Exit, Failure};

/// Prints it.
pub fn completions(shell: Shell) -> Result<Exit, Failure> {
    print(&script(shell))?;
    Ok(Exit::Done)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible(), "harness", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_completes_commands_flags_and_names_and_nothing_that_is_hidden() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            for word in ["selftest", "nemesis", "partition-leader", "ephemeral", "ack-before-fsync", "mixed"]
            {
                assert!(script.contains(word), "{shell}: {word}");
            }
            assert!(!script.contains("clock-target"), "{shell} completes what only the harness starts");
        }
    }
}
