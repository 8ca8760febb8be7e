//! `nightly.toml` as it is written, and what is refused in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use runs::{size, span};
use serde::Deserialize;
use toml::Value;

use super::{Case, Known, Retention, Settings, Suite, matrix};
use crate::paired::MIN_PAIRS;
use crate::threshold::Threshold;

/// The longest id of a case: with the number of its run it is the name of a run.
const MAX_ID: usize = 64;
/// More cases than any night has: a matrix has slipped.
const MOST_CASES: usize = 2000;
/// More runs of one case than any night has.
const MOST_REPEATS: u32 = 1000;
/// Flags that the night itself decides.
const OURS: [&str; 5] = ["seed", "store", "name", "format", "help"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    night: NightTable,
    #[serde(default)]
    profile: BTreeMap<String, NightTable>,
    #[serde(default)]
    case: Vec<CaseTable>,
    #[serde(default)]
    known: Vec<KnownTable>,
}

/// `[night]`, or a profile that changes some of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NightTable {
    budget: Option<String>,
    store: Option<PathBuf>,
    retries: Option<u32>,
    replays: Option<u32>,
    shrink: Option<String>,
    mutants: Option<u32>,
    worlds: Option<bool>,
    jobs: Option<u32>,
    pairs: Option<u32>,
    on_finding: Option<Vec<String>>,
    keep: Option<RetentionTable>,
    /// Names of cases: only these are run.
    cases: Option<Vec<String>>,
    /// Runs of each case.
    repeat: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RetentionTable {
    nights: Option<u32>,
    size: Option<String>,
    compress: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownTable {
    finding: String,
    link: String,
    until: Option<String>,
}

#[derive(Debug, Deserialize)]
struct CaseTable {
    name: String,
    owner: Option<String>,
    repeat: Option<u32>,
    weight: Option<u32>,
    #[serde(default)]
    matrix: BTreeMap<String, Vec<Value>>,
    #[serde(default)]
    exclude: Vec<BTreeMap<String, Value>>,
    #[serde(default)]
    thresholds: BTreeMap<String, Said>,
    #[serde(flatten)]
    flags: BTreeMap<String, Value>,
}

/// One expression or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Said {
    One(String),
    Several(Vec<String>),
}

/// Reads the file, as one of its profiles changes it.
///
/// # Errors
///
/// What is wrong, where, and what to write instead.
pub fn read(text: &str, profile: Option<&str>) -> Result<Suite, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    let changes = match profile {
        None => NightTable::default(),
        Some(name) => file.profile.get(name).cloned().ok_or_else(|| no_profile(name, &file.profile))?,
    };
    let settings = settings(&[&file.night, &changes])?;
    let wanted = changes.cases.as_ref().or(file.night.cases.as_ref());
    if let Some(missing) =
        wanted.and_then(|names| names.iter().find(|name| file.case.iter().all(|case| case.name != **name)))
    {
        return Err(format!("cases: there is no [[case]] with name = \"{missing}\""));
    }
    let mut cases = Vec::new();
    for table in &file.case {
        if wanted.is_none_or(|names| names.contains(&table.name)) {
            let repeat = changes.repeat.or(file.night.repeat);
            cases.extend(expanded(table, repeat).map_err(|why| format!("[[case]] {}: {why}", table.name))?);
        }
        if cases.len() > MOST_CASES {
            return Err(format!("there are more than {MOST_CASES} cases: exclude some of the matrix"));
        }
    }
    if cases.is_empty() {
        return Err(
            "there is no [[case]]: a night without one shows nothing; `harness init night` writes a \
                    file to begin from"
                .to_owned(),
        );
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = cases.iter().find(|case| !seen.insert(&case.id)) {
        return Err(format!("two cases are called {}: give one of them another name", twice.id));
    }
    let known = file.known.into_iter().map(known).collect::<Result<_, _>>()?;
    Ok(Suite { settings, cases, known })
}

