//! Parameters of faults: `slow-leader(latency=200ms,jitter=20ms)`.
//!
//! A mechanism says which ones there are, what may be written, and what holds where nothing is. What is given
//! is read once, before anything starts, and becomes a part of the fault's name, spelled in one way; so it is
//! in the schedule, on the page, and in the line that repeats a run. What is as usual is left out of it.

use std::collections::BTreeMap;
use std::time::Duration;

use runs::span;

/// A parameter that may be given.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// What may be written.
    pub takes: Takes,
    /// What holds where nothing is written.
    pub usual: u64,
}

/// What a parameter takes. Times are kept in milliseconds.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// A time, from one to another.
    Time(u64, u64),
    /// A whole number, from one to another.
    Number(u64, u64),
    /// So many of a hundred, from one to another.
    Percent(u64, u64),
}

impl Takes {
    fn read(self, text: &str) -> Option<u64> {
        let (value, least, most) = match self {
            Self::Time(least, most) => {
                let time = span::parse(text).ok()?;
                let ms = u64::try_from(time.as_millis()).ok()?;
                // A part of a millisecond would be lost in silence.
                (Some(ms).filter(|ms| Duration::from_millis(*ms) == time), least, most)
            }
            Self::Number(least, most) => (text.parse().ok(), least, most),
            Self::Percent(least, most) => (text.strip_suffix('%')?.parse().ok(), least, most),
        };
        value.filter(|value| (least..=most).contains(value))
    }

    fn show(self, value: u64) -> String {
        match self {
            Self::Time(..) => span::show(Duration::from_millis(value)),
            Self::Number(..) => value.to_string(),
            Self::Percent(..) => format!("{value}%"),
        }
    }

    fn words(self) -> String {
        let (what, least, most) = match self {
            Self::Time(least, most) => ("a time in whole milliseconds", least, most),
            Self::Number(least, most) => ("a number", least, most),
            Self::Percent(least, most) => ("a share", least, most),
        };
        format!("{what} from {} to {}", self.show(least), self.show(most))
    }
}

impl Parameter {
    /// What it is and takes, for whoever is to write it.
    fn words(&self) -> String {
        let Self { name, about, takes, usual } = self;
        format!("{name} ({about}: {}; {} if left out)", takes.words(), takes.show(*usual))
    }
}

/// What the parameters of a fault are.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    all: &'static [Parameter],
    /// Their values in the same order; none where all are as usual.
    values: &'static [u64],
}

impl Parameters {
    /// All as usual.
    #[must_use]
    pub const fn usual(all: &'static [Parameter]) -> Self {
        Self { all, values: &[] }
    }

    /// As they are written: `latency=200ms,jitter=20ms`. What is given is kept for as long as the program
    /// runs.
    ///
    /// # Errors
    /// What is wrong, and what may stand there.
    pub fn read(all: &'static [Parameter], text: &str) -> Result<Self, String> {
        let known = || match all {
            [] => "it takes no parameters; leave out the parentheses".to_owned(),
            some => {
                let words: Vec<String> = some.iter().map(Parameter::words).collect();
                format!("it takes {}", words.join(", "))
            }
        };
        let mut given = BTreeMap::new();
        for one in text.split(',').map(str::trim) {
            let Some((name, value)) = one.split_once('=') else {
                return Err(format!("`{one}` is no parameter, write NAME=VALUE; {}", known()));
            };
            let (name, value) = (name.trim(), value.trim());
            let Some(place) = all.iter().position(|parameter| parameter.name == name) else {
                return Err(format!("there is no parameter `{name}`; {}", known()));
            };
            let parameter = &all[place];
            let Some(read) = parameter.takes.read(value) else {
                return Err(format!("`{name}={value}`: {name} takes {}", parameter.takes.words()));
            };
            if given.insert(place, read).is_some() {
                return Err(format!("`{name}` stands twice"));
            }
        }
        let value =
            |(place, parameter): (usize, &Parameter)| given.get(&place).copied().unwrap_or(parameter.usual);
        let values: Vec<u64> = all.iter().enumerate().map(value).collect();
        Ok(Self { all, values: Vec::leak(values) })
    }

    fn values(&self) -> impl Iterator<Item = (&'static Parameter, u64)> {
        let values = self.values;
        self.all
            .iter()
            .enumerate()
            .map(move |(place, parameter)| (parameter, values.get(place).copied().unwrap_or(parameter.usual)))
    }

    /// What is not as usual, spelled in one way, in parentheses; nothing where all is.
    #[must_use]
    pub fn spelled(&self) -> String {
        let other = self.values().filter(|(parameter, value)| *value != parameter.usual);
        let words: Vec<String> = other
            .map(|(parameter, value)| format!("{}={}", parameter.name, parameter.takes.show(value)))
            .collect();
        if words.is_empty() { String::new() } else { format!("({})", words.join(",")) }
    }

    /// All of them by name, as a run's folder has them.
    #[must_use]
    pub fn described(&self) -> BTreeMap<String, String> {
        let described =
            |(parameter, value): (&Parameter, u64)| (parameter.name.to_owned(), parameter.takes.show(value));
        self.values().map(described).collect()
    }

    /// One of them as a number; 0 where there is none of that name.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.values().find(|(parameter, _)| parameter.name == name).map_or(0, |(_, value)| value)
    }

    /// One of them as a time.
    #[must_use]
    pub fn time(&self, name: &str) -> Duration {
        Duration::from_millis(self.number(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static ALL: [Parameter; 3] = [
        Parameter { name: "latency", about: "added", takes: Takes::Time(1, 10_000), usual: 100 },
        Parameter { name: "jitter", about: "at most", takes: Takes::Time(0, 1_000), usual: 0 },
        Parameter { name: "share", about: "of packets", takes: Takes::Percent(1, 99), usual: 10 },
    ];

    #[test]
    fn what_is_given_is_spelled_in_one_way_and_what_is_usual_is_left_out() {
        let read = |text| Parameters::read(&ALL, text).expect("fine");
        assert_eq!(read("jitter=20ms, latency=1s").spelled(), "(latency=1s,jitter=20ms)");
        assert_eq!(read("latency=0.1s").spelled(), "");
        assert_eq!(read("share=5%").spelled(), "(share=5%)");
        assert_eq!(read("latency=200ms").time("latency"), Duration::from_millis(200));
        let usual = Parameters::usual(&ALL);
        assert_eq!((usual.time("latency"), usual.number("share")), (Duration::from_millis(100), 10));
        let described = usual.described();
        assert_eq!(described["latency"], "100ms");
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_may_stand_there() {
        let error = |text| Parameters::read(&ALL, text).expect_err("a slip");
        assert!(error("latncy=1s").contains(
            "it takes latency (added: a time in whole milliseconds from 1ms to 10s; 100ms if left out)"
        ));
        assert_eq!(
            error("latency=0ms"),
            "`latency=0ms`: latency takes a time in whole milliseconds from 1ms to 10s"
        );
        assert!(error("latency=1.5ms").contains("whole milliseconds"));
        assert!(error("share=100%").contains("from 1% to 99%"));
        assert!(error("latency").contains("write NAME=VALUE"));
        assert!(error("").contains("write NAME=VALUE"));
        assert!(error("jitter=1ms,jitter=1ms").contains("twice"));
        assert!(Parameters::read(&[], "x=1").expect_err("none").contains("it takes no parameters"));
    }
}
