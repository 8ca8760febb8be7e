//! The screen that results are printed on: standard output, and how wide it is.

use std::io::{IsTerminal, Write};

use crate::exit::Failure;
use crate::progress::colour_wanted;

/// The width of a screen that does not say its own.
const USUAL_WIDTH: usize = 100;

/// The width of the terminal, as far as it tells.
pub(crate) fn width() -> usize {
    rustix::termios::tcgetwinsize(std::io::stdout()).map_or(USUAL_WIDTH, |size| match size.ws_col {
        0 => USUAL_WIDTH,
        columns => usize::from(columns),
    })
}

/// How a screen of ours looks here.
pub(crate) fn style() -> reports::terminal::Style {
    reports::terminal::Style { colour: colour_wanted(std::io::stdout().is_terminal()), width: width() }
}

/// Writes a result to stdout. A reader that went away is not a failure of ours.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::Harness(anyhow::Error::new(error).context("writing the result")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A command as whoever started this one can type it: `cargo harness`, an alias, tells the harness where
/// cargo is.
pub(crate) fn as_typed(command: &str) -> String {
    as_typed_here(command, std::env::var_os("CARGO").is_some())
}

fn as_typed_here(command: &str, by_cargo: bool) -> String {
    // Variables may stand before it.
    let begins = command.find("harness ").filter(|&at| at == 0 || command[..at].contains('='));
    match begins {
        Some(at) if by_cargo => format!("{}cargo {}", &command[..at], &command[at..]),
        _ => command.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_repeats_a_run_is_one_that_can_be_typed() {
        assert_eq!(as_typed_here("harness run --seed 7", true), "cargo harness run --seed 7");
        assert_eq!(as_typed_here("harness run --seed 7", false), "harness run --seed 7");
        assert_eq!(as_typed_here("WAIT=1 harness run", true), "WAIT=1 cargo harness run");
        assert_eq!(as_typed_here("", true), "");
    }
}
