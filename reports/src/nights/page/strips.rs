//! Numbers over nights: a strip for each series, the one that moved most first.
//!
//! A strip has a dot for each night, the quartiles of the nights before as a band, and a line along each
//! level where a change was seen. It says since which night the new level holds, and between which builds it
//! began. Where tonight stands out, the alarm and what a comparison made of it stand above all strips.

use nights::fence::{BASE_NIGHTS, Direction};
use nights::index::Alarm;
use nights::quantiles::{median, quantile, sorted};
use nights::trends::{Change, Point, Series};
use plotters::prelude::*;
use runs::findings::{Sentence, percent, sentence, sentence_end, shortened};
use runs::numbers::{len, len_f64, plural};

use super::{MOST_TEXT, links, more};
use crate::html::markup::{Markup, css};
use crate::nights::digest::{Digest, compared, day, number, shown};
use crate::svg::{self, Frame, Pen};

/// Strips that stand open.
const MOST_OPEN: usize = 30;
/// Strips that are drawn at most.
const MOST_STRIPS: usize = 120;
/// Nights that a strip shows at most.
const MOST_NIGHTS: usize = 120;
/// Changes of a strip that are told, the latest ones.
const MOST_CHANGES: usize = 3;
/// Alarms that are told.
const MOST_ALARMS: usize = 50;
/// Cells of a strip's drawing across and down.
const CELLS: (u32, u32) = (720, 96);
/// Share of its height that a strip leaves free at both ends.
const MARGIN: f64 = 0.12;

/// What a strip is drawn on.
struct Plot<'a> {
    /// The points within the nights drawn.
    points: &'a [Point],
    /// The first night drawn and how many there are.
    nights: (usize, usize),
    /// The lowest and the highest value, with room.
    values: (f64, f64),
    /// The quartiles of the nights before the last, and the first of these nights.
    band: Option<(usize, f64, f64)>,
}

/// Writes them.
pub(super) fn write(m: &mut Markup, digest: &Digest<'_>) {
    let nights = digest.view.nights.len();
    let is_drawn = |series: &&Series| series.points.iter().any(|point| point.sample.value.is_finite());
    let mut all: Vec<(f64, &Series)> =
        digest.view.series.iter().filter(is_drawn).map(|series| (series.moved(nights), series)).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    m.heading("series", "Numbers over nights", &summary(digest, all.len()));
    alarms(m, digest);
    if all.is_empty() {
        return;
    }
    legend(m);
    let drawn = all.len().min(MOST_STRIPS);
    let (open, folded) = all[..drawn].split_at(drawn.min(MOST_OPEN));
    strips(m, digest, open);
    if !folded.is_empty() {
        m.el("details", &[("class", "part")], |m| {
            let more = plural(number(folded.len()), "more number");
            m.leaf("summary", &[], &format!("{more}, which moved less"));
            strips(m, digest, folded);
        });
    }
    more(m, all.len(), drawn, "number");
}

fn summary(digest: &Digest<'_>, all: usize) -> Sentence {
    if all == 0 {
        return Sentence::strong("None yet").and(": only valid runs give a number, and only on one machine.");
    }
    let alarms = digest.night.alarms.len();
    let confirmed = digest.confirmed().count();
    let stood = match alarms {
        0 => "none stood out tonight".to_owned(),
        n => format!("{} stood out, {} of them confirmed by a comparison of builds", len(n), len(confirmed)),
    };
    Sentence::strong(format!("{} followed, {stood}", plural(number(all), "number"))).and(
        ". A night's number is the median of its valid runs; what moved most from those before is first.",
    )
}

fn alarms(m: &mut Markup, digest: &Digest<'_>) {
    let mut all: Vec<&Alarm> = digest.night.alarms.iter().collect();
    all.sort_by_key(|alarm| !alarm.is_confirmed());
    if all.is_empty() {
        return;
    }
    m.el("ul", &[("class", "alarms")], |m| {
        for alarm in all.iter().take(MOST_ALARMS) {
            m.el("li", &[], |m| {
                let (class, word) = if alarm.is_confirmed() {
                    ("state invalid", "confirmed")
                } else {
                    ("quiet", "not confirmed")
                };
                m.leaf("span", &[("class", class)], word);
                let about = format!(": {}: {} ", alarm.case, sentence_end(&alarm.sentence));
                m.text(&shortened(&about, MOST_TEXT * 2));
                m.leaf("span", &[("class", "quiet")], &sentence(&compared(alarm.comparison.as_ref())));
            });
        }
    });
    more(m, all.len(), MOST_ALARMS, "alarm");
}

fn legend(m: &mut Markup) {
    m.el("div", &[("class", "legend")], |m| {
        let before = format!("middle half of the {BASE_NIGHTS} nights before");
        for (class, text) in [
            ("dot", "a night"),
            ("dot tonight", "tonight"),
            ("usual", before.as_str()),
            ("level", "level, where it has changed"),
        ] {
            m.el("span", &[("class", "key")], |m| {
                m.leaf("i", &[("class", &format!("trend-key {class}"))], "");
                m.text(text);
            });
        }
    });
    m.line();
}

