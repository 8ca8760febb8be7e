//! Java and Apache ZooKeeper as they are on this machine.
//!
//! Nothing is installed or fetched here. Java is `$JAVA_HOME/bin/java`, or `java` on the path; Apache
//! ZooKeeper is what `--set classpath=` or `ZOOKEEPER_CLASSPATH` names as a class path, and otherwise what
//! Debian's package installs. Both are tried before a run begins, by having ZooKeeper tell its version: that
//! shows at once that Java runs and that the class path leads to a ZooKeeper.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness_systems::program::{VERSION_PATIENCE, brief};

/// Names a class path, for whoever does not want to write the flag.
pub const CLASSPATH_VARIABLE: &str = "ZOOKEEPER_CLASSPATH";
/// Where Java is, as everybody knows it.
const JAVA_HOME: &str = "JAVA_HOME";

/// Where Debian's package puts Apache ZooKeeper. The jar names all that it needs.
const JAR: &str = "/usr/share/java/zookeeper.jar";
/// What has its log written; without it nothing is logged.
const LOGGER: &str = "/usr/share/java/slf4j-simple.jar";
/// What to do about a lack.
const ADVICE: &str = "on Debian install zookeeper, default-jre-headless and libslf4j-java, or name another \
                      with --set classpath=CLASSPATH (or ZOOKEEPER_CLASSPATH) and JAVA_HOME";

/// What is asked for its version.
const VERSION_CLASS: &str = "org.apache.zookeeper.version.VersionInfoMain";
/// What is run as a member.
pub const MEMBER_CLASS: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

/// Java and an Apache ZooKeeper that told its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Java {
    /// The program.
    pub program: PathBuf,
    /// Where ZooKeeper's classes are.
    pub class_path: String,
    /// Java's version.
    pub version: String,
    /// ZooKeeper's.
    pub zookeeper: String,
}

impl Java {
    /// Looks for both. What is missing is said, with what to do about it.
    pub fn find(asked_for: Option<&str>) -> Result<Self, String> {
        let variable = std::env::var(CLASSPATH_VARIABLE).ok().filter(|text| !text.is_empty());
        let class_path = match asked_for.map(str::to_owned).or(variable) {
            Some(class_path) => class_path,
            None => debian()?,
        };
        let home = std::env::var_os(JAVA_HOME).filter(|home| !home.is_empty());
        Self::tried(program(home.as_deref()), class_path)
    }

    /// Has ZooKeeper tell its version.
    fn tried(program: PathBuf, class_path: String) -> Result<Self, String> {
        let mut command = Command::new(&program);
        command.args(["-Xmx64m", "-XX:-UsePerfData", "-showversion", "-cp", &class_path, VERSION_CLASS]);
        let output = brief(&mut command, VERSION_PATIENCE).map_err(|error| {
            format!("there is no Java to run it with: {} ({error}); {ADVICE}", program.display())
        })?;
        let (said, complaints) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let zookeeper = zookeeper_version(&said).ok_or_else(|| {
            let why = complaints.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
            format!("no Apache ZooKeeper answers from the class path {class_path} ({}); {ADVICE}", why.trim())
        })?;
        let version = java_version(&complaints).unwrap_or_else(|| "unknown".to_owned());
        Ok(Self { program, class_path, version, zookeeper })
    }
}

fn program(home: Option<&OsStr>) -> PathBuf {
    home.map_or_else(|| PathBuf::from("java"), |home| Path::new(home).join("bin/java"))
}

/// What Debian's packages install.
fn debian() -> Result<String, String> {
    if !Path::new(JAR).exists() {
        return Err(format!("there is no {JAR}; {ADVICE}"));
    }
    let logger = if Path::new(LOGGER).exists() { format!(":{LOGGER}") } else { String::new() };
    Ok(format!("{JAR}{logger}"))
}

/// `Apache ZooKeeper, version 3.8.0 2024-12-29 17:54 UTC`, and in other builds the version with a commit
/// behind it.
fn zookeeper_version(said: &str) -> Option<String> {
    let line = said.lines().find_map(|line| line.split_once("ZooKeeper, version ")).map(|(_, rest)| rest)?;
    let version = line.split([' ', '-', ',']).next().unwrap_or_default();
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

/// `openjdk version "17.0.15" 2025-04-15`.
fn java_version(said: &str) -> Option<String> {
    let line = said.lines().find(|line| line.contains("version \""))?;
    line.split('"').nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_understood_as_they_are_told() {
        let version = |text: &str| zookeeper_version(text);
        assert_eq!(
            version("Apache ZooKeeper, version 3.8.0 2024-12-29 17:54 UTC\n"),
            Some("3.8.0".to_owned())
        );
        assert_eq!(
            version("Apache ZooKeeper, version 3.9.3-c26634f34490bb0ea7a09cc51e05ede3b4e320ee 09/26/2024\n"),
            Some("3.9.3".to_owned())
        );
        assert_eq!(version("Error: Could not find or load main class\n"), None);
        let java = "openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime Environment\n";
        assert_eq!(java_version(java), Some("17.0.15".to_owned()));
        assert_eq!(java_version(""), None);
    }

    #[test]
    fn a_missing_java_or_zookeeper_is_named_with_advice() {
        let missing =
            Java::tried(PathBuf::from("/nowhere/java"), "x.jar".to_owned()).expect_err("none there");
        assert!(missing.contains("/nowhere/java") && missing.contains("default-jre-headless"), "{missing}");
        // Any program that says nothing of ZooKeeper.
        let other = Java::tried(PathBuf::from("true"), "x.jar".to_owned()).expect_err("no ZooKeeper");
        assert!(other.contains("class path x.jar") && other.contains("--set classpath="), "{other}");
    }

    #[test]
    fn java_is_where_its_variable_says_and_else_on_the_path() {
        assert_eq!(program(Some(OsStr::new("/opt/jdk"))), Path::new("/opt/jdk/bin/java"));
        assert_eq!(program(None), Path::new("java"));
    }
}
