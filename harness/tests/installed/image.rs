//! Images for a test, made of programs that are installed here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where a program is.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().ok()?;
    let path = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    std::fs::canonicalize(path).ok()
}

/// An image, for as long as this lives.
pub(crate) struct Image(pub(crate) &'static str);

impl Image {
    /// One of these programs under these names, with what they are linked to; none, which is said, where one
    /// is not installed or no engine answers.
    pub(crate) fn made(name: &'static str, programs: &[(&str, &[&str])]) -> Option<Self> {
        let mut found = Vec::new();
        for (program, names) in programs {
            let Some(path) = which(program) else {
                eprintln!("skipped: {program} is not installed");
                return None;
            };
            // A script asks for more than what it is linked to.
            let begins = std::fs::read(&path).unwrap_or_default();
            if !begins.starts_with(b"\x7fELF") {
                eprintln!("skipped: {} is a script, and an image needs the program", path.display());
                return None;
            }
            found.push((path, *names));
        }
        if !an_engine_answers() {
            return None;
        }
        let root = tempfile::tempdir().expect("a folder");
        let mut files: BTreeSet<PathBuf> = BTreeSet::new();
        for (program, names) in &found {
            let needed = Command::new("ldd").arg(program).output().expect("ldd");
            let needed = String::from_utf8_lossy(&needed.stdout).into_owned();
            files.extend(needed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from));
            names.iter().for_each(|name| copy(program, &root.path().join("bin").join(name)));
        }
        for file in &files {
            copy(file, &root.path().join(file.strip_prefix("/").expect("absolute")));
        }
        std::fs::create_dir(root.path().join("data")).expect("made");
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(root.path()).args(["-c", "."]);
        Some(Self::imported(name, &mut tar, "ENV PATH=/bin"))
    }

    /// What these Debian packages and all that they depend on have installed, with their users; none, which
    /// is said, where one is not installed or no engine answers.
    pub(crate) fn of_packages(name: &'static str, packages: &[&str]) -> Option<Self> {
        let installed = |package: &&&str| {
            let asked = ["-W", "-f", "${db:Status-Status}", package];
            let status = Command::new("dpkg-query").args(asked).output();
            status.is_ok_and(|status| status.stdout == b"installed")
        };
        if let Some(missing) = packages.iter().find(|package| !installed(package)) {
            eprintln!("skipped: the package {missing} is not installed");
            return None;
        }
        if !an_engine_answers() {
            return None;
        }
        let mut tar = Command::new("sh");
        tar.args(["-c", OF_PACKAGES, "sh"]).args(packages);
        Some(Self::imported(name, &mut tar, "ENV PATH=/usr/bin:/usr/sbin"))
    }

    /// The bundled member by itself, which begins an ensemble of one.
    pub(crate) fn of_a_member(name: &'static str) -> Option<Self> {
        let harness = Path::new(env!("CARGO_BIN_EXE_harness"));
        Self::of_ours(name, harness, "\"/harness\", \"member\", \"--data-dir\", \"/data\"")
    }

    /// `node`, which takes the variables of ZooKeeper's image; none, which is said, where it was not built
    /// together with the harness.
    pub(crate) fn of_node(name: &'static str) -> Option<Self> {
        let node = Path::new(env!("CARGO_BIN_EXE_harness")).with_file_name("node");
        if !node.exists() {
            eprintln!("skipped: {} is not built", node.display());
            return None;
        }
        Self::of_ours(name, &node, "\"/node\", \"--data-dir\", \"/data\"")
    }

    /// One of our executables, which need nothing beside them; none where no engine answers.
    fn of_ours(name: &'static str, executable: &Path, entry: &str) -> Option<Self> {
        if !an_engine_answers() {
            return None;
        }
        let (folder, file) = (executable.parent()?, executable.file_name()?);
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(folder).arg("-c").arg(file);
        Some(Self::imported(name, &mut tar, &format!("ENTRYPOINT [{entry}]")))
    }

    /// An image of what this command writes as a tar file, with a change.
    fn imported(name: &'static str, tar: &mut Command, change: &str) -> Self {
        let mut tar = tar.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("tar");
        let import = ["import", "--change", change, "-", name];
        let imported = Command::new("docker").args(import).stdin(tar.stdout.take().expect("a pipe")).output();
        let imported = imported.expect("docker");
        assert!(imported.status.success() && tar.wait().expect("it ends").success(), "{imported:?}");
        Self(name)
    }
}

/// Writes what packages have installed as a tar file. /bin, /lib and so on lead into /usr, so that a file has
/// two names there. Without manuals and the like.
const OF_PACKAGES: &str = r#"
recursive="--recurse --installed --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces"
all=$(apt-cache depends $recursive --no-enhances "$@" dash coreutils libc-bin | grep '^[a-z0-9]' | sort -u)
{
  dpkg -L $all
  find /etc/alternatives
  printf '/%s\n' bin sbin lib lib64 tmp etc/passwd etc/group etc/ld.so.cache
} | grep '^/.' | grep -vE '^/\.$|:$|^/usr/share/(doc|man|locale|info|lintian)/' |
  sed -E 's,^/(bin|sbin|lib|lib64)/,/usr/\1/,' | sort -u |
  tar -c --no-recursion --ignore-failed-read -T -
"#;

fn an_engine_answers() -> bool {
    let engine = Command::new("docker").args(["version", "--format", "x"]).output();
    let answers = engine.is_ok_and(|engine| engine.status.success());
    if !answers {
        eprintln!("skipped: no Docker engine answers, or there is no docker to ask it");
    }
    answers
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().expect("a folder")).expect("made");
    std::fs::copy(from, to).expect("copied");
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rmi", "--force", self.0]).output();
    }
}