fn strips(m: &mut Markup, digest: &Digest<'_>, all: &[(f64, &Series)]) {
    m.el("div", &[("class", "trends")], |m| {
        for (_, series) in all {
            m.el("div", &[("class", "trend")], |m| strip(m, digest, series));
            m.line();
        }
        let nights = digest.view.nights;
        let first = nights.len().saturating_sub(MOST_NIGHTS);
        m.el("div", &[("class", "trend-axis")], |m| {
            if let [first, .., last] = &nights[first..] {
                m.leaf("span", &[], &day(first));
                m.leaf("span", &[], &day(last));
            }
        });
    });
}

fn strip(m: &mut Markup, digest: &Digest<'_>, series: &Series) {
    let nights = digest.view.nights.len();
    let first = nights.saturating_sub(MOST_NIGHTS);
    let plot = Plot::of(series, (first, nights - first));
    m.el("div", &[("class", "trend-name")], |m| {
        m.leaf("b", &[], &shortened(&series.name, MOST_TEXT));
        m.leaf("span", &[], &shortened(&series.case, MOST_TEXT));
        let better = match series.direction {
            Direction::LowerIsBetter => "lower is better",
            Direction::HigherIsBetter => "higher is better",
        };
        m.leaf("small", &[("class", "quiet")], better);
    });
    m.el("div", &[("class", "trend-plot")], |m| {
        if let Some(plot) = &plot {
            plot.write(m, series);
        }
    });
    m.el("div", &[("class", "trend-now")], |m| tonight(m, digest, series));
    let changes: Vec<&Change> =
        series.changes.iter().rev().filter(|change| change.between.1 >= first).collect();
    if !changes.is_empty() {
        m.el("ul", &[("class", "trend-changes")], |m| {
            for change in changes.iter().take(MOST_CHANGES) {
                m.leaf("li", &[], &since(digest, series, change));
            }
        });
    }
}

/// Tonight's number, with the run that it comes from, and how it compares.
fn tonight(m: &mut Markup, digest: &Digest<'_>, series: &Series) {
    let Some(sample) = series.tonight(digest.view.nights.len()) else {
        m.leaf("span", &[("class", "quiet")], "no number tonight");
        return;
    };
    let text = shown(&series.name, sample.value);
    let runs = digest.night.last_tries(&series.case);
    let measured = runs.iter().find(|attempt| attempt.series.contains_key(&series.name));
    match measured.and_then(|attempt| links::run_page(attempt.folder.as_deref()?)) {
        Some(href) => m.el("b", &[], |m| m.leaf("a", &[("href", &href)], &text)),
        None => m.leaf("b", &[], &text),
    }
    m.leaf("small", &[("class", "quiet")], &format!("of {}", plural(sample.n, "sample")));
    let before: Vec<f64> = series.points.iter().rev().skip(1).map(|point| point.sample.value).collect();
    let Some(usual) = median(&before).filter(|usual| *usual > 0.0 && usual.is_finite()) else { return };
    if !sample.value.is_finite() {
        return;
    }
    let ratio = format!("{:.2} times the median", sample.value / usual);
    let (class, ratio) = match series.alarm {
        Some(_) => ("state invalid", format!("{ratio}, beyond the fence")),
        None => ("quiet", ratio),
    };
    m.leaf("small", &[("class", class)], &ratio);
}

/// Since when a level holds, and what the build was before and after.
fn since(digest: &Digest<'_>, series: &Series, change: &Change) -> String {
    let night = |at: usize| digest.view.nights.get(at);
    let (Some(before), Some(after)) = (night(change.between.0), night(change.between.1)) else {
        return String::new();
    };
    let (old, new) = (&before.begun.build, &after.begun.build);
    let builds = if old == new {
        format!("build {} before and after", shortened(old, MOST_TEXT))
    } else {
        format!("build {}..{}", shortened(old, MOST_TEXT), shortened(new, MOST_TEXT))
    };
    format!(
        "since night {} ({builds}): {} → {}",
        day(after),
        shown(&series.name, change.levels.0),
        shown(&series.name, change.levels.1)
    )
}

impl<'a> Plot<'a> {
    /// None where no point of the nights drawn has a value.
    fn of(series: &'a Series, nights: (usize, usize)) -> Option<Self> {
        let from = series.points.partition_point(|point| point.night < nights.0);
        let points = &series.points[from..];
        let before = points.split_last().map_or(points, |(_, before)| before);
        let before = &before[before.len().saturating_sub(BASE_NIGHTS)..];
        let values = sorted(&before.iter().map(|point| point.sample.value).collect::<Vec<_>>());
        let band = before
            .first()
            .and_then(|first| Some((first.night, quantile(&values, 0.25)?, quantile(&values, 0.75)?)));
        let finite = points.iter().map(|point| point.sample.value).filter(|value| value.is_finite());
        let (low, high) = finite
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if !low.is_finite() || !high.is_finite() {
            return None;
        }
        // A series that never moves is a line in the middle.
        let room = ((high - low) * MARGIN).max(high.abs() * 0.02).max(1e-9);
        Some(Self { points, nights, values: (low - room, high + room), band })
    }

