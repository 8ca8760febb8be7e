//! Settings that only one system has, by their names: `--set NAME=VALUE`.

use std::collections::BTreeMap;

/// A setting that a system takes.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// What its value is, in capitals: `TIME`.
    pub value: &'static str,
    /// What it decides.
    pub about: &'static str,
    /// Its value when nobody says; none where the system looks for one.
    pub usual: Option<&'static str>,
    /// Whether it decides what code runs, so that it is never taken from a run's folder.
    pub names_code: bool,
    /// A value as it is spelled in the command that repeats a run, or what to write instead.
    pub read: fn(&str) -> Result<String, String>,
}

/// What was set, by name. What is as usual is not in it.
pub type Settings = BTreeMap<&'static str, String>;

/// What `NAME=VALUE` sets, each, of those that `whose` takes; the last one of a name counts. `otherwise` is
/// what to do about a name that it does not take, or empty.
///
/// # Errors
/// What to write instead of a word that sets nothing of this system.
pub fn read(
    taken: &[Setting],
    whose: &str,
    words: &[String],
    otherwise: &dyn Fn(&str) -> String,
) -> Result<Settings, String> {
    let mut settings = Settings::new();
    for word in words {
        let (name, value) = parted(word)?;
        let Some(setting) = taken.iter().find(|setting| setting.name == name) else {
            return Err(format!("--set {word}: {whose} has no setting `{name}`{}", otherwise(name)));
        };
        let value = (setting.read)(value).map_err(|why| format!("--set {word}: {why}"))?;
        settings.remove(name);
        if setting.usual != Some(value.as_str()) {
            settings.insert(setting.name, value);
        }
    }
    Ok(settings)
}

/// Name and value of a word.
///
/// # Errors
/// What to write instead.
pub fn parted(word: &str) -> Result<(&str, &str), String> {
    match word.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name, value)),
        _ => Err(format!("--set {word}: write NAME=VALUE; `harness list settings` has the names")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Setting = Setting {
        name: "size",
        value: "N",
        about: "how large it is",
        usual: Some("1"),
        names_code: false,
        read: |text| text.parse::<u8>().map(|size| size.to_string()).map_err(|error| error.to_string()),
    };

    fn set(words: &[&str]) -> Result<Settings, String> {
        let words: Vec<String> = words.iter().copied().map(str::to_owned).collect();
        let otherwise = |name: &str| if name == "tick" { "; take a clock".to_owned() } else { String::new() };
        read(&[SIZE], "a box", &words, &otherwise)
    }

    #[test]
    fn the_last_one_of_a_name_counts_and_what_is_as_usual_is_not_set() {
        assert_eq!(set(&["size=3", "size=04"]), Ok(Settings::from([("size", "4".to_owned())])));
        assert_eq!(set(&["size=3", "size=1"]), Ok(Settings::new()));
    }

    #[test]
    fn what_sets_nothing_is_refused_with_advice() {
        for (word, advice) in [
            ("size", "write NAME=VALUE"),
            ("=3", "write NAME=VALUE"),
            ("sizes=3", "a box has no setting `sizes`"),
            ("tick=3", "a box has no setting `tick`; take a clock"),
            ("size=300", "--set size=300: number too large"),
        ] {
            let error = set(&[word]).expect_err(word);
            assert!(error.contains(advice), "{word}: {error}");
        }
    }
}
