//! What becomes of each flag of `harness run` that the command in a run folder has.
//!
//! A folder may come from anybody. So a flag is believed only where it is on the list of those that can do no
//! harm: numbers, times, switches and names of ours, all held against their bounds. One that names a program,
//! a file, an image or an address counts on the command line alone, and one that nobody has put on the list
//! is refused.

use harness_systems::setting::{self, Setting};

use crate::systems::CATALOGUE;

/// How far a flag in a folder is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Believed {
    /// As it is: a number, a time, a switch or a name of ours.
    AsItIs,
    /// Where its value is the name of a system that is built in; else as [`Self::OnlyTyped`].
    ABuiltInName,
    /// Where it is a setting of a system that is built in, names no code, and has a value that the setting
    /// takes; else as [`Self::OnlyTyped`].
    ASetting,
    /// Not at all: who repeats the run types it.
    OnlyTyped,
    /// Not at all, and no folder of ours has it: it says where results go.
    Never,
}

/// Every flag of `harness run`, by its long name.
const FLAGS: [(&str, Believed); 31] = [
    ("base-port", Believed::Never),
    ("cluster", Believed::AsItIs),
    ("compress", Believed::AsItIs),
    ("concurrency", Believed::AsItIs),
    ("fail-fast", Believed::AsItIs),
    ("format", Believed::Never),
    ("image", Believed::OnlyTyped),
    ("image-command", Believed::OnlyTyped),
    ("interval", Believed::AsItIs),
    ("keys", Believed::AsItIs),
    ("lose-unsynced", Believed::AsItIs),
    ("min-rate", Believed::AsItIs),
    ("mutant", Believed::AsItIs),
    ("name", Believed::Never),
    ("nemesis", Believed::AsItIs),
    ("nodes", Believed::AsItIs),
    ("observers", Believed::AsItIs),
    ("op-timeout", Believed::AsItIs),
    ("overlap", Believed::AsItIs),
    ("peer-timeout", Believed::AsItIs),
    ("promise", Believed::AsItIs),
    ("publish", Believed::OnlyTyped),
    ("pull", Believed::OnlyTyped),
    ("rate", Believed::AsItIs),
    ("seed", Believed::AsItIs),
    ("session-timeout", Believed::AsItIs),
    ("set", Believed::ASetting),
    ("store", Believed::Never),
    ("system", Believed::ABuiltInName),
    ("time-limit", Believed::AsItIs),
    ("workload", Believed::AsItIs),
];

/// How far a flag of this long name is believed. One that is on no list is not.
#[must_use]
pub fn believed(flag: &str) -> Believed {
    FLAGS.iter().find(|(name, _)| *name == flag).map_or(Believed::Never, |(_, believed)| *believed)
}

/// Whether who repeats a run must type this flag, because no folder is believed with this value of it.
#[must_use]
pub fn must_be_typed(flag: &str, value: &str) -> bool {
    match believed(flag) {
        Believed::AsItIs | Believed::Never => false,
        Believed::ABuiltInName => !CATALOGUE.is_built_in(value),
        Believed::ASetting => !setting::parted(value).is_ok_and(|(name, value)| {
            let is_it = |setting: &Setting| setting.name == name && !setting.names_code;
            CATALOGUE.settings().iter().any(|(setting, _)| is_it(setting) && (setting.read)(value).is_ok())
        }),
        Believed::OnlyTyped => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    fn flags_of(command: &str) -> Vec<String> {
        let cli = Cli::command();
        let command = cli.find_subcommand(command).expect("a command");
        let mut flags: Vec<String> =
            command.get_arguments().filter_map(|flag| flag.get_long()).map(str::to_owned).collect();
        flags.sort();
        flags
    }

    #[test]
    fn somebody_has_decided_of_every_flag_of_a_run_whether_a_folder_is_believed() {
        let decided: Vec<&str> = FLAGS.iter().map(|(name, _)| *name).collect();
        assert_eq!(flags_of("run"), decided, "each flag stands in FLAGS once, in the order of the alphabet");
        let cli = Cli::command();
        let run = cli.find_subcommand("run").expect("a command");
        assert!(
            run.get_arguments().all(|flag| flag.get_long().is_some()),
            "a word without a flag is on no list"
        );
        assert_eq!(believed("a-flag-of-tomorrow"), Believed::Never);
    }

    #[test]
    fn what_must_be_typed_can_be_typed_to_whatever_repeats_a_run() {
        for command in ["replay", "shrink"] {
            let has = flags_of(command);
            for (name, believed) in FLAGS {
                let typed =
                    matches!(believed, Believed::OnlyTyped | Believed::ABuiltInName | Believed::ASetting);
                assert!(!typed || has.iter().any(|flag| flag == name), "{command} has no --{name}");
            }
        }
    }

    #[test]
    fn a_setting_is_believed_where_it_names_no_code_and_takes_the_value() {
        assert!(!must_be_typed("set", "tick=1s"));
        for setting in
            ["classpath=x.jar", "of-tomorrow=1", "tick", "", "tick=", "tick=soon", "tick=1ms", "=1s"]
        {
            assert!(must_be_typed("set", setting), "{setting}");
        }
    }

    #[test]
    fn a_system_is_believed_by_the_name_of_one_that_is_built_in_alone() {
        for name in ["node", "zookeeper", "mixed:2", "etcd", "redis"] {
            assert!(!must_be_typed("system", name), "{name}");
        }
        for name in
            ["./system.toml", "redis.toml", "/tmp/redis", "compose.yaml", "mixed:1/../x.toml", "x", ""]
        {
            assert!(must_be_typed("system", name), "{name}");
        }
    }
}