    fn write(&self, m: &mut Markup, series: &Series) {
        let (low, high) = self.values;
        for (value, class) in [(high, "trend-y high"), (low, "trend-y low")] {
            // There is little room beside a strip.
            let text = shown(&series.name, value.max(0.0)).replace(" a second", "/s");
            m.leaf("span", &[("class", class)], &text);
        }
        m.drawing(&self.draw(series));
        let last = self.points.last().filter(|point| point.night + 1 == self.nights.0 + self.nights.1);
        if let Some(point) = last.filter(|point| point.sample.value.is_finite()) {
            let down = percent(high - point.sample.value, high - low);
            let across = percent(len_f64(point.night - self.nights.0) + 0.5, len_f64(self.nights.1));
            let class = if series.alarm.is_some() { "trend-tonight alarm" } else { "trend-tonight" };
            let style = format!("left:{}%;top:{}%", css(across), css(down));
            m.leaf("i", &[("class", class), ("style", &style)], "");
        }
    }

    fn draw(&self, series: &Series) -> String {
        let at = |night: usize| len_f64(night.saturating_sub(self.nights.0));
        let end = len_f64(self.nights.1) - 0.5;
        let (low, high) = self.values;
        let frame = Frame {
            size: CELLS,
            class: "trend-line",
            series: &["usual", "level", "dots"],
            label: "one number a night",
        };
        svg::draw(&frame, |area| {
            let mut chart = ChartBuilder::on(area).build_cartesian_2d(-0.5..end, low..high)?;
            if let Some((from, lower, upper)) = self.band {
                let corners = [(at(from) - 0.5, lower), (end, upper)];
                chart.draw_series([Rectangle::new(corners, Pen(0).filled())])?;
            }
            for (from, to, level) in levels(series, self.nights.0) {
                let line = [(at(from) - 0.5, level), (at(to) + 0.5, level)];
                let line = line.map(|(x, y)| (x.min(end), y.clamp(low, high)));
                chart.draw_series(LineSeries::new(line, Pen(1)))?;
            }
            let finite = self.points.iter().filter(|point| point.sample.value.is_finite());
            chart
                .draw_series(finite.map(|point| Pixel::new((at(point.night), point.sample.value), Pen(2))))?;
            Ok(())
        })
    }
}

/// Stretches of nights with their level, where a change was seen: first night, last night, level.
fn levels(series: &Series, first_drawn: usize) -> Vec<(usize, usize, f64)> {
    let (Some(first), Some(last)) = (series.points.first(), series.points.last()) else { return Vec::new() };
    let mut out = Vec::new();
    let mut from = first.night;
    for change in &series.changes {
        out.push((from, change.between.0, change.levels.0));
        from = change.between.1;
    }
    if let Some(change) = series.changes.last() {
        out.push((from, last.night, change.levels.1));
    }
    let drawn = out.into_iter().filter(|(_, to, level)| *to >= first_drawn && level.is_finite());
    drawn.map(|(from, to, level)| (from.max(first_drawn), to, level)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nights::measures::Sample;

    fn series(values: &[f64]) -> Series {
        let point = |(night, value): (usize, &f64)| Point { night, sample: Sample { value: *value, n: 1 } };
        Series {
            case: "a".to_owned(),
            name: "outage max".to_owned(),
            machine: String::new(),
            direction: Direction::LowerIsBetter,
            points: values.iter().enumerate().map(point).collect(),
            alarm: None,
            changes: Vec::new(),
        }
    }

    #[test]
    fn a_level_reaches_from_one_change_to_the_next() {
        let mut steps = series(&[1.0; 10]);
        steps.changes = vec![
            Change { between: (2, 3), levels: (1.0, 2.0) },
            Change { between: (6, 7), levels: (2.0, 3.0) },
        ];
        assert_eq!(levels(&steps, 0), [(0, 2, 1.0), (3, 6, 2.0), (7, 9, 3.0)]);
        assert_eq!(levels(&steps, 5), [(5, 6, 2.0), (7, 9, 3.0)]);
        assert!(levels(&series(&[1.0; 10]), 0).is_empty(), "no change, no level");
    }

    #[test]
    fn a_series_that_never_moves_and_one_without_a_number_can_be_drawn() {
        let flat = series(&[5.0; 4]);
        let plot = Plot::of(&flat, (0, 4)).expect("it has values");
        assert!(plot.values.0 < 5.0 && plot.values.1 > 5.0);
        assert!(plot.draw(&flat).contains("class=\"dots\""));
        assert!(Plot::of(&series(&[f64::NAN]), (0, 1)).is_none());
        assert!(Plot::of(&series(&[]), (0, 1)).is_none());
    }
}
