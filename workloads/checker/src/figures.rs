//! Counts as people read them, with a comma between thousands: in the sentences that say what was judged.
//!
//! Names (keys, values, versions, processes) are no counts and stay as they are: whoever looks for them in
//! the history must find them.

/// A count with commas: `60,250`.
#[must_use]
pub fn count(number: impl TryInto<u64>) -> String {
    let Ok(number) = number.try_into() else { return "more than 2^64".to_owned() };
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let shown = [0_u64, 999, 1000, 60_250, 1_234_567].map(count);
        assert_eq!(shown, ["0", "999", "1,000", "60,250", "1,234,567"]);
        assert_eq!(count(1000_usize), "1,000");
    }
}