fn no_profile(name: &str, profiles: &BTreeMap<String, NightTable>) -> String {
    let names: Vec<&str> = profiles.keys().map(String::as_str).collect();
    if names.is_empty() {
        return format!("there is no profile `{name}`: the file has none; write [profile.{name}]");
    }
    format!("there is no profile `{name}`; the file has {}", names.join(", "))
}

/// Later tables win.
fn settings(tables: &[&NightTable]) -> Result<Settings, String> {
    let mut all = Settings::default();
    for table in tables {
        if let Some(budget) = &table.budget {
            all.budget = Some(time("budget", budget)?);
        }
        all.store = table.store.clone().or(all.store);
        all.retries = within("retries", table.retries, 0..=1)?.unwrap_or(all.retries);
        all.replays = within("replays", table.replays, 0..=100)?.unwrap_or(all.replays);
        if let Some(shrink) = &table.shrink {
            all.shrink = if shrink == "0" { Duration::ZERO } else { time("shrink", shrink)? };
        }
        all.mutants = within("mutants", table.mutants, 0..=100)?.unwrap_or(all.mutants);
        all.worlds = table.worlds.unwrap_or(all.worlds);
        all.jobs = within("jobs", table.jobs, 1..=64)?.unwrap_or(all.jobs);
        all.pairs = within("pairs", table.pairs, 0..=100)?.unwrap_or(all.pairs);
        let least = u32::try_from(MIN_PAIRS).unwrap_or(u32::MAX);
        if (1..least).contains(&all.pairs) {
            return Err(format!(
                "pairs = {}: fewer than {least} tell two builds apart too seldom; write more, or 0 for no \
                 comparison",
                all.pairs
            ));
        }
        all.on_finding = table.on_finding.clone().unwrap_or(all.on_finding);
        if let Some(keep) = &table.keep {
            all.retention = retention(keep, all.retention)?;
        }
    }
    Ok(all)
}

fn retention(table: &RetentionTable, before: Retention) -> Result<Retention, String> {
    let bytes = match &table.size {
        Some(text) => size::parse(text).map_err(|why| format!("keep.size: {why}"))?,
        None => before.bytes,
    };
    let nights = table.nights.unwrap_or(before.nights);
    if nights == 0 {
        return Err("keep.nights = 0: tonight's folders would go before anybody saw them; write 1 at least"
            .to_owned());
    }
    Ok(Retention { nights, bytes, compress: table.compress.unwrap_or(before.compress) })
}

fn time(key: &str, text: &str) -> Result<Duration, String> {
    span::parse(text).map_err(|why| format!("{key}: {why}"))
}

fn within(
    key: &str,
    value: Option<u32>,
    range: std::ops::RangeInclusive<u32>,
) -> Result<Option<u32>, String> {
    match value {
        Some(value) if !range.contains(&value) => {
            Err(format!("{key} = {value}: write a number from {} to {}", range.start(), range.end()))
        }
        other => Ok(other),
    }
}

fn known(table: KnownTable) -> Result<Known, String> {
    let KnownTable { finding, link, until } = table;
    // The form as well: a day is compared as a text.
    let is_day = |text: &String| text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok();
    if !["https://", "http://"].iter().any(|scheme| link.starts_with(scheme)) {
        return Err(format!("[[known]] {finding}: link = \"{link}\" leads nowhere: write \"https://...\""));
    }
    if let Some(wrong) = until.as_ref().filter(|text| !is_day(text)) {
        return Err(format!("[[known]] {finding}: until = \"{wrong}\" is no day: write \"2026-12-31\""));
    }
    Ok(Known { finding, link, until })
}

