//! Outages, of a system that tells nobody who leads: what clients saw of a failover is all that is known.

use super::Input;
use super::markup::Markup;
use runs::findings;
use runs::numbers::{len, moment, whole_ms};
use runs::results::Outage;

/// Outages with a row, the longest; results.json has them all.
const TOP: usize = 10;

const COLUMNS: [&str; 3] = ["length, ms", "from, s", "to, s"];

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    m.heading("elections", "Outages", &findings::outages(&input.results.outages));
    let mut outages: Vec<&Outage> = input.results.outages.iter().collect();
    if !outages.is_empty() {
        outages.sort_by(|a, b| b.ms().total_cmp(&a.ms()));
        outages.truncate(TOP);
        m.el("table", &[("class", "cards outages")], |m| {
            m.el("thead", &[], |m| {
                m.el("tr", &[], |m| {
                    for name in COLUMNS {
                        m.leaf("th", &[("class", "n"), ("data-sort", "yes")], name);
                    }
                    m.leaf("th", &[("data-sort", "yes")], "fault");
                });
            });
            m.el("tbody", &[], |m| outages.iter().for_each(|outage| row(m, input, outage)));
        });
    }
    let all = input.results.outages.len();
    let more = if all > TOP { format!(" The {TOP} longest of {}.", len(all)) } else { String::new() };
    let text = format!(
        "An outage is a time in which a write was due and none was acknowledged. Nobody asked who leads, \
         because the system's file has no question for it (leader). With one, elections are measured.{more}"
    );
    m.leaf("p", &[("class", "caption")], &text);
    m.line();
}

fn row(m: &mut Markup, input: &Input<'_>, outage: &Outage) {
    let to = if outage.open { "not over".to_owned() } else { moment(outage.to_ns) };
    let numbers = [whole_ms(outage.ms()), moment(outage.from_ns), to];
    m.el("tr", &[], |m| {
        for (name, value) in COLUMNS.iter().zip(&numbers) {
            m.leaf("td", &[("class", "n"), ("data-l", name)], value);
        }
        m.el("td", &[("data-l", "fault")], |m| match &outage.fault {
            Some(id) if input.has_row(id) => m.leaf("a", &[("href", &format!("#{id}"))], id),
            Some(id) => m.text(id),
            None => m.text("none"),
        });
    });
    m.line();
}
