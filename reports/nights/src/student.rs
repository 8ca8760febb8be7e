//! Student's t distribution: how likely a difference is by chance, and how wide an interval has to be.
//!
//! Samples of nights and pairs are small, so the normal distribution would be too sure of itself. The
//! two-sided probability is the regularized incomplete beta function `I_x(ν/2, 1/2)` at `x = ν/(ν+t²)`
//! (DLMF 8.17, Abramowitz & Stegun 26.7.1). It is evaluated by its continued fraction (DLMF 8.17.22) with
//! Lentz's method as Thompson & Barnett modified it (Press et al., *Numerical Recipes*, 5.2 and 6.4). The
//! quantile is found by bisection.

/// More degrees of freedom are taken as this many; the distribution hardly differs from the normal then.
pub const MOST_DEGREES: u32 = 100_000;

/// Terms of the continued fraction at most; about the square root of the degrees of freedom is needed.
const MOST_TERMS: u32 = 2_000;
/// What stands for zero in a denominator.
const TINY: f64 = 1e-300;
/// How precise the continued fraction is.
const PRECISION: f64 = 1e-15;

/// The probability that |T| is at least |t| by chance, with so many degrees of freedom (`scipy.stats.t.sf`,
/// twice). 1 where `t` is not a number or there are no degrees of freedom; 0 where `t` is infinite.
#[must_use]
pub fn two_sided_p(t: f64, degrees: usize) -> f64 {
    let degrees = u32::try_from(degrees).unwrap_or(MOST_DEGREES).min(MOST_DEGREES);
    if t.is_nan() || degrees == 0 {
        return 1.0;
    }
    let nu = f64::from(degrees);
    let square = t * t;
    // Both from the start: 1 - x would lose the digits that count.
    let (x, rest) = (nu / (nu + square), if square.is_finite() { square / (nu + square) } else { 1.0 });
    if rest == 0.0 {
        return 1.0;
    }
    if x == 0.0 {
        return 0.0;
    }
    let (a, b) = (nu / 2.0, 0.5);
    let front = x.powf(a) * rest.sqrt() * inverse_beta(degrees);
    // The fraction converges fast below the mean of the distribution; above it the mirror does.
    let p = if x < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(a, b, x) / a
    } else {
        1.0 - front * continued_fraction(b, a, rest) / b
    };
    p.clamp(0.0, 1.0)
}

/// The `t` that |T| reaches by chance with probability `p`: `quantile(0.05, 7)` is 2.365, which makes an
/// interval of 95 %. Infinite where `p` is not above zero or there are no degrees of freedom; 0 from 1 on.
#[must_use]
pub fn quantile(p: f64, degrees: usize) -> f64 {
    if p.is_nan() || p <= 0.0 || degrees == 0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while two_sided_p(high, degrees) > p && high.is_finite() {
        (low, high) = (high, high * 2.0);
    }
    // Each step gains one of the 53 bits of a number; a few more cost nothing.
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if two_sided_p(middle, degrees) > p { low = middle } else { high = middle }
    }
    if p >= 1.0 { 0.0 } else { f64::midpoint(low, high) }
}

/// 1/B(ν/2, 1/2) = Γ((ν+1)/2) / (Γ(ν/2)·√π), from ν = 1 or 2 upwards by Γ(x+1) = x·Γ(x): no approximation
/// of Γ is needed.
fn inverse_beta(degrees: u32) -> f64 {
    let first = 2 - degrees % 2;
    let start = if first == 1 { 1.0 / std::f64::consts::PI } else { 0.5 };
    (first..degrees).step_by(2).fold(start, |ratio, nu| ratio * (f64::from(nu) + 1.0) / f64::from(nu))
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    let apart = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / apart(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for term in 1..=MOST_TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / apart(1.0 + even * d);
        c = apart(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / apart(1.0 + odd * d);
        c = apart(1.0 + odd / c);
        let step = d * c;
        value *= step;
        if (step - 1.0).abs() < PRECISION {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, expected: f64) -> bool {
        (value / expected - 1.0).abs() < 1e-9
    }

    #[test]
    fn probabilities_agree_with_mpmath() {
        // mpmath 1.3, 30 digits: betainc(nu/2, 1/2, 0, nu/(nu+t*t), regularized=True).
        let known = [
            (0.5, 1, 0.704832764699),
            (63.0, 1, 0.0101042272133),
            (2.0, 2, 0.183503419072),
            (0.01, 7, 0.992300317644),
            (2.365, 7, 0.0499723722748),
            (12.0, 7, 6.35831037819e-6),
            (3.5, 28, 0.00157647214124),
            (1.0, 48, 0.322325218521),
            (9.0, 48, 7.09149261653e-12),
            (40.0, 48, 1.61448042507e-38),
            (2.0, 500, 0.046040682769),
            (3.3, 99_999, 0.000967186265707),
        ];
        for (t, degrees, p) in known {
            assert!(
                close(two_sided_p(t, degrees), p),
                "t {t}, {degrees} degrees: {}",
                two_sided_p(t, degrees)
            );
            assert_eq!(two_sided_p(-t, degrees).to_bits(), two_sided_p(t, degrees).to_bits());
        }
    }

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        // Student's table as in Abramowitz & Stegun 26.10, three decimals.
        let table = [(1, 12.706, 63.657), (7, 2.365, 3.499), (11, 2.201, 3.106), (30, 2.042, 2.750)];
        for (degrees, at_95, at_99) in table {
            assert!((quantile(0.05, degrees) - at_95).abs() < 6e-4, "{degrees}");
            assert!((quantile(0.01, degrees) - at_99).abs() < 6e-4, "{degrees}");
        }
        assert!((quantile(0.05, usize::MAX) - 1.960).abs() < 6e-4);
    }

    #[test]
    fn the_quantile_undoes_the_probability() {
        for degrees in [1, 2, 3, 7, 48, 1_000] {
            for p in [0.9, 0.5, 0.05, 0.001, 1e-9] {
                assert!(close(two_sided_p(quantile(p, degrees), degrees), p), "{p}, {degrees}");
            }
        }
    }

    #[test]
    fn nothing_panics_at_the_edges() {
        assert_eq!([two_sided_p(f64::NAN, 5), two_sided_p(3.0, 0), two_sided_p(0.0, 5)], [1.0; 3]);
        assert_eq!([two_sided_p(f64::INFINITY, 5), two_sided_p(1e200, 48)], [0.0; 2]);
        assert_eq!([quantile(0.0, 5), quantile(f64::NAN, 5), quantile(0.05, 0)], [f64::INFINITY; 3]);
        assert_eq!([quantile(1.0, 5), quantile(2.0, 5)], [0.0; 2]);
    }
}
