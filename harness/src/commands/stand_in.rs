//! `harness become`, hidden: becomes another program that dies with the harness.
//!
//! A program that knows nothing of us can't ask the kernel to be killed when its parent ends. What is asked
//! before `execve` holds after it, so this process asks and then becomes the program, under the same id.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, anyhow};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal, setsid};

use crate::cli::BecomeArgs;
use crate::exit::{Exit, Failure};
use crate::wrap::guardian;

/// Becomes the program. Comes back only when that fails.
pub fn become_program(args: &BecomeArgs) -> Result<Exit, Failure> {
    if let Some(token) = &args.guard {
        guardian::guard(&args.program, token)?;
        return Ok(Exit::Done);
    }
    let signal = if args.gently { Signal::TERM } else { Signal::KILL };
    end_with(args.parent, signal)?;
    if args.session {
        setsid().context("beginning a session")?;
    }
    let (program, rest) = args.program.split_first().ok_or_else(|| Failure::usage("name a program"))?;
    let error = Command::new(program).args(rest).exec();
    // These are its last words, in its log; that the harness failed would not be true.
    let _ = writeln!(std::io::stderr(), "{}: {error}", program.display());
    Ok(Exit::NotRun)
}

/// Asks the kernel to kill this process when its harness ends, and ends now if that has happened already.
pub(super) fn die_with(parent: u32) -> anyhow::Result<()> {
    end_with(parent, Signal::KILL)
}

fn end_with(parent: u32, signal: Signal) -> anyhow::Result<()> {
    set_parent_process_death_signal(Some(signal)).context("asking for a signal when the harness ends")?;
    let expected = i32::try_from(parent).ok().and_then(Pid::from_raw);
    if getppid() == expected { Ok(()) } else { Err(anyhow!("the harness that started this member is gone")) }
}
