//! Where labels go so that none overlaps another. Computed here and not in the browser, because the page
//! needs no script; widths of text are estimated, and on the safe side.

use std::collections::BTreeMap;

/// Estimated width of a character of the page's small print, in px.
const CHARACTER_PX: f64 = 6.4;

/// The narrowest a drawing is expected to be when its steps are computed, in px: a phone's column.
pub(crate) const NARROW_PX: f64 = 300.0;

/// Estimated width of `text` in px, on the safe side.
pub(crate) fn width_px(text: &str) -> f64 {
    runs::numbers::len_f64(text.chars().count()) * CHARACTER_PX
}

/// A label beside a mark, as placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Placed {
    /// Step from the top, 0 first.
    pub(crate) step: u32,
    /// Whether it stands to the left of its mark, because there is no room on the right.
    pub(crate) left: bool,
}

/// Places labels of marks at `at` (0 to 1, ascending) with their widths in px on a drawing `room_px` wide:
/// each in the highest step where it overlaps neither a label nor the mark of a label below it.
pub(crate) fn steps(marks: &[(f64, f64)], room_px: f64) -> Vec<Placed> {
    let mut placed: Vec<(Placed, f64, f64)> = Vec::new();
    for &(at, width) in marks {
        let x = at * room_px;
        let left = x + width > room_px && x >= width;
        let (from, to) = if left { (x - width, x) } else { (x, x + width) };
        // Marks run down from their label, so a mark to the right of an earlier one may only stand below it.
        let step = placed
            .iter()
            .filter(|(_, other_from, other_to)| from < *other_to && *other_from < to)
            .map(|(other, ..)| other.step + 1)
            .max()
            .unwrap_or(0);
        placed.push((Placed { step, left }, from, to));
    }
    placed.into_iter().map(|(place, ..)| place).collect()
}

/// Moves positions apart until neighbours are at least `gap` from each other, within `0..=max`, keeping
/// their order. Positions that have room stay where they are.
pub(crate) fn spread(at: &[f64], gap: f64, max: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..at.len()).collect();
    order.sort_by(|&a, &b| at[a].total_cmp(&at[b]));
    let mut out = at.to_vec();
    let mut floor = f64::NEG_INFINITY;
    for &i in &order {
        out[i] = out[i].max(floor).max(0.0);
        floor = out[i] + gap;
    }
    let mut ceiling = max;
    for &i in order.iter().rev() {
        out[i] = out[i].min(ceiling);
        ceiling = out[i] - gap;
    }
    out
}

/// Puts intervals into the first row in which they touch no other. Where `most` rows (at least one) are not
/// enough, the last one is shared.
pub(crate) fn rows(intervals: &[(f64, f64)], most: usize) -> Vec<usize> {
    let mut ends: Vec<f64> = Vec::new();
    let mut out = Vec::with_capacity(intervals.len());
    for &(from, to) in intervals {
        let free = ends.iter().position(|&end| end <= from);
        let row = free.unwrap_or_else(|| ends.len().min(most.max(1) - 1));
        match ends.get_mut(row) {
            Some(end) => *end = end.max(to),
            None => ends.push(to),
        }
        out.push(row);
    }
    out
}

/// A label on the time axis that owns the room up to the next one, for each of the three widths at which the
/// page is read. All moments are of the axis's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Room {
    /// 0: shown on every screen; 1: not on a narrow one; 2: only where the axis is zoomed.
    pub(crate) level: u8,
    /// Up to the next label that a narrow screen shows.
    pub(crate) narrow: f64,
    /// Up to the next label that a wide screen shows.
    pub(crate) wide: f64,
    /// Up to the next label of all.
    pub(crate) zoomed: f64,
}

/// Estimated widths of the time axis in px on a phone and on a wide screen.
const AXIS_PX: [f64; 2] = [320.0, 990.0];

/// Decides which labels are shown where. `labels` are (moment, width in px) in the order of their moments,
/// `priority` their indices, the most important first: one that would touch a more important one waits for a
/// wider screen.
pub(crate) fn rooms(labels: &[(f64, f64)], priority: &[usize], end: f64) -> Vec<Room> {
    let [phone, screen] = AXIS_PX;
    let narrow = granted(labels, priority, end / phone);
    // What a narrow screen shows a wide one shows too.
    let (kept, others): (Vec<usize>, Vec<usize>) = priority.iter().partition(|&&i| narrow[i]);
    let wide = granted(labels, &[kept, others].concat(), end / screen);
    let shown = [narrow, wide];
    let next = |shown: &[bool]| {
        let mut until = vec![end; labels.len()];
        let mut at = end;
        for i in (0..labels.len()).rev() {
            until[i] = at.max(labels[i].0);
            if shown[i] {
                at = labels[i].0;
            }
        }
        until
    };
    let [narrow, wide] = [next(&shown[0]), next(&shown[1])];
    let zoomed = next(&vec![true; labels.len()]);
    (0..labels.len())
        .map(|i| Room {
            level: if shown[0][i] { 0 } else { u8::from(!shown[1][i]) + 1 },
            narrow: narrow[i],
            wide: wide[i],
            zoomed: zoomed[i],
        })
        .collect()
}

