//! The `harness` binary: everything it does is in the library, so that tests reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::main(std::env::args_os())
}
