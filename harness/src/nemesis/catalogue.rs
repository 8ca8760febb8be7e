//! Lists of nemeses, as they are typed.

use harness_core::fault::Nemesis;

use crate::text::suggest;

/// Reads a list as typed: `kill-one,pause-leader`, or `none`.
pub fn parse_list(text: &str) -> Result<Vec<Nemesis>, String> {
    let names: Vec<&str> = text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
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
        let nemesis = Nemesis::from_name(name).ok_or_else(|| unknown(name))?;
        if list.contains(&nemesis) {
            return Err(format!("`{name}` stands twice in --nemesis; they take turns evenly anyway"));
        }
        list.push(nemesis);
    }
    Ok(list)
}

fn unknown(name: &str) -> String {
    suggest::unknown("nemesis", name, &Nemesis::names(), "`harness list nemeses` says what each does:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_its_order_and_none_is_the_empty_one() {
        assert_eq!(parse_list("none"), Ok(Vec::new()));
        assert_eq!(parse_list("kill-one, pause-leader"), Ok(vec![Nemesis::KILL_ONE, Nemesis::PAUSE_LEADER]));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_advice() {
        let error = parse_list("partition-laeder").expect_err("a slip");
        assert!(error.contains("did you mean `partition-leader`?"), "{error}");
        assert!(parse_list("none,kill-one").expect_err("none alone").contains("stands alone"));
        assert!(parse_list("kill-one,kill-one").expect_err("twice").contains("twice"));
        assert!(parse_list(",").expect_err("empty").contains("empty"));
    }

    #[test]
    fn a_name_is_the_same_on_the_command_line_and_in_files() {
        for nemesis in Nemesis::ALL.iter().copied() {
            let json = serde_json::to_string(&nemesis).expect("a name");
            assert_eq!(json, format!("\"{}\"", nemesis.name()));
        }
    }
}
