//! What a workload is made of, as far as its user decides that.

/// Most keys; more of them are no longer hot.
pub const MAX_KEYS: u64 = 10_000;

/// Elements of one set or list, unless somebody says otherwise.
pub const ELEMENTS: u64 = 96;

/// What a workload is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// How many keys are hot at a time.
    pub keys: u64,
    /// Shares of the operations of the workload of registers.
    pub register: RegisterParams,
    /// Elements of one set or list at most; then another one is begun.
    pub elements: u64,
    /// Share of reads of everything but registers, in percent.
    pub read_percent: u8,
}

impl Params {
    /// The usual parameters with this number of hot keys.
    #[must_use]
    pub fn of_keys(keys: u64) -> Self {
        Self {
            keys,
            register: RegisterParams { keys, ..RegisterParams::default() },
            elements: ELEMENTS,
            read_percent: 30,
        }
    }

    /// The same where nobody can compare and set.
    #[must_use]
    pub fn without_cas(self) -> Self {
        Self { register: RegisterParams { cas_percent: 0, ..self.register }, ..self }
    }

    /// Registers with as many keys as everything else.
    pub(crate) fn of_registers(&self) -> RegisterParams {
        RegisterParams { keys: self.keys, ..self.register }
    }

    /// Whether they make a workload, whichever it is.
    ///
    /// # Errors
    /// [`ParamsError`] when they make no sense.
    pub fn check(&self) -> Result<(), ParamsError> {
        self.of_registers().check()
    }
}

/// What the workload of registers is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegisterParams {
    /// How many keys.
    pub keys: u64,
    /// Share of reads, in percent.
    pub read_percent: u8,
    /// Share of compare-and-set, in percent; the rest are writes.
    pub cas_percent: u8,
}

impl Default for RegisterParams {
    fn default() -> Self {
        Self { keys: 5, read_percent: 40, cas_percent: 30 }
    }
}

impl RegisterParams {
    /// Whether they make a workload.
    ///
    /// # Errors
    /// [`ParamsError`] when they make no sense.
    pub fn check(&self) -> Result<(), ParamsError> {
        let Self { keys, read_percent, cas_percent } = *self;
        if keys == 0 || keys > MAX_KEYS {
            return Err(ParamsError::Keys(keys));
        }
        if read_percent > 100 || cas_percent > 100 - read_percent {
            return Err(ParamsError::Shares(read_percent, cas_percent));
        }
        Ok(())
    }
}

/// Parameters that make no workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// Too few or too many keys.
    #[error("the number of keys must be between 1 and {MAX_KEYS}, not {0}")]
    Keys(u64),
    /// The shares exceed the whole.
    #[error("reads ({0} %) and compare-and-sets ({1} %) are more than 100 %")]
    Shares(u8, u8),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_make_no_workload_are_refused() {
        let check = |register: RegisterParams| Params { register, ..Params::of_keys(register.keys) }.check();
        let params = RegisterParams::default();
        assert_eq!(check(params), Ok(()));
        assert_eq!(check(RegisterParams { keys: 0, ..params }), Err(ParamsError::Keys(0)));
        let shares = RegisterParams { read_percent: 60, cas_percent: 60, ..params };
        assert_eq!(check(shares), Err(ParamsError::Shares(60, 60)));
        let huge = RegisterParams { read_percent: 200, cas_percent: 0, ..params };
        assert!(check(huge).is_err());
    }
}
