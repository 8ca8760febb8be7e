//! Who chooses an instance.

use std::collections::{BTreeMap, VecDeque};

use bytestring::ByteString;
use node_session::Moment;

use super::instance::Instance;
use super::instances::Told;

/// How an instance is chosen of those that may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// One after the other, in the order of their names.
    RoundRobin,
    /// Any of them. The seed is the caller's; take another one in each process.
    Random {
        /// Where the drawn numbers begin.
        seed: u64,
    },
    /// Any of them at first, and that one as long as it may be chosen.
    Sticky {
        /// Where the drawn numbers begin.
        seed: u64,
    },
}

/// When an instance is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DownPolicy {
    /// So many errors make it so; 0 counts as 1.
    pub threshold: usize,
    /// Errors that are so long ago do not count any more.
    pub within: Moment,
    /// So long it is not chosen, from the last of these errors on.
    pub down_for: Moment,
}

impl Default for DownPolicy {
    /// As in Curator: two errors within 30 seconds, for 30 seconds. (Curator counts these from the first
    /// error on.)
    fn default() -> Self {
        Self { threshold: 2, within: Moment::from_secs(30), down_for: Moment::from_secs(30) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Errors {
    /// When they were noted. Fewer than the threshold.
    noted: VecDeque<Moment>,
    down_until: Option<Moment>,
}

/// Chooses one of a service's instances.
///
/// Moments are counted from an arbitrary beginning, the same for all calls, and do not go back.
///
/// ```
/// use node_recipes::discovery::{DownPolicy, Instance, Provider, Strategy, Told};
/// use node_session::Moment;
///
/// let mut provider = Provider::new(Strategy::RoundRobin, DownPolicy::default());
/// provider.hear(&Told::Joined { name: "a".into(), instance: Instance::new("orders", "a") });
/// assert!(provider.choose(Moment::ZERO).is_some());
/// provider.note_error(Moment::ZERO, "a");
/// provider.note_error(Moment::ZERO, "a");
/// assert!(provider.choose(Moment::ZERO).is_none());
/// assert!(provider.choose(Moment::from_secs(30)).is_some());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Provider {
    strategy: Strategy,
    policy: DownPolicy,
    instances: BTreeMap<ByteString, Instance>,
    errors: BTreeMap<ByteString, Errors>,
    /// The one that was chosen last.
    last: Option<ByteString>,
    drawn: u64,
}

impl Provider {
    /// One that knows no instance yet.
    #[must_use]
    pub fn new(strategy: Strategy, policy: DownPolicy) -> Self {
        let drawn = match strategy {
            Strategy::RoundRobin => 0,
            Strategy::Random { seed } | Strategy::Sticky { seed } => seed,
        };
        let (instances, errors) = (BTreeMap::new(), BTreeMap::new());
        Self { strategy, policy, instances, errors, last: None, drawn }
    }

    /// Takes what [`Instances`](super::instances::Instances) told. An instance that left takes its errors
    /// along.
    pub fn hear(&mut self, told: &Told) {
        match told {
            Told::Joined { name, instance } | Told::Changed { name, instance } => {
                self.instances.insert(name.clone(), instance.clone());
            }
            Told::Left { name } => {
                self.instances.remove(name);
                self.errors.remove(name);
            }
            Told::Unreadable { .. } | Told::Complete | Told::Stale | Told::Over(_) => {}
        }
    }

    /// The instances that it knows, by the names of their znodes.
    #[must_use]
    pub fn instances(&self) -> &BTreeMap<ByteString, Instance> {
        &self.instances
    }

    /// Chooses an instance, and gives the name of its znode with it. Nothing where there is none, or all are
    /// disabled or down.
    pub fn choose(&mut self, now: Moment) -> Option<(&ByteString, &Instance)> {
        let may_be: Vec<ByteString> =
            self.instances.keys().filter(|name| self.may_be(now, name)).cloned().collect();
        let chosen = match self.strategy {
            Strategy::RoundRobin => self.next_of(&may_be),
            Strategy::Random { .. } => self.draw(&may_be),
            Strategy::Sticky { .. } => match &self.last {
                Some(last) if may_be.contains(last) => Some(last.clone()),
                _ => self.draw(&may_be),
            },
        }?;
        self.last = Some(chosen.clone());
        self.instances.get_key_value(&chosen)
    }

    /// An instance did not do what was asked of it. One that is down already is so no longer for it.
    pub fn note_error(&mut self, now: Moment, name: &str) {
        if !self.instances.contains_key(name) || self.is_down(now, name) {
            return;
        }
        let errors = self.errors.entry(name.into()).or_default();
        errors.noted.retain(|at| now.saturating_sub(*at) < self.policy.within);
        errors.noted.push_back(now);
        if errors.noted.len() >= self.policy.threshold {
            *errors =
                Errors { noted: VecDeque::new(), down_until: Some(now.saturating_add(self.policy.down_for)) };
        }
    }

    /// True while an instance is not chosen because of its errors.
    #[must_use]
    pub fn is_down(&self, now: Moment, name: &str) -> bool {
        let until = self.errors.get(name).and_then(|errors| errors.down_until);
        until.is_some_and(|until| now < until)
    }

    fn may_be(&self, now: Moment, name: &str) -> bool {
        self.instances.get(name).is_some_and(|instance| instance.enabled) && !self.is_down(now, name)
    }

    /// The one behind the last, which may be gone.
    fn next_of(&self, names: &[ByteString]) -> Option<ByteString> {
        let behind = self.last.as_ref().and_then(|last| names.iter().find(|name| *name > last));
        behind.or(names.first()).cloned()
    }

    fn draw(&mut self, names: &[ByteString]) -> Option<ByteString> {
        let count = u64::try_from(names.len()).ok().filter(|count| *count > 0)?;
        let at = usize::try_from(self.number() % count).ok()?;
        names.get(at).cloned()
    }

    /// Vigna's splitmix64: every seed will do.
    fn number(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.drawn;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ number >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::Dice;

    fn joined(name: &str) -> Told {
        Told::Joined { name: name.into(), instance: Instance::new("orders", name) }
    }

    fn disabled(name: &str) -> Told {
        let instance = Instance { enabled: false, ..Instance::new("orders", name) };
        Told::Changed { name: name.into(), instance }
    }

    fn of(strategy: Strategy, names: &[&str]) -> Provider {
        let mut provider = Provider::new(strategy, DownPolicy::default());
        names.iter().for_each(|name| provider.hear(&joined(name)));
        provider
    }

    fn chosen(provider: &mut Provider, seconds: u64) -> String {
        let chosen = provider.choose(Moment::from_secs(seconds));
        chosen.map(|(name, _)| name.to_string()).unwrap_or_default()
    }

    fn note(provider: &mut Provider, seconds: u64, name: &str) {
        provider.note_error(Moment::from_secs(seconds), name);
    }

    #[test]
    fn one_after_the_other_is_chosen_while_they_come_and_go() {
        let mut provider = of(Strategy::RoundRobin, &["a", "b", "d"]);
        let round: Vec<String> = (0..4).map(|_| chosen(&mut provider, 0)).collect();
        assert_eq!(round, ["a", "b", "d", "a"]);
        provider.hear(&Told::Left { name: "a".into() });
        provider.hear(&joined("c"));
        let round: Vec<String> = (0..4).map(|_| chosen(&mut provider, 0)).collect();
        assert_eq!(round, ["b", "c", "d", "b"]);
    }

    #[test]
    fn any_is_drawn_as_often_as_another_and_a_seed_draws_the_same() {
        let strategy = Strategy::Random { seed: 7 };
        let (mut first, mut second) = (of(strategy, &["a", "b", "c"]), of(strategy, &["a", "b", "c"]));
        let mut counts = BTreeMap::<String, u32>::new();
        for _ in 0..3000 {
            let name = chosen(&mut first, 0);
            assert_eq!(name, chosen(&mut second, 0));
            *counts.entry(name).or_default() += 1;
        }
        assert_eq!(counts.len(), 3);
        assert!(counts.values().all(|count| (900..1100).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_sticky_one_stays_until_it_goes_or_may_not_be_chosen() {
        let mut provider = of(Strategy::Sticky { seed: 3 }, &["a", "b", "c"]);
        let first = chosen(&mut provider, 0);
        provider.hear(&joined("d"));
        assert!((0..100).all(|_| chosen(&mut provider, 0) == first));
        provider.hear(&Told::Left { name: first.as_str().into() });
        let second = chosen(&mut provider, 0);
        assert_ne!(second, first);
        provider.hear(&disabled(&second));
        let third = chosen(&mut provider, 0);
        assert_ne!(third, second);
        note(&mut provider, 0, &third);
        assert_eq!(chosen(&mut provider, 0), third);
        note(&mut provider, 0, &third);
        let fourth = chosen(&mut provider, 0);
        assert_ne!(fourth, third);
        // The one that was down is not gone back to.
        assert_eq!(chosen(&mut provider, 100), fourth);
    }

    #[test]
    fn so_many_errors_within_the_time_make_an_instance_down_for_a_time() {
        let mut provider = of(Strategy::RoundRobin, &["a"]);
        note(&mut provider, 0, "a");
        note(&mut provider, 30, "a");
        assert_eq!(chosen(&mut provider, 30), "a", "the first error is too long ago");
        note(&mut provider, 59, "a");
        assert_eq!(chosen(&mut provider, 59), "");
        note(&mut provider, 80, "a");
        assert_eq!(chosen(&mut provider, 88), "");
        assert_eq!(chosen(&mut provider, 89), "a", "an error of one that is down counts for nothing");
        note(&mut provider, 90, "a");
        assert_eq!(chosen(&mut provider, 90), "a", "what made it down counts no more");
    }

    #[test]
    fn none_is_chosen_where_all_are_down_or_disabled_and_errors_go_with_their_instance() {
        let mut provider = of(Strategy::RoundRobin, &["a", "b"]);
        assert_eq!(chosen(&mut of(Strategy::RoundRobin, &[]), 0), "");
        provider.hear(&disabled("b"));
        for _ in 0..2 {
            note(&mut provider, 0, "a");
            note(&mut provider, 0, "nobody");
        }
        assert_eq!(chosen(&mut provider, 0), "");
        provider.hear(&Told::Left { name: "a".into() });
        provider.hear(&joined("a"));
        assert_eq!(chosen(&mut provider, 0), "a");
    }

    #[test]
    fn whatever_happens_one_that_may_be_chosen_is_chosen_if_there_is_one() {
        for seed in 1..200 {
            let mut dice = Dice(seed * 0x9e37_79b9);
            let seed = seed.wrapping_mul(31);
            let strategies = [Strategy::RoundRobin, Strategy::Random { seed }, Strategy::Sticky { seed }];
            let policy = DownPolicy { threshold: dice.below(4), ..DownPolicy::default() };
            let mut provider = Provider::new(strategies[dice.below(3)], policy);
            let mut errors = Vec::new();
            let mut now = Moment::ZERO;
            for _ in 0..300 {
                let name = ["a", "b", "c"][dice.below(3)];
                match dice.below(8) {
                    0 | 1 => provider.hear(&joined(name)),
                    2 => provider.hear(&disabled(name)),
                    3 => provider.hear(&Told::Left { name: name.into() }),
                    4 => {
                        provider.note_error(now, name);
                        errors.push((now, name.to_owned()));
                    }
                    _ => now += Moment::from_secs(u64::try_from(dice.below(20)).unwrap()),
                }
                let enabled = |name: &str| provider.instances.get(name).is_some_and(|known| known.enabled);
                let down = |name: &str| provider.is_down(now, name);
                let some = ["a", "b", "c"].into_iter().any(|name| enabled(name) && !down(name));
                for name in ["a", "b", "c"].into_iter().filter(|name| down(name)) {
                    let recent = |(at, of): &&(Moment, String)| of == name && now - *at < 2 * policy.within;
                    assert!(errors.iter().filter(recent).count() >= policy.threshold, "seed {seed}");
                }
                let chosen = provider.clone().choose(now).map(|(name, _)| name.clone());
                assert_eq!(chosen.is_some(), some, "seed {seed}");
                assert!(chosen.is_none_or(|name| enabled(&name) && !down(&name)), "seed {seed}");
                provider.choose(now);
            }
        }
    }
}