fn expanded(table: &CaseTable, repeat: Option<u32>) -> Result<Vec<Case>, String> {
    is_name(&table.name)?;
    let mut thresholds = Vec::new();
    for (metric, said) in &table.thresholds {
        let several = match said {
            Said::One(one) => std::slice::from_ref(one),
            Said::Several(several) => several.as_slice(),
        };
        for expression in several {
            thresholds.push(Threshold::parse(metric, expression)?);
        }
    }
    let repeat = within("repeat", repeat.or(table.repeat), 1..=MOST_REPEATS)?.unwrap_or(1);
    let weight = within("weight", table.weight, 1..=1000)?.unwrap_or(1);
    let own = matrix::flags(&table.flags)?;
    let mut cases = Vec::new();
    for axes in matrix::product(&table.matrix, &table.exclude)? {
        let mut flags = own.clone();
        for (flag, value) in &axes {
            if own.iter().any(|(other, _)| other == flag) {
                return Err(format!("{flag} stands in the case and in its matrix: leave one of them out"));
            }
            flags.push((flag.clone(), value.clone()));
        }
        if let Some((ours, _)) = flags.iter().find(|(flag, _)| OURS.contains(&flag.as_str())) {
            return Err(format!("{ours} is the night's to decide: leave it out"));
        }
        flags.sort_by_key(|(flag, _)| matrix::rank(flag));
        cases.push(Case {
            id: id(&table.name, &axes)?,
            owner: table.owner.clone(),
            flags,
            repeat,
            weight,
            thresholds: thresholds.clone(),
        });
    }
    if cases.is_empty() {
        return Err("its matrix is empty, or all of it is excluded".to_owned());
    }
    Ok(cases)
}

fn is_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name == crate::fold::WORLDS {
        return Err("the name stands for worlds of the simulator: write another".to_owned());
    }
    if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(fits) {
        return Err("a name becomes a folder: write letters, digits, and any of - _ .".to_owned());
    }
    Ok(())
}

