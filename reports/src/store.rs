//! A store of runs as a page: one line for each run, the newest first.
//!
//! The page is drawn for whoever looks at a store in a browser, so its links lead to the run folders below
//! it. What a line says comes from the files of its run, and a run that nobody judged has no verdict here
//! either.

use jiff::Timestamp;
use runs::findings;
use runs::numbers::{count, plural};
use runs::results::{Results, RunInfo};
use runs::verdicts::glyph;

use crate::html::markup::Markup;
use crate::html::{STYLE, document};

/// What every page's script adds, and the reader's zone.
const SCRIPT: &str = concat!(include_str!("html/common.js"), include_str!("nights/page/night.js"));

/// A run of the store.
#[derive(Debug)]
pub struct Row {
    /// Where its folder is, from the store on, as a link has it: `name/20260314T021007Z/`.
    pub link: String,
    /// What was meant; none where that can't be read.
    pub run: Option<RunInfo>,
    /// Whether somebody judged it.
    pub is_judged: bool,
    /// What came out; none where that can't be read.
    pub results: Option<Results>,
}

/// A store of runs.
#[derive(Debug, Default)]
pub struct Store {
    /// Where it is, as somebody named it.
    pub path: String,
    /// The runs that are shown, the newest first.
    pub rows: Vec<Row>,
    /// How many older ones there are.
    pub older: usize,
    /// Stores of nights in it, as links.
    pub nights: Vec<String>,
}

/// Something in a folder.
#[derive(Debug)]
pub struct Entry {
    /// Its name; with a slash behind it if it is a folder.
    pub name: String,
    /// The same as a link has it.
    pub link: String,
    /// How long it is, in bytes; none of a folder.
    pub bytes: Option<u64>,
}

/// A folder's page: what is in it.
#[must_use]
pub fn folder(title: &str, entries: &[Entry]) -> String {
    document::write(title, STYLE, SCRIPT, |m| {
        m.leaf("h1", &[], title);
        m.el("p", &[], |m| m.leaf("a", &[("href", "../")], "up"));
        m.el("table", &[], |m| {
            m.el("tbody", &[], |m| {
                for Entry { name, link, bytes } in entries {
                    m.el("tr", &[], |m| {
                        m.el("td", &[], |m| m.leaf("a", &[("href", &format!("./{link}"))], name));
                        let bytes = bytes.map(|bytes| plural(bytes, "byte")).unwrap_or_default();
                        m.leaf("td", &[("class", "n")], &bytes);
                    });
                }
            });
        });
    })
}

/// The store as an HTML document.
#[must_use]
pub fn page(store: &Store) -> String {
    let title = format!("Runs in {}", store.path);
    document::write(&title, STYLE, SCRIPT, |m| {
        m.leaf("h1", &[], &title);
        for link in &store.nights {
            m.el("p", &[], |m| {
                m.leaf("a", &[("href", link)], &format!("Nights in {}", link.trim_end_matches('/')));
            });
        }
        if store.rows.is_empty() {
            m.leaf("p", &[], "There is no run yet.");
            return;
        }
        m.el("table", &[("class", "cards")], |m| {
            head(m);
            m.el("tbody", &[], |m| store.rows.iter().for_each(|row| write(m, row)));
        });
        if store.older > 0 {
            let older = plural(u64::try_from(store.older).unwrap_or(u64::MAX), "older run");
            m.leaf("p", &[], &format!("{older} not shown."));
        }
    })
}

fn head(m: &mut Markup) {
    let columns =
        [("verdict", ""), ("run", ""), ("start", ""), ("system", ""), ("faults", "n"), ("operations", "n")];
    m.el("thead", &[], |m| {
        m.el("tr", &[], |m| {
            for (title, class) in columns {
                m.leaf("th", &[("class", class), ("data-sort", "yes"), ("scope", "col")], title);
            }
        });
    });
}

fn write(m: &mut Markup, Row { link, run, is_judged, results }: &Row) {
    let told = results.as_ref().map(findings::headline);
    let told = told.map(|(word, verdict)| format!("{} {word}", glyph(verdict)));
    let name = run.as_ref().map_or_else(|| link.trim_end_matches('/').to_owned(), |run| run.name.clone());
    m.el("tr", &[], |m| {
        let untold = if *is_judged { "not readable" } else { "not judged" };
        m.leaf("td", &[], told.as_deref().unwrap_or(untold));
        m.el("td", &[], |m| m.leaf("a", &[("href", link)], &name));
        m.el("td", &[], |m| start(m, run.as_ref()));
        let system = run.as_ref().map(|run| {
            let members = plural(u64::from(run.nodes) + u64::from(run.observers), "member");
            format!("{}, {members}, {}", run.system.name, run.cluster.name())
        });
        m.leaf("td", &[], system.as_deref().unwrap_or_default());
        let faults = results
            .as_ref()
            .map(|results| format!("{} of {}", results.faults.verified, results.faults.planned));
        m.leaf("td", &[("class", "n")], faults.as_deref().unwrap_or_default());
        let operations = results.as_ref().map(|results| count(results.operations.total.invoked));
        m.leaf("td", &[("class", "n")], operations.as_deref().unwrap_or_default());
    });
    m.line();
}

/// When it began, in UTC; the script adds the reader's zone.
fn start(m: &mut Markup, run: Option<&RunInfo>) {
    let Some(run) = run else { return };
    match run.started_utc.parse::<Timestamp>() {
        Ok(at) => {
            let text = at.strftime("%Y-%m-%d %H:%M UTC").to_string();
            m.leaf("time", &[("datetime", &at.to_string())], &text);
        }
        Err(_) => m.text(&run.started_utc),
    }
}

#[cfg(test)]
mod tests {
    use checker::verdict::Verdict;

    use super::*;

    #[test]
    fn a_run_says_what_is_known_of_it_and_a_name_from_outside_is_text() {
        let run = RunInfo {
            name: "<script>alert(1)</script>".to_owned(),
            started_utc: "2026-03-14T02:10:07Z".to_owned(),
            ..RunInfo::default()
        };
        let results = Results::new(Verdict::Invalid, &run);
        let rows = vec![
            Row {
                link: "a/20260314T021007Z/".to_owned(),
                run: Some(run),
                is_judged: true,
                results: Some(results),
            },
            Row { link: "b/20260313T021007Z/".to_owned(), run: None, is_judged: false, results: None },
            Row { link: "c/20260313T021007Z/".to_owned(), run: None, is_judged: true, results: None },
        ];
        let store = Store { path: "runs".to_owned(), rows, older: 3, nights: vec!["nights/".to_owned()] };
        let page = page(&store);
        assert!(page.contains("&lt;script&gt;alert(1)") && !page.contains("<script>alert"));
        assert!(page.contains("violation") && page.contains("not judged") && page.contains("not readable"));
        assert!(page.contains("2026-03-14 02:10 UTC") && page.contains("3 older runs not shown"));
        assert!(page.contains("href=\"a/20260314T021007Z/\"") && page.contains("Nights in nights"));
    }

    #[test]
    fn an_empty_store_says_so() {
        assert!(page(&Store { path: "runs".to_owned(), ..Store::default() }).contains("no run yet"));
    }
}
