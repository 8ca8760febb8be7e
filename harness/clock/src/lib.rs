//! Shifts the wall clock of another process, and of nobody else.
//!
//! A program asks for the time through the vDSO, a page of code that the kernel maps into every process. Here
//! that code is patched in one process, through ptrace, so that its wall clock is off by as much as is wanted:
//! static, Go, Rust and JVM programs are all reached, the host's clock and every other process are not. The
//! monotonic clock is left alone, because waits with deadlines are the kernel's and do not follow a patch.
//!
//! - A shift is gone when the process is: whoever starts it again applies it again.
//! - Reading is done by the target itself, through its own (patched or unpatched) vDSO, and is compared with an
//!   unpatched reading of the same moment.
//! - Needs x86-64 Linux and the right to ptrace the target. [`available`] tells before anything is broken.
//!
//! The idea is Chaos Mesh's TimeChaos; see the module of the patch for what is done otherwise.