/// The name and the values of the matrix, as a folder may be called.
fn id(name: &str, axes: &[(String, String)]) -> Result<String, String> {
    let mut id = name.to_owned();
    for (flag, value) in axes {
        let word = if value.is_empty() { flag } else { value };
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '+') { c } else { '-' };
        id.push('-');
        id.extend(word.replace(',', "+").chars().map(plain));
    }
    if id.len() > MAX_ID {
        return Err(format!("{id} is longer than {MAX_ID} letters: shorten the name, or split the case"));
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
        [night]
        budget = "6h"
        keep = { nights = 14, size = "5GB", compress = false }

        [profile.pull-request]
        budget = "10m"
        cases = ["plain"]
        repeat = 1

        [[case]]
        name = "leader"
        owner = "@coordination"
        nemesis = ["kill-leader", "partition-leader"]
        time_limit = "60s"
        repeat = 4
        weight = 2
        matrix = { system = ["node", "zookeeper"], nodes = [3, 5], cluster = ["process", "sim"] }
        exclude = [{ system = "zookeeper", cluster = "sim" }]
        [case.thresholds]
        "elections{kill-leader}" = ["p50 < 100ms", "max < 1s"]
        "outage" = "max < 500ms"

        [[case]]
        name = "plain"
        overlap = false
    "#;

    #[test]
    fn a_list_in_a_matrix_gives_a_flag_once_for_each_word_where_it_is_given_so() {
        let cases =
            |case: &str| read(&format!("[[case]]\nname = \"a\"\n{case}"), None).map(|suite| suite.cases);
        let of = |case: &str| {
            let words = |case: &Case| case.words().join(" ");
            cases(case).expect(case).iter().map(words).collect::<Vec<_>>()
        };
        let matrix = "matrix = { set = [[\"tick=1s\", \"size=2\"], \"tick=1s\"] }\n";
        assert_eq!(of(matrix), ["--set tick=1s --set size=2", "--set tick=1s"]);
        let without = |rule: &str| of(&format!("{matrix}exclude = [{{ set = {rule} }}]"));
        assert_eq!(without("\"tick=1s\""), ["--set tick=1s --set size=2"], "the whole value is meant");
        assert_eq!(without("[\"tick=1s\", \"size=2\"]"), ["--set tick=1s"]);
        let matrix = "matrix = { overlap = [true, false], nemesis = [[\"kill-one\", \"pause-one\"]] }\n";
        assert_eq!(of(matrix), ["--nemesis kill-one,pause-one --overlap", "--nemesis kill-one,pause-one"]);
        let calm = format!("{matrix}exclude = [{{ overlap = false }}]");
        assert_eq!(of(&calm), ["--nemesis kill-one,pause-one --overlap"]);
        for case in ["set = [[\"a=1\", \"b=2\"]]", "matrix = { set = [[[\"a=1\", \"b=2\"]]] }"] {
            assert!(cases(case).expect_err(case).contains("set: write a text"), "{case}");
        }
    }

    #[test]
    fn a_matrix_makes_a_case_of_each_combination_that_is_not_excluded() {
        let suite = read(WHOLE, None).expect("a suite");
        let ids: Vec<&str> = suite.cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "leader-node-3-process",
                "leader-node-3-sim",
                "leader-node-5-process",
                "leader-node-5-sim",
                "leader-zookeeper-3-process",
                "leader-zookeeper-5-process",
                "plain"
            ]
        );
        assert_eq!(
            suite.cases[0].words().join(" "),
            "--system node --nodes 3 --cluster process --nemesis kill-leader,partition-leader \
             --time-limit 60s"
        );
        assert_eq!((suite.cases[0].repeat, suite.cases[0].weight), (4, 2));
        assert_eq!(suite.cases[0].thresholds.len(), 3);
        assert_eq!(suite.settings.budget, Some(Duration::from_secs(6 * 3600)));
        assert_eq!(suite.settings.retention, Retention { nights: 14, bytes: 5_000_000_000, compress: false });
        assert!(suite.cases[6].words().is_empty(), "a flag that is false is no flag");
    }

    #[test]
    fn a_profile_changes_what_it_names_and_leaves_the_rest() {
        let suite = read(WHOLE, Some("pull-request")).expect("a suite");
        assert_eq!(suite.cases.len(), 1);
        assert_eq!(suite.settings.budget, Some(Duration::from_secs(600)));
        assert_eq!(suite.settings.retention.nights, 14);
    }

    #[test]
    fn what_is_wrong_is_refused_with_what_to_write_instead() {
        for (text, advice) in [
            ("", "there is no [[case]]"),
            ("[nigth]\n", "unknown field `nigth`"),
            ("[night]\nbudget = \"6\"\n[[case]]\nname = \"a\"", "write `6s`"),
            ("[night]\nretries = 9\n[[case]]\nname = \"a\"", "from 0 to 1"),
            ("[night]\npairs = 3\n[[case]]\nname = \"a\"", "write more, or 0"),
            ("[night]\nkeep = { nights = 0 }\n[[case]]\nname = \"a\"", "write 1 at least"),
            ("[[case]]\nname = \"../a\"", "becomes a folder"),
            ("[[case]]\nname = \"a\"\nseed = 4", "the night's to decide"),
            ("[[case]]\nname = \"a\"\n[[case]]\nname = \"a\"", "two cases are called a"),
            ("[[case]]\nname = \"a\"\nnodes = 3\nmatrix = { nodes = [3, 5] }", "leave one of them out"),
            ("[[case]]\nname = \"a\"\nmatrix = { nodes = [] }", "matrix is empty"),
            ("[[case]]\nname = \"a\"\nexclude = [{ nodes = 3 }]", "excluded by `nodes`"),
            ("[[case]]\nname = \"a\"\n\"store=/x\" = true", "is no flag"),
            ("[[case]]\nname = \"a\"\nnodes = { x = 1 }", "text, number, true, false or list"),
            ("[[case]]\nname = \"a\"\nthresholds = { outage = \"max\" }", "outage"),
            (
                "[[known]]\nfinding = \"a\"\nlink = \"https://b\"\nuntil = \"soon\"\n[[case]]\nname = \"a\"",
                "no day",
            ),
            (
                "[[known]]\nfinding = \"a\"\nlink = \"https://b\"\nuntil = \"2027-13-31\"\n\
                 [[case]]\nname = \"a\"",
                "no day",
            ),
            (
                "[[known]]\nfinding = \"a\"\nlink = \"javascript:alert(1)\"\n[[case]]\nname = \"a\"",
                "leads nowhere",
            ),
        ] {
            let why = read(text, None).expect_err(text);
            assert!(why.contains(advice), "{text}: {why}");
        }
        assert!(read(WHOLE, Some("weekly")).expect_err("a profile").contains("pull-request"));
    }
}