/// The labels that have room at `unit` of the axis for a px, the most important first.
fn granted(labels: &[(f64, f64)], priority: &[usize], unit: f64) -> Vec<bool> {
    let mut shown = vec![false; labels.len()];
    // Labels by index, because they are in order: the neighbours in the map are the neighbours on the axis.
    let mut placed: BTreeMap<usize, f64> = BTreeMap::new();
    for &i in priority {
        let (from, to) = (labels[i].0, labels[i].0 + labels[i].1 * unit);
        let before = placed.range(..i).next_back().is_none_or(|(_, end)| *end <= from);
        let after = placed.range(i..).next().is_none_or(|(j, _)| labels[*j].0 >= to);
        if before && after {
            shown[i] = true;
            placed.insert(i, to);
        }
    }
    shown
}

/// Round steps of a linear axis: at most `most` of them above zero, of 1, 2 or 5 times a power of ten.
pub(crate) fn ticks(max: f64, most: u32) -> Vec<f64> {
    let max = if max.is_finite() && max > 0.0 { max } else { 1.0 };
    let raw = max / f64::from(most.max(1));
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= raw * (1.0 - 1e-9))
        .unwrap_or(power * 10.0);
    (0..=most).map(|n| f64::from(n) * step).take_while(|tick| *tick <= max * (1.0 + 1e-9)).collect()
}

/// Text of ticks with no more decimals than their step needs.
pub(crate) fn tick_text(tick: f64, step: f64) -> String {
    let digits = if step >= 1.0 { 0 } else { runs::numbers::to_u32(-step.log10().floor(), 12) };
    let decimals = usize::try_from(digits).unwrap_or(0);
    if decimals == 0 { runs::numbers::rate(tick) } else { format!("{tick:.decimals$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The interval that a placed label covers.
    fn covered(mark: (f64, f64), place: Placed, room: f64) -> (f64, f64) {
        let x = mark.0 * room;
        if place.left { (x - mark.1, x) } else { (x, x + mark.1) }
    }

    #[test]
    fn labels_in_one_step_never_overlap_and_stay_inside() {
        let marks = [(0.44, 60.0), (0.49, 60.0), (0.5, 90.0), (0.94, 110.0), (1.0, 60.0)];
        let room = 450.0;
        let placed = steps(&marks, room);
        for (i, (mark, place)) in marks.iter().zip(&placed).enumerate() {
            let (from, to) = covered(*mark, *place, room);
            assert!(from >= 0.0 && to <= room, "label {i} leaves the drawing: {from}..{to}");
            for (other_mark, other) in marks.iter().zip(&placed).skip(i + 1) {
                let (other_from, other_to) = covered(*other_mark, *other, room);
                assert!(place.step != other.step || to <= other_from || other_to <= from);
            }
        }
        assert_eq!(placed[0].step, 0);
        assert!(placed[4].left);
    }

    #[test]
    fn labels_with_room_stay_in_the_first_step() {
        let placed = steps(&[(0.0, 50.0), (0.5, 50.0)], 300.0);
        assert!(placed.iter().all(|place| place.step == 0 && !place.left));
    }

    #[test]
    fn crowded_ends_are_moved_apart_in_their_order() {
        assert_eq!(spread(&[10.0, 11.0, 100.0], 12.0, 200.0), [10.0, 22.0, 100.0]);
        assert_eq!(spread(&[198.0, 199.0], 12.0, 200.0), [188.0, 200.0]);
        assert_eq!(spread(&[50.0], 12.0, 200.0), [50.0]);
    }

    #[test]
    fn overlapping_intervals_get_rows_of_their_own() {
        let intervals = [(0.0, 5.0), (4.0, 6.0), (5.0, 7.0), (6.5, 9.0)];
        assert_eq!(rows(&intervals, 8), [0, 1, 0, 1]);
        assert_eq!(rows(&intervals, 1), [0, 0, 0, 0]);
    }

    #[test]
    fn a_label_without_room_waits_for_a_wider_screen() {
        // A hundred moments a second apart: 3.2 px each on a phone, 9.9 on a wide screen.
        let labels: Vec<(f64, f64)> = (0..100).map(|at| (f64::from(at), 20.0)).collect();
        let order: Vec<usize> = (0..100).collect();
        let rooms = rooms(&labels, &order, 100.0);
        let levels: Vec<u8> = rooms.iter().take(8).map(|room| room.level).collect();
        assert_eq!(levels, [0, 2, 2, 1, 2, 2, 2, 0]);
        assert_eq!((rooms[0].narrow, rooms[0].wide, rooms[0].zoomed), (7.0, 3.0, 1.0));
        assert_eq!(rooms[99].zoomed, 100.0);
    }

    #[test]
    fn the_more_important_of_two_labels_is_kept() {
        let rooms = rooms(&[(10.0, 40.0), (10.5, 40.0)], &[1, 0], 100.0);
        assert_eq!([rooms[0].level, rooms[1].level], [2, 0]);
    }

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(61.0, 8), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        assert_eq!(ticks(1418.0, 4), [0.0, 500.0, 1000.0]);
        assert_eq!(ticks(0.0, 4).first(), Some(&0.0));
        assert_eq!(tick_text(0.5, 0.5), "0.5");
        assert_eq!(tick_text(1500.0, 500.0), "1,500");
    }
}
