//! Transaction log, snapshots, epoch files and recovery over a small storage trait.
