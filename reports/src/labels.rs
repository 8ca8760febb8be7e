//! Where labels go so that none overlaps another. Computed here and not in the browser, because the page
//! needs no script; widths of text are estimated, and on the safe side.

/// Estimated width of a character of the page's small print, in px.
const CHARACTER_PX: f64 = 6.4;

/// The narrowest a drawing is expected to be when its steps are computed, in px: a phone's column.
pub(crate) const NARROW_PX: f64 = 300.0;

/// Estimated width of `text` in px, on the safe side.
pub(crate) fn width_px(text: &str) -> f64 {
    crate::numbers::len_f64(text.chars().count()) * CHARACTER_PX
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

/// Puts intervals into the first row in which they touch no other.
pub(crate) fn rows(intervals: &[(f64, f64)]) -> Vec<usize> {
    let mut ends: Vec<f64> = Vec::new();
    let mut out = Vec::with_capacity(intervals.len());
    for &(from, to) in intervals {
        let row = match ends.iter().position(|&end| end <= from) {
            Some(row) => row,
            None => {
                ends.push(to);
                ends.len() - 1
            }
        };
        ends[row] = to;
        out.push(row);
    }
    out
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
    let digits = if step >= 1.0 { 0 } else { crate::numbers::to_u32(-step.log10().floor(), 12) };
    let decimals = usize::try_from(digits).unwrap_or(0);
    if decimals == 0 { crate::numbers::rate(tick) } else { format!("{tick:.decimals$}") }
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
        assert_eq!(rows(&[(0.0, 5.0), (4.0, 6.0), (5.0, 7.0), (6.5, 9.0)]), [0, 1, 0, 1]);
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
