//! Names of nemeses, as they are typed and as a run folder has them: those of the catalogue, and those of the
//! user's own that the system's file describes.

use harness_core::fault::Nemesis;
use harness_core::schedule::Schedule;

use crate::text::suggest;

/// Reads a list as typed: `kill-one,pause-leader`, or `none`. `own` are those of the system's file.
pub fn parse_list(text: &str, own: &[Nemesis]) -> Result<Vec<Nemesis>, String> {
    let names: Vec<&str> = apart(text).into_iter().map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Err("--nemesis is empty: write `none` for a run without faults".to_owned());
    }
    if names == [Nemesis::NONE] {
        return Ok(Vec::new());
    }
    let mut list = Vec::new();
    for name in names {
        if name == Nemesis::NONE {
            return Err("`none` stands alone: leave it out of a list of nemeses".to_owned());
        }
        let nemesis = named(name, own)?;
        if list.contains(&nemesis) {
            return Err(format!("`{name}` stands twice in --nemesis; they take turns evenly anyway"));
        }
        list.push(nemesis);
    }
    Ok(list)
}

/// A schedule whose kinds are names, with the nemeses that they mean.
///
/// # Errors
/// The name that nobody knows.
pub fn known(schedule: runs::schedule::Schedule, own: &[Nemesis]) -> Result<Schedule, String> {
    schedule.try_map(|name| named(&name, own))
}

/// The names of a list: commas between parentheses belong to a name.
fn apart(text: &str) -> Vec<&str> {
    let (mut names, mut depth, mut from) = (Vec::new(), 0_u32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                names.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    names.push(&text[from..]);
    names
}

/// The nemesis that is written so, with its parameters: `slow-one(latency=200ms)`.
fn named(written: &str, own: &[Nemesis]) -> Result<Nemesis, String> {
    let (name, parameters) = match written.split_once('(') {
        None => (written, None),
        Some((name, rest)) => {
            let Some(inside) = rest.strip_suffix(')') else {
                return Err(format!("`{written}` has no `)` at its end: write NAME(PARAMETER=VALUE,...)"));
            };
            (name.trim_end(), Some(inside))
        }
    };
    let of_the_file = || own.iter().copied().find(|nemesis| nemesis.name() == name);
    let nemesis = Nemesis::from_name(name).or_else(of_the_file).ok_or_else(|| unknown(name, own))?;
    match parameters {
        None => Ok(nemesis),
        Some(parameters) => nemesis.with(parameters).map_err(|why| format!("--nemesis {name}: {why}")),
    }
}

fn unknown(name: &str, own: &[Nemesis]) -> String {
    let own: Vec<&str> = own.iter().map(|nemesis| nemesis.name()).collect();
    let advice = match own.as_slice() {
        [] => "`harness list nemeses` says what each does:".to_owned(),
        own => format!(
            "the system's file describes {}; `harness list nemeses` says what each of the others does:",
            own.join(", ")
        ),
    };
    suggest::unknown("nemesis", name, &[Nemesis::names(), own].concat(), &advice)
}

#[cfg(test)]
mod tests {
    use harness_core::fault::own::{Own, Whom};

    use super::*;

    #[test]
    fn a_list_is_read_in_its_order_and_none_is_the_empty_one() {
        assert_eq!(parse_list("none", &[]), Ok(Vec::new()));
        assert_eq!(
            parse_list("kill-one, pause-leader", &[]),
            Ok(vec![Nemesis::KILL_ONE, Nemesis::PAUSE_LEADER])
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_advice() {
        let error = parse_list("partition-laeder", &[]).expect_err("a slip");
        assert!(error.contains("did you mean `partition-leader`?"), "{error}");
        assert!(parse_list("none,kill-one", &[]).expect_err("none alone").contains("stands alone"));
        assert!(parse_list("kill-one,kill-one", &[]).expect_err("twice").contains("twice"));
        assert!(parse_list(",", &[]).expect_err("empty").contains("empty"));
        assert!(parse_list("kill-one(x=1", &[]).expect_err("open").contains("has no `)`"));
        let error = parse_list("kill-one(x=1,y=2),kill-all", &[]).expect_err("takes none");
        assert_eq!(
            error,
            "--nemesis kill-one: there is no parameter `x`; it takes no parameters; leave out the parentheses"
        );
    }

    #[test]
    fn a_nemesis_of_the_systems_file_is_known_beside_the_others_and_suggested() {
        let own = [Own::new("compact", String::new(), Whom::One, false).into()];
        assert_eq!(parse_list("kill-one,compact", &own), Ok(vec![Nemesis::KILL_ONE, own[0]]));
        let error = parse_list("compcat", &own).expect_err("a slip");
        assert!(error.contains("did you mean `compact`?") && error.contains("describes compact;"), "{error}");
        assert!(parse_list("compact", &[]).expect_err("no file").contains("there is no nemesis"));
        let schedule = parse_list("compact", &own).map(|nemeses| runs::schedule::Schedule {
            nemeses: nemeses.iter().map(|nemesis| nemesis.name().to_owned()).collect(),
            seed: 1,
            interval_ms: 1,
            hold_ms: 1,
            overlap: false,
            faults: Vec::new(),
        });
        let schedule = schedule.expect("a schedule");
        assert_eq!(known(schedule.clone(), &own).expect("known").nemeses, own);
        assert!(known(schedule, &[]).expect_err("no file").contains("compact"));
    }

    #[test]
    fn a_name_is_the_same_on_the_command_line_and_in_files() {
        for nemesis in Nemesis::ALL.iter().copied() {
            let json = serde_json::to_string(&nemesis).expect("a name");
            assert_eq!(json, format!("\"{}\"", nemesis.name()));
        }
    }
}
